"""`Cluster(nodes=3)`: three nodes in one process that form a cluster, lose their controller, and go on."""

from __future__ import annotations

import asyncio

from barnabas.client import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.testing import AsyncCluster, Cluster
from barnabas.wire import KafkaError


async def create(servers: str, name: str) -> None:
    async with Admin({"bootstrap.servers": servers}) as admin:
        (created,) = (await admin.create_topics([NewTopic(name, 1, 1)])).values()
        assert not isinstance(created, KafkaError), created


def test_three_nodes_elect_a_controller_and_each_forwards_to_it() -> None:
    async def main() -> None:
        async with AsyncCluster(3) as cluster:
            for node_id in cluster.node_ids:
                await create(cluster.address(node_id), f"through-{node_id}")
            names = {f"through-{node_id}" for node_id in cluster.node_ids}
            async with asyncio.timeout(10):
                while any(set(node.image.topics.ids) != names for node in cluster.nodes.values()):
                    await asyncio.sleep(0.01)
            assert len({node.cluster_id for node in cluster.nodes.values()}) == 1
            for node in cluster.nodes.values():
                assert sorted(key for key, broker in node.image.brokers.items() if not broker.fenced) == [1, 2, 3]

    asyncio.run(main())


def test_the_cluster_goes_on_when_its_active_controller_dies_and_when_it_returns() -> None:
    async def main() -> None:
        async with AsyncCluster(3) as cluster:
            first = await cluster.wait_active_controller()
            await cluster.kill(first)
            second = await cluster.wait_active_controller(other_than=first)
            other = next(each for each in cluster.nodes if each != second)
            await create(cluster.address(other), "after-the-kill")
            node = await cluster.start_node(first)
            assert "after-the-kill" in node.image.topics.ids
            await cluster.stop_node(second)
            await cluster.wait_active_controller(other_than=second)
            await create(cluster.bootstrap_servers, "after-the-stop")

    asyncio.run(main())


def test_a_cluster_in_a_thread() -> None:
    with Cluster(nodes=3, topics={"orders": 2}) as cluster:
        asyncio.run(create(cluster.bootstrap_servers, "payments"))
        assert cluster.active_controller in cluster.node_ids
