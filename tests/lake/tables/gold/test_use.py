"""Traffic and consumption."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as f

from barnabas.lake.declared_column import ddl
from barnabas.lake.tables.gold.consumption import group_lag, hanging_transactions, topic_use, with_oldest_unread
from barnabas.lake.tables.gold.traffic import (
    TARGET_BYTES_PER_SECOND,
    hot_partitions,
    key_skew,
    partition_plan,
    topic_traffic,
)
from barnabas.lake.tables.traffic import KEY_COUNTS, TRAFFIC
from barnabas.operations.groups.lag import Interval, interpolated_time
from tests.lake.tables.gold.histories import CLUSTER, Histories, at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


STREAMING = (
    {"group_id": "app", "group_type": "streams", "topology_topics": ["orders", "app-store-changelog"], "begin": 0},
    {"group_id": "gone", "group_type": "streams", "topology_topics": ["old", "nowhere"], "begin": 0, "end": 9},
    {"group_id": "other", "group_type": "consumer", "begin": 0},
)
SHARING = (
    {"group_id": "workers", "member_id": "a", "group_type": "share", "subscribed_topics": ["unread"], "begin": 0},
    {
        "group_id": "workers",
        "member_id": "b",
        "group_type": "share",
        "subscribed_topics": ["unread"],
        "begin": 0,
        "end": 9,
    },
    {"group_id": "plain", "member_id": "c", "group_type": "consumer", "subscribed_topics": ["quiet"], "begin": 0},
)


@pytest.fixture(scope="module")
def histories(spark: SparkSession) -> Histories:
    return Histories(spark)


def _traffic(histories: Histories, *rows: dict[str, object]) -> DataFrame:
    """Each row: partition, minute (and until which), first and last offset, bytes; records, if not one for each offset."""
    made = []
    for row in rows:
        time = at(float(row["minute"]))  # type: ignore[arg-type]
        until = at(float(row.get("until", row["minute"])))  # type: ignore[arg-type]
        hour = time.replace(minute=0)
        records = row.get("records", int(row["last"]) - int(row["first"]) + 1)  # type: ignore[call-overload]
        topic = row.get("topic", "orders")
        place = (CLUSTER, topic, row.get("topic_id", topic), row.get("partition", 0), hour)
        made.append(
            (
                *place,
                row["first"],
                records,
                row.get("bytes", 0),
                row["last"],
                *((time, until) if records else (None, None)),
            )
        )
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
    assert (
        group_lag(offsets, histories.table("share_partitions"), traffic, topics, histories.log_until(900)).collect()
        == []
    )
    members = histories.table("group_members")
    (use,) = topic_use(topics, traffic, offsets, members, groups, histories.log_until(900)).collect()
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
        {"topic": "app-store-changelog", "minute": 30, "first": 0, "last": 0},
        {"topic": "old", "minute": 30, "first": 0, "last": 0},
    ).cache()
    topics = histories.table(
        "topics",
        *(
            {"topic_id": name, "name": name, "begin": 0}
            for name in ("unread", "app-store-changelog", "empty", "__consumer_offsets")
        ),
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
    shared = histories.table("share_partitions")
    rows = {row.group_id: row for row in group_lag(offsets, shared, traffic, topics, end).collect()}
    assert {group: (row.lag, row.lag_before, row.trend, row.lag_minutes) for group, row in rows.items()} == {
        "behind": (90, 10, "growing", 5.0),  # the log ends at minute 45, and offset 110 was written at minute 40
        "catching up": (50, 95, "falling", 5.0),
        "even": (50, 50, "steady", 5.0),
        "there": (0, None, "none", 0.0),
        "stopped": (110, 80, "stopped", 44.0),  # offset 90 was written at minute 1
        "stuck": (110, 10, "stopped", 44.0),
        "new": (190, None, "unknown", 44.0),
    }
    assert {row.lag_is_interpolated for row in rows.values()} == {False}  # each hour has one time
    members = histories.table("group_members", *SHARING)
    groups = histories.table("groups", *STREAMING)
    use = topic_use(topics, traffic, offsets, members, groups, end).collect()
    assert {row.topic: (row.verdict, row.groups) for row in use} == {
        "orders": ("used", 8),
        "quiet": ("idle", 0),
        "unread": ("used", 1),  # by a share group, which commits nothing
        "app-store-changelog": ("used", 1),  # by a streams group, when it restores its state
        "empty": ("never written", 0),
        "unseen": ("unknown", 1),  # somebody has read it, but its log was not
    }
    unread = {
        row.topic: row
        for row in topic_use(
            topics, traffic, offsets, histories.table("group_members"), histories.table("groups"), end
        ).collect()
    }
    for topic in ("unread", "app-store-changelog"):
        assert (unread[topic].verdict, unread[topic].groups) == ("never consumed", 0)
    unknown = topic_use(topics, traffic.where("false"), offsets, members, groups, end).collect()
    assert {row.verdict for row in unknown} == {"unknown"}


def test_lag_in_time_is_the_age_of_the_oldest_unread_record_at_the_end_of_the_log(histories: Histories) -> None:
    before_1970 = -(at(0).timestamp() + 0.001) / 60
    traffic = _traffic(
        histories,
        {"partition": 0, "minute": 10, "until": 30, "first": 100, "last": 200},
        {"partition": 0, "minute": 60, "first": 300, "last": 399},
        {"partition": 0, "minute": 70, "first": 400, "last": 400, "records": 0},  # a marker
        {"partition": 1, "minute": before_1970, "first": 0, "last": 9},  # timestamps of -1
        {"partition": 2, "minute": 110, "until": 120, "first": 0, "last": 10},
        {"partition": 3, "minute": 10, "until": 20, "first": 0, "last": 10, "records": 6},
        {"partition": 3, "minute": 5, "until": 15, "first": 5, "last": 15, "records": 6},
    )
    topics = histories.table("topics", {"topic_id": "orders", "name": "orders", "begin": 0})
    cases = {
        # partition, committed offset: lag, lag in minutes, whether it is interpolated, trend
        (0, 0): (401, 90.0, True, "stopped"),  # below the first: the first that exists
        (0, 100): (301, 90.0, True, "stopped"),
        (0, 150): (251, 80.0, True, "stopped"),  # half way from minute 10 to 30
        (0, 250): (151, 40.0, False, "stopped"),  # between two: the next, and all of these are of minute 60
        (0, 350): (51, 40.0, False, "stopped"),
        (0, 400): (1, 0.0, False, "none"),  # only the marker is left
        (0, 401): (0, 0.0, False, "none"),
        (0, 500): (0, 0.0, False, "none"),  # past the end
        (1, 5): (5, None, None, "stopped"),
        (2, 0): (11, 0.0, True, "unknown"),  # from the future
        (3, 7): (9, 93.0, True, "stopped"),  # of the times that it may have, the earliest
    }
    offsets = histories.table(
        "group_offsets",
        *(
            {
                "group_id": f"at {partition} {offset}", "topic": "orders", "partition": partition,
                "committed_offset": offset, "commit_time": at(75), "begin": 750,
            }
            for partition, offset in cases
        ),
    )  # fmt: skip
    shared = histories.table("share_partitions")
    found = group_lag(offsets, shared, traffic, topics, histories.log_until(1000)).collect()
    assert {
        (row.partition, row.committed_offset): (row.lag, row.lag_minutes, row.lag_is_interpolated, row.trend)
        for row in found
    } == cases


def test_share_groups_lag_behind_by_what_is_not_done_yet(histories: Histories) -> None:
    traffic = _traffic(
        histories,
        {"partition": 0, "minute": 10, "first": 0, "last": 99},
        {"topic": "again", "topic_id": "second", "minute": 10, "first": 0, "last": 9},
    )
    topics = histories.table(
        "topics",
        {"topic_id": "orders", "name": "orders", "begin": 0},
        {"topic_id": "first", "name": "again", "begin": 0, "end": 5},
        {"topic_id": "second", "name": "again", "begin": 6},
    )

    def position(group: str, begin: int, start_offset: int | None, done: int | None = 0, **more: Any) -> dict[str, Any]:
        state = {"start_offset": start_offset, "delivery_complete_count": done}
        return {"group_id": group, "topic_id": "orders", "partition": 0, "begin": begin, **state, **more}

    shared = histories.table(
        "share_partitions",
        position("some done", 100, 20, 5, end=300),
        position("some done", 300, 40, 15),
        position("not given", 110, 90, None),
        position("all done", 110, 100),
        position("only assigned", 110, None),
        position("deleted", 110, 10, end=120),
        position("of a deleted topic", 3, 5, topic_id="first"),
        position("of the topic of this name", 110, 5, topic_id="second"),
    )
    found = group_lag(histories.table("group_offsets"), shared, traffic, topics, histories.log_until(1000)).collect()
    assert {row.group_id: (row.topic, row.committed_offset, row.lag, row.lag_before) for row in found} == {
        "some done": ("orders", 40, 45, 75),
        "not given": ("orders", 90, 10, None),
        "all done": ("orders", 100, 0, None),
        "of the topic of this name": ("again", 5, 5, None),
    }


def test_spark_interpolates_as_the_definition_does(histories: Histories) -> None:
    rng = random.Random(20)
    second, hour = 1_000_000, 3_600_000_000

    def interval(width: int) -> Interval:
        first = rng.randrange(width)
        last = first + rng.choice((0, 1, rng.randrange(width)))
        records = rng.choice((0, 1, last - first + 1, last - first + 1))
        begin = rng.choice((-1000, 0, rng.randrange(5) * hour, 1_700_000_000 * second + rng.randrange(hour)))
        times = (begin, begin + rng.choice((0, 1, rng.randrange(hour)))) if records else (None, None)
        return Interval(first, last, records, *times)

    cases = []
    for number in range(2000):
        width = rng.choice((5, 30, 10**12))
        intervals = [interval(width) for _ in range(rng.randrange(6))]
        edges = [edge for each in intervals for edge in (each.first_offset, each.last_offset)]
        near = [edge + rng.choice((-1, 0, 1)) for edge in edges]
        cases.append((number, rng.choice((0, rng.randrange(2 * width), *near)), intervals))
    fields = ("first_offset", "last_offset", "records", "first_micros", "last_micros")
    kind = ", ".join(f"{name}: bigint" for name in fields)
    hours = f.expr(
        "transform(intervals, i -> named_struct('first_offset', i.first_offset, 'last_offset', i.last_offset, 'records',"
        " i.records, 'first_time', timestamp_micros(i.first_micros), 'last_time', timestamp_micros(i.last_micros)))"
    )
    schema = f"number int, committed_offset bigint, intervals array<struct<{kind}>>"
    frame = histories.spark.createDataFrame(cases, schema).withColumn("hours", hours)
    found = with_oldest_unread(frame).withColumn("micros", f.unix_micros("unread_time")).collect()
    assert len(found) == len(cases)
    kinds: Counter[str] = Counter()
    for row in found:
        _, offset, intervals = cases[row.number]
        expected = interpolated_time(offset, intervals)
        if expected is None:
            kinds["nothing unread"] += 1
            assert not row.is_unread, (offset, intervals)
            continue
        assert (row.is_unread, row.micros) == (True, expected.time), (offset, intervals)
        if expected.time is not None:
            assert row.is_interpolated == expected.is_interpolated, (offset, intervals)
        kinds[f"{expected.time is not None}, {expected.is_interpolated}"] += 1
    assert min(kinds.values()) > 100, kinds
    assert len(kinds) == 4


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
