"""Metadata logs on disk: finding them, and cutting them into pieces for tasks. `metadata_scan` describes their content.

Its one rule: nothing is written or locked. The log ends after its last complete batch; a torn tail is read later.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.batches.format import CONTROL_BIT, LENGTH_OVERHEAD, MAGIC
from barnabas.lake.reading.copies import CommitVerdict, Read
from barnabas.lake.reading.log_files import OpenSegment, SegmentPlace, list_segments, offset_entries, time_entries
from barnabas.lake.reading.options import OptionError
from barnabas.storage.log_dirs import CLUSTER_METADATA, read_meta_properties
from barnabas.storage.snapshots import (
    BOOTSTRAP_CHECKPOINT,
    SnapshotId,
    parse_snapshot_name,
    snapshot_path,
)

METADATA_DIRECTORY = str(CLUSTER_METADATA)
_HEAD = struct.Struct(">qiib4xhi")  # base offset, length, epoch, magic, attributes, last offset delta
_CHUNK_BYTES = 1 << 20

_log = logging.getLogger(__name__)


class MetadataLog(NamedTuple):
    """A copy, as found. A directory that has only a `bootstrap.checkpoint` has no log yet."""

    name: str
    directory: Path | None
    bootstrap: Path | None
    cluster_id: str | None
    node_id: int | None
    is_mirror: bool = False
    """Made by `barnabas metadata mirror`: all of it is committed."""


class Head(NamedTuple):
    """The fields of a batch that planning needs."""

    position: int
    size: int
    base_offset: int
    end_offset: int
    epoch: int
    is_control: bool


class Piece(NamedTuple):
    """Bytes of one file for one task, and the range of offsets that counts."""

    path: str
    position: int
    end_position: int
    start_offset: int
    end_offset: int | None
    cluster_id: str | None
    node_id: int | None
    snapshot: tuple[int, int] | None
    verdict: CommitVerdict
    is_damaged: bool = False
    """Nothing in it can be trusted: it is read only to say why."""


def find_logs(paths: Iterable[Path], cluster_id: str | None = None, node_id: int | None = None) -> list[MetadataLog]:
    """Return the metadata logs in these directories, which are log dirs or such logs. Raises OptionError if there is none."""
    given = list(paths)
    found: dict[Path, MetadataLog] = {}
    for path in given:
        if not path.is_dir():
            raise OptionError(f"kafka_metadata: {path} does not exist, or is not a directory")
        is_log = path.name == METADATA_DIRECTORY or any(_is_log_file(each.name) for each in path.iterdir())
        directory = path if is_log else path / METADATA_DIRECTORY
        log_dir = directory.parent
        bootstrap = log_dir / BOOTSTRAP_CHECKPOINT
        if not directory.is_dir() and not bootstrap.is_file():
            continue
        meta = read_meta_properties(log_dir)
        found[log_dir.resolve()] = MetadataLog(
            name=str(directory),
            directory=directory if directory.is_dir() else None,
            bootstrap=bootstrap if bootstrap.is_file() else None,
            cluster_id=cluster_id or (meta.cluster_id if meta else None),
            node_id=node_id if node_id is not None and len(given) == 1 else meta.node_id if meta else node_id,
            is_mirror=meta is not None and meta.is_mirror,
        )
    if not found:
        names = ", ".join(map(str, given))
        raise OptionError(f"kafka_metadata: {names} has no {METADATA_DIRECTORY}; give the log dir that has it")
    return list(found.values())


def _is_log_file(name: str) -> bool:
    return parse_snapshot_name(name) is not None or (
        len(name) == 24 and name.endswith(".log") and name[:20].isdecimal()
    )


# Pieces


def walk(file: OpenSegment, position: int) -> Iterator[Head]:
    """Yield the complete batches from a position on, up to the first that is not."""
    end = file.size()
    chunk, start = b"", position
    while position + _HEAD.size <= end:
        if position + _HEAD.size > start + len(chunk):
            chunk, start = file.read(min(_CHUNK_BYTES, end - position), position), position
            if len(chunk) < _HEAD.size:
                return
        base_offset, length, epoch, magic, attributes, delta = _HEAD.unpack_from(chunk, position - start)
        size = length + LENGTH_OVERHEAD
        if magic != MAGIC or length < _HEAD.size or size > end - position or delta < 0:
            if position + size <= end or magic != MAGIC:
                _log.warning("%s has no batch at byte %d: the log is read up to there", file.path, position)
            return
        yield Head(position, size, base_offset, base_offset + delta + 1, epoch, bool(attributes & CONTROL_BIT))
        position += size


def position_of(directory: Path, segment: SegmentPlace, offset: int) -> int:
    """Return the start of a batch at or before this offset: from the index, if the log has a batch there."""
    if offset <= segment.base_offset:
        return 0
    entries = offset_entries(directory, segment)
    at = int(entries.offset.searchsorted(offset)) - 1
    if at < 0:
        return 0
    position = int(entries.position[at])
    with OpenSegment.open(directory / segment.name) as file:
        header = file.header(position)
    return position if header is not None and header.last_offset == int(entries.offset[at]) else 0


def log_pieces(
    log: MetadataLog,
    verdict: CommitVerdict,
    start: int,
    end: int | None,
    max_bytes: int,
    *,
    time_start_ms: int | None = None,
) -> Iterator[Piece]:
    """Yield pieces of a log, cut at entries of its indexes. Segments that end before `time_start_ms` are skipped."""
    assert log.directory is not None
    segments = list_segments(log.directory)
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        segment_end = following.base_offset if following is not None else end
        if following is not None and following.base_offset <= start:
            continue
        if end is not None and segment.base_offset >= end:
            return
        if following is not None and time_start_ms is not None and _ends_before(log.directory, segment, time_start_ms):
            continue
        first = max(start, segment.base_offset)
        last = segment_end if end is None or segment_end is None else min(segment_end, end)
        for position, end_position, low, high in _cuts(log.directory, segment, first, last, max_bytes):
            path = str(log.directory / segment.name)
            yield Piece(path, position, end_position, low, high, log.cluster_id, log.node_id, None, verdict)


def _ends_before(directory: Path, segment: SegmentPlace, time_ms: int) -> bool:
    entries = time_entries(directory, segment)
    return len(entries.timestamp) > 0 and int(entries.timestamp[-1]) < time_ms


def _cuts(
    directory: Path, segment: SegmentPlace, start: int, end: int | None, max_bytes: int
) -> Iterator[tuple[int, int, int, int | None]]:
    """Yield ranges of positions of a segment, with the offsets in them."""
    position = position_of(directory, segment, start)
    try:
        file = OpenSegment.open(directory / segment.name)
    except FileNotFoundError:
        yield 0, segment.size, start, end  # the reader reports that it was removed
        return
    with file:
        size = file.size()
        if size > position + max_bytes:
            entries = offset_entries(directory, segment)
            for at in map(int, entries.position):
                if at < position + max_bytes:
                    continue
                header = file.header(at)
                if header is None or header.base_offset < start:
                    continue
                if end is not None and header.base_offset >= end:
                    break
                yield position, at, start, header.base_offset
                position, start = at, header.base_offset
    if start != end:
        yield position, size, start, end


def snapshot_pieces(log: MetadataLog, snapshot: SnapshotId, max_bytes: int) -> Iterator[Piece]:
    assert log.directory is not None
    yield from _file_pieces(
        log, snapshot_path(log.directory, snapshot), (snapshot.end_offset, snapshot.epoch), max_bytes
    )


def bootstrap_pieces(log: MetadataLog, max_bytes: int) -> Iterator[Piece]:
    """Yield the records with which a cluster starts, before it has a log."""
    if log.bootstrap is not None:
        yield from _file_pieces(log, log.bootstrap, (0, 0), max_bytes)


def _file_pieces(log: MetadataLog, path: Path, snapshot: tuple[int, int], max_bytes: int) -> Iterator[Piece]:
    base = Piece(str(path), 0, 0, 0, None, log.cluster_id, log.node_id, snapshot, CommitVerdict(snapshot[0]))
    try:
        file = OpenSegment.open(path)
    except FileNotFoundError:
        yield base
        return
    with file:
        start = 0
        for head in walk(file, 0):
            if head.position - start >= max_bytes:
                yield base._replace(position=start, end_position=head.position)
                start = head.position
        yield base._replace(position=start, end_position=file.size())


def read_pieces(
    logs: dict[str, MetadataLog], found: dict[str, CommitVerdict], read: Read, max_bytes: int
) -> Iterator[Piece]:
    """Yield the pieces of one part of a merged plan."""
    if read.snapshot is not None:
        return snapshot_pieces(logs[read.name], SnapshotId(*read.snapshot), max_bytes)
    pieces = log_pieces(logs[read.name], found[read.name], read.start, read.end, max_bytes)
    return (piece._replace(is_damaged=read.is_damaged) for piece in pieces)


def heads(log: MetadataLog, start: int, end: int) -> Iterator[Head]:
    """Yield the batches of a log with offsets between these."""
    assert log.directory is not None
    segments = list_segments(log.directory)
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        if following is not None and following.base_offset <= start:
            continue
        if segment.base_offset >= end:
            return
        position = position_of(log.directory, segment, start)
        with OpenSegment.open(log.directory / segment.name) as file:
            for head in walk(file, position):
                if head.base_offset >= end:
                    return
                if head.end_offset > start:
                    yield head
