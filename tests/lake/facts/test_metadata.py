"""Metadata facts one by one: what begins, what ends, where, and what is no change at all."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from barnabas import wire
from barnabas.lake.facts import metadata, schema
from barnabas.lake.facts.metadata import FactPosition, MetadataFold
from barnabas.lake.facts.schema import FactWriter
from barnabas.metadata.errors import ReplayError
from barnabas.wire import Uuid
from barnabas.wire.message import Message
from barnabas.wire.records.control import KRaftVersionRecord, LeaderChangeMessage, VotersRecord
from barnabas.wire.records.metadata import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from tests.lake.facts.metadata_facts import (
    Item,
    fold,
    fold_in_runs,
    log_items,
    public,
    record_batch,
    rows_of,
    snapshot_items,
)

ONE, TWO = Uuid(b"1" * 16), Uuid(b"2" * 16)
RETENTION = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="5")


def partition(topic_id: Uuid = ONE) -> PartitionRecord:
    return PartitionRecord(
        partition_id=0,
        topic_id=topic_id,
        replicas=[1, 2],
        isr=[1, 2],
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=[ONE, TWO],
    )


def spans(rows: list[dict[str, Any]], kind: str, *names: str) -> list[tuple[Any, ...]]:
    """From, to, and some of the values."""
    found = [row for row in rows if row["kind"] == kind]
    found.sort(key=lambda row: row["valid_from_offset"])
    return [
        (row["valid_from_offset"], row["valid_to_offset"], *(row["value"][name] for name in names)) for row in found
    ]


def facts(*records: Message, shards: int = 1) -> list[dict[str, Any]]:
    return fold_in_runs([(log_items(records), shards)])


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_a_topic_takes_its_partitions_and_settings_with_it_and_its_name_is_free_for_another(shards: int) -> None:
    created = [TopicRecord(name="t", topic_id=ONE), RETENTION, partition()]
    again = [TopicRecord(name="t", topic_id=TWO), partition(TWO)]
    rows = facts(*created, NoOpRecord(), RemoveTopicRecord(topic_id=ONE), *again, shards=shards)
    assert spans(rows, "topics", "topic_id") == [(0, 4, str(ONE)), (5, None, str(TWO))]
    assert spans(rows, "partitions", "topic_id", "topic_name") == [(2, 4, str(ONE), "t"), (6, None, str(TWO), "t")]
    assert spans(rows, "configs", "value") == [(1, 4, "5")]


def test_a_value_that_is_written_again_is_no_new_fact_but_a_new_epoch_is() -> None:
    same_leader = PartitionChangeRecord(partition_id=0, topic_id=ONE, leader=1)
    rows = facts(TopicRecord(name="t", topic_id=ONE), partition(), RETENTION, RETENTION, same_leader)
    assert spans(rows, "configs", "value") == [(2, None, "5")]
    assert spans(rows, "partitions", "leader", "leader_epoch", "partition_epoch") == [
        (1, 4, 1, 0, 0),
        (4, None, 1, 1, 1),
    ]


def test_the_records_of_a_transaction_are_true_from_its_end_on() -> None:
    items = log_items(
        [
            RETENTION,
            BeginTransactionRecord(),
            TopicRecord(name="t", topic_id=ONE),
            partition(),
            PartitionChangeRecord(partition_id=0, topic_id=ONE, isr=[1]),
            ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="6"),
            RETENTION,
            EndTransactionRecord(),
        ]
    )
    rows = fold_in_runs([(items, 1)])
    assert spans(rows, "partitions", "isr", "partition_epoch") == [(7, None, [1], 1)]
    assert spans(rows, "topics") == [(7, None)]
    assert spans(rows, "configs", "value") == [(0, None, "5")]
    assert {row["valid_from_time"].timestamp() for row in rows if row["kind"] == "topics"} == {1.007}


def test_an_aborted_transaction_was_never_there_even_if_a_run_ended_in_it() -> None:
    items = log_items(
        [BeginTransactionRecord(), TopicRecord(name="t", topic_id=ONE), AbortTransactionRecord(), RETENTION]
    )
    after_two = fold(items[:2], shards=3)
    assert {row["kind"] for row in rows_of(after_two)} == {metadata.PENDING, metadata.POSITION}
    assert sum(batch.num_rows for batch in after_two if batch.column("kind")[0].as_py() == metadata.PENDING) == 2
    rows = fold_in_runs([(items[:1], 2), (items[1:2], 3), (items[2:], 1)])
    assert [row["kind"] for row in rows] == [metadata.POSITION, "configs"]


def test_a_snapshot_ends_what_it_does_not_have_and_keeps_what_it_has() -> None:
    other = ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="1")
    known = log_items([TopicRecord(name="t", topic_id=ONE), partition(), RETENTION])
    snapshot = snapshot_items(9, [RETENTION, other], time_ms=777)
    rows = fold_in_runs([(known, 2), (snapshot, 2)])
    assert spans(rows, "topics") == [(0, 9)] and spans(rows, "partitions") == [(1, 9)]
    assert spans(rows, "configs", "resource_type", "value") == [(2, None, "TOPIC", "5"), (9, None, "BROKER", "1")]
    assert [row["exact"] for row in rows if row["kind"] == "configs"] == [False, True]  # the broker's comes first
    assert {row["exact"] for row in rows if row["kind"] in ("topics", "partitions")} == {False}
    (ended,) = (row for row in rows if row["kind"] == "topics")
    assert ended["valid_to_time"].timestamp() == 0.777


def test_a_snapshot_without_an_end_is_an_error() -> None:
    with pytest.raises(ReplayError, match="snapshot at offset 9 has no footer"):
        fold(snapshot_items(9, [RETENTION])[:-1])
    with pytest.raises(ReplayError, match="snapshot at offset 9 has no header"):
        fold(snapshot_items(9, [RETENTION])[1:])


def test_the_quorum_has_leaders_voters_and_a_version() -> None:
    def voters(*ids: int) -> VotersRecord:
        endpoint = VotersRecord.Endpoint(name="CONTROLLER", host="h", port=9093)
        return VotersRecord(
            voters=[VotersRecord.Voter(voter_id=i, voter_directory_id=ONE, endpoints=[endpoint]) for i in ids]
        )

    def leader(node: int) -> LeaderChangeMessage:
        voter = LeaderChangeMessage.Voter(voter_id=node)
        return LeaderChangeMessage(version=1, leader_id=node, voters=[voter], granting_voters=[voter])

    log = [leader(1), KRaftVersionRecord(k_raft_version=1), voters(1, 2), voters(1, 3), leader(3)]
    items = [item._replace(epoch=1 + (item.offset > 3)) for item in log_items(log)]
    rows = fold_in_runs([(items[:3], 2), (items[3:], 3), (snapshot_items(5, log[1:2] + log[3:4]), 1)])
    assert spans(rows, "leader_epochs", "epoch", "leader_id") == [(0, 4, 1, 1), (4, None, 2, 3)]
    assert sorted(spans(rows, "voters", "voter_id"), key=str) == [(2, 3, 2), (2, None, 1), (3, None, 3)]
    assert spans(rows, "features", "name", "level") == [(1, None, "kraft.version", 1)]


def test_a_snapshot_does_not_know_who_got_producer_ids_and_takes_nothing_away() -> None:
    block = ProducerIdsRecord(broker_id=3, broker_epoch=7, next_producer_id=1000)
    rows = fold_in_runs([(log_items([block]), 1)])
    unknown = ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=1000)
    assert public(fold_in_runs([(log_items([block]), 1), (snapshot_items(1, [unknown]), 1)])) == public(rows)
    assert spans(rows, "producer_ids", "next_producer_id", "broker_id") == [(0, None, 1000, 3)]


def test_a_metadata_version_that_is_newer_than_this_program_is_what_it_is() -> None:
    rows = facts(FeatureLevelRecord(name="metadata.version", feature_level=99))
    assert spans(rows, "features", "level") == [(0, None, 99)]


def test_types_and_versions_that_are_not_known_are_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    writer = FactWriter("c", metadata.LOG)
    state = MetadataFold(writer)
    newer = Item(1, NoOpRecord(), raw=b"\x01\x02\x63rest")
    unknown = Item(2, NoOpRecord(), raw=b"\x01\x63\x00rest")
    items = [Item(0, RETENTION), newer, unknown, Item(3, NoOpRecord(), raw=b"\x00\x02")]
    state.feed(record_batch(0, items).select(["at", "time", "epoch", "is_snapshot", "record_type", "raw"]))
    assert [kind for kind, _ in state.finish()] == ["configs", metadata.POSITION]
    assert state.ignored == {"NoOpRecord": 3}
    assert "skipped metadata records" in caplog.text


def test_a_record_that_does_not_fit_says_where_it_is_and_no_secrets() -> None:
    state = MetadataFold(FactWriter("c", metadata.LOG))
    with pytest.raises(ReplayError, match=r"offset 7: PartitionChangeRecord: there is no topic"):
        state.record(PartitionChangeRecord(topic_id=ONE), FactPosition(7, None, 1))
    with pytest.raises(ReplayError, match=r"offset 8: EndTransactionRecord"):
        state.record(EndTransactionRecord(), FactPosition(8, None, 1))


def test_after_a_gap_what_does_not_fit_can_be_left_out() -> None:
    state = MetadataFold(FactWriter("c", metadata.LOG), strict=False)
    for offset, record in enumerate([PartitionChangeRecord(topic_id=ONE), EndTransactionRecord(), RETENTION], 7):
        state.record(record, FactPosition(offset, None, 1))
    assert [kind for kind, _ in state.finish()] == ["configs", metadata.POSITION]
    assert state.ignored == {"PartitionChangeRecord": 1, "EndTransactionRecord": 1}


def test_codes_that_nobody_knows_keep_their_numbers_from_one_run_to_the_next() -> None:
    acl = AccessControlEntryRecord(
        id=ONE, resource_type=50, resource_name="r", pattern_type=51, host="*", operation=52, permission_type=53
    )
    user = UserScramCredentialRecord(name="u", mechanism=9, salt=b"", stored_key=b"", server_key=b"", iterations=1)
    config = ConfigRecord(resource_type=77, resource_name="x", name="n", value="v")
    items = log_items([acl, user, config, NoOpRecord()])
    rows = fold_in_runs([(items[:3], 1), (items[3:], 2)])
    assert spans(rows, "acls", "resource_type", "permission") == [(0, None, "UNKNOWN_50", "UNKNOWN_53")]
    assert spans(rows, "users", "mechanism", "salt") == [(1, None, "9", b"")]
    assert spans(rows, "configs", "resource_type") == [(2, None, "77")]
    assert public(fold_in_runs([(items, 1), (log_items([acl, user, config], 4), 3)])) == public(rows)


def test_a_key_is_a_json_array() -> None:
    parts: list[str | int | None] = ['a"b\\c\n', 1, None, "ü", ""]
    assert json.loads(schema.key_text(*parts)) == parts


def test_types_are_those_of_spark_in_arrow() -> None:
    found = schema.arrow_type("array<struct<a: int, b: array<string>, c: timestamp>>")
    inner = pa.struct(
        [("a", pa.int32()), ("b", pa.list_(pa.field("element", pa.string()))), ("c", pa.timestamp("us", "UTC"))]
    )
    assert found == pa.list_(pa.field("element", inner))
    assert schema.arrow_type("map<string, array<int>>") == pa.map_(
        pa.string(), pa.list_(pa.field("element", pa.int32()))
    )
    with pytest.raises(ValueError, match="interval is not a type that tables may have"):
        schema.arrow_type("interval")


def test_many_facts_are_the_same_facts_in_columns() -> None:
    row = ("id", "t", 0, 1, 2, 3, (1, 2), ("d",), (), (), (), (), (), "RECOVERED")
    made = [("k", n, n, 1, None, None, True, row) for n in range(schema.ROWS_IN_BATCH + 9)]
    writer = FactWriter("c", "l-0")
    writer.of("partitions").extend(made)
    batches = list(writer.drain())
    assert [batch.num_rows for batch in batches] == [schema.ROWS_IN_BATCH, 9] and not writer.of("partitions")
    found = [fact for batch in batches for _, _, _, facts in schema.facts_of(batch) for fact in facts]
    assert [fact[:7] for fact in found] == [fact[:7] for fact in made]
    assert found[-1][7] == (*row[:6], [1, 2], ["d"], [], [], [], [], [], "RECOVERED")


def test_records_are_read_the_fast_way_and_the_careful_way_alike() -> None:
    raw = wire.encode_record(RETENTION, 0)
    assert metadata.decode(raw) == metadata.decode(raw) == RETENTION
    with pytest.raises(wire.MalformedError):
        metadata.decode(raw + b"\x00")
    with pytest.raises(wire.MalformedError):
        metadata.decode(raw[:-3])
