"""Planning what to read of the copies of a metadata log, in parts for tasks; and reading such a part.

Its one rule: only what no filter would pass is pruned. `Wanted` narrows what is read, by copies, offsets, segments, batches and
types of records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.lake.reading.copies import CommitVerdict, Copy, merge, verdicts
from barnabas.lake.reading.decoding.metadata_columns import warm
from barnabas.lake.reading.metadata_files import (
    MetadataLog,
    Piece,
    bootstrap_pieces,
    find_logs,
    log_pieces,
    read_pieces,
    snapshot_pieces,
)
from barnabas.lake.reading.metadata_options import MetadataOptions
from barnabas.lake.reading.metadata_rows import RowFormat, Wanted, read_piece, rows_of
from barnabas.lake.reading.metadata_scan import Scan, inspect
from barnabas.lake.reading.metadata_skipped import DamagedCopy, Skipped, damaged_copies, skipped
from barnabas.lake.reading.options import LATEST
from barnabas.storage.snapshots import SnapshotId

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from barnabas.lake.reading.metadata_live import LivePiece


class FilePart(NamedTuple):
    """The part of the files that one task reads."""

    piece: Piece
    wanted: Wanted


class Observed:
    """The copies of one cluster's log, as of the last `look`. Another one reads only what is new."""

    def __init__(self, options: MetadataOptions, cluster_id: str | None, logs: Sequence[MetadataLog]) -> None:
        self.options = options
        self.cluster_id = cluster_id
        self.logs = {log.name: log for log in logs}
        self.copies: list[Copy] = []
        self.verdicts: dict[str, CommitVerdict] = {}
        self._scans: dict[str, Scan] = {}

    def look(self) -> None:
        copies = []
        for log in self.logs.values():
            if log.directory is not None:
                copy, self._scans[log.name] = inspect(log, self._scans.get(log.name))
                copies.append(copy)
        self.copies = copies
        self.verdicts = verdicts(copies, self.options.voters)

    def skipped(self) -> Skipped | None:
        """Return what a stream skips at the end of the log; None if nothing."""
        uncommitted = self.options.include_uncommitted
        return skipped(self.copies, self.verdicts, self.options.voters, uncommitted=uncommitted)

    def damaged_copies(self) -> list[DamagedCopy]:
        """Return what is damaged in one copy and was read from another one."""
        return list(damaged_copies(self.copies, self.verdicts))


def observe(options: MetadataOptions) -> list[Observed]:
    """Return one `Observed` for each cluster in the paths."""
    clusters: dict[str | None, list[MetadataLog]] = {}
    for log in find_logs(options.paths, options.cluster_id, options.node_id):
        clusters.setdefault(log.cluster_id, []).append(log)
    found = [Observed(options, cluster_id, logs) for cluster_id, logs in clusters.items()]
    for each in found:
        each.look()
    return found


def wanted_of(options: MetadataOptions) -> Wanted:
    return Wanted(
        start=max(options.start, 0),
        end=None if options.end == LATEST else max(options.end, 0),
        time_start_ms=options.starting_timestamp,
        time_end_ms=options.ending_timestamp,
    )


def parts_of(pieces: Iterable[Piece], wanted: Wanted) -> list[FilePart]:
    """Return the parts of all tasks. The code that tasks need is compiled before they start."""
    found = list(pieces)
    warm(max((piece.end_position - piece.position for piece in found), default=0))
    return [FilePart(piece, wanted) for piece in found]


def read_part(part: FilePart | LivePiece | None, options: MetadataOptions, form: RowFormat) -> Iterator[RecordBatch]:
    """Yield the rows of a task, which may have nothing to read."""
    if isinstance(part, FilePart):
        yield from rows_of(read_piece(part.piece), part.piece, part.wanted, form)
    elif part is not None:
        from barnabas.lake.reading.metadata_live import read_live

        yield from read_live(part, options, form)


def plan(observed: Observed, wanted: Wanted) -> Iterator[Piece]:
    """Yield all pieces of all copies or, if the copies are merged, each committed offset once."""
    options = observed.options
    if options.merged:
        yield from merged_pieces(observed, wanted.start, wanted.end, wanted)
        return
    for log in observed.logs.values():
        if wanted.node_ids is not None and log.node_id not in wanted.node_ids:
            continue
        copy = next((each for each in observed.copies if each.name == log.name), None)
        is_empty = copy is None or (copy.log_end == 0 and not copy.snapshots)
        if wanted.snapshots is not False:
            for end, epoch in copy.snapshots if copy is not None else ():
                if wanted.start <= end and (wanted.end is None or end <= wanted.end):
                    yield from snapshot_pieces(log, SnapshotId(end, epoch), options.max_partition_bytes)
            if options.include_bootstrap or is_empty:
                yield from bootstrap_pieces(log, options.max_partition_bytes)
        if copy is not None and wanted.snapshots is not True:
            verdict = observed.verdicts[log.name]
            end = copy.log_end if wanted.end is None else min(copy.log_end, wanted.end)
            size, time = options.max_partition_bytes, wanted.time_start_ms
            yield from log_pieces(log, verdict, wanted.start, end, size, time_start_ms=time)


def merged_pieces(observed: Observed, start: int, end: int | None, wanted: Wanted) -> Iterator[Piece]:
    """Yield each committed offset from `start` to before `end` once; a snapshot first if no log starts early enough."""
    options = observed.options
    plan = merge(observed.copies, observed.verdicts, start, uncommitted=options.include_uncommitted)
    for read in plan.reads:
        if end is not None and read.snapshot is None and read.start >= end:
            continue
        if wanted.snapshots is not None and wanted.snapshots is not (read.snapshot is not None):
            continue
        log = observed.logs[read.name]
        if wanted.node_ids is not None and log.node_id not in wanted.node_ids:
            continue
        if read.snapshot is None and end is not None:
            read = read._replace(end=min(read.end, end))  # noqa: PLW2901
        yield from read_pieces(observed.logs, observed.verdicts, read, options.max_partition_bytes)
