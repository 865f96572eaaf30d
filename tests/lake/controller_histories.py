"""Histories of a cluster: random requests to the controller's own decisions, each with the batch of records that it wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from barnabas.controller import (
    acls,
    brokers,
    configs,
    elections,
    features,
    producer_ids,
    quotas,
    reassignments,
    replicas,
    scram,
    topics,
)
from barnabas.controller.configs import AlterOperation
from barnabas.controller.features import Update, UpgradeType
from barnabas.controller.quotas import QuotaAlteration
from barnabas.controller.scram import Deletion, Upsertion
from barnabas.metadata.configs import ConfigResource
from barnabas.metadata.loader import MetadataBatch
from barnabas.metadata.snapshot import to_records
from barnabas.metadata.topics import TopicPartition
from barnabas.security.acl import AclEntry, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.message import Message
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
)
from tests.controller.situations import Story

Choose = Callable[[int], int]
"""A number below the given one."""


class Cluster:
    """Brokers 1 to 4, which ask for what the choices say. `batches` are what the log then has."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.story = Story()
        self.batches: list[MetadataBatch] = []
        self.append([record for record, _ in to_records(self.story.image)])
        self.requests = [getattr(self, name) for name in sorted(dir(Cluster)) if name.startswith("ask_")]

    def append(self, records: Sequence[Message]) -> None:
        if records:
            first = self.batches[-1].last_offset + 1 if self.batches else 0
            self.batches.append(MetadataBatch(first, first + len(records) - 1, 1, 1_000, list(records)))

    def step(self) -> None:
        """One request. Now and then the records of one are a transaction, which may be aborted."""
        before, self.story.last = self.story.image, []
        with suppress(KafkaError):
            self.requests[self.choose(len(self.requests))]()
        written = self.story.written
        if written and not self.choose(5):
            is_aborted = not self.choose(2)
            self.append([BeginTransactionRecord(name="t"), *written[:1]])
            self.append([*written[1:], AbortTransactionRecord() if is_aborted else EndTransactionRecord()])
            if is_aborted:
                self.story.image = before
        else:
            self.append(written)

    def _partition(self) -> TopicPartition:
        found = [
            TopicPartition(topic, index, partition)
            for _, topic in sorted(self.story.image.topics.by_id.items())
            for index, partition in enumerate(topic.partitions)
        ]
        if not found:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return found[self.choose(len(found))]

    def ask_for_a_topic(self) -> None:
        given = CreateTopicsRequest.CreatableTopicConfig(name="retention.ms", value=str(1 + self.choose(3)))
        topic = CreateTopicsRequest.CreatableTopic(
            name=f"t{self.choose(4)}",
            num_partitions=1 + self.choose(3),
            replication_factor=1 + self.choose(3),
            configs=[given] if self.choose(2) else [],
        )
        self.story.decide(topics.create, [topic])

    ask_for_another_topic = ask_for_a_topic

    def ask_for_partitions(self) -> None:
        topic = self._partition().topic
        more = CreatePartitionsRequest.CreatePartitionsTopic(
            name=topic.name, count=len(topic.partitions) + 1 + self.choose(2), assignments=None
        )
        self.story.decide(topics.create_partitions, [more])

    def ask_to_delete_a_topic(self) -> None:
        if not self.choose(2):
            self.story.decide(topics.delete, [self._partition().topic.topic_id])

    def ask_for_a_config(self) -> None:
        resource, name = [
            (ConfigResource(2, self._partition().topic.name), "retention.ms"),
            (ConfigResource(2, self._partition().topic.name), "min.insync.replicas"),
            (ConfigResource(4, ""), "min.insync.replicas"),
            (ConfigResource(4, "2"), "log.cleaner.threads"),
        ][self.choose(4)]
        operation = AlterOperation.SET if self.choose(3) else AlterOperation.DELETE
        asked = {resource: {name: (operation, str(1 + self.choose(3)))}}
        self.story.decide(configs.alter_incrementally, asked, False, True)

    def _beat(self, **fields: Any) -> None:
        broker_id = 1 + self.choose(4)
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self.story.image.brokers[broker_id].epoch,
            current_metadata_offset=self.story.image.offset,
            **fields,
        )
        self.story.decide(brokers.heartbeat, request)

    def ask_to_be_fenced(self) -> None:
        self._beat(want_fence=True)

    def ask_to_be_let_in(self) -> None:
        self._beat()

    ask_to_be_let_in_again = ask_to_be_let_in

    def ask_to_shut_down(self) -> None:
        if not self.choose(3):
            self._beat(want_shut_down=True)

    def ask_for_another_isr(self) -> None:
        topic, index, partition = self._partition()
        image = self.story.image
        kept = partition.replicas[: 1 + self.choose(len(partition.replicas))]
        isr = [(replica, image.brokers[replica].epoch) for replica in {partition.leader, *kept} if replica > 0]
        proposal = replicas.Proposal(
            index, isr, partition.leader_recovery_state, partition.leader_epoch, partition.partition_epoch
        )
        leader = partition.leader
        if leader > 0:
            self.story.decide(replicas.alter, leader, image.brokers[leader].epoch, [(topic.topic_id, [proposal])])

    ask_for_yet_another_isr = ask_for_another_isr

    def ask_for_a_reassignment(self) -> None:
        topic, index, _ = self._partition()
        first = self.choose(4)
        target = None if not self.choose(4) else [(first + n) % 4 + 1 for n in range(1 + self.choose(3))]
        self.story.decide(reassignments.alter, [(topic.name, [(index, target)])])

    def ask_for_an_election(self) -> None:
        self.story.decide(elections.elect, self.choose(2), None)

    def ask_for_acls(self) -> None:
        entry = AclEntry(
            ResourceType.TOPIC,
            f"t{self.choose(3)}",
            PatternType.LITERAL,
            f"User:u{self.choose(2)}",
            "*",
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )
        if self.choose(3):
            self.story.decide(acls.create, [entry])
        else:
            self.story.decide(acls.delete, [AclFilter(principal=entry.principal)])

    def ask_for_a_quota(self) -> None:
        entities: list[dict[str, str | None]] = [{"user": "u"}, {"user": None}, {"user": "u", "client-id": None}]
        parts = entities[self.choose(3)]
        value = None if not self.choose(3) else float(1 + self.choose(3))
        self.story.decide(quotas.alter, [QuotaAlteration(parts, [("producer_byte_rate", value)])])

    def ask_for_a_user(self) -> None:
        if not self.choose(3):
            self.story.decide(scram.alter, [Deletion(name="a", mechanism=1)], [])
        else:
            upsertion = Upsertion(
                name="a", mechanism=1, iterations=4096 + self.choose(2), salt=b"salt", salted_password=b"salted" * 8
            )
            self.story.decide(scram.alter, [], [upsertion])

    def ask_for_a_feature(self) -> None:
        update = Update(self.choose(2), UpgradeType.UPGRADE if self.choose(2) else UpgradeType.SAFE_DOWNGRADE)
        name = ["eligible.leader.replicas.version", "group.version"][self.choose(2)]
        self.story.decide(features.update, {name: update}, False)

    def ask_for_producer_ids(self) -> None:
        self.story.decide(producer_ids.allocate, 1, self.story.image.brokers[1].epoch)

    def ask_for_nothing(self) -> None:
        self.story.last = [(NoOpRecord(), 0)]


def history(choose: Choose, steps: int) -> list[MetadataBatch]:
    cluster = Cluster(choose)
    for _ in range(steps):
        cluster.step()
    return cluster.batches
