"""Creates and deletes ACL entries.

An existing entry is not written again, which is not an error. An invalid entry or filter fails alone; a request that
would write too many records fails as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.controller.operation_size import MAX_RECORDS_PER_USER_OPERATION, check_size
from barnabas.controller.situation import Situation
from barnabas.metadata.acls import to_record
from barnabas.replicated.decision import Result
from barnabas.security.acl import AclEntry, AclFilter, validate_creations, validate_filter
from barnabas.wire import ErrorCode, KafkaError, Message, Uuid
from barnabas.wire.records.metadata import RemoveAccessControlEntryRecord


def create(situation: Situation, entries: Sequence[AclEntry]) -> Result[list[KafkaError | None]]:
    """Return the error or None for each entry, in order. None also means that the entry already existed."""
    errors = validate_creations(entries)
    acls = situation.image.acls
    wanted = dict.fromkeys(entry for entry, error in zip(entries, errors, strict=True) if error is None)
    records: list[tuple[Message, int]] = [
        (to_record(situation.new_uuid(), entry), 0) for entry in wanted if entry not in acls.index
    ]
    check_size(records)
    return Result(records, errors)


def delete(situation: Situation, filters: Sequence[AclFilter]) -> Result[list[list[AclEntry] | KafkaError]]:
    """Return the matching entries, sorted, or the error for each filter, in order."""
    by_id = situation.image.acls.by_id
    ids = _ids_by_entry(by_id) if any(selects.entry is not None for selects in filters) else {}
    chosen: dict[Uuid, None] = {}
    found: list[list[AclEntry] | KafkaError] = []
    for selects in filters:
        error = validate_filter(selects)
        if error is not None:
            found.append(error)
            continue
        if (only := selects.entry) is not None:
            matching = sorted((only, acl_id) for acl_id in ids.get(only, ()))
        else:
            matching = sorted((entry, acl_id) for acl_id, entry in by_id.items() if selects.matches(entry))
        for _, acl_id in matching:
            if len(chosen) >= MAX_RECORDS_PER_USER_OPERATION:
                text = f"Cannot remove more than {MAX_RECORDS_PER_USER_OPERATION} acls in a single delete operation."
                raise KafkaError(ErrorCode.INVALID_REQUEST, text)
            chosen[acl_id] = None
        found.append([entry for entry, _ in matching])
    return Result([(RemoveAccessControlEntryRecord(id=acl_id), 0) for acl_id in chosen], found)


def _ids_by_entry(by_id: Mapping[Uuid, AclEntry]) -> dict[AclEntry, list[Uuid]]:
    """Map entries to their ids, so that filters for a single entry need not scan all entries."""
    ids: dict[AclEntry, list[Uuid]] = {}
    for acl_id, entry in by_id.items():
        ids.setdefault(entry, []).append(acl_id)
    return ids
