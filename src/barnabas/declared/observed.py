"""The state of a cluster, as far as a file can declare it. A value; `observe` reads it from a live cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.declared.document import Credential, Entity
from barnabas.security.acl import AclEntry


@dataclass(frozen=True, slots=True)
class ObservedTopic:
    """`replicas`, `isr` and `leaders` are by partition; `configs` are those set on the topic itself.

    For a partition that is being reassigned, `replicas` has the target.
    """

    name: str
    replicas: Mapping[int, tuple[int, ...]]
    isr: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)
    is_internal: bool = False
    leaders: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Observed:
    """A section that is None was not read. `acls` is also None if the cluster has no authorizer.

    In configs, None stands for a sensitive value, which brokers do not return.
    """

    topics: Mapping[str, ObservedTopic] | None = None
    acls: frozenset[AclEntry] | None = None
    quotas: Mapping[Entity, Mapping[str, float]] | None = None
    users: Mapping[Credential, int] | None = None
    """Number of iterations of each credential."""
    brokers: Mapping[str, Mapping[str, str | None]] | None = None
    racks: Mapping[int, str | None] = field(default_factory=dict)
    """The running brokers, with their racks."""
    setting_names: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Names of configs that the cluster knows, by section. Empty if it was not asked."""
