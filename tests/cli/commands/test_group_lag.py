"""`barnabas groups describe` against a node: lag in records, and in time as the age of the oldest unread record."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.client import sync
from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.client.records import TopicPartition
from barnabas.testing import Broker
from tests.client.admin.group_scenes import WAIT_S, commit, fill, transaction
from tests.command_line import Command

HOUR_S = 3600


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    topics = ("single", "packed", "burst", "marked", "ended", "deleted", "emptied", "future", "untimed", "stamped")
    with Broker(dict.fromkeys(topics, 1), config={"auto.create.topics.enable": "false"}) as running:
        yield running


describe = Command("groups", "describe").rows


def lag_of(broker: Broker, topic: str, offset: int, *arguments: str) -> dict[str, Any]:
    """The row of a group that has committed the offset."""
    group = f"{topic}-at-{offset}"
    commit(broker.bootstrap_servers, group, {(topic, 0): offset})
    row: dict[str, Any]
    (row,) = describe(broker, group, *arguments)
    return row


def oldest_unread_ms(broker: Broker, topic: str, offset: int) -> tuple[int, range]:
    """Lag in records, and the timestamps that the oldest unread record may have."""
    before_ms = int(time.time() * 1000)
    row = lag_of(broker, topic, offset)
    after_ms = int(time.time() * 1000)
    return row["lag"], range(before_ms - row["lagMs"], after_ms - row["lagMs"] + 1)


@pytest.mark.parametrize("topic", ["single", "packed"])
def test_lag_is_in_records_and_the_age_of_the_oldest_unread_record(broker: Broker, topic: str) -> None:
    last_ms = fill(broker.bootstrap_servers, topic, 0, 10, age_s=600, batch=topic == "packed")
    for offset in (0, 7, 9):
        lag, times = oldest_unread_ms(broker, topic, offset)
        assert (lag, last_ms - 1000 * (9 - offset) in times) == (10 - offset, True)
    for offset in (10, 15):
        row = lag_of(broker, topic, offset)
        assert (row["currentOffset"], row["logEndOffset"], row["lag"], row["lagMs"]) == (offset, 10, 0, 0)
    row = lag_of(broker, topic, 0, "--no-time")
    assert (row["lag"], row["lagMs"]) == (10, None)
    found = describe(broker, f"{topic}-at-7", f"{topic}-at-10", f"{topic}-at-0")
    assert [row["groupId"] for row in found] == [f"{topic}-at-7", f"{topic}-at-10", f"{topic}-at-0"]
    at_7, at_10, at_0 = (row["lagMs"] for row in found)
    assert (at_0 - at_7, at_10) == (7000, 0)  # measured at the same moment


def test_a_group_that_stops_before_a_burst_of_old_records_grows_older(broker: Broker) -> None:
    fill(broker.bootstrap_servers, "burst", 0, 1)
    assert lag_of(broker, "burst", 1)["lagMs"] == 0
    last_ms = fill(broker.bootstrap_servers, "burst", 0, 5, age_s=HOUR_S)
    lag, times = oldest_unread_ms(broker, "burst", 1)
    assert (lag, last_ms - 4000 in times) == (5, True)
    first = lag_of(broker, "burst", 1)["lagMs"]
    time.sleep(0.01)
    assert lag_of(broker, "burst", 1)["lagMs"] > first > HOUR_S * 1000


def test_control_records_are_nothing_to_read(broker: Broker) -> None:
    server = broker.bootstrap_servers
    fill(server, "marked", 0, 1, age_s=600)
    transaction(server, "commits", ("marked", 0)).commit_transaction(WAIT_S)
    assert _lags(lag_of(broker, "marked", 2)) == (1, 0)  # record, record, marker
    before_ms = int(time.time() * 1000)
    transaction(server, "aborts", ("marked", 0)).abort_transaction(WAIT_S)
    row = lag_of(broker, "marked", 4)
    assert _lags(row) == (1, 0)
    # What was aborted counts: the isolation level of a group is not known.
    lag, times = oldest_unread_ms(broker, "marked", 3)
    assert (lag, times.stop > before_ms) == (2, True)
    last_ms = fill(server, "marked", 0, 1, age_s=300)
    lag, times = oldest_unread_ms(broker, "marked", 4)
    assert (lag, last_ms in times) == (2, True)


def test_many_control_records_in_a_row_are_passed_over(broker: Broker) -> None:
    server = broker.bootstrap_servers
    producers = [transaction(server, f"many-{number}", ("ended", 0)) for number in range(12)]
    for producer in producers:
        producer.commit_transaction(WAIT_S)
    assert _lags(lag_of(broker, "ended", 12)) == (12, 0)
    last_ms = fill(server, "ended", 0, 1, age_s=100)
    lag, times = oldest_unread_ms(broker, "ended", 12)
    assert (lag, last_ms in times) == (13, True)


def _lags(row: dict[str, Any]) -> tuple[int, int | None]:
    return row["lag"], row["lagMs"]


def test_of_deleted_records_the_first_that_still_exists_counts(broker: Broker) -> None:
    last_ms = fill(broker.bootstrap_servers, "deleted", 0, 10, age_s=600)
    fill(broker.bootstrap_servers, "emptied", 0, 10, age_s=600)
    with sync.Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        admin.delete_records({TopicPartition("deleted", 0): 6, TopicPartition("emptied", 0): 10})
    lag, times = oldest_unread_ms(broker, "deleted", 2)
    assert (lag, last_ms - 3000 in times) == (8, True)
    assert _lags(lag_of(broker, "emptied", 2)) == (8, 0)


def test_a_record_of_the_future_has_age_0_and_one_without_a_timestamp_has_none(broker: Broker) -> None:
    fill(broker.bootstrap_servers, "future", 0, 1, age_s=-60)
    assert _lags(lag_of(broker, "future", 0)) == (1, 0)
    with sync.Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for timestamp_ms in (-1, int(time.time() * 1000)):
            producer.send("untimed", b"", partition=0, timestamp_ms=timestamp_ms)
            producer.flush()
    assert _lags(lag_of(broker, "untimed", 0)) == (2, None)
    assert lag_of(broker, "untimed", 1)["lagMs"] is not None


def test_with_append_time_the_time_of_the_broker_counts(broker: Broker) -> None:
    with sync.Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        resource = ConfigResource.topic("stamped")
        op = AlterConfigOp("message.timestamp.type", AlterConfigOpType.SET, "LogAppendTime")
        assert admin.incremental_alter_configs({resource: [op]}) == {resource: None}
    before_ms = int(time.time() * 1000)
    fill(broker.bootstrap_servers, "stamped", 0, 1, age_s=HOUR_S)
    lag, times = oldest_unread_ms(broker, "stamped", 0)
    assert (lag, times.stop > before_ms) == (1, True)
