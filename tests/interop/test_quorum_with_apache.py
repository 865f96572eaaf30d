"""One quorum of Apache Kafka's controllers and of barnabas."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

import pytest
from tools.apache_kafka import HOST, ApacheKafka, free_ports, new_cluster_id

from barnabas.broker.surroundings import monotonic_clock_ms, wall_clock_ms
from barnabas.raft import Endpoint, MemoryLog, MemoryQuorumState, Node, RaftConfig, RaftDriver, VoterSet
from barnabas.raft.driver import Clock
from barnabas.steps import at_once
from barnabas.wire import Uuid
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.records.metadata import FeatureLevelRecord, NoOpRecord
from tests.raft.tcp import TcpServer, TcpTransport
from tests.raft.test_driver import Follower

pytestmark = pytest.mark.interop
OWN_ID = 9
OWN_DIRECTORY = Uuid(b"barnabas" + b"directry")
QUICK = {"metadata.max.idle.interval.ms": "0"}


def controller(node_id: int, port: int, cluster_id: str, settings: dict[str, str], **arguments: Any) -> ApacheKafka:
    listeners = {"listeners": f"CONTROLLER://{HOST}:{port}", "process.roles": "controller", "node.id": str(node_id)}
    node = ApacheKafka({**QUICK, **listeners, **settings}, cluster_id=cluster_id, **arguments)
    node.address = (HOST, port)
    node._ready_text = None  # alone it is not started before there is a leader
    return node


@contextlib.asynccontextmanager
async def barnabas(
    port: int, cluster_id: str, *, voters: str = "", servers: tuple[int, ...] = ()
) -> AsyncIterator[tuple[RaftDriver, Follower, TcpTransport]]:
    listeners = (Endpoint("CONTROLLER", HOST, port),)
    bootstrap = tuple((HOST, each) for each in servers)
    config = RaftConfig(OWN_ID, OWN_DIRECTORY, cluster_id, "CONTROLLER", listeners, bootstrap)
    transport, listener = TcpTransport(), Follower()
    static = VoterSet.parse(voters, "CONTROLLER")
    clock = Clock(wall_clock_ms, monotonic_clock_ms)
    driver = RaftDriver(
        config, MemoryLog(), MemoryQuorumState(), transport, clock=clock, random=Random(), static_voters=static
    )
    driver.subscribe(listener)
    server = TcpServer(driver, HOST, port)
    await server.start()
    await driver.start()
    try:
        yield driver, listener, transport
    finally:
        await driver.stop(timeout_ms=2000)
        await server.stop()


async def until(condition: Callable[[], Any], timeout_s: float = 30) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.05)


async def describe(transport: TcpTransport, port: int) -> Any:
    partition = DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    answer: Any = await transport.send(Node(-2, HOST, port), DescribeQuorumRequest(topics=[topic]))
    return answer


def test_barnabas_observes_joins_votes_and_leaves_a_quorum_of_apache_kafka() -> None:
    async def test() -> None:
        port, own_port = free_ports(2)
        cluster_id = new_cluster_id()
        node = controller(1, port, cluster_id, {"controller.quorum.bootstrap.servers": f"{HOST}:{port}"})
        try:
            await asyncio.to_thread(node.start)
            async with barnabas(own_port, cluster_id, servers=(port,)) as (driver, listener, transport):
                await until(lambda: driver.leader_id == 1 and driver.high_watermark > 5)
                assert any(isinstance(each, FeatureLevelRecord) for batch in listener.batches for each in batch.records)
                partition = (await describe(transport, port)).topics[0].partitions[0]
                assert [each.replica_id for each in partition.observers] == [OWN_ID]
                apache = Node(-2, HOST, port)
                endpoint = AddRaftVoterRequest.Listener(name="CONTROLLER", host=HOST, port=own_port)
                add = AddRaftVoterRequest(
                    cluster_id=cluster_id,
                    timeout_ms=5000,
                    voter_id=OWN_ID,
                    voter_directory_id=OWN_DIRECTORY,
                    listeners=[endpoint],
                )
                answer: Any = await transport.send(apache, add)
                assert (answer.error_code, answer.error_message) == (0, None)
                await until(lambda: driver.core.is_voter)
                partition = (await describe(transport, port)).topics[0].partitions[0]
                assert [each.replica_id for each in partition.current_voters] == [1, OWN_ID]
                await until(lambda: driver.high_watermark == driver.end_offset)
                remove = RemoveRaftVoterRequest(
                    cluster_id=cluster_id, voter_id=OWN_ID, voter_directory_id=OWN_DIRECTORY
                )
                answer = await transport.send(apache, remove)
                assert (answer.error_code, answer.error_message) == (0, None)
                await until(lambda: not driver.core.is_voter)
        finally:
            node.close()

    asyncio.run(test())


def test_barnabas_leads_controllers_of_apache_kafka_and_hands_over_to_one() -> None:
    async def test() -> None:
        first_port, second_port, own_port = free_ports(3)
        cluster_id = new_cluster_id()
        voters = f"1@{HOST}:{first_port},2@{HOST}:{second_port},{OWN_ID}@{HOST}:{own_port}"
        patient = {"controller.quorum.election.timeout.ms": "60000", "controller.quorum.fetch.timeout.ms": "60000"}
        settings = {"controller.quorum.voters": voters, **patient}
        first = controller(1, first_port, cluster_id, settings)
        second = controller(2, second_port, cluster_id, settings)
        try:
            async with barnabas(own_port, cluster_id, voters=voters) as (driver, listener, transport):
                await asyncio.to_thread(first.start)
                await until(lambda: any(event[0] == "gained" for event in listener.events))
                await asyncio.to_thread(second.start)
                records = [(FeatureLevelRecord(name="metadata.version", feature_level=30), 0), (NoOpRecord(), 0)]
                await driver.wait_committed(at_once(driver.append(driver.epoch, records)))

                async def end_offsets() -> dict[int, int]:
                    partition = (await describe(transport, own_port)).topics[0].partitions[0]
                    return {each.replica_id: each.log_end_offset for each in partition.current_voters}

                async with asyncio.timeout(30):
                    while set((await end_offsets()).values()) != {driver.end_offset}:
                        await asyncio.sleep(0.1)
                assert (await end_offsets()).keys() == {1, 2, OWN_ID}
                epoch = driver.epoch
                await driver.stop(timeout_ms=10_000)
                assert driver.leader_id in (1, 2)
                assert driver.epoch == epoch + 1
                heir = first_port if driver.leader_id == 1 else second_port
                partition = (await describe(transport, heir)).topics[0].partitions[0]
                assert (partition.error_code, partition.leader_epoch) == (0, epoch + 1)
        finally:
            first.close()
            second.close()

    asyncio.run(test())
