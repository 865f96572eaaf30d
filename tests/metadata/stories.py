"""Sequences of records as a controller could have written them, each fitting the state that those before it made; and
what has to hold of every image."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from barnabas.metadata.acls import indexed
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.pmap import PMap
from barnabas.metadata.topics import REASSIGNING
from barnabas.wire import Uuid
from barnabas.wire.message import Message
from barnabas.wire.records.metadata import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)


def check_derived(image: MetadataImage) -> None:
    """Everything that follows from something else in the image does follow from it."""
    topics, acls = image.topics, image.acls
    assert topics.ids == PMap({topic.name: topic_id for topic_id, topic in topics.by_id.items()})
    assert topics.names == tuple(sorted(topics.ids))
    partitions = [partition for topic in topics.by_id.values() for partition in topic.partitions]
    counts = Counter(partition.leader for partition in partitions)
    counts[REASSIGNING] = sum(bool(p.adding_replicas or p.removing_replicas) for p in partitions)
    assert dict(topics.counts) == {key: count for key, count in counts.items() if count}
    for name in topics.names:
        alike = [other for other in topics.names if other != name and other.replace(".", "_") == name.replace(".", "_")]
        assert list(topics.colliding(name)) == alike
    assert Counter(acls.index) == Counter(indexed(acls.by_id.values()))


Choose = Callable[[int], int]
"""A number below the given one."""

TOPIC_NAMES = ["a", "b", "a.b", "a_b", "with.dots_and", "__internal"]


def uuid(number: int) -> Uuid:
    return Uuid(bytes([number * 37 % 256]) + number.to_bytes(15))


@dataclass
class World:
    """What a writer has to know of the state."""

    next_id: int = 100
    brokers: dict[int, int] = field(default_factory=dict)
    topics: dict[str, Uuid] = field(default_factory=dict)
    partitions: dict[Uuid, list[bool]] = field(default_factory=dict)
    """For each partition whether its directories are known."""
    acls: list[Uuid] = field(default_factory=list)

    def new_id(self) -> Uuid:
        self.next_id += 1
        return uuid(self.next_id)


def story(choose: Choose, length: int, *, metadata_version: int = 30, transactions: bool = False) -> Iterator[Message]:
    """`length` records, a few more or less. A transaction that is open in the end is closed."""
    writer = Writer(choose)
    saved: World | None = None
    yield FeatureLevelRecord(name="metadata.version", feature_level=metadata_version)
    for _ in range(length):
        if transactions and not choose(6):
            if saved is None:
                saved = copy.deepcopy(writer.world)
                yield BeginTransactionRecord(name="t")
            elif choose(2):
                saved = None
                yield EndTransactionRecord()
            else:
                writer.world, saved = saved, None
                yield AbortTransactionRecord(reason="r")
        else:
            yield writer.next()
    if saved is not None:
        yield EndTransactionRecord()


class Writer:
    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.world = World()
        self.kinds: list[Callable[[], Message]] = [
            getattr(self, name) for name in dir(Writer) if name.startswith("make_")
        ]

    def next(self) -> Message:
        return self.kinds[self.choose(len(self.kinds))]()

    def numbers(self, count: int) -> list[int]:
        first = self.choose(5)
        return [(first + n) % 5 for n in range(self.choose(count + 1))]

    def maybe(self, value: list[int]) -> list[int] | None:
        return value if self.choose(2) else None

    def make_feature(self) -> Message:
        names = ["group.version", "eligible.leader.replicas.version", "kraft.version", "metadata.version"]
        name = names[self.choose(4)]
        return FeatureLevelRecord(name=name, feature_level=30 if name == "metadata.version" else self.choose(2))

    def make_broker(self) -> Message:
        broker_id = self.choose(5)
        self.world.next_id += 1
        self.world.brokers[broker_id] = self.world.next_id
        endpoints = [
            RegisterBrokerRecord.BrokerEndpoint(name=name, host=f"h{broker_id}", port=9092 + n, security_protocol=n)
            for n, name in enumerate(["PLAINTEXT", "SSL", "SASL"][: self.choose(4)])
        ]
        feature = RegisterBrokerRecord.BrokerFeature(
            name="metadata.version", min_supported_version=7, max_supported_version=30
        )
        return RegisterBrokerRecord(
            broker_id=broker_id,
            is_migrating_zk_broker=not self.choose(5),
            incarnation_id=self.world.new_id(),
            broker_epoch=self.world.brokers[broker_id],
            end_points=endpoints,
            features=[feature] if self.choose(2) else [],
            rack=[None, "", "r1"][self.choose(3)],
            fenced=bool(self.choose(2)),
            in_controlled_shutdown=not self.choose(4),
            log_dirs=[uuid(n * 7) for n in self.numbers(3)],
            cordoned_log_dirs=[None, [], [uuid(3), uuid(1)]][self.choose(3)],
        )

    def _known_broker(self) -> tuple[int, int] | None:
        known = sorted(self.world.brokers.items())
        return known[self.choose(len(known))] if known else None

    def make_unregister(self) -> Message:
        known = self._known_broker()
        if known is None:
            return NoOpRecord()
        del self.world.brokers[known[0]]
        return UnregisterBrokerRecord(broker_id=known[0], broker_epoch=known[1])

    def make_fencing(self) -> Message:
        known = self._known_broker()
        if known is None:
            return ZkMigrationStateRecord(zk_migration_state=1)
        kind = (FenceBrokerRecord, UnfenceBrokerRecord)[self.choose(2)]
        return kind(id=known[0], epoch=known[1])

    def make_broker_change(self) -> Message:
        known = self._known_broker()
        if known is None:
            return NoOpRecord()
        return BrokerRegistrationChangeRecord(
            broker_id=known[0],
            broker_epoch=known[1],
            fenced=self.choose(3) - 1,
            in_controlled_shutdown=self.choose(2),
            log_dirs=[uuid(n * 7) for n in self.numbers(3)],
            cordoned_log_dirs=[None, [], [uuid(3), uuid(1)]][self.choose(3)],
        )

    def make_controller(self) -> Message:
        endpoint = RegisterControllerRecord.ControllerEndpoint(name="C", host="h", port=1, security_protocol=0)
        feature = RegisterControllerRecord.ControllerFeature(name="kraft.version", max_supported_version=1)
        return RegisterControllerRecord(
            controller_id=self.choose(4),
            incarnation_id=self.world.new_id(),
            zk_migration_ready=bool(self.choose(2)),
            end_points=[endpoint] if self.choose(2) else [],
            features=[feature] if self.choose(2) else [],
        )

    def make_topic(self) -> Message:
        free = [name for name in TOPIC_NAMES if name not in self.world.topics]
        if not free:
            return self.make_partition()
        name = free[self.choose(len(free))]
        self.world.topics[name] = self.world.new_id()
        self.world.partitions[self.world.topics[name]] = []
        return TopicRecord(name=name, topic_id=self.world.topics[name])

    def _known_topic(self) -> str | None:
        known = sorted(self.world.topics)
        return known[self.choose(len(known))] if known else None

    def make_partition(self) -> Message:
        name = self._known_topic()
        if name is None:
            return self.make_topic()
        topic_id = self.world.topics[name]
        partitions = self.world.partitions[topic_id]
        if partitions and not self.choose(4):
            partition_id = self.choose(len(partitions))  # a partition once more replaces the one before
        else:
            partition_id = len(partitions)
            partitions.append(False)
        replicas = self.numbers(3) or [1]
        directories = [uuid(n + 1) for n in replicas] if self.choose(2) else []
        partitions[partition_id] = bool(directories)
        return PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=replicas,
            isr=self.numbers(3),
            removing_replicas=self.numbers(1),
            adding_replicas=self.numbers(1),
            leader=self.choose(6) - 1,
            leader_recovery_state=self.choose(2),
            leader_epoch=self.choose(3),
            partition_epoch=self.choose(9),
            directories=directories,
            eligible_leader_replicas=self.maybe(self.numbers(2)),
            last_known_elr=self.maybe(self.numbers(2)),
        )

    def make_partition_change(self) -> Message:
        name = self._known_topic()
        if name is None or not self.world.partitions[self.world.topics[name]]:
            return self.make_partition()
        topic_id = self.world.topics[name]
        partitions = self.world.partitions[topic_id]
        partition_id = self.choose(len(partitions))
        replicas = self.maybe(self.numbers(3) or [2])
        directories = None
        if replicas is not None and (partitions[partition_id] or self.choose(2)):
            directories = [uuid(n + 1) for n in replicas]
            partitions[partition_id] = True
        return PartitionChangeRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            isr=self.maybe(self.numbers(3)),
            leader=self.choose(7) - 2,
            replicas=replicas,
            removing_replicas=self.maybe(self.numbers(1)),
            adding_replicas=self.maybe(self.numbers(1)),
            leader_recovery_state=self.choose(3) - 1,
            directories=directories,
            eligible_leader_replicas=self.maybe(self.numbers(2)),
            last_known_elr=self.maybe(self.numbers(2)),
        )

    def make_more_partition_change(self) -> Message:
        return self.make_partition_change()

    def make_remove_topic(self) -> Message:
        name = self._known_topic()
        if name is None or self.choose(2):
            return self.make_config()
        topic_id = self.world.topics.pop(name)
        del self.world.partitions[topic_id]
        return RemoveTopicRecord(topic_id=topic_id)

    def make_clear_elr(self) -> Message:
        name = self._known_topic()
        return ClearElrRecord(topic_name="" if name is None or not self.choose(3) else name)

    def make_config(self) -> Message:
        resource_type, name = [(2, self._known_topic()), (4, ""), (4, "1"), (32, "g")][self.choose(4)]
        return ConfigRecord(
            resource_type=resource_type,
            resource_name="elsewhere" if name is None else name,
            name=f"c{self.choose(3)}",
            value=[None, "", "1", "2"][self.choose(4)],
        )

    def make_quota(self) -> Message:
        kinds = [("user", "u"), ("client-id", None), ("ip", "1.2.3.4"), ("user", None)][: 1 + self.choose(4)]
        entity = [ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in kinds]
        if self.choose(2):
            entity.reverse()
        return ClientQuotaRecord(
            entity=entity, key=f"q{self.choose(2)}", value=self.choose(9) / 4, remove=not self.choose(3)
        )

    def make_scram(self) -> Message:
        name, mechanism = f"u{self.choose(3)}", 1 + self.choose(2)
        if not self.choose(3):
            return RemoveUserScramCredentialRecord(name=name, mechanism=mechanism)
        key = bytes([self.choose(256)]) * 4
        return UserScramCredentialRecord(
            name=name, mechanism=mechanism, salt=key, stored_key=key * 2, server_key=key * 3, iterations=4096
        )

    def make_token(self) -> Message:
        token_id = f"t{self.choose(3)}"
        if not self.choose(3):
            return RemoveDelegationTokenRecord(token_id=token_id)
        return DelegationTokenRecord(
            owner="User:a",
            requester="User:b:c",
            renewers=["User:r"] if self.choose(2) else [],
            issue_timestamp=1,
            max_timestamp=9,
            expiration_timestamp=self.choose(9),
            token_id=token_id,
        )

    def make_acl(self) -> Message:
        acls = self.world.acls
        if acls and not self.choose(3):
            return RemoveAccessControlEntryRecord(id=acls.pop(self.choose(len(acls))))
        acls.append(self.world.new_id())
        return AccessControlEntryRecord(
            id=acls[-1],
            resource_type=2 + self.choose(2),
            resource_name=["*", "a", "ab", "abc", "b"][self.choose(5)],
            pattern_type=3 + self.choose(2),
            principal="User:x",
            host=f"10.0.0.{self.world.next_id}",  # no two entries say the same
            operation=2 + self.choose(5),
            permission_type=2 + self.choose(2),
        )

    def make_producer_ids(self) -> Message:
        return ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=self.choose(9) * 1000)
