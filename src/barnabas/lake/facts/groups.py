"""The fold of `__consumer_offsets`: facts about groups, their members and committed offsets.

Its one rule: records have the effects of the coordinator's replay. A tombstone ends a fact. When a group ends, its members end,
but not its offsets. An offset committed in a transaction counts from the commit marker on, unless the transaction aborts or a
later record has replaced it. A committed offset creates its group, as in Kafka. All records of one batch about a group or a
member are one change, at the last of them. Not included: state that coordinators hold only in memory, resolved regular
expressions, and the positions of share groups (share_partitions).
"""

from __future__ import annotations

import functools
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.config.internal_topics import GROUP_METADATA_TOPIC
from barnabas.lake.facts import group_members as says
from barnabas.lake.facts.coordinator_logs import fold_logs
from barnabas.lake.facts.group_kinds import GROUPS, KINDS, MEMBERS, OFFSETS
from barnabas.lake.facts.group_members import CLASSIC, CONSUMER, SHARE, STREAMS, Fields
from barnabas.lake.facts.log_facts import LOG_KIND, LogFacts, LogPosition, known, plain, time_us
from barnabas.lake.facts.schema import Fact, key_text
from barnabas.lake.reading.decoding.coordinator_records import GROUPS as GROUP_LOG
from barnabas.lake.reading.decoding.coordinator_records import Key, decode_key, decode_marker, decode_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["KINDS", "TOPIC", "GroupsFold", "fold_groups"]

TOPIC: Final = GROUP_METADATA_TOPIC
PENDING: Final = "_pending_offsets"
"""Internal kind: by producer, the offsets of its open transaction."""
PIECES: Final = "_group_members"
"""Internal kind: pieces of members whose metadata has not come yet."""

_GROUP_NAMES: Final = tuple(column.name for column in KINDS[1].columns)
_MEMBER_NAMES: Final = tuple(column.name for column in KINDS[2].columns)
_TYPES: Final = {"Consumer": CONSUMER, "Share": SHARE, "Streams": STREAMS}
_MODERN: Final = frozenset(
    {
        "Metadata",
        "MemberMetadata",
        "TargetAssignmentMetadata",
        "TargetAssignmentMember",
        "CurrentMemberAssignment",
        "Topology",
    }
)
"""Types of records about groups that are not classic; other types are about other things."""


_offset_key = functools.lru_cache(maxsize=1 << 16)(key_text)


class _Record(NamedTuple):
    """An offset committed in a transaction: its place in the log, and its bytes."""

    offset: int
    key: bytes
    value: bytes


class _Group:
    """A group, as after replay: its fields, and the pieces of its members."""

    __slots__ = ("fields", "members")

    def __init__(self, group_type: str, fields: Fields | None = None) -> None:
        self.fields: Fields = fields or {
            "group_type": group_type,
            "protocol_type": "" if group_type == CLASSIC else group_type,
        }
        self.members: dict[str, Fields] = {}


class GroupsFold:
    """Folds one log: its records in order, batch by batch. `facts` are up to date after `end_batch`."""

    def __init__(self) -> None:
        self.facts = LogFacts(kind.name for kind in KINDS)
        self._groups: dict[str, _Group] = {}
        self._pending: dict[int, dict[bytes, _Record]] = {}
        self._touched_groups: dict[str, LogPosition] = {}
        self._touched_members: dict[tuple[str, str], LogPosition] = {}

    # --- records

    def apply(self, key: bytes | None, value: bytes | None, place: LogPosition, producer_id: int | None = None) -> None:
        """Apply a record, with the producer if it is part of a transaction. An unknown type or version has no effect."""
        self.facts.reach(place.offset)
        decoded = decode_key(key, GROUP_LOG)
        if key is None or decoded.message is None or decoded.record_type is None or decoded.group_id is None:
            return
        if decoded.record_type in ("OffsetCommit", "LegacyOffsetCommit"):
            if value is None:
                self._forget_offset(key, decoded, place)
            elif producer_id is not None:
                self._pending.setdefault(producer_id, {})[key] = _Record(place.offset, key, value)
            else:
                self._commit(decoded, value, place.offset, place)
            return
        message = decode_value(decoded.record_type, value, with_json=False).message
        if value is not None and message is None:
            return
        if decoded.record_type == "GroupMetadata":
            self._classic(decoded.group_id, message, place)
        else:
            prefix, _, what = decoded.record_type.partition("Group")
            self._modern(_TYPES[prefix], what, decoded, message, place)

    def apply_marker(self, key: bytes | None, value: bytes | None, place: LogPosition, producer_id: int) -> None:
        """Apply a control record: the end of a producer's transaction."""
        self.facts.reach(place.offset)
        control_type = decode_marker(key, value).control_type
        if control_type not in ("COMMIT", "ABORT"):
            return
        for record in self._pending.pop(producer_id, {}).values():
            if control_type == "COMMIT":
                self._commit(decode_key(record.key, GROUP_LOG), record.value, record.offset, place)

    def end_batch(self) -> None:
        """Write the facts that the records of a batch have changed."""
        for (group_id, member_id), place in self._touched_members.items():
            self._write_member(group_id, member_id, place)
        for group_id, place in self._touched_groups.items():
            self._write_group(group_id, place)
        self._touched_members.clear()
        self._touched_groups.clear()

    # --- offsets

    def _commit(self, key: Key, data: bytes, record_offset: int, place: LogPosition) -> None:
        value = decode_value(key.record_type, data, with_json=False).message
        if value is None or key.group_id is None:
            return
        fact_key = _offset_key(key.group_id, key.topic, key.partition)
        before = self.facts.open[OFFSETS].get(fact_key)
        if before is not None and before[7][-1] > record_offset:
            return
        if key.group_id not in self._groups:
            self._groups[key.group_id] = _Group(CLASSIC)
            self._touched_groups[key.group_id] = place
        topic_id = getattr(value, "topic_id", None)
        committed = (
            key.group_id,
            key.topic,
            key.partition,
            value.offset,
            known(getattr(value, "leader_epoch", -1)),
            value.metadata,
            time_us(value.commit_timestamp),
            time_us(getattr(value, "expire_timestamp", -1)),
            str(topic_id) if topic_id is not None and any(topic_id) else None,
            record_offset,
        )
        self.facts.set(OFFSETS, fact_key, committed, place)

    def _forget_offset(self, data: bytes, key: Key, place: LogPosition) -> None:
        for records in self._pending.values():
            records.pop(data, None)
        self.facts.close(OFFSETS, key_text(key.group_id, key.topic, key.partition), place)

    # --- groups

    def _classic(self, group_id: str, value: Any | None, place: LogPosition) -> None:
        if value is None:
            self._remove(group_id, place)
            return
        group = self._groups[group_id] = self._changed_to(group_id, CLASSIC, place)
        group.fields = says.classic_group(value)
        named = {member.member_id: says.classic_member(member, value.protocol_type) for member in value.members}
        for member_id in (*group.members, *named):
            self._touched_members[group_id, member_id] = place
        group.members = named
        self._touched_groups[group_id] = place

    def _modern(self, group_type: str, what: str, key: Key, value: Any | None, place: LogPosition) -> None:
        group_id, member_id = key.group_id or "", key.member_id
        if what not in _MODERN:
            return
        if value is None and (
            group_id not in self._groups or self._groups[group_id].fields["group_type"] != group_type
        ):
            return
        if what == "Metadata" and value is None:
            self._remove(group_id, place)
            return
        group = self._groups[group_id] = self._changed_to(group_id, group_type, place)
        self._touched_groups[group_id] = place
        if what == "Metadata":
            group.fields.update(says.group(value))
        elif what == "Topology":
            group.fields.update(says.topology(value))
        elif what == "TargetAssignmentMetadata":
            group.fields.update(says.target_assignment_metadata(value))
        elif member_id is not None:
            self._touched_members[group_id, member_id] = place
            member = group.members.setdefault(member_id, {"group_type": group_type})
            if what == "MemberMetadata":
                member.update(says.member_metadata(value))
                if value is None:  # the target assignment has its own record
                    member.update(says.current_assignment(group_type, None))
            elif what == "TargetAssignmentMember":
                member.update(says.target_assignment(group_type, value))
            else:
                member.update(says.current_assignment(group_type, value))
            if all(field is None for name, field in member.items() if name != "group_type"):
                del group.members[member_id]

    def _changed_to(self, group_id: str, group_type: str, place: LogPosition) -> _Group:
        group = self._groups.get(group_id)
        if group is not None and group.fields["group_type"] == group_type:
            return group
        if group is not None:
            self._remove(group_id, place)
        return _Group(group_type)

    def _remove(self, group_id: str, place: LogPosition) -> None:
        group = self._groups.pop(group_id, None)
        if group is not None:
            self._touched_groups[group_id] = place
            self._touched_members.update(((group_id, member_id), place) for member_id in group.members)

    # --- facts

    def _write_member(self, group_id: str, member_id: str, place: LogPosition) -> None:
        group = self._groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        key = key_text(group_id, member_id)
        if member is None or member.get("client_id") is None:
            self.facts.close(MEMBERS, key, place)
        else:
            values = (group_id, member_id, *map(member.get, _MEMBER_NAMES[2:]))
            self.facts.set(MEMBERS, key, values, place, in_pieces=member["group_type"] != CLASSIC)

    def _write_group(self, group_id: str, place: LogPosition) -> None:
        group = self._groups.get(group_id)
        if group is None:
            self.facts.close(GROUPS, key_text(group_id), place)
            return
        members = [member for member in group.members.values() if member.get("client_id") is not None]
        fields = {
            **group.fields,
            "group_id": group_id,
            "state": says.group_state(group.fields, members),
            "members": len(members),
        }
        values = tuple(map(fields.get, _GROUP_NAMES))
        self.facts.set(GROUPS, key_text(group_id), values, place, in_pieces=fields["group_type"] != CLASSIC)

    # --- state between runs

    def restore(self, kind: str, facts: list[Fact]) -> None:
        """Restore open facts. They come before the first record, the kinds in any order."""
        for fact in facts if kind.startswith("_") else ():
            self._restore_internal(kind, fact)
        if not kind.startswith("_") or kind == LOG_KIND:
            self.facts.resume(kind, facts)
        for fact in self.facts.open[GROUPS].values() if kind == GROUPS else ():
            fields = dict(zip(_GROUP_NAMES, fact[7], strict=True))
            self._restored(fields["group_id"], fields["group_type"]).fields = fields
        for fact in self.facts.open[MEMBERS].values() if kind == MEMBERS else ():
            fields = dict(zip(_MEMBER_NAMES, fact[7], strict=True))
            self._restored(fields.pop("group_id"), fields["group_type"]).members[fields.pop("member_id")] = fields

    def _restore_internal(self, kind: str, fact: Fact) -> None:
        if kind == PENDING:
            producer_id, records = json.loads(fact[7])
            found = (_Record(offset, b64decode(key), b64decode(value)) for offset, key, value in records)
            self._pending[producer_id] = {record.key: record for record in found}
        elif kind == PIECES:
            group_id, member_id, member = json.loads(fact[7])
            self._restored(group_id, member["group_type"]).members[member_id] = plain(member)

    def _restored(self, group_id: str, group_type: str) -> _Group:
        return self._groups.setdefault(group_id, _Group(group_type))

    def all_open(self) -> Iterator[tuple[str, Fact]]:
        """Yield all that a later run needs to continue, each with its kind."""
        yield from self.facts.all_open()
        for producer_id, records in self._pending.items():
            if records:
                kept = [(record.offset, _text(record.key), _text(record.value)) for record in records.values()]
                yield PENDING, _internal(key_text(producer_id), kept[0][0], [producer_id, kept])
        for group_id, group in self._groups.items():
            for member_id, member in group.members.items():
                if member.get("client_id") is None:
                    key = key_text(group_id, member_id)
                    yield PIECES, _internal(key, self.facts.next_offset - 1, [group_id, member_id, member])


def _internal(key: str, offset: int, state: Any) -> Fact:
    return key, offset, None, None, None, None, True, json.dumps(state).encode()


def _text(data: bytes) -> str:
    return b64encode(data).decode()


def fold_groups(records: DataFrame, open_facts: DataFrame, *, shards: int) -> DataFrame:
    """Return the facts of groups that end with these rows of `kafka_consumer_offsets`, and all that are open after them."""
    return fold_logs(TOPIC, GroupsFold, records, open_facts, shards=shards)
