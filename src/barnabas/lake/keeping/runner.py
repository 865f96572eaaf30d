"""The runner: one streaming query for each feed, and one commit of all tables for each of its batches.

Feeds run at the same time, each with one batch at a time. A feed changes only what is its own in the manifest.

A batch is processed in these steps. Its records are written once (bronze; unreadable ones to the quarantine) and read back.
They are folded with the open facts into new facts, which are written once. The tables are made from the facts and checked. One
manifest names all of it. A batch of few records is folded without Spark (`small_batches`). A stream without a fold makes its
tables from the records, which then need not be kept.

Its one rule: a batch is in the lake completely or not at all, and never twice. The manifest states the offsets after its last
batch, and Spark's checkpoint is made from it at each start, on the disk of the driver. Only counts come to the driver.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.lake.declared_column import schema_of
from barnabas.lake.keeping import gold, parquet_times
from barnabas.lake.keeping.checks import Checked, check
from barnabas.lake.keeping.feeds import Feed
from barnabas.lake.keeping.folders import Folder, rows_in
from barnabas.lake.keeping.folders import read_table as read_table_of
from barnabas.lake.keeping.gold import Computed
from barnabas.lake.keeping.manifest import BatchDone, Parts, StreamState, TableChange, stream_path
from barnabas.lake.keeping.publishing import files_of
from barnabas.lake.keeping.small_batches import MAX_RECORDS, Folded, fold_small, merge_parts
from barnabas.lake.keeping.store import Writer
from barnabas.lake.keeping.table_reading import column_types, read_parts, read_table
from barnabas.lake.spark.session import for_rows
from barnabas.lake.tables.declaration import Mode, Table
from barnabas.lake.tables.quarantine import QUARANTINE, quarantined
from barnabas.lake.tables.streams import ERROR, Fold, Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SMALL_BATCH: Final = "spark.barnabas.smallBatchRecords"
"""The setting of a session with the number of records up to which a batch is folded without Spark; 0: never."""
COMPACT_PARTS: Final = 16
"""A table with more small parts than this is compacted."""
SMALL_PART_BYTES: Final = 64 << 20
MAX_BATCHES: Final = 4
"""As many batches, of different feeds, are processed at the same time, if there are as many cores."""
MERGED_HERE_BYTES: Final = 8 << 20
"""Parts that are smaller together are merged without Spark."""
_THREADS = 4
_SWEEP_COMMITS = 32
_LOOK_S = 1
_LATE, _MAX_AGAIN = "failed to connect back", 5
"""What Spark says if a process of Python starts too slowly, as on a busy machine. Such a feed is started again: a batch that
was begun runs again, as after a crash."""
_ALL_OPEN = "is_open=true"
_NO_WATERMARK: Final = {"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": {}}


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


def nothing_told(feed: str, stage: str) -> None:
    """Ignore stages."""


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
        known: Mapping[str, Table] | None = None,
        watch_gold: Callable[[Computed], None] = gold.ignore,
        tell: Callable[[str, str], None] = nothing_told,
        small_records: int | None = None,
    ) -> None:
        """`known` are all tables by name: gold ones among them are kept up to date. `tell` is told each stage of a feed.

        Batches of at most `small_records` records are folded without Spark; None: as the session's `SMALL_BATCH` says.
        """
        self.spark, self.writer, self._watch = spark, writer, watch
        self._known, self._watch_gold, self._tell = known or {}, watch_gold, tell
        spark.conf.set(*parquet_times.SETTING)
        self._shards = shards or spark.sparkContext.defaultParallelism
        self._compact_parts = compact_parts
        given = spark.conf.get(SMALL_BATCH, str(MAX_RECORDS)) if small_records is None else small_records
        self._small_records = int(given or 0)
        self._swept = writer.manifest.version
        self._failures: list[BaseException] = []
        self._batches = max(1, min(spark.sparkContext.defaultParallelism, MAX_BATCHES))
        self._slots = threading.Semaphore(self._batches)
        self._begun: set[str] = set()
        """The feeds that have had a batch."""
        self._telling, self._compacting = threading.Lock(), threading.Lock()

    def run(self, feeds: Iterable[Feed], is_stopped: Callable[[], bool] = never) -> None:
        """Read everything that is available now, of several feeds at the same time."""
        feeds_by_name = {feed.name: feed for feed in feeds}
        waiting, again = deque(feeds_by_name.values()), Counter[str]()
        running: dict[str, StreamingQuery] = {}
        with self._stopping(running):
            while (waiting or running) and not is_stopped():
                # The next starts when the last has a batch: each starts a process, for which Spark waits only 10 seconds.
                if waiting and len(running) < self._batches and self._begun.issuperset(running):
                    feed = waiting.popleft()
                    running[feed.name] = self._start(feed, None)
                for name, query in list(running.items()):
                    try:
                        if query.awaitTermination(_LOOK_S):
                            del running[name]
                    except Exception as error:
                        if _LATE not in str(error) or again[name] >= _MAX_AGAIN:
                            raise
                        again[name] += 1
                        self._failures = [each for each in self._failures if _LATE not in str(each)]
                        running[name] = self._start(feeds_by_name[name], None)
        self._keep_gold(is_stopped)

    def follow(
        self,
        feeds: Iterable[Feed],
        interval_s: float,
        is_stopped: Callable[[], bool] = never,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        """Read all feeds at the same time, polling at this interval, until `is_stopped` returns True.

        `look` is called every second or less often, between two batches or during one.
        """
        queries: dict[str, StreamingQuery] = {}
        with self._stopping(queries):
            for feed in feeds:
                queries[feed.name] = self._start(feed, interval_s)
            while not is_stopped():
                ended = [query.awaitTermination(_LOOK_S) for query in queries.values()]
                if all(ended):
                    break
                self._keep_gold(is_stopped)
                look()
        self._keep_gold()

    def _keep_gold(self, is_stopped: Callable[[], bool] = never) -> None:
        """Bring the kept gold tables up to date."""
        with self._slots:
            if not self._known or self._failures:
                return
            rows = sum(stream.rows for stream in self.writer.manifest.streams.values())
            with for_rows(self.spark, rows):
                kept = gold.keep_gold(self.spark, self.writer, self._known, self._watch_gold, is_stopped)
            self._compact(kept)

    def _start(self, feed: Feed, interval_s: float | None) -> StreamingQuery:
        self._say(feed, "looking for records")
        checkpoint = self._checkpoint(feed)
        columns = {**column_types(feed.stream.records), ERROR.name: ERROR.type}
        rows = (
            self.spark.readStream.format(feed.stream.source).schema(schema_of(columns)).options(**feed.options).load()
        )

        def take(frame: DataFrame, batch_id: int) -> None:
            self._begun.add(feed.name)
            try:
                with self._slots:
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

    @contextmanager
    def _stopping(self, queries: Mapping[str, StreamingQuery]) -> Iterator[None]:
        """Stop queries at the end, and remove their checkpoints. Raises the original error of a batch, not Spark's wrapper."""
        with tempfile.TemporaryDirectory(prefix="barnabas-", ignore_cleanup_errors=True) as checkpoints:
            self._checkpoints = Path(checkpoints)
            try:
                yield
            except Exception:
                if self._failures:
                    raise self._failures[0] from None
                raise
            finally:
                for query in queries.values():
                    query.stop()

    def _say(self, feed: Feed, stage: str) -> None:
        with self._telling:
            self._tell(feed.name, stage)

    # --- checkpoints: made from the manifest, so that Spark continues after its last batch

    def _checkpoint_path(self, feed: Feed) -> Path:
        return self._checkpoints / stream_path(feed.name)

    def _checkpoint(self, feed: Feed) -> Path:
        """Write the checkpoint that Spark would have after the last batch in the lake."""
        path = self._checkpoint_path(feed)
        shutil.rmtree(path, ignore_errors=True)
        state = self.writer.manifest.streams.get(feed.name)
        if state is not None:
            for folder in ("offsets", "commits"):
                (path / folder).mkdir(parents=True)
            (path / "metadata").write_text(json.dumps({"id": state.query_id}))
            # Spark looks for the batch before it as well, whose offsets do not matter then.
            for batch_id in range(max(0, state.batch_id - 1), state.batch_id + 1):
                (path / "offsets" / str(batch_id)).write_text(f"v1\n{json.dumps(_NO_WATERMARK)}\n{state.offsets}")
            (path / "commits" / str(state.batch_id)).write_text('v1\n{"nextBatchWatermarkMs":0}')
        return path

    # --- one batch

    def _take(self, feed: Feed, frame: DataFrame, batch_id: int) -> None:
        checkpoint = self._checkpoint_path(feed)
        offsets = _offsets(checkpoint, batch_id)
        before = self.writer.manifest.streams.get(feed.name)
        began = time.monotonic()
        records = feed.stream.records
        self._say(feed, "reading")
        tables, checked = self._write_records(feed, frame)
        rows = self._count(tables[records.path])
        # Only logs of topics have both records and markers: every record of the other logs is kept and counted.
        markers = 0 if feed.stream.keeps_records else _markers(self.writer.data, tables[records.path].added[0])
        passing: list[str] = []
        facts: Parts = ()
        counts: dict[str, int] | None = None
        if feed.stream.fold is None:
            self._write_tables(feed, lambda table: checked[records.name].rows, tables, checked)
        elif (folded := self._fold_small(feed, before, rows, tables[records.path].added)) is not None:
            tables |= folded.tables
            facts, passing = folded.facts, list(before.facts if before else ())
            quarantine = tables.get(QUARANTINE.path)
            unread = {} if quarantine is None else {QUARANTINE.path: self._count(quarantine)}
            counts = {records.path: rows, **unread, **folded.rows}
            checked = {}
        else:
            self._say(feed, "folding")
            part = self._write_facts(feed, feed.stream.fold, checked[records.name].rows, before)
            self._say(feed, "writing tables")
            self._write_tables(feed, partial(self._facts_of, feed.stream, part), tables, checked)
            facts, others = _internal_and_others(self.writer.data, part)
            passing = [f"{part}/is_open=false", *others, *(before.facts if before else ())]
        if not feed.stream.keeps_records:
            checked.pop(records.name)
            passing += tables.pop(records.path).added
        self.writer.on_step("tables written")
        if checked:
            self._say(feed, "checking")
            self._check(checked)
        self.writer.on_step("tables checked")
        if counts is None:
            counts = {path: count for path, change in tables.items() if (count := self._count(change))}
        bad = counts.pop(QUARANTINE.path, 0)
        fault = _first_fault(self.writer.data, tables[QUARANTINE.path].added[0]) if bad else ""
        state = StreamState(batch_id, _query_id(checkpoint), (before.rows if before else 0) + rows, facts, offsets)
        self.writer.commit(BatchDone(feed.name, state, tables))
        self.writer.discard(passing)
        with self._telling:
            self._watch(Batch(feed.name, batch_id, rows, bad, fault, counts, time.monotonic() - began, markers))
        self._compact(tables)

    def _write_records(self, feed: Feed, frame: DataFrame) -> tuple[dict[str, TableChange], dict[str, Checked]]:
        """Read the source once, and write. Errors are rare: if there are any, the good rows are written again without them."""
        table, data = feed.stream.records, self.writer.data
        columns = column_types(table)
        part = self._write(table.path, frame.select(*columns, ERROR.name))
        self.writer.on_step("records written")
        tables = {}
        if _has_values(data, part, ERROR.name):
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

    def _fold_small(self, feed: Feed, before: StreamState | None, rows: int, records: Parts) -> Folded | None:
        """Fold and write a batch of few records without Spark, unless it touches too much."""
        if rows > self._small_records:
            return None
        self._say(feed, "folding")
        folded = fold_small(self.writer, feed.name, feed.stream, before.facts if before else (), records[0])
        if folded is not None:
            self.writer.on_step("facts written")
        return folded

    def _write_facts(self, feed: Feed, fold: Fold, records: DataFrame, before: StreamState | None) -> str:
        """Write the facts that ended in this batch and those open after it, by kind. Return the part."""
        from pyspark.sql import functions as f

        facts = fold(records, self._open_facts(feed, before), shards=self._shards)
        part = self._write(
            f"state/{stream_path(feed.name)}",
            facts.withColumn("is_open", f.col("valid_to_offset").isNull()),
            "is_open",
            "kind",
        )
        self.writer.on_step("facts written")
        return part

    def _open_facts(self, feed: Feed, before: StreamState | None) -> DataFrame:
        """Return all facts that are open: the open rows of the tables, and the internal facts."""
        columns = {column.name: column.type for column in feed.stream.facts}
        facts, data = before.facts if before else (), self.writer.data
        base = facts[0].rpartition("/kind=")[0] or facts[0] if facts else None
        found = read_parts(self.spark, data, facts, columns, base)
        if any(part.endswith(_ALL_OPEN) for part in facts):  # written by an earlier version: they are all there
            return found
        for table in feed.stream.tables:
            state = self.writer.manifest.tables.get(table.path)
            parts = state.present.get(feed.name, ()) if state else ()
            if parts and table.reopen is not None:
                rows = table.reopen(read_parts(self.spark, data, parts, column_types(table)))
                found = found.unionByName(rows, allowMissingColumns=True)
        return found

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
        rows.write.partitionBy(*by).parquet((self.writer.data / part).url)
        return part

    def _count(self, change: TableChange) -> int:
        return sum(rows_of(self.writer.data, part) for part in change.added + (change.present or ()))

    def _compact(self, tables: Iterable[str]) -> None:
        """Merge small parts of tables, each in its own commit."""
        with self._compacting:
            self._compact_each(tables)

    def _compact_each(self, tables: Iterable[str]) -> None:
        for path in tables:
            state = self.writer.manifest.tables[path]
            sizes = {part: bytes_of(self.writer.data, part) for part in state.lasting}
            small = [part for part, size in sizes.items() if size < SMALL_PART_BYTES]
            if len(small) <= self._compact_parts:
                continue
            merged = tuple(small[-newest_to_merge([sizes[part] for part in small], self._compact_parts) :])
            total = sum(sizes[part] for part in merged)
            if total < MERGED_HERE_BYTES:
                into = merge_parts(self.writer, path, merged)
            else:
                rows = read_parts(self.spark, self.writer.data, merged, state.columns)
                into = self._write(path, rows.coalesce(1 + total // SMALL_PART_BYTES))
            self.writer.commit_compaction(path, merged, (into,))
        if self.writer.manifest.version - self._swept >= _SWEEP_COMMITS:
            self._swept = self.writer.manifest.version
            self.writer.sweep()


def newest_to_merge(sizes: Sequence[int], limit: int) -> int:
    """Return how many of the newest parts are to be merged: as many as are not much larger than all that are newer.

    So a row is written again a few times in all, however many parts follow.

    >>> newest_to_merge([100, 1, 1, 1], limit=2)
    3
    """
    count = min(max(2, limit // 2), len(sizes))
    while count < len(sizes) and sizes[-count - 1] <= 2 * sum(sizes[-count:]):
        count += 1
    return count


def _query_id(checkpoint: Path) -> str:
    return str(json.loads((checkpoint / "metadata").read_text())["id"])


def _offsets(checkpoint: Path, batch_id: int) -> str:
    """Return the source's offsets after this batch. Spark writes them before it starts the batch."""
    lines = (checkpoint / "offsets" / str(batch_id)).read_text().splitlines()
    return "\n".join(lines[2:])


def _existing(data: Folder, part: str, *below: str) -> list[Parts]:
    """Return, for each of these folders of a part, itself if it exists."""
    return [(f"{part}/{name}",) if data.files(f"{part}/{name}") else () for name in below]


def _internal_and_others(data: Folder, part: str) -> tuple[Parts, Parts]:
    """Return the parts of the open facts that no table has, and those of the others."""
    kinds = data.folders(f"{part}/{_ALL_OPEN}")
    internal = tuple(f"{part}/{_ALL_OPEN}/{name}" for name in kinds if name.startswith("kind=_"))
    return internal, tuple(f"{part}/{_ALL_OPEN}/{name}" for name in kinds if not name.startswith("kind=_"))


def rows_of(data: Folder, part: str) -> int:
    return sum(rows_in(data, file.name) for file in files_of(data, (part,)))


def _markers(data: Folder, part: str) -> int:
    """Return the number of markers of transactions among the records of a part."""
    columns = (read_table_of(data, file.name, ["is_control"]).column(0) for file in files_of(data, (part,)))
    return sum(chunk.true_count for column in columns for chunk in column.chunks)


def _first_fault(data: Folder, part: str) -> str:
    """Return where the first fault of a part of the quarantine is, and what is wrong there."""
    tables = (read_table_of(data, file.name, ["file", "reason"]) for file in files_of(data, (part,)))
    first = next(table for table in tables if table.num_rows).slice(0, 1).to_pylist()[0]
    return f"{first['file']}: {first['reason']}" if first["file"] else str(first["reason"])


def _has_values(data: Folder, part: str, column: str) -> bool:
    """Return whether a column has a value anywhere, according to the statistics of the files."""
    from pyarrow.parquet import read_metadata

    for file in files_of(data, (part,)):
        found = read_metadata(data.source(file.name))
        for group in map(found.row_group, range(found.num_row_groups)):
            for chunk in map(group.column, range(group.num_columns)):
                statistics = chunk.statistics if chunk.path_in_schema == column else None
                if chunk.path_in_schema == column and (
                    statistics is None or not statistics.has_null_count or statistics.null_count < group.num_rows
                ):
                    return True
    return False


def bytes_of(data: Folder, part: str) -> int:
    return sum(file.size for file in files_of(data, (part,)))
