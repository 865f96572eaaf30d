"""`kafka_log` in Spark, on the data of a node of Apache Kafka 4.3.1: every row, subsets, filters, faults and streams.

data/consumed_records.jsonl.gz: what a consumer got of the partitions that this node has, in both isolations.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.lake.sources.log import COLUMNS
from barnabas.storage import write_topic_id
from barnabas.wire.primitives import Uuid
from tests.lake.reading.test_log_planning import add_batch, make_log, make_log_dir
from tests.storage.golden import data_batches, extract_node

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

DATA = Path(__file__).parents[1] / "data"
PLACE = "topic string, partition int, offset bigint"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extract_node(tmp_path_factory.mktemp("node"))


def load(spark: SparkSession, node: Path, schema: str | None = None, **options: str) -> DataFrame:
    reader = spark.read.format("kafka_log").options(**options)
    return (reader.schema(schema) if schema else reader).load(f"{node / 'd0'},{node / 'd1'}")


def places(frame: DataFrame) -> list[tuple[str, int, int]]:
    return sorted((row.topic, row.partition, row.offset) for row in frame.collect())


def to_bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def to_time(timestamp_ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp_ms)


def content(row: Row) -> tuple[Any, ...]:
    headers = None if row.headers is None else [(header.key, header.value) for header in row.headers]
    return row.key, row.value, headers, row.timestamp.astimezone(UTC)


def expected_content(record: dict[str, Any]) -> tuple[Any, ...]:
    headers = [(key, to_bytes(value)) for key, value in record["headers"]] or None
    return to_bytes(record["key"]), to_bytes(record["value"]), headers, to_time(record["timestamp"])


def test_every_row_is_what_kafkas_own_classes_read(spark: SparkSession, node: Path) -> None:
    frame = load(spark, node)
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [each[:2] for each in COLUMNS]
    rows = {(str(Path(row.segment).relative_to(node)), row.offset): row for row in frame.collect()}
    count = 0
    for file, batches in data_batches().items():
        topic, _, partition = file.split("/")[1].rpartition("-")
        for batch in batches:
            for record in batch["records"]:
                row = rows[file, record["offset"]]
                count += 1
                assert content(row) == expected_content(record)
                assert (row.topic, row.partition, row.sequence) == (topic, int(partition), record["sequence"])
                assert row.timestampType == (batch["timestamp_type"] == "LogAppendTime")
                assert (row.position, row.compression) == (batch["position"], batch["codec"])
                assert (row.leader_epoch, row.producer_id) == (batch["leader_epoch"], batch["producer_id"])
                assert (row.producer_epoch, row.is_control) == (batch["producer_epoch"], batch["control"])
                assert row.is_transactional == batch["transactional"]
                assert (row.cluster_id, row.node_id) == ("Z29sZC1jbHVzdGVyLTAwMQ", 1)
                assert row.topic_id is not None
    assert count == len(rows) == 895


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_with_an_isolation_it_is_what_a_consumer_gets(spark: SparkSession, node: Path, isolation: str) -> None:
    with gzip.open(DATA / "consumed_records.jsonl.gz", "rt") as file:
        records = [record for record in map(json.loads, file) if record["isolation"] == isolation]
    expected = {(each["topic"], each["partition"], each["offset"]): expected_content(each) for each in records}
    topics = ",".join({each["topic"] for each in records})
    schema = f"headers array<struct<key:string,value:binary>>, value binary, key binary, timestamp timestamp, {PLACE}"

    rows = load(spark, node, schema, isolation=isolation, topics=topics).collect()

    asked = {each[:2] for each in expected}
    found = {(row.topic, row.partition, row.offset): content(row) for row in rows}
    assert {place: each for place, each in found.items() if place[:2] in asked} == expected
    assert len(rows) == len(found) and len(expected) > 600


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before or "")


FILTERS = (
    "topic = 'd-wire' and offset between 3 and 9",
    "topic like 'd-%' and partition in (1, 2) and offset <> 4",
    "timestamp > '2026-11-15 19:40:00' and timestamp <= '2026-11-15 19:48:01.873' and topic in ('r-move', 'd-del', 'd-none')",
)


def test_filters_say_the_same_with_push_down_and_without(spark: SparkSession, node: Path) -> None:
    schema = f"timestamp timestamp, {PLACE}"
    everything = load(spark, node, schema).toPandas()
    assert len(everything) == 895
    for condition in FILTERS:
        pushed = places(load(spark, node, schema, pushFilters="true").where(condition))
        with setting(spark, PUSHDOWN, "false"):
            plain = load(spark, node, schema).where(condition)
            assert places(plain) == pushed
        assert 0 < len(pushed) < 400


def test_a_frame_may_be_filtered_in_several_ways_at_once(spark: SparkSession, node: Path) -> None:
    frame = load(spark, node, PLACE)
    wire, move = frame.where("topic = 'd-wire'"), frame.where("topic = 'r-move'")

    assert wire.union(move).count() == 70
    assert frame.count() == 895


def test_pushed_filters_prune_what_is_planned(node: Path) -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, In, LessThan, StringStartsWith
    from pyspark.sql.types import IntegerType, LongType, StructType

    from barnabas.lake.sources.log import KafkaLog

    def planned(*filters: Any, **options: str) -> set[str]:
        given = {"path": f"{node / 'd0'},{node / 'd1'}", "pushFilters": "true", **options}
        reader = KafkaLog(given).reader(StructType().add("partition", IntegerType()).add("offset", LongType()))
        assert list(reader.pushFilters(list(filters))) == list(filters)
        return {str(share.place) for part in reader.partitions() for share in part.value}

    assert planned(EqualTo(("topic",), "d-none")) == {"d-none-0", "d-none-1"}
    assert planned(StringStartsWith(("topic",), "d-no"), In(("partition",), (1, 7))) == {"d-none-1"}
    late = planned(GreaterThanOrEqual(("offset",), 100))
    assert late and all(name.startswith("r-cancel") for name in late)
    assert planned(LessThan(("offset",), 0)) == set()
    # What is behind the last entry of a time index may be of any time.
    assert len(planned(GreaterThanOrEqual(("timestamp",), datetime(2030, 1, 1, tzinfo=UTC)))) < 3
    assert len(planned(EqualTo(("topic",), "d-none"), pushFilters="false")) > 20


@pytest.mark.parametrize(
    ("schema", "options", "reason"),
    [
        (None, {"topic": "d-wire"}, "kafka_log has no option topic"),
        ("offsets bigint", {}, "kafka_log has no column offsets"),
        ("offset int", {}, "column offset has type bigint, not int"),
    ],
)
def test_what_is_asked_wrongly_is_said(
    spark: SparkSession, node: Path, schema: str | None, options: dict[str, str], reason: str
) -> None:
    with pytest.raises(Exception, match=reason):
        load(spark, node, schema, **options).count()


def test_a_batch_that_is_damaged_is_a_row_with_its_place_or_an_exception(spark: SparkSession, tmp_path: Path) -> None:
    log_dir = make_log_dir(tmp_path / "d")
    log = make_log(log_dir, batches=5)
    path = log.segments[0].log.path
    at = [position for position, _ in log.segments[0].headers()][2]
    data = bytearray(path.read_bytes())
    data[at + 70] ^= 1
    path.write_bytes(data)

    def read(schema: str, **options: str) -> list[Row]:
        return spark.read.format("kafka_log").schema(schema).options(**options).load(str(log_dir)).collect()

    rows = read(f"value binary, segment string, position bigint, error string, {PLACE}")
    [bad] = [row for row in rows if row.error is not None]
    assert (bad.segment, bad.position, bad.topic, bad.partition, bad.offset) == (str(path), at, "t", 0, 6)
    assert bad.value is None and "checksum" in bad.error
    good = sorted(row.offset for row in rows if row.error is None)
    assert good == [*range(6), *range(9, 15)] == sorted(row.offset for row in read("offset bigint"))
    with pytest.raises(Exception, match=f"{path.name} at position {at}, batch with offset 6: wrong checksum"):
        read("offset bigint", mode="FAILFAST")


class Sink:
    """Rows by the number of their batch: one that is run again is there once."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[str, int, int]]] = {}

    def __call__(self, frame: DataFrame, number: int) -> None:
        self.batches[number] = places(frame)

    @property
    def rows(self) -> list[tuple[str, int, int]]:
        return sorted(row for rows in self.batches.values() for row in rows)


def follow(
    spark: SparkSession, log_dir: Path, sink: Callable[[DataFrame, int], None], checkpoint: Path, **options: str
) -> None:
    stream = spark.readStream.format("kafka_log").schema(PLACE).options(**options).load(str(log_dir))
    query = (
        stream.writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()


def test_a_stream_goes_on_where_it_was_and_notices_another_log(spark: SparkSession, tmp_path: Path) -> None:
    log_dir, checkpoint = make_log_dir(tmp_path / "d"), tmp_path / "checkpoint"
    log = make_log(log_dir, batches=10)
    write_topic_id(log_dir / "t-0", Uuid.parse("yZpx8IkwSUm-bTxJFLsHWg"))
    sink = Sink()

    def fail(frame: DataFrame, number: int) -> None:
        sink(frame, number)
        if number == 1:
            raise RuntimeError("killed in its second batch")

    with pytest.raises(Exception, match="killed in its second batch"):
        follow(spark, log_dir, fail, checkpoint, maxRowsPerTrigger="12")
    assert sorted(sink.batches) == [0, 1]
    add_batch(log, 10)
    follow(spark, log_dir, sink, checkpoint, maxRowsPerTrigger="12")
    assert sink.rows == [("t", 0, offset) for offset in range(33)]

    log.abandon()
    shutil.rmtree(log_dir / "t-0")
    make_log(log_dir, batches=20)
    write_topic_id(log_dir / "t-0", Uuid.parse("jcRWXqC-RgugvYEx2qKmjw"))
    with pytest.raises(Exception, match="re-created: its id was yZpx8IkwSUm-bTxJFLsHWg"):
        follow(spark, log_dir, sink, checkpoint)
    before = len(sink.rows)
    follow(spark, log_dir, sink, checkpoint, failOnDataLoss="false")
    assert len(sink.rows) == before + 60
