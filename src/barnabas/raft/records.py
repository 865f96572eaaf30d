"""The control records of the metadata log and its snapshots: what raft writes for itself, and what it reads back.

Its one rule: of a log, raft looks into control batches only; the other batches are bytes. The state that it finds there
is the kraft.version and the set of voters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas import wire
from barnabas.batches import (
    BatchHeader,
    ControlType,
    Record,
    check_crc,
    decode_control_key,
    decode_records,
    iterate_batches,
)
from barnabas.raft.log import LOG_START, LogView, RaftLog, SnapshotReader
from barnabas.raft.voters import VoterHistory, VoterSet
from barnabas.wire.records.control import KRaftVersionRecord, LeaderChangeMessage, SnapshotHeaderRecord, VotersRecord

READ_BYTES = 1 << 20

ControlRecord = tuple[ControlType, bytes]
"""A control record before it has an offset: its type and its encoded value."""


def leader_change(leader_id: int, voters: Iterable[int], granting_voters: Iterable[int]) -> ControlRecord:
    """The first record of an epoch. Kafka writes version 0 of it, whatever the kraft.version."""
    message = LeaderChangeMessage(
        leader_id=leader_id,
        voters=[LeaderChangeMessage.Voter(voter_id=voter) for voter in sorted(voters)],
        granting_voters=[LeaderChangeMessage.Voter(voter_id=voter) for voter in sorted(granting_voters)],
    )
    return ControlType.LEADER_CHANGE, wire.encode_record(message, 0)


def kraft_version(version: int) -> ControlRecord:
    return ControlType.KRAFT_VERSION, wire.encode_record(KRaftVersionRecord(k_raft_version=version), 0)


def voters(voter_set: VoterSet) -> ControlRecord:
    return ControlType.KRAFT_VOTERS, wire.encode_record(voter_set.to_record(), 0)


def apply_control_batch(history: VoterHistory, data: bytes, position: int, header: BatchHeader) -> None:
    """Let the voters and the kraft.version of an appended batch take effect."""
    for record in decode_records(data, position, header):
        _apply(history, record, record.offset)


def _apply(history: VoterHistory, record: Record, offset: int) -> None:
    control_type = decode_control_key(record.key)
    if control_type is ControlType.KRAFT_VERSION:
        version = wire.decode_record(record.value or b"", KRaftVersionRecord).record
        history.append_kraft_version(offset, version.k_raft_version)
    elif control_type is ControlType.KRAFT_VOTERS:
        history.append_voters(
            offset, VoterSet.from_record(wire.decode_record(record.value or b"", VotersRecord).record)
        )


# --- snapshots -------------------------------------------------------------------------------------------------------


def snapshot_batches(
    snapshot: SnapshotReader, read_bytes: int = READ_BYTES
) -> Iterator[tuple[BatchHeader, list[Record]]]:
    """Each batch of a snapshot, checked and decoded, control batches too; memory holds little more than one batch."""
    position = 0
    rest = b""
    while rest or position < snapshot.size_in_bytes:
        more = snapshot.read(position, read_bytes)
        position += len(more)
        data = rest + more
        consumed = 0
        for start, header in iterate_batches(data, tolerate_truncated=bool(more)):
            check_crc(header, data, start)
            yield header, decode_records(data, start, header)
            consumed = start + header.size_in_bytes
        rest = data[consumed:]


def last_contained_log_timestamp(found: Iterable[Record]) -> int:
    """When the last record that a snapshot stands for was written, as its first batch says."""
    for record in found:
        if decode_control_key(record.key) is ControlType.SNAPSHOT_HEADER:
            header: SnapshotHeaderRecord = wire.decode_record(record.value or b"", SnapshotHeaderRecord).record
            return header.last_contained_log_timestamp
    return -1


def apply_snapshot(history: VoterHistory, snapshot: SnapshotReader) -> None:
    """Voters and kraft.version of a snapshot, which count as appended right before its end."""
    for header, found in snapshot_batches(snapshot):
        if not header.is_control:
            return  # they are in the first batch, before the data
        for record in found:
            _apply(history, record, snapshot.snapshot_id.offset - 1)


def load(log: RaftLog, static_voters: VoterSet | None = None) -> tuple[LogView, VoterHistory]:
    """What the core must know of a log that was opened: its bounds and epochs, and the voters that are in it."""
    history = VoterHistory(static_voters)
    snapshot_ids = log.snapshot_ids()
    start = LOG_START
    for snapshot_id in snapshot_ids:
        if snapshot_id.offset <= log.start_offset:
            start = snapshot_id
    if start.offset != log.start_offset:
        raise ValueError(f"the log starts at {log.start_offset}, but no snapshot ends there")
    snapshot = log.open_snapshot(start) if start in snapshot_ids else None
    if snapshot is not None:
        apply_snapshot(history, snapshot)
    offset = log.start_offset
    while offset < log.end_offset:
        data = log.read(offset, READ_BYTES)
        for position, header in iterate_batches(data):
            if header.is_control:
                apply_control_batch(history, data, position, header)
            offset = header.next_offset
    latest = snapshot_ids[-1] if snapshot_ids else None
    return LogView(start, log.epochs(), log.end_offset, latest), history
