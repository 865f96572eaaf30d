"""aiokafka's AIOKafkaAdminClient against a node: it asks in old versions, which Kafka still serves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import InvalidPartitionsError
from tools.apache_kafka import Barnabas

FreshName = Callable[[str], str]


def run(node: Barnabas, use: Callable[[AIOKafkaAdminClient], Awaitable[None]]) -> None:
    async def session() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=node.bootstrap)
        await admin.start()
        try:
            await use(admin)
        finally:
            await admin.close()

    asyncio.run(session())


def test_describe_cluster_tells_the_node(node: Barnabas) -> None:
    async def use(admin: AIOKafkaAdminClient) -> None:
        found = await admin.describe_cluster()
        host, port = node.address
        assert found["brokers"] == [{"node_id": 1, "host": host, "port": port, "rack": None}]
        assert found["controller_id"] == 1

    run(node, use)


def test_topics_are_created_grown_and_deleted(node: Barnabas, fresh_name: FreshName) -> None:
    topic = fresh_name("topic")

    async def use(admin: AIOKafkaAdminClient) -> None:
        created = await admin.create_topics([NewTopic(topic, 2, 1)])
        assert created.topic_errors == [(topic, 0, None)]
        again = await admin.create_topics([NewTopic(topic, 2, 1)])
        assert again.topic_errors == [(topic, 36, f"Topic '{topic}' already exists.")]
        assert topic in await admin.list_topics()
        await admin.create_partitions({topic: NewPartitions(4)})
        (found,) = await admin.describe_topics([topic])
        assert [(p["partition"], p["leader"], p["isr"]) for p in found["partitions"]] == [(i, 1, [1]) for i in range(4)]
        with pytest.raises(InvalidPartitionsError):
            await admin.create_partitions({topic: NewPartitions(1)})
        deleted = await admin.delete_topics([topic])
        assert deleted.topic_error_codes == [(topic, 0)]
        assert topic not in await admin.list_topics()
        assert (await admin.delete_topics([topic])).topic_error_codes == [(topic, 3)]

    run(node, use)


def test_alter_configs_replaces_what_was_set_at_creation(node: Barnabas, fresh_name: FreshName) -> None:
    topic = fresh_name("topic")

    async def use(admin: AIOKafkaAdminClient) -> None:
        await admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"retention.ms": "7"})])
        wanted = ConfigResource(ConfigResourceType.TOPIC, topic, {"segment.bytes": "1048576"})
        (altered,) = await admin.alter_configs([wanted])
        assert [(row[0], row[3]) for row in altered.resources] == [(0, topic)]
        asked = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": None, "segment.bytes": None})
        (described,) = await admin.describe_configs([asked])
        (row,) = described.resources
        values = {entry[0]: entry[1] for entry in row[4]}
        assert values == {"retention.ms": "604800000", "segment.bytes": "1048576"}

    run(node, use)
