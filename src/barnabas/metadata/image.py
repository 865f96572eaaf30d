"""The cluster's state as an immutable value, and the draft that builds the next one from records.

The one rule: an image never changes. A draft copies a part on its first change, and only `replay` writes to it. Keeping
an old image costs only the memory of what has changed since. Nothing here knows where records come from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from barnabas.metadata.acls import Acls, AclsDraft
from barnabas.metadata.brokers import Broker, Brokers, Controller, Controllers
from barnabas.metadata.configs import Config, ConfigResource, Configs
from barnabas.metadata.features import Features
from barnabas.metadata.pmap import MapDraft, PMap
from barnabas.metadata.producer_ids import ProducerIds, ProducerIdsDraft
from barnabas.metadata.quotas import QuotaEntity, Quotas
from barnabas.metadata.scram import Scram, ScramUser
from barnabas.metadata.tokens import DelegationToken, Tokens
from barnabas.metadata.topics import Topics, TopicsDraft
from barnabas.metadata.versions import ELIGIBLE_LEADER_REPLICAS_VERSION, METADATA_VERSION, MetadataVersion
from barnabas.security.sasl.scram import ScramCredential
from barnabas.steps import Slices, at_once, result_of

_NOTHING_SET: Config = PMap()


class Provenance(NamedTuple):
    """The position in the log up to which the image is built.

    It is not batch aligned if a transaction starts inside the next batch.
    """

    last_contained_offset: int = -1
    last_contained_epoch: int = -1
    last_contained_timestamp_ms: int = -1
    batch_aligned: bool = True


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """The content of the metadata log up to its provenance."""

    provenance: Provenance = field(default_factory=Provenance)
    features: Features = field(default_factory=PMap)
    brokers: Brokers = field(default_factory=PMap)
    controllers: Controllers = field(default_factory=PMap)
    topics: Topics = field(default_factory=Topics)
    configs: Configs = field(default_factory=PMap)
    quotas: Quotas = field(default_factory=PMap)
    producer_ids: ProducerIds = field(default_factory=ProducerIds)
    acls: Acls = field(default_factory=Acls)
    scram: Scram = field(default_factory=PMap)
    tokens: Tokens = field(default_factory=PMap)

    @property
    def offset(self) -> int:
        """The offset of the last record in the image; also the epoch of the finalized features."""
        return self.provenance.last_contained_offset

    @property
    def metadata_version(self) -> MetadataVersion | None:
        """The finalized level, or None before the first records have set it."""
        level = self.features.get(METADATA_VERSION)
        return None if level is None else MetadataVersion(level)

    @property
    def is_elr_enabled(self) -> bool:
        return self.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) >= 1

    def config(self, resource_type: int, resource_name: str) -> Mapping[str, str]:
        """Return the configs set on the resource itself, without any defaults."""
        return self.configs.get(ConfigResource(resource_type, resource_name), _NOTHING_SET)


EMPTY_IMAGE: Final = MetadataImage()

_DRAFTS: Final[dict[str, Callable[[Any], Any]]] = {
    "features": MapDraft,
    "brokers": MapDraft,
    "controllers": MapDraft,
    "topics": TopicsDraft,
    "configs": MapDraft,
    "quotas": MapDraft,
    "producer_ids": ProducerIdsDraft,
    "acls": AclsDraft,
    "scram": MapDraft,
    "tokens": MapDraft,
}

Touched = Mapping[str, frozenset[Any]]
"""The changed parts of the image, each with the keys that records may have changed in it."""


class Draft:
    """An image under construction: apply records, then call `finish` once.

    `is_supported_config(resource_type, name)` may exclude configs that this node no longer supports.
    """

    __slots__ = ("_parts", "image", "is_supported_config", *_DRAFTS)

    features: MapDraft[str, int]
    brokers: MapDraft[int, Broker]
    controllers: MapDraft[int, Controller]
    topics: TopicsDraft
    configs: MapDraft[ConfigResource, Config]
    quotas: MapDraft[QuotaEntity, PMap[str, float]]
    producer_ids: ProducerIdsDraft
    acls: AclsDraft
    scram: MapDraft[ScramUser, ScramCredential]
    tokens: MapDraft[str, DelegationToken]

    def __init__(self, image: MetadataImage, *, is_supported_config: Callable[[int, str], bool] | None = None) -> None:
        self.image = image
        self.is_supported_config = is_supported_config
        self._parts: list[str] = []

    def __getattr__(self, name: str) -> Any:
        # Python calls this only while the slot is unset: on the first use of a part.
        if name not in _DRAFTS:
            raise AttributeError(name)
        draft = _DRAFTS[name](getattr(self.image, name))
        setattr(self, name, draft)
        self._parts.append(name)
        return draft

    def finish(self, provenance: Provenance) -> MetadataImage:
        return at_once(self.finish_in_slices(provenance))

    def finish_in_slices(self, provenance: Provenance) -> Slices[MetadataImage]:
        parts = {}
        for name in self._parts:
            parts[name] = yield from result_of(getattr(self, name).finish())
        return replace(self.image, provenance=provenance, **parts)

    def touched(self) -> Touched:
        return {name: frozenset(getattr(self, name).touched) for name in self._parts}
