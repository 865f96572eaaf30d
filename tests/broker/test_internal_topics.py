"""Internal topics on several brokers: as many replicas as their settings say, and no coordinator while brokers are too few."""

from __future__ import annotations

import asyncio
import logging

import pytest

from barnabas.client import Admin
from barnabas.client.connection import Connection
from barnabas.config.internal_topics import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.testing import AsyncCluster
from barnabas.wire import ErrorCode
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tests.broker.clusters import state, until

VERSION = 6
SHARE_PARTITION = f"g:{'A' * 22}:0"
INTERNAL = {
    GROUP_METADATA_TOPIC: (0, "g", "offsets.topic.replication.factor"),
    TRANSACTION_STATE_TOPIC: (1, "t", "transaction.state.log.replication.factor"),
    SHARE_GROUP_STATE_TOPIC: (2, SHARE_PARTITION, "share.coordinator.state.topic.replication.factor"),
}


async def find(cluster: AsyncCluster, key_type: int, key: str) -> FindCoordinatorResponse.Coordinator:
    host, _, port = cluster.address(1).rpartition(":")
    connection = await Connection.open(host, int(port), "test")
    try:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        response: FindCoordinatorResponse = await connection.call(request, VERSION)
        return response.coordinators[0]
    finally:
        connection.close()


@pytest.mark.parametrize("topic", list(INTERNAL))
def test_there_is_no_coordinator_until_there_are_enough_brokers(topic: str, caplog: pytest.LogCaptureFixture) -> None:
    key_type, key, setting = INTERNAL[topic]

    async def main() -> None:
        async with AsyncCluster(3, controllers=1, config={setting: "3"}) as cluster:
            await cluster.stop_node(3)
            async with Admin({"bootstrap.servers": cluster.address(1)}) as admin:
                await admin.unregister_broker(3)  # before, it is a broker that will return, and gets a replica
            row = await find(cluster, key_type, key)
            assert ErrorCode(row.error_code) is ErrorCode.COORDINATOR_NOT_AVAILABLE
            await until(lambda: "Unable to replicate the partition 3 time(s)" in caplog.text)
            assert topic not in cluster.nodes[1].image.topics.ids
            await cluster.start_node(3)
            async with asyncio.timeout(30):
                while (row := await find(cluster, key_type, key)).error_code:
                    assert ErrorCode(row.error_code) is ErrorCode.COORDINATOR_NOT_AVAILABLE
                    await asyncio.sleep(0.05)
            assert row.node_id == state(cluster, topic).leader
            assert sorted(state(cluster, topic).replicas) == [1, 2, 3]

    with caplog.at_level(logging.WARNING, "barnabas"):
        asyncio.run(main())
