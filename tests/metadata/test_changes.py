"""Changes read as sentences, and hold what they say."""

from __future__ import annotations

from barnabas.metadata.changes import (
    BrokerRegistered,
    BrokerUnfenced,
    ConfigChanged,
    PartitionChanged,
    QuotaChanged,
    ScramCredentialChanged,
    TopicCreated,
    changes,
)
from barnabas.metadata.image import EMPTY_IMAGE, Draft, MetadataImage, Provenance
from barnabas.metadata.replay import apply, replay
from barnabas.wire import Uuid
from barnabas.wire.message import Message
from barnabas.wire.records.metadata import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
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
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)

TOPIC, OTHER = Uuid(bytes([1]) * 16), Uuid(bytes([2]) * 16)


def partition(partition_id: int) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition_id,
        topic_id=TOPIC,
        replicas=[1, 2],
        isr=[1, 2],
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
    )


def quota(value: float, *, remove: bool = False) -> ClientQuotaRecord:
    entity = [
        ClientQuotaRecord.EntityData(entity_type="user", entity_name="u"),
        ClientQuotaRecord.EntityData(entity_type="client-id", entity_name=None),
    ]
    return ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=value, remove=remove)


def scram(salt: bytes) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(
        name="alice", mechanism=2, salt=salt, stored_key=b"k1", server_key=b"k2", iterations=8192
    )


def token(expiration: int) -> DelegationTokenRecord:
    return DelegationTokenRecord(owner="User:o", requester="User:o", token_id="tok", expiration_timestamp=expiration)


def config(value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value=value)


START: list[Message] = [
    FeatureLevelRecord(name="metadata.version", feature_level=29),
    RegisterBrokerRecord(broker_id=1, broker_epoch=5),
    RegisterControllerRecord(controller_id=3),
    TopicRecord(name="orders", topic_id=TOPIC),
    partition(0),
    config("1"),
    quota(10.0),
    scram(b"s1"),
    token(5),
    AccessControlEntryRecord(
        id=OTHER,
        resource_type=2,
        resource_name="or",
        pattern_type=4,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    ),
    ProducerIdsRecord(next_producer_id=1000),
]


def image_of(*records: Message) -> MetadataImage:
    return replay(EMPTY_IMAGE, records, Provenance(1, 1, 1))


def told(*records: Message) -> list[str]:
    before = image_of(*START)
    return list(map(str, changes(before, replay(before, records, Provenance(2, 1, 1)))))


def test_everything_new_is_told() -> None:
    assert list(map(str, changes(EMPTY_IMAGE, image_of(*START)))) == [
        "feature metadata.version set to 29",
        "broker 1 registered with epoch 5",
        "controller 3 registered",
        "topic orders created with 1 partition",
        "topic orders: retention.ms set to 1",
        "quota of client-id (default) user u: producer_byte_rate set to 10.0",
        "next producer id -1 -> 1000",
        "acl added: ALLOW User:a from * to READ on TOPIC PREFIXED 'or'",
        "SCRAM-SHA-512 credential of user alice created",
        "delegation token tok of User:o created",
    ]


def test_everything_gone_is_told() -> None:
    assert told(
        UnregisterBrokerRecord(broker_id=1),
        RemoveTopicRecord(topic_id=TOPIC),
        quota(0.0, remove=True),
        RemoveAccessControlEntryRecord(id=OTHER),
        RemoveUserScramCredentialRecord(name="alice", mechanism=2),
        RemoveDelegationTokenRecord(token_id="tok"),
    ) == [
        "broker 1 unregistered",
        "topic orders deleted",
        "topic orders: retention.ms unset, it was 1",
        "quota of client-id (default) user u: producer_byte_rate unset, it was 10.0",
        "acl removed: ALLOW User:a from * to READ on TOPIC PREFIXED 'or'",
        "SCRAM-SHA-512 credential of user alice removed",
        "delegation token tok of User:o removed",
    ]


def test_everything_different_is_told() -> None:
    assert told(
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=-1, in_controlled_shutdown=1),
        PartitionChangeRecord(partition_id=0, topic_id=TOPIC, leader=2, isr=[2]),
        partition(1),
        config("2"),
        quota(20.0),
        scram(b"s2"),
        token(6),
    ) == [
        "feature metadata.version 29 -> 30",
        "broker 1 unfenced",
        "broker 1: in_controlled_shutdown False -> True",
        "partition orders-0: isr [1, 2] -> [2], leader 1 -> 2, leader_epoch 0 -> 1, partition_epoch 0 -> 1",
        "partition orders-1 added on brokers [1, 2]",
        "topic orders: retention.ms 1 -> 2",
        "quota of client-id (default) user u: producer_byte_rate 10.0 -> 20.0",
        "SCRAM-SHA-512 credential of user alice changed",
        "delegation token tok of User:o changed",
    ]


def test_a_registration_with_another_epoch_is_a_new_one() -> None:
    assert told(RegisterBrokerRecord(broker_id=1, broker_epoch=9)) == ["broker 1 registered again with epoch 9"]


def test_a_topic_recreated_under_its_name_was_deleted_first() -> None:
    again = [RemoveTopicRecord(topic_id=TOPIC), TopicRecord(name="orders", topic_id=OTHER), config("1")]
    assert told(*again) == ["topic orders deleted", "topic orders created"]


def test_nothing_is_told_of_records_that_change_nothing() -> None:
    assert told(config("1"), quota(10.0), scram(b"s1"), token(5), ProducerIdsRecord(next_producer_id=1000)) == []


def test_changes_hold_what_they_say_but_no_secrets() -> None:
    found = changes(EMPTY_IMAGE, image_of(*START))
    kinds = {type(change): change for change in found}
    created, set_to = kinds[TopicCreated], kinds[ConfigChanged]
    assert isinstance(created, TopicCreated) and created.topic.topic_id == TOPIC
    assert isinstance(set_to, ConfigChanged) and (set_to.resource.name, set_to.before, set_to.after) == (
        "orders",
        None,
        "1",
    )
    registered, credential = kinds[BrokerRegistered], kinds[ScramCredentialChanged]
    assert isinstance(registered, BrokerRegistered) and registered.before is None
    assert isinstance(credential, ScramCredentialChanged) and credential.iterations_after == 8192
    assert "s1" not in repr(found) and "k1" not in repr(found)
    assert {PartitionChanged, BrokerUnfenced}.isdisjoint(kinds)


def test_settings_of_a_deleted_topic_stand_in_the_order_of_their_names() -> None:
    """The deletion names its resource by an enum's member, records by a number: the order is that of the values."""
    before = replay(
        EMPTY_IMAGE,
        [
            TopicRecord(name="a", topic_id=TOPIC),
            ConfigRecord(resource_type=2, resource_name="a", name="c", value="1"),
        ],
        Provenance(1, 1, 1),
    )
    draft = Draft(before)
    apply(draft, RemoveTopicRecord(topic_id=TOPIC))
    apply(draft, ConfigRecord(resource_type=2, resource_name="b", name="c", value="1"))
    found = changes(before, draft.finish(Provenance(2, 1, 1)), draft.touched())
    assert [change.resource.name for change in found if isinstance(change, ConfigChanged)] == ["a", "b"]


def test_the_default_of_a_quota_stands_before_the_named_ones() -> None:
    after = replay(
        EMPTY_IMAGE,
        [
            ClientQuotaRecord(
                entity=[ClientQuotaRecord.EntityData(entity_type="user", entity_name=name)], key="k", value=1.0
            )
            for name in ("b", None, "a")
        ],
        Provenance(1, 1, 1),
    )
    found = changes(EMPTY_IMAGE, after)
    assert [change.entity[0][1] for change in found if isinstance(change, QuotaChanged)] == [None, "a", "b"]
