"""The lake's live source, kafka_cluster, on Apache Kafka: what Spark reads is what Admin says, and what Kafka's tools made."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from tools.apache_kafka import ApacheKafka

from barnabas.client import sync
from barnabas.client.records import TopicPartition
from barnabas.lake.reading.cluster_tables import TABLES
from tests.crash.clients import create_topic

pytestmark = pytest.mark.interop


def rows(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select(*columns).collect())


def test_a_cluster_of_apache_kafka_is_seen_as_tables(spark: SparkSession, kafka: ApacheKafka) -> None:
    create_topic(kafka.bootstrap, "lake-orders", 2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(10):
        producer.produce("lake-orders", f"value {number}", partition=number % 2)
    producer.flush()

    def load(table: str) -> DataFrame:
        reader = spark.read.format("kafka_cluster").option("bootstrap.servers", kafka.bootstrap)
        schema = ", ".join(f"{column.name} {column.type}" for column in TABLES[table]) + ", error string"
        return reader.option("table", table).schema(schema).load().cache()

    with sync.Admin({"bootstrap.servers": kafka.bootstrap}) as admin:
        place = TopicPartition("lake-orders", 1)
        assert admin.alter_consumer_group_offsets("lake-app", {place: 2}) == {place: None}
        listed = admin.list_topics(include_internal=True)
        quorum = admin.describe_quorum()
        features = admin.describe_features()
        cluster_id = admin.describe_cluster().cluster_id
    assert rows(load("topics"), "topic_name", "topic_id", "num_partitions") == [
        (topic.name, str(topic.topic_id), topic.num_partitions) for topic in listed
    ]
    partitions = load("partitions").where("topic_name = 'lake-orders'")
    assert rows(partitions, "cluster_id", "partition", "isr") == [(cluster_id, number, [1]) for number in range(2)]
    lag = load("group_lag").where("group_id = 'lake-app'")
    assert rows(lag, "topic_name", "partition", "committed_offset", "end_offset", "lag") == [
        ("lake-orders", 1, 2, 5, 3)
    ]
    assert rows(load("groups").where("group_id = 'lake-app'"), "type", "state", "num_members") == [
        ("Classic", "Empty", 0)
    ]
    sizes = load("log_dirs").where("topic_name = 'lake-orders' and size_bytes > 0")
    assert rows(sizes, "partition") == [(0,), (1,)]
    configs = load("configs")
    assert rows(configs.where("is_sensitive and value is not null"), "name") == []
    assert configs.where("resource_type = 'BROKER' and name = 'log.dirs' and value is not null").count() > 0
    assert {row.replica_id for row in load("quorum").where("role <> 'observer'").collect()} == {
        voter.replica_id for voter in quorum.voters
    }
    assert dict(rows(load("features"), "feature", "finalized_level")) == {
        name: features.level(name) for name in features.supported_features
    }
    assert rows(load("brokers"), "broker_id", "is_fenced") == [(1, False)]
    assert "error" in load("acls").columns
    assert [row.error for row in load("acls").collect() if row.error] != [], "this node has no authorizer"
