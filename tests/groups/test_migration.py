"""Groups between the protocols, beside what is compared with Kafka's: who waits, what time does, and what is not allowed."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Coroutine
from typing import Any

import pytest

from barnabas import wire
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.consumer_group import ConsumerGroup
from barnabas.wire import ErrorCode
from barnabas.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from tests.groups.consumers import Consumer
from tests.groups.harness import Clients, topic

TOPICS = topic("a", 4)
AT_ONCE = {"group.consumer.assignment.interval.ms": "0", "group.initial.rebalance.delay.ms": "0"}
SESSION_MS = 10_000
REBALANCE_MS = 30_000
POLICY = "group.consumer.migration.policy"


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


class ClassicConsumer:
    """A member that speaks the classic protocol and assigns everything to itself."""

    def __init__(self, clients: Clients, topics: tuple[str, ...] = ("a",), **fields: Any) -> None:
        self.member_id = fields.pop("member_id", "")
        self.generation = -1
        self.fields = fields
        self.owned: dict[str, list[int]] = {}
        self._clients = clients
        self._topics = topics

    def begin_join(self) -> asyncio.Task[Any]:
        owned = [
            ConsumerProtocolSubscription.TopicPartition(topic=name, partitions=some)
            for name, some in self.owned.items()
        ]
        subscription = ConsumerProtocolSubscription(topics=list(self._topics), owned_partitions=owned)
        metadata = struct.pack(">h", 3) + wire.encode(subscription, 3)
        given: dict[str, Any] = {
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)],
            **self.fields,
        }
        request = JoinGroupRequest(group_id="g", member_id=self.member_id, **given)
        return self._clients.begin(request, 3 if request.group_instance_id is None else 5)

    async def join(self) -> Any:
        joining = self.begin_join()
        await self._clients.pass_time(0)
        return self.hear(await joining)

    def hear(self, response: Any) -> Any:
        if not response.error_code:
            self.member_id, self.generation = response.member_id, response.generation_id
        return response

    async def sync(self) -> Any:
        own = ConsumerProtocolAssignment.TopicPartition(topic="a", partitions=[0, 1, 2, 3])
        everything = struct.pack(">h", 3) + wire.encode(ConsumerProtocolAssignment(assigned_partitions=[own]), 3)
        row = SyncGroupRequest.SyncGroupRequestAssignment(member_id=self.member_id, assignment=everything)
        response = await self._clients.ask(
            SyncGroupRequest(
                group_id="g",
                member_id=self.member_id,
                generation_id=self.generation,
                group_instance_id=self.fields.get("group_instance_id"),
                assignments=[row],
            ),
            3,
        )
        if not response.error_code:
            message = wire.decode_from(ConsumerProtocolAssignment, 3, response.assignment, 2)[0]
            self.owned = {each.topic: each.partitions for each in message.assigned_partitions}
        return response

    async def beat(self) -> int:
        request = HeartbeatRequest(group_id="g", member_id=self.member_id, generation_id=self.generation)
        return int((await self._clients.ask(request, 3)).error_code)


async def classic_member(clients: Clients) -> ClassicConsumer:
    """The only member of a classic group."""
    member = ClassicConsumer(clients)
    await member.join()
    await member.sync()
    return member


def test_members_of_both_protocols_share_the_partitions_of_one_group() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            old = await classic_member(clients)
            new = Consumer(clients, "new", "a")
            await new.join()
            assert await old.beat() == ErrorCode.REBALANCE_IN_PROGRESS
            for _ in range(2):  # once to hear what it has to give up, once to say that it has
                await old.join()
                await old.sync()
            await new.beat()
            assert await old.beat() == ErrorCode.NONE
            assert len(new.partitions) == 2
            assert {("a", number) for number in old.owned["a"]}.isdisjoint({("a", n) for _, n in new.partitions})
            assert len(old.owned["a"]) == 2

    run(story())


def test_who_waits_in_a_classic_group_that_is_upgraded_is_told_to_join_again() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            await classic_member(clients)
            second = ClassicConsumer(clients)
            waiting = second.begin_join()
            await clients.pass_time(0)
            assert not waiting.done()
            assert (await Consumer(clients, "new", "a").join()).error_code == 0
            assert (await waiting).error_code == ErrorCode.REBALANCE_IN_PROGRESS
            assert isinstance(clients.groups.committed_group("g"), ConsumerGroup)

    run(story())


def test_classic_members_keep_their_own_session_timeout() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            old = await classic_member(clients)
            new = Consumer(clients, "new", "a")
            await new.join()
            await clients.pass_time(SESSION_MS - 1)
            assert await old.beat() == ErrorCode.REBALANCE_IN_PROGRESS
            await clients.pass_time(SESSION_MS)
            assert await old.beat() == ErrorCode.UNKNOWN_MEMBER_ID
            await new.beat()
            assert len(new.partitions) == 4

    run(story())


def test_a_classic_member_that_does_not_join_again_in_time_is_out() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            old = await classic_member(clients)
            new = Consumer(clients, "new", "a")
            await new.join()
            for _ in range(6):
                assert await old.beat() == ErrorCode.REBALANCE_IN_PROGRESS
                await new.beat()
                await clients.pass_time(REBALANCE_MS // 6)
            assert await old.beat() == ErrorCode.UNKNOWN_MEMBER_ID

    run(story())


def test_a_classic_member_that_does_not_sync_in_time_is_out() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            new = Consumer(clients, "new", "a")
            await new.join()
            old = ClassicConsumer(clients)
            assert (await old.join()).error_code == 0
            for _ in range(6):
                assert await old.beat() != ErrorCode.UNKNOWN_MEMBER_ID
                await new.beat()
                await clients.pass_time(REBALANCE_MS // 6)
            assert await old.beat() == ErrorCode.UNKNOWN_MEMBER_ID

    run(story())


def test_when_the_last_member_of_the_new_protocol_is_silent_the_group_becomes_a_classic_one() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            old = await classic_member(clients)
            new = Consumer(clients, "new", "a")
            await new.join()
            for _ in range(9):
                await old.join()
                await old.sync()
                await clients.pass_time(5_000)
            assert isinstance(clients.groups.committed_group("g"), ClassicGroup)
            assert await old.beat() == ErrorCode.REBALANCE_IN_PROGRESS
            assert (await old.join()).error_code == 0
            await old.sync()
            assert (await old.beat(), old.owned) == (ErrorCode.NONE, {"a": [0, 1, 2, 3]})
            await clients.pass_time(SESSION_MS)
            assert await old.beat() == ErrorCode.UNKNOWN_MEMBER_ID

    run(story())


def test_a_downgraded_group_is_the_same_after_a_restart() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            old = await classic_member(clients)
            new = Consumer(clients, "new", "a")
            await new.join()
            await new.leave()
            await clients.restart()
            found = clients.groups.committed_group("g")
            assert isinstance(found, ClassicGroup)
            assert list(found.members.by_id) == [old.member_id]

    run(story())


@pytest.mark.parametrize("policy", ["disabled", "Downgrade"])
def test_a_classic_group_with_members_is_not_upgraded_against_the_policy(policy: str) -> None:
    async def story() -> None:
        async with Clients({**AT_ONCE, POLICY: policy}, TOPICS) as clients:
            old = await classic_member(clients)
            answer = await Consumer(clients, "new", "a").join()
            assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
            expected = "Cannot upgrade classic group g to consumer group because online upgrade is disabled."
            assert answer.error_message == expected
            assert await old.beat() == ErrorCode.NONE

    run(story())


def test_a_group_of_another_kind_of_members_is_not_upgraded() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            member = ClassicConsumer(clients, protocol_type="connect")
            await member.join()
            answer = await Consumer(clients, "new", "a").join()
            assert answer.error_message == (
                "Cannot upgrade classic group g to consumer group because the group does not use the consumer embedded "
                "protocol."
            )

    run(story())


def test_a_group_that_is_too_large_for_the_new_protocol_is_not_upgraded() -> None:
    async def story() -> None:
        async with Clients({**AT_ONCE, "group.consumer.max.size": "1"}, TOPICS) as clients:
            one, two = ClassicConsumer(clients), ClassicConsumer(clients)
            await one.join()
            joining = two.begin_join()
            await clients.pass_time(0)
            await one.join()
            two.hear(await joining)
            answer = await Consumer(clients, "new", "a").join()
            assert answer.error_message == (
                "Cannot upgrade classic group g to consumer group because the group size exceeds the consumer group maximum "
                "size."
            )

    run(story())


def test_members_that_keep_something_of_their_own_in_assignments_are_not_upgraded() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            old = ClassicConsumer(clients)
            await old.join()
            secret = struct.pack(">h", 3) + wire.encode(ConsumerProtocolAssignment(user_data=b"mine"), 3)
            row = SyncGroupRequest.SyncGroupRequestAssignment(member_id=old.member_id, assignment=secret)
            request = SyncGroupRequest(
                group_id="g", member_id=old.member_id, generation_id=old.generation, assignments=[row]
            )
            await clients.ask(request, 3)
            answer = await Consumer(clients, "new", "a").join()
            assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
            assert (answer.error_message or "").startswith(
                "Cannot upgrade classic group g to consumer group because an unsupported custom assignor is in use."
            )

    run(story())


def test_members_whose_subscriptions_cannot_be_read_are_not_upgraded() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\x00")
            await ClassicConsumer(clients, protocols=[protocol]).join()
            answer = await Consumer(clients, "new", "a").join()
            assert answer.error_message == (
                "Cannot upgrade classic group g to consumer group because the embedded consumer protocol is malformed."
            )

    run(story())


@pytest.mark.parametrize(
    ("policy", "code"),
    [("disabled", ErrorCode.INCONSISTENT_GROUP_PROTOCOL), ("upgrade", ErrorCode.NONE), ("downgrade", ErrorCode.NONE)],
)
def test_a_classic_member_joins_a_consumer_group_unless_migration_is_disabled(policy: str, code: ErrorCode) -> None:
    async def story() -> None:
        async with Clients({**AT_ONCE, POLICY: policy}, TOPICS) as clients:
            await Consumer(clients, "new", "a").join()
            assert (await ClassicConsumer(clients).join()).error_code == code

    run(story())


@pytest.mark.parametrize(("policy", "kind"), [("upgrade", ConsumerGroup), ("downgrade", ClassicGroup)])
def test_a_group_whose_last_new_member_leaves_is_downgraded_if_the_policy_says_so(policy: str, kind: type) -> None:
    async def story() -> None:
        async with Clients({**AT_ONCE, POLICY: policy}, TOPICS) as clients:
            new = Consumer(clients, "new", "a")
            await new.join()
            await ClassicConsumer(clients).join()
            await new.leave()
            assert isinstance(clients.groups.committed_group("g"), kind)

    run(story())
