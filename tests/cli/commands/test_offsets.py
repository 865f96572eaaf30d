"""`barnabas offsets` against a node of barnabas."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from barnabas.testing import Broker
from tests.client.admin.guarded import guarded_broker
from tests.command_line import Command

T0_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"written": 2, "empty": 1}, config={"auto.create.topics.enable": False}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for time_ms in (T0_MS, T0_MS + 900, T0_MS + 500):
            producer.produce("written", b"x", partition=1, timestamp=time_ms)
        producer.flush()
        yield broker


offsets = Command("offsets")
rows = offsets.rows


def test_partitions_begin_and_end_somewhere(broker: Broker) -> None:
    zero, one = rows(broker, "list", "written")
    assert (zero["earliestOffset"], zero["latestOffset"], zero["records"], zero["maxTimestamp"]) == (0, 0, 0, None)
    assert (one["earliestOffset"], one["latestOffset"], one["records"]) == (0, 3, 3)
    assert one["maxTimestamp"] == T0_MS + 900
    everywhere = [(row["topic"], row["partition"]) for row in rows(broker, "list")]
    assert [each for each in everywhere if each[0] != "transacted"] == [("empty", 0), ("written", 0), ("written", 1)]
    assert [row["partition"] for row in rows(broker, "list", "written", "-p", 1)] == [1]
    table = offsets(broker, "list", "written").stdout.splitlines()
    assert table[0].split() == ["TOPIC", "PARTITION", "EARLIEST-OFFSET", "LATEST-OFFSET", "RECORDS", "LAST-RECORD"]
    assert table[2].split() == ["written", "1", "0", "3", "3", "2023-11-14T22:13:20.900Z"]


def test_a_time_gives_one_offset_more(broker: Broker) -> None:
    assert [row["offsetAt"] for row in rows(broker, "list", "written", "--at", T0_MS + 1)] == [None, 1]
    assert [row["offsetAt"] for row in rows(broker, "list", "written", "--at", "1h")] == [None, None]


def test_records_are_found_by_their_time(broker: Broker) -> None:
    zero, one = rows(broker, "find", "written", "2023-11-14T22:13:20.001Z")
    assert (zero["offset"], zero["timestamp"]) == (None, None)
    assert (one["offset"], one["timestamp"], one["leaderEpoch"]) == (1, T0_MS + 900, 0)


def test_an_open_transaction_ends_what_is_committed(broker: Broker) -> None:
    broker.create_topic("transacted", 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "still-open"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("transacted", b"x", partition=0)
    producer.flush()
    assert rows(broker, "list", "transacted")[0]["latestOffset"] == 1
    assert rows(broker, "list", "transacted", "--isolation-level", "read_committed")[0]["latestOffset"] == 0
    producer.abort_transaction()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("list", "nowhere"), 1, "Error: topic nowhere: UNKNOWN_TOPIC_OR_PARTITION: "),
        (("find", "nowhere", "1h"), 1, "Error: topic nowhere: UNKNOWN_TOPIC_OR_PARTITION: "),
        (("list", "written", "-p", "7"), 1, "Error: topic written: no partition 7; number of partitions: 2"),
        (("find", "written", "noon"), 2, "'noon' is not a time such as 2026-01-31T12:30:00Z"),
        (("list", "--at", "noon"), 2, "'noon' is not a time such as 2026-01-31T12:30:00Z"),
    ],
)
def test_what_is_wrong_is_said(broker: Broker, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = offsets(broker, *arguments)
    assert result.exit_code == code
    assert message in result.stderr


def test_who_may_not_see_a_topic_is_told_so() -> None:
    with guarded_broker() as broker:
        result = offsets(broker, "list", "secret")
    assert result.exit_code == 1
    assert "Error: topic secret: TOPIC_AUTHORIZATION_FAILED: " in result.stderr
