"""`kafka_metadata` through Spark: a real cluster's logs, a live node, streams, damage, secrets."""

from __future__ import annotations

import base64
import json
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.client.admin.topics import NewTopic
from barnabas.client.sync import Admin
from barnabas.lake.declared_column import ddl
from barnabas.lake.sources.metadata import COLUMNS, ERROR
from barnabas.testing import Broker
from tests.lake.metadata_golden import (
    CLUSTER_ID,
    COMMITTED_END,
    LOG_END_OF_NODE_1,
    damage,
    data_of,
    dumped,
    name_of,
    secrets,
    unpack,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

LOG = "__cluster_metadata-0"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    return unpack(tmp_path_factory.mktemp("golden"))


def read(spark: SparkSession, *paths: Path, schema: str | None = None, **options: str) -> DataFrame:
    reader = spark.read.format("kafka_metadata").options(**options)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load(",".join(map(str, paths)))


def test_a_real_log_is_what_kafkas_own_tool_prints_row_for_row(spark: SparkSession, nodes: dict[int, Path]) -> None:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in read(spark, nodes[1], includeSecrets="true", includeBootstrap="true", maxPartitionBytes="60k").collect():
        found[str(Path(row.source_file).relative_to(nodes[1].parent))].append(row)
    expected = defaultdict(list)
    for record in dumped():
        expected[record["file"]].append(record)
    assert set(found) == set(expected)
    for file, records in expected.items():
        rows = sorted(found[file], key=lambda row: (row.position, row.batch_index))
        assert len(rows) == len(records)
        for row, record in zip(rows, records, strict=True):
            assert json.loads(row.payload) == data_of(record)
            assert row.record_type == name_of(record)
            assert row.is_control is record["control"]
            assert record["control"] or row.record_version == record["payload"]["version"]
            assert row.leader_epoch == record["partition_leader_epoch"]
            assert len(row.raw) == record["value_size"]
            assert round(row.append_time.timestamp() * 1000) == record["timestamp"]
            assert row.batch_index == record["offset"] - record["base_offset"]
            assert (row.cluster_id, row.node_id) == (CLUSTER_ID, 1)
            if row.is_snapshot:
                assert (row.offset, row.base_offset, row.last_offset, row.committed) == (None, None, None, True)
                assert file.endswith("bootstrap.checkpoint") or int(Path(file).name[:20]) == row.snapshot_end_offset
            else:
                assert (row.offset, row.base_offset) == (record["offset"], record["base_offset"])
                assert row.snapshot_end_offset is None


def test_copies_say_what_is_committed_and_merged_is_that_alone(spark: SparkSession, nodes: dict[int, Path]) -> None:
    schema = "node_id int, offset long, committed boolean"
    rows = read(spark, *nodes.values(), schema=schema).where("offset is not null").collect()
    assert {row.committed for row in rows if row.offset < COMMITTED_END} == {True}
    tail = [row for row in rows if row.offset >= COMMITTED_END]
    assert {(row.node_id, row.committed) for row in tail} == {(1, None)}
    assert len(tail) == LOG_END_OF_NODE_1 - COMMITTED_END
    merged = read(spark, *nodes.values(), schema=schema, copies="merged").collect()
    assert sorted(row.offset for row in merged) == list(range(COMMITTED_END))


def test_no_column_of_a_default_read_has_a_secret(spark: SparkSession, nodes: dict[int, Path]) -> None:
    rows = read(spark, *nodes.values(), schema=f"{ddl(COLUMNS)}, error string", includeBootstrap="true").collect()
    known = secrets()
    assert len(known) == 16
    decoded = [base64.b64decode(secret) for secret in known]
    for row in rows:
        text = " ".join(str(value) for value in row.asDict().values() if not isinstance(value, bytearray))
        assert not [secret for secret in known if secret in text]
        assert not [secret for secret in decoded if secret in bytes(row.raw or b"")]
    masked = [row for row in rows if row.record_type == "ConfigRecord" and "no.such.config" in row.payload]
    assert masked
    assert all(json.loads(row.payload)["value"] in ("********", None) for row in masked)


def test_reading_works_with_push_down_and_without_it(spark: SparkSession, nodes: dict[int, Path]) -> None:
    for enabled in ("true", "false"):
        spark.conf.set("spark.sql.python.filterPushdown.enabled", enabled)
        try:
            some = read(spark, nodes[1], schema="offset long", pushFilters="true").where("offset >= 7 and offset < 9")
            assert [row.offset for row in some.collect()] == [7, 8]
        finally:
            spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def test_a_dataframe_has_all_of_its_rows_after_a_query_that_filtered_them(
    spark: SparkSession, nodes: dict[int, Path]
) -> None:
    frame = read(spark, nodes[1], schema="offset long")
    assert frame.where("offset = 9").count() == 1
    assert frame.where("offset is not null").count() == LOG_END_OF_NODE_1
    both = frame.where("offset = 7").union(frame.where("offset = 5"))
    assert sorted(row.offset for row in both.collect()) == [5, 7]


def test_the_payload_can_be_a_variant(spark: SparkSession, nodes: dict[int, Path]) -> None:
    frame = read(spark, nodes[1], payload="variant").where("record_type = 'TopicRecord' and offset < 200")
    assert dict(frame.dtypes)["payload"] == "variant"
    names = frame.selectExpr("variant_get(payload, '$.name', 'string') as name", "topic_name").collect()
    assert names
    assert all(row.name == row.topic_name for row in names)


def test_a_batch_that_is_damaged_is_a_row_that_says_where_or_an_error(
    spark: SparkSession, nodes: dict[int, Path], tmp_path: Path
) -> None:
    shutil.copytree(nodes[1], tmp_path / "d0")
    position, offsets = damage(tmp_path / "d0" / LOG / "00000000000000001295.log", 1300)
    schema = f"{ddl(COLUMNS)}, error string"
    assert ERROR.name == "error"
    rows = read(spark, tmp_path / "d0", schema=schema).where("not is_snapshot").collect()
    (bad,) = [row for row in rows if row.error is not None]
    assert (bad.position, bad.base_offset, bad.offset, bad.payload, bad.raw) == (position, offsets[0], None, None, None)
    assert bad.source_file.endswith("00000000000000001295.log")
    assert bad.cluster_id == CLUSTER_ID
    assert set(range(LOG_END_OF_NODE_1)) - {row.offset for row in rows} == set(offsets)
    with pytest.raises(Exception, match=r"00000000000000001295\.log, position \d+: "):
        read(spark, tmp_path / "d0", schema="offset long", mode="FAILFAST").count()


def test_options_that_are_not_known_are_an_error_that_names_those_that_are(
    spark: SparkSession, nodes: dict[int, Path]
) -> None:
    with pytest.raises(Exception, match=r"has no option topik; known options are .*startingOffsets"):
        read(spark, nodes[1], topik="x").count()


# Streams


def stream(spark: SparkSession, tmp_path: Path, *paths: Path, **options: str) -> tuple[list[Row], list[int]]:
    """One run that takes what is available: its rows, and how many each micro-batch had."""
    rows: list[Row] = []
    sizes: list[int] = []

    def take(frame: DataFrame, _: int) -> None:
        found = frame.collect()
        rows.extend(found)
        sizes.append(len(found))

    schema = (
        "cluster_id string, node_id int, offset long, is_snapshot boolean, snapshot_end_offset long, committed boolean"
    )
    reader = spark.readStream.format("kafka_metadata").schema(schema).options(**options)
    if paths:
        reader = reader.option("paths", ",".join(map(str, paths)))
    query = (
        reader.load()
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    return rows, sizes


def test_a_stream_reads_each_committed_offset_once_and_goes_on_where_it_was(
    spark: SparkSession, nodes: dict[int, Path], tmp_path: Path
) -> None:
    paths = [tmp_path / f"node{node}" for node in (1, 2)]
    for node, path in zip((1, 2), paths, strict=True):
        shutil.copytree(nodes[node], path)
    later = {}
    for path in paths:  # as the directories were before the last segment, and the snapshots behind its begin
        for each in [*(path / LOG).glob("*4706*"), *(path / LOG).glob("*4762*")]:
            later[each] = each.read_bytes()
            each.unlink()
        (path / LOG / "leader-epoch-checkpoint").unlink()
    first, sizes = stream(spark, tmp_path, *paths, maxRowsPerTrigger="2000")
    assert sorted(row.offset for row in first) == list(range(4706))
    assert len(sizes) > 2
    assert all(size <= 2000 for size in sizes)
    for each, content in later.items():
        each.write_bytes(content)
    second, _ = stream(spark, tmp_path, *paths)
    assert sorted(row.offset for row in second) == list(range(4706, COMMITTED_END))
    assert {row.committed for row in first + second} == {True}


# A live cluster


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"orders": 3, "payments": 1}) as broker:
        yield broker


def test_a_live_node_gives_what_is_in_its_directory(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    controllers = {"bootstrap.controllers": broker.listeners["CONTROLLER"]}
    schema = (
        "cluster_id string, node_id int, offset long, leader_epoch int, record_type string, committed boolean, "
        "payload string"
    )

    def live(**options: str) -> list[Any]:
        return spark.read.format("kafka_metadata").schema(schema).options(**controllers, **options).load().collect()

    disk = read(spark, broker.data_dir, schema=f"{schema}, is_snapshot boolean").where("not is_snapshot").collect()
    found = {row.offset: row for row in live()}
    assert {row.offset: tuple(row)[:-1] for row in disk} == {
        offset: tuple(row) for offset, row in found.items() if offset <= disk[-1].offset
    }
    assert [row.record_type for row in disk].count("PartitionRecord") == 4
    first, _ = stream(spark, tmp_path, **controllers)
    assert sorted(row.offset for row in first) == list(range(len(first)))
    with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        admin.create_topics([NewTopic("later", 2)])
    second, _ = stream(spark, tmp_path, **controllers)
    assert min(row.offset for row in second) == len(first)
    assert len(second) >= 3
