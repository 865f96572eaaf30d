"""Minutes of trouble, and who led."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from barnabas.lake.tables.gold.availability import (
    broker_availability,
    broker_fences,
    isr_flaps,
    leader_changes,
    partition_trouble,
    topic_availability,
)
from tests.lake.tables.gold.histories import Histories, at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def histories(spark: SparkSession) -> Histories:
    return Histories(spark)


def test_minutes_are_counted_to_the_end_of_the_log_and_the_minimum_is_that_of_the_time(histories: Histories) -> None:
    partitions = histories.table(
        "partitions",
        histories.partition(0, 10),
        histories.partition(10, 30, isr=[1]),  # 2 minutes under-replicated; the minimum is 1, and from 20 on 2
        histories.partition(30, 50, isr=[1], leader_epoch=1),  # 2 more minutes
        histories.partition(50, 60, isr=[], leader=-1),  # 1 minute offline
        histories.partition(60),
        histories.partition(0, partition=1, isr=[2]),  # open: 10 minutes
        histories.partition(0, partition=2, replicas=[1, 2, 3], adding_replicas=[3]),  # a move is no trouble
    )
    minimum = {"resource_type": "TOPIC", "resource_name": "orders", "name": "min.insync.replicas"}
    configs = histories.table("configs", {**minimum, "begin": 20, "value": "2"})
    trouble = partition_trouble(partitions, configs, histories.log_until(100)).cache()
    rows = trouble.where("partition = 0").orderBy("valid_from_offset").collect()
    assert [(row.minutes, row.under_replicated, row.offline, row.below_min_isr, row.min_isr) for row in rows] == [
        (1.0, True, False, False, 1),
        (3.0, True, False, True, 2),
        (1.0, True, True, True, 2),
    ]
    (topic,) = topic_availability(trouble).collect()
    assert (topic.under_replicated_minutes, topic.offline_minutes, topic.below_min_isr_minutes) == (10.0, 1.0, 8.0)
    assert (topic.partitions, topic.is_over) == (2, False)
    trouble.unpersist()


def test_a_broker_is_fenced_because_it_went_was_silent_or_is_new(histories: Histories) -> None:
    def broker(begin: int, end: int | None = None, *, fenced: bool, **row: object) -> dict[str, object]:
        fields = {"broker_id": 1, "epoch": 1, "incarnation_id": "A", "in_controlled_shutdown": False}
        return {"begin": begin, "end": end, "fenced": fenced, **fields, **row}

    brokers = histories.table(
        "brokers",
        broker(0, 10, fenced=True),
        broker(10, 20, fenced=False),
        broker(20, 25, fenced=True),
        broker(25, 30, fenced=True, rack="a"),
        broker(30, 40, fenced=False),
        broker(40, 50, fenced=False, in_controlled_shutdown=True),
        broker(50, 60, fenced=True, in_controlled_shutdown=True),
        broker(60, 70, fenced=True, incarnation_id="B"),
        broker(70, 80, fenced=False, incarnation_id="B"),
        broker(80, fenced=True, incarnation_id="C"),  # nobody had missed it
    )
    fences = broker_fences(brokers, histories.log_until(100)).cache()
    rows = fences.orderBy("valid_from_offset").collect()
    assert [(row.valid_from_offset, row.minutes, row.cause, row.is_over) for row in rows] == [
        (0, 1.0, "start", True),
        (20, 1.0, "silence", True),
        (50, 2.0, "shutdown", True),
        (80, 2.0, "restart", False),
    ]
    partitions = histories.table("partitions", histories.partition(20, 30, isr=[2], leader=2))
    trouble = partition_trouble(partitions, histories.table("configs"), histories.log_until(100))
    (row,) = broker_availability(trouble, fences, brokers).collect()
    assert (row.out_of_sync_minutes, row.partitions, row.fenced_minutes, row.fences) == (1.0, 1, 5.0, 3)
    fences.unpersist()


def test_a_change_of_leader_names_what_happened_beside_it(histories: Histories) -> None:
    def broker(number: int, begin: int, end: int | None, fenced: bool, going: bool = False) -> dict[str, object]:
        fields = {"epoch": 1, "incarnation_id": "A", "in_controlled_shutdown": going}
        return {"broker_id": number, "begin": begin, "end": end, "fenced": fenced, **fields}

    brokers = histories.table(
        "brokers",
        broker(1, 0, 20, False), broker(1, 20, 60, True), broker(1, 60, 80, False), broker(1, 80, 81, False, True),
        {**broker(1, 81, None, True, True), "valid_from_time": at(8.01)},  # fenced soon after it said that it goes
        broker(2, 0, 40, False), broker(2, 40, 50, True), broker(2, 50, None, False),
    )  # fmt: skip
    chain: list[tuple[int, dict[str, Any]]] = [
        (0, {"leader": 1}),
        (20, {"leader": 2, "isr": [2]}),  # broker 1 fenced
        (40, {"leader": -1, "isr": [2]}),  # broker 2 fenced
        (50, {"leader": 2, "isr": [2]}),  # broker 2 came back
        (70, {"leader": 1}),  # preferred leader
        (80, {"leader": 2, "isr": [2]}),  # broker 1 shut down
        (90, {"leader": 3, "replicas": [3, 4], "isr": [3, 4]}),  # reassignment
        (100, {"leader": 4, "replicas": [3, 4], "isr": [4], "leader_recovery_state": "RECOVERING"}),
        (110, {"leader": 3, "replicas": [5, 4, 3], "isr": [3]}),
    ]
    ends = [begin for begin, _ in chain[1:]] + [None]
    rows = [histories.partition(begin, end, **row) for (begin, row), end in zip(chain, ends, strict=True)]
    found = leader_changes(histories.table("partitions", *rows), brokers).orderBy("offset").collect()
    assert [(row.offset, row.leader_before, row.leader, row.cause) for row in found] == [
        (20, 1, 2, "broker 1 fenced"),
        (40, 2, -1, "broker 2 fenced"),
        (50, -1, 2, "broker 2 came back"),
        (70, 2, 1, "preferred leader election"),
        (80, 1, 2, "broker 1 shut down"),
        (90, 2, 3, "reassignment"),
        (100, 3, 4, "unclean election"),
        (110, 4, 3, "unknown"),
    ]


def test_a_replica_that_leaves_again_and_again_is_counted(histories: Histories) -> None:
    partitions = histories.table(
        "partitions",
        histories.partition(0, 10),
        histories.partition(10, 20, isr=[1]),
        histories.partition(20, 30),
        histories.partition(30, 40, isr=[1]),
        histories.partition(40, partition=0, isr=[1], replicas=[1]),  # removed, not flapping
    )
    (row,) = isr_flaps(partitions).collect()
    assert (row.broker_id, row.times, row.shortest_minutes) == (2, 2, 2.0)
