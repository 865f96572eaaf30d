"""The changes between two images, as typed values that read as sentences.

The one rule: a change contains no secrets: for a SCRAM credential it has only the iterations. Config values are
included as they are; whoever displays them decides which are sensitive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from barnabas.metadata.brokers import Broker, Controller
from barnabas.metadata.configs import ConfigResource
from barnabas.metadata.image import MetadataImage, Touched
from barnabas.metadata.pmap import PMap, differences
from barnabas.metadata.quotas import QuotaEntity
from barnabas.metadata.scram import SCRAM_MECHANISMS, ScramUser
from barnabas.metadata.tokens import DelegationToken
from barnabas.metadata.topics import Partition, Topic
from barnabas.security.acl import AclEntry


class Change:
    """Base class of all changes."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TopicCreated(Change):
    topic: Topic

    def __str__(self) -> str:
        count = len(self.topic.partitions)
        # Its partitions follow one by one where records are told one by one.
        return f"topic {self.topic.name} created" + (f" with {count} partition{'s' * (count > 1)}" if count else "")


@dataclass(frozen=True, slots=True)
class TopicDeleted(Change):
    topic: Topic

    def __str__(self) -> str:
        return f"topic {self.topic.name} deleted"


@dataclass(frozen=True, slots=True)
class PartitionAdded(Change):
    """A partition added to an existing topic. Those of a new topic are in `TopicCreated`."""

    topic: Topic
    partition_id: int

    def __str__(self) -> str:
        partition = self.topic.partitions[self.partition_id]
        return f"partition {self.topic.name}-{self.partition_id} added on brokers {_show(partition.replicas)}"


@dataclass(frozen=True, slots=True)
class PartitionChanged(Change):
    topic: Topic
    partition_id: int
    before: Partition
    after: Partition

    def __str__(self) -> str:
        return f"partition {self.topic.name}-{self.partition_id}: {_differing(self.before, self.after)}"


@dataclass(frozen=True, slots=True)
class ConfigChanged(Change):
    resource: ConfigResource
    name: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        return f"{self.resource}: {self.name} {_step(self.before, self.after)}"


@dataclass(frozen=True, slots=True)
class AclAdded(Change):
    acl: AclEntry

    def __str__(self) -> str:
        return f"acl added: {self.acl}"


@dataclass(frozen=True, slots=True)
class AclRemoved(Change):
    acl: AclEntry

    def __str__(self) -> str:
        return f"acl removed: {self.acl}"


@dataclass(frozen=True, slots=True)
class BrokerRegistered(Change):
    """A first registration (`before` is None), or a new one with another epoch."""

    broker: Broker
    before: Broker | None

    def __str__(self) -> str:
        again = "" if self.before is None else " again"
        return f"broker {self.broker.broker_id} registered{again} with epoch {self.broker.epoch}"


@dataclass(frozen=True, slots=True)
class BrokerUnregistered(Change):
    broker: Broker

    def __str__(self) -> str:
        return f"broker {self.broker.broker_id} unregistered"


@dataclass(frozen=True, slots=True)
class BrokerFenced(Change):
    broker: Broker

    def __str__(self) -> str:
        return f"broker {self.broker.broker_id} fenced"


@dataclass(frozen=True, slots=True)
class BrokerUnfenced(Change):
    broker: Broker

    def __str__(self) -> str:
        return f"broker {self.broker.broker_id} unfenced"


@dataclass(frozen=True, slots=True)
class BrokerChanged(Change):
    """A change other than fencing, within the same registration."""

    before: Broker
    after: Broker

    def __str__(self) -> str:
        return f"broker {self.after.broker_id}: {_differing(self.before, self.after)}"


@dataclass(frozen=True, slots=True)
class ControllerChanged(Change):
    controller_id: int
    before: Controller | None
    after: Controller | None

    def __str__(self) -> str:
        return f"controller {self.controller_id} {'unregistered' if self.after is None else 'registered'}"


@dataclass(frozen=True, slots=True)
class FeatureChanged(Change):
    name: str
    before: int | None
    after: int | None

    def __str__(self) -> str:
        return f"feature {self.name} {_step(self.before, self.after)}"


@dataclass(frozen=True, slots=True)
class QuotaChanged(Change):
    entity: QuotaEntity
    key: str
    before: float | None
    after: float | None

    def __str__(self) -> str:
        entity = " ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in self.entity)
        return f"quota of {entity}: {self.key} {_step(self.before, self.after)}"


@dataclass(frozen=True, slots=True)
class ScramCredentialChanged(Change):
    """A changed credential. Equal iterations before and after mean that the password changed."""

    user: ScramUser
    iterations_before: int | None
    iterations_after: int | None

    def __str__(self) -> str:
        mechanism = SCRAM_MECHANISMS.get(self.user.mechanism, f"mechanism {self.user.mechanism}")
        done = {(True, False): "created", (False, True): "removed"}.get(
            (self.iterations_before is None, self.iterations_after is None), "changed"
        )
        return f"{mechanism} credential of user {self.user.name} {done}"


@dataclass(frozen=True, slots=True)
class TokenChanged(Change):
    before: DelegationToken | None
    after: DelegationToken | None

    def __str__(self) -> str:
        token = self.after or self.before
        done = "removed" if self.after is None else "created" if self.before is None else "changed"
        return f"delegation token {token and token.token_id} of {token and token.owner} {done}"


@dataclass(frozen=True, slots=True)
class ProducerIdsChanged(Change):
    before: int
    after: int

    def __str__(self) -> str:
        return f"next producer id {self.before} -> {self.after}"


def changes(before: MetadataImage, after: MetadataImage, touched: Touched | None = None) -> list[Change]:
    """Return the changes, sorted within each kind.

    With `touched` (from the loader or the draft) only those keys are compared. Otherwise every key of the parts that
    differ is compared.
    """

    def differing(part: str, old: PMap[Any, Any], new: PMap[Any, Any]) -> list[tuple[Any, Any, Any]]:
        keys = None if touched is None else touched.get(part, frozenset())
        return sorted(differences(old, new, keys), key=lambda item: _order(item[0]))

    found: list[Change] = []
    for name, old, new in differing("features", before.features, after.features):
        found.append(FeatureChanged(name, old, new))
    for _, old, new in differing("brokers", before.brokers, after.brokers):
        found += _broker_changes(old, new)
    for controller_id, old, new in differing("controllers", before.controllers, after.controllers):
        found.append(ControllerChanged(controller_id, old, new))
    topics = differing("topics", before.topics.by_id, after.topics.by_id)
    for _, old, new in sorted(topics, key=lambda item: (item[1] or item[2]).name):
        found += _topic_changes(old, new)
    for resource, old, new in differing("configs", before.configs, after.configs):
        for name, was, now in sorted(differences(old or PMap(), new or PMap())):
            found.append(ConfigChanged(resource, name, was, now))
    for entity, old, new in differing("quotas", before.quotas, after.quotas):
        for key, was, now in sorted(differences(old or PMap(), new or PMap())):
            found.append(QuotaChanged(entity, key, was, now))
    if before.producer_ids != after.producer_ids:
        found.append(ProducerIdsChanged(before.producer_ids.next_producer_id, after.producer_ids.next_producer_id))
    for _, old, new in differing("acls", before.acls.by_id, after.acls.by_id):
        found += [AclRemoved(old)] if old is not None else []
        found += [AclAdded(new)] if new is not None else []
    for user, old, new in differing("scram", before.scram, after.scram):
        found.append(ScramCredentialChanged(user, old and old.iterations, new and new.iterations))
    for _, old, new in differing("tokens", before.tokens, after.tokens):
        found.append(TokenChanged(old, new))
    return found


def _topic_changes(old: Topic | None, new: Topic | None) -> list[Change]:
    if old is None or new is None or old.name != new.name or len(old.partitions) > len(new.partitions):
        # The last two cases mean that the log was replaced, for example by a snapshot.
        deleted: list[Change] = [] if old is None else [TopicDeleted(old)]
        return deleted if new is None else [*deleted, TopicCreated(new)]
    found: list[Change] = [
        PartitionChanged(new, partition_id, was, now)
        for partition_id, (was, now) in enumerate(zip(old.partitions, new.partitions, strict=False))
        if was is not now and was != now
    ]
    return found + [PartitionAdded(new, index) for index in range(len(old.partitions), len(new.partitions))]


def _broker_changes(old: Broker | None, new: Broker | None) -> list[Change]:
    if new is None:
        return [] if old is None else [BrokerUnregistered(old)]
    if old is None or old.epoch != new.epoch or old.incarnation_id != new.incarnation_id:
        return [BrokerRegistered(new, old)]
    found: list[Change] = []
    if old.fenced != new.fenced:
        found.append(BrokerFenced(new) if new.fenced else BrokerUnfenced(new))
    if old._replace(fenced=new.fenced) != new:
        found.append(BrokerChanged(old._replace(fenced=new.fenced), new))
    return found


def _order(key: Any) -> Any:
    """Return a sort key. The name in a quota entity may be None, which sorts first."""
    if type(key) is not tuple:
        return key
    return tuple((kind, name is not None, name) for kind, name in key)


def _differing(before: Any, after: Any) -> str:
    fields = zip(type(before)._fields, before, after, strict=True)
    return ", ".join(f"{name} {_show(was)} -> {_show(now)}" for name, was, now in fields if was != now)


def _step(before: object, after: object) -> str:
    if before is None:
        return f"set to {after}"
    return f"unset, it was {before}" if after is None else f"{before} -> {after}"


def _show(value: object) -> str:
    return f"[{', '.join(map(_show, value))}]" if type(value) is tuple else str(value)
