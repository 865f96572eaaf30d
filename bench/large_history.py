"""The history of a large cluster, for `metadata_history.write`: 10,000 topics, 100,000 partitions, 30 brokers on three racks.

It begins with all of its topics. Then weeks pass: brokers are restarted one after the other, fall behind and catch up, die and
come back; preferred leaders are elected, partitions moved, topics deleted and made, settings, ACLs, users and quotas changed.
Most of what happens is the consequence of restarts, as it is in real ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

from barnabas.metadata.versions import LATEST_VERSION
from barnabas.wire import Uuid
from barnabas.wire.records.metadata import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from bench.big_cluster import Versioned, topic_name
from bench.metadata_history import REPLICAS, USERS, Cluster, Partition, changed, without

RACKS = ("a", "b", "c")
TOPICS_BEHIND = 30
_TOPIC, _GROUP, _LITERAL, _PREFIXED, _DENY, _ALLOW = 2, 3, 3, 4, 2, 3  # as Kafka numbers them


class LargeCluster(Cluster):
    brokers = range(1, 31)
    partitions = 100_000
    partitions_of_a_topic = (1, 3, 6, 12, 28)
    milliseconds_between_events = 48_000

    def __init__(self, source: random.Random) -> None:
        super().__init__(source)
        self._moving: list[tuple[Partition, list[int]]] = []
        self.events = {
            self.fall_behind: 500,
            self.nothing: 200,
            self.alter_configs: 120,
            self.make_or_delete_topic: 60,
            self.move_partition: 40,
            self.alter_acls: 25,
            self.give_producer_ids: 20,
            self.elect_preferred_leaders: 15,
            self.alter_users_and_quotas: 15,
            self.die: 4,
            self.restart: 1,
        }
        self.following = [self.grow]

    def grow(self) -> list[Versioned]:
        """Topics, until there are as many partitions as there shall be."""
        if self._partitions < self.partitions - max(self.partitions_of_a_topic):
            self.following.append(self.grow)
        return self.make_or_delete_topic()

    def _held_by(self, broker_id: int) -> Iterator[Partition]:
        return (each for _, _, partitions in self._topics for each in partitions if broker_id in each.replicas)

    def _shrink(self, partitions: list[Partition], broker_id: int) -> list[Versioned]:
        """As far as others are in sync with them: the last in sync stays so."""
        return [without(each, broker_id) for each in partitions if broker_id in each.isr and len(each.isr) > 1]

    def catch_up(self, partitions: list[Partition], broker_id: int) -> list[Versioned]:
        records = []
        for each in partitions:
            if broker_id in each.replicas and broker_id not in each.isr:
                each.isr = [*each.isr, broker_id]
                records.append(changed(each, each.isr))
        return records or self.nothing()

    def elect(self, partitions: list[Partition]) -> list[Versioned]:
        records = []
        for each in partitions:
            if each.leader != each.replicas[0] and each.replicas[0] in each.isr:
                each.leader = each.replicas[0]
                records.append(changed(each, each.isr, each.leader))
        return records or self.nothing()

    def elect_preferred_leaders(self) -> list[Versioned]:
        return self.elect([each for topic in self._source.sample(self._topics, 50) for each in topic[2]])

    def fall_behind(self) -> list[Versioned]:
        """A broker, on some partitions; soon it has caught up."""
        broker_id = self._source.choice(self.brokers)
        topics = self._source.sample(self._topics, self._source.randint(1, TOPICS_BEHIND))
        partitions = [each for topic in topics for each in topic[2] if broker_id in each.isr]
        self.following.append(partial(self.catch_up, partitions, broker_id))
        return self._shrink(partitions, broker_id) or self.nothing()

    def restart(self) -> list[Versioned]:
        """A broker says that it goes, hands its leaders over, and goes."""
        broker_id = self._source.choice(self.brokers)
        held = list(self._held_by(broker_id))
        self._coming_back(held, broker_id)
        going = self._registration_change(broker_id, in_controlled_shutdown=1)
        return [going, *self._shrink(held, broker_id), self._registration_change(broker_id, fenced=1)]

    def die(self) -> list[Versioned]:
        """A broker that is not heard of is fenced; on some topics alone, or most of the log would be about that."""
        broker_id = self._source.choice(self.brokers)
        topics = self._source.sample(self._topics, 200)
        held = [each for topic in topics for each in topic[2] if broker_id in each.replicas]
        self._coming_back(held, broker_id)
        return [self._registration_change(broker_id, fenced=1), *self._shrink(held, broker_id)]

    def _coming_back(self, held: list[Partition], broker_id: int) -> None:
        steps = (partial(self.start, broker_id), partial(self.catch_up, held, broker_id), partial(self.elect, held))
        self.following += steps

    def start(self, broker_id: int) -> list[Versioned]:
        self._epochs[broker_id] += 1
        return [self._registration(broker_id), self._registration_change(broker_id, fenced=-1)]

    def move_partition(self) -> list[Versioned]:
        """The next step of a move: another replica is added, or has caught up and takes the place of an old one."""
        if self._moving and self._source.random() < 0.5:
            partition, target = self._moving.pop(0)
            partition.replicas, partition.isr = target, target
            if partition.leader not in target:
                partition.leader = target[0]
            return [self._moved(partition, target, target, [], [], partition.leader)]
        moving = {id(each) for each, _ in self._moving}
        partition = self._source.choice(self._source.choice(self._topics)[2])
        if id(partition) in moving or len(partition.replicas) != REPLICAS:
            return self.nothing()
        added = self._source.choice([each for each in self.brokers if each not in partition.replicas])
        removed = partition.replicas[-1]
        self._moving.append((partition, [*partition.replicas[:-1], added]))
        return [self._moved(partition, [*partition.replicas, added], None, [added], [removed])]

    def _moved(
        self,
        partition: Partition,
        replicas: list[int],
        isr: list[int] | None,
        adding: list[int],
        removing: list[int],
        leader: int = -2,
    ) -> Versioned:
        record = PartitionChangeRecord(
            partition_id=partition.index,
            topic_id=partition.topic_id,
            replicas=replicas,
            isr=isr,
            leader=leader,
            adding_replicas=adding,
            removing_replicas=removing,
            directories=[self._directories[broker_id] for broker_id in replicas],
        )
        return record, LATEST_VERSION.partition_change_record_version

    def make_or_delete_topic(self) -> list[Versioned]:
        records = super().make_or_delete_topic()
        there = {topic_id for topic_id, _, _ in self._topics} if self._moving else set()
        self._moving = [each for each in self._moving if each[0].topic_id in there]
        return records

    def _entry(self, acl_id: Uuid) -> AccessControlEntryRecord:
        """Mostly of one topic or of all with a prefix; some of groups, of everything, and some that deny."""
        source = self._source
        name = topic_name(source.randrange(self._made + 1))
        kind, resource_type, pattern = source.random(), _TOPIC, _LITERAL
        if kind < 0.25:
            name, pattern = name[: source.randint(9, 11)], _PREFIXED
        elif kind < 0.45:
            name, resource_type = f"group-{source.randrange(2000)}", _GROUP
        elif kind < 0.46:
            name = "*"
        return AccessControlEntryRecord(
            id=acl_id,
            resource_type=resource_type,
            resource_name=name,
            pattern_type=pattern,
            principal=f"User:{source.randrange(USERS)}",
            host="*" if source.random() < 0.95 else f"10.0.0.{source.randrange(256)}",
            operation=source.choice((3, 4, 8) if resource_type == _TOPIC else (3, 8)),
            permission_type=_DENY if source.random() < 0.02 else _ALLOW,
        )

    def _registration(self, broker_id: int) -> Versioned:
        record, version = super()._registration(broker_id)
        assert isinstance(record, RegisterBrokerRecord)
        record.rack = RACKS[broker_id % len(RACKS)]
        record.fenced = self._epochs[broker_id] > 1
        return record, version

    def _registration_change(self, broker_id: int, fenced: int = 0, in_controlled_shutdown: int = 0) -> Versioned:
        record = BrokerRegistrationChangeRecord(
            broker_id=broker_id,
            broker_epoch=self._epochs[broker_id],
            fenced=fenced,
            in_controlled_shutdown=in_controlled_shutdown,
        )
        return record, 1
