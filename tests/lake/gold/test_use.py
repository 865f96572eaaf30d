"""ACLs, traffic and consumption."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from barnabas.lake.column import ddl
from barnabas.lake.tables.gold.access import acl_findings, acl_grants
from barnabas.lake.tables.gold.consumption import group_lag, hanging_transactions, topic_use
from barnabas.lake.tables.gold.traffic import (
    TARGET_BYTES_PER_SECOND,
    hot_partitions,
    key_skew,
    partition_plan,
    topic_traffic,
)
from barnabas.lake.tables.traffic import KEY_COUNTS, TRAFFIC
from tests.lake.gold.histories import CLUSTER, Histories, at

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
        place = (CLUSTER, topic, "T", row.get("partition", 0), hour)
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
    partitions = histories.table("partitions", *(histories.partition(0, partition=number) for number in (0, 1, 2)))
    (hot,) = hot_partitions(traffic, partitions).collect()
    assert (hot.partition, round(hot.times_even, 2)) == (0, 2.82)
    counts = [(CLUSTER, "orders", "T", 0, 0, "big", 120), (CLUSTER, "orders", "T", 0, 1, "small", 2)]
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


def test_lag_its_trend_and_topics_that_nobody_uses(histories: Histories) -> None:
    traffic = _traffic(
        histories,
        {"partition": 0, "minute": 1, "first": 0, "last": 99},
        {"partition": 0, "minute": 9, "first": 100, "last": 199},
        {"partition": 1, "minute": 1, "first": 0, "last": 9},
        {"topic": "quiet", "minute": -20000, "first": 0, "last": 0},
    ).cache()
    commit = {"topic": "orders", "partition": 0}
    offsets = histories.table(
        "group_offsets",
        {**commit, "group_id": "behind", "committed_offset": 90, "commit_time": at(2), "begin": 20, "end": 30},
        {**commit, "group_id": "behind", "committed_offset": 110, "commit_time": at(3), "begin": 30},
        {**commit, "group_id": "there", "committed_offset": 200, "commit_time": at(10), "begin": 100},
        {**commit, "group_id": "stopped", "committed_offset": 100, "commit_time": at(2), "begin": 20},
    )
    rows = {row.group_id: row for row in group_lag(offsets, traffic).collect()}
    assert {group: (row.lag, row.lag_before, row.trend, row.lag_minutes) for group, row in rows.items()} == {
        "behind": (90, 10, "growing", 6.0),
        "there": (0, None, "none", 0.0),
        "stopped": (100, None, "stopped", 7.0),
    }
    topics = histories.table(
        "topics",
        *({"topic_id": name, "name": name, "begin": 0} for name in ("orders", "quiet", "empty", "__consumer_offsets")),
        {"topic_id": "old", "name": "old", "begin": 0, "end": 5},
    )
    use = topic_use(topics, traffic, offsets, histories.log_until(100)).collect()
    assert {row.topic: (row.verdict, row.groups) for row in use} == {
        "orders": ("used", 3),
        "quiet": ("idle", 0),
        "empty": ("never written", 0),
    }


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


def test_grants_and_findings_are_of_the_entries_that_hold(histories: Histories) -> None:
    entry = {
        "resource_type": "TOPIC", "pattern_type": "LITERAL", "resource_name": "orders", "principal": "User:a", "host": "*",
        "operation": "READ", "permission": "ALLOW", "begin": 0,
    }  # fmt: skip
    acls = histories.table(
        "acls",
        {**entry, "acl_id": "1"},
        {**entry, "acl_id": "2", "operation": "WRITE", "permission": "DENY"},
        {**entry, "acl_id": "3", "resource_name": "*"},
        {**entry, "acl_id": "4", "operation": "ALTER", "end": 5},
        {**entry, "acl_id": "5", "resource_name": "nowhere", "principal": "User:b"},
    )
    grants = {(row.principal, row.resource_name): (row.allowed, row.denied) for row in acl_grants(acls).collect()}
    assert grants == {
        ("User:a", "orders"): (["READ"], ["WRITE"]),
        ("User:a", "*"): (["READ"], []),
        ("User:b", "nowhere"): (["READ"], []),
    }
    topics = histories.table("topics", {"topic_id": "T", "name": "orders", "begin": 0})
    found = acl_findings(acls, topics, histories.table("groups")).collect()
    assert {row.finding for row in found} == {"shadowed", "never-denies", "wildcard", "no-such-resource"}
    (missing,) = [row for row in found if row.finding == "no-such-resource"]
    assert "nowhere" in missing.entries[0]
