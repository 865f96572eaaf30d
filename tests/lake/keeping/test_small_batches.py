"""Batches that are folded without Spark: many of them leave the rows that one fold of everything has."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from bench.lake_change import History

from barnabas.lake.facts import schema
from barnabas.lake.facts.spark import run_shard
from barnabas.lake.keeping import small_batches
from barnabas.lake.keeping.checks import CheckFailedError
from barnabas.lake.keeping.folders import read_table, write_table
from barnabas.lake.keeping.manifest import BatchDone, StreamState, TableChange
from barnabas.lake.keeping.publishing import files_of
from barnabas.lake.keeping.runner import newest_to_merge
from barnabas.lake.keeping.small_batches import bucket_of, fold_small
from barnabas.lake.keeping.store import Lake, Writer
from barnabas.lake.reading.coordinator_rows import LOGS, read_rows
from barnabas.lake.reading.log_planning import plan as plan_logs
from barnabas.lake.reading.metadata_options import parse_options
from barnabas.lake.reading.metadata_parts import observe, parts_of, plan, read_part, wanted_of
from barnabas.lake.reading.metadata_rows import RowFormat
from barnabas.lake.sources.coordinator_reading import parse_options as parse_log_options
from barnabas.lake.tables.all import STREAMS
from barnabas.lake.tables.streams import Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

METADATA, GROUPS, TRANSACTIONS, _ = STREAMS
NAME = "cluster/stream"


def metadata_records(*log_dirs: Path) -> pa.Table:
    """The committed records of a metadata log, as the stream of the lake reads them."""
    options = parse_options({"path": ",".join(map(str, log_dirs)), "copies": "merged"})
    wanted = wanted_of(options)
    columns = [(column.name, column.type, True) for column in METADATA.records.columns]
    form = RowFormat.of(columns, include_secrets=False, fail_fast=True, to_variant=lambda text: {})
    pieces = [piece for each in observe(options) for piece in plan(each, wanted)]
    batches = [batch for part in parts_of(pieces, wanted) for batch in read_part(part, options, form)]
    return pa.Table.from_batches(batches)


def log_records(stream: Stream, log_dir: Path) -> pa.Table:
    options = parse_log_options(stream.source, stream.topic, {"path": str(log_dir)})
    wanted = pa.schema([(column.name, schema.arrow_type(column.type)) for column in stream.records.columns])
    tasks = plan_logs(options)
    rows = [batch for task in tasks for batch in read_rows(task, wanted, LOGS[stream.topic], fail_fast=True)]
    return pa.Table.from_batches(rows).sort_by(
        [("timestamp", "ascending"), ("partition", "ascending"), ("offset", "ascending")]
    )


def grow(writer: Writer, stream: Stream, records: pa.Table, name: str = NAME) -> small_batches.Folded:
    """One batch, as the runner commits it."""
    part = writer.stage(stream.records.path)
    write_table(writer.data, f"{part}/rows.parquet", records)
    before = writer.manifest.streams.get(name)
    folded = fold_small(writer, name, stream, before.facts if before else (), part)
    assert folded is not None
    columns = {column.name: column.type for column in stream.records.columns}
    state = StreamState((before.batch_id if before else -1) + 1, "query", 0, folded.facts)
    writer.commit(BatchDone(name, state, {stream.records.path: TableChange(columns, (part,)), **folded.tables}))
    return folded


def rows_of(lake: Lake, stream: Stream) -> dict[str, list[str]]:
    """All rows of the tables of a stream, as texts in order."""
    manifest, found = lake.manifest(), {}
    for table in stream.tables:
        tables = [read_table(lake.data, file.name) for file in files_of(lake.data, manifest.tables[table.path].parts)]
        found[table.name] = sorted(repr(row) for each in tables for row in each.to_pylist())
    return found


def folded_at_once(stream: Stream, records: pa.Table) -> dict[str, list[str]]:
    """The rows of one fold of all records, without anything of `small_batches` but the order of columns."""
    assert stream.narrowing is not None
    family = stream.narrowing.family
    routed = stream.narrowing.route(records)
    count = routed.num_rows
    rows = routed.append_column("shard", pa.repeat(pa.scalar(0, pa.int32()), count))
    rows = rows.append_column("packed", pa.nulls(count, pa.binary()))
    batches = rows.select(["shard", "cluster_id", "log", *family.columns, "packed"]).combine_chunks().to_batches()
    found: dict[str, list[str]] = {table.name: [] for table in stream.tables}
    for batch in run_shard(batches, family, 1):
        for row in batch.to_pylist():
            if row["kind"] in found:
                table = next(table for table in stream.tables if table.name == row["kind"])
                values = {**row, **row[row["kind"]]}
                found[row["kind"]].append(repr({column.name: values[column.name] for column in table.columns}))
    return {name: sorted(rows) for name, rows in found.items()}


def cut(chance: random.Random, records: pa.Table, most: int) -> Iterator[pa.Table]:
    """Pieces of a random number of whole batches of the log."""
    names = ("source_file", "position") if "source_file" in records.schema.names else ("segment", "position")
    places = list(zip(*(records[name].to_pylist() for name in names), strict=True))
    ends = [end for end in range(1, len(places) + 1) if end == len(places) or places[end] != places[end - 1]]
    start = 0
    while ends:
        end = ends[: chance.randint(1, most)][-1]
        yield records.slice(start, end - start)
        start, ends = end, [each for each in ends if each > end]


@pytest.fixture(autouse=True)
def small_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_batches, "BUCKET_ROWS", 4)


def test_a_metadata_log_in_small_batches_has_the_rows_of_one_fold(nodes: list[Path], tmp_path: Path) -> None:
    """The log of a cluster of Apache Kafka, with a snapshot's worth of everything."""
    records = metadata_records(*nodes[:3])
    records = records.filter(pa.compute.is_valid(records["offset"]))
    with Writer(tmp_path, grace_s=0) as writer:
        writer.open()
        for batch in cut(random.Random(3), records, 200):
            grow(writer, METADATA, batch)
        assert rows_of(Lake(tmp_path), METADATA) == folded_at_once(METADATA, records)
        parts = writer.manifest.tables["silver/partitions"].present[NAME]
    assert all("/bucket-" in part for part in parts) and len(parts) > 1


@pytest.mark.parametrize("stream", [GROUPS, TRANSACTIONS], ids=["groups", "transactions"])
def test_logs_of_coordinators_in_small_batches_have_the_rows_of_one_fold(
    stream: Stream, nodes: list[Path], tmp_path: Path
) -> None:
    records = log_records(stream, nodes[-1])
    with Writer(tmp_path, grace_s=0) as writer:
        writer.open()
        for batch in cut(random.Random(4), records, 5):
            grow(writer, stream, batch)
        assert rows_of(Lake(tmp_path), stream) == folded_at_once(stream, records)


def test_a_small_batch_touches_what_it_changes(tmp_path: Path) -> None:
    history = History(tmp_path / "log", 500)
    records = metadata_records(tmp_path / "log")
    with Writer(tmp_path / "lake", grace_s=0) as writer:
        writer.open()
        grow(writer, METADATA, records)
        before = writer.manifest.tables
        history.change(1)
        more = metadata_records(tmp_path / "log").slice(records.num_rows)
        folded = grow(writer, METADATA, more)
        after = writer.manifest.tables
    changed = {path for path, state in after.items() if state.version != before[path].version}
    assert changed == {METADATA.records.path, "silver/partitions"}, "topics were read, and are as they were"
    old, new = (set(each["silver/partitions"].present[NAME]) for each in (before, after))
    assert len(old) > 32 and len(old - new) == len(new - old) == 1, "one bucket was replaced"
    assert folded.rows["silver/partitions"] < 40, "the partitions of one topic"
    assert rows_of(Lake(tmp_path / "lake"), METADATA) == folded_at_once(METADATA, metadata_records(tmp_path / "log"))


def test_open_rows_that_have_no_buckets_get_some_and_crowded_ones_are_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(tmp_path / "log", 100)
    records = metadata_records(tmp_path / "log")
    with Writer(tmp_path / "lake", grace_s=0) as writer:
        writer.open()
        monkeypatch.setattr(small_batches, "BUCKET_ROWS", 10_000)
        grow(writer, METADATA, records)
        (whole,) = writer.manifest.tables["silver/partitions"].present[NAME]
        data = Path(str(writer.data))
        (data / whole).rename(data / whole.replace("bucket-0-of-1", "ended=false"))
        state = writer.manifest.tables["silver/partitions"]
        plain = replace(state, present={NAME: (whole.replace("bucket-0-of-1", "ended=false"),)})
        writer.manifest = replace(writer.manifest, tables={**writer.manifest.tables, "silver/partitions": plain})
        history.change(1)
        more = metadata_records(tmp_path / "log")
        monkeypatch.setattr(small_batches, "BUCKET_ROWS", 64)
        grow(writer, METADATA, more.slice(records.num_rows))
        few = writer.manifest.tables["silver/partitions"].present[NAME]
        history.change(1)
        monkeypatch.setattr(small_batches, "BUCKET_ROWS", 2)
        grow(writer, METADATA, metadata_records(tmp_path / "log").slice(more.num_rows))
        many = writer.manifest.tables["silver/partitions"].present[NAME]
    assert 1 < len(few) <= 4 and len(many) > 8
    assert rows_of(Lake(tmp_path / "lake"), METADATA) == folded_at_once(METADATA, metadata_records(tmp_path / "log"))


def test_what_touches_everything_is_left_to_spark(nodes: list[Path], tmp_path: Path) -> None:
    """A snapshot; a log that begins anew; what follows on an open transaction of the metadata log."""
    groups = log_records(GROUPS, nodes[-1])
    metadata = metadata_records(*nodes[:3]).slice(0, 5)
    snapshot = metadata.set_column(metadata.schema.names.index("is_snapshot"), "is_snapshot", pa.array([True] * 5))
    begun = metadata.filter(pa.compute.equal(metadata["record_type"], "BeginTransactionRecord"))
    with Writer(tmp_path, grace_s=0) as writer:
        writer.open()
        grow(writer, GROUPS, groups)
        facts = writer.manifest.streams[NAME].facts
        assert not _folds(writer, GROUPS, facts, groups), "offsets that were read already"
        assert not _folds(writer, METADATA, (), snapshot)
        writer.manifest = replace(writer.manifest, streams={})
        pending = grow(writer, METADATA, begun).facts
        assert any(part.endswith("/kind=_pending") for part in pending)
        assert not _folds(writer, METADATA, pending, metadata)
        assert not _folds(writer, METADATA, ("state/older/1/is_open=true",), metadata), "facts of an earlier version"
        assert not _folds(writer, replace(METADATA, narrowing=None), (), metadata)


def _folds(writer: Writer, stream: Stream, facts: Sequence[str], records: pa.Table) -> bool:
    part = writer.stage(stream.records.path)
    write_table(writer.data, f"{part}/rows.parquet", records)
    return fold_small(writer, NAME, stream, tuple(facts), part) is not None


def test_rows_that_break_a_rule_are_named(nodes: list[Path], tmp_path: Path) -> None:
    records = metadata_records(*nodes[:3]).slice(0, 50)
    with Writer(tmp_path, grace_s=0) as writer:
        writer.open()
        with pytest.raises(CheckFailedError, match=r"metadata_records has several rows with the same .*offset=0"):
            grow(writer, METADATA, pa.concat_tables([records, records]))
        lost = pa.nulls(records.num_rows, pa.string())
        without = records.set_column(records.schema.names.index("cluster_id"), "cluster_id", lost)
        with pytest.raises(CheckFailedError, match="metadata_records has rows without cluster_id"):
            grow(writer, METADATA, without)


def test_a_reference_may_resolve_in_rows_that_the_batch_does_not_touch() -> None:
    partitions = next(table for table in METADATA.tables if table.name == "partitions")
    topics = next(table for table in METADATA.tables if table.name == "topics")
    tables = {"partitions": partitions, "topics": topics}
    rows = _row(partitions, topic_id="a", partition=0)
    there = _row(topics, topic_id="a")
    small_batches._check_references(tables, {"partitions": rows}, lambda kind: there)
    with pytest.raises(
        CheckFailedError, match="partitions refers by cluster_id, topic_id to rows that topics does not"
    ):
        small_batches._check_references(tables, {"partitions": rows}, lambda kind: there.slice(0, 0))


def _row(table: Any, **values: Any) -> pa.Table:
    wanted = pa.schema([(column.name, schema.arrow_type(column.type)) for column in table.columns])
    return pa.Table.from_pylist([{"cluster_id": "c", **values}], schema=wanted)


def test_small_parts_are_merged_without_spark_and_keep_their_place(tmp_path: Path) -> None:
    history = History(tmp_path / "log", 60)
    with Writer(tmp_path / "lake", grace_s=0) as writer:
        writer.open()
        read = 0
        for _ in range(4):
            records = metadata_records(tmp_path / "log")
            grow(writer, METADATA, records.slice(read))
            read = records.num_rows
            history.change(3)
        first, *others = writer.manifest.tables[METADATA.records.path].lasting
        into = small_batches.merge_parts(writer, METADATA.records.path, others[:2])
        writer.commit_compaction(METADATA.records.path, tuple(others[:2]), (into,))
        state = writer.manifest.tables[METADATA.records.path]
    assert state.lasting == (first, into, *others[2:])
    data = Lake(tmp_path / "lake").data
    tables = [read_table(data, file.name) for file in files_of(data, state.parts)]
    assert [row for table in tables for row in table["offset"].to_pylist()] == [*range(read)]


@pytest.mark.parametrize(
    ("sizes", "count"), [([1] * 17, 17), ([64, *[1] * 16], 16), ([64, 20, *[1] * 16], 18), ([900, 64, 20, 1, 1], 2)]
)
def test_parts_are_merged_with_those_that_are_not_much_larger(sizes: list[int], count: int) -> None:
    assert newest_to_merge(sizes, limit=4) == count


def test_spark_and_small_batches_go_on_where_the_other_ended(spark: SparkSession, tmp_path: Path) -> None:
    from barnabas.lake.keeping.feeds import find_feeds
    from barnabas.lake.keeping.runner import Runner

    history = History(tmp_path / "log", 60)
    for small_records in (0, 1000, 0, 1000):
        with Writer(tmp_path / "lake", grace_s=0) as writer:
            feeds = find_feeds([tmp_path / "log"], (METADATA,), {})
            Runner(spark, writer.open(), small_records=small_records).run(feeds)
        history.change(7)
    lake = Lake(tmp_path / "lake")
    manifest = lake.manifest()
    (state,) = manifest.streams.values()
    assert state.batch_id == 3
    read = metadata_records(tmp_path / "log").slice(0, state.rows)
    assert rows_of(lake, METADATA) == folded_at_once(METADATA, read)
    parts = [part for table in manifest.tables.values() for part in table.present.values()]
    assert parts and all("/is_open=true/kind=_" in part for part in state.facts)


def test_keys_keep_their_buckets() -> None:
    assert [bucket_of(key, 8) for key in ("", "orders", "users")] == [0, 6, 1]
