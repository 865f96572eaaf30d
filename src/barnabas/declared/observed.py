"""A cluster as it was found, as far as a file can declare it. A value; `observe` makes it from a live cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.declared.document import Credential, Entity
from barnabas.security.acl import AclEntry


@dataclass(frozen=True, slots=True)
class ObservedTopic:
    """`replicas` has those of each partition, as they will be when moves that go on are done; `configs` what was set on it."""

    name: str
    replicas: Mapping[int, tuple[int, ...]]
    isr: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)
    is_internal: bool = False
    leaders: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Observed:
    """What is None was not looked at, or cannot be: ACLs of a cluster without an authorizer.

    Of settings, None is a value that brokers keep to themselves.
    """

    topics: Mapping[str, ObservedTopic] | None = None
    acls: frozenset[AclEntry] | None = None
    quotas: Mapping[Entity, Mapping[str, float]] | None = None
    users: Mapping[Credential, int] | None = None
    """The iterations of each credential."""
    brokers: Mapping[str, Mapping[str, str | None]] | None = None
    racks: Mapping[int, str | None] = field(default_factory=dict)
    """The brokers that are alive."""
