"""Groups as administrators see and change them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, ConsumerGroupType, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient, MemberToRemove
from kafka.admin import OffsetSpec as KafkaPythonOffsetSpec
from kafka.errors import GroupSubscribedToTopicError, NoError, UnknownMemberIdError
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as KafkaPythonTopicPartition
from tools.apache_kafka import Barnabas

from tests.compat.clients import CLIENTS, WAIT_S, Client, Consumer, Record, poll_until, sent, take
from tests.compat.conftest import MakeTopic

FreshName = Callable[[str], str]

CONFLUENT, AIOKAFKA, KAFKA_PYTHON = CLIENTS
CLASSIC = {"auto.offset.reset": "earliest", "partition.assignment.strategy": "range"}
CONSUMER = {"auto.offset.reset": "earliest", "group.protocol": "consumer"}


@pytest.fixture
def kafka_python_admin(node: Barnabas) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=node.bootstrap)
    yield admin
    admin.close()


def ask_aiokafka(node: Barnabas, use: Callable[[AIOKafkaAdminClient], Awaitable[Any]]) -> Any:
    async def session() -> Any:
        admin = AIOKafkaAdminClient(bootstrap_servers=node.bootstrap)
        await admin.start()
        try:
            return await use(admin)
        finally:
            await admin.close()

    return asyncio.run(session())


def joined(client: Client, node: Barnabas, group: str, topic: str, settings: dict[str, Any]) -> Consumer:
    """A member that has the two partitions of its topic."""
    member = client.consumer(node.bootstrap, {**settings, "group.id": group})
    member.subscribe([topic])
    poll_until([member], lambda: len(member.assignment()) == 2, "the assignment")
    return member


def committed(client: Client, node: Barnabas, group: str, topic: str, offset: int) -> None:
    """A group without members that has come so far in both partitions."""
    with client.consumer(node.bootstrap, {"group.id": group}) as consumer:
        consumer.assign({(topic, 0): 0, (topic, 1): 0})
        consumer.commit({(topic, 0): offset, (topic, 1): offset})


def offsets_of(admin: AdminClient, group: str) -> dict[tuple[str, int], int]:
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return {(each.topic, each.partition): each.offset for each in future.result(WAIT_S).topic_partitions}


@pytest.mark.parametrize(
    ("settings", "kind"), [(CLASSIC, "CLASSIC"), (CONSUMER, "CONSUMER")], ids=["classic", "consumer"]
)
def test_confluent_kafka_lists_describes_and_deletes_groups(
    node: Barnabas,
    make_topic: MakeTopic,
    fresh_name: FreshName,
    session_admin: AdminClient,
    settings: dict[str, Any],
    kind: str,
) -> None:
    topic, group = make_topic(2), fresh_name("group")
    kind_of_group = ConsumerGroupType[kind]
    member = joined(CONFLUENT, node, group, topic, {**settings, "client.id": "someone", "group.instance.id": "name"})

    def listed(**which: Any) -> list[tuple[str, Any, Any]]:
        found = session_admin.list_consumer_groups(**which).result(WAIT_S)
        assert found.errors == []
        return [(each.group_id, each.state, each.type) for each in found.valid if each.group_id == group]

    assert listed() == [(group, ConsumerGroupState.STABLE, kind_of_group)]
    assert listed(states={ConsumerGroupState.STABLE}, types={kind_of_group}) == listed()
    assert listed(states={ConsumerGroupState.EMPTY}) == []
    described = session_admin.describe_consumer_groups([group])[group].result(WAIT_S)
    assert (described.state, described.coordinator.id) == (ConsumerGroupState.STABLE, 1)
    assert described.partition_assignor == ("range" if kind == "CLASSIC" else "uniform")
    (one,) = described.members
    assert (one.client_id, one.group_instance_id) == ("someone", "name")
    assert one.host.strip("/") == "127.0.0.1"
    assert {(each.topic, each.partition) for each in one.assignment.topic_partitions} == {(topic, 0), (topic, 1)}
    with pytest.raises(Exception, match="NON_EMPTY_GROUP"):
        session_admin.delete_consumer_groups([group])[group].result(WAIT_S)
    member.close()
    admin = KafkaAdminClient(bootstrap_servers=node.bootstrap)
    admin.remove_group_members(group, [MemberToRemove(group_instance_id="name")])
    admin.close()
    assert listed() == [(group, ConsumerGroupState.EMPTY, kind_of_group)]
    session_admin.delete_consumer_groups([group])[group].result(WAIT_S)
    assert listed() == []
    with pytest.raises(Exception, match="GROUP_ID_NOT_FOUND"):
        session_admin.delete_consumer_groups([group])[group].result(WAIT_S)


def test_confluent_kafka_lists_and_alters_offsets(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, session_admin: AdminClient
) -> None:
    topic, group = make_topic(2), fresh_name("group")
    sent(CONFLUENT, node.bootstrap, topic, [Record(b"", partition=number % 2) for number in range(20)])
    committed(CONFLUENT, node, group, topic, 4)
    assert offsets_of(session_admin, group) == {(topic, 0): 4, (topic, 1): 4}
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 1, 7), TopicPartition(topic, 0, 0)])
    (future,) = session_admin.alter_consumer_group_offsets([wanted]).values()
    assert [each.error for each in future.result(WAIT_S).topic_partitions] == [None, None]
    assert offsets_of(session_admin, group) == {(topic, 0): 0, (topic, 1): 7}
    member = joined(CONFLUENT, node, group, topic, CLASSIC)
    (future,) = session_admin.alter_consumer_group_offsets([wanted]).values()
    refused = [each.error for each in future.result(WAIT_S).topic_partitions]
    assert [each.name() for each in refused] == ["UNKNOWN_MEMBER_ID"] * 2
    member.close()


def test_kafka_python_lists_describes_and_deletes_groups(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, kafka_python_admin: KafkaAdminClient
) -> None:
    topic, group, admin = make_topic(2), fresh_name("group"), kafka_python_admin
    member = joined(KAFKA_PYTHON, node, group, topic, {**CLASSIC, "client.id": "someone"})
    (listed,) = (each for each in admin.list_groups() if each["group_id"] == group)
    assert (listed["protocol_type"], listed["group_state"], listed["group_type"]) == ("consumer", "Stable", "classic")
    assert [each for each in admin.list_groups(states_filter=["Empty"]) if each["group_id"] == group] == []
    described = admin.describe_groups([group])[group]
    assert (described["group_state"], described["protocol_type"], described["protocol_data"]) == (
        "Stable",
        "consumer",
        "range",
    )
    (one,) = described["members"]
    assert (one["client_id"], one["client_host"].strip("/")) == ("someone", "127.0.0.1")
    assert [sorted(each["partitions"]) for each in one["member_assignment"]["assigned_partitions"]] == [[0, 1]]
    assert admin.delete_groups([group]) == {group: "NonEmptyGroupError"}
    removed = admin.remove_group_members(group, [MemberToRemove(member_id=one["member_id"])])
    assert removed == {one["member_id"]: NoError}
    member.close()
    removed = admin.remove_group_members(group, [MemberToRemove(member_id=one["member_id"])])
    assert removed == {one["member_id"]: UnknownMemberIdError}
    assert admin.delete_groups([group]) == {group: "OK"}
    assert [each for each in admin.list_groups() if each["group_id"] == group] == []


def test_kafka_python_alters_resets_and_deletes_offsets(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, kafka_python_admin: KafkaAdminClient
) -> None:
    topic, group, admin = make_topic(2), fresh_name("group"), kafka_python_admin
    sent(KAFKA_PYTHON, node.bootstrap, topic, [Record(b"x", partition=number % 2) for number in range(20)])
    committed(KAFKA_PYTHON, node, group, topic, 4)
    places = [KafkaPythonTopicPartition(topic, 0), KafkaPythonTopicPartition(topic, 1)]

    def offsets() -> dict[int, tuple[int, str]]:
        found = admin.list_group_offsets({group: None})[group]
        return {place.partition: (each.offset, each.metadata) for place, each in found.items()}

    assert offsets() == {0: (4, ""), 1: (4, "")}
    altered = admin.alter_group_offsets(group, {places[0]: OffsetAndMetadata(6, "said so", -1)})
    assert altered == {places[0]: NoError}
    assert offsets() == {0: (6, "said so"), 1: (4, "")}
    reset = admin.reset_group_offsets(
        group, {places[0]: KafkaPythonOffsetSpec.EARLIEST, places[1]: KafkaPythonOffsetSpec.LATEST}
    )
    assert {place.partition: (each["error"], each["offset"]) for place, each in reset.items()} == {
        0: (NoError, 0),
        1: (NoError, 10),
    }
    assert admin.delete_group_offsets(group, places[:1]) == {places[0]: NoError}
    assert offsets() == {1: (10, "")}
    member = joined(KAFKA_PYTHON, node, group, topic, CLASSIC)
    assert admin.delete_group_offsets(group, places[1:]) == {places[1]: GroupSubscribedToTopicError}
    member.close()


def test_aiokafka_lists_and_describes_groups_and_their_offsets(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName
) -> None:
    topic, group = make_topic(2), fresh_name("group")
    with joined(AIOKAFKA, node, group, topic, {**CLASSIC, "client.id": "someone"}) as member:
        member.commit({(topic, 0): 3, (topic, 1): 4})

        async def ask(admin: AIOKafkaAdminClient) -> tuple[Any, Any, Any]:
            return (
                await admin.list_consumer_groups(),
                await admin.describe_consumer_groups([group]),
                await admin.list_consumer_group_offsets(group),
            )

        listed, (described,), offsets = ask_aiokafka(node, ask)
    assert [each for each in listed if each[0] == group] == [(group, "consumer")]
    (row,) = described.groups
    error, name, state, protocol_type, protocol, (one,), *_ = row
    assert (error, name, state, protocol_type, protocol) == (0, group, "Stable", "consumer", "range")
    assert "someone" in one
    assert {(*place,): each.offset for place, each in offsets.items()} == {(topic, 0): 3, (topic, 1): 4}


def test_lag_is_what_is_between_the_commit_and_the_end(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, session_admin: AdminClient, client: Client
) -> None:
    topic, group = make_topic(2), fresh_name("group")
    sent(client, node.bootstrap, topic, [Record(b"", partition=number % 2) for number in range(20)])
    committed(client, node, group, topic, 4)
    with client.consumer(node.bootstrap) as consumer:
        ends = consumer.ends([(topic, 0), (topic, 1)])
    behind = {place: ends[place][1] - offset for place, offset in offsets_of(session_admin, group).items()}
    assert behind == {(topic, 0): 6, (topic, 1): 6}


def test_offsets_of_one_client_are_those_of_every_client(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, client: Client
) -> None:
    topic, group = make_topic(2), fresh_name("group")
    places = [(topic, 0), (topic, 1)]
    with client.consumer(node.bootstrap, {"group.id": group}) as consumer:
        consumer.assign(dict.fromkeys(places, 0))
        assert consumer.committed(places) == dict.fromkeys(places, None)
        consumer.commit({(topic, 0): 2**40})
    for reader in CLIENTS:
        with reader.consumer(node.bootstrap, {"group.id": group}) as consumer:
            consumer.assign(dict.fromkeys(places, 0))
            assert consumer.committed(places) == {(topic, 0): 2**40, (topic, 1): None}


def test_a_consumer_that_closes_commits_what_it_has_read(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, session_admin: AdminClient, client: Client
) -> None:
    topic, group = make_topic(2), fresh_name("group")
    sent(client, node.bootstrap, topic, [Record(b"", partition=number % 2) for number in range(20)])
    settings = {**CLASSIC, "enable.auto.commit": True, "group.id": group}
    with client.consumer(node.bootstrap, settings) as member:
        member.subscribe([topic])
        assert len(take(member, 20)) == 20
    assert offsets_of(session_admin, group) == {(topic, 0): 10, (topic, 1): 10}
