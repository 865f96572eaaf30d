"""`kafka_consumer_offsets` and `kafka_transaction_state` in Spark: rows, faults, streams, and facts folded from them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.lake.declared_column import ddl
from barnabas.lake.facts import schema
from barnabas.lake.facts.groups import GroupsFold, fold_groups
from barnabas.lake.facts.transactions import TransactionsFold, fold_transactions
from barnabas.lake.sources import consumer_offsets, transaction_state
from barnabas.lake.tables.coordinators import GROUP_TABLES, TRANSACTION_TABLES
from tests.lake.coordinator_histories import extract_coordinators, read_lines, run
from tests.lake.reading.decoding.test_coordinator_records import printed
from tests.storage.golden import extract_node

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

OFFSETS, TRANSACTIONS = "kafka_consumer_offsets", "kafka_transaction_state"
TEXT = re.compile(
    r'key: \{"type":"(\d+)","data":(.*?)\} payload: (?:<DELETE>|\{"version":"(\d+)","data":(.*)\})', re.DOTALL
)


@pytest.fixture(scope="module")
def coordinators(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extract_coordinators(tmp_path_factory.mktemp("coordinators"))


def log_dirs(node: Path) -> str:
    return f"{node / 'd0'},{node / 'd1'}"


def load(spark: SparkSession, source: str, path: str, **options: str) -> DataFrame:
    return spark.read.format(source).options(**options).load(path)


@pytest.mark.parametrize("source", [OFFSETS, TRANSACTIONS])
def test_rows_are_what_kafkas_tool_prints(spark: SparkSession, tmp_path: Path, source: str) -> None:
    node = extract_node(tmp_path)
    topic = consumer_offsets.TOPIC if source == OFFSETS else transaction_state.TOPIC
    expected = {place: record for place, record in printed().items() if topic in place[0]}
    assert len(expected) == (40 if source == OFFSETS else 24)
    for row in load(spark, source, log_dirs(node)).collect():
        record = expected.pop((str(Path(row.segment).relative_to(node)), row.offset))
        found = TEXT.fullmatch(record["text"])
        assert found is not None
        key_version, key, version, payload = found.groups()
        assert (row.key_version, row.key, row.payload) == (int(key_version), key, payload)
        assert row.record_version == (None if version is None else int(version))
        assert row.is_tombstone == (payload is None) == (row.raw_value is None)
        assert (row.cluster_id, row.node_id) == ("Z29sZC1jbHVzdGVyLTAwMQ", 1)
        assert row.timestamp.replace(tzinfo=UTC) == datetime.fromtimestamp(record["timestamp"] / 1000, UTC)
        assert row.leader_epoch == record["partition_leader_epoch"]
        assert len(row.raw_key) == record["key_size"]
        assert (row.is_control, row.control_type, row.is_transactional) == (False, None, False)
        about = json.loads(key)
        if source == OFFSETS:
            assert row.group_id == about.get("groupId", about.get("group"))
            assert (row.topic, row.topic_partition) == (about.get("topic"), about.get("partition"))
            assert row.member_id == about.get("memberId")
        else:
            said = json.loads(payload)
            assert (row.transactional_id, row.record_type) == (about["transactionalId"], "TransactionLog")
            assert (row.its_producer_id, row.its_producer_epoch) == (said["producerId"], said["producerEpoch"])
    assert not expected


def test_a_transaction_shows_its_marker_and_options_and_filters_leave_less(
    spark: SparkSession, coordinators: Path
) -> None:
    frame = load(spark, OFFSETS, log_dirs(coordinators), partitions="2")
    rows = frame.where("is_transactional").orderBy("offset").collect()
    assert [row.control_type for row in rows] == [None, "COMMIT"]
    assert [row.record_type for row in rows] == ["OffsetCommit", "EndTxnMarker"]
    assert rows[1].payload == '{"coordinatorEpoch":0}'
    assert rows[0].producer_id == rows[1].producer_id == 2000
    assert {row.partition for row in frame.collect()} == {2}
    # A filter on the topic of an offset is none on the topic of the log.
    assert load(spark, OFFSETS, log_dirs(coordinators)).where("topic = 'd-snappy'").count() > 0
    assert load(spark, OFFSETS, log_dirs(coordinators)).where("partition = 1 and offset in (3, 4)").count() == 2
    assert load(spark, OFFSETS, log_dirs(coordinators), startingOffsets="30", partitions="1").count() == 10
    with pytest.raises(
        Exception, match=r"kafka_consumer_offsets has no option isolation; known options are .*clusterId"
    ):
        load(spark, OFFSETS, log_dirs(coordinators), isolation="read_committed").count()


def test_what_cannot_be_read_is_a_row_with_its_place_if_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    node = extract_coordinators(tmp_path)
    segment = node / "d1/__consumer_offsets-1/00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[200] ^= 0xFF  # in the second batch, which begins at 105
    segment.write_bytes(data)
    asked = "error string, segment string, position bigint, partition int, offset bigint, group_id string"
    rows = spark.read.format(OFFSETS).schema(asked).option("partitions", "1").load(str(node / "d1")).collect()
    (bad,) = [row for row in rows if row.error is not None]
    assert (bad.segment, bad.position, bad.partition, bad.offset, bad.group_id) == (str(segment), 105, 1, 1, None)
    assert len(rows) == 40
    frame = load(spark, OFFSETS, str(node / "d1"), mode="FAILFAST", partitions="1")
    with pytest.raises(Exception, match="at position 105"):
        frame.count()


# --- streams and facts


def follow(spark: SparkSession, source: str, path: str, checkpoint: Path, **options: str) -> Iterator[list[Row]]:
    """The batches of a stream, up to what there is now."""
    batches: list[list[Row]] = []
    stream = spark.readStream.format(source).options(**options).load(path)
    query = (
        stream.writeStream.option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .foreachBatch(lambda frame, _: batches.append(frame.collect()))
        .start()
    )
    query.awaitTermination()
    return iter(batches)


def test_a_stream_gives_each_record_once_in_batches_of_a_size(
    spark: SparkSession, coordinators: Path, tmp_path: Path
) -> None:
    batches = list(follow(spark, OFFSETS, log_dirs(coordinators), tmp_path / "c", maxRowsPerTrigger="50"))
    places = [(row.partition, row.offset) for batch in batches for row in batch]
    assert len(batches) > 1
    assert sorted(places) == sorted(
        (row.partition, row.offset) for row in load(spark, OFFSETS, log_dirs(coordinators)).collect()
    )
    assert not [row for batch in follow(spark, OFFSETS, log_dirs(coordinators), tmp_path / "c") for row in batch]


def no_facts(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], ddl(schema.columns()))


def as_values(rows: list[Row]) -> list[dict[str, Any]]:
    found = [row.asDict(recursive=True) for row in rows]
    return sorted(found, key=lambda row: json.dumps(row, default=str, sort_keys=True))


def test_facts_of_groups_in_two_batches_are_those_of_one_and_of_the_pure_fold(
    spark: SparkSession, coordinators: Path
) -> None:
    records = load(spark, OFFSETS, log_dirs(coordinators)).cache()
    once = fold_groups(records, no_facts(spark), shards=2).cache()
    first = fold_groups(records.where("offset <= 14"), no_facts(spark), shards=2).cache()
    second = fold_groups(records.where("offset > 14"), first, shards=3).cache()
    first_rows, second_rows, once_rows = first.collect(), second.collect(), once.collect()
    in_two = [row for row in first_rows if row.valid_to_offset is not None] + second_rows
    assert as_values(in_two) == as_values(once_rows)

    found = {(row.log, row.kind, row.key, row.valid_from_offset): row for row in once_rows if row.kind[0] != "_"}
    for path in coordinators.glob("d?/__consumer_offsets-*/*.log"):
        ended, still = run(GroupsFold, read_lines(path))
        for kind, facts in [*ended.items(), *still.items()]:
            for fact in facts if kind[0] != "_" else ():
                row = found.pop((path.parent.name, kind, fact[0], fact[1]))
                assert (row.valid_to_offset, row.exact) == (fact[4], fact[6])
    assert not found

    built: dict[str, list[Row]] = {}
    for table in GROUP_TABLES:
        rows = table.build(once).collect()
        assert list(rows[0].asDict()) == [column.name for column in table.columns]
        assert len({tuple(row[name] for name in table.keys) for row in rows}) == len(rows)
        assert not [row for row in rows for name in table.not_null if row[name] is None]
        built[table.name] = rows
    offsets = [row for row in built["group_offsets"] if row.group_id == "g-classic" and row.valid_to_offset is None]
    assert {(row.topic, row.partition, row.committed_offset) for row in offsets} == {
        ("d-gzip", 0, 60),
        ("d-none", 0, 30),
        ("d-none", 1, 30),
    }


def test_facts_of_transactions_are_those_of_the_pure_fold(spark: SparkSession, coordinators: Path) -> None:
    records = load(spark, TRANSACTIONS, log_dirs(coordinators))
    facts = fold_transactions(records, no_facts(spark), shards=2).cache()
    (table,) = TRANSACTION_TABLES
    rows = table.build(facts).collect()
    found = {(row.log, row.transactional_id, row.valid_from_offset): row for row in rows}
    for path in coordinators.glob("d?/__transaction_state-*/*.log"):
        ended, still = run(TransactionsFold, read_lines(path))
        for fact in ended["transactions"] + still["transactions"]:
            row = found.pop((path.parent.name, fact[7][0], fact[1]))
            assert (row.valid_to_offset, row.state, row.producer_id) == (fact[4], fact[7][3], fact[7][1])
            assert tuple(each.asDict() for each in row.partitions) == fact[7][5]
    assert not found
