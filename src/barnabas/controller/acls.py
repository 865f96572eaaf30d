"""Creates and deletes ACL entries.

An existing entry is not written again, which is not an error. An invalid entry or filter fails alone; a request that
would write too many records fails as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from barnabas.controller.operation_size import MAX_RECORDS_PER_USER_OPERATION, check_size
from barnabas.controller.situation import Situation
from barnabas.metadata.acls import to_record
from barnabas.replicated.decision import Result
from barnabas.security.acl import WILDCARD, AclEntry, AclFilter, PatternType, validate_creations, validate_filter
from barnabas.steps import Slices, stepwise
from barnabas.wire import ErrorCode, KafkaError, Message, Uuid
from barnabas.wire.records.metadata import RemoveAccessControlEntryRecord


def create(situation: Situation, entries: Sequence[AclEntry]) -> Slices[Result[list[KafkaError | None]]]:
    """Return the error or None for each entry, in order. None also means that the entry already existed."""
    errors = yield from validate_creations(entries)
    acls = situation.image.acls
    wanted = dict.fromkeys(entry for entry, error in zip(entries, errors, strict=True) if error is None)
    records: list[tuple[Message, int]] = []
    for some in stepwise(wanted):
        records += [(to_record(situation.new_uuid(), entry), 0) for entry in some if entry not in acls.index]
        yield
    check_size(records)
    return Result(records, errors)


def delete(situation: Situation, filters: Sequence[AclFilter]) -> Slices[Result[list[list[AclEntry] | KafkaError]]]:
    """Return the matching entries, sorted, or the error for each filter, in order."""
    candidates = yield from _candidates(situation.image.acls.by_id)
    chosen: dict[Uuid, None] = {}
    found: list[list[AclEntry] | KafkaError] = []
    for selects in filters:
        yield
        error = validate_filter(selects)
        if error is not None:
            found.append(error)
            continue
        matching: list[_EntryAndId] = []
        for some in stepwise(candidates.of(selects)):
            matching += [each for each in some if selects.matches(each[0])]
            yield
        matching.sort()
        for _, acl_id in matching:
            if len(chosen) >= MAX_RECORDS_PER_USER_OPERATION:
                text = f"Cannot remove more than {MAX_RECORDS_PER_USER_OPERATION} acls in a single delete operation."
                raise KafkaError(ErrorCode.INVALID_REQUEST, text)
            chosen[acl_id] = None
        found.append([entry for entry, _ in matching])
    return Result([(RemoveAccessControlEntryRecord(id=acl_id), 0) for acl_id in chosen], found)


_EntryAndId = tuple[AclEntry, Uuid]


class _Candidates(NamedTuple):
    """Entries by each of their texts, so that a filter with a text need not be compared with all entries."""

    all: list[_EntryAndId]
    by_name: dict[str, list[_EntryAndId]]
    by_principal: dict[str, list[_EntryAndId]]
    by_host: dict[str, list[_EntryAndId]]

    def of(self, selects: AclFilter) -> Iterable[_EntryAndId]:
        """Return all entries that the filter can match, and perhaps others."""
        name = selects.resource_name
        if name is not None and selects.pattern_type == PatternType.MATCH:
            names = {WILDCARD, *(name[:length] for length in range(len(name) + 1))}
            return chain.from_iterable(self.by_name.get(each, ()) for each in names)
        if name is not None:
            return self.by_name.get(name, ())
        if selects.principal is not None:
            return self.by_principal.get(selects.principal, ())
        return self.all if selects.host is None else self.by_host.get(selects.host, ())


def _candidates(by_id: Mapping[Uuid, AclEntry]) -> Slices[_Candidates]:
    found = _Candidates([], {}, {}, {})
    for some in stepwise(by_id.items()):
        for acl_id, entry in some:
            both = entry, acl_id
            found.all.append(both)
            found.by_name.setdefault(entry.resource_name, []).append(both)
            found.by_principal.setdefault(entry.principal, []).append(both)
            found.by_host.setdefault(entry.host, []).append(both)
        yield
    return found
