"""Three nodes of barnabas beside three of Apache Kafka: the same requests through each node get the same answers."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tools.apache_kafka import HOST, ApacheKafka, free_ports, new_cluster_id

from barnabas.client.connection import Connection
from barnabas.testing import AsyncCluster
from barnabas.wire import Message, Uuid
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest

pytestmark = pytest.mark.interop
IDS = (1, 2, 3)
UNKNOWN = Uuid(b"unknown-director")


class Addresses:
    """Where the nodes of a cluster are, its id, and the directories of its voters."""

    def __init__(self, cluster_id: str, clients: dict[int, int], controllers: dict[int, int]) -> None:
        self.cluster_id = cluster_id
        self.clients = clients
        self.controllers = controllers
        self.directories: dict[int, Uuid] = {}
        self.leader = -1


@contextlib.asynccontextmanager
async def of_barnabas() -> AsyncIterator[Addresses]:
    async with AsyncCluster(3, config={"group.initial.rebalance.delay.ms": 3000}) as cluster:
        ports = {key: node.ports for key, node in cluster.layout.items()}
        clients = {key: each["PLAINTEXT"] for key, each in ports.items()}
        yield Addresses(cluster.cluster_id, clients, {key: each["CONTROLLER"] for key, each in ports.items()})


@contextlib.asynccontextmanager
async def of_apache() -> AsyncIterator[Addresses]:
    ports = free_ports(6)
    clients, controllers = dict(zip(IDS, ports[:3], strict=True)), dict(zip(IDS, ports[3:], strict=True))
    cluster_id = new_cluster_id()
    directories = {node_id: new_cluster_id() for node_id in IDS}
    initial = ",".join(f"{each}@{HOST}:{controllers[each]}:{directories[each]}" for each in IDS)
    servers = ",".join(f"{HOST}:{controllers[each]}" for each in IDS)
    nodes = [
        ApacheKafka(
            {
                "node.id": str(node_id),
                "listeners": f"PLAINTEXT://{HOST}:{clients[node_id]},CONTROLLER://{HOST}:{controllers[node_id]}",
                "controller.quorum.bootstrap.servers": servers,
                "default.replication.factor": "3",
            },
            cluster_id=cluster_id,
            format_args=["--initial-controllers", initial],
        )
        for node_id in IDS
    ]
    for node_id, node in zip(IDS, nodes, strict=True):
        node.address = (HOST, clients[node_id])
    try:
        await asyncio.gather(*(asyncio.to_thread(node.start, 240) for node in nodes))
        yield Addresses(cluster_id, clients, controllers)
    finally:
        await asyncio.gather(*(asyncio.to_thread(node.kill) for node in nodes))
        for node in nodes:
            node.close()


def described() -> DescribeQuorumRequest:
    partition = DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    return DescribeQuorumRequest(topics=[topic])


def script(where: Addresses) -> Iterator[tuple[str, Message, int]]:
    """Requests with names and versions, to be sent through any broker."""
    topic = CreateTopicsRequest.CreatableTopic
    create = CreateTopicsRequest
    yield "quorum", described(), 2
    yield "cluster", DescribeClusterRequest(), 2
    yield "create", create(topics=[topic(name="t", num_partitions=2, replication_factor=3)], timeout_ms=9000), 4
    yield "again", create(topics=[topic(name="t", num_partitions=2, replication_factor=3)], timeout_ms=9000), 4
    yield "too many", create(topics=[topic(name="u", num_partitions=1, replication_factor=4)], timeout_ms=9000), 4
    grown = CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=1)
    yield "fewer partitions", CreatePartitionsRequest(topics=[grown], timeout_ms=9000), 3
    moved = AlterPartitionReassignmentsRequest
    row = moved.ReassignablePartition(partition_index=0, replicas=[1, 9])
    yield "to nobody", moved(topics=[moved.ReassignableTopic(name="t", partitions=[row])], timeout_ms=9000), 0
    elected = ElectLeadersRequest.TopicPartitions(topic="t", partitions=[0, 9])
    yield "elect", ElectLeadersRequest(topic_partitions=[elected], timeout_ms=9000), 2
    yield "unregister", UnregisterBrokerRequest(broker_id=9), 0
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature="metadata.version", max_version_level=99, upgrade_type=1)
    yield "feature", UpdateFeaturesRequest(feature_updates=[update], timeout_ms=9000), 2
    listener = AddRaftVoterRequest.Listener(name="CONTROLLER", host=HOST, port=1)
    add: dict[str, Any] = {"timeout_ms": 5000, "listeners": [listener]}
    yield "duplicate", AddRaftVoterRequest(voter_id=1, voter_directory_id=UNKNOWN, **add), 1
    yield "other", AddRaftVoterRequest(cluster_id="x", voter_id=9, voter_directory_id=UNKNOWN, **add), 1
    yield "no voter", AddRaftVoterRequest(voter_id=-1, voter_directory_id=UNKNOWN, **add), 1
    yield "unreachable", AddRaftVoterRequest(voter_id=9, voter_directory_id=UNKNOWN, **add), 1
    yield "unknown voter", RemoveRaftVoterRequest(voter_id=9, voter_directory_id=UNKNOWN), 0
    yield "delete", DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="t")], timeout_ms=9000), 6


VOLATILE = re.compile(r"offset|timestamp|watermark|epoch|topicId|clusterId|throttle", re.IGNORECASE)


def normal(answer: Message, where: Addresses, version: int) -> Any:
    """The answer without ports, ids and times, with lists of nodes in order."""
    text = str(where.leader)

    def plain(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: plain(each, key) for key, each in value.items() if not VOLATILE.search(key)}
        if isinstance(value, list):
            return sorted((plain(each, name) for each in value), key=repr)
        if name == "leaderId":
            return "leader" if str(value) == text else "a node"
        if name in ("port", "controllerId"):  # brokers name any of them as the controller, because all forward
            return name
        if isinstance(value, str):
            for node_id, directory in where.directories.items():
                value = value.replace(str(directory), f"directory of {node_id}")
            value = re.sub(rf"\b(controller|broker) {text}\b", "leader", value)
            return re.sub(r"\[ReplicaKey.*\]", "[voters]", value.replace(where.cluster_id, "cluster"))
        return value

    return plain(answer.to_json(version))


async def answers(where: Addresses) -> dict[tuple[str, bool], Any]:
    """The answers through a broker beside the active controller, and through another one."""
    first = await Connection.open(HOST, where.clients[1], "test")
    quorum = await first.call(described(), 2)
    partition = quorum.topics[0].partitions[0]
    where.leader = partition.leader_id
    where.directories = {each.replica_id: each.replica_directory_id for each in partition.current_voters}
    first.close()
    found = {}
    for is_leader in (True, False):
        node_id = where.leader if is_leader else next(each for each in IDS if each != where.leader)
        connection = await Connection.open(HOST, where.clients[node_id], "test")
        for name, request, version in script(where):
            async with asyncio.timeout(60):
                found[name, is_leader] = normal(await connection.call(request, version), where, version)
            if name in ("create", "delete"):
                await asyncio.sleep(1)  # until all brokers have it
        connection.close()
    return found


def test_the_same_requests_get_the_same_answers_through_every_node() -> None:
    async def test() -> None:
        async with of_barnabas() as where:
            own = await answers(where)
        async with of_apache() as where:
            theirs = await answers(where)
        different = {key: (own[key], theirs[key]) for key in own if own[key] != theirs[key]}
        assert different == {}

    asyncio.run(test())
