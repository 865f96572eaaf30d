"""The limits of groups and transactions, reached by clients of a real node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from barnabas.groups.coordinator import GroupCoordinator
from barnabas.testing import AsyncBroker
from barnabas.transactions.coordinator import TransactionCoordinator
from barnabas.wire import ErrorCode, Message
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from tests.broker.clients import ask

UP = ErrorCode.GROUP_MAX_SIZE_REACHED
OK = ErrorCode.NONE


class Asked:
    """A node and one question after another."""

    def __init__(self, broker: AsyncBroker) -> None:
        self._address = broker.host, broker.port
        node = broker._node
        assert node is not None
        self.groups: GroupCoordinator = node.coordinators.groups
        self.transactions: TransactionCoordinator = node.coordinators.transactions

    async def __call__(self, request: Message, version: int) -> Any:
        """Ask until the coordinator is loaded."""
        loading = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        while True:
            answer = await ask(self._address, request, version)
            if getattr(answer, "error_code", OK) not in loading:
                return answer
            await asyncio.sleep(0.02)


def run(test: Callable[[Asked], Awaitable[None]], **config: Any) -> None:
    settings = {
        "offsets.topic.num.partitions": 3,
        "transaction.state.log.num.partitions": 3,
        "group.initial.rebalance.delay.ms": 0,
        **{f"barnabas.{name.replace('_', '.')}": value for name, value in config.items()},
    }

    async def main() -> None:
        async with AsyncBroker({"t": 1}, config=settings) as broker:
            for key_type in (0, 1):  # creates the topics of both coordinators
                await ask(
                    (broker.host, broker.port), FindCoordinatorRequest(key_type=key_type, coordinator_keys=["k"]), 4
                )
            await test(Asked(broker))

    asyncio.run(asyncio.wait_for(main(), 300))


def join(group_id: str, member_id: str = "", size: int = 10, instance_id: str | None = None) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        member_id=member_id,
        group_instance_id=instance_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=bytes(size))],
    )


def heartbeat(group_id: str, member_id: str, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    given: dict[str, Any] = {"member_epoch": 0, "rebalance_timeout_ms": 1000, "topic_partitions": [], **fields}
    return ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=member_id, **given)


def commit(group_id: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])
    return OffsetCommitRequest(group_id=group_id, topics=[topic])


def commit_error(answer: Any) -> ErrorCode:
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def test_groups_beyond_the_limit_are_refused_and_those_that_exist_go_on() -> None:
    async def test(asked: Asked) -> None:
        first = await asked(join("a"), 3)
        assert first.error_code == OK
        assert (await asked(heartbeat("b", "m1", subscribed_topic_names=["t"]), 1)).error_code == OK
        assert asked.groups.room.group_count == 2
        assert (await asked(join("c"), 3)).error_code == UP
        assert (await asked(heartbeat("d", "m1", subscribed_topic_names=["t"]), 1)).error_code == UP
        assert commit_error(await asked(commit("e"), 8)) == ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        assert (await asked(join("a", first.member_id), 3)).error_code == OK
        assert asked.groups.room.group_count == 2
        assert asked.groups.room.refused_total == 3

    run(test, groups_max_count=2)


def test_members_that_send_too_much_are_refused_and_those_that_exist_may_join_again() -> None:
    async def test(asked: Asked) -> None:
        room = asked.groups.room
        static = await asked(join("g", size=30_000, instance_id="i"), 5)
        assert static.error_code == OK
        assert 30_000 < room.held_bytes <= 100_000
        assert (await asked(join("h", size=70_000), 5)).error_code == UP
        assert (await asked(heartbeat("c", "m", subscribed_topic_names=["n" * 200] * 400), 1)).error_code == UP
        assert (await asked(join("g", static.member_id, 30_000, "i"), 5)).error_code == OK
        again = await asked(join("g", "", 30_000, "i"), 5)  # the instance after a restart
        assert again.error_code == OK
        assignment = SyncGroupRequest.SyncGroupRequestAssignment(member_id=again.member_id, assignment=bytes(90_000))
        synced = await asked(
            SyncGroupRequest(
                group_id="g",
                generation_id=again.generation_id,
                member_id=again.member_id,
                group_instance_id="i",
                assignments=[assignment],
            ),
            3,
        )
        assert synced.error_code == UP
        leaver = LeaveGroupRequest.MemberIdentity(member_id=again.member_id, group_instance_id="i")
        assert (await asked(LeaveGroupRequest(group_id="g", members=[leaver]), 4)).error_code == OK
        assert room.held_bytes == 0
        assert room.refused_total == 3

    run(test, groups_max_member_bytes=100_000)


def test_member_ids_that_never_join_are_counted_and_limited() -> None:
    async def test(asked: Asked) -> None:
        codes = [(await asked(join("g"), 4)).error_code for _ in range(12)]
        assert set(codes) == {ErrorCode.MEMBER_ID_REQUIRED, UP}
        assert codes == sorted(codes)
        assert asked.groups.room.held_bytes <= 5000

    run(test, groups_max_member_bytes=5000)


def test_regular_expressions_beyond_the_limit_are_refused() -> None:
    async def test(asked: Asked) -> None:
        room = asked.groups.room
        assert (await asked(heartbeat("a", "m1", subscribed_topic_regex="x.*"), 1)).error_code == OK
        assert (await asked(heartbeat("b", "m1", subscribed_topic_regex="x.*"), 1)).error_code == OK
        assert room.pattern_count == 2
        assert (await asked(heartbeat("a", "m2", subscribed_topic_regex="y.*"), 1)).error_code == UP
        assert (await asked(heartbeat("a", "m2", subscribed_topic_regex="x.*"), 1)).error_code == OK
        left = heartbeat("b", "m1", member_epoch=-1, topic_partitions=None, rebalance_timeout_ms=-1)
        assert (await asked(left, 1)).error_code == OK
        assert room.pattern_count == 1
        assert (await asked(heartbeat("a", "m3", subscribed_topic_regex="y.*"), 1)).error_code == OK

    run(test, groups_max_regular_expressions=2)


def init(transactional_id: str) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)


def add(transactional_id: str, started: Any) -> AddPartitionsToTxnRequest:
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0])
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=started.producer_id,
        v3_and_below_producer_epoch=started.producer_epoch,
        v3_and_below_topics=[topic],
    )


def added_error(answer: Any) -> ErrorCode:
    (topic,) = answer.results_by_topic_v3_and_below
    return ErrorCode(topic.results_by_partition[0].partition_error_code)


def test_transactional_ids_beyond_the_limit_wait() -> None:
    async def test(asked: Asked) -> None:
        for each in ("a", "b", "a"):
            assert (await asked(init(each), 4)).error_code == OK
        assert asked.transactions.transactional_id_count == 2
        assert (await asked(init("c"), 4)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (await asked(init("b"), 4)).error_code == OK
        assert asked.transactions.refused_total == 1

    run(test, transactional_ids_max_count=2)


def test_transactions_beyond_the_limit_of_open_ones_wait_until_another_ends() -> None:
    async def test(asked: Asked) -> None:
        first, second = await asked(init("a"), 4), await asked(init("b"), 4)
        assert added_error(await asked(add("a", first), 3)) == OK
        assert asked.transactions.open_count == 1
        assert added_error(await asked(add("b", second), 3)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert added_error(await asked(add("a", first), 3)) == OK
        end = EndTxnRequest(transactional_id="a", producer_id=first.producer_id, producer_epoch=first.producer_epoch)
        assert (await asked(end, 3)).error_code == OK
        assert added_error(await asked(add("b", second), 3)) == OK
        assert asked.transactions.refused_total == 1

    run(test, transactions_max_open=1)
