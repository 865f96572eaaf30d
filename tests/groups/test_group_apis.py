"""Classic groups through the handlers: members in their versions, restarts, lists, descriptions, and who may."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from barnabas import wire
from barnabas.batches import decode_records, iterate_batches
from barnabas.groups.image import GroupMetadata
from barnabas.replicated.machines import decode_key_value
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.security.principal import KafkaPrincipal
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from tests.broker.harness import MemoryNode
from tests.broker.topic_captures import allow
from tests.groups.harness import Clients, settle, topic
from tests.replicated.memory_log import MemoryLog

DELAY_MS = 3000
MINUTE_MS = 60_000
WITH_ACLS = AuthorizerSettings(enabled=True, super_users=frozenset({"User:ANONYMOUS"}))
ALICE = KafkaPrincipal("User", "alice")


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def join(member_id: str = "", group_id: str = "g", topics: tuple[str, ...] = ("t",), **fields: Any) -> JoinGroupRequest:
    metadata = wire.encode_record(ConsumerProtocolSubscription(topics=list(topics)), 3)
    given: dict[str, Any] = {
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)],
        **fields,
    }
    return JoinGroupRequest(group_id=group_id, member_id=member_id, **given)


def sync(member_id: str, generation: int = 1, assigned: dict[str, bytes] | None = None) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id="g",
        member_id=member_id,
        generation_id=generation,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=each, assignment=assignment)
            for each, assignment in (assigned or {}).items()
        ],
    )


def heartbeat(member_id: str, generation: int = 1) -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", member_id=member_id, generation_id=generation)


async def joined(node: Clients, count: int = 1, version: int = 3, **fields: Any) -> list[str]:
    """Members that have joined one generation and have their assignments; the first one leads."""
    joins = [node.begin(join(**fields), version, f"client-{number}") for number in range(count)]
    await node.pass_time(2 * DELAY_MS)
    ids = [(await each).member_id for each in joins]
    syncs = [node.begin(sync(each), 5) for each in ids[1:]]
    await settle()
    await node.ask(sync(ids[0], assigned={each: each.encode() for each in ids}), 5)
    assert [(await each).error_code for each in syncs] == [0] * (count - 1)
    return ids


async def described(node: Clients, group_id: str = "g") -> Any:
    (group,) = (await node.ask(DescribeGroupsRequest(groups=[group_id]), 6)).groups
    return group


async def listed(node: Clients, **filters: Any) -> dict[str, tuple[str, str]]:
    response = await node.ask(ListGroupsRequest(**filters), 5)
    assert response.error_code == 0
    return {group.group_id: (group.group_state, group.group_type) for group in response.groups}


def written(node: Clients) -> list[Any]:
    """The values of all records."""
    found = []
    for batch in node.log.batches:
        ((_, header),) = iterate_batches(batch)
        for record in decode_records(batch, 0, header):
            key_value = decode_key_value(record, "group")
            assert key_value is not None
            found.append(key_value.value)
    return found


# --- members


def test_members_join_sync_and_are_described() -> None:
    async def story() -> None:
        async with Clients() as node:
            leader, follower = await joined(node, 2)
            group = await described(node)
            assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
            assert [(each.member_id, each.client_id, each.client_host) for each in group.members] == [
                (leader, "client-0", "/127.0.0.1"),
                (follower, "client-1", "/127.0.0.1"),
            ]
            assert [each.member_assignment for each in group.members] == [leader.encode(), follower.encode()]
            assert leader.startswith("client-0-")
            assert len(leader) == len("client-0-") + 36

    run(story())


def test_a_member_id_that_no_message_could_have_is_refused_and_the_group_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        async with Clients() as node:
            refused = await node.ask(join(group_instance_id="x" * 32767), 9)
            assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert (await node.ask(join(), 9, "x" * 32767)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert len(await joined(node)) == 1

    run(story())
    assert caplog.messages == []


def test_a_new_group_is_written_at_once_and_then_with_its_assignments() -> None:
    async def story() -> None:
        async with Clients() as node:
            await joined(node)
            empty, assigned = written(node)
            assert (empty.protocol_type, empty.generation, empty.protocol, empty.leader) == ("", 0, None, None)
            assert empty.current_state_timestamp == node.clock.now_ms() - 2 * DELAY_MS
            assert (assigned.generation, len(assigned.members)) == (1, 1)
            assert assigned.members[0].rebalance_timeout == 30_000

    run(story())


def test_version_0_has_the_session_timeout_for_a_rebalance_timeout() -> None:
    async def story() -> None:
        async with Clients() as node:
            await joined(node, version=0)
            assert written(node)[-1].members[0].rebalance_timeout == 10_000

    run(story())


@pytest.mark.parametrize("version", range(10))
def test_from_version_4_on_a_member_id_is_required(version: int) -> None:
    async def story() -> None:
        async with Clients() as node:
            joining = node.begin(join(), version, None)
            await node.pass_time(DELAY_MS)
            response = await joining
            assert response.member_id.startswith("-")
            assert response.error_code == (ErrorCode.MEMBER_ID_REQUIRED if version >= 4 else 0)
            assert (response.protocol_name or "") == ("" if version >= 4 else "range")

    run(story())


def test_a_static_member_needs_no_member_id_and_has_its_instance_in_it() -> None:
    async def story() -> None:
        async with Clients() as node:
            joining = node.begin(join(group_instance_id="one"), 9)
            await node.pass_time(DELAY_MS)
            assert (await joining).member_id.startswith("one-")

    run(story())


@pytest.mark.parametrize("session_ms", [5999, 1_800_001])
def test_a_session_timeout_out_of_bounds_is_refused(session_ms: int) -> None:
    async def story() -> None:
        async with Clients() as node:
            response = await node.ask(join("m", session_timeout_ms=session_ms), 9)
            assert (response.error_code, response.member_id) == (ErrorCode.INVALID_SESSION_TIMEOUT, "m")

    run(story())


def test_nobody_joins_a_group_that_is_not_there_with_a_member_id() -> None:
    async def story() -> None:
        async with Clients() as node:
            assert (await node.ask(join("m"), 9)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
            assert await listed(node) == {}

    run(story())


def test_an_empty_group_id_is_refused_everywhere() -> None:
    async def story() -> None:
        async with Clients() as node:
            for request, version in (
                (join(group_id=""), 9),
                (SyncGroupRequest(protocol_type="a", protocol_name="b"), 5),
                (HeartbeatRequest(), 4),
                (LeaveGroupRequest(), 5),
            ):
                assert (await node.ask(request, version)).error_code == ErrorCode.INVALID_GROUP_ID

    run(story())


def test_from_version_5_on_a_sync_names_its_protocol() -> None:
    async def story() -> None:
        async with Clients() as node:
            (leader,) = await joined(node)
            bare = SyncGroupRequest(group_id="g", member_id=leader, generation_id=1)
            assert (await node.ask(bare, 4)).assignment == leader.encode()
            assert (await node.ask(bare, 5)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    run(story())


def test_a_protocol_that_is_named_twice_counts_once() -> None:
    async def story() -> None:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol
        async with Clients() as node:
            twice = [protocol(name="range", metadata=b"1"), protocol(name="range", metadata=b"2")]
            joining = node.begin(join(protocols=twice), 3)
            await node.pass_time(DELAY_MS)
            assert (await joining).members[0].metadata == b"1"

    run(story())


def test_several_members_leave_in_one_request() -> None:
    async def story() -> None:
        async with Clients() as node:
            first, second = await joined(node, 2)
            identity = LeaveGroupRequest.MemberIdentity
            request = LeaveGroupRequest(
                group_id="g",
                members=[
                    identity(member_id=first, reason="done"),
                    identity(member_id="nobody"),
                    identity(member_id=second),
                ],
            )
            response = await node.ask(request, 5)
            assert [(each.member_id, each.error_code) for each in response.members] == [
                (first, 0),
                ("nobody", ErrorCode.UNKNOWN_MEMBER_ID),
                (second, 0),
            ]
            assert await listed(node) == {"g": ("Empty", "classic")}
            assert written(node)[-1].members == []

    run(story())


def test_who_leaves_a_group_that_is_not_there_is_unknown() -> None:
    async def story() -> None:
        async with Clients() as node:
            member = LeaveGroupRequest.MemberIdentity(member_id="m", group_instance_id="i")
            response = await node.ask(LeaveGroupRequest(group_id="g", members=[member]), 3)
            assert (response.error_code, response.members[0].error_code) == (0, ErrorCode.UNKNOWN_MEMBER_ID)
            old = await node.ask(LeaveGroupRequest(group_id="g", member_id="m"), 2)
            assert old.error_code == ErrorCode.UNKNOWN_MEMBER_ID

    run(story())


def test_a_silent_member_is_out_and_the_timer_of_the_group_ends_with_it() -> None:
    async def story() -> None:
        async with Clients() as node:
            (member_id,) = await joined(node)
            waiting = node.clock.waiting
            for _ in range(5):
                await node.pass_time(9000)
                assert (await node.ask(heartbeat(member_id), 4)).error_code == 0
            assert node.clock.waiting == waiting, "heartbeats make no timers"
            await node.pass_time(10_000)
            assert (await node.ask(heartbeat(member_id), 4)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
            assert await listed(node) == {"g": ("Empty", "classic")}
            assert node.clock.waiting == 1, "that of the retention"

    run(story())


# --- restarts and moves


def test_members_go_on_after_a_restart() -> None:
    async def story() -> None:
        async with Clients() as node:
            ids = await joined(node, 2)
            before = await described(node)
            await node.restart()
            assert await described(node) == before
            assert [(await node.ask(heartbeat(each), 4)).error_code for each in ids] == [0, 0]
            await node.pass_time(10_000)
            assert (await described(node)).group_state == "Empty"

    run(story())


def test_who_waits_is_told_when_leadership_moves() -> None:
    async def story() -> None:
        async with Clients() as node:
            joining = node.begin(join(), 3)
            await settle()
            node.groups.resigned(0)
            assert (await joining).error_code == ErrorCode.NOT_COORDINATOR
            assert (await node.ask(join(), 3)).error_code == ErrorCode.NOT_COORDINATOR
            assert (await node.ask(heartbeat("m"), 4)).error_code == ErrorCode.NOT_COORDINATOR
            assert node.clock.waiting == 0

    run(story())


def test_while_a_partition_is_loaded_heartbeats_are_fine_and_others_have_to_wait() -> None:
    async def story() -> None:
        async with Clients() as node:
            node.groups.resigned(0)
            node.groups.elected(0, 5, MemoryLog())
            loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            assert (await node.ask(heartbeat("m"), 4)).error_code == 0
            assert (await node.ask(ListGroupsRequest(), 5)).error_code == loading
            assert (await described(node)).error_code == loading
            assert (await node.ask(sync("m"), 5)).error_code == loading
            await settle()
            assert (await node.ask(heartbeat("m"), 4)).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    run(story())


def test_a_group_that_cannot_be_written_is_not_there() -> None:
    async def story() -> None:
        async with Clients() as node:
            node.log.refuses = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
            assert (await node.ask(join(), 3)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            node.log.refuses = None
            assert await listed(node) == {}
            assert await joined(node)

    run(story())


def test_assignments_wait_for_the_log_and_are_there_then() -> None:
    async def story() -> None:
        async with Clients(log=MemoryLog(commits_at_once=False)) as node:
            joining = node.begin(join(), 3)
            await node.pass_time(DELAY_MS)
            member_id = (await joining).member_id
            assert (await described(node)).group_state == "Dead", "nothing is committed yet"
            syncing = node.begin(sync(member_id, assigned={member_id: b"a"}), 5)
            await node.pass_time()
            assert not syncing.done()
            node.log.commit()
            assert (await syncing).assignment == b"a"
            assert (await described(node)).group_state == "Stable"

    run(story())


def test_assignments_that_are_not_replicated_in_time_make_everybody_join_again() -> None:
    async def story() -> None:
        properties = {"offsets.commit.timeout.ms": "20"}
        async with Clients(properties, log=MemoryLog(commits_at_once=False)) as node:
            joining = node.begin(join(), 3)
            await node.pass_time(DELAY_MS)
            member_id = (await joining).member_id
            response = await node.ask(sync(member_id, assigned={member_id: b"a"}), 5)
            assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert (await node.ask(heartbeat(member_id), 4)).error_code == ErrorCode.REBALANCE_IN_PROGRESS

    run(story())


# --- lists and descriptions


def test_groups_are_listed_by_state_and_type() -> None:
    async def story() -> None:
        async with Clients(records=topic("t")) as node:
            await joined(node)
            node.begin(join(group_id="b"), 3)
            partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
            row = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])
            await node.ask(OffsetCommitRequest(group_id="a", topics=[row]), 9)
            await settle()
            everything = {
                "a": ("Empty", "classic"),
                "b": ("PreparingRebalance", "classic"),
                "g": ("Stable", "classic"),
            }
            assert await listed(node) == everything
            assert list(await listed(node, states_filter=["EMPTY", " stable "])) == ["a", "g"]
            assert await listed(node, states_filter=["nonsense"]) == {}
            assert await listed(node, types_filter=["Classic"]) == everything
            assert await listed(node, types_filter=["consumer"]) == {}
            assert await listed(node, types_filter=["nonsense"]) == {}
            old = await node.ask(ListGroupsRequest(), 0)
            assert [(each.group_id, each.protocol_type) for each in old.groups] == [
                ("a", ""),
                ("b", "consumer"),
                ("g", "consumer"),
            ]

    run(story())


def test_a_group_is_described_without_metadata_while_it_rebalances() -> None:
    async def story() -> None:
        async with Clients() as node:
            joining = node.begin(join(), 3)
            await settle()
            group = await described(node)
            assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
            assert [each.member_metadata for each in group.members] == [b""]
            joining.cancel()

    run(story())


def test_operations_are_told_when_asked_for() -> None:
    async def story() -> None:
        async with Clients() as node:
            await joined(node)
            request = DescribeGroupsRequest(groups=["g", "nope"], include_authorized_operations=True)
            group, unknown = (await node.ask(request, 6)).groups
            assert group.authorized_operations == sum(1 << int(each) for each in GROUP_OPERATIONS)
            assert unknown.authorized_operations == -(2**31)

    run(story())


GROUP_OPERATIONS = (
    AclOperation.READ,
    AclOperation.DESCRIBE,
    AclOperation.DELETE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)


def test_only_empty_groups_are_deleted_and_then_their_members_are_unknown() -> None:
    async def story() -> None:
        async with Clients() as node:
            (member_id,) = await joined(node)
            request = DeleteGroupsRequest(groups_names=["g"])
            assert (await node.ask(request, 2)).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
            await node.ask(LeaveGroupRequest(group_id="g", member_id=member_id), 0)
            assert (await node.ask(request, 2)).results[0].error_code == 0
            assert await listed(node) == {}
            (again,) = await joined(node)
            assert (await node.ask(heartbeat(again, 1), 4)).error_code == 0, "a new group begins with generation 1"

    run(story())


# --- offsets of groups with members


def commit(member_id: str, generation: int, name: str = "t", **fields: Any) -> OffsetCommitRequest:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    row = OffsetCommitRequest.OffsetCommitRequestTopic(name=name, partitions=[partition])
    return OffsetCommitRequest(
        group_id="g", member_id=member_id, generation_id_or_member_epoch=generation, topics=[row], **fields
    )


def code(response: Any) -> int:
    found: int = response.topics[0].partitions[0].error_code
    return found


def test_only_members_of_the_generation_commit_while_a_group_has_members() -> None:
    async def story() -> None:
        async with Clients(records=topic("t")) as node:
            (member_id,) = await joined(node)
            assert code(await node.ask(commit(member_id, 1), 9)) == 0
            assert code(await node.ask(commit(member_id, 2), 9)) == ErrorCode.ILLEGAL_GENERATION
            assert code(await node.ask(commit("nobody", 1), 9)) == ErrorCode.UNKNOWN_MEMBER_ID
            assert code(await node.ask(commit("", -1), 9)) == ErrorCode.UNKNOWN_MEMBER_ID
            instance = commit(member_id, 1, group_instance_id="i")
            assert code(await node.ask(instance, 9)) == ErrorCode.UNKNOWN_MEMBER_ID

    run(story())


def test_a_commit_waits_for_the_assignment_and_may_come_during_a_rebalance() -> None:
    async def story() -> None:
        async with Clients(records=topic("t")) as node:
            joining = node.begin(join(), 3)
            await node.pass_time(DELAY_MS)
            member_id = (await joining).member_id
            assert code(await node.ask(commit(member_id, 1), 9)) == ErrorCode.REBALANCE_IN_PROGRESS
            await node.ask(sync(member_id, assigned={member_id: b"a"}), 5)
            another = node.begin(join(), 3)
            await settle()
            assert code(await node.ask(commit(member_id, 1), 9)) == 0
            another.cancel()

    run(story())


def test_commits_keep_a_member_s_session_alive() -> None:
    async def story() -> None:
        async with Clients(records=topic("t")) as node:
            (member_id,) = await joined(node)
            for _ in range(3):
                await node.pass_time(9000)
                assert code(await node.ask(commit(member_id, 1), 9)) == 0
            assert (await described(node)).group_state == "Stable"

    run(story())


def test_offsets_of_topics_that_members_read_are_not_deleted() -> None:
    async def story() -> None:
        async with Clients(records=[*topic("t"), *topic("u")]) as node:
            (member_id,) = await joined(node)
            await node.ask(commit(member_id, 1), 9)
            await node.ask(commit(member_id, 1, "u"), 9)
            partition = OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)
            rows = [
                OffsetDeleteRequest.OffsetDeleteRequestTopic(name=name, partitions=[partition]) for name in ("t", "u")
            ]
            response = await node.ask(OffsetDeleteRequest(group_id="g", topics=rows), 0)
            assert [each.partitions[0].error_code for each in response.topics] == [
                ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
                0,
            ]

    run(story())


def test_offsets_of_other_protocols_are_deleted_only_from_empty_groups() -> None:
    async def story() -> None:
        async with Clients(records=topic("t")) as node:
            protocols = [JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")]
            joining = node.begin(join(protocol_type="connect", protocols=protocols), 3)
            await node.pass_time(DELAY_MS)
            await joining
            assert (await node.ask(OffsetDeleteRequest(group_id="g"), 0)).error_code == ErrorCode.NON_EMPTY_GROUP

    run(story())


RETENTION = {"offsets.retention.minutes": "2", "offsets.retention.check.interval.ms": "60000"}


def test_offsets_expire_from_when_the_group_became_empty() -> None:
    async def story() -> None:
        async with Clients(RETENTION, topic("t")) as node:
            (member_id,) = await joined(node)
            await node.ask(commit(member_id, 1), 9)
            for _ in range(30):
                await node.pass_time(9000)
                assert (await node.ask(heartbeat(member_id), 4)).error_code == 0
            (shard,) = node.groups.shards.all()
            assert shard.machine.image.offset("g", "t", 0) is not None, "a topic that is read"
            await node.ask(LeaveGroupRequest(group_id="g", member_id=member_id), 0)
            await node.pass_time(MINUTE_MS)
            assert shard.machine.image.offset("g", "t", 0) is not None
            await node.pass_time(2 * MINUTE_MS)
            assert shard.machine.image.offset("g", "t", 0) is None
            assert await listed(node) == {}
            assert "g" not in shard.classic

    run(story())


def test_a_stable_group_loses_old_offsets_of_topics_that_it_does_not_read() -> None:
    async def story() -> None:
        async with Clients(RETENTION, [*topic("t"), *topic("u")]) as node:
            (member_id,) = await joined(node)
            await node.ask(commit(member_id, 1, "u"), 9)
            await node.ask(commit(member_id, 1, "t"), 9)
            for _ in range(20):
                await node.pass_time(9000)
                assert (await node.ask(heartbeat(member_id), 4)).error_code == 0
            (shard,) = node.groups.shards.all()
            assert list(shard.machine.image.offsets["g"]) == ["t"]
            assert isinstance(shard.machine.image.groups["g"], GroupMetadata)

    run(story())


# --- who may


def test_who_may_not_read_a_group_is_no_member() -> None:
    async def story() -> None:
        async with Clients(authorizer=WITH_ACLS) as node:
            await joined(node)
            refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
            for request, version in (
                (join(), 9),
                (sync("m"), 5),
                (heartbeat("m"), 4),
                (LeaveGroupRequest(group_id="g"), 5),
            ):
                assert (await node.ask(request, version, principal=ALICE)).error_code == refused
            describe = DescribeGroupsRequest(groups=["g"])
            (group,) = (await node.ask(describe, 6, principal=ALICE)).groups
            assert (group.error_code, group.group_state, group.error_message) == (refused, "", None)
            assert (await node.ask(ListGroupsRequest(), 5, principal=ALICE)).groups == []

    run(story())


def test_a_list_has_the_groups_that_the_caller_may_describe() -> None:
    async def story() -> None:
        rights = [allow("User:alice", AclOperation.DESCRIBE, ResourceType.GROUP, "g")]
        async with Clients(records=rights, authorizer=WITH_ACLS) as node:
            await joined(node)
            node.begin(join(group_id="secret"), 3)
            await settle()
            response = await node.ask(ListGroupsRequest(), 5, principal=ALICE)
            assert [each.group_id for each in response.groups] == ["g"]

    run(story())


# --- the coordinator's topic


def find(*keys: str, key_type: int = 0) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))


@pytest.mark.parametrize(("key_type", "name"), [(0, "__consumer_offsets"), (1, "__transaction_state")])
def test_asking_for_a_coordinator_makes_its_topic_and_then_finds_it(key_type: int, name: str) -> None:
    properties = {
        "node.id": "1",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.num.partitions": "5",
        "transaction.state.log.min.isr": "1",
    }
    node = MemoryNode(properties)
    (row,) = node.call(find("a", key_type=key_type), 4).coordinators
    assert (row.error_code, row.node_id, row.host, row.port) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1)
    made = node.image.topics.get(name)
    assert made is not None
    assert len(made.partitions) == 5
    (row,) = node.call(find("a", key_type=key_type), 4).coordinators
    assert (row.error_code, row.node_id, row.port) == (0, 1, 19091)


def test_a_partition_without_a_leader_has_no_coordinator() -> None:
    records = topic("__consumer_offsets", 1)
    records[1].leader = -1  # type: ignore[attr-defined]
    (row,) = MemoryNode({"node.id": "1"}, records=records).call(find("a"), 4).coordinators
    assert row.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_coordinator_is_told_to_those_that_may_describe() -> None:
    rights = [allow("User:alice", AclOperation.DESCRIBE, ResourceType.GROUP, "mine")]
    node = MemoryNode({"node.id": "1"}, records=[*topic("__consumer_offsets", 1), *rights], authorizer=WITH_ACLS)
    rows = node.call(find("mine", "yours"), 4, principal=ALICE).coordinators
    assert [row.error_code for row in rows] == [0, ErrorCode.GROUP_AUTHORIZATION_FAILED]
    old = node.call(FindCoordinatorRequest(key="tx", key_type=1), 1, principal=ALICE)
    assert old.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
