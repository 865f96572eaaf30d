"""Brokers that exist only as requests: they register, send heartbeats and report replicas through the protocol."""

from __future__ import annotations

from typing import Any

from barnabas.metadata.brokers import Broker
from barnabas.metadata.topics import Partition
from barnabas.wire import Uuid
from barnabas.wire.messages.alter_partition import AlterPartitionRequest
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from tests.broker.harness import CLUSTER_ID, MemoryNode

FEATURES = {
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "kraft.version": (0, 1),
    "metadata.version": (7, 30),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}


class SimulatedBroker:
    """One broker of a node's cluster, from its first registration on."""

    def __init__(self, node: MemoryNode, broker_id: int, *, directories: int = 1) -> None:
        self.node = node
        self.broker_id = broker_id
        self.incarnation = 0
        self.epoch = -1
        self.directories = [Uuid(bytes([broker_id, 200 + n]) * 8) for n in range(directories)]

    def call(self, request: Any, version: int) -> Any:
        return self.node.call(request, version, listener="controller")

    def register(self, version: int = 4, **fields: Any) -> int:
        """Register a new incarnation; the error code."""
        self.incarnation += 1
        return self.register_again(version, **fields)

    def register_again(self, version: int = 4, **fields: Any) -> int:
        feature, listener = BrokerRegistrationRequest.Feature, BrokerRegistrationRequest.Listener
        request = BrokerRegistrationRequest(
            broker_id=self.broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=Uuid(bytes([self.broker_id, self.incarnation]) * 8),
            listeners=[listener(name="PLAINTEXT", host="localhost", port=19090 + self.broker_id)],
            features=[
                feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in FEATURES.items()
            ],
            rack=None,
            log_dirs=list(self.directories),
        )
        for name, value in fields.items():
            setattr(request, name, value)
        response = self.call(request, version)
        if response.error_code == 0:
            self.epoch = response.broker_epoch
        code: int = response.error_code
        return code

    def beat(self, version: int = 2, **fields: Any) -> Any:
        """A heartbeat from a broker that has read everything."""
        request = BrokerHeartbeatRequest(
            broker_id=self.broker_id, broker_epoch=self.epoch, current_metadata_offset=self.node.image.offset
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return self.call(request, version)

    def start(self) -> SimulatedBroker:
        """Register and be let in."""
        assert self.register() == 0
        assert not self.beat().is_fenced
        return self

    def propose_isr(self, topic: str, index: int, isr: list[int], **fields: Any) -> Any:
        """AlterPartition with what this broker, as the leader, knows of the partition; the row of the answer."""
        known = self.partition(topic, index)
        brokers = self.node.image.brokers
        state, data = AlterPartitionRequest.BrokerState, AlterPartitionRequest.PartitionData
        asked = data(
            partition_index=index,
            leader_epoch=known.leader_epoch,
            partition_epoch=known.partition_epoch,
            new_isr_with_epochs=[state(broker_id=each, broker_epoch=brokers[each].epoch) for each in isr],
            leader_recovery_state=known.leader_recovery_state,
        )
        for name, value in fields.items():
            setattr(asked, name, value)
        topics = [AlterPartitionRequest.TopicData(topic_id=self.node.image.topics.ids[topic], partitions=[asked])]
        request = AlterPartitionRequest(broker_id=self.broker_id, broker_epoch=self.epoch, topics=topics)
        return self.call(request, 3).topics[0].partitions[0]

    def partition(self, topic: str, index: int) -> Partition:
        found = self.node.image.topics.get(topic)
        assert found is not None
        return found.partitions[index]

    @property
    def registration(self) -> Broker:
        return self.node.image.brokers[self.broker_id]


def cluster(
    brokers: int, properties: dict[str, str] | None = None, **fields: Any
) -> tuple[MemoryNode, list[SimulatedBroker]]:
    """A node with brokers 1 to n that have registered and been let in; number n stands at place n."""
    node = MemoryNode(properties, brokers=0, **fields)
    started = [SimulatedBroker(node, broker_id).start() for broker_id in range(1, brokers + 1)]
    return node, [started[0], *started]


def create_topic(node: MemoryNode, name: str, *assignments: list[int], **configs: str) -> None:
    """A topic with these replicas for its partitions; dots in settings are written as underscores."""
    of = CreateTopicsRequest
    assigned = [of.CreatableReplicaAssignment(partition_index=i, broker_ids=ids) for i, ids in enumerate(assignments)]
    settings = [of.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    created = of.CreatableTopic(
        name=name, num_partitions=-1, replication_factor=-1, assignments=assigned, configs=settings
    )
    response = node.call(CreateTopicsRequest(topics=[created], timeout_ms=1000), 7)
    assert response.topics[0].error_code == 0, response.topics[0]
