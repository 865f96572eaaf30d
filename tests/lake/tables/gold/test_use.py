"""Traffic and consumption."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from barnabas.lake.declared_column import ddl
from barnabas.lake.tables.gold.consumption import group_lag, hanging_transactions, topic_use
from barnabas.lake.tables.gold.traffic import (
    TARGET_BYTES_PER_SECOND,
    hot_partitions,
    key_skew,
    partition_plan,
    topic_traffic,
)
from barnabas.lake.tables.traffic import KEY_COUNTS, TRAFFIC
from tests.lake.tables.gold.histories import CLUSTER, Histories, at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def histories(spark: SparkSession) -> Histories:
    return Histories(spark)


def _traffic(histories: Histories, *rows: dict[str, object]) -> DataFrame:
    """Each row: partition, minute, first and last offset, bytes."""
    made = []
    for row in rows:
        time = at(float(row["minute"]))  # type: ignore[arg-type]
        hour = time.replace(minute=0)
        records = int(row["last"]) - int(row["first"]) + 1  # type: ignore[call-overload]
        topic = row.get("topic", "orders")
        place = (CLUSTER, topic, row.get("topic_id", topic), row.get("partition", 0), hour)
        made.append((*place, row["first"], records, row.get("bytes", 0), row["last"], time, time))
    return histories.spark.createDataFrame(made, ddl(TRAFFIC.columns))


def test_rates_hot_partitions_heavy_keys_and_a_plan(histories: Histories) -> None:
    hour = 3600 * TARGET_BYTES_PER_SECOND
    traffic = _traffic(
        histories,
        {"partition": 0, "minute": 0, "first": 0, "last": 99, "bytes": 3 * hour},
        {"partition": 1, "minute": 0, "first": 0, "last": 9, "bytes": hour // 4},
        {"partition": 0, "minute": 60, "first": 100, "last": 199, "bytes": hour},
    ).cache()
    (rate,) = topic_traffic(traffic).collect()
    assert (rate.records, rate.partitions, rate.peak_hour.timestamp()) == (210, 2, at(0).timestamp())
    assert rate.peak_bytes_per_second == pytest.approx(3.25 * TARGET_BYTES_PER_SECOND)
    partitions = histories.table(
        "partitions", *(histories.partition(0, partition=number, topic_id="orders") for number in (0, 1, 2))
    )
    (hot,) = hot_partitions(traffic, partitions).collect()
    assert (hot.partition, round(hot.times_even, 2)) == (0, 2.82)
    counts = [(CLUSTER, "orders", "orders", 0, 0, "big", 120), (CLUSTER, "orders", "orders", 0, 1, "small", 2)]
    keys = key_skew(histories.spark.createDataFrame(counts, ddl(KEY_COUNTS.columns)), traffic).cache()
    (key,) = keys.collect()
    assert (key.key, round(key.share, 2)) == ("big", 0.57)
    offsets = histories.table("group_offsets", {"group_id": "g", "topic": "orders", "partition": 0, "begin": 0})
    groups = histories.table("groups", {"group_id": "g", "members": 2, "begin": 0})
    (plan,) = partition_plan(topic_traffic(traffic), partitions, offsets, groups, keys).collect()
    assert (plan.partitions, plan.recommended) == (3, 4)
    assert plan.reason == (
        "its busiest hour has 16.2 MB/s, and a partition should carry 5 MB/s"
        "; one key has 57% of it, which more partitions do not spread"
    )


def test_a_plan_has_a_reason_and_a_topic_created_again_is_another_one(histories: Histories) -> None:
    traffic = _traffic(
        histories,
        {"topic": "read by many", "minute": 0, "first": 0, "last": 9, "bytes": 10},
        {"topic": "wide", "minute": 0, "first": 0, "last": 9, "bytes": 10},
        {"topic": "fine", "minute": 0, "first": 0, "last": 9, "bytes": 10},
        {"topic": "again", "topic_id": "first", "minute": 0, "first": 0, "last": 999, "bytes": 900},
        {"topic": "again", "topic_id": "second", "minute": 60, "first": 0, "last": 9, "bytes": 10},
    ).cache()
    counts = {"read by many": 2, "wide": 8, "fine": 2, "again": 1}
    partitions = histories.table(
        "partitions",
        *(
            histories.partition(0, partition=number, topic_name=topic, topic_id="second" if topic == "again" else topic)
            for topic, count in counts.items()
            for number in range(count)
        ),
        histories.partition(0, 5, topic_name="again", topic_id="first"),
    )
    commit = {"partition": 0, "committed_offset": 5, "begin": 0}
    offsets = histories.table(
        "group_offsets",
        {**commit, "group_id": "many", "topic": "read by many", "commit_time": at(1)},
        {**commit, "group_id": "few", "topic": "fine", "commit_time": at(1)},
        {**commit, "group_id": "few", "topic": "again", "commit_time": at(1), "topic_id": "first"},
        {**commit, "group_id": "late", "topic": "again", "commit_time": at(1)},
    )
    groups = histories.table(
        "groups", {"group_id": "many", "members": 5, "begin": 0}, {"group_id": "few", "members": 1, "begin": 0}
    )
    no_keys = histories.spark.createDataFrame([], ddl(KEY_COUNTS.columns))
    rates = topic_traffic(traffic).cache()
    plan = partition_plan(rates, partitions, offsets, groups, key_skew(no_keys, traffic)).collect()
    assert {row.topic: (row.partitions, row.recommended, row.reason) for row in plan} == {
        "read by many": (2, 5, "a group has 5 members, of which some have nothing to read"),
        "wide": (8, 8, "more than it needs; the number cannot be decreased"),
        "fine": (2, 2, "enough"),
        "again": (1, 1, "enough"),
    }
    assert {(row.topic_id, row.records) for row in rates.where("topic = 'again'").collect()} == {
        ("first", 1000),
        ("second", 10),
    }
    topics = histories.table(
        "topics",
        {"topic_id": "first", "name": "again", "begin": 0, "end": 5},
        {"topic_id": "second", "name": "again", "begin": 500},
    )
    # Both commits are of the first: one says so, the other is older than the second.
    assert group_lag(offsets, traffic, topics, histories.log_until(900)).collect() == []
    (use,) = topic_use(topics, traffic, offsets, histories.log_until(900)).collect()
    assert (use.topic_id, use.groups, use.verdict) == ("second", 0, "never consumed")
    for frame in (traffic, rates):
        frame.unpersist()


def test_lag_its_trend_and_topics_that_nobody_uses(histories: Histories) -> None:
    traffic = _traffic(
        histories,
        {"partition": 0, "minute": 1, "first": 0, "last": 99},
        {"partition": 0, "minute": 40, "first": 100, "last": 199},
        {"partition": 1, "minute": 1, "first": 0, "last": 9},
        {"topic": "quiet", "minute": -20000, "first": 0, "last": 0},
        {"topic": "unread", "minute": 30, "first": 0, "last": 0},
        {"topic": "old", "minute": 30, "first": 0, "last": 0},
    ).cache()
    topics = histories.table(
        "topics",
        *({"topic_id": name, "name": name, "begin": 0} for name in ("unread", "empty", "__consumer_offsets")),
        {"topic_id": "orders", "name": "orders", "begin": 0},
        {"topic_id": "quiet", "name": "quiet", "begin": -200_000},
        {"topic_id": "unseen", "name": "unseen", "begin": 0},
        {"topic_id": "old", "name": "old", "begin": 0, "end": 5},
    )

    def commits(group: str, *at_minutes: tuple[float, int], topic: str = "orders") -> list[dict[str, object]]:
        ends: list[int | None] = [int(minute * 10) for minute, _ in at_minutes[1:]]
        return [
            {
                "group_id": group, "topic": topic, "partition": 0, "committed_offset": offset, "commit_time": at(minute),
                "begin": int(minute * 10), "end": end,
            }
            for (minute, offset), end in zip(at_minutes, [*ends, None], strict=True)
        ]  # fmt: skip

    offsets = histories.table(
        "group_offsets",
        *commits("behind", (2, 90), (38, 95), (39, 110)),  # commits until the end, ever further behind
        *commits("catching up", (2, 5), (41, 150)),
        *commits("even", (2, 50), (42, 150)),
        *commits("there", (41, 200)),
        *commits("stopped", (2, 20), (3, 90)),
        *commits("stuck", (2, 20), (3, 90), (44, 90)),  # commits, and always the same
        *commits("new", (41, 10)),
        *commits("other", (41, 10), topic="unseen"),
    )
    end = histories.log_until(450)
    rows = {row.group_id: row for row in group_lag(offsets, traffic, topics, end).collect()}
    assert {group: (row.lag, row.lag_before, row.trend, row.lag_minutes) for group, row in rows.items()} == {
        "behind": (90, 10, "growing", 1.0),
        "catching up": (50, 95, "falling", 0.0),
        "even": (50, 50, "steady", 0.0),
        "there": (0, None, "none", 0.0),
        "stopped": (110, 80, "stopped", 37.0),
        "stuck": (110, 10, "stopped", 0.0),
        "new": (190, None, "unknown", 0.0),
    }
    use = topic_use(topics, traffic, offsets, end).collect()
    assert {row.topic: (row.verdict, row.groups) for row in use} == {
        "orders": ("used", 7),
        "quiet": ("idle", 0),
        "unread": ("never consumed", 0),
        "empty": ("never written", 0),
        "unseen": ("unknown", 1),  # somebody has read it, but its log was not
    }
    unknown = topic_use(topics, traffic.where("false"), offsets, end).collect()
    assert {row.verdict for row in unknown} == {"unknown"}


def test_a_transaction_hangs_when_it_is_open_for_longer_than_it_may(histories: Histories) -> None:
    row = {"producer_id": 1, "producer_epoch": 0, "timeout_ms": 60_000, "begin": 0}
    transactions = histories.table(
        "transactions",
        {**row, "transactional_id": "hangs", "state": "Ongoing", "start_time": at(1)},
        {**row, "transactional_id": "open", "state": "Ongoing", "start_time": at(9.5)},
        {**row, "transactional_id": "done", "state": "CompleteCommit", "start_time": at(1)},
    )
    (found,) = hanging_transactions(transactions, histories.log_until(100)).collect()
    assert (found.transactional_id, found.minutes, found.timeout_minutes) == ("hangs", 9.0, 1.0)
