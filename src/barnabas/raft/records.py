"""The control records of the metadata log and its snapshots, which Raft writes and reads itself.

Its one rule: Raft decodes control batches only; all other batches are opaque bytes. The state found there is the
kraft.version and the voter set.
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
"""The type and encoded value of a control record, before it has an offset."""


def leader_change(leader_id: int, voters: Iterable[int], granting_voters: Iterable[int]) -> ControlRecord:
    """Return the first record of an epoch. Kafka writes it in version 0 with any kraft.version."""
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
    """Apply the voters and the kraft.version of an appended batch."""
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
    """Yield each batch of a snapshot, verified and decoded, including control batches.

    Uses memory for about one batch.
    """
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
    """Return the timestamp of the last log record that a snapshot contains, from its first batch, or -1."""
    for record in found:
        if decode_control_key(record.key) is ControlType.SNAPSHOT_HEADER:
            header: SnapshotHeaderRecord = wire.decode_record(record.value or b"", SnapshotHeaderRecord).record
            return header.last_contained_log_timestamp
    return -1


def apply_snapshot(history: VoterHistory, snapshot: SnapshotReader) -> None:
    """Apply the voters and kraft.version of a snapshot, which count as appended right before its end."""
    for header, found in snapshot_batches(snapshot):
        if not header.is_control:
            return  # they are in the first batch, before the data
        for record in found:
            _apply(history, record, snapshot.snapshot_id.offset - 1)


def load(log: RaftLog, static_voters: VoterSet | None = None) -> tuple[LogView, VoterHistory]:
    """Read the bounds and epochs of an opened log, and the voters that it contains."""
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
