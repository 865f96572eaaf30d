"""A log dir whose metadata log is the history of a cluster of one size, as long as is asked for.

What happens, happens as often as it may in a cluster with much to do: ISRs shrink and grow, brokers are fenced and come back,
topics are made and deleted, configs and ACLs change, and now and then nothing. Each event is a batch. Once there are
`PARTITIONS`, topics are deleted as fast as they are made, so that a longer history is not that of a larger cluster. A shorter
history is the beginning of a longer one. Histories of other clusters are made by classes that follow `Cluster`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from barnabas.batches import build_control_batch
from barnabas.metadata.versions import LATEST_VERSION
from barnabas.raft.records import leader_change
from barnabas.storage.quorum_state import write_quorum_state
from barnabas.wire import Uuid
from barnabas.wire.records.metadata import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from barnabas.wire.records.raft import QuorumStateData
from bench import big_cluster
from bench.big_cluster import Versioned, topic_name

SEED = 7
CONTROLLER = "127.0.0.1:9093"
BEGIN_MS = 1_700_000_000_000
PARTITIONS = 20_000
BROKERS = range(1, 10)
REPLICAS = 3
ACLS = 5_000
USERS = 500
RECORDS_PER_EPOCH = 100_000
APPEND_BYTES = 1 << 16

Event = Callable[[], list[Versioned]]

_TOPIC, _BROKER = 2, 4  # types of resources of configs
_CONFIGS = ("retention.ms", "segment.bytes", "min.insync.replicas", "max.message.bytes", "retention.bytes")


class Partition:
    __slots__ = ("index", "isr", "leader", "replicas", "topic_id")

    def __init__(self, topic_id: Uuid, index: int, replicas: list[int]) -> None:
        self.topic_id = topic_id
        self.index = index
        self.replicas = replicas
        self.isr = replicas
        self.leader = replicas[0]


class Cluster:
    """What is there now; each of its events changes it, and gives the records that say so."""

    brokers = BROKERS
    partitions = PARTITIONS
    partitions_of_a_topic: tuple[int, ...] = (1, 3, 6, 12, 24, 50)
    milliseconds_between_events = 500
    """At most."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._topics: list[tuple[Uuid, str, list[Partition]]] = []
        self._partitions = 0
        self._made = 0
        self._acls: list[Uuid] = []
        self._epochs = dict.fromkeys(self.brokers, 1)
        self._directories = {broker_id: big_cluster.uuid(source) for broker_id in self.brokers}
        self._next_producer_id = 0
        self.following: list[Event] = []
        """What happens next, whatever the dice say."""
        self.events: dict[Event, int] = {
            self.alter_partitions: 50,
            self.nothing: 25,
            self.make_or_delete_topic: 12,
            self.alter_configs: 6,
            self.alter_acls: 3,
            self.give_producer_ids: 2,
            self.fence_broker: 1,
            self.alter_users_and_quotas: 1,
        }

    def register_brokers(self) -> list[Versioned]:
        return [self._registration(broker_id) for broker_id in self.brokers]

    def nothing(self) -> list[Versioned]:
        return [(NoOpRecord(), 0)]

    def alter_partitions(self) -> list[Versioned]:
        """A broker falls behind on some partitions of some topics, or has caught up."""
        records = []
        for _ in range(self._source.randint(1, 5)):
            broker_id = self._source.choice(self.brokers)
            for partition in self._source.choice(self._topics)[2] if self._topics else ():
                if broker_id not in partition.replicas:
                    continue
                if broker_id in partition.isr:
                    records.append(without(partition, broker_id))
                else:
                    partition.isr = [*partition.isr, broker_id]
                    records.append(changed(partition, isr=partition.isr))
        return records or self.nothing()

    def make_or_delete_topic(self) -> list[Versioned]:
        if self._partitions >= self.partitions:
            topics = self._topics
            at = self._source.randrange(len(topics))
            topics[at], topics[-1] = topics[-1], topics[at]
            topic_id, _, partitions = topics.pop()
            self._partitions -= len(partitions)
            return [(RemoveTopicRecord(topic_id=topic_id), 0)]
        topic_id, name = big_cluster.uuid(self._source), topic_name(self._made)
        self._made += 1
        records: list[Versioned] = [(TopicRecord(name=name, topic_id=topic_id), 0)]
        records += [
            (ConfigRecord(resource_type=_TOPIC, resource_name=name, name=key, value="86400000"), 0)
            for key in _CONFIGS[: self._source.randrange(3)]
        ]
        partitions = []
        for index in range(self._source.choice(self.partitions_of_a_topic)):
            partition = Partition(topic_id, index, self._source.sample(self.brokers, REPLICAS))
            partitions.append(partition)
            records.append(self._partition_record(partition))
        self._topics.append((topic_id, name, partitions))
        self._partitions += len(partitions)
        return records

    def alter_configs(self) -> list[Versioned]:
        records: list[Versioned] = []
        for key in self._source.sample(_CONFIGS, self._source.randint(1, 3)):
            value = None if self._source.random() < 0.2 else str(self._source.randrange(1 << 40))
            if self._topics and self._source.random() < 0.9:
                resource_type, name = _TOPIC, self._source.choice(self._topics)[1]
            else:
                resource_type, name = _BROKER, str(self._source.choice(self.brokers))
            records.append((ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value), 0))
        return records

    def alter_acls(self) -> list[Versioned]:
        count = self._source.randint(1, 10)
        if len(self._acls) >= ACLS:
            self._source.shuffle(self._acls)
            return [(RemoveAccessControlEntryRecord(id=self._acls.pop()), 0) for _ in range(count)]
        records: list[Versioned] = []
        for _ in range(count):
            self._acls.append(big_cluster.uuid(self._source))
            records.append((self._entry(self._acls[-1]), 0))
        return records

    def _entry(self, acl_id: Uuid) -> AccessControlEntryRecord:
        return AccessControlEntryRecord(
            id=acl_id,
            resource_type=2,
            resource_name=topic_name(self._source.randrange(self._made + 1)),
            pattern_type=3,
            principal=f"User:{self._source.randrange(USERS)}",
            host="*",
            operation=self._source.choice((3, 4, 8)),
            permission_type=3,
        )

    def give_producer_ids(self) -> list[Versioned]:
        self._next_producer_id += 1000
        broker_id = self._source.choice(self.brokers)
        given = ProducerIdsRecord(
            broker_id=broker_id, broker_epoch=self._epochs[broker_id], next_producer_id=self._next_producer_id
        )
        return [(given, 0)]

    def fence_broker(self) -> list[Versioned]:
        """It registers again and is fenced, which takes it out of the ISRs of some topics, and then unfenced."""
        broker_id = self._source.choice(self.brokers)
        self._epochs[broker_id] += 1
        epoch = self._epochs[broker_id]
        records = [self._registration(broker_id)]
        records.append((BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=1), 0))
        for _ in range(20 if self._topics else 0):
            partitions = self._source.choice(self._topics)[2]
            records += [without(partition, broker_id) for partition in partitions if broker_id in partition.isr]
        records.append((BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=-1), 0))
        return records

    def alter_users_and_quotas(self) -> list[Versioned]:
        name = str(self._source.randrange(USERS))
        salt, key = self._source.randbytes(16), self._source.randbytes(32)
        user = UserScramCredentialRecord(
            name=name, mechanism=1, salt=salt, stored_key=key, server_key=key[::-1], iterations=4096
        )
        entity = [ClientQuotaRecord.EntityData(entity_type="user", entity_name=name)]
        rate = float(self._source.randrange(1 << 20))
        return [(user, 0), (ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=rate), 0)]

    def _registration(self, broker_id: int) -> Versioned:
        directory_id, incarnation_id = self._directories[broker_id], big_cluster.uuid(self._source)
        return big_cluster.broker(broker_id, directory_id, incarnation_id, self._epochs[broker_id])

    def _partition_record(self, partition: Partition) -> Versioned:
        record = PartitionRecord(
            partition_id=partition.index,
            topic_id=partition.topic_id,
            replicas=partition.replicas,
            isr=partition.isr,
            leader=partition.leader,
            leader_epoch=0,
            partition_epoch=0,
            directories=[self._directories[broker_id] for broker_id in partition.replicas],
        )
        return record, LATEST_VERSION.partition_record_version


def write(log_dir: Path, records: int, kind: type[Cluster] = Cluster) -> None:
    """Format the directory for node 1, and write that many records or a batch more, the control records among them."""
    source = random.Random(SEED)
    now_ms = BEGIN_MS
    log = big_cluster.begin(log_dir, CONTROLLER, source, lambda: now_ms)
    cluster = kind(source)
    events, weights = list(cluster.events), list(cluster.events.values())
    big_cluster.append(log, cluster.register_brokers(), now_ms)
    offset, epoch, parts, size = log.end_offset, big_cluster.EPOCH, [], 0
    while offset < records:
        if offset // RECORDS_PER_EPOCH >= epoch:
            epoch += 1
            now_ms -= 100  # the clock of the next leader
            change = [leader_change(1, [1], [1])]
            parts.append(
                build_control_batch(change, timestamp=now_ms, base_offset=offset, partition_leader_epoch=epoch)
            )
            offset += 1
        chosen = source.choices(events, weights, k=100)
        while chosen or cluster.following:
            happened = (cluster.following if cluster.following else chosen).pop(0)()
            parts.append(big_cluster.batch(happened, offset, epoch, now_ms))
            offset += len(happened)
            now_ms += source.randrange(cluster.milliseconds_between_events)
            size += len(parts[-1])
            if size >= APPEND_BYTES:  # often, so that the index has a place for each
                log.append(b"".join(parts))
                parts, size = [], 0
            if offset >= records:
                break
    log.append(b"".join(parts))
    log.flush()
    log.close()
    state = QuorumStateData(leader_id=1, leader_epoch=epoch)
    write_quorum_state(log.directory, state, 1)


def changed(partition: Partition, isr: list[int], leader: int = -2) -> Versioned:
    record = PartitionChangeRecord(partition_id=partition.index, topic_id=partition.topic_id, isr=isr, leader=leader)
    return record, LATEST_VERSION.partition_change_record_version


def without(partition: Partition, broker_id: int) -> Versioned:
    """The broker leaves the ISR, unless it is the last, and leads no more."""
    isr = [each for each in partition.isr if each != broker_id]
    if not isr:
        partition.leader = -1 if partition.leader != -1 else broker_id
        return changed(partition, partition.isr, partition.leader)
    partition.isr = isr
    if partition.leader not in isr:
        partition.leader = isr[0]
        return changed(partition, isr, isr[0])
    return changed(partition, isr)
