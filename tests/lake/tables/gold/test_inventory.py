"""What there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from barnabas.lake.tables.gold.balance import broker_balance
from barnabas.lake.tables.gold.inventory import broker_inventory, topic_inventory
from tests.lake.tables.gold.histories import Histories, at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def histories(spark: SparkSession) -> Histories:
    return Histories(spark)


def test_each_topic_and_broker_is_one_row_with_what_is_set_and_who_is_about_it(histories: Histories) -> None:
    topic = {"resource_type": "TOPIC", "resource_name": "orders"}
    configs = histories.table(
        "configs",
        {**topic, "name": "retention.ms", "value": "5", "begin": 0, "end": 9},
        {**topic, "name": "retention.ms", "value": "6", "begin": 9},
        {**topic, "name": "min.insync.replicas", "value": "2", "begin": 0},
        {"resource_type": "BROKER", "resource_name": "", "name": "min.insync.replicas", "value": "1", "begin": 0},
        {"resource_type": "BROKER", "resource_name": "2", "name": "log.cleaner.threads", "value": "4", "begin": 0},
    )
    partitions = histories.table(
        "partitions",
        histories.partition(0, partition=0, replicas=[1, 2]),
        histories.partition(0, partition=1, replicas=[1, 2, 3], adding_replicas=[3], removing_replicas=[1]),
        histories.partition(0, topic_id="S", topic_name="stock", replicas=[2], leader=2),
    )
    entry = {
        "resource_type": "TOPIC", "pattern_type": "LITERAL", "resource_name": "orders", "principal": "User:a", "host": "*",
        "operation": "READ", "permission": "ALLOW", "begin": 0,
    }  # fmt: skip
    acls = histories.table(
        "acls",
        {**entry, "acl_id": "1"},
        {**entry, "acl_id": "2", "operation": "WRITE", "permission": "DENY"},
        {**entry, "acl_id": "3", "resource_name": "or", "pattern_type": "PREFIXED"},
        {**entry, "acl_id": "4", "resource_name": "orders-too-long", "pattern_type": "PREFIXED"},
        {**entry, "acl_id": "5", "resource_name": "*"},
        {**entry, "acl_id": "6", "resource_name": "*", "end": 5},
        {**entry, "acl_id": "7", "resource_name": "orders", "resource_type": "GROUP"},
    )
    offsets = histories.table(
        "group_offsets",
        *({"group_id": group, "topic": "orders", "partition": 0, "begin": 0} for group in ("b", "a")),
        {"group_id": "gone", "topic": "orders", "partition": 0, "begin": 0, "end": 5},
    )
    topics = histories.table(
        "topics",
        {"topic_id": "T", "name": "orders", "begin": 10},
        {"topic_id": "S", "name": "stock", "begin": 0},
        {"topic_id": "O", "name": "old", "begin": 0, "end": 5},
    )
    rows = {row.topic: row for row in topic_inventory(topics, partitions, configs, acls, offsets).collect()}
    assert rows.keys() == {"orders", "stock"}
    orders, stock = rows["orders"], rows["stock"]
    assert (orders.topic_id, orders.created.timestamp()) == ("T", at(1).timestamp())
    assert (orders.partitions, orders.replication_factor, orders.min_insync_replicas) == (2, 2, 2)
    assert orders.settings == {"retention.ms": "6", "min.insync.replicas": "2"}
    assert (orders.acl_entries, orders.groups) == (4, ["a", "b"])
    assert (stock.partitions, stock.replication_factor, stock.min_insync_replicas) == (1, 1, 1)
    assert (stock.settings, stock.acl_entries, stock.groups) == ({}, 1, [])

    listener = {"name": "PLAIN", "host": "one", "port": 9092, "security_protocol": 0}
    broker = {"fenced": False, "in_controlled_shutdown": False, "begin": 0}
    brokers = histories.table(
        "brokers",
        {**broker, "broker_id": 1, "rack": "a", "listeners": [tuple(listener.values())], "log_dirs": ["x", "y"]},
        {**broker, "broker_id": 2, "fenced": True},
    )
    there = broker_inventory(brokers, configs, broker_balance(brokers, partitions)).orderBy("broker_id").collect()
    assert [(row.broker_id, row.rack, row.fenced, row.replicas, row.leaders, row.settings) for row in there] == [
        (1, "a", False, 2, 2, {}),
        (2, None, True, 3, 1, {"log.cleaner.threads": "4"}),
    ]
    assert (there[0].endpoints, there[0].log_dirs) == (["PLAIN://one:9092"], 2)
