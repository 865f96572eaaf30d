"""What changed, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from barnabas.lake.tables.gold.changes import TABLES, changes, config_history
from tests.lake.tables.gold.histories import Histories, at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

INPUTS = TABLES[0].inputs


@pytest.fixture(scope="module")
def histories(spark: SparkSession) -> Histories:
    return Histories(spark)


def _changes(histories: Histories, **given: DataFrame) -> list[str]:
    tables = [given.get(name) or histories.table(name) for name in INPUTS]
    return [row.sentence for row in changes(*tables).orderBy("offset").collect()]


def test_a_setting_is_told_with_its_values_before_and_after(histories: Histories) -> None:
    orders = {"resource_type": "TOPIC", "resource_name": "orders", "name": "retention.ms"}
    configs = histories.table(
        "configs",
        {**orders, "begin": 10, "end": 20, "value": "604800000"},
        {**orders, "begin": 20, "end": 30, "value": "86400000"},
        {"resource_type": "BROKER", "resource_name": "", "name": "log.cleaner.threads", "begin": 40, "value": "2"},
    )
    assert _changes(histories, configs=configs) == [
        "orders: retention.ms set to 604800000 at 2026-03-01T12:01:00Z in epoch 7",
        "orders: retention.ms 604800000 -> 86400000 at 2026-03-01T12:02:00Z in epoch 7",
        "orders: retention.ms no longer set (was 86400000) at 2026-03-01T12:03:00Z",
        "every broker: log.cleaner.threads set to 2 at 2026-03-01T12:04:00Z in epoch 7",
    ]


def test_config_history_has_a_row_for_each_step_and_none_for_a_gap(histories: Histories) -> None:
    orders = {"resource_type": "TOPIC", "resource_name": "orders", "name": "retention.ms"}
    configs = histories.table(
        "configs",
        {**orders, "begin": 10, "end": 20, "value": "1"},
        {**orders, "begin": 30, "end": None, "value": "2"},
    )
    rows = config_history(configs).orderBy("offset").collect()
    assert [(row.offset, row.before, row.after) for row in rows] == [(10, None, "1"), (20, "1", None), (30, None, "2")]
    assert rows[2].time.timestamp() == at(3).timestamp()


def test_partitions_that_come_and_go_with_their_topic_are_not_told_again(histories: Histories) -> None:
    topics = histories.table("topics", {"topic_id": "T", "name": "orders", "begin": 10, "end": 90})
    rows = [
        histories.partition(10, 20),
        histories.partition(20, 90, leader=2, isr=[2], leader_epoch=1),
        histories.partition(50, 90, partition=1),
    ]
    assert _changes(histories, topics=topics, partitions=histories.table("partitions", *rows)) == [
        "topic orders created at 2026-03-01T12:01:00Z in epoch 7",
        "partition orders-0: leader 1 -> 2, leader_epoch 0 -> 1, isr [1, 2] -> [2] at 2026-03-01T12:02:00Z in epoch 7",
        "partition orders-1 created at 2026-03-01T12:05:00Z in epoch 7",
        "topic orders deleted at 2026-03-01T12:09:00Z",
    ]


def test_acls_quotas_features_users_brokers_and_leaders_are_told(histories: Histories) -> None:
    acl = {
        "resource_type": "TOPIC", "resource_name": "pay", "pattern_type": "PREFIXED", "principal": "User:alice",
        "host": "*", "operation": "READ", "permission": "ALLOW",
    }  # fmt: skip
    told = _changes(
        histories,
        acls=histories.table("acls", {"acl_id": "A", **acl, "begin": 10, "end": 20}),
        quotas=histories.table(
            "quotas",
            {"entity": [("client-id", None), ("user", "bob")], "name": "producer_byte_rate", "value": 5.0, "begin": 30},
        ),
        features=histories.table("features", {"name": "metadata.version", "level": 29, "begin": 40}),
        users=histories.table("users", {"name": "boot", "mechanism": "SCRAM-SHA-256", "iterations": 4096, "begin": 50}),
        brokers=histories.table(
            "brokers",
            {"broker_id": 1, "epoch": 5, "fenced": True, "in_controlled_shutdown": False, "begin": 60, "end": 70},
            {"broker_id": 1, "epoch": 5, "fenced": False, "in_controlled_shutdown": False, "begin": 70},
        ),
        leader_epochs=histories.table(
            "leader_epochs",
            {"epoch": 1, "leader_id": 3, "begin": 80, "end": 90},
            {"epoch": 2, "leader_id": 1, "begin": 90},
        ),
    )
    assert [sentence.partition(" at 20")[0] for sentence in told] == [
        "acl User:alice may READ TOPIC pay... from * created",
        "acl User:alice may READ TOPIC pay... from * deleted",
        "quota of client-id default, user bob: producer_byte_rate set to 5",
        "feature: metadata.version set to 29",
        "user boot SCRAM-SHA-256 created",
        "broker 1 created",
        "broker 1: fenced true -> false",
        "controller 3 leads",
        "controller 1 leads",
    ]
