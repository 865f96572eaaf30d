"""Three nodes of barnabas beside three of Apache Kafka: the same requests through each node get the same answers."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest
from tools.apache_kafka import HOST, ApacheKafka, free_ports, new_cluster_id

from barnabas.client import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Cluster as Client
from barnabas.client.connection import Connection
from barnabas.operations.metadata_image import read_image
from barnabas.operations.rehearsal.happenings import Kill
from barnabas.operations.rehearsal.live import look_around
from barnabas.operations.rehearsal.rehearse import Scene, rehearse
from barnabas.testing import AsyncCluster
from barnabas.wire import Message, Uuid
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest
from tests.operations.rehearsal.test_as_it_happens import state

pytestmark = pytest.mark.interop
IDS = (1, 2, 3)
UNKNOWN = Uuid(b"unknown-director")


class Addresses:
    """Where the nodes of a cluster are, its id, and the directories of its voters; and how they die, stop and return."""

    def __init__(self, cluster_id: str, clients: dict[int, int], controllers: dict[int, int]) -> None:
        self.cluster_id = cluster_id
        self.clients = clients
        self.controllers = controllers
        self.directories: dict[int, Uuid] = {}
        self.leader = -1
        self.nodes: dict[int, ApacheKafka] = {}
        self.cluster: AsyncCluster | None = None

    async def start(self, node_id: int) -> None:
        if self.cluster is None:
            await asyncio.to_thread(self.nodes[node_id].start, 240)
        else:
            await self.cluster.start_node(node_id)

    async def stop(self, node_id: int) -> None:
        if self.cluster is None:
            await asyncio.to_thread(self.nodes[node_id].stop, 120)
        else:
            await self.cluster.stop_node(node_id)

    async def kill(self, node_id: int) -> None:
        if self.cluster is None:
            await asyncio.to_thread(self.nodes[node_id].kill)
        else:
            await self.cluster.kill(node_id)


@contextlib.asynccontextmanager
async def of_barnabas(settings: Mapping[str, str] | None = None) -> AsyncIterator[Addresses]:
    async with AsyncCluster(3, config={"group.initial.rebalance.delay.ms": 3000, **(settings or {})}) as cluster:
        ports = {key: node.ports for key, node in cluster.layout.items()}
        clients = {key: each["PLAINTEXT"] for key, each in ports.items()}
        where = Addresses(cluster.cluster_id, clients, {key: each["CONTROLLER"] for key, each in ports.items()})
        where.cluster = cluster
        yield where


@contextlib.asynccontextmanager
async def of_apache(settings: Mapping[str, str] | None = None) -> AsyncIterator[Addresses]:
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
                **(settings or {}),
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
        where = Addresses(cluster_id, clients, controllers)
        where.nodes = dict(zip(IDS, nodes, strict=True))
        yield where
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
    yield "removed with another directory", RemoveRaftVoterRequest(voter_id=1, voter_directory_id=UNKNOWN), 0
    yield from moves_and_elections()
    deleted = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in ("t", "m", "none")]
    yield "delete", DeleteTopicsRequest(topics=deleted, timeout_ms=9000), 6


def moves_and_elections() -> Iterator[tuple[str, Message, int]]:
    """Requests about a topic whose replicas are placed by hand, so that the same brokers lead."""
    at = CreateTopicsRequest.CreatableReplicaAssignment
    assigned = [at(partition_index=0, broker_ids=[1, 2, 3]), at(partition_index=1, broker_ids=[2, 3, 1])]
    wanted = CreateTopicsRequest.CreatableTopic(
        name="m", num_partitions=-1, replication_factor=-1, assignments=assigned
    )
    yield "create by hand", CreateTopicsRequest(topics=[wanted], timeout_ms=9000), 4
    asked = DescribeTopicPartitionsRequest.TopicRequest(name="m")
    described_m = DescribeTopicPartitionsRequest(topics=[asked])
    yield "described", described_m, 0
    yield "metadata", MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="m")]), 12
    moved = AlterPartitionReassignmentsRequest

    def reassigned(**targets: list[int] | None) -> AlterPartitionReassignmentsRequest:
        rows = [
            moved.ReassignablePartition(partition_index=int(each[1:]), replicas=ids) for each, ids in targets.items()
        ]
        return moved(topics=[moved.ReassignableTopic(name="m", partitions=rows)], timeout_ms=9000)

    yield "nothing to cancel", reassigned(p0=None, p9=None), 0
    yield "twice the same", reassigned(p0=[1, 1]), 0
    yield "another order", reassigned(p0=[3, 2, 1], p1=[2, 3]), 0
    yield (
        "another factor is refused",
        moved(
            allow_replication_factor_change=False,
            topics=[
                moved.ReassignableTopic(
                    name="m", partitions=[moved.ReassignablePartition(partition_index=0, replicas=[1, 2])]
                )
            ],
            timeout_ms=9000,
        ),
        1,
    )
    yield "moves", ListPartitionReassignmentsRequest(topics=None, timeout_ms=9000), 0
    of = ElectLeadersRequest.TopicPartitions
    yield (
        "unclean, not needed",
        ElectLeadersRequest(election_type=1, topic_partitions=[of(topic="m", partitions=[0])], timeout_ms=9000),
        2,
    )
    yield "preferred", ElectLeadersRequest(topic_partitions=[of(topic="m", partitions=[0, 1])], timeout_ms=9000), 2
    yield "after the election", described_m, 0
    yield "elect all", ElectLeadersRequest(topic_partitions=None, timeout_ms=9000), 2
    to = AlterReplicaLogDirsRequest
    nowhere = to.AlterReplicaLogDir(path="/nowhere", topics=[to.AlterReplicaLogDirTopic(name="m", partitions=[0, 9])])
    yield "to a log dir of nobody", to(dirs=[nowhere]), 2


VOLATILE = re.compile(r"offset|timestamp|watermark|epoch|topicId|clusterId|throttle", re.IGNORECASE)


def normal(answer: Message, where: Addresses, version: int) -> Any:
    """The answer without ports, ids and times, with lists of nodes in order."""
    text = str(where.leader)

    def plain(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: plain(each, key) for key, each in value.items() if not VOLATILE.search(key)}
        if isinstance(value, list):
            return sorted((plain(each, name) for each in value), key=repr)
        if name == "leaderId" and isinstance(answer, DescribeQuorumResponse):
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
            if name in ("create", "create by hand", "delete", "another order", "preferred"):
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
        assert not different, "\n".join(f"{key}\n  {one}\n  {other}" for key, (one, other) in different.items())

    asyncio.run(test())


def test_a_rehearsal_says_what_happens_to_apache_kafka_when_a_node_dies() -> None:
    settings = {"broker.session.timeout.ms": "6000", "min.insync.replicas": "2", "default.replication.factor": "2"}

    async def test() -> None:
        async with of_apache(settings) as where:
            brokers = {"bootstrap.servers": ",".join(f"{HOST}:{port}" for port in where.clients.values())}
            controllers = {"bootstrap.controllers": ",".join(f"{HOST}:{port}" for port in where.controllers.values())}
            async with Admin(brokers) as admin:
                for name, factor in (("three", 3), ("two", 2), ("one", 1)):
                    for error in (await admin.create_topics([NewTopic(name, 6, factor)])).values():
                        assert not isinstance(error, Exception), error
                leader = (await admin.describe_quorum()).leader_id
            async with Client(brokers) as client:
                around = await look_around(client)
            assert around.warnings == []
            assert sorted(around.voters) == [1, 2, 3]
            async with Client(controllers) as client:
                image = await read_image(client)
            victim = next(each for each in IDS if each != leader)
            found = rehearse(Scene(image, around.config, around.voters, around.sizes), [Kill([victim])])
            wanted = state(found.image)
            where.nodes[victim].kill()
            now: dict[object, object] = {}
            async with asyncio.timeout(120):
                while now != wanted:
                    try:
                        async with Client(controllers) as client:
                            now = state(await read_image(client))
                    except OSError:
                        pass  # a connection to the dead node
                    await asyncio.sleep(1)

    asyncio.run(test())
