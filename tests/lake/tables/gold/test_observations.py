"""What observations of a live cluster tell, by rows written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from barnabas.lake.declared_column import ddl
from barnabas.lake.tables.gold.observations import (
    disk_balance,
    group_lag_growth,
    quorum_health,
    quorum_lag,
    topic_sizes,
)
from barnabas.lake.tables.observations import TABLES
from tests.lake.tables.gold.histories import CLUSTER, at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def observed(spark: SparkSession, name: str, *rows: dict[str, Any]) -> DataFrame:
    """Each row: the minute of the observation, and its values."""
    columns = TABLES[name].columns
    made = []
    for row in rows:
        time = at(row["minute"])
        known = {"cluster_id": CLUSTER, "observation_id": f"o{row['minute']}", "observed_at": time, **row}
        made.append(tuple(known.get(column.name) for column in columns))
    return spark.createDataFrame(made, ddl(columns))


def test_who_lags_in_the_quorum_and_since_when(spark: SparkSession) -> None:
    def replica(
        minute: int, replica_id: int, role: str, lag: int, caught_up: float | None, epoch: int = 4
    ) -> dict[str, Any]:
        time = None if caught_up is None else at(caught_up)
        return {
            "minute": minute, "replica_id": replica_id, "role": role, "lag": lag, "last_caught_up_time": time,
            "leader_epoch": epoch,
        }  # fmt: skip

    history = quorum_lag(
        observed(
            spark,
            "quorum",
            replica(0, 1, "leader", 0, 0),
            replica(0, 2, "voter", 0, 0),
            replica(0, 3, "observer", 5, None),
            replica(10, 1, "voter", 40, 8.5, 5),
            replica(10, 2, "leader", 0, 12, 5),  # by the clock of the leader, which is two minutes ahead of ours
            replica(20, 1, "voter", 10, 19, 5),
            replica(20, 2, "leader", 0, 20, 5),
        )
    )
    rows = {row.replica_id: row for row in quorum_health(history).collect()}
    one, two, three = rows[1], rows[2], rows[3]
    assert (one.role, one.lag, one.most_lag, one.times_leader, one.observations) == ("voter", 10, 40, 1, 3)
    assert (one.seconds_since_caught_up, one.most_seconds_since_caught_up, one.is_there) == (60.0, 90.0, True)
    assert (two.role, two.most_lag, two.most_seconds_since_caught_up, two.times_leader) == ("leader", 0, 0.0, 2)
    assert (three.seconds_since_caught_up, three.is_there, three.last_seen.timestamp()) == (
        None,
        False,
        at(0).timestamp(),
    )


def test_how_full_disks_are_and_how_fast_they_fill(spark: SparkSession) -> None:
    def replica(minute: int, broker: int, log_dir: str, size: int | None, usable: int = 50) -> dict[str, Any]:
        topic = None if size is None else "orders"
        place = {"broker_id": broker, "log_dir": log_dir, "topic_name": topic}
        return {"minute": minute, "size_bytes": size, "total_bytes": 100, "usable_bytes": usable, **place}

    rows = disk_balance(
        observed(
            spark,
            "log_dirs",
            replica(0, 1, "/a", 10),
            replica(24 * 60, 1, "/a", 20, 20),
            replica(24 * 60, 1, "/a", 10, 20),
            replica(24 * 60, 2, "/b", 15),
            replica(24 * 60, 2, "/c", None),
        )
    ).collect()
    found = {(row.broker_id, row.log_dir): row for row in rows}
    full = found[1, "/a"]
    assert (full.bytes, full.replicas, full.skew, full.bytes_per_day) == (30, 2, 2.0, 20.0)
    assert full.used_share == pytest.approx(0.8)
    assert (found[2, "/b"].skew, found[2, "/b"].bytes_per_day) == (1.0, None)
    assert (found[2, "/c"].bytes, found[2, "/c"].replicas, found[2, "/c"].skew) == (0, 0, 0.0)


def test_how_much_a_topic_takes_and_how_unevenly(spark: SparkSession) -> None:
    def replica(minute: int, broker: int, partition: int, size: int, *, is_future: bool = False) -> dict[str, Any]:
        place = {"broker_id": broker, "log_dir": "/a", "topic_name": "orders", "partition": partition}
        return {"minute": minute, "size_bytes": size, "is_future": is_future, **place}

    day = 24 * 60
    (row,) = topic_sizes(
        observed(
            spark,
            "log_dirs",
            *(replica(0, broker, partition, 10) for broker in (1, 2) for partition in (0, 1)),
            *(replica(2 * day, 1, 0, 60), replica(2 * day, 2, 0, 50), replica(2 * day, 2, 0, 40, is_future=True)),
            *(replica(2 * day, 1, 1, 20), replica(2 * day, 2, 1, 10)),
            {"minute": 2 * day, "broker_id": 3, "log_dir": "/b"},
        )
    ).collect()
    assert (row.topic, row.partitions, row.bytes, row.largest_bytes, row.largest_partition) == ("orders", 2, 140, 60, 0)
    assert (row.skew, row.bytes_per_day) == (1.5, 50.0)


def test_which_groups_fall_behind_while_they_are_watched(spark: SparkSession) -> None:
    def place(
        minute: int, group: str, committed: int, end: int, partition: int = 0, *, age: float | None = None
    ) -> dict[str, Any]:
        known = {"minute": minute, "group_id": group, "state": "Stable", "topic_name": "orders", "partition": partition}
        return {**known, "committed_offset": committed, "end_offset": end, "lag": end - committed, "lag_minutes": age}

    rows = group_lag_growth(
        observed(
            spark,
            "group_lag",
            *(place(0, "growing", 100, 100), place(1, "growing", 150, 200), place(2, "growing", 190, 300, age=1.5)),
            *(place(0, "stopped", 100, 100), place(2, "stopped", 100, 300, age=2.0)),
            *(place(0, "stopped", 50, 60, 1, age=9.0), place(2, "stopped", 50, 60, 1, age=11.0)),
            *(place(0, "falling", 10, 100, age=7.0), place(2, "falling", 290, 300, age=0.5)),
            *(place(0, "falling", 10, 100, 1, age=7.0), place(2, "falling", 98, 100, 1)),
            *(place(0, "done", 10, 100), place(2, "done", 300, 300)),
            place(2, "once", 10, 300),
            {"minute": 2, "group_id": "nothing", "topic_name": "orders", "partition": 0},
        )
    ).collect()
    found = {row.group_id: row for row in rows}
    assert {name: row.verdict for name, row in found.items()} == {
        "growing": "growing", "stopped": "stopped", "falling": "falling", "done": "none", "once": "unknown",
    }  # fmt: skip
    growing = found["growing"]
    assert (growing.first_lag, growing.lag, growing.most_lag, growing.records_per_minute) == (0, 110, 110, 55.0)
    assert {name: row.lag_minutes for name, row in found.items()} == {
        "growing": 1.5,
        "stopped": 11.0,  # of two partitions the older
        "falling": None,  # of partition 1 it is not known any more
        "done": 0.0,
        "once": None,
    }
    assert (found["stopped"].lag, found["once"].records_per_minute) == (210, None)
