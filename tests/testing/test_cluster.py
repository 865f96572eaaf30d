"""`Cluster(nodes=3)`: three nodes in one process that form a cluster, lose their controller, and go on."""

from __future__ import annotations

import asyncio
import random
import shutil

from barnabas.client import Admin
from barnabas.client.admin.features import FeatureUpdate
from barnabas.client.admin.quorum import RaftEndpoint
from barnabas.client.admin.topics import NewTopic
from barnabas.operations.local_cluster.formatting import format_joining
from barnabas.testing import AsyncCluster, Cluster
from barnabas.wire import ErrorCode, KafkaError


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


def test_brokers_and_controllers_may_be_nodes_of_their_own() -> None:
    async def main() -> None:
        async with AsyncCluster(2, controllers=3, racks=["a", "b"]) as cluster:
            assert cluster.node_ids == (1, 2, 101, 102, 103)
            await create(cluster.address(1), "one")
            first = await cluster.wait_active_controller()
            assert first in (101, 102, 103)
            await cluster.kill(first)
            await cluster.wait_active_controller(other_than=first)
            await create(cluster.address(2), "two")
            async with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
                quorum = await admin.describe_quorum()
            assert sorted(each.replica_id for each in quorum.voters) == [101, 102, 103]
            assert sorted(each.replica_id for each in quorum.observers) == [1, 2]
            image = cluster.nodes[1].image
            assert {key: broker.rack for key, broker in image.brokers.items()} == {1: "a", 2: "b"}
            assert sorted(image.controllers) == [101, 102, 103]

    asyncio.run(main())


def test_a_static_quorum_is_raised_to_a_dynamic_one() -> None:
    async def main() -> None:
        async with AsyncCluster(3, static_quorum=True) as cluster:
            node = cluster.nodes[1]
            assert node.quorum.kraft_version == 0
            async with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
                async with asyncio.timeout(20):  # until each voter has told the leader of itself
                    while True:
                        (error,) = (await admin.update_features({"kraft.version": FeatureUpdate(1)})).values()
                        if error is None:
                            break
                        assert error.code is ErrorCode.INVALID_UPDATE_VERSION
                        await asyncio.sleep(0.05)
            async with asyncio.timeout(10):
                while any(each.quorum.kraft_version != 1 for each in cluster.nodes.values()):
                    await asyncio.sleep(0.01)
            voters = node.quorum.driver.core.voters.current
            assert all(voter.key.directory_id is not None for voter in voters) and voters.ids == {1, 2, 3}

    asyncio.run(main())


def test_voters_come_and_go_and_the_leader_removes_itself() -> None:
    async def main() -> None:
        async with AsyncCluster(1, controllers=3) as cluster:
            settings = {"bootstrap.servers": cluster.bootstrap_servers}
            async with Admin(settings) as admin:
                first = await cluster.wait_active_controller()
                before = await admin.describe_quorum()
                gone = before.voter(first)
                assert gone is not None
                await admin.remove_raft_voter(first, gone.replica_directory_id)
                second = await cluster.wait_active_controller(other_than=first)
                async with asyncio.timeout(20):
                    while (found := await admin.describe_quorum()).voter(first) is not None:
                        await asyncio.sleep(0.05)
                assert found.leader_id == second and len(found.voters) == 2
                endpoints = [RaftEndpoint("CONTROLLER", "127.0.0.1", cluster.layout[first].ports["CONTROLLER"])]
                async with asyncio.timeout(20):  # until it has caught up as an observer
                    while (await admin.describe_quorum()).voter(first) is None:
                        try:
                            await admin.add_raft_voter(first, gone.replica_directory_id, endpoints)
                        except KafkaError as error:
                            assert error.code in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.DUPLICATE_VOTER)
                assert len((await admin.describe_quorum()).voters) == 3

    asyncio.run(main())


def test_a_controller_with_an_empty_disk_joins_by_itself() -> None:
    async def main() -> None:
        async with AsyncCluster(3, config={"controller.quorum.auto.join.enable": True}) as cluster:
            active = await cluster.wait_active_controller()
            lost = next(each for each in cluster.node_ids if each != active)
            await cluster.kill(lost)
            old = cluster.nodes[active].quorum.driver.core.voters.current.get(lost)
            shutil.rmtree(cluster.data_dir(lost))
            format_joining(cluster.cluster_id, lost, cluster.data_dir(lost), lambda: 0, random.Random())
            await cluster.start_node(lost)
            async with asyncio.timeout(30):
                while True:
                    voters = cluster.nodes[await cluster.wait_active_controller()].quorum.driver.core.voters.current
                    found = voters.get(lost)
                    if found is not None and old is not None and found.key != old.key:
                        break
                    await asyncio.sleep(0.05)
            assert voters.ids == {1, 2, 3}

    asyncio.run(main())
