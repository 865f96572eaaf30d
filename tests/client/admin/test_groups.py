"""`Groups` against a node of barnabas, and against scripted nodes that are old, late, or not the right ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.client import Cluster, UnsupportedByNodeError
from barnabas.client.admin.groups import CommittedOffset, GroupDescription, Groups, MemberToRemove
from barnabas.client.admin.part import TimedOutError, checked
from barnabas.client.records import TopicPartition
from barnabas.testing import Broker
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.messages.delete_groups import DeleteGroupsResponse
from barnabas.wire.messages.describe_groups import DescribeGroupsResponse
from barnabas.wire.messages.find_coordinator import FindCoordinatorResponse
from barnabas.wire.messages.leave_group import LeaveGroupResponse
from barnabas.wire.messages.list_groups import ListGroupsResponse
from barnabas.wire.messages.offset_commit import OffsetCommitResponse
from barnabas.wire.messages.offset_fetch import OffsetFetchResponse
from tests.client.admin.group_scenes import member
from tests.client.peers import Asked, one_broker, peer, ranges, read_request

Scenario = Callable[[Groups], Coroutine[Any, Any, None]]
ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
GONE = TopicPartition("gone", 0)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"orders": 2, "stock": 1}, config={"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


def run(broker: Broker, scenario: Scenario) -> None:
    async def main() -> None:
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            await scenario(Groups(cluster))

    asyncio.run(main())


def code_of(result: object) -> ErrorCode:
    assert isinstance(result, KafkaError), result
    return result.code


def described(result: object) -> GroupDescription:
    assert isinstance(result, GroupDescription), result
    return result


def test_offsets_are_set_listed_and_deleted(broker: Broker) -> None:
    async def scenario(groups: Groups) -> None:
        new: dict[TopicPartition, int | CommittedOffset] = {
            ORDERS_0: 0,
            ORDERS_1: CommittedOffset(0, 0, "by hand"),
            GONE: 0,
        }
        results = await groups.alter_consumer_group_offsets("offsets", new)
        assert results.pop(GONE) is not None
        assert results == {ORDERS_0: None, ORDERS_1: None}
        found = checked(await groups.list_consumer_group_offsets(["offsets"]))["offsets"]
        assert found == {ORDERS_0: CommittedOffset(0), ORDERS_1: CommittedOffset(0, 0, "by hand")}
        some = await groups.list_consumer_group_offsets({"offsets": [ORDERS_1, ("stock", 0)], "nobody": None})
        assert some == {"offsets": {ORDERS_1: CommittedOffset(0, 0, "by hand")}, "nobody": {}}
        deleted = await groups.delete_consumer_group_offsets("offsets", [ORDERS_1])
        assert deleted == {ORDERS_1: None}
        assert checked(await groups.list_consumer_group_offsets(["offsets"]))["offsets"] == {
            ORDERS_0: CommittedOffset(0)
        }

    run(broker, scenario)


def test_offsets_of_a_group_that_is_not_there_cannot_be_deleted(broker: Broker) -> None:
    async def scenario(groups: Groups) -> None:
        with pytest.raises(KafkaError) as error:
            await groups.delete_consumer_group_offsets("nobody", [ORDERS_0])
        assert error.value.code == ErrorCode.GROUP_ID_NOT_FOUND

    run(broker, scenario)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_of_either_protocol_has_the_same_shape(broker: Broker, protocol: str) -> None:
    group_id = f"shape-{protocol}"

    async def scenario(groups: Groups) -> None:
        results = await groups.describe_consumer_groups([group_id, "nobody"])
        assert code_of(results["nobody"]) == ErrorCode.GROUP_ID_NOT_FOUND
        group = described(results[group_id])
        assert (group.type.lower(), group.protocol_type, group.state) == (protocol, "consumer", "Stable")
        assert group.coordinator is not None
        assert group.coordinator.port == broker.port
        (one,) = group.members
        assert (one.client_id, one.group_instance_id) == ("me", "fixed")
        assert set(one.assignment) == {ORDERS_0, ORDERS_1}
        if protocol == "classic":
            assert (group.group_epoch, one.member_epoch, one.target_assignment) == (None, None, None)
            assert group.assignor == "range"
        else:
            assert group.group_epoch == group.assignment_epoch == one.member_epoch
            assert set(one.target_assignment or ()) == {ORDERS_0, ORDERS_1}
            assert one.subscribed_topics == ("orders",)
        assert code_of((await groups.delete_groups([group_id]))[group_id]) == ErrorCode.NON_EMPTY_GROUP
        altered = await groups.alter_consumer_group_offsets(group_id, {ORDERS_0: 0})
        assert code_of(altered[ORDERS_0]) == ErrorCode.UNKNOWN_MEMBER_ID
        listed = {each.group_id: each for each in await groups.list_groups(states=["Stable"])}
        assert (listed[group_id].type or "").lower() == protocol
        removed = await groups.remove_members(group_id)
        assert removed == {MemberToRemove("", "fixed"): None}

    settings = {"group_protocol": protocol, "group_instance_id": "fixed", "client_id": "me"}
    with member(broker.bootstrap_servers, group_id, ["orders"], 2, **settings):
        run(broker, scenario)


def test_a_member_that_is_not_there_cannot_be_removed(broker: Broker) -> None:
    async def scenario(groups: Groups) -> None:
        checked(await groups.alter_consumer_group_offsets("without", {ORDERS_0: 0}))
        results = await groups.remove_members("without", [MemberToRemove("nobody")], reason="a test")
        assert {key: code_of(result) for key, result in results.items()} == {
            MemberToRemove("nobody"): ErrorCode.UNKNOWN_MEMBER_ID
        }
        assert await groups.remove_members("without") == {}

    run(broker, scenario)


def test_groups_are_deleted_each_for_itself(broker: Broker) -> None:
    async def scenario(groups: Groups) -> None:
        for group_id in ("first", "second"):
            checked(await groups.alter_consumer_group_offsets(group_id, {ORDERS_0: 0}))
        results = await groups.delete_groups(["first", "nobody", "second"])
        assert list(results) == ["first", "nobody", "second"]
        assert (results["first"], results["second"]) == (None, None)
        assert code_of(results["nobody"]) == ErrorCode.GROUP_ID_NOT_FOUND
        assert not {"first", "second"} & {each.group_id for each in await groups.list_groups()}

    run(broker, scenario)


def test_groups_are_listed_by_type(broker: Broker) -> None:
    async def scenario(groups: Groups) -> None:
        checked(await groups.alter_consumer_group_offsets("plain", {ORDERS_0: 0}))
        assert "plain" in {each.group_id for each in await groups.list_groups(types=["Classic"])}
        assert "plain" not in {each.group_id for each in await groups.list_groups(types=["Consumer"])}

    run(broker, scenario)


# --- scripted nodes


Answer = Callable[[Asked], Message | None]


@asynccontextmanager
async def scripted(answer: Answer, **versions: tuple[int, int]) -> AsyncIterator[Groups]:
    """A node that coordinates everything, and serves these versions; where `answer` has none, it hangs up."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("sockname")[1]
        while True:
            asked = await read_request(reader)
            response: Message | None
            if asked.name == "ApiVersions":
                response = ranges(**{"Metadata": (0, 12), "FindCoordinator": (0, 3), **versions})
            elif asked.name == "Metadata":
                response = one_broker(port)
            elif asked.name == "FindCoordinator":
                response = FindCoordinatorResponse(node_id=1, host="127.0.0.1", port=port)
            else:
                response = answer(asked)
            if response is None:
                return
            writer.write(asked.answer(response))

    settings = {"default.api.timeout.ms": 3000, "request.timeout.ms": 3000, "retry.backoff.ms": 10}
    async with peer(script) as port, Cluster({"bootstrap.servers": f"127.0.0.1:{port}", **settings}) as cluster:
        yield Groups(cluster)


def play(answer: Answer, scenario: Scenario, **versions: tuple[int, int]) -> None:
    async def main() -> None:
        async with scripted(answer, **versions) as groups:
            await scenario(groups)

    asyncio.run(main())


def test_an_old_broker_is_asked_without_types_and_only_by_states_it_knows() -> None:
    row = ListGroupsResponse.ListedGroup(group_id="old", protocol_type="consumer")
    asked_for: list[list[str]] = []

    def answer(asked: Asked) -> Message:
        asked_for.append(asked.request.states_filter)
        return ListGroupsResponse(groups=[row])

    async def scenario(groups: Groups) -> None:
        (listed,) = await groups.list_groups(types=["Classic", "Consumer"])
        assert (listed.group_id, listed.state, listed.type) == ("old", None, None)
        with pytest.raises(UnsupportedByNodeError, match="listing groups by state or type needs version 4"):
            await groups.list_groups(states=["Stable"])
        with pytest.raises(UnsupportedByNodeError, match="listing groups by state or type needs version 5"):
            await groups.list_groups(types=["Consumer"])

    play(answer, scenario, ListGroups=(0, 3))
    assert asked_for == [[]]


def test_an_old_broker_is_asked_for_offsets_group_by_group() -> None:
    topic = OffsetFetchResponse.OffsetFetchResponseTopic
    partition = OffsetFetchResponse.OffsetFetchResponsePartition

    def answer(asked: Asked) -> Message:
        if asked.request.group_id == "refused":
            return OffsetFetchResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        assert asked.request.topics is None
        rows = [partition(partition_index=0, committed_offset=7), partition(partition_index=1, committed_offset=-1)]
        return OffsetFetchResponse(topics=[topic(name="orders", partitions=rows)])

    async def scenario(groups: Groups) -> None:
        found = await groups.list_consumer_group_offsets(["a", "refused", "b"])
        assert found.pop("refused") is not None
        assert found == {key: {ORDERS_0: CommittedOffset(7)} for key in ("a", "b")}

    play(answer, scenario, OffsetFetch=(0, 5))


def test_a_broker_without_the_new_protocol_describes_classic_groups() -> None:
    row = DescribeGroupsResponse.DescribedGroup

    def answer(asked: Asked) -> Message:
        states = {"there": "Empty", "nobody": "Dead"}
        return DescribeGroupsResponse(
            groups=[row(group_id=each, group_state=states[each]) for each in asked.request.groups]
        )

    async def scenario(groups: Groups) -> None:
        results = await groups.describe_consumer_groups(["there", "nobody"])
        assert described(results["there"]).state == "Empty"
        assert code_of(results["nobody"]) == ErrorCode.GROUP_ID_NOT_FOUND

    play(answer, scenario, DescribeGroups=(0, 4))


def test_assignments_that_are_not_of_consumers_are_left_alone() -> None:
    row, of = DescribeGroupsResponse.DescribedGroup, DescribeGroupsResponse.DescribedGroupMember

    def answer(asked: Asked) -> Message:
        members = [of(member_id="m", member_assignment=b"\x00\x01\xff\xff")]
        kinds = {"connect": "connect", "broken": "consumer"}
        return DescribeGroupsResponse(
            groups=[row(group_id=each, protocol_type=kinds[each], members=members) for each in asked.request.groups]
        )

    async def scenario(groups: Groups) -> None:
        for group in checked(await groups.describe_groups(["connect", "broken"])).values():
            assert [each.assignment for each in group.members] == [()]

    play(answer, scenario, DescribeGroups=(0, 6))


def test_an_old_broker_removes_members_one_by_one() -> None:
    removed: list[str] = []

    def answer(asked: Asked) -> Message:
        removed.append(asked.request.member_id)
        return LeaveGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID if len(removed) > 1 else 0)

    async def scenario(groups: Groups) -> None:
        wanted = [MemberToRemove("a"), MemberToRemove("b"), MemberToRemove("", "static")]
        results = await groups.remove_members("g", wanted)
        assert results[wanted[0]] is None
        assert [code_of(results[each]) for each in wanted[1:]] == [
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.UNSUPPORTED_VERSION,
        ]

    play(answer, scenario, LeaveGroup=(0, 2))
    assert removed == ["a", "b"]


def test_what_a_coordinator_does_not_know_yet_is_asked_again() -> None:
    row, asked_for = DeleteGroupsResponse.DeletableGroupResult, []

    def answer(asked: Asked) -> Message:
        asked_for.append(asked.request.groups_names)
        codes = {"late": ErrorCode.NOT_COORDINATOR if len(asked_for) == 1 else ErrorCode.NONE, "now": ErrorCode.NONE}
        return DeleteGroupsResponse(
            results=[row(group_id=each, error_code=codes[each]) for each in asked.request.groups_names]
        )

    async def scenario(groups: Groups) -> None:
        assert await groups.delete_groups(["now", "late"]) == {"now": None, "late": None}

    play(answer, scenario, DeleteGroups=(0, 2))
    assert asked_for == [["now", "late"], ["late"]]


def test_a_deletion_whose_answer_is_lost_is_looked_after() -> None:
    def answer(asked: Asked) -> Message | None:
        if asked.name == "DeleteGroups":
            return None
        return ListGroupsResponse(groups=[ListGroupsResponse.ListedGroup(group_id="still-there")])

    async def scenario(groups: Groups) -> None:
        results = await groups.delete_groups(["gone", "still-there"])
        happened = {key: each.happened for key, each in results.items() if isinstance(each, TimedOutError)}
        assert happened == {"gone": True, "still-there": False}

    play(answer, scenario, DeleteGroups=(0, 2), ListGroups=(0, 5))


def test_offsets_that_are_not_confirmed_are_looked_after() -> None:
    topic, row = OffsetFetchResponse.OffsetFetchResponseTopics, OffsetFetchResponse.OffsetFetchResponsePartitions
    late = OffsetCommitResponse.OffsetCommitResponsePartition

    def answer(asked: Asked) -> Message:
        if asked.name == "OffsetCommit":
            rows = [late(partition_index=i, error_code=ErrorCode.REQUEST_TIMED_OUT) for i in (0, 1)]
            return OffsetCommitResponse(
                topics=[OffsetCommitResponse.OffsetCommitResponseTopic(name="orders", partitions=rows)]
            )
        found = [row(partition_index=0, committed_offset=5), row(partition_index=1, committed_offset=4)]
        group = OffsetFetchResponse.OffsetFetchResponseGroup
        return OffsetFetchResponse(groups=[group(group_id="g", topics=[topic(name="orders", partitions=found)])])

    async def scenario(groups: Groups) -> None:
        results = await groups.alter_consumer_group_offsets("g", {ORDERS_0: 5, ORDERS_1: 5})
        happened = {key: each.happened for key, each in results.items() if isinstance(each, TimedOutError)}
        assert happened == {ORDERS_0: True, ORDERS_1: False}

    play(answer, scenario, OffsetCommit=(2, 9), OffsetFetch=(1, 9))
