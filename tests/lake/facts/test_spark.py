"""The fold through Spark is the fold: shards, micro-batches and open facts on disk make no difference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from barnabas.lake.declared_column import ddl
from barnabas.lake.facts import schema
from barnabas.lake.facts.spark import fold_metadata
from barnabas.lake.sources.metadata import COLUMNS
from barnabas.lake.tables.silver import TABLES
from tests.lake import metadata_golden
from tests.lake.facts.metadata_facts import CLUSTER, Item, as_of, public, rows_of
from tests.lake.facts.test_metadata_golden import facts, items, log, shown
from tests.metadata import golden

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def source_rows(spark: SparkSession, given: Sequence[Item]) -> DataFrame:
    """Records as the data source gives them."""
    rows = [
        {
            "cluster_id": CLUSTER,
            "source_file": "a",
            "position": index,
            "offset": None if item.is_snapshot else item.offset,
            "batch_index": 0,
            "leader_epoch": item.epoch,
            "append_time": item.time_ms * 1000,
            "record_type": type(item.record).__name__,
            "is_snapshot": item.is_snapshot,
            "snapshot_end_offset": item.offset if item.is_snapshot else None,
            "snapshot_epoch": item.epoch if item.is_snapshot else None,
            "topic_id": None if (topic_id := getattr(item.record, "topic_id", None)) is None else str(topic_id),
            "topic_name": getattr(item.record, "name" if hasattr(item.record, "topic_id") else "topic_name", None),
            "resource_name": getattr(item.record, "resource_name", None),
            "raw": item.value(),
        }
        for index, item in enumerate(given)
    ]
    arrow = pa.schema([(column.name, schema.arrow_type(column.type)) for column in COLUMNS])
    return spark.createDataFrame(pa.Table.from_pylist(rows, arrow)).repartition(3)


def in_two_batches(spark: SparkSession, path: Path, shards: tuple[int, int]) -> list[dict[str, Any]]:
    """All facts after two micro-batches; the second begins in the middle, with a snapshot that changes nothing."""
    checkpoint = items("00000000000000003603-0000000004.checkpoint")
    ended, open_facts = [], spark.createDataFrame([], ddl(schema.columns()))
    for number, given in enumerate((log()[:3603], [*checkpoint, *log()[3603:]])):
        made = fold_metadata(source_rows(spark, given), open_facts, shards=shards[number])
        made.write.parquet(str(path / str(number)))
        written = spark.read.schema(ddl(schema.columns())).parquet(str(path / str(number)))
        ended += arrow_rows(written.where("valid_to_offset is not null"))
        open_facts = written.where("valid_to_offset is null")
    found = [*ended, *arrow_rows(open_facts)]
    return sorted(found, key=lambda row: (row["kind"], row["key"], row["valid_from_offset"]))


def arrow_rows(facts: DataFrame) -> list[dict[str, Any]]:
    table = facts.toArrow()
    arrow = pa.schema([schema.arrow_schema().field(name) for name in table.column_names])
    return rows_of(table.cast(arrow).to_batches())


def test_the_fold_through_spark_is_the_fold(spark: SparkSession, tmp_path: Path) -> None:
    assert public(in_two_batches(spark, tmp_path, (3, 1))) == public(facts())
    written = spark.read.schema(ddl(schema.columns())).parquet(str(tmp_path / "*"))
    for table in TABLES:
        assert table.build(written).schema == spark.createDataFrame([], ddl(table.columns)).schema
    topics = next(table for table in TABLES if table.name == "topics").build(written)
    names = [row["value"]["name"] for row in facts() if row["kind"] == "topics" and row["valid_to_offset"] is None]
    # The open ones of the first batch are still there: it is the runner that replaces them.
    assert set(names) <= {row.name for row in topics.where("valid_to_offset is null").select("name").collect()}


def test_three_copies_of_a_log_through_the_source_are_what_the_cluster_showed(
    spark: SparkSession, tmp_path: Path
) -> None:
    paths = ",".join(map(str, metadata_golden.unpack(tmp_path).values()))
    source = spark.read.format("kafka_metadata").option("copies", "merged").option("includeSecrets", "true")
    names = {"offset", "position", "batch_index", "leader_epoch", "append_time", "record_type", "raw", "source_file"}
    names |= {"cluster_id", "is_snapshot", "snapshot_end_offset", "snapshot_epoch"}
    names |= {"topic_id", "topic_name", "resource_name"}
    needed = [column for column in COLUMNS if column.name in names]
    records = source.schema(ddl(needed)).load(paths)
    found = arrow_rows(fold_metadata(records, spark.createDataFrame([], ddl(schema.columns())), shards=2))
    offset = golden.expected()["metadata_offset_before"] - 1
    assert as_of(found, offset) == shown()
    assert max(row["valid_from_offset"] for row in found) < metadata_golden.COMMITTED_END
    assert {row["cluster_id"] for row in found} == {metadata_golden.CLUSTER_ID}
