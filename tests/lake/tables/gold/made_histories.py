"""Histories made by the controller's own decisions: as the rows of silver's tables, and replayed without the lake."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.controller import brokers, configs, elections, reassignments, replicas, topics
from barnabas.controller.configs import AlterOperation
from barnabas.controller.heartbeats import Heartbeats
from barnabas.lake.declared_column import Column, ddl
from barnabas.lake.facts.schema import VALIDITY, kinds
from barnabas.metadata.configs import ConfigResource
from barnabas.metadata.snapshot import to_records
from barnabas.metadata.topics import Topic
from barnabas.wire import KafkaError, Uuid
from barnabas.wire.message import Message
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.records.control import LeaderChangeMessage
from barnabas.wire.records.metadata import BeginTransactionRecord, NoOpRecord, RegisterBrokerRecord
from tests.broker.harness import register_broker
from tests.controller.situations import Story
from tests.lake.controller_histories import history as random_batches
from tests.lake.facts.metadata_facts import Item, fold_in_runs
from tests.lake.tables.gold.replaying import KINDS, History, Place, Record, time_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BEGIN_MS = 1_772_366_400_000
"""2026-03-01T12:00:00Z."""


class Made(NamedTuple):
    """A metadata log, in three forms."""

    cluster_id: str
    history: History
    facts: list[dict[str, Any]]


def make(cluster_id: str, batches: Iterable[tuple[int, Sequence[Message]]]) -> Made:
    """From batches with the times at which they were appended. A leader of the quorum begins an epoch."""
    items: list[Item] = []
    records: list[Record] = []
    epoch = 0
    for time_ms, messages in batches:
        first = len(items)
        epoch += isinstance(messages[0], LeaderChangeMessage)
        for message in messages:
            data = message.to_json(message.schema().versions.last)
            place = Place(len(items), time_of(time_ms), epoch)
            records.append(Record(type(message).__name__, data, place, first))
            items.append(Item(place.offset, message, time_ms=time_ms, epoch=epoch))
    return Made(cluster_id, History(records), fold_in_runs([(items, 1)]))


def leader(node: int) -> LeaderChangeMessage:
    voters = [LeaderChangeMessage.Voter(voter_id=number) for number in (1, 2, 3)]
    return LeaderChangeMessage(version=1, leader_id=node, voters=voters, granting_voters=voters[:2])


def random_history(cluster_id: str, seed: int, steps: int) -> Made:
    """Batches are ten seconds apart, but each seventh is as early as three before it were, and a bit."""
    random = Random(seed)
    found: list[Sequence[Message]] = [[leader(1)]]
    for number, batch in enumerate(random_batches(random.randrange, steps)):
        if number % 40 == 30 and not any(isinstance(record, BeginTransactionRecord) for record in found[-1]):
            found.append([leader(random.randrange(1, 4))])
        for record in batch.records:
            if isinstance(record, RegisterBrokerRecord) and seed % 2:
                record.rack = "ab"[record.broker_id % 2]
        found.append(batch.records)
    times = (BEGIN_MS + 10_000 * number - (35_000 if number % 7 == 6 else 0) for number in range(len(found)))
    return make(cluster_id, zip(times, found, strict=True))


class Planted:
    """Requests to a controller of four brokers on three racks; a minute passes before each."""

    def __init__(self) -> None:
        racks = enumerate("abca", 1)
        self.story = Story([register_broker(broker, rack=rack) for broker, rack in racks], brokers=0)
        self.batches: list[tuple[int, Sequence[Message]]] = [(BEGIN_MS, [leader(1)])]
        self._write([record for record, _ in to_records(self.story.image)])

    def _write(self, records: Sequence[Message]) -> None:
        assert records
        self.batches.append((BEGIN_MS + 60_000 * (len(self.batches) - 1), records))

    def _decide(self, *arguments: Any) -> None:
        self.story.last = []
        self.story.decide(*arguments)
        self._write(self.story.written)

    def create(self, name: str, *assignments: list[int], **settings: str) -> None:
        request = CreateTopicsRequest
        topic = request.CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                request.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
                for index, brokers in enumerate(assignments)
            ],
            configs=[
                request.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()
            ],
        )
        self._decide(topics.create, [topic])

    def _topic(self, name: str) -> Topic:
        (found,) = (topic for topic in self.story.image.topics.by_id.values() if topic.name == name)
        return found

    def delete(self, name: str) -> None:
        self._decide(topics.delete, [self._topic(name).topic_id])

    def set(self, topic: str, name: str, value: str) -> None:
        changes = {ConfigResource(2, topic): {name: (AlterOperation.SET, value)}}
        self._decide(configs.alter_incrementally, changes, False, True)

    def _heartbeat(self, broker_id: int, **fields: Any) -> BrokerHeartbeatRequest:
        image = self.story.image
        epoch = image.brokers[broker_id].epoch
        return BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=image.offset, **fields
        )

    def _beat(self, broker_id: int, **fields: Any) -> None:
        self._decide(brokers.heartbeat, self._heartbeat(broker_id, **fields))

    def fence(self, broker_id: int) -> None:
        self._beat(broker_id, want_fence=True)

    def let_in(self, broker_id: int) -> None:
        self._beat(broker_id)

    def shut_down(self, broker_id: int) -> None:
        """The first time it gives up what it leads, and the second, as all others know of it, it is fenced."""
        for broker in self.story.image.brokers.values():
            if broker.broker_id != broker_id and not broker.fenced:
                self.story.decide(brokers.heartbeat, self._heartbeat(broker.broker_id))
        self._beat(broker_id, want_shut_down=True)

    def register_again(self, broker_id: int) -> None:
        """Another process of the same broker."""
        record = register_broker(broker_id, rack=self.story.image.brokers[broker_id].rack, fenced=True)
        record.incarnation_id, record.broker_epoch = Uuid(b"again again agai"), 1000 + len(self.batches)
        self.story.apply([record])
        self.story.heartbeats = Heartbeats.started(self.story.image, self.story.now_ms)
        self._write([record])

    def set_isr(self, name: str, *isr: int) -> None:
        """What the leader of partition 0 asks for."""
        topic, image = self._topic(name), self.story.image
        partition = topic.partitions[0]
        proposal = replicas.Proposal(
            0,
            [(replica, image.brokers[replica].epoch) for replica in isr],
            partition.leader_recovery_state,
            partition.leader_epoch,
            partition.partition_epoch,
        )
        epoch = image.brokers[partition.leader].epoch
        self._decide(replicas.alter, partition.leader, epoch, [(topic.topic_id, [proposal])])

    def reassign(self, name: str, target: list[int] | None) -> None:
        self._decide(reassignments.alter, [(name, [(0, target)])])

    def elect(self, *, unclean: bool = False) -> None:
        with suppress(KafkaError):
            self._decide(elections.elect, int(unclean), None)

    def nothing(self) -> None:
        self._write([NoOpRecord()])

    def elect_controller(self, node: int) -> None:
        self._write([leader(node)])


def silver(spark: SparkSession, made: Sequence[Made]) -> dict[str, DataFrame]:
    """The tables of silver of all of these clusters, and of bronze what says when each log ended."""
    tables = {}
    for name in KINDS:
        columns = (Column("cluster_id", "string", ""), *kinds()[name].columns, *VALIDITY)
        values, validity = [column.name for column in kinds()[name].columns], [column.name for column in VALIDITY]
        rows = [
            (each.cluster_id, *(fact["value"][column] for column in values), *(fact[column] for column in validity))
            for each in made
            for fact in each.facts
            if fact["kind"] == name
        ]
        tables[name] = spark.createDataFrame(rows, ddl(columns))
    records = [
        (each.cluster_id, record.place.offset, record.place.time) for each in made for record in each.history.records
    ]
    tables["metadata_records"] = spark.createDataFrame(records, "cluster_id string, offset long, append_time timestamp")
    return tables
