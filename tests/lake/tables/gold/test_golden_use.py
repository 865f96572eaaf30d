"""Tables of gold about what is written and read, on the logs of a real node, against answers found in Kafka's own dump.

The node has a part of the cluster's partitions; what is not in its directories, the lake has not seen."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.lake.asking.opened import OpenLake
from barnabas.lake.declared_column import ddl
from barnabas.lake.keeping.store import Lake
from barnabas.lake.tables.gold import consumption, traffic
from barnabas.lake.tables.traffic import LOG_RECORDS, TABLES
from tests.lake.metadata_golden import CLUSTER_ID
from tests.lake.tables.gold.golden import history
from tests.lake.tables.gold.replaying import Rows, Span, same, time_of
from tests.storage.golden import data_batches, extract_node

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def tables(spark: SparkSession, lake: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """What is made of the node's logs and of the lake's groups, transactions, topics and partitions."""
    node = extract_node(tmp_path_factory.mktemp("node"))
    logs = spark.read.format("kafka_log").schema(ddl(LOG_RECORDS.columns)).option("topicsPattern", "(?!__).+")
    records = logs.load(f"{node / 'd0'},{node / 'd1'}").cache()
    opened = OpenLake(spark, Lake(lake))
    made = {table.name: table.build(records).cache() for table in TABLES}
    found = {}
    for table in (*traffic.TABLES, *consumption.TABLES):
        inputs = [
            made[name] if name in made else opened[name].where(f"cluster_id = '{CLUSTER_ID}'") for name in table.inputs
        ]
        made[table.name] = table.build(*inputs)
        rows = made[table.name].toArrow().to_pylist()
        found[table.name] = [{key: row[key] for key in row if key != "cluster_id"} for row in rows]
    for frame in (records, *(made[table.name] for table in TABLES)):
        frame.unpersist()
    return found


def _written() -> dict[str, dict[int, Rows]]:
    """The records of each topic and partition that are no markers of transactions."""
    found: dict[str, dict[int, Rows]] = defaultdict(lambda: defaultdict(list))
    for file, batches in data_batches().items():
        topic, _, partition = file.split("/")[1].rpartition("-")
        for batch in batches if not topic.startswith("__") else ():
            for record in batch["records"] if not batch["control"] else ():
                size = sum(len(bytes.fromhex(record[part] or "")) for part in ("key", "value"))
                found[topic][int(partition)].append({"size": size, "time": time_of(record["timestamp"])})
    return found


def _topics() -> dict[str, Span]:
    """The topics that are there, by name."""
    return {span.value["name"]: span for span in history().now["topics"]}


def _count(topic: str) -> int:
    return sum(span.key[0] == _topics()[topic].key[0] for span in history().now["partitions"])


def test_rates_and_sizes_are_those_of_the_records(tables: dict[str, Rows]) -> None:
    expected, plans = [], []
    for topic, partitions in _written().items():
        records = [record for found in partitions.values() for record in found]
        size, times = sum(record["size"] for record in records), [record["time"] for record in records]
        (hour,) = {time.replace(minute=0, second=0, microsecond=0) for time in times}  # each was written within one
        place = {"topic_id": _topics()[topic].key[0], "topic": topic}
        expected.append(
            {
                **place,
                "partitions": len(partitions),
                "records": len(records),
                "bytes": size,
                "mean_record_bytes": size / len(records),
                "first_time": min(times),
                "last_time": max(times),
                "mean_bytes_per_second": size / 3600,
                "peak_bytes_per_second": size / 3600,
                "peak_hour": hour,
            }
        )
        # So little is written that one partition is enough, and no group has a member any more.
        count = _count(topic)
        assert count < 4
        groups = {"d-none", "d-gzip", "d-lz4", "d-zstd", "d-snappy"}
        plans.append(
            {
                **place,
                "partitions": count,
                "recommended": count,
                "reason": "enough",
                "peak_bytes_per_second": size / 3600,
                "most_members": 0 if topic in groups else None,
            }
        )
    same(tables["topic_traffic"], expected)
    same(tables["partition_plan"], plans)
    assert {row["topic"]: row["records"] for row in tables["topic_traffic"]}["d-txn"] == 11 + 6  # of 28, 11 are markers


def test_a_partition_is_hot_that_has_all_of_two(tables: dict[str, Rows]) -> None:
    hot = {"d-wire": (0, 157), "e-pref": (0, 130), "r-move": (1, 25)}
    same(
        tables["hot_partitions"],
        [
            {
                "topic_id": _topics()[topic].key[0],
                "topic": topic,
                "partition": partition,
                "bytes": size,
                "share": 1.0,
                "times_even": 2.0,
            }
            for topic, (partition, size) in hot.items()
        ],
    )
    assert tables["key_skew"] == []  # only r-cancel has a hundred records, and they have no keys


COMMITS = [
    # group, topic, partition, the offset, its time, the lag when it first committed
    ("g-txn", "d-none", 0, 10, "19:43:35.903", None),
    ("g-empty", "d-snappy", 0, 60, "19:43:52.837", None),
    ("g-consumer", "d-lz4", 0, 60, "19:43:48.801", None),
    ("g-consumer", "d-zstd", 0, 60, "19:43:48.801", None),
    ("g-classic", "d-gzip", 0, 60, "19:43:42.762", None),
    ("g-classic", "d-none", 0, 30, "19:43:42.762", None),
    ("g-classic", "d-none", 1, 30, "19:43:42.762", None),
    ("g-consumer-empty", "d-snappy", 0, 60, "19:43:57.871", None),
    ("g-simple", "d-none", 0, 15, "19:44:04.850", 30 - 7),
]

SUBSCRIBED = {("g-cfg1", "d-lz4")}  # of share groups, which commit no offsets


def _clock(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-15T{text}+00:00")


def test_lag_is_what_is_between_the_last_commit_and_the_end(tables: dict[str, Rows]) -> None:
    def age(topic: str, partition: int, offset: int) -> float:
        """In minutes, of the record at the offset: those of a partition are two seconds apart, so its place tells its time."""
        minutes: float = (history().last_time - _written()[topic][partition][offset]["time"]).total_seconds() / 60
        return minutes

    ends = {"d-none": 30, "d-snappy": 60, "d-lz4": 60, "d-zstd": 60, "d-gzip": 60}
    same(
        tables["group_lag"],
        [
            {
                "group_id": group,
                "topic": topic,
                "partition": partition,
                "committed_offset": offset,
                "end_offset": ends[topic],
                "lag": ends[topic] - offset,
                "committed_at": _clock(time),
                "lag_minutes": age(topic, partition, offset) if offset < ends[topic] else 0.0,
                "lag_is_interpolated": offset < ends[topic],
                "lag_before": before,
                # The log ends 9 minutes after the commit of g-txn, which is its only one; g-simple has come from 7 to 15.
                "trend": {"g-txn": "unknown", "g-simple": "falling"}.get(group, "none"),
            }
            for group, topic, partition, offset, time, before in COMMITS
        ],
    )
    assert tables["hanging_transactions"] == []  # tx-open was aborted as well


def test_topics_are_used_unread_or_empty(tables: dict[str, Rows]) -> None:
    written = _written()
    expected = []
    for topic, span in _topics().items():
        if topic.startswith("__"):
            continue
        times = [record["time"] for found in written.get(topic, {}).values() for record in found]
        commits = [commit for commit in COMMITS if commit[1] == topic]
        expected.append(
            {
                "topic_id": span.key[0],
                "topic": topic,
                "created": span.begin.time,
                "last_written": max(times, default=None),
                "last_committed": max((_clock(commit[4]) for commit in commits), default=None),
                "groups": len(
                    {(commit[0], commit[1]) for commit in commits} | {one for one in SUBSCRIBED if one[1] == topic}
                ),
                "verdict": "used" if commits else "never consumed" if times else "never written",
            }
        )
    same(tables["topic_use"], expected)
    assert len(expected) == 56
