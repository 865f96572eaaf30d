"""What happens to decisions when the active controller changes, and which nodes never get into a cluster."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest

from barnabas.broker.node import Node, NodeError
from barnabas.client import Admin
from barnabas.client.admin.quotas import quota_entity
from barnabas.client.connection import Connection
from barnabas.config.server import load
from barnabas.operations.local_cluster.formatting import format_joining
from barnabas.testing import AsyncCluster, BrokerError
from barnabas.wire import ErrorCode
from barnabas.wire.messages.create_topics import CreateTopicsRequest

OTHER_CLUSTER = "b3RoZXItY2x1c3Rlci1pZA"


def create(name: str) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=20_000)


async def opened(address: str) -> Connection:
    host, _, port = address.rpartition(":")
    return await Connection.open(host, int(port), "test")


async def until_all(cluster: AsyncCluster, is_so: Callable[[Node], bool]) -> None:
    async with asyncio.timeout(20):
        while not all(map(is_so, cluster.nodes.values())):
            await asyncio.sleep(0.01)


async def until_all_have(cluster: AsyncCluster, *names: str) -> None:
    await until_all(cluster, lambda node: set(node.image.topics.ids) == set(names))


def test_an_uncommitted_decision_disappears_with_its_controller_and_its_caller_is_told() -> None:
    async def main() -> None:
        async with AsyncCluster(1, controllers=3) as cluster:
            first = await cluster.wait_active_controller()
            await cluster.create_topic("kept", 1)
            others = [each for each in (101, 102, 103) if each != first]
            for other in others:
                await cluster.kill(other)
            connection = await opened(cluster.address(first, "CONTROLLER"))
            async with asyncio.timeout(20):
                response = await connection.call(create("ghost"), 7)  # no majority has it, so the controller resigns
            assert [row.error_code for row in response.topics] == [ErrorCode.NOT_CONTROLLER]
            connection.close()
            assert list(cluster.nodes[first].image.topics.ids) == ["kept"]
            await cluster.kill(first)
            for other in others:
                await cluster.start_node(other)
            second = await cluster.wait_active_controller()
            await cluster.create_topic("later", 1)
            await cluster.start_node(first)  # its log has the ghost, which the leader's log has not
            await until_all_have(cluster, "kept", "later")
            assert second in others

    asyncio.run(main())


def test_a_forwarded_request_waits_for_the_next_controller() -> None:
    async def main() -> None:
        async with AsyncCluster(1, controllers=3) as cluster:
            first = await cluster.wait_active_controller()
            connection = await opened(cluster.address(1))
            await cluster.kill(first)
            async with asyncio.timeout(20):
                response = await connection.call(create("t"), 7)
            assert [row.error_code for row in response.topics] == [ErrorCode.NONE]
            connection.close()
            await until_all_have(cluster, "t")

    asyncio.run(main())


def test_a_client_of_the_controllers_finds_the_next_active_one() -> None:
    async def main() -> None:
        async with (
            AsyncCluster(1, controllers=3) as cluster,
            Admin({"bootstrap.controllers": cluster.bootstrap_controllers}) as admin,
        ):
            alice = quota_entity(user="alice")
            for rate in (1000.0, 2000.0):
                first = await cluster.wait_active_controller()
                alteration = {alice: {"producer_byte_rate": rate}}
                assert await admin.alter_client_quotas(alteration) == {alice: None}
                await cluster.kill(first)
                await cluster.wait_active_controller(other_than=first)
                await cluster.start_node(first)

    asyncio.run(main())


def test_producer_ids_go_on_and_mutation_quotas_begin_anew_with_the_next_controller() -> None:
    async def main() -> None:
        async with (
            AsyncCluster(1, controllers=3) as cluster,
            Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin,
        ):
            node = cluster.nodes[1]
            given = [await node._allocate_producer_ids()]
            nobody = quota_entity(client_id="test")
            assert await admin.alter_client_quotas({nobody: {"controller_mutation_rate": 0.01}}) == {nobody: None}
            await until_all(cluster, lambda each: len(each.image.quotas) == 1)
            for round_ in range(2):
                connection = await opened(cluster.address(1))  # the refusal mutes it
                answers = [await connection.call(create(f"{name}-{round_}"), 7) for name in ("taken", "refused")]
                codes = [row.error_code for each in answers for row in each.topics]
                assert codes == [ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
                connection.close()
                first = await cluster.wait_active_controller()
                await cluster.kill(first)
                await cluster.wait_active_controller(other_than=first)
                given.append(await node._allocate_producer_ids())
                await cluster.start_node(first)
            assert len({start for start, _ in given}) == 3
            assert sorted(given) == given
            assert all(start + count <= later for (start, count), (later, _) in pairwise(given))

    asyncio.run(main())


def test_a_controller_that_was_away_for_long_gets_a_snapshot() -> None:
    async def main() -> None:
        config = {"metadata.log.max.record.bytes.between.snapshots": 2000, "metadata.max.retention.bytes": 4000}
        async with AsyncCluster(1, controllers=3, config=config) as cluster:
            active = await cluster.wait_active_controller()
            away = next(each for each in (101, 102, 103) if each != active)
            end_offset = cluster.nodes[away].quorum.driver.end_offset
            await cluster.kill(away)
            names = [f"t{number}" for number in range(40)]
            for name in names:
                await cluster.create_topic(name, 1)
            async with asyncio.timeout(20):
                while cluster.nodes[active].quorum.driver.core.log.start.offset <= end_offset:
                    await asyncio.sleep(0.05)
            await cluster.start_node(away)
            await until_all_have(cluster, *names)
            assert cluster.nodes[away].quorum.driver.core.log.start.offset > end_offset

    asyncio.run(main())


def test_a_node_of_another_cluster_is_refused_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with AsyncCluster(3) as cluster:
            leader = await cluster.wait_active_controller()
            lost = next(each for each in cluster.node_ids if each != leader)
            await cluster.kill(lost)
            shutil.rmtree(cluster.data_dir(lost))
            format_joining(OTHER_CLUSTER, lost, cluster.data_dir(lost), lambda: 0, Random())
            starting = asyncio.create_task(cluster.start_node(lost))
            async with asyncio.timeout(20):
                while "INCONSISTENT_CLUSTER_ID" not in caplog.text:
                    await asyncio.sleep(0.05)
            assert not starting.done() and cluster.active_controller == leader
            starting.cancel()
            await asyncio.wait([starting])

    with caplog.at_level(logging.ERROR, "barnabas"):
        asyncio.run(main())


def test_a_broker_that_finds_no_controller_gives_up_in_time() -> None:
    async def main() -> None:
        async with AsyncCluster(1, controllers=1, config={"initial.broker.registration.timeout.ms": 1500}) as cluster:
            await cluster.stop_node(1)
            await cluster.kill(101)
            with pytest.raises(BrokerError, match="did not get into the cluster within 1500 ms"):
                await cluster.start_node(1)

    asyncio.run(main())


def twin_of(cluster: AsyncCluster, node_id: int) -> Node:
    """A broker with the id of another node, and a directory of its own."""
    directory = cluster.data_dir(node_id).with_name("twin")
    format_joining(cluster.cluster_id, node_id, directory, lambda: 0, Random())
    given = {**cluster.nodes[node_id].config.given, "process.roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:0"}
    return Node(load({**given, "log.dirs": str(directory)}))


def test_a_second_broker_with_the_same_id_is_not_registered(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with AsyncCluster(3) as cluster:
            active = await cluster.wait_active_controller()
            other = next(each for each in cluster.node_ids if each != active)
            for node_id, reason in ((other, "DUPLICATE_BROKER_REGISTRATION"), (active, "node.id must be unique")):
                twin = twin_of(cluster, node_id)
                starting = asyncio.create_task(twin.start())
                async with asyncio.timeout(20):
                    while reason not in caplog.text:
                        await asyncio.sleep(0.01)
                assert not starting.done()
                starting.cancel()
                await asyncio.wait([starting])
                await twin.drop()
                twin.failed.cancel()
                shutil.rmtree(cluster.data_dir(node_id).with_name("twin"))
            assert cluster.active_controller == active
            incarnations = {node.image.brokers[other].incarnation_id for node in cluster.nodes.values()}
            assert len(incarnations) == 1

    with caplog.at_level(logging.INFO, "barnabas"):
        asyncio.run(main())


def test_a_second_controller_with_the_same_id_never_votes_and_never_leads() -> None:
    async def main() -> None:
        async with AsyncCluster(1, controllers=3) as cluster:
            active = await cluster.wait_active_controller()
            same = next(each for each in (101, 102, 103) if each != active)
            voters = cluster.nodes[active].quorum.driver.core.voters.current
            directory = cluster.data_dir(same).with_name("twin")
            format_joining(cluster.cluster_id, same, directory, lambda: 0, Random())
            given = {**cluster.nodes[same].config.given, "listeners": "CONTROLLER://127.0.0.1:0"}
            twin = Node(load({**given, "log.dirs": str(directory)}))
            await twin.start()  # as in Kafka, it observes: a voter is its id and the id of its directory
            try:
                await cluster.kill(active)
                second = await cluster.wait_active_controller(other_than=active)
                assert second != active and not twin.is_active_controller
                await cluster.kill(second)  # one of three is left, and the twin
                await asyncio.sleep(2)
                assert cluster.active_controller is None and not twin.is_active_controller
                await cluster.start_node(active)
                await cluster.wait_active_controller()
                assert not twin.is_active_controller
                assert cluster.nodes[active].quorum.driver.core.voters.current == voters
                begin = cluster.nodes[1].image.offset
                await asyncio.sleep(3)
                assert cluster.nodes[1].image.offset - begin < 20  # they do not register in turn for ever
            finally:
                await twin.stop()

    asyncio.run(main())


def test_a_voter_that_returns_with_an_empty_disk_is_an_observer_until_it_is_added() -> None:
    async def main() -> None:
        async with AsyncCluster(3) as cluster:
            active = await cluster.wait_active_controller()
            lost = next(each for each in cluster.node_ids if each != active)
            before = cluster.nodes[active].quorum.driver.core.voters.current
            await cluster.kill(lost)
            shutil.rmtree(cluster.data_dir(lost))
            format_joining(cluster.cluster_id, lost, cluster.data_dir(lost), lambda: 0, Random())
            await cluster.start_node(lost)
            await cluster.create_topic("t", 1)
            async with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
                info = await admin.describe_quorum()
                new = next(each for each in info.observers if each.replica_id == lost)
                assert {each.replica_id: each.replica_directory_id for each in info.voters} == {
                    each.id: each.key.directory_id for each in before
                }
                assert new.replica_directory_id not in [each.replica_directory_id for each in info.voters]
                assert (info.leader_id, cluster.active_controller) == (active, active)

    asyncio.run(main())


def test_a_controller_whose_metadata_dir_fails_ends_and_another_one_takes_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with AsyncCluster(3) as cluster:
            await cluster.create_topic("before", 1)
            first = await cluster.wait_active_controller()
            failing, names = cluster.nodes[first], ["before", "after"]
            cluster.faults.fill_disk(first)
            connection = await opened(cluster.address(first))
            creating = asyncio.create_task(connection.call(create("perhaps"), 7))
            async with asyncio.timeout(20):
                await asyncio.wait([failing.failed])
            assert "No space left on device" in str(failing.failed.exception())
            await cluster.kill(first)  # as the process ends
            await asyncio.wait([creating])
            if creating.exception() is None:  # it was forwarded to the next one in time
                names.append("perhaps")
            connection.close()
            second = await cluster.wait_active_controller(other_than=first)
            await cluster.create_topic("after", 1)
            assert set(names) <= set(cluster.nodes[second].image.topics.ids) <= {*names, "perhaps"}
            cluster.faults.heal_disk(first)
            await cluster.start_node(first)
            await until_all_have(cluster, *cluster.nodes[second].image.topics.ids)

    with caplog.at_level(logging.ERROR, "barnabas"):
        asyncio.run(main())


def test_a_controller_that_returns_with_another_list_of_voters_is_refused() -> None:
    async def main() -> None:
        async with AsyncCluster(3, static_quorum=True) as cluster:
            active = await cluster.wait_active_controller()
            lost = next(each for each in cluster.node_ids if each != active)
            given = dict(cluster.nodes[lost].config.given)
            await cluster.kill(lost)
            alone = f"{lost}@{cluster.address(lost, 'CONTROLLER')}"
            node = Node(load({**given, "controller.quorum.voters": alone}))
            with pytest.raises(NodeError, match=r"controller\.quorum\.voters"):
                async with asyncio.timeout(20):
                    await node.start()
            await node.drop()
            node.failed.cancel()
            assert cluster.active_controller == active

    asyncio.run(main())
