"""Findings about a set of ACLs: entries without effect, redundant entries, and entries that allow much. Pure.

Its one rule: a finding is about one entry, or about several that one could replace, and names the other entry that is
the reason. What is reported may be intended; nothing is decided here. Super users and allow.everyone.if.no.acl.found
are not part of ACLs: here, whatever no entry allows is denied.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from barnabas.security.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from barnabas.security.acl_text import entry_order, entry_text, resource_text
from barnabas.security.authorizer import SUPPORTED_OPERATIONS, allowed_by

MIN_REPLACED = 3
_SEPARATORS = re.compile(r"[^a-zA-Z0-9]")


class Kind(StrEnum):
    DUPLICATED = "duplicated"
    SHADOWED = "shadowed"
    DENIED = "denied"
    NEVER_DENIES = "never-denies"
    WILDCARD = "wildcard"
    REPLACEABLE = "replaceable"
    NO_SUCH_RESOURCE = "no-such-resource"
    NO_TRACE_OF_USE = "no-trace-of-use"


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding. `because` is the entry that causes it; for REPLACEABLE, the one that could replace the others."""

    kind: Kind
    entries: tuple[AclEntry, ...]
    message: str
    because: AclEntry | None = None


@dataclass(frozen=True, slots=True)
class Traces:
    """Names of resources that were used according to the logs, by any principal (logs have none).

    None means unknown.
    """

    written: Collection[str] | None = None
    """Topics that have had records."""
    read: Collection[str] | None = None
    """Topics for which a group has committed an offset, or to which a member has subscribed."""
    groups: Collection[str] | None = None
    """Groups that have had members or committed offsets."""


def audit(
    entries: Iterable[AclEntry],
    topics: Collection[str] | None = None,
    groups: Collection[str] | None = None,
    traces: Traces | None = None,
) -> list[Finding]:
    """Return all findings, sorted by kind and entry. `topics` and `groups` are those that exist, or None if unknown."""
    counts = Counter(entries)
    topics, groups = (None if names is None else sorted(names) for names in (topics, groups))
    unique = sorted(counts, key=entry_order)
    by_type = defaultdict(list)
    for entry in unique:
        by_type[entry.resource_type].append(entry)
    found = [
        Finding(Kind.DUPLICATED, (entry,), f"it exists {count} times")
        for entry, count in sorted(counts.items(), key=lambda each: entry_order(each[0]))
        if count > 1
    ]
    for of_type in by_type.values():
        found += _shadowed(of_type)
        found += _never_denying(of_type)
        found += _replaceable(of_type, topics, groups)
    found += [finding for entry in unique for finding in _wildcards(entry)]
    found += [finding for entry in unique for finding in _missing(entry, topics, groups)]
    found += _unused(unique, topics, groups, traces or Traces())
    order = list(Kind)
    return sorted(found, key=lambda each: (order.index(each.kind), entry_order(each.entries[0])))


# --- pairs of entries


def covers_pattern(wide: AclEntry, narrow: AclEntry) -> bool:
    """Whether one pattern covers every resource of the other."""
    if wide.resource_type != narrow.resource_type:
        return False
    if wide.pattern_type == PatternType.PREFIXED:
        is_all = narrow.pattern_type == PatternType.LITERAL and narrow.resource_name == WILDCARD
        return not is_all and narrow.resource_name.startswith(wide.resource_name)
    if wide.resource_name == WILDCARD:
        return True
    return narrow.pattern_type == PatternType.LITERAL and narrow.resource_name == wide.resource_name


class _Wider:
    """Finds the entries of one resource type that apply to everything an entry does, without scanning all."""

    def __init__(self, entries: Iterable[AclEntry]) -> None:
        self._by_pattern = defaultdict(list)
        for entry in entries:
            self._by_pattern[entry.pattern_type, entry.resource_name, entry.principal].append(entry)
        prefixes = (name for pattern, name, _ in self._by_pattern if pattern == PatternType.PREFIXED)
        self._lengths = sorted(set(map(len, prefixes)))

    def __call__(self, entry: AclEntry) -> list[AclEntry]:
        name, literal = entry.resource_name, PatternType.LITERAL
        patterns = [(literal, WILDCARD)]
        patterns += [(PatternType.PREFIXED, name[:length]) for length in self._lengths if length <= len(name)]
        if entry.pattern_type == literal and name != WILDCARD:
            patterns.append((literal, name))
        return [
            other
            for pattern in patterns
            for principal in dict.fromkeys((entry.principal, WILDCARD_PRINCIPAL))
            for other in self._by_pattern.get((*pattern, principal), ())
            if other is not entry and covers_pattern(other, entry) and _covers_who(other, entry)
        ]


def _covers_who(wide: AclEntry, narrow: AclEntry) -> bool:
    return wide.principal in (WILDCARD_PRINCIPAL, narrow.principal) and wide.host in (WILDCARD, narrow.host)


def _operations(entry: AclEntry) -> frozenset[AclOperation]:
    """Return the operations that an entry affects. An entry that allows implies more than one that denies."""
    return _operations_of(entry.resource_type, entry.operation, entry.permission == AclPermissionType.ALLOW)


@functools.cache
def _operations_of(resource_type: ResourceType, operation: AclOperation, allows: bool) -> frozenset[AclOperation]:
    supported = SUPPORTED_OPERATIONS.get(resource_type, ())
    if allows:
        return frozenset(each for each in supported if operation in allowed_by(each))
    return frozenset(each for each in supported if operation in (each, AclOperation.ALL))


def _shadowed(entries: Sequence[AclEntry]) -> Iterator[Finding]:
    """Find entries that another entry makes redundant, or that a denial makes ineffective."""
    needless: set[AclEntry] = set()
    wider_than = _Wider(entries)
    for entry in entries:
        speaks_of = _operations(entry)
        wider = wider_than(entry)
        for other in wider:
            if other.permission != entry.permission or other in needless or not speaks_of <= _operations(other):
                continue
            needless.add(entry)
            does = "allows" if entry.permission == AclPermissionType.ALLOW else "denies"
            yield Finding(Kind.SHADOWED, (entry,), f"another entry {does} the same and more", other)
            break
        if entry.permission != AclPermissionType.ALLOW:
            continue
        denials = [other for other in wider if other.permission != AclPermissionType.ALLOW]
        denied = frozenset[AclOperation]().union(*map(_operations, denials))
        by = next((other for other in denials if _operations(other) & speaks_of), None)
        if by is not None and speaks_of <= denied:
            yield Finding(Kind.DENIED, (entry,), "everything it allows is denied", by)
        elif by is not None and entry.operation in denied:
            left = ", ".join(each.name for each in sorted(speaks_of - denied))
            yield Finding(Kind.DENIED, (entry,), f"what it allows is denied, except {left}", by)


def _never_denying(entries: Sequence[AclEntry]) -> Iterator[Finding]:
    """Find denials of what no entry allows."""
    allowing = defaultdict(list)
    for entry in entries:
        if entry.permission == AclPermissionType.ALLOW:
            allowing[entry.principal].append(entry)
    for entry in entries:
        if entry.permission == AclPermissionType.ALLOW:
            continue
        everyone = entry.principal == WILDCARD_PRINCIPAL
        users = allowing if everyone else dict.fromkeys((entry.principal, WILDCARD_PRINCIPAL))
        if not any(_meet(entry, other) for user in users for other in allowing.get(user, ())):
            yield Finding(Kind.NEVER_DENIES, (entry,), "no entry allows any of what it denies, so it denies nothing")


def _meet(one: AclEntry, other: AclEntry) -> bool:
    """Whether both entries apply to some request, assuming that their principals match."""
    return (
        (covers_pattern(one, other) or covers_pattern(other, one))
        and (one.host == other.host or WILDCARD in (one.host, other.host))
        and bool(_operations(one) & _operations(other))
    )


# --- single entries


def _wildcards(entry: AclEntry) -> Iterator[Finding]:
    if entry.permission != AclPermissionType.ALLOW:
        return
    wide = []
    if entry.principal == WILDCARD_PRINCIPAL:
        wide.append("to everyone")
    if entry.resource_name == WILDCARD and entry.pattern_type == PatternType.LITERAL:
        wide.append(f"on every {entry.resource_type.name.lower().replace('_', ' ')}")
    if entry.operation == AclOperation.ALL:
        wide.append("every operation")
    if wide:
        yield Finding(Kind.WILDCARD, (entry,), f"it allows {', '.join(reversed(wide))}")


def _missing(entry: AclEntry, topics: Sequence[str] | None, groups: Sequence[str] | None) -> Iterator[Finding]:
    known = {ResourceType.TOPIC: topics, ResourceType.GROUP: groups}.get(entry.resource_type)
    if known is None or entry.resource_name == WILDCARD or _covers_one(entry, known):
        return
    what = entry.resource_type.name.lower()
    having = "of this name" if entry.pattern_type == PatternType.LITERAL else "with this prefix"
    yield Finding(Kind.NO_SUCH_RESOURCE, (entry,), f"there is no {what} {having}")


def _covers_one(entry: AclEntry, names: Sequence[str]) -> bool:
    """Whether the entry covers one of these sorted names."""
    if entry.pattern_type == PatternType.LITERAL and entry.resource_name == WILDCARD:
        return bool(names)
    at = bisect_left(names, entry.resource_name)
    return at < len(names) and entry.covers(names[at])


# The traces that operations leave in the logs. Others, such as DESCRIBE or ALTER, leave none.
_WRITTEN = "no record was written to it"
_READ = "no group has committed an offset of it, or subscribed to it"
_JOINED = "it has had no members and no committed offsets"


def _unused(
    entries: Sequence[AclEntry], topics: Sequence[str] | None, groups: Sequence[str] | None, traces: Traces
) -> Iterator[Finding]:
    """Find entries that allow operations without a trace in the logs, on resources that exist."""
    topic, group = ResourceType.TOPIC, ResourceType.GROUP
    used: dict[tuple[ResourceType, str], list[str]] = {
        (resource_type, what): sorted(set(names) & set(existing))
        for resource_type, what, names, existing in (
            (topic, _WRITTEN, traces.written, topics),
            (topic, _READ, traces.read, topics),
            (group, _JOINED, traces.groups, groups),
        )
        if names is not None and existing is not None
    }
    leaves = {
        (topic, AclOperation.WRITE): (_WRITTEN,),
        (topic, AclOperation.READ): (_READ,),
        (topic, AclOperation.ALL): (_WRITTEN, _READ),
        (group, AclOperation.READ): (_JOINED,),
        (group, AclOperation.ALL): (_JOINED,),
    }
    for entry in entries:
        traceable = leaves.get((entry.resource_type, entry.operation), ())
        names = [used.get((entry.resource_type, what)) for what in traceable]
        if entry.permission != AclPermissionType.ALLOW or not names or None in names:
            continue
        existing = (topics if entry.resource_type == topic else groups) or ()
        if _covers_one(entry, existing) and not any(_covers_one(entry, some or ()) for some in names):
            message = f"according to the logs, {' and '.join(traceable)}"
            yield Finding(Kind.NO_TRACE_OF_USE, (entry,), message)


# --- several entries that one could replace


def _replaceable(
    entries: Sequence[AclEntry], topics: Sequence[str] | None, groups: Sequence[str] | None
) -> Iterator[Finding]:
    """Find literal entries of the same kind with a common prefix that covers no other existing resource."""
    alike = defaultdict(list)
    for entry in entries:
        if entry.pattern_type == PatternType.LITERAL and entry.resource_name != WILDCARD:
            alike[entry.principal, entry.host, entry.operation, entry.permission].append(entry)
    for (principal, host, operation, permission), some in alike.items():
        resource_type = some[0].resource_type
        known = {ResourceType.TOPIC: topics, ResourceType.GROUP: groups}.get(resource_type)
        if resource_type == ResourceType.CLUSTER or len(some) < MIN_REPLACED:
            continue
        by_name = {entry.resource_name: entry for entry in some}
        for prefix, names in common_prefixes(by_name, known or ()):
            one = AclEntry(resource_type, prefix, PatternType.PREFIXED, principal, host, operation, permission)
            sure = "" if known is not None else "; other names with this prefix are unknown"
            replaced = tuple(by_name[name] for name in names)
            yield Finding(Kind.REPLACEABLE, replaced, f"one entry could replace these {len(names)}{sure}", one)


def common_prefixes(names: Iterable[str], existing: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return prefixes, up to a separator, that at least three of the names have and no other name in `existing`.

    `existing` must be sorted. Of nested prefixes, only the shortest is returned.

    >>> common_prefixes(["orders-a", "orders-b", "orders-c", "stock"], ["payments"])
    [('orders-', ['orders-a', 'orders-b', 'orders-c'])]
    """
    wanted = sorted(set(names))
    known = set(wanted)
    found: list[tuple[str, list[str]]] = []
    prefixes = {name[: match.end()] for name in wanted for match in _SEPARATORS.finditer(name)}
    for prefix in sorted(prefixes):
        if found and prefix.startswith(found[-1][0]):
            continue
        having = _having(wanted, prefix)
        if len(having) >= MIN_REPLACED and known.issuperset(_having(existing, prefix)):
            found.append((prefix, having))
    return found


def _having(names: Sequence[str], prefix: str) -> list[str]:
    """Return the names that start with the prefix. They must be sorted."""
    start = bisect_left(names, prefix)
    end = bisect_left(names, True, lo=start, key=lambda name: not name.startswith(prefix))
    return list(names[start:end])


def finding_text(finding: Finding) -> str:
    """Describe the entries of a finding in one line."""
    if finding.kind is Kind.REPLACEABLE:
        names = ", ".join(resource_text(each.resource_type, each.resource_name) for each in finding.entries)
        first = finding.entries[0]
        return f"{first.permission.name} {first.principal} to {first.operation.name} {names}"
    return entry_text(finding.entries[0])
