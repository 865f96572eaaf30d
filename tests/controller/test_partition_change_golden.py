"""Every partition change that Apache Kafka's controller wrote in the golden cluster's life, decided again by ours.

Kafka goes through the partitions of a broker in the order of a hash map, so the records of one decision are compared
without their order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from barnabas.config import server
from barnabas.controller import brokers, elections, reassignments, replicas
from barnabas.controller.heartbeats import Heartbeats
from barnabas.controller.situation import Situation
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.metadata.topics import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE
from barnabas.steps import at_once, result_of
from barnabas.wire import Message
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest
from barnabas.wire.records.metadata import BrokerRegistrationChangeRecord, PartitionChangeRecord, RegisterBrokerRecord
from tests.metadata import golden

CLUSTER_ID = "Z29sZC1jbHVzdGVyLTAwMQ"

# Where a decision's partition changes stand before the record that gives its cause: the first of them.
FIRST_OF = {2292: 2278, 4634: 4573, 2478: 2477, 4677: 4670}
# Broker 3 and then broker 1 had stopped and were fenced; ours does not fence them again when their sessions end.
FENCED_AGAIN = {2498, 5237}
STOPPED_CLEANLY = {2323, 2535}
REASSIGNED: dict[int, tuple[str, list[tuple[int, list[int] | None]]]] = {
    2081: ("r-move", [(0, [2, 1])]),
    2082: ("r-move", [(0, [1, 2])]),
    2083: ("r-move", [(0, [2, 1])]),
    2084: ("r-grow", [(0, [1, 2])]),
    2086: ("r-move", [(0, [3, 4]), (1, [4, 1])]),
    2108: ("r-cancel", [(0, [3, 4])]),
    2112: ("r-cancel", [(0, [4, 2])]),
    2117: ("r-cancel", [(0, None)]),
}
UNCLEAN_ELECTIONS = {2517}
NEW_IN_SYNC_ENDS_REASSIGNMENT = {2088: 2, 2092: 4, 2096: 4}


class Written(NamedTuple):
    record: Message
    before: MetadataImage


@cache
def history() -> dict[int, Written]:
    """Every record of the log by offset, with the image that it was written in."""
    image, found = EMPTY_IMAGE, {}
    for batch in golden.log():
        for offset, record in enumerate(batch.records, batch.base_offset):
            found[offset] = Written(record, image)
            image = replay(image, [record], Provenance(offset, batch.epoch, batch.append_timestamp_ms))
    return found


def offsets_of(kind: type[Message], **fields: object) -> list[int]:
    return [
        offset
        for offset, (record, _) in history().items()
        if type(record) is kind and all(getattr(record, name) == value for name, value in fields.items())
    ]


def decide(first: int, decision: Callable[..., Any], *arguments: Any) -> range:
    """The offsets of what Kafka wrote, which is what ours writes in the same situation."""
    before = history()[first].before
    image = replay(before, [], before.provenance._replace(last_contained_offset=first - 1))
    config = server.load(None, {"node.id": "1"})
    long_ago = Heartbeats.started(image, 0)
    situation = Situation(image, config, 0, None, long_ago, 1_000_000, CLUSTER_ID, 1)  # type: ignore[arg-type]
    records = [record for record, _ in at_once(result_of(decision(situation, *arguments))).records]
    explained = range(first, first + len(records))
    assert sorted(map(repr, records)) == sorted(repr(history()[offset].record) for offset in explained)
    return explained


def beat(offset: int, **wishes: Any) -> range:
    record = history()[offset].record
    assert isinstance(record, BrokerRegistrationChangeRecord)
    request = BrokerHeartbeatRequest(
        broker_id=record.broker_id, broker_epoch=record.broker_epoch, current_metadata_offset=offset, **wishes
    )
    return decide(FIRST_OF.get(offset, offset), brokers.heartbeat, request)


@cache
def fenced() -> list[range]:
    offsets = offsets_of(BrokerRegistrationChangeRecord, fenced=1)
    return [beat(offset, want_fence=True) for offset in offsets if offset not in FENCED_AGAIN]


@cache
def unfenced() -> list[range]:
    return [beat(offset) for offset in offsets_of(BrokerRegistrationChangeRecord, fenced=-1)]


@cache
def shut_down() -> list[range]:
    offsets = offsets_of(BrokerRegistrationChangeRecord, in_controlled_shutdown=1)
    return [beat(offset, want_shut_down=True) for offset in offsets]


@cache
def registered() -> list[range]:
    return [_register(offset) for offset in offsets_of(RegisterBrokerRecord)]


def _register(offset: int) -> range:
    record, before = history()[offset]
    assert isinstance(record, RegisterBrokerRecord)
    listener, feature = BrokerRegistrationRequest.Listener, BrokerRegistrationRequest.Feature
    request = BrokerRegistrationRequest(
        broker_id=record.broker_id,
        cluster_id=CLUSTER_ID,
        incarnation_id=record.incarnation_id,
        rack=record.rack,
        log_dirs=list(record.log_dirs),
        previous_broker_epoch=before.brokers[record.broker_id].epoch if offset in STOPPED_CLEANLY else -1,
        listeners=[
            listener(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in record.end_points
        ],
        features=[
            feature(
                name=f.name,
                min_supported_version=f.min_supported_version,
                max_supported_version=f.max_supported_version,
            )
            for f in record.features
        ],
    )
    return decide(FIRST_OF.get(offset, offset), brokers.register, request, 4)


@cache
def reassigned() -> list[range]:
    return [decide(offset, reassignments.alter, [target]) for offset, target in REASSIGNED.items()]


@cache
def assigned_to_directories() -> list[range]:
    offsets = [o for o in offsets_of(PartitionChangeRecord) if _has_only(o, "directories")]
    return [_assign(offset) for offset in offsets]


def _has_only(offset: int, *wanted: str) -> bool:
    record = history()[offset].record
    assert isinstance(record, PartitionChangeRecord)
    unchanged = {"leader": NO_LEADER_CHANGE, "leader_recovery_state": NO_RECOVERY_CHANGE}
    changed = {name for name in type(record).__slots__[2:] if getattr(record, name) != unchanged.get(name)}
    return changed == set(wanted)


def _assign(offset: int) -> range:
    record, image = history()[offset]
    assert isinstance(record, PartitionChangeRecord) and record.directories is not None
    partition = image.topics.by_id[record.topic_id].partitions[record.partition_id]
    places = zip(partition.replicas, partition.directories, record.directories, strict=True)
    ((broker_id, directory),) = [(replica, new) for replica, old, new in places if new != old]
    epoch = image.brokers[broker_id].epoch
    request_of = AssignReplicasToDirsRequest
    asked = request_of.TopicData(
        topic_id=record.topic_id, partitions=[request_of.PartitionData(partition_index=record.partition_id)]
    )
    directories = [request_of.DirectoryData(id=directory, topics=[asked])]
    request = request_of(broker_id=broker_id, broker_epoch=epoch, directories=directories)
    return decide(offset, replicas.assign_to_directories, request)


def known() -> set[int]:
    found = [*fenced(), *unfenced(), *shut_down(), *registered(), *reassigned(), *assigned_to_directories()]
    return {offset for explained in found for offset in explained}


@cache
def elected() -> list[range]:
    """What only changes leaders was asked for as an election of preferred ones."""
    offsets = [o for o in offsets_of(PartitionChangeRecord) if o not in known() and _has_only(o, "leader")]
    return [_elect(offset, 0) for offset in offsets] + [_elect(offset, 1) for offset in UNCLEAN_ELECTIONS]


def _elect(offset: int, election_type: int) -> range:
    record, image = history()[offset]
    assert isinstance(record, PartitionChangeRecord)
    name = image.topics.by_id[record.topic_id].name
    return decide(offset, elections.elect, election_type, [(name, [record.partition_id])])


@cache
def altered() -> list[range]:
    """The rest are what leaders told of their in-sync replicas."""
    rest = set(offsets_of(PartitionChangeRecord)) - known() - {o for explained in elected() for o in explained}
    return [_alter(offset) for offset in sorted(rest)]


def _alter(offset: int) -> range:
    record, image = history()[offset]
    assert isinstance(record, PartitionChangeRecord) and record.isr is not None
    partition = image.topics.by_id[record.topic_id].partitions[record.partition_id]
    isr = record.isr
    if offset in NEW_IN_SYNC_ENDS_REASSIGNMENT:
        isr = [*partition.isr, NEW_IN_SYNC_ENDS_REASSIGNMENT[offset]]
    recovery = record.leader_recovery_state
    proposal = replicas.Proposal(
        record.partition_id,
        [(replica, image.brokers[replica].epoch) for replica in isr],
        partition.leader_recovery_state if recovery == NO_RECOVERY_CHANGE else recovery,
        partition.leader_epoch,
        partition.partition_epoch,
    )
    leader = partition.leader
    return decide(offset, replicas.alter, leader, image.brokers[leader].epoch, [(record.topic_id, [proposal])])


def test_brokers_are_let_in_as_kafka_does_it() -> None:
    assert sum(map(len, unfenced())) == 22


def test_brokers_are_fenced_as_kafka_does_it() -> None:
    assert sum(map(len, fenced())) == 84


def test_brokers_shut_down_as_kafka_does_it() -> None:
    assert sum(map(len, shut_down())) == 327


def test_brokers_register_as_kafka_does_it_also_after_a_crash() -> None:
    assert sum(map(len, registered())) == 17


def test_partitions_are_reassigned_as_kafka_does_it() -> None:
    assert sum(map(len, reassigned())) == 9


def test_replicas_are_assigned_to_directories_as_kafka_does_it() -> None:
    assert len(assigned_to_directories()) == 318


def test_leaders_are_elected_as_kafka_does_it() -> None:
    assert all(len(explained) == 1 for explained in elected())
    assert len(elected()) > 30


def test_leaders_change_the_isr_as_kafka_does_it() -> None:
    assert all(len(explained) == 1 for explained in altered())
    assert len(altered()) > 100
