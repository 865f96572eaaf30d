"""ACL entries, indexed by the resource names that they cover.

Its one rule: an index is immutable; `updated` returns a new one, so that an image can contain it. It does not know the
ids of entries (an entry added twice must be removed twice), and decides nothing. For decisions that do not need the entry,
the operations of a pattern are kept as bit fields, made when they are first needed. What all prefixes of a name say together
to a principal at a host depends on the longest of them only, so it is kept too, for a limited number of these three.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from barnabas.security.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclEntry,
    AclPermissionType,
    PatternType,
    ResourceType,
)

FEW_LENGTHS: Final = 16
"""With more distinct lengths of prefixes, those of a name are searched for instead of tried out."""

MAX_KNOWN: Final = 10_000
"""For how many prefixes, principals and hosts of a resource type the operations are kept; beyond that, all are forgotten."""

_ByPrincipal: TypeAlias = Mapping[str, tuple[AclEntry, ...]]
_ByName: TypeAlias = Mapping[str, _ByPrincipal]
_Counts: TypeAlias = dict[AclEntry, int]


class Bits(NamedTuple):
    """Operations that a principal from a host is allowed and denied by one pattern: the bit of each is its code."""

    allowed: int
    denied: int


_NO_BITS: Final = Bits(0, 0)
_ByPrincipalAndHost: TypeAlias = Mapping[str, Mapping[str, Bits]]
_Together: TypeAlias = dict[tuple[str, str, str], Bits]


class _BitsOfType(NamedTuple):
    """What is known already of the patterns for one resource type, by their names.

    `together` has the operations of a prefix and all shorter ones that it begins with, by prefix, principal and host.
    """

    literal: dict[str, _ByPrincipalAndHost]
    prefixed: dict[str, _ByPrincipalAndHost]
    together: _Together


@dataclass(frozen=True, slots=True)
class _OfType:
    """The patterns for one resource type.

    Its prefixes are sorted; `shorter` has for each the longest other one that it begins with. Their distinct lengths come
    longest first.
    """

    literal: _ByName
    prefixed: _ByName
    prefix_lengths: tuple[int, ...]
    prefixes: tuple[str, ...]
    shorter: Mapping[str, str | None]

    def longest_prefix(self, name: str) -> str | None:
        """Return the longest prefix that the name begins with."""
        if len(self.prefix_lengths) <= FEW_LENGTHS:
            for length in self.prefix_lengths:
                prefix = name[:length]
                if prefix in self.prefixed and len(prefix) == length:
                    return prefix
            return None
        # All prefixes of the name are prefixes of the last one that is not greater, or are that one.
        at = bisect_right(self.prefixes, name)
        candidate = self.prefixes[at - 1] if at else None
        while candidate is not None and not name.startswith(candidate):
            candidate = self.shorter[candidate]
        return candidate

    def prefixes_of(self, name: str) -> list[str]:
        """Return the prefixes that the name begins with, longest first."""
        found = []
        prefix = self.longest_prefix(name)
        while prefix is not None:
            found.append(prefix)
            prefix = self.shorter[prefix]
        return found


def _shorter(prefixes: Iterable[str]) -> dict[str, str | None]:
    """Return for each of the sorted prefixes the longest other one that it begins with."""
    found: dict[str, str | None] = {}
    around: list[str] = []
    for prefix in prefixes:
        while around and not prefix.startswith(around[-1]):
            around.pop()
        found[prefix] = around[-1] if around else None
        around.append(prefix)
    return found


class AclIndex:
    """The index that decisions read (`authorizer.Acls`).

    An update copies only the names of the changed resource types and the entries of the changed patterns. A lookup
    takes a few steps, however many prefixes there are.
    """

    __slots__ = ("_bits", "_size", "_types")

    def __init__(self, entries: Iterable[AclEntry] = ()) -> None:
        self._types = tuple(_OfType({}, {}, (), (), {}) for _ in ResourceType)
        self._size = 0
        self._bits: tuple[_BitsOfType, ...] = tuple(_BitsOfType({}, {}, {}) for _ in ResourceType)
        self._replace((), entries)

    def updated(self, removed: Iterable[AclEntry] = (), added: Iterable[AclEntry] = ()) -> AclIndex:
        """Return an index with entries removed and then added. Removing an absent entry has no effect."""
        index = AclIndex.__new__(AclIndex)
        index._types, index._size = self._types, self._size
        index._bits = tuple(
            _BitsOfType(dict(each.literal), dict(each.prefixed), dict(each.together)) for each in self._bits
        )
        index._replace(removed, added)
        return index

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[AclEntry]:
        for resource_type in ResourceType:
            yield from self.of_type(resource_type)

    def __contains__(self, entry: AclEntry) -> bool:
        return entry in self._patterns(entry).get(entry.resource_name, {}).get(entry.principal, ())

    def of_type(self, resource_type: ResourceType) -> Iterator[AclEntry]:
        of_type = self._types[resource_type]
        for patterns in (of_type.literal, of_type.prefixed):
            for by_principal in patterns.values():
                for entries in by_principal.values():
                    yield from entries

    def covering(self, resource_type: ResourceType, name: str) -> list[_ByPrincipal]:
        of_type = self._types[resource_type]
        literal, prefixed = of_type.literal, of_type.prefixed
        found = [literal[name]] if name in literal else []
        found += [prefixed[prefix] for prefix in of_type.prefixes_of(name)]
        if WILDCARD in literal and name != WILDCARD:
            found.append(literal[WILDCARD])
        return found

    def bits(self, resource_type: ResourceType, name: str, user: str, host: str) -> Bits | None:
        """Return the operations that all patterns for the name together allow and deny; None if none covers it."""
        of_type, known = self._types[resource_type], self._bits[resource_type]
        literal, together = of_type.literal, None
        if of_type.prefixes and (prefix := of_type.longest_prefix(name)) is not None:
            together = known.together.get((prefix, user, host)) or _put_together(of_type, known, prefix, user, host)
        patterns = []
        if name in literal:
            patterns.append(known.literal.get(name) or _made(known.literal, name, literal))
        if WILDCARD in literal and name != WILDCARD:
            patterns.append(known.literal.get(WILDCARD) or _made(known.literal, WILDCARD, literal))
        if not patterns:
            return together
        bits = _said_to(patterns, user, host)
        return bits if together is None else Bits(bits[0] | together[0], bits[1] | together[1])

    def _patterns(self, entry: AclEntry) -> _ByName:
        of_type = self._types[entry.resource_type]
        return of_type.prefixed if entry.pattern_type == PatternType.PREFIXED else of_type.literal

    def _replace(self, removed: Iterable[AclEntry], added: Iterable[AclEntry]) -> None:
        # Dicts keep insertion order, so that no order depends on a hash.
        drafts: dict[tuple[ResourceType, PatternType], dict[str, dict[str, _Counts]]] = {}

        def draft(entry: AclEntry) -> _Counts:
            if entry.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
                raise ValueError(f"an entry cannot have the pattern type {entry.pattern_type.name}")
            names = drafts.setdefault((entry.resource_type, entry.pattern_type), {})
            by_principal = names.setdefault(entry.resource_name, {})
            if entry.principal not in by_principal:
                current = self._patterns(entry).get(entry.resource_name, {}).get(entry.principal, ())
                counts = by_principal[entry.principal] = dict.fromkeys(current, 0)
                for each in current:
                    counts[each] += 1
            return by_principal[entry.principal]

        for entry in removed:
            if entry in (counts := draft(entry)):
                counts[entry] -= 1
                self._size -= 1
                if not counts[entry]:
                    del counts[entry]
        for entry in added:
            counts = draft(entry)
            counts[entry] = counts.get(entry, 0) + 1
            self._size += 1

        types = list(self._types)
        for (resource_type, pattern_type), names in drafts.items():
            old = types[resource_type]
            if pattern_type == PatternType.LITERAL:
                literal = _merged(old.literal, names)
                types[resource_type] = replace(old, literal=literal)
            else:
                prefixed = _merged(old.prefixed, names)
                same = prefixed.keys() == old.prefixed.keys()
                if same:
                    types[resource_type] = replace(old, prefixed=prefixed)
                else:
                    lengths, prefixes = sorted(set(map(len, prefixed)), reverse=True), tuple(sorted(prefixed))
                    types[resource_type] = _OfType(old.literal, prefixed, tuple(lengths), prefixes, _shorter(prefixes))
            bits = self._bits[resource_type]
            outdated = bits.literal if pattern_type == PatternType.LITERAL else bits.prefixed
            if pattern_type == PatternType.PREFIXED:
                bits.together.clear()
            for name in names:
                outdated.pop(name, None)
        self._types = tuple(types)


def _made(known: dict[str, _ByPrincipalAndHost], name: str, patterns: _ByName) -> _ByPrincipalAndHost:
    found = known[name] = _bits(entry for entries in patterns[name].values() for entry in entries)
    return found


def _put_together(of_type: _OfType, known: _BitsOfType, longest: str, user: str, host: str) -> Bits:
    prefixed, shorter = known.prefixed, of_type.shorter
    patterns = []
    prefix: str | None = longest
    while prefix is not None:
        patterns.append(prefixed.get(prefix) or _made(prefixed, prefix, of_type.prefixed))
        prefix = shorter[prefix]
    if len(known.together) >= MAX_KNOWN:
        known.together.clear()
    found = known.together[longest, user, host] = _said_to(patterns, user, host)
    return found


def _said_to(patterns: Iterable[_ByPrincipalAndHost], user: str, host: str) -> Bits:
    """Return what patterns allow and deny to a principal at a host, by name and by wildcard."""
    allowed = denied = 0
    for pattern in patterns:
        for hosts in (pattern.get(user), pattern.get(WILDCARD_PRINCIPAL)):
            if hosts:
                if host in hosts:
                    bits = hosts[host]
                    allowed |= bits[0]
                    denied |= bits[1]
                if WILDCARD in hosts:
                    bits = hosts[WILDCARD]
                    allowed |= bits[0]
                    denied |= bits[1]
    return Bits(allowed, denied) if allowed or denied else _NO_BITS


def _bits(entries: Iterable[AclEntry]) -> _ByPrincipalAndHost:
    found: dict[str, dict[str, Bits]] = {}
    for entry in entries:
        if entry.operation < 0:  # written by a newer node: it means nothing here
            continue
        of_principal = found.setdefault(entry.principal, {})
        allowed, denied = of_principal.get(entry.host, (0, 0))
        if entry.permission == AclPermissionType.ALLOW:
            allowed |= 1 << entry.operation
        else:
            denied |= 1 << entry.operation
        of_principal[entry.host] = Bits(allowed, denied)
    return found


def _merged(patterns: _ByName, changes: Mapping[str, Mapping[str, _Counts]]) -> _ByName:
    merged = dict(patterns)
    for name, changed in changes.items():
        by_principal = {**merged.get(name, {}), **{user: _repeated(counts) for user, counts in changed.items()}}
        merged[name] = {principal: entries for principal, entries in by_principal.items() if entries}
        if not merged[name]:
            del merged[name]
    return merged


def _repeated(counts: _Counts) -> tuple[AclEntry, ...]:
    return tuple(entry for entry, count in counts.items() for _ in range(count))
