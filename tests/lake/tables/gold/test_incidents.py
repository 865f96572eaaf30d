"""What belongs to one incident, and what does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.lake.tables.gold.incidents import incidents
from tests.lake.tables.gold.histories import CLUSTER, at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PLACE = "cluster_id string, topic_id string, partition int, began timestamp, until timestamp, is_over boolean"


def trouble(spark: SparkSession, *rows: tuple[int, float, float, bool, bool]) -> DataFrame:
    """Rows: partition, begin and end in minutes, whether there was no leader, and whether it was below its minimum."""
    spans = [
        (CLUSTER, "T", partition, at(begin), at(end), end < 100, offline, below)
        for partition, begin, end, offline, below in rows
    ]
    return spark.createDataFrame(spans, f"{_PLACE}, offline boolean, below_min_isr boolean")


def test_what_happens_at_the_same_time_is_one_incident_with_all_that_it_affected(spark: SparkSession) -> None:
    partitions = trouble(
        spark,
        *((number, 10.0, 14.0, True, True) for number in range(47)),
        (1, 14.0, 15.5, False, False),
        (2, 14.8, 16.0, False, True),  # within a minute after the others
        (3, 40.0, 41.0, False, False),  # by itself it is none
        (4, 60.0, 61.0, True, True),
        (4, 61.5, 63.0, True, True),
        (5, 60.5, 61.0, True, False),
        (6, 90.0, 100.0, False, True),
    )
    fences = spark.createDataFrame(
        [
            (CLUSTER, at(10), at(14), True, 3, "shutdown"),
            (CLUSTER, at(13), at(14.5), True, 4, "silence"),
            (CLUSTER, at(0), at(1), True, 1, "start"),
            ("other", at(10), at(12), True, 9, "restart"),
        ],
        "cluster_id string, began timestamp, until timestamp, is_over boolean, broker_id int, cause string",
    )
    changes = spark.createDataFrame(
        [(CLUSTER, at(minute)) for minute in (9.9, 10, 14, 15.9, 30, 60, 91)], "cluster_id string, time timestamp"
    )
    commits = [("stalled", 9), ("stalled", 16.5), ("reads on", 9), ("reads on", 12), ("long ago", -90), ("new", 12)]
    offsets = spark.createDataFrame(
        [(CLUSTER, group, at(minute)) for group, minute in commits],
        "cluster_id string, group_id string, valid_from_time timestamp",
    )
    made = incidents(partitions, fences, changes, offsets).orderBy("cluster_id", "began").collect()
    assert [(row.cluster_id, row.began.timestamp(), row.minutes, row.is_over) for row in made] == [
        (CLUSTER, at(10).timestamp(), 6.0, True),
        (CLUSTER, at(60).timestamp(), 3.0, True),
        (CLUSTER, at(90).timestamp(), 10.0, False),
        ("other", at(10).timestamp(), 2.0, True),
    ]
    outage, twice, running, other = made
    assert (outage.brokers, outage.causes) == ([3, 4], ["shutdown", "silence"])
    assert (outage.offline_minutes, outage.offline_partitions, outage.below_min_isr_partitions) == (4.0, 47, 47)
    assert (outage.under_replicated_partitions, outage.topics, outage.leader_changes) == (47, 1, 3)
    assert outage.stalled_groups == ["stalled"]
    assert (twice.offline_minutes, twice.offline_partitions, twice.brokers) == (2.5, 2, []), "by the clock"
    assert (running.below_min_isr_partitions, running.leader_changes, running.stalled_groups) == (1, 1, [])
    assert (other.brokers, other.offline_partitions, other.offline_minutes) == ([9], 0, 0.0)


def test_no_row_is_compared_with_all_rows_after_it(spark: SparkSession) -> None:
    """Spark computes a frame from a row to the last one anew for each row: with a million rows, that takes minutes."""
    fences = "cluster_id string, began timestamp, until timestamp, is_over boolean, broker_id int, cause string"
    made = incidents(
        trouble(spark, (1, 10.0, 14.0, True, True)),
        spark.createDataFrame([], fences),
        spark.createDataFrame([], "cluster_id string, time timestamp"),
        spark.createDataFrame([], "cluster_id string, group_id string, valid_from_time timestamp"),
    )
    plan = made._jdf.queryExecution().toString()
    assert "unboundedpreceding$(), currentrow$()" in plan
    assert "unboundedfollowing" not in plan
