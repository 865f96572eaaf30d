"""What single records do, and which are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from barnabas import wire
from barnabas.metadata.configs import ConfigResource
from barnabas.metadata.errors import ReplayError
from barnabas.metadata.image import EMPTY_IMAGE, Draft, MetadataImage, Provenance
from barnabas.metadata.replay import REPLAY, apply, replay
from barnabas.metadata.snapshot import to_records
from barnabas.metadata.topics import MIGRATING_DIR, NO_LEADER, REASSIGNING, UNASSIGNED_DIR, Partition, TopicPartition
from barnabas.steps import Slices, at_once
from barnabas.wire import Uuid
from barnabas.wire.message import Message
from barnabas.wire.records.control import SnapshotFooterRecord
from barnabas.wire.records.metadata import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

HERE = Provenance(9, 1, 1)
TOPIC, OTHER, DIR_A, DIR_B = (Uuid(bytes([n]) * 16) for n in (1, 2, 3, 200))


def after(*records: Message, image: MetadataImage = EMPTY_IMAGE) -> MetadataImage:
    return replay(image, records, HERE)


def partition_record(partition_id: int = 0, **fields: Any) -> PartitionRecord:
    known: dict[str, Any] = {
        "replicas": [1, 2, 3],
        "isr": [1, 2],
        "leader": 1,
        "leader_epoch": 5,
        "partition_epoch": 7,
        "directories": [DIR_A, DIR_B, UNASSIGNED_DIR],
    }
    return PartitionRecord(partition_id=partition_id, topic_id=TOPIC, **(known | fields))


def changed(start: PartitionRecord, **fields: Any) -> tuple[Partition, Partition]:
    image = after(TopicRecord(name="t", topic_id=TOPIC), start)
    changed = after(PartitionChangeRecord(partition_id=0, topic_id=TOPIC, **fields), image=image)
    return image.topics.by_id[TOPIC].partitions[0], changed.topics.by_id[TOPIC].partitions[0]


def test_every_type_of_metadata_record_is_in_the_table() -> None:
    names = {cls.__name__ for cls in REPLAY}
    assert names == {name for name in wire.message_names() if wire.message_class(name).schema().group == "metadata"}
    assert len(names) == 26


def test_a_record_of_another_kind_is_refused() -> None:
    with pytest.raises(ReplayError, match="SnapshotFooterRecord"):
        after(SnapshotFooterRecord())


def test_an_abort_cannot_be_applied() -> None:
    with pytest.raises(ReplayError, match="only skipped"):
        after(AbortTransactionRecord())


def test_a_change_of_nothing_bumps_the_partition_epoch_alone() -> None:
    before, now = changed(partition_record())
    assert now == before._replace(partition_epoch=8)


@pytest.mark.parametrize("leader", [2, NO_LEADER, 1])
def test_a_leader_in_a_change_begins_a_leader_epoch_even_when_it_is_the_same(leader: int) -> None:
    before, now = changed(partition_record(), leader=leader)
    assert now == before._replace(leader=leader, leader_epoch=6, partition_epoch=8)


def test_null_lists_stay_and_empty_ones_empty() -> None:
    start = partition_record(
        removing_replicas=[1], adding_replicas=[3], eligible_leader_replicas=[3], last_known_elr=[2]
    )
    before, now = changed(start, isr=[], removing_replicas=[], eligible_leader_replicas=[])
    assert before.elr == (3,) and before.last_known_elr == (2,)
    assert now == before._replace(isr=(), removing_replicas=(), elr=(), partition_epoch=8)


def test_the_recovery_state_changes_only_when_told() -> None:
    assert changed(partition_record(leader_recovery_state=1))[1].leader_recovery_state == 1
    assert changed(partition_record(leader_recovery_state=1), leader_recovery_state=0)[1].leader_recovery_state == 0
    assert changed(partition_record(), leader_recovery_state=1)[1].leader_recovery_state == 1
    with pytest.raises(ReplayError, match="2 is not a leader recovery state"):
        changed(partition_record(), leader_recovery_state=2)


def test_directories_that_were_never_told_follow_the_number_of_replicas() -> None:
    before, now = changed(partition_record(directories=[]), replicas=[4, 5])
    assert before.directories == (MIGRATING_DIR,) * 3
    assert now.directories == (MIGRATING_DIR,) * 2
    assert now.directory(5) == MIGRATING_DIR and now.directory(1) is None


def test_directories_that_were_told_must_fit_the_replicas() -> None:
    assert changed(partition_record(), replicas=[2], directories=[DIR_B])[1].directories == (DIR_B,)
    with pytest.raises(ReplayError, match="3 directories for 2 replicas"):
        changed(partition_record(), replicas=[1, 2])
    with pytest.raises(ReplayError, match="1 directories for 3 replicas"):
        after(TopicRecord(name="t", topic_id=TOPIC), partition_record(directories=[DIR_A]))


def test_partitions_may_come_in_any_order_but_without_a_gap() -> None:
    topic = TopicRecord(name="t", topic_id=TOPIC)
    parts = [partition_record(n, partition_epoch=n) for n in range(4)]
    shuffled = after(topic, parts[2], parts[3], parts[0], parts[1])
    assert shuffled == after(topic, *parts)
    change = PartitionChangeRecord(partition_id=2, topic_id=TOPIC, leader=3)
    assert after(topic, parts[2], change, parts[1], parts[0]) == after(topic, *parts[:3], change)
    with pytest.raises(ReplayError, match="topic t has partition 2 but not 1"):
        after(topic, parts[0], parts[2])
    with pytest.raises(ReplayError, match="has id -1"):
        after(topic, partition_record(-1))


def test_a_topic_takes_its_settings_and_counts_with_it() -> None:
    setting = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1")
    other = ConfigRecord(resource_type=4, resource_name="t", name="x", value="1")
    image = after(TopicRecord(name="t", topic_id=TOPIC), partition_record(adding_replicas=[3]), setting, other)
    assert dict(image.topics.counts) == {1: 1, REASSIGNING: 1}
    gone = after(RemoveTopicRecord(topic_id=TOPIC), image=image)
    assert gone.topics == EMPTY_IMAGE.topics
    assert list(gone.configs) == [ConfigResource(4, "t")]
    # The same within one draft.
    assert dict(after(RemoveTopicRecord(topic_id=TOPIC), setting, image=image).config(2, "t")) == {"retention.ms": "1"}
    assert after(setting, TopicRecord(name="t", topic_id=TOPIC), RemoveTopicRecord(topic_id=TOPIC)) == after()


def test_a_topic_recreated_under_its_name_is_another_one() -> None:
    image = after(TopicRecord(name="t", topic_id=TOPIC), partition_record())
    again = after(RemoveTopicRecord(topic_id=TOPIC), TopicRecord(name="t", topic_id=OTHER), image=image)
    topic = again.topics.get("t")
    assert topic is not None and topic.topic_id == OTHER and topic.partitions == ()
    assert TOPIC not in again.topics.by_id and again.topics.names == ("t",)


def test_the_same_topic_record_once_more_begins_again_without_partitions() -> None:
    topic = TopicRecord(name="t", topic_id=TOPIC)
    image = after(topic, partition_record())
    assert after(topic, image=image) == after(topic)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([TopicRecord(name="t", topic_id=OTHER)], "topic t has id AQEBAQEBAQEBAQEBAQEBAQ"),
        ([TopicRecord(name="u", topic_id=TOPIC)], "belongs to topic t"),
        ([RemoveTopicRecord(topic_id=OTHER)], "no topic with id"),
        ([RemoveTopicRecord(topic_id=TOPIC), RemoveTopicRecord(topic_id=TOPIC)], "no topic with id"),
        ([PartitionChangeRecord(partition_id=1, topic_id=TOPIC)], "topic t has no partition 1"),
        ([PartitionChangeRecord(partition_id=0, topic_id=OTHER)], "no topic with id"),
        ([ClearElrRecord(topic_name="u")], "no topic u"),
        ([RemoveAccessControlEntryRecord(id=OTHER)], "no access control entry"),
        ([FenceBrokerRecord(id=7, epoch=1)], "broker 7 is not registered"),
        ([UnfenceBrokerRecord(id=1, epoch=8)], "registered with epoch 9, not 8"),
        ([BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=9, fenced=2)], "not a change"),
        ([BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=9, in_controlled_shutdown=-1)], "not a change"),
        ([RegisterBrokerRecord(end_points=[RegisterBrokerRecord.BrokerEndpoint(host="h")])], "has no name"),
        ([FeatureLevelRecord(name="metadata.version", feature_level=6)], "metadata.version 6 is not supported"),
        ([FeatureLevelRecord(name="metadata.version", feature_level=31)], "metadata.version 31 is not supported"),
        ([DelegationTokenRecord(owner="me", requester="User:a")], "not 'me'"),
    ],
)
def test_records_that_do_not_fit_are_refused(records: Sequence[Message], message: str) -> None:
    image = after(
        TopicRecord(name="t", topic_id=TOPIC),
        partition_record(),
        RegisterBrokerRecord(broker_id=1, broker_epoch=9),
    )
    with pytest.raises(ReplayError, match=message):
        after(*records, image=image)


def test_clearing_elr_leaves_partitions_alone_that_have_none() -> None:
    topic = TopicRecord(name="t", topic_id=TOPIC)
    with_elr = partition_record(0, eligible_leader_replicas=[3])
    with_last_known = partition_record(1, last_known_elr=[3])
    image = after(topic, with_elr, with_last_known, partition_record(2))
    for name in ("t", ""):
        cleared = after(ClearElrRecord(topic_name=name), image=image).topics.by_id[TOPIC].partitions
        assert [p.partition_epoch for p in cleared] == [8, 8, 7]
        assert not any(p.elr or p.last_known_elr for p in cleared)
        assert [p.leader_epoch for p in cleared] == [5, 5, 5]


def test_a_registration_replaces_and_a_change_only_changes() -> None:
    start = RegisterBrokerRecord(broker_id=1, broker_epoch=9, in_controlled_shutdown=True, log_dirs=[DIR_B, DIR_A])
    image = after(start, RegisterBrokerRecord(broker_id=1, broker_epoch=10, log_dirs=[DIR_A, DIR_B], rack=None))
    broker = image.brokers[1]
    assert (broker.epoch, broker.fenced, broker.in_controlled_shutdown, broker.rack) == (10, True, False, None)
    # The order of Kafka: the first half of a uuid is a signed number.
    assert broker.log_dirs == (DIR_B, DIR_A) and broker.cordoned_log_dirs is None

    def change(**fields: Any) -> Message:
        return BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, **fields)

    assert after(change(), image=image).brokers[1] == broker
    assert after(change(fenced=-1), image=image).brokers[1] == broker._replace(fenced=False)
    assert after(change(in_controlled_shutdown=1), image=image).brokers[1].in_controlled_shutdown
    assert after(change(log_dirs=[DIR_A]), image=image).brokers[1].log_dirs == (DIR_A,)
    assert after(change(cordoned_log_dirs=[]), image=image).brokers[1].cordoned_log_dirs == ()
    assert not after(UnregisterBrokerRecord(broker_id=1), image=image).brokers


def test_a_feature_at_level_zero_is_gone_and_kraft_version_never_comes_in() -> None:
    image = after(
        FeatureLevelRecord(name="group.version", feature_level=1),
        FeatureLevelRecord(name="share.version", feature_level=1),
        FeatureLevelRecord(name="kraft.version", feature_level=1),
        FeatureLevelRecord(name="group.version", feature_level=0),
    )
    assert dict(image.features) == {"share.version": 1}


def test_settings_that_this_node_does_not_know_can_be_left_out() -> None:
    draft = Draft(EMPTY_IMAGE, is_supported_config=lambda resource_type, name: resource_type == 4 or name == "known")
    for resource_type, name in ((2, "known"), (2, "old"), (4, "old")):
        apply(draft, ConfigRecord(resource_type=resource_type, resource_name="x", name=name, value="1"))
    image = draft.finish(HERE)
    assert dict(image.config(2, "x")) == {"known": "1"} and dict(image.config(4, "x")) == {"old": "1"}
    assert dict(image.config(2, "y")) == {}


def test_partitions_are_found_by_broker_and_by_state() -> None:
    image = after(
        TopicRecord(name="z", topic_id=TOPIC),
        partition_record(0),
        partition_record(1, replicas=[2, 3, 4], leader=NO_LEADER),
        partition_record(2, replicas=[3, 4, 5], leader=3, adding_replicas=[5]),
    )

    def ids(found: Slices[list[TopicPartition]]) -> list[int]:
        return [item.partition_id for item in at_once(found)]

    topics = image.topics
    assert (
        ids(topics.on_broker(2)) == [0, 1] and ids(topics.on_broker(3)) == [0, 1, 2] and ids(topics.on_broker(9)) == []
    )
    assert ids(topics.led_by(3)) == [2] and ids(topics.led_by(2)) == []
    assert ids(topics.leaderless()) == [1] and ids(topics.reassigning()) == [2]
    assert topics.partition(TOPIC, 2) == topics.by_id[TOPIC].partitions[2]
    assert topics.partition(TOPIC, 3) is topics.partition(TOPIC, -1) is topics.partition(OTHER, 0) is None


def test_epochs_stay_within_their_type_as_in_kafka() -> None:
    _, partition = changed(partition_record(leader_epoch=2**31 - 1, partition_epoch=2**31 - 1), leader=2)
    assert (partition.leader_epoch, partition.partition_epoch) == (-(2**31), -(2**31))


def test_a_negative_producer_id_means_that_none_was_allocated() -> None:
    level = FeatureLevelRecord(name="metadata.version", feature_level=30)
    image = after(level, ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=-9))
    assert after(*(record for record, _ in to_records(image))) == image


def test_parts_that_no_record_touched_are_the_same_objects() -> None:
    image = after(TopicRecord(name="t", topic_id=TOPIC), partition_record())
    draft = Draft(image)
    apply(draft, ConfigRecord(resource_type=2, resource_name="t", name="a", value="1"))
    assert draft.touched() == {"configs": {ConfigResource(2, "t")}}
    new = draft.finish(HERE)
    assert new.topics is image.topics and new.acls is image.acls and new.configs is not image.configs


def acl_record(acl_id: Uuid, name: str, pattern_type: int, resource_type: int = 2) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=resource_type,
        resource_name=name,
        pattern_type=pattern_type,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )


def test_an_acl_record_for_a_known_id_replaces_the_entry() -> None:
    image = after(acl_record(TOPIC, "a", 4), acl_record(TOPIC, "b", 3))
    assert [entry.resource_name for entry in image.acls.index] == ["b"]
    assert list(image.acls.index) == list(image.acls.by_id.values())
    again = after(acl_record(TOPIC, "c", 4), image=image)
    assert [entry.resource_name for entry in again.acls.index] == ["c"] and len(again.acls.by_id) == 1


def test_an_acl_with_numbers_of_a_newer_kafka_is_kept_but_not_indexed() -> None:
    newer = acl_record(TOPIC, "a", 3, resource_type=99)
    image = after(FeatureLevelRecord(name="metadata.version", feature_level=30), newer)
    assert list(image.acls.index) == []
    assert [record for record, _ in to_records(image)][1:] == [newer]
