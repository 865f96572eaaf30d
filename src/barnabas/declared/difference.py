"""The changes that make a cluster match a file, in an order that is safe. Pure.

Its one rule: only what the file declares is changed, and only if it differs. Additions and alterations come first: topics,
partitions, replicas, configs, quotas, users, then ACLs, DENY before ALLOW. Deletions follow: ACLs, ALLOW before DENY, then
users and topics. Without `prune`, only what the file declares absent is deleted. With `prune`, what is not declared is deleted
too: within `manages` if the file has it, else within the file's sections. Broker configs are the exception: brokers need some
of them, and set them themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from barnabas.client.replica_choice import (
    NotEnoughBrokersError,
    PartitionReplicas,
    ReplicaCounts,
    with_replication_factor,
)
from barnabas.client.state import NO_LEADER
from barnabas.config import broker as broker_settings
from barnabas.config import topic as topic_settings
from barnabas.config.values import ConfigError
from barnabas.declared.document import (
    DEFAULT,
    EVERYTHING,
    DeclaredAcl,
    DeclaredTopic,
    DeclaredUser,
    Document,
    Doubt,
    Entity,
    Manages,
    Password,
    entity_text,
)
from barnabas.declared.observed import Observed, ObservedTopic
from barnabas.declared.yaml_nodes import NOWHERE, Problem
from barnabas.security.acl import AclEntry, AclPermissionType
from barnabas.security.acl_text import entry_order, entry_text

DEFAULT_ITERATIONS = 4096
HIDDEN = "[hidden]"
"""Shown instead of a sensitive value, which brokers do not return."""


class Value(NamedTuple):
    """One value that changes. None means that it is not set."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the cluster. `values` lists the values that it changes."""

    action: ClassVar[str] = "alter"
    kind: ClassVar[str] = ""

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def values(self) -> tuple[Value, ...]:
        return ()

    @property
    def deletes(self) -> bool:
        return self.action == "delete"

    def __str__(self) -> str:
        values = ", ".join(f"{field} {_shown(before)} -> {_shown(after)}" for field, before, after in self.values)
        return f"{self.action} {self.kind} {self.name}" + (f": {values}" if values else "")


def _shown(value: Any) -> str:
    return "(none)" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class CreateTopic(Change):
    action: ClassVar[str] = "create"
    kind: ClassVar[str] = "topic"
    topic: DeclaredTopic

    @property
    def name(self) -> str:
        return self.topic.name

    @property
    def configs(self) -> dict[str, str]:
        return {key: value for key, value in (self.topic.configs or {}).items() if value is not None}

    @property
    def values(self) -> tuple[Value, ...]:
        numbers = {"partitions": self.topic.partitions, "replicationFactor": self.topic.replication_factor}
        given = {key: value for key, value in numbers.items() if value is not None}
        return tuple(Value(key, None, value) for key, value in (given | self.configs).items())


@dataclass(frozen=True, slots=True)
class AddPartitions(Change):
    kind: ClassVar[str] = "topic"
    topic: str
    before: int
    after: int

    @property
    def name(self) -> str:
        return self.topic

    @property
    def values(self) -> tuple[Value, ...]:
        return (Value("partitions", self.before, self.after),)


@dataclass(frozen=True, slots=True)
class ChangeReplicationFactor(Change):
    """`replicas` has the new replicas of those existing partitions that change."""

    kind: ClassVar[str] = "topic"
    topic: str
    before: tuple[int, ...]
    after: int
    replicas: Mapping[int, Sequence[int]]

    @property
    def name(self) -> str:
        return self.topic

    @property
    def values(self) -> tuple[Value, ...]:
        before = self.before[0] if len(self.before) == 1 else ",".join(map(str, self.before))
        return (Value("replicationFactor", before, self.after),)


@dataclass(frozen=True, slots=True)
class ChangeConfigs(Change):
    """Configs of a topic or a broker, each with its value before and after."""

    of: str
    resource: str
    configs: Mapping[str, tuple[str | None, str | None]]

    @property
    def kind(self) -> str:  # type: ignore[override]
        return self.of

    @property
    def name(self) -> str:
        return self.resource

    @property
    def values(self) -> tuple[Value, ...]:
        return tuple(Value(key, before, after) for key, (before, after) in self.configs.items())


@dataclass(frozen=True, slots=True)
class ChangeQuotas(Change):
    kind: ClassVar[str] = "quota"
    entity: Entity
    quotas: Mapping[str, tuple[float | None, float | None]]

    @property
    def name(self) -> str:
        return entity_text(self.entity)

    @property
    def values(self) -> tuple[Value, ...]:
        return tuple(Value(key, number(before), number(after)) for key, (before, after) in self.quotas.items())


@dataclass(frozen=True, slots=True)
class SetUser(Change):
    """A credential to create, or to replace because its number of iterations differs."""

    kind: ClassVar[str] = "user"
    user: str
    mechanism: str
    before: int | None
    iterations: int
    password: Password

    @property
    def action(self) -> str:  # type: ignore[override]
        return "create" if self.before is None else "alter"

    @property
    def name(self) -> str:
        return self.user

    @property
    def values(self) -> tuple[Value, ...]:
        return (Value(f"{self.mechanism} iterations", self.before, self.iterations),)


@dataclass(frozen=True, slots=True)
class DeleteUser(Change):
    action: ClassVar[str] = "delete"
    kind: ClassVar[str] = "user"
    user: str
    mechanism: str
    before: int

    @property
    def name(self) -> str:
        return self.user

    @property
    def values(self) -> tuple[Value, ...]:
        return (Value(f"{self.mechanism} iterations", self.before, None),)


@dataclass(frozen=True, slots=True)
class CreateAcl(Change):
    action: ClassVar[str] = "create"
    kind: ClassVar[str] = "acl"
    entry: AclEntry
    description: str | None = None

    @property
    def name(self) -> str:
        return entry_text(self.entry)


@dataclass(frozen=True, slots=True)
class DeleteAcl(Change):
    action: ClassVar[str] = "delete"
    kind: ClassVar[str] = "acl"
    entry: AclEntry

    @property
    def name(self) -> str:
        return entry_text(self.entry)


@dataclass(frozen=True, slots=True)
class DeleteTopic(Change):
    action: ClassVar[str] = "delete"
    kind: ClassVar[str] = "topic"
    topic: str
    partitions: int

    @property
    def name(self) -> str:
        return self.topic

    @property
    def values(self) -> tuple[Value, ...]:
        return (Value("partitions", self.partitions, None),)


@dataclass(frozen=True, slots=True)
class Plan:
    """`changes` are in the order to make them. `problems` are declarations that cannot be met. `undeclared` names what exists,
    is not in the file, and stays."""

    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()
    undeclared: tuple[str, ...] = ()

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each value that changes, and one for each change without values. All rows have the same fields."""
        for change in self.changes:
            start = {"action": change.action, "kind": change.kind, "name": change.name}
            description = change.description if isinstance(change, CreateAcl) else None
            for value in change.values or (Value("", None, None),):
                values = {"field": value.field or None, "before": value.before, "after": value.after}
                yield {**start, **values, "description": description}


def difference(declared: Document, observed: Observed, *, prune: bool = False) -> Plan:
    """Compare a file with a cluster, as far as the file has sections."""
    finding = _Finding(prune, EVERYTHING if declared.manages is None else declared.manages)
    sections = declared.sections()
    if "topics" in sections:
        _topics(finding, declared.topics or {}, observed)
    if "brokers" in sections:
        _brokers(finding, declared, observed)
    if "quotas" in sections:
        _quotas(finding, declared, observed.quotas or {})
    if "users" in sections:
        _users(finding, (declared.users or {}).values(), observed.users or {})
    if "acls" in sections:
        _acls(finding, declared.acls or (), observed.acls)
    finding.problems += (doubt.problem for doubt in declared.doubts if not _is_settled(doubt, observed))
    changes = tuple(sorted(finding.changes, key=_turn))
    return Plan(changes, tuple(sorted(finding.problems)), () if prune else tuple(finding.undeclared))


def _is_settled(doubt: Doubt, observed: Observed) -> bool:
    """Return whether the cluster has the doubted value already, or knows the doubted name."""
    if doubt.is_unknown and doubt.name in observed.setting_names.get(doubt.section, ()):
        return True
    found = (getattr(observed, doubt.section) or {}).get(doubt.resource)
    if found is None:
        return False
    if isinstance(found, int):
        return found == doubt.value  # iterations of a credential
    present: Mapping[str, Any] = found.configs if isinstance(found, ObservedTopic) else found
    return doubt.name in present and (doubt.is_unknown or present[doubt.name] in (None, doubt.value))


class _Finding:
    """The changes and problems found so far."""

    def __init__(self, prune: bool, manages: Manages) -> None:
        self.prune = prune
        self.manages = manages
        self.changes: list[Change] = []
        self.problems: list[Problem] = []
        self.undeclared: list[str] = []

    def extra(self, what: str, delete: Change) -> None:
        """Note a managed resource that exists and is not declared; delete it if `prune` is set."""
        self.undeclared.append(what)
        if self.prune:
            self.changes.append(delete)


_ORDER = (
    *(CreateTopic, AddPartitions, ChangeReplicationFactor, ChangeConfigs, ChangeQuotas, SetUser, CreateAcl),
    *(DeleteAcl, DeleteUser, DeleteTopic),
)


def _turn(change: Change) -> tuple[int, bool]:
    """Sort key of a change. DENY ACLs are created before ALLOW ACLs, and deleted after them."""
    allows = isinstance(change, CreateAcl | DeleteAcl) and change.entry.permission == AclPermissionType.ALLOW
    return _ORDER.index(type(change)), allows is isinstance(change, CreateAcl)


# --- topics


def _topics(finding: _Finding, declared: Mapping[str, DeclaredTopic], observed: Observed) -> None:
    present = observed.topics or {}
    replicas = _replicas(declared, observed)
    alike: dict[str, list[str]] = defaultdict(list)
    for name in dict.fromkeys((*present, *(each.name for each in declared.values() if not each.absent))):
        alike[_without_dots(name)].append(name)
    for topic in declared.values():
        found = present.get(topic.name)
        if topic.absent:
            if found is not None:
                finding.changes.append(DeleteTopic(topic.name, len(found.replicas)))
        elif found is None:
            if topic.replication_factor is not None and topic.replication_factor > len(observed.racks) > 0:
                error = NotEnoughBrokersError(topic.replication_factor, len(observed.racks))
                finding.problems.append(Problem(topic.place, f"topic {topic.name}: {error}"))
            for other in alike[_without_dots(topic.name)]:
                if other != topic.name:
                    text = f"the name collides with topic {other}: Kafka does not tell . and _ apart"
                    finding.problems.append(Problem(topic.place, f"topic {topic.name}: {text}"))
            finding.changes.append(CreateTopic(topic))
        else:
            _partitions(finding, topic, found)
            _replication(finding, topic, found, replicas.get(topic.name))
            if topic.configs is not None:
                _configs(finding, "topic", topic.name, topic.configs, found.configs)
    for name, found in sorted(present.items()):
        if name not in declared and not found.is_internal and finding.manages.has_topic(name):
            finding.extra(f"topic {name}", DeleteTopic(name, len(found.replicas)))


def _without_dots(name: str) -> str:
    """Return a name as Kafka's metrics show it. Kafka refuses a new topic that looks like another one there."""
    return name.replace(".", "_")


def _partitions(finding: _Finding, topic: DeclaredTopic, found: ObservedTopic) -> None:
    present, wanted = len(found.replicas), topic.partitions
    if wanted is None or wanted == present:
        return
    if wanted > present:
        finding.changes.append(AddPartitions(topic.name, present, wanted))
        return
    text = f"topic {topic.name}: {wanted} partitions are declared, and it has {present}"
    advice = f"partitions cannot be removed: declare {present}, or copy the records to another topic"
    finding.problems.append(Problem(topic.place, f"{text}; {advice}"))


_Replicas = dict[tuple[str, int], tuple[int, ...]]


def _replicas(
    declared: Mapping[str, DeclaredTopic], observed: Observed
) -> dict[str, _Replicas | NotEnoughBrokersError]:
    """Choose new replicas for the topics whose replication factor differs, in the order of their names."""
    present = observed.topics or {}
    counts = ReplicaCounts(
        {(name, index): each for name, topic in present.items() for index, each in topic.replicas.items()}
    )
    chosen: dict[str, _Replicas | NotEnoughBrokersError] = {}
    for name, topic in sorted(declared.items()):
        found, factor = present.get(name), topic.replication_factor
        if found is None or topic.absent or factor is None or _factors(found) == (factor,):
            continue
        partitions = {
            (name, index): PartitionReplicas(replicas, found.isr.get(index, ()), found.leaders.get(index, NO_LEADER))
            for index, replicas in found.replicas.items()
        }
        try:
            chosen[name] = with_replication_factor(partitions, factor, observed.racks, counts)
        except NotEnoughBrokersError as error:
            chosen[name] = error
    return chosen


def _factors(topic: ObservedTopic) -> tuple[int, ...]:
    return tuple(sorted({len(replicas) for replicas in topic.replicas.values()}))


def _replication(
    finding: _Finding, topic: DeclaredTopic, found: ObservedTopic, replicas: _Replicas | NotEnoughBrokersError | None
) -> None:
    if isinstance(replicas, NotEnoughBrokersError):
        finding.problems.append(Problem(topic.place, f"topic {topic.name}: {replicas}"))
    elif replicas is not None and topic.replication_factor is not None:
        by_index = {index: each for (_, index), each in replicas.items()}
        change = ChangeReplicationFactor(topic.name, _factors(found), topic.replication_factor, by_index)
        finding.changes.append(change)


# --- configs


def _configs(
    finding: _Finding,
    kind: str,
    name: str,
    declared: Mapping[str, str | None],
    present: Mapping[str, str | None],
) -> None:
    changed: dict[str, tuple[str | None, str | None]] = {}
    for key, value in declared.items():
        before = shown_setting(present, key)
        if value is None:
            if key in present:
                changed[key] = (before, None)
        elif key not in present or (present[key] is not None and not same_setting(kind, key, present[key], value)):
            changed[key] = (before, value)
    is_pruned = kind == "topic" and finding.manages.has_topic(name)
    for key in sorted(present) if is_pruned else ():
        if key not in declared:
            finding.undeclared.append(f"{kind} {name}: {key}")
            if finding.prune:
                changed[key] = (shown_setting(present, key), None)
    if changed:
        finding.changes.append(ChangeConfigs(kind, name, changed))


def shown_setting(present: Mapping[str, str | None], key: str) -> str | None:
    if key not in present:
        return None
    value = present[key]
    return HIDDEN if value is None else value


def same_setting(kind: str, key: str, one: str | None, other: str | None) -> bool:
    """Return whether two texts have the same value, as `compact, delete` and `compact,delete` do."""
    if one == other:
        return True
    definition = topic_settings.definitions().get(key) if kind == "topic" else broker_settings.find(key)
    if definition is None or one is None or other is None:
        return False
    try:
        return definition.parse(one) == definition.parse(other)
    except ConfigError:
        return False


def _brokers(finding: _Finding, declared: Document, observed: Observed) -> None:
    present, wanted = observed.brokers or {}, declared.brokers or {}
    for name, broker in wanted.items():
        if name != DEFAULT and int(name) not in observed.racks:
            alive = ", ".join(str(each) for each in sorted(observed.racks))
            finding.problems.append(Problem(broker.place, f"broker {name} is not running; running brokers: {alive}"))
        else:
            _configs(finding, "broker", name, broker.configs, present.get(name, {}))


# --- quotas


def _quotas(finding: _Finding, declared: Document, present: Mapping[Entity, Mapping[str, float]]) -> None:
    wanted = {entity: quota.values for entity, quota in (declared.quotas or {}).items()}
    extra = sorted((each for each in present if each not in wanted), key=entity_text)
    for entity, values in (*wanted.items(), *((each, {}) for each in extra)):
        found = present.get(entity, {})
        changed: dict[str, tuple[float | None, float | None]] = {
            key: (found.get(key), value) for key, value in values.items() if found.get(key) != value
        }
        for key in sorted(found) if finding.manages.has_quota(entity) else ():
            if key not in values:
                finding.undeclared.append(f"quota {entity_text(entity)}: {key}")
                if finding.prune:
                    changed[key] = (found[key], None)
        if changed:
            finding.changes.append(ChangeQuotas(entity, changed))


def number(value: float | None) -> float | int | None:
    """Return a whole number as an integer.

    >>> number(1048576.0), number(12.5)
    (1048576, 12.5)
    """
    return int(value) if value is not None and value.is_integer() else value


# --- users


def _users(finding: _Finding, declared: Iterable[DeclaredUser], present: Mapping[tuple[str, str], int]) -> None:
    wanted = {(each.user, each.mechanism): each for each in declared}
    for key, user in wanted.items():
        before = present.get(key)
        if user.absent:
            if before is not None:
                finding.changes.append(DeleteUser(*key, before))
            continue
        if before is not None and user.iterations in (None, before):
            continue
        if user.password is None:
            text = f"user {user.user}: {user.mechanism}: creating this credential needs a password"
            finding.problems.append(
                Problem(user.place, f"{text}: declare password: {{env: VARIABLE}} or {{file: PATH}}")
            )
            continue
        iterations = user.iterations or DEFAULT_ITERATIONS
        finding.changes.append(SetUser(*key, before, iterations, user.password))
    for key, iterations in sorted(present.items()):
        if key not in wanted and finding.manages.has_user(key[0]):
            finding.extra(f"user {key[0]}: {key[1]}", DeleteUser(*key, iterations))


# --- acls


def _acls(finding: _Finding, declared: Sequence[DeclaredAcl], present: frozenset[AclEntry] | None) -> None:
    if present is None:
        if any(not acl.absent for acl in declared):
            place = declared[0].place if declared else NOWHERE
            text = "ACLs are declared, and the cluster has no authorizer: set authorizer.class.name on its nodes"
            finding.problems.append(Problem(place, text))
        return
    for acl in declared:
        if acl.absent and acl.entry in present:
            finding.changes.append(DeleteAcl(acl.entry))
        elif not acl.absent and acl.entry not in present:
            finding.changes.append(CreateAcl(acl.entry, acl.description))
    known = {acl.entry for acl in declared}
    for entry in sorted(present - known, key=entry_order):
        if finding.manages.has_acl(entry):
            finding.extra(f"acl {entry_text(entry)}", DeleteAcl(entry))
