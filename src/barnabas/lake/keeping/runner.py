"""The runner: one streaming query for each feed, and one commit of all tables for each of its batches.

A batch is processed in these steps. Its records are written once (bronze; unreadable ones to the quarantine) and read back.
They are folded with the open facts into new facts, which are written once. The tables are made from the facts and checked. One
manifest names all of it. A stream without a fold makes its tables from the records, which then need not be kept.

Its one rule: a batch is in the lake completely or not at all, and never twice. After a crash, Spark plans it again with the
same offsets and the same number, and a number that the manifest already has is skipped. Only counts come to the driver.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.lake.declared_column import schema_of
from barnabas.lake.keeping import parquet_times
from barnabas.lake.keeping.checks import Checked, check
from barnabas.lake.keeping.feeds import Feed
from barnabas.lake.keeping.manifest import BatchDone, Parts, StreamState, TableChange, stream_path
from barnabas.lake.keeping.publishing import files_of
from barnabas.lake.keeping.store import CHECKPOINTS, REBUILD, LakeError, Writer
from barnabas.lake.keeping.table_reading import column_types, read_parts, read_table
from barnabas.lake.tables.declaration import Mode, Table
from barnabas.lake.tables.quarantine import QUARANTINE, quarantined
from barnabas.lake.tables.streams import ERROR, Fold, Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

COMPACT_PARTS: Final = 16
"""A table with more small parts than this is compacted."""
SMALL_PART_BYTES: Final = 64 << 20
_THREADS = 4
_SWEEP_COMMITS = 32
_LOOK_S = 1


class Batch(NamedTuple):
    """The result of a batch, for progress reports."""

    feed: str
    batch_id: int
    rows: int
    quarantined: int
    first_fault: str
    """The place and the reason of one that went to the quarantine, or nothing."""
    table_rows: dict[str, int]
    """Rows written to each table: those that ended and those that are open."""
    seconds: float
    markers: int = 0
    """Of `rows`, markers of transactions in logs of topics: they are read, but tables do not count them as records."""


def ignore(batch: Batch) -> None:
    """Ignore progress reports."""


def never() -> bool:
    """Never stop."""
    return False


class Runner:
    """Runs feeds into a lake that is open for writing."""

    def __init__(
        self,
        spark: SparkSession,
        writer: Writer,
        *,
        shards: int | None = None,
        watch: Callable[[Batch], None] = ignore,
        compact_parts: int = COMPACT_PARTS,
    ) -> None:
        self.spark, self.writer, self._watch = spark, writer, watch
        spark.conf.set(*parquet_times.SETTING)
        self._shards = shards or spark.sparkContext.defaultParallelism
        self._compact_parts = compact_parts
        self._swept = writer.manifest.version
        self._failures: list[BaseException] = []
        self._one_batch = threading.Lock()

    def run(self, feeds: Iterable[Feed], is_stopped: Callable[[], bool] = never) -> None:
        """Read everything that is available now, one feed after the other."""
        for feed in feeds:
            if not is_stopped():
                self._wait([self._start(feed, None)], is_stopped)

    def follow(self, feeds: Iterable[Feed], interval_s: float, is_stopped: Callable[[], bool] = never) -> None:
        """Read all feeds at the same time, polling at this interval, until `is_stopped` returns True."""
        self._wait([self._start(feed, interval_s) for feed in feeds], is_stopped)

    def _start(self, feed: Feed, interval_s: float | None) -> StreamingQuery:
        checkpoint = self._checkpoint(feed)
        columns = {**column_types(feed.stream.records), ERROR.name: ERROR.type}
        rows = (
            self.spark.readStream.format(feed.stream.source).schema(schema_of(columns)).options(**feed.options).load()
        )

        def take(frame: DataFrame, batch_id: int) -> None:
            try:
                with self._one_batch:
                    self._take(feed, frame, batch_id)
            except BaseException as error:
                self._failures.append(error)
                raise

        stream = rows.writeStream.queryName(feed.name).option("checkpointLocation", f"file:{checkpoint}")
        if interval_s is None:
            stream = stream.trigger(availableNow=True)
        else:
            stream = stream.trigger(processingTime=f"{max(1, round(interval_s * 1000))} milliseconds")
        return stream.foreachBatch(take).start()

    def _wait(self, queries: Sequence[StreamingQuery], is_stopped: Callable[[], bool]) -> None:
        try:
            while not is_stopped():
                ended = [query.awaitTermination(_LOOK_S) for query in queries]
                if all(ended):
                    return
        except Exception:
            if self._failures:
                raise self._failures[0] from None  # the original error, not Spark's wrapper
            raise
        finally:
            for query in queries:
                query.stop()

    # --- checkpoints: Spark's number of the last batch has to be the manifest's

    def _checkpoint_path(self, feed: Feed) -> Path:
        return self.writer.data / CHECKPOINTS / stream_path(feed.name)

    def _checkpoint(self, feed: Feed) -> Path:
        path = self._checkpoint_path(feed)
        state = self.writer.manifest.streams.get(feed.name)
        if state is None:
            shutil.rmtree(path, ignore_errors=True)  # of a first batch that was never committed
        elif _query_id(path) != state.query_id:
            raise LakeError(f"{path} does not belong to the batches in the lake; {REBUILD} writes the lake anew")
        return path

    # --- one batch

    def _take(self, feed: Feed, frame: DataFrame, batch_id: int) -> None:
        checkpoint = self._checkpoint_path(feed)
        offsets = _offsets(checkpoint, batch_id)
        before = self.writer.manifest.streams.get(feed.name)
        if before is not None and batch_id <= before.batch_id:
            if batch_id == before.batch_id and offsets != before.offsets:
                raise LakeError(f"{checkpoint} lacks batch {batch_id} of the lake; {REBUILD} writes the lake anew")
            return
        began = time.monotonic()
        records = feed.stream.records
        tables, checked = self._write_records(feed, frame)
        rows = self._count(tables[records.path])
        # Only logs of topics have both records and markers: every record of the other logs is kept and counted.
        markers = 0 if feed.stream.keeps_records else _markers(self.writer.data / tables[records.path].added[0])
        passing: list[str] = []
        facts: Parts = ()
        if feed.stream.fold is None:
            self._write_tables(feed, lambda table: checked[records.name].rows, tables, checked)
        else:
            part = self._write_facts(feed, feed.stream.fold, checked[records.name].rows, before.facts if before else ())
            self._write_tables(feed, partial(self._facts_of, feed.stream, part), tables, checked)
            facts = _existing(self.writer.data, part, "is_open=true")[0]
            passing = [f"{part}/is_open=false", *(before.facts if before else ())]
        if not feed.stream.keeps_records:
            checked.pop(records.name)
            passing += tables.pop(records.path).added
        self.writer.on_step("tables written")
        self._check(checked)
        self.writer.on_step("tables checked")
        counts = {path: count for path, change in tables.items() if (count := self._count(change))}
        bad = counts.pop(QUARANTINE.path, 0)
        fault = _first_fault(self.writer.data / tables[QUARANTINE.path].added[0]) if bad else ""
        state = StreamState(batch_id, _query_id(checkpoint), (before.rows if before else 0) + rows, facts, offsets)
        self.writer.commit(BatchDone(feed.name, state, tables), [checkpoint / "offsets" / str(batch_id)])
        self.writer.discard(passing)
        self._watch(Batch(feed.name, batch_id, rows, bad, fault, counts, time.monotonic() - began, markers))
        self._compact(tables)

    def _write_records(self, feed: Feed, frame: DataFrame) -> tuple[dict[str, TableChange], dict[str, Checked]]:
        """Read the source once, and write. Errors are rare: if there are any, the good rows are written again without them."""
        table, data = feed.stream.records, self.writer.data
        columns = column_types(table)
        part = self._write(table.path, frame.select(*columns, ERROR.name))
        self.writer.on_step("records written")
        tables = {}
        if _has_values(data / part, ERROR.name):
            rows = read_parts(self.spark, data, (part,), {**columns, ERROR.name: ERROR.type})
            errors = rows.where(f"`{ERROR.name}` is not null")
            bad = self._write(
                QUARANTINE.path, quarantined(errors, feed.cluster_id, feed.stream.source, feed.stream.topic)
            )
            tables[QUARANTINE.path] = TableChange(column_types(QUARANTINE), (bad,))
            good = self._write(table.path, rows.where(f"`{ERROR.name}` is null").drop(ERROR.name))
            self.writer.discard([part])
            part = good
        tables[table.path] = TableChange(columns, (part,))
        return tables, {table.name: Checked(table, read_parts(self.spark, data, (part,), columns))}

    def _write_facts(self, feed: Feed, fold: Fold, records: DataFrame, before: Parts) -> str:
        """Write the facts that ended in this batch and those open after it, by kind. Return the part."""
        from pyspark.sql import functions as f

        columns = {column.name: column.type for column in feed.stream.facts}
        base = before[0] if before else None
        open_facts = read_parts(self.spark, self.writer.data, before, columns, base)
        facts = fold(records, open_facts, shards=self._shards)
        part = self._write(
            f"state/{stream_path(feed.name)}",
            facts.withColumn("is_open", f.col("valid_to_offset").isNull()),
            "is_open",
            "kind",
        )
        self.writer.on_step("facts written")
        return part

    def _facts_of(self, stream: Stream, part: str, table: Table) -> DataFrame | None:
        """Return the facts that a table is made of, or None if there are none."""
        folders = [f"is_open={is_open}/kind={table.name}" for is_open in ("false", "true")]
        here = [name for names in _existing(self.writer.data, part, *folders) for name in names]
        columns = {column.name: column.type for column in stream.facts}
        return read_parts(self.spark, self.writer.data, here, columns, part) if here else None

    def _write_tables(
        self,
        feed: Feed,
        input_of: Callable[[Table], DataFrame | None],
        tables: dict[str, TableChange],
        checked: dict[str, Checked],
    ) -> None:
        """Write all tables that have input, several at the same time."""
        from pyspark.sql import functions as f

        def write(table: Table) -> str | None:
            made_of = input_of(table)
            if made_of is None:
                return None
            rows = table.build(made_of)
            if table.mode is not Mode.HISTORY:
                return self._write(table.path, rows.select(*column_types(table)))
            has_ended = f.col("valid_to_offset").isNotNull()
            return self._write(table.path, rows.select(*column_types(table), has_ended.alias("ended")), "ended")

        with ThreadPoolExecutor(_THREADS) as pool:
            parts = list(pool.map(write, feed.stream.tables))
        for table, part in zip(feed.stream.tables, parts, strict=True):
            kinds = column_types(table)
            if part is None:
                tables[table.path] = TableChange(kinds, (), None if table.mode is Mode.APPEND else ())
                continue
            ended: Parts = (part,)
            is_open = ended
            if table.mode is Mode.HISTORY:
                ended, is_open = _existing(self.writer.data, part, "ended=true", "ended=false")
            tables[table.path] = {
                Mode.HISTORY: TableChange(kinds, ended, is_open),
                Mode.FULL: TableChange(kinds, (), is_open),
                Mode.APPEND: TableChange(kinds, ended),
            }[table.mode]
            here = tuple(dict.fromkeys(ended + is_open))
            checked[table.name] = Checked(table, read_parts(self.spark, self.writer.data, here, kinds))

    def _check(self, checked: dict[str, Checked]) -> None:
        known = {table.name: table for table, _ in checked.values()}

        def whole_table(name: str) -> DataFrame:
            table = known[name]
            return read_table(self.spark, self.writer.data, self.writer.manifest, table).unionByName(checked[name].rows)

        check(checked, whole_table)

    # --- parts

    def _write(self, path: str, rows: DataFrame, *by: str) -> str:
        part = self.writer.stage(path)
        rows.write.partitionBy(*by).parquet(f"file:{self.writer.data / part}")
        return part

    def _count(self, change: TableChange) -> int:
        return sum(rows_of(self.writer.data / part) for part in change.added + (change.present or ()))

    def _compact(self, tables: Iterable[str]) -> None:
        """Merge the small parts of tables, each in its own commit."""
        for path in tables:
            state = self.writer.manifest.tables[path]
            small = tuple(part for part in state.lasting if bytes_of(self.writer.data / part) < SMALL_PART_BYTES)
            if len(small) <= self._compact_parts:
                continue
            rows = read_parts(self.spark, self.writer.data, small, state.columns)
            total = sum(bytes_of(self.writer.data / part) for part in small)
            into = self._write(path, rows.coalesce(1 + total // SMALL_PART_BYTES))
            self.writer.commit_compaction(path, small, (into,))
        if self.writer.manifest.version - self._swept >= _SWEEP_COMMITS:
            self._swept = self.writer.manifest.version
            self.writer.sweep()


def _query_id(checkpoint: Path) -> str:
    try:
        return str(json.loads((checkpoint / "metadata").read_text())["id"])
    except (OSError, ValueError, KeyError):
        return ""


def _offsets(checkpoint: Path, batch_id: int) -> str:
    """Return the source's offsets after this batch. Spark writes them before it starts the batch."""
    lines = (checkpoint / "offsets" / str(batch_id)).read_text().splitlines()
    return "\n".join(lines[2:])


def _existing(data: Path, part: str, *below: str) -> list[Parts]:
    """Return, for each of these directories of a part, itself if it exists."""
    return [(f"{part}/{name}",) if (data / part / name).is_dir() else () for name in below]


def _files(part: Path) -> Iterable[Path]:
    return files_of(part, (".",))


def rows_of(part: Path) -> int:
    from pyarrow.parquet import read_metadata

    return sum(read_metadata(file).num_rows for file in _files(part))


def _markers(part: Path) -> int:
    """Return the number of markers of transactions among the records of a part."""
    from pyarrow.parquet import read_table

    (column,) = read_table(part, columns=["is_control"], partitioning=None).columns
    return sum(chunk.true_count for chunk in column.chunks)


def _first_fault(part: Path) -> str:
    """Return where the first fault of a part of the quarantine is, and what is wrong there."""
    from pyarrow.parquet import read_table

    file, reason = (
        column.to_pylist()[0] for column in read_table(part, columns=["file", "reason"], partitioning=None).columns
    )
    return f"{file}: {reason}" if file else str(reason)


def _has_values(part: Path, column: str) -> bool:
    """Return whether a column has a value anywhere, according to the statistics of the files."""
    from pyarrow.parquet import read_metadata

    for file in _files(part):
        found = read_metadata(file)
        for group in map(found.row_group, range(found.num_row_groups)):
            for chunk in map(group.column, range(group.num_columns)):
                statistics = chunk.statistics if chunk.path_in_schema == column else None
                if chunk.path_in_schema == column and (
                    statistics is None or not statistics.has_null_count or statistics.null_count < group.num_rows
                ):
                    return True
    return False


def bytes_of(part: Path) -> int:
    return sum(file.stat().st_size for file in _files(part))
