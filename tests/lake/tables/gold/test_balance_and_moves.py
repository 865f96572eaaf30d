"""Balance, racks, reassignments and the leaders of the quorum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from barnabas.lake.tables.gold.balance import broker_balance, rack_violations
from barnabas.lake.tables.gold.moves import quorum_leaders, reassignments
from tests.lake.tables.gold.histories import Histories

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def histories(spark: SparkSession) -> Histories:
    return Histories(spark)


def test_balance_and_racks_are_those_of_the_end_of_the_log(histories: Histories) -> None:
    racks = {1: "a", 2: "a", 3: "b"}
    brokers = histories.table(
        "brokers",
        *({"broker_id": broker, "rack": rack, "fenced": False, "begin": 0} for broker, rack in racks.items()),
    )
    partitions = histories.table(
        "partitions",
        histories.partition(0, 5, replicas=[3, 1], leader=3),
        histories.partition(5, replicas=[1, 2], leader=1),
        histories.partition(0, partition=1, replicas=[1, 3], leader=3),
        histories.partition(0, partition=2, replicas=[1], leader=1),
        histories.partition(0, partition=3, replicas=[1, 2, 3], leader=1),
    )
    rows = {row.broker_id: row for row in broker_balance(brokers, partitions).collect()}
    assert {broker: (row.replicas, row.leaders, row.preferred_leaders) for broker, row in rows.items()} == {
        1: (4, 3, 4),
        2: (2, 0, 0),
        3: (2, 1, 0),
    }
    assert rows[1].replica_skew == pytest.approx(4 / (8 / 3))
    (violation,) = rack_violations(brokers, partitions).collect()
    assert (violation.partition, violation.racks, violation.possible_racks) == (0, ["a"], 2)


def test_reassignments_have_an_outcome_and_the_quorum_leaders_a_time(histories: Histories) -> None:
    moving: dict[str, Any] = {"replicas": [1, 2, 3], "adding_replicas": [3], "removing_replicas": [2]}
    partitions = histories.table(
        "partitions",
        histories.partition(0, 10),
        histories.partition(10, 20, **moving),
        histories.partition(20, 30, **moving, isr=[1, 2, 3]),
        histories.partition(30, replicas=[1, 3], isr=[1, 3]),  # done after 2 minutes
        histories.partition(0, 10, partition=1),
        histories.partition(10, 20, partition=1, **moving),
        histories.partition(20, partition=1),  # cancelled
        histories.partition(10, 20, partition=2, **moving),  # deleted
        histories.partition(40, partition=3, **moving, isr=[1, 2, 3]),  # running
        histories.partition(10, 20, partition=4, **moving, isr=[1, 2, 3]),
        # changed half-way: 4 instead of 3, which is still there
        histories.partition(
            20, 30, partition=4, replicas=[1, 4, 2, 3], adding_replicas=[3, 4], removing_replicas=[2, 3]
        ),
        histories.partition(30, partition=4, replicas=[1, 4], isr=[1, 4]),
    )
    rows = reassignments(partitions, histories.log_until(50)).orderBy("partition", "valid_from_offset").collect()
    assert [(row.partition, row.outcome, row.minutes, row.added_in_sync) for row in rows] == [
        (0, "done", 2.0, [3]),
        (1, "cancelled", 1.0, []),
        (2, "deleted", 1.0, []),
        (3, "running", 1.0, [3]),
        (4, "changed", 1.0, []),
        (4, "done", 1.0, [4]),
    ]
    epochs = histories.table(
        "leader_epochs",
        {"epoch": 1, "leader_id": 3, "voters": [1, 2, 3], "granting_voters": [2, 3], "begin": 0, "end": 30},
        {"epoch": 2, "leader_id": 1, "voters": [1, 2, 3], "granting_voters": [1, 2, 3], "begin": 30},
    )
    leaders = quorum_leaders(epochs, histories.log_until(50)).orderBy("epoch").collect()
    assert [(row.leader_id, row.minutes, row.is_over, row.granting_voters) for row in leaders] == [
        (3, 3.0, True, 2),
        (1, 2.0, False, 3),
    ]
