"""AssignReplicasToDirs (73)."""

from __future__ import annotations

from barnabas.metadata.topics import UNASSIGNED_DIR
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.wire import Uuid
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from tests.broker.harness import MemoryNode
from tests.broker.simulated_broker import SimulatedBroker, cluster, create_topic

Directory, Topic = AssignReplicasToDirsRequest.DirectoryData, AssignReplicasToDirsRequest.TopicData
Partition = AssignReplicasToDirsRequest.PartitionData


def assign(broker: SimulatedBroker, directory: Uuid, topic_id: Uuid, *indexes: int) -> list[tuple[int, int]]:
    topic = Topic(topic_id=topic_id, partitions=[Partition(partition_index=index) for index in indexes])
    directories = [Directory(id=directory, topics=[topic])]
    request = AssignReplicasToDirsRequest(
        broker_id=broker.broker_id, broker_epoch=broker.epoch, directories=directories
    )
    response = broker.call(request, 0)
    assert response.error_code == 0
    assert (response.directories[0].id, response.directories[0].topics[0].topic_id) == (directory, topic_id)
    return [(row.partition_index, row.error_code) for row in response.directories[0].topics[0].partitions]


def test_a_broker_with_two_directories_says_where_its_replicas_are() -> None:
    node, brokers = cluster(2)
    broker = SimulatedBroker(node, 3, directories=2).start()
    create_topic(node, "t", [1, 3], [1, 2])
    assert broker.partition("t", 0).directories == (brokers[1].directories[0], UNASSIGNED_DIR)
    topic_id = node.image.topics.ids["t"]
    assert assign(broker, broker.directories[1], topic_id, 0, 1, 7) == [(0, 0), (1, 6), (7, 3)]
    assert broker.partition("t", 0).directories == (brokers[1].directories[0], broker.directories[1])
    count = len(node.written)
    assert assign(broker, broker.directories[1], topic_id, 0) == [(0, 0)]
    assert assign(broker, broker.directories[1], Uuid(b"x" * 16), 0) == [(0, 100)]
    assert len(node.written) == count


def test_a_replica_in_a_directory_that_is_not_online_leaves_the_isr() -> None:
    node, brokers = cluster(1)
    broker = SimulatedBroker(node, 2, directories=2).start()
    create_topic(node, "t", [2, 1])
    assert assign(broker, Uuid(b"gone" * 4), node.image.topics.ids["t"], 0) == [(0, 0)]
    partition = broker.partition("t", 0)
    assert (partition.leader, partition.isr) == (1, (1,))
    assert partition.directories == (Uuid(b"gone" * 4), brokers[1].directories[0])


def test_a_stale_broker_is_refused() -> None:
    _, brokers = cluster(1)
    assert brokers[1].call(AssignReplicasToDirsRequest(broker_id=1, broker_epoch=0), 0).error_code == 77


def test_before_3_7_there_are_no_directories() -> None:
    _, brokers = cluster(1, features={"metadata.version": 16})
    request = AssignReplicasToDirsRequest(broker_id=1, broker_epoch=brokers[1].epoch)
    assert brokers[1].call(request, 0).error_code == 35


def test_it_needs_cluster_action() -> None:
    node = MemoryNode(authorizer=AuthorizerSettings(enabled=True))
    assert node.call(AssignReplicasToDirsRequest(broker_id=1), 0, listener="controller").error_code == 31
