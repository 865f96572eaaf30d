"""Share groups through the handlers: assignment, initialization, time, restarts, and other types of groups."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from barnabas.groups.share.group import State
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.security.principal import KafkaPrincipal
from barnabas.wire import ErrorCode
from barnabas.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.share_group_describe import ShareGroupDescribeRequest
from barnabas.wire.records.group import (
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
)
from barnabas.wire.records.metadata import RemoveTopicRecord
from tests.broker.topic_captures import allow
from tests.groups.harness import Clients, topic, topic_id_of
from tests.groups.share.harness import AT_ONCE, ENABLED, STATE_TOPIC, TOPICS, Member, change, group_of, records_of

WITH_ACLS = AuthorizerSettings(enabled=True, super_users=frozenset({"User:ANONYMOUS"}))
ALICE = KafkaPrincipal("User", "alice")


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


async def settle(clients: Clients, *members: Member, rounds: int = 3) -> None:
    for _ in range(rounds):
        await clients.pass_time()
        for member in members:
            response = await member.beat()
            assert response.error_code == 0, response


def test_a_member_gets_the_partitions_once_their_state_is_initialized() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            member = Member(clients, "m1", "apples", "pears")
            response = await member.join()
            assert (response.error_code, response.member_epoch, member.assigned) == (0, 2, {})
            await clients.pass_time()
            response = await member.beat()
            assert (response.member_epoch, member.assigned) == (3, {"apples": [0, 1], "pears": [0, 1, 2]})
            assert group_of(clients).state is State.STABLE
            response = await member.beat()
            assert (response.member_epoch, response.assignment) == (3, None)

    run(story())


def test_members_share_partitions_and_every_partition_has_a_member() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            members = [Member(clients, f"m{number}", "apples") for number in range(5)]
            for member in members:
                await member.join()
            await settle(clients, *members)
            counts = [sum(index in (member.assigned or {}).get("apples", ()) for member in members) for index in (0, 1)]
            assert sorted(counts) == [3, 3]
            assert all(member.assigned for member in members)

    run(story())


def test_a_member_that_is_silent_is_removed_after_its_session_and_one_that_leaves_at_once() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            silent, alive, leaver = (Member(clients, name) for name in ("silent", "alive", "leaver"))
            for member in (silent, alive, leaver):
                await member.join()
            assert (await leaver.leave()).member_epoch == -1
            assert sorted(group_of(clients).members) == ["alive", "silent"]
            await clients.pass_time(30_000)
            await alive.beat()
            await clients.pass_time(20_000)
            assert sorted(group_of(clients).members) == ["alive"]
            assert (await silent.beat()).error_code == ErrorCode.UNKNOWN_MEMBER_ID
            assert (await leaver.leave()).error_code == ErrorCode.UNKNOWN_MEMBER_ID
            await settle(clients, alive)
            assert alive.assigned == {"apples": [0, 1]}

    run(story())


@pytest.mark.parametrize("epoch", [1, 9])
def test_an_epoch_that_is_not_the_member_s_is_fenced_but_not_the_one_before(epoch: int) -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            member = Member(clients, "m1")
            await member.join()
            await settle(clients, member)
            assert member.epoch == 3
            assert (await member.ask(member_epoch=2)).member_epoch == 3  # it has missed the last response
            response = await member.ask(member_epoch=epoch)
            assert response.error_code == ErrorCode.FENCED_MEMBER_EPOCH
            assert "must abandon all its partitions and rejoin" in (response.error_message or "")

    run(story())


def test_sessions_and_assignments_survive_a_restart() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            member = Member(clients, "m1")
            await member.join()
            await settle(clients, member)
            before = group_of(clients)
            await clients.restart()
            assert group_of(clients) == before
            assert (await member.beat()).error_code == 0
            assert group_of(clients) == before
            await clients.pass_time(46_000)
            assert group_of(clients).is_empty

    run(story())


def test_partitions_that_cannot_be_initialized_are_tried_again() -> None:
    """There is no share coordinator until its topic has a leader."""

    async def story() -> None:
        records = [*ENABLED, *topic("apples", 2)]
        async with Clients(AT_ONCE, records) as clients:
            member = Member(clients, "m1")
            await member.join()
            assert group_of(clients).state_partitions is not None
            await settle(clients, member)
            assert member.assigned == {}
            for _ in range(20):
                await clients.pass_time(1000)
            state = group_of(clients).state_partitions
            assert state is not None and not state.initializing and not state.initialized
            change(clients, *STATE_TOPIC)
            await clients.node.memory_groups.load()
            await settle(clients, member)
            assert member.assigned == {"apples": [0, 1]}

    run(story())


def test_partitions_that_were_initializing_when_the_node_died_are_tried_again_after_the_interval() -> None:
    async def story() -> None:
        records = [*ENABLED, *topic("apples", 2)]
        async with Clients(AT_ONCE, records) as clients:
            member = Member(clients, "m1")
            await member.join()
            clients.groups.share.stop()  # what was begun is lost with the node
            await clients.restart()
            change(clients, *STATE_TOPIC)
            await clients.node.memory_groups.load()
            await settle(clients, member)
            assert member.assigned == {}
            await clients.pass_time(30_000)
            await settle(clients, member)
            assert member.assigned == {"apples": [0, 1]}

    run(story())


def test_new_partitions_and_deleted_topics_change_the_assignment() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            member = Member(clients, "m1", "apples", "pears")
            await member.join()
            await settle(clients, member)
            change(clients, *topic("apples", 4)[3:])
            await settle(clients, member)
            assert member.assigned == {"apples": [0, 1, 2, 3], "pears": [0, 1, 2]}
            change(clients, RemoveTopicRecord(topic_id=topic_id_of("pears")))
            await settle(clients, member)
            assert member.assigned == {"apples": [0, 1, 2, 3]}
            last = [record.value for record in records_of(clients) if is_state(record.key)][-1]
            assert isinstance(last, ShareGroupStatePartitionMetadataValue)
            assert [row.topic_name for row in last.initialized_topics] == ["apples"]

    run(story())


def is_state(key: Any) -> bool:
    return isinstance(key, ShareGroupStatePartitionMetadataKey)


def test_a_heartbeat_that_changes_nothing_writes_nothing() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            members = [Member(clients, f"m{number}") for number in range(3)]
            for member in members:
                await member.join()
            await settle(clients, *members)
            written = clients.log.log_end_offset
            await settle(clients, *members)
            assert clients.log.log_end_offset == written

    run(story())


def test_other_types_of_groups_are_told_apart() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            await Member(clients, "m1").join()
            consumer = ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id="c",
                member_epoch=0,
                rebalance_timeout_ms=1000,
                subscribed_topic_names=["apples"],
                topic_partitions=[],
            )
            assert (await clients.ask(consumer, 1)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
            protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
            join = JoinGroupRequest(
                group_id="g", protocol_type="consumer", protocols=[protocol], session_timeout_ms=9000
            )
            assert (await clients.ask(join, 9)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
            row = OffsetCommitRequest.OffsetCommitRequestTopic(name="apples", partitions=[partition])
            commit = OffsetCommitRequest(group_id="g", topics=[row])
            assert (await clients.ask(commit, 9)).topics[0].partitions[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
            commit.group_id = "simple"
            assert (await clients.ask(commit, 9)).topics[0].partitions[0].error_code == 0
            response = await Member(clients, "m1").join(group_id="simple")
            assert response.error_message == "Group simple is not a share group."
            listed = (await clients.ask(ListGroupsRequest(types_filter=["share"]), 5)).groups
            assert [(each.group_id, each.protocol_type, each.group_state) for each in listed] == [
                ("g", "share", "Stable")
            ]

    run(story())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"member_id": ""}, None),
        ({"member_id": "m" * 37}, None),
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"subscribed_topic_names": None}, "SubscribedTopicNames must be set in first request."),
        ({"subscribed_topic_names": []}, "SubscribedTopicNames must be set in first request."),
        ({"member_epoch": -2}, "MemberEpoch is invalid."),
    ],
)
def test_wrong_requests(fields: dict[str, Any], message: str | None) -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            response = await Member(clients, "m1").join(**fields)
            assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, message)

    run(story())


def test_a_full_group_refuses_new_members_only() -> None:
    async def story() -> None:
        async with Clients({**AT_ONCE, "group.share.max.size": "1"}, TOPICS) as clients:
            member = Member(clients, "m1")
            await member.join()
            response = await Member(clients, "m2").join()
            assert response.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
            assert (await member.join()).error_code == 0

    run(story())


def test_without_the_feature_requests_are_refused() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS[1:]) as clients:
            assert (await Member(clients, "m1").join()).error_code == ErrorCode.UNSUPPORTED_VERSION
            described = await clients.ask(ShareGroupDescribeRequest(group_ids=["g"]), 1)
            assert described.groups[0].error_code == ErrorCode.UNSUPPORTED_VERSION

    run(story())


def test_topics_have_to_be_described_to_subscribe_to_them_and_to_see_them_in_a_group() -> None:
    async def story() -> None:
        records = [*TOPICS, allow("User:alice", AclOperation.READ, ResourceType.GROUP, "g")]
        async with Clients(AT_ONCE, records, authorizer=WITH_ACLS) as clients:
            owner = Member(clients, "m1")
            await owner.join()
            await settle(clients, owner)
            response = await Member(clients, "m2", principal=ALICE).join()
            assert response.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            request = ShareGroupDescribeRequest(group_ids=["g"])
            described = (await clients.ask(request, 1, principal=ALICE)).groups[0]
            assert (described.error_code, described.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
            change(clients, allow("User:alice", AclOperation.DESCRIBE, ResourceType.TOPIC, "apples"))
            assert (await Member(clients, "m2", principal=ALICE).join()).error_code == 0
            assert (await clients.ask(request, 1, principal=ALICE)).groups[0].error_code == 0

    run(story())


def test_a_topic_whose_partitions_are_all_unknown_stays_in_the_records_as_in_kafka() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            kind = AlterShareGroupOffsetsRequest
            topics = [
                kind.AlterShareGroupOffsetsRequestTopic(
                    topic_name=name,
                    partitions=[kind.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=1)],
                )
                for name, index in (("apples", 0), ("pears", 9))
            ]
            await clients.ask(kind(group_id="g", topics=topics), 0)
            value: Any = records_of(clients)[-1].value
            assert [(row.topic_name, row.partitions) for row in value.initializing_topics] == [("pears", [])]
            assert [(row.topic_name, row.partitions) for row in value.initialized_topics] == [("apples", [0])]
            assert not group_of(clients).is_initializing

    run(story())
