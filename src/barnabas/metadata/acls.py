"""ACL entries, by id and indexed for the authorizer.

The one rule: `index` is derived from `by_id`. Whether an entry allows or denies a request is not decided here. An entry
written by a newer node keeps its numbers, and is not enforced if they are unknown here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas.metadata.errors import ReplayError
from barnabas.metadata.pmap import MapDraft, PMap
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.security.acl_index import AclIndex
from barnabas.wire.primitives import Uuid
from barnabas.wire.records.metadata import AccessControlEntryRecord, RemoveAccessControlEntryRecord

if TYPE_CHECKING:
    from barnabas.metadata.image import Draft


@dataclass(frozen=True, slots=True)
class Acls:
    """The entries by id, and an index of them by resource."""

    by_id: PMap[Uuid, AclEntry] = field(default_factory=PMap)
    index: AclIndex = field(default_factory=AclIndex, compare=False)
    """All entries except those with an unknown resource or pattern type, which no request can refer to."""


class AclsDraft:
    __slots__ = ("_base", "_by_id")

    def __init__(self, base: Acls) -> None:
        self._base = base
        self._by_id = MapDraft(base.by_id)

    @property
    def touched(self) -> set[Uuid]:
        return self._by_id.touched

    def add(self, acl_id: Uuid, entry: AclEntry) -> None:
        self._by_id.set(acl_id, entry)

    def remove(self, acl_id: Uuid) -> None:
        if self._by_id.remove(acl_id) is None:
            raise ReplayError(f"there is no access control entry {acl_id}")

    def finish(self) -> Acls:
        touched, old, new = sorted(self._by_id.touched), self._base.by_id, self._by_id.finish()
        removed = indexed(old.get(acl_id) for acl_id in touched)
        return Acls(new, self._base.index.updated(removed, indexed(new.get(acl_id) for acl_id in touched)))


_PATTERN_TYPES = (PatternType.LITERAL, PatternType.PREFIXED)


def indexed(entries: Iterable[AclEntry | None]) -> Iterator[AclEntry]:
    """Yield the entries that a request can refer to."""
    for entry in entries:
        if entry is not None and entry.resource_type.is_known and entry.pattern_type in _PATTERN_TYPES:
            yield entry


def replay_access_control_entry(draft: Draft, record: AccessControlEntryRecord) -> None:
    entry = AclEntry(
        ResourceType(record.resource_type),
        record.resource_name,
        PatternType(record.pattern_type),
        record.principal,
        record.host,
        AclOperation(record.operation),
        AclPermissionType(record.permission_type),
    )
    draft.acls.add(record.id, entry)


def replay_remove_access_control_entry(draft: Draft, record: RemoveAccessControlEntryRecord) -> None:
    draft.acls.remove(record.id)


def to_record(acl_id: Uuid, entry: AclEntry) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=int(entry.resource_type),
        resource_name=entry.resource_name,
        pattern_type=int(entry.pattern_type),
        principal=entry.principal,
        host=entry.host,
        operation=int(entry.operation),
        permission_type=int(entry.permission),
    )


def to_records(acls: Acls) -> Iterator[tuple[AccessControlEntryRecord, int]]:
    for acl_id, entry in sorted(acls.by_id.items()):
        yield to_record(acl_id, entry), 0
