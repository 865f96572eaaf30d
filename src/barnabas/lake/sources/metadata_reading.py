"""`kafka_metadata` in batch: what is planned, in pieces for tasks, and how a task reads its piece.

Its one rule: what is pruned could not have passed. Options and filters that are pushed down narrow what is read, by
copies, offsets, segments, batches and types of records; Spark applies its filters again to what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)

from barnabas.lake.reading.copies import Copy, Verdict, merge, verdicts
from barnabas.lake.reading.decoding.metadata_columns import warm
from barnabas.lake.reading.metadata_files import (
    MetadataLog,
    Piece,
    Scan,
    bootstrap_pieces,
    find_logs,
    inspect,
    log_pieces,
    read_pieces,
    snapshot_pieces,
)
from barnabas.lake.reading.metadata_rows import RowFormat, Wanted, read_piece, rows_of
from barnabas.lake.reading.options import LATEST, to_ms
from barnabas.lake.sources.filters import PushFilters
from barnabas.lake.sources.metadata import MetadataOptions
from barnabas.storage.snapshots import SnapshotId

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType


class FilePart(InputPartition):
    """What one task reads of files."""

    def __init__(self, piece: Piece, wanted: Wanted) -> None:
        self.piece = piece
        self.wanted = wanted


class Observed:
    """The copies of one cluster's log as they were at the last look. Looking again reads only what is new."""

    def __init__(self, options: MetadataOptions, cluster_id: str | None, logs: Sequence[MetadataLog]) -> None:
        self.options = options
        self.cluster_id = cluster_id
        self.logs = {log.name: log for log in logs}
        self.copies: list[Copy] = []
        self.verdicts: dict[str, Verdict] = {}
        self._scans: dict[str, Scan] = {}

    def look(self) -> None:
        copies = []
        for log in self.logs.values():
            if log.directory is not None:
                copy, self._scans[log.name] = inspect(log, self._scans.get(log.name))
                copies.append(copy)
        self.copies = copies
        self.verdicts = verdicts(copies, self.options.voters)


def observe(options: MetadataOptions) -> list[Observed]:
    """One for each cluster that is found in the paths."""
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


class MetadataReader(DataSourceReader):
    def __init__(self, options: MetadataOptions, schema: StructType) -> None:
        self._options = options
        self._format = RowFormat.of(schema, include_secrets=options.include_secrets, fail_fast=options.fail_fast)
        self._wanted = wanted_of(options)
        if options.push_filters:
            self.pushFilters = PushFilters(self._take)  # type: ignore[method-assign]

    def _take(self, filters: list[Filter]) -> None:
        for each in filters:
            self._wanted = narrow(self._wanted, each)

    def partitions(self) -> Sequence[InputPartition]:
        if self._options.is_live:
            from barnabas.lake.sources.metadata_live import plan_live

            return plan_live(self._options, self._wanted)
        pieces = [piece for each in observe(self._options) for piece in plan(each, self._wanted)]
        return parts_of(pieces, self._wanted) or [_NOTHING]  # of no partition at all, Spark makes one that is None

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        return read_part(partition, self._options, self._format)


_NOTHING = InputPartition(None)


def parts_of(pieces: Iterable[Piece], wanted: Wanted) -> list[InputPartition]:
    """Tasks. What their processes need is compiled before they start."""
    found = list(pieces)
    warm(max((piece.end_position - piece.position for piece in found), default=0))
    return [FilePart(piece, wanted) for piece in found]


def read_part(partition: InputPartition, options: MetadataOptions, form: RowFormat) -> Iterator[RecordBatch]:
    if isinstance(partition, FilePart):
        yield from rows_of(read_piece(partition.piece), partition.piece, partition.wanted, form)
    elif partition is not None and partition.value is not None:
        from barnabas.lake.sources.metadata_live import read_live

        yield from read_live(partition.value, options, form)


def plan(observed: Observed, wanted: Wanted) -> Iterator[Piece]:
    """Everything of every copy, or each committed offset once."""
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
    """Each committed offset from `start` to before `end` once; a snapshot first where no log goes back that far."""
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


# Filters


def narrow(wanted: Wanted, given: Filter) -> Wanted:
    """What is asked for when this filter holds as well; the same where it says nothing that can be used."""
    attribute: tuple[str, ...] = getattr(given, "attribute", ())
    name = attribute[0] if len(attribute) == 1 else None
    match given:
        case EqualTo(value=value) | EqualNullSafe(value=value) if value is not None:
            return _within(wanted, name, [value])
        case In(value=values):
            return _within(wanted, name, [value for value in values if value is not None])
        case GreaterThan(value=value) if _is_known(name, value):
            return _from(wanted, name, value, 1)
        case GreaterThanOrEqual(value=value) if _is_known(name, value):
            return _from(wanted, name, value, 0)
        case LessThan(value=value) if _is_known(name, value):
            return _before(wanted, name, value, 0)
        case LessThanOrEqual(value=value) if _is_known(name, value):
            return _before(wanted, name, value, 1)
    return wanted


def _is_known(name: str | None, value: Any) -> bool:
    return (name == "offset" and isinstance(value, int)) or (name == "append_time" and isinstance(value, datetime))


def _within(wanted: Wanted, name: str | None, values: list[Any]) -> Wanted:
    match name:
        case "record_type":
            found = frozenset(values)
            return replace(wanted, types=found if wanted.types is None else wanted.types & found)
        case "node_id":
            nodes = frozenset(values)
            return replace(wanted, node_ids=nodes if wanted.node_ids is None else wanted.node_ids & nodes)
        case "is_snapshot" if len(values) == 1:
            return replace(wanted, snapshots=bool(values[0]))
        case "offset" | "append_time" if values and all(_is_known(name, value) for value in values):
            return _before(_from(wanted, name, min(values), 0), name, max(values), 1)
    return wanted


def _from(wanted: Wanted, name: str | None, value: Any, more: int) -> Wanted:
    if name == "offset":  # which snapshots do not have
        return replace(wanted, start=max(wanted.start, value + more), snapshots=False)
    start = to_ms(value)
    return replace(wanted, time_start_ms=max(wanted.time_start_ms or start, start))


def _before(wanted: Wanted, name: str | None, value: Any, more: int) -> Wanted:
    if name == "offset":
        end = value + more
        return replace(wanted, end=end if wanted.end is None else min(wanted.end, end), snapshots=False)
    end = to_ms(value) + 1  # it may have microseconds; Spark looks again
    return replace(wanted, time_end_ms=end if wanted.time_end_ms is None else min(wanted.time_end_ms, end))
