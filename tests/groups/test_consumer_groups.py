"""Groups of the consumer protocol through the handlers: what time does to them, restarts, settings, and who may."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from barnabas.groups.consumer_group import ConsumerGroup, MemberState, State
from barnabas.metadata.image import Provenance
from barnabas.metadata.replay import replay
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.security.principal import KafkaPrincipal
from barnabas.steps import at_once
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.records.metadata import ConfigRecord, PartitionRecord, RemoveTopicRecord
from tests.broker.topic_captures import allow
from tests.groups.consumers import Consumer, settle
from tests.groups.harness import Clients, topic, topic_id_of
from tests.replicated.memory_log import MemoryLog

TOPICS = [*topic("a", 4), *topic("b", 2)]
SESSION_MS = 45_000
INTERVAL_MS = 5_000
WITH_ACLS = AuthorizerSettings(enabled=True, super_users=frozenset({"User:ANONYMOUS"}))
ALICE = KafkaPrincipal("User", "alice")
AT_ONCE = {"group.consumer.assignment.interval.ms": "0"}


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def group(clients: Clients, group_id: str = "g") -> ConsumerGroup:
    found = clients.groups.committed_group(group_id)
    assert isinstance(found, ConsumerGroup)
    return found


def change(clients: Clients, *records: Message) -> None:
    """The cluster's metadata changes."""
    loop = clients.node.controller.loop
    old = loop.image
    loop.image = replay(old, records, Provenance(old.offset + len(records), 1, 0))
    at_once(clients.groups.image_changed(old, loop.image))


# --- assignments


def test_the_first_member_gets_everything_at_once_and_the_second_its_share_when_the_first_has_given_it_up() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            one, two = Consumer(clients, "one", "a", "b"), Consumer(clients, "two", "a", "b")
            await one.join()
            assert (one.epoch, len(one.partitions)) == (2, 6)
            answer = await two.join()
            assert (two.epoch, two.partitions) == (3, set())
            assert group(clients).members["two"].state is MemberState.UNRELEASED_PARTITIONS
            answer = await one.beat()
            assert (one.epoch, len(one.partitions)) == (2, 3)  # it stays behind until it says that it has given up
            assert group(clients).members["one"].state is MemberState.UNREVOKED_PARTITIONS
            answer = await two.beat()
            assert answer.assignment is None
            await one.beat()
            await two.beat()
            assert (one.epoch, two.epoch) == (3, 3)
            assert len(one.partitions) == len(two.partitions) == 3
            assert not one.partitions & two.partitions
            assert group(clients).state is State.STABLE

    run(story())


def test_a_target_is_made_once_in_a_while_only() -> None:
    async def story() -> None:
        async with Clients({}, TOPICS) as clients:
            one, two = Consumer(clients, "one", "a"), Consumer(clients, "two", "a")
            await one.join()
            await two.join()
            assert (group(clients).group_epoch, group(clients).assignment_epoch) == (3, 2)
            assert group(clients).state is State.ASSIGNING
            await clients.pass_time(999)
            await one.beat()
            assert group(clients).assignment_epoch == 2
            await clients.pass_time(1)
            await one.beat()
            assert group(clients).assignment_epoch == 3
            assert group(clients).state is State.RECONCILING

    run(story())


def test_partitions_that_come_and_topics_that_go_make_a_new_epoch_at_the_next_heartbeat() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            one = Consumer(clients, "one", "a", "b", "c")
            await one.join()
            grown = PartitionRecord(partition_id=4, topic_id=topic_id_of("a"), replicas=[1], isr=[1], leader=1)
            change(clients, grown)
            assert group(clients).group_epoch == 2
            await one.beat()
            assert (one.epoch, len(one.partitions)) == (3, 7)
            change(clients, RemoveTopicRecord(topic_id=topic_id_of("b")))
            await settle(clients, one, rounds=2)
            assert (one.epoch, {topic_id for topic_id, _ in one.partitions}) == (4, {topic_id_of("a")})
            change(clients, *topic("c", 3))
            await one.beat()
            assert (one.epoch, len(one.partitions)) == (5, 8)
            change(clients, *topic("other", 3))
            await one.beat()
            assert one.epoch == 5

    run(story())


# --- time


def test_a_member_that_is_silent_for_a_session_is_out_and_others_get_its_partitions() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            one, two = Consumer(clients, "one", "a"), Consumer(clients, "two", "a")
            await one.join()
            await two.join()
            await settle(clients, one, two)
            await settle(clients, one, rounds=9)
            assert set(group(clients).members) == {"one"}
            await settle(clients, one, rounds=2)
            assert len(one.partitions) == 4
            answer = await two.beat()
            assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
            assert answer.error_message == "Member two is not a member of group g."
            await clients.pass_time(SESSION_MS)
            assert group(clients).state is State.EMPTY

    run(story())


def test_a_member_that_does_not_give_up_partitions_within_its_rebalance_timeout_is_out() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            one = Consumer(clients, "one", "a", rebalance_timeout_ms=20_000)
            two = Consumer(clients, "two", "a")
            await one.join()
            await two.join()
            everything = dict(one.owned)
            for _ in range(4):
                assert "one" in group(clients).members
                one.owned = everything
                assert (await one.beat()).error_code == 0
                await two.beat()
                await clients.pass_time(INTERVAL_MS)
            assert set(group(clients).members) == {"two"}
            one.owned = everything
            assert (await one.beat()).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    run(story())


def test_one_that_gives_up_in_time_stays() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            one = Consumer(clients, "one", "a", rebalance_timeout_ms=20_000)
            two = Consumer(clients, "two", "a")
            await one.join()
            await two.join()
            await settle(clients, one, two, rounds=8)
            assert set(group(clients).members) == {"one", "two"}

    run(story())


def test_a_static_member_that_is_away_keeps_its_partitions_for_a_session() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            one = Consumer(clients, "one", "a", instance_id="i1")
            two = Consumer(clients, "two", "a", instance_id="i2")
            await one.join()
            await two.join()
            await settle(clients, one, two, rounds=3)
            had, epoch = one.partitions, group(clients).group_epoch
            await one.leave(-2)
            await settle(clients, two, rounds=3)
            back = Consumer(clients, "one again", "a", instance_id="i1")
            await back.join()
            assert (back.partitions, group(clients).group_epoch) == (had, epoch)
            assert (await one.beat()).error_code == ErrorCode.FENCED_INSTANCE_ID
            await back.leave(-2)
            await settle(clients, two, rounds=9)
            assert set(group(clients).members) == {"two"}

    run(story())


# --- after a restart, and with a slow log


def test_a_group_is_the_same_after_a_restart_and_its_sessions_begin_anew() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            one = Consumer(clients, "one", "a", rebalance_timeout_ms=20_000)
            two = Consumer(clients, "two", regex="b", instance_id="i")
            await one.join()
            await two.join()
            await settle(clients, one, two, rounds=3)
            before = group(clients)
            await clients.restart()
            assert group(clients) == before
            await clients.pass_time(SESSION_MS - 1)
            await one.beat()
            await clients.pass_time(1)
            assert set(group(clients).members) == {"one"}

    run(story())


def test_a_member_that_has_to_give_up_partitions_has_its_time_again_after_a_restart() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            one = Consumer(clients, "one", "a", rebalance_timeout_ms=20_000)
            two = Consumer(clients, "two", "a")
            await one.join()
            await two.join()
            await one.beat()
            await clients.restart()
            await clients.pass_time(19_999)
            assert "one" in group(clients).members
            await clients.pass_time(1)
            assert "one" not in group(clients).members

    run(story())


def test_an_answer_waits_for_the_commit() -> None:
    async def story() -> None:
        log = MemoryLog(commits_at_once=False)
        async with Clients(AT_ONCE, TOPICS, log=log) as clients:
            one = Consumer(clients, "one", "a")
            joining = asyncio.get_running_loop().create_task(one.join())
            await clients.pass_time()
            assert not joining.done()
            assert clients.groups.committed_group("g") is None
            log.commit()
            assert (await joining).member_epoch == 2

    run(story())


def test_a_member_whose_session_is_over_while_the_log_cannot_be_written_is_out_later() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            one = Consumer(clients, "one", "a")
            await one.join()
            clients.log.refuses = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
            assert (await one.ask(rebalance_timeout_ms=7)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            await clients.pass_time(SESSION_MS)
            assert "one" in group(clients).members
            clients.log.refuses = None
            await clients.pass_time(500)
            assert group(clients).is_empty

    run(story())


# --- settings


def test_a_group_has_settings_of_its_own_within_the_bounds_of_the_broker() -> None:
    async def story() -> None:
        async with Clients({"group.consumer.max.session.timeout.ms": "50000"}, TOPICS) as clients:
            own = {"consumer.heartbeat.interval.ms": "7000", "consumer.session.timeout.ms": "55000"}
            change(
                clients, *(ConfigRecord(resource_type=32, resource_name="g", name=n, value=v) for n, v in own.items())
            )
            one, other = Consumer(clients, "one", "a"), Consumer(clients, "one", "a", group_id="other")
            assert (await one.join()).heartbeat_interval_ms == 7000
            assert (await other.join()).heartbeat_interval_ms == 5000
            await clients.pass_time(SESSION_MS)
            assert group(clients, "other").is_empty
            await clients.pass_time(50_000 - SESSION_MS - 1)
            assert not group(clients).is_empty
            await clients.pass_time(1)
            assert group(clients).is_empty

    run(story())


def test_a_group_takes_as_many_members_as_the_broker_lets_it() -> None:
    async def story() -> None:
        async with Clients({"group.consumer.max.size": "1"}, TOPICS) as clients:
            one = Consumer(clients, "one", "a")
            await one.join()
            answer = await Consumer(clients, "two", "a").join()
            assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
            assert answer.error_message == "The consumer group has reached its maximum capacity of 1 members."
            assert (await one.join()).error_code == 0

    run(story())


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_the_first_of_the_broker_s_assignors_is_the_default(assignor: str) -> None:
    async def story() -> None:
        async with Clients({"group.consumer.assignors": assignor}, TOPICS) as clients:
            await Consumer(clients, "one", "a").join()
            described = (await clients.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1)).groups[0]
            assert described.assignor_name == assignor
            other = {"uniform": "range", "range": "uniform"}[assignor]
            answer = await Consumer(clients, "two", "a", assignor=other).join()
            assert answer.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
            expected = f"ServerAssignor {other} is not supported. Supported assignors: {assignor}."
            assert answer.error_message == expected

    run(story())


@pytest.mark.parametrize(
    "arguments",
    [
        {"properties": {"group.coordinator.rebalance.protocols": "classic"}},
        {"features": {"metadata.version": 30, "group.version": 0}},
    ],
)
def test_the_protocol_is_served_only_where_the_cluster_and_the_broker_have_it(arguments: dict[str, Any]) -> None:
    async def story() -> None:
        async with Clients(records=TOPICS, **arguments) as clients:
            answer = await Consumer(clients, "one", "a").join()
            assert (answer.error_code, answer.error_message) == (ErrorCode.UNSUPPORTED_VERSION, None)
            described = await clients.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 0)
            assert [(row.group_id, row.error_code) for row in described.groups] == [
                ("g", ErrorCode.UNSUPPORTED_VERSION)
            ]

    run(story())


def test_in_version_0_the_coordinator_makes_the_member_id() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            request = ConsumerGroupHeartbeatRequest(
                group_id="g", rebalance_timeout_ms=5, subscribed_topic_names=["a"], topic_partitions=[]
            )
            first, second = await clients.ask(request, 0), await clients.ask(request, 0)
            assert set(group(clients).members) == {first.member_id, second.member_id}
            assert (await clients.ask(request, 1)).error_message == "MemberId can't be empty."

    run(story())


# --- who may


def test_a_member_needs_to_read_the_group_and_describe_its_topics() -> None:
    async def story() -> None:
        rights = [
            allow("User:alice", AclOperation.READ, ResourceType.GROUP, "g"),
            allow("User:alice", AclOperation.DESCRIBE, ResourceType.TOPIC, "a"),
        ]
        async with Clients(AT_ONCE, [*TOPICS, *rights], authorizer=WITH_ACLS) as clients:
            assert (await Consumer(clients, "one", "a", group_id="x", principal=ALICE).join()).error_code == (
                ErrorCode.GROUP_AUTHORIZATION_FAILED
            )
            answer = await Consumer(clients, "one", "a", "b", principal=ALICE).join()
            assert (answer.error_code, answer.error_message) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
            assert (await Consumer(clients, "one", "a", principal=ALICE).join()).error_code == 0

    run(story())


def test_an_expression_matches_only_topics_that_the_member_may_describe() -> None:
    async def story() -> None:
        rights = [
            allow("User:alice", AclOperation.READ, ResourceType.GROUP, "g"),
            allow("User:alice", AclOperation.DESCRIBE, ResourceType.TOPIC, "a"),
        ]
        async with Clients(AT_ONCE, [*TOPICS, *rights], authorizer=WITH_ACLS) as clients:
            one = Consumer(clients, "one", regex="[ab]", principal=ALICE)
            await one.join()
            await settle(clients, one, rounds=2)
            assert {topic_id for topic_id, _ in one.partitions} == {topic_id_of("a")}

    run(story())


def test_a_description_needs_the_group_and_all_its_topics() -> None:
    async def story() -> None:
        rights = [
            allow("User:alice", AclOperation.DESCRIBE, ResourceType.GROUP, "g"),
            allow("User:alice", AclOperation.DESCRIBE, ResourceType.GROUP, "h"),
            allow("User:alice", AclOperation.DESCRIBE, ResourceType.TOPIC, "a"),
        ]
        async with Clients(AT_ONCE, [*TOPICS, *rights], authorizer=WITH_ACLS) as clients:
            await Consumer(clients, "one", "a").join()
            await Consumer(clients, "one", "a", "b", group_id="h").join()
            request = ConsumerGroupDescribeRequest(group_ids=["h", "", "g", "x"], include_authorized_operations=True)
            rows = (await clients.ask(request, 1, principal=ALICE)).groups
            assert [(row.group_id, row.error_code) for row in rows] == [
                ("", ErrorCode.GROUP_AUTHORIZATION_FAILED),
                ("x", ErrorCode.GROUP_AUTHORIZATION_FAILED),
                ("h", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
                ("g", ErrorCode.NONE),
            ]
            assert rows[2].error_message == (
                "The group has described topic(s) that the client is not authorized to describe."
            )
            assert (rows[2].members, rows[3].authorized_operations) == ([], 1 << AclOperation.DESCRIBE)
            nameless = await clients.ask(ConsumerGroupDescribeRequest(group_ids=[""]), 0)
            assert [row.error_code for row in nameless.groups] == [ErrorCode.INVALID_GROUP_ID]

    run(story())


# --- regular expressions


def test_an_expression_is_resolved_again_when_topics_come_but_not_too_often() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            one = Consumer(clients, "one", regex="a.*")
            answer = await one.join()
            assert (answer.member_epoch, one.partitions) == (1, set())  # not resolved yet
            await settle(clients, one, rounds=1)
            assert (one.epoch, len(one.partitions)) == (2, 4)
            change(clients, *topic("ab", 3))
            await settle(clients, one, rounds=1)
            assert len(one.partitions) == 4
            await settle(clients, one, rounds=2)
            assert len(one.partitions) == 7

    run(story())


def test_an_expression_is_resolved_again_after_the_refresh_interval() -> None:
    async def story() -> None:
        settings = {**AT_ONCE, "group.consumer.regex.refresh.interval.ms": "30000"}
        rights = [
            allow("User:alice", AclOperation.READ, ResourceType.GROUP, "g"),
            allow("User:alice", AclOperation.DESCRIBE, ResourceType.TOPIC, "a"),
        ]
        async with Clients(settings, [*TOPICS, *rights], authorizer=WITH_ACLS) as clients:
            one = Consumer(clients, "one", regex="[ab]", principal=ALICE)
            await one.join()
            await settle(clients, one, rounds=3)
            change(clients, allow("User:alice", AclOperation.DESCRIBE, ResourceType.TOPIC, "b"))
            await settle(clients, one, rounds=3)
            assert len(one.partitions) == 4
            await settle(clients, one, rounds=2)
            assert len(one.partitions) == 6

    run(story())


# --- with classic members


def test_a_group_that_is_empty_can_be_deleted_and_one_with_members_cannot() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            one = Consumer(clients, "one", regex="a")
            await one.join()
            await settle(clients, one, rounds=1)
            listed = (await clients.ask(ListGroupsRequest(types_filter=["consumer"]), 5)).groups
            assert [(row.group_id, row.group_state, row.group_type) for row in listed] == [("g", "Stable", "consumer")]
            deletion = DeleteGroupsRequest(groups_names=["g"])
            assert (await clients.ask(deletion, 2)).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
            await one.leave()
            assert (await clients.ask(deletion, 2)).results[0].error_code == 0
            await clients.restart()
            assert clients.groups.committed_group("g") is None

    run(story())
