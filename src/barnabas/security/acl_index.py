"""ACL entries, indexed by the resource names that they cover.

Its one rule: an index is immutable; `updated` returns a new one, so that an image can contain it. It does not know the
ids of entries (an entry added twice must be removed twice), and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from barnabas.security.acl import WILDCARD, AclEntry, PatternType, ResourceType

_ByPrincipal: TypeAlias = Mapping[str, tuple[AclEntry, ...]]
_ByName: TypeAlias = Mapping[str, _ByPrincipal]
_Counts: TypeAlias = dict[AclEntry, int]


@dataclass(frozen=True, slots=True)
class _OfType:
    """The patterns for one resource type, and the distinct lengths of its prefixes, longest first."""

    literal: _ByName
    prefixed: _ByName
    prefix_lengths: tuple[int, ...]


class AclIndex:
    """The index that decisions read (`authorizer.Acls`).

    An update copies only the names of the changed resource types and the entries of the changed patterns. A lookup
    takes one step per distinct prefix length, however many prefixes there are.
    """

    __slots__ = ("_size", "_types")

    def __init__(self, entries: Iterable[AclEntry] = ()) -> None:
        self._types = tuple(_OfType({}, {}, ()) for _ in ResourceType)
        self._size = 0
        self._replace((), entries)

    def updated(self, removed: Iterable[AclEntry] = (), added: Iterable[AclEntry] = ()) -> AclIndex:
        """Return an index with entries removed and then added. Removing an absent entry has no effect."""
        index = AclIndex.__new__(AclIndex)
        index._types, index._size = self._types, self._size
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
        prefixes = (name[:length] for length in of_type.prefix_lengths if length <= len(name))
        found += [prefixed[prefix] for prefix in prefixes if prefix in prefixed]
        if WILDCARD in literal and name != WILDCARD:
            found.append(literal[WILDCARD])
        return found

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
                types[resource_type] = _OfType(_merged(old.literal, names), old.prefixed, old.prefix_lengths)
            else:
                prefixed = _merged(old.prefixed, names)
                same = prefixed.keys() == old.prefixed.keys()
                lengths = old.prefix_lengths if same else tuple(sorted(set(map(len, prefixed)), reverse=True))
                types[resource_type] = _OfType(old.literal, prefixed, lengths)
        self._types = tuple(types)


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
