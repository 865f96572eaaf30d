"""The content of one copy of a metadata log, as far as planning needs it: its epochs, its voters, its end, and what is damaged.

Its one rule: a batch counts only if its checksum is right and its offset follows that of the batch before it. Other offsets are
damaged, if the log goes on after them; at the end of the log they are left for the next scan, because the node may still be
writing there. The checksum does not cover the epoch: one that decreases is damaged, one that increases is believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.batches import BatchError, ControlType, check_crc, decode_control_key, decode_header, decode_records
from barnabas.lake.reading.copies import Copy
from barnabas.lake.reading.log_files import OpenSegment, SegmentPlace, list_segments
from barnabas.lake.reading.metadata_files import Head, MetadataLog, walk
from barnabas.storage import StorageError
from barnabas.storage.quorum_state import recorded_voters
from barnabas.storage.snapshots import SnapshotId, SnapshotReader, list_snapshots, snapshot_path
from barnabas.wire import decode_record
from barnabas.wire.errors import MalformedError
from barnabas.wire.records.control import LeaderChangeMessage, VotersRecord


@dataclass
class Scan:
    """The known state of a copy's log, so that the next scan reads only new batches."""

    segment: SegmentPlace | None = None
    position: int = 0
    last: Head | None = None
    """The batch before the position, which identifies the log."""
    log_start: int = 0
    log_end: int = 0
    lineage: list[tuple[int, int]] = field(default_factory=list)
    voters: frozenset[int] | None = None
    voters_at: tuple[int, int] = (-1, -1)
    damaged: list[tuple[int, int]] = field(default_factory=list)
    """Offsets that no batch of this copy has, though later ones do; ends are exclusive."""


def inspect(log: MetadataLog, scan: Scan | None = None) -> tuple[Copy, Scan]:
    """Describe a copy by its files; with an earlier scan, only new batches are read."""
    assert log.directory is not None
    segments = list_segments(log.directory)
    snapshots = list_snapshots(log.directory)
    if scan is None or not _continues(log.directory, scan, segments):
        scan = _begin(log.directory, segments, snapshots)
    if segments:
        scan.log_start = segments[0].base_offset
        _read_on(log.directory, segments, scan)
    else:
        scan.log_start = scan.log_end = snapshots[-1].end_offset if snapshots else 0
    voters, voters_at = scan.voters, scan.voters_at
    if voters is None:
        voters = _quorum_voters(log.directory)
    ids = tuple((snapshot.end_offset, snapshot.epoch) for snapshot in snapshots)
    damaged = tuple(each for each in scan.damaged if each[1] > scan.log_start)
    lineage = tuple(scan.lineage)
    return Copy(
        log.name, log.node_id, lineage, scan.log_start, scan.log_end, ids, voters, voters_at, damaged, log.is_mirror
    ), scan


def _continues(directory: Path, scan: Scan, segments: Sequence[SegmentPlace]) -> bool:
    """Return whether the log still has the last batch of the scan: a log may have been truncated."""
    if scan.segment is None or scan.last is None:
        return False
    place = scan.segment.base_offset, scan.segment.inode
    segment = next((each for each in segments if (each.base_offset, each.inode) == place), None)
    if segment is None:
        return False
    with OpenSegment.open(directory / segment.name) as file:
        return next(walk(file, scan.last.position), None) == scan.last


def _begin(directory: Path, segments: Sequence[SegmentPlace], snapshots: Sequence[SnapshotId]) -> Scan:
    """Start a scan at the start of the log, with the voters of the latest snapshot."""
    scan = Scan()
    if not segments:
        return scan
    for snapshot in reversed(snapshots):
        try:
            with SnapshotReader(snapshot_path(directory, snapshot)) as reader:
                record = reader.voters
        except (StorageError, OSError):
            continue
        if record is not None:
            scan.voters = frozenset(voter.voter_id for voter in record.voters)
            scan.voters_at = (snapshot.epoch, snapshot.end_offset)
        break
    scan.segment, scan.log_end = segments[0], segments[0].base_offset
    return scan


def _read_on(directory: Path, segments: Sequence[SegmentPlace], scan: Scan) -> None:
    assert scan.segment is not None
    first = scan.segment.base_offset
    for segment in segments:
        if segment.base_offset >= first:
            position = scan.position if segment.base_offset == first else 0
            try:
                with OpenSegment.open(directory / segment.name) as file:
                    _read_segment(file, segment, position, scan)
            except FileNotFoundError:
                continue


def _read_segment(file: OpenSegment, segment: SegmentPlace, position: int, scan: Scan) -> None:
    """Take the batches of a segment into the scan.

    After a batch with a wrong checksum, the log goes on with the batch that follows it by its offset. If the header itself is
    damaged, it goes on with the first batch that another one follows, or at the start of the next segment.
    """
    expected = scan.log_end
    beyond: Head | None = None
    for head in walk(file, position):
        is_whole = _is_whole(file, head, scan)
        if head.base_offset == expected:
            expected, beyond = head.end_offset, None
            if is_whole:
                _take(file, segment, head, scan)
        elif is_whole and beyond is not None and head.base_offset == beyond.end_offset:
            _take(file, segment, beyond, scan)
            _take(file, segment, head, scan)
            expected, beyond = head.end_offset, None
        elif is_whole and head.base_offset > scan.log_end:
            beyond = head
            if head.position == 0 and head.base_offset == segment.base_offset:
                _take(file, segment, head, scan)
                expected, beyond = head.end_offset, None


def _is_whole(file: OpenSegment, head: Head, scan: Scan) -> bool:
    if scan.lineage and head.epoch < scan.lineage[-1][0]:
        return False
    data = file.read(head.size, head.position)
    try:
        check_crc(decode_header(data), data)
    except BatchError:
        return False
    return True


def _take(file: OpenSegment, segment: SegmentPlace, head: Head, scan: Scan) -> None:
    if head.base_offset > scan.log_end:
        scan.damaged.append((scan.log_end, head.base_offset))
    if not scan.lineage or head.epoch > scan.lineage[-1][0]:
        scan.lineage.append((head.epoch, head.base_offset))
    scan.log_end = head.end_offset
    scan.segment, scan.position, scan.last = segment, head.position + head.size, head
    if head.is_control:
        found = _voters_in(file.read(head.size, head.position))
        at = (head.epoch, head.base_offset)
        if found is not None and at >= scan.voters_at:
            scan.voters, scan.voters_at = found, at


def _voters_in(data: bytes) -> frozenset[int] | None:
    """Return the voters of the last record in a batch of control records that names any, or None."""
    found = None
    try:
        for record in decode_records(data, 0, decode_header(data)):
            match decode_control_key(record.key):
                case ControlType.KRAFT_VOTERS:
                    voters: VotersRecord = decode_record(record.value or b"", VotersRecord).record
                    found = frozenset(voter.voter_id for voter in voters.voters)
                case ControlType.LEADER_CHANGE:
                    change: LeaderChangeMessage = decode_record(record.value or b"", LeaderChangeMessage).record
                    found = found or frozenset(voter.voter_id for voter in change.voters)
    except (BatchError, MalformedError):
        return found
    return found or None


def _quorum_voters(directory: Path) -> frozenset[int] | None:
    try:
        return recorded_voters(directory) or None
    except StorageError:
        return None
