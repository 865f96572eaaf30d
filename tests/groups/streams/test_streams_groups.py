"""Streams groups through the handlers: topologies, tasks, internal topics, time, restarts, and other types of groups."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from barnabas.groups.streams.group import State, StreamsGroup
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.security.principal import KafkaPrincipal
from barnabas.wire import ErrorCode, Message
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from barnabas.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from barnabas.wire.records.metadata import FeatureLevelRecord
from tests.broker.topic_captures import allow
from tests.groups.harness import Clients, topic

Request = StreamsGroupHeartbeatRequest
ENABLED: list[Message] = [FeatureLevelRecord(name="streams.version", feature_level=1)]
TOPICS = [*ENABLED, *topic("lines", 4)]
AT_ONCE = {"group.streams.initial.rebalance.delay.ms": "0", "group.streams.assignment.interval.ms": "0"}


WITH_ACLS = AuthorizerSettings(enabled=True, super_users=frozenset({"User:ANONYMOUS"}))
ALICE = KafkaPrincipal("User", "alice")


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def subtopology(*sources: str, **fields: Any) -> StreamsGroupHeartbeatRequest.Subtopology:
    return Request.Subtopology(**{"subtopology_id": "0", "source_topics": list(sources), **fields})


def changelog(name: str) -> StreamsGroupHeartbeatRequest.TopicInfo:
    return Request.TopicInfo(name=name)


class Thread:
    """One member. It reports what it was told to have, as Kafka Streams does."""

    def __init__(
        self,
        clients: Clients,
        member_id: str,
        *subtopologies: StreamsGroupHeartbeatRequest.Subtopology,
        process_id: str | None = None,
        **peer: Any,
    ) -> None:
        self.member_id, self.epoch = member_id, 0
        self.active: dict[str, list[int]] = {}
        self.standby: dict[str, list[int]] = {}
        self._clients = clients
        self._peer = peer
        self._subtopologies = list(subtopologies) or [subtopology("lines")]
        self._process_id = process_id or f"process of {member_id}"

    async def ask(self, **fields: Any) -> StreamsGroupHeartbeatResponse:
        given = {"group_id": "g", "member_id": self.member_id, "member_epoch": self.epoch, **fields}
        response: StreamsGroupHeartbeatResponse = await self._clients.ask(Request(**given), 0, **self._peer)
        if not response.error_code and response.member_epoch >= 0:
            self.epoch = response.member_epoch
            if response.active_tasks is not None:
                self.active = {row.subtopology_id: row.partitions for row in response.active_tasks}
                self.standby = {row.subtopology_id: row.partitions for row in response.standby_tasks or ()}
        return response

    async def join(self, **fields: Any) -> StreamsGroupHeartbeatResponse:
        self.epoch = 0
        given = {
            "topology": Request.Topology(epoch=0, subtopologies=self._subtopologies),
            "rebalance_timeout_ms": 60_000,
            "process_id": self._process_id,
            "client_tags": [],
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
        }
        return await self.ask(**{**given, **fields})

    async def beat(self, **fields: Any) -> StreamsGroupHeartbeatResponse:
        def rows(tasks: dict[str, list[int]]) -> list[StreamsGroupHeartbeatRequest.TaskIds]:
            return [Request.TaskIds(subtopology_id=each, partitions=numbers) for each, numbers in tasks.items()]

        given = {"active_tasks": rows(self.active), "standby_tasks": rows(self.standby), "warmup_tasks": []}
        return await self.ask(**{**given, **fields})

    async def leave(self, **fields: Any) -> StreamsGroupHeartbeatResponse:
        return await self.ask(member_epoch=-1, **fields)


async def settle(clients: Clients, *threads: Thread, rounds: int = 6) -> None:
    for _ in range(rounds):
        await clients.pass_time(1000)
        for thread in threads:
            response = await thread.beat()
            assert response.error_code == 0, response


def group(clients: Clients) -> StreamsGroup:
    found = clients.groups.committed_group("g")
    assert isinstance(found, StreamsGroup)
    return found


def codes(response: StreamsGroupHeartbeatResponse) -> list[int]:
    return [status.status_code for status in response.status or ()]


def test_the_first_member_gets_all_tasks_and_the_second_its_share_when_the_first_has_given_it_up() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            first, second = Thread(clients, "m1"), Thread(clients, "m2")
            response = await first.join()
            assert (response.error_code, response.member_epoch, codes(response)) == (0, 2, [])
            assert first.active == {"0": [0, 1, 2, 3]}
            await second.join()
            assert second.active == {}
            await settle(clients, first, second)
            assert sorted(first.active["0"] + second.active["0"]) == [0, 1, 2, 3]
            assert len(first.active["0"]) == 2
            assert group(clients).state is State.STABLE

    run(story())


def test_a_new_group_waits_for_the_initial_rebalance_delay() -> None:
    async def story() -> None:
        async with Clients(None, TOPICS) as clients:
            thread = Thread(clients, "m1")
            response = await thread.join()
            assert (codes(response), thread.active) == ([5], {})
            await thread.beat()
            await clients.pass_time(3000)
            await thread.beat()
            assert thread.active == {"0": [0, 1, 2, 3]}

    run(story())


def test_standbys_go_to_other_processes_only() -> None:
    async def story() -> None:
        settings = {**AT_ONCE, "group.streams.num.standby.replicas": "1"}
        records = [*TOPICS, *topic("g-store-changelog", 4)]
        stateful = subtopology("lines", state_changelog_topics=[changelog("g-store-changelog")])
        async with Clients(settings, records) as clients:
            threads = [Thread(clients, f"m{number}", stateful) for number in range(2)]
            for thread in threads:
                await thread.join()
            await settle(clients, *threads)
            first, second = threads
            assert sorted(first.standby["0"]) == sorted(second.active["0"])
            assert sorted(second.standby["0"]) == sorted(first.active["0"])

    run(story())


def test_missing_source_topics_are_a_status_and_the_group_is_not_ready() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            thread = Thread(clients, "m1", subtopology("nowhere"))
            response = await thread.join()
            assert response.status == [
                StreamsGroupHeartbeatResponse.Status(status_code=1, status_detail="Source topics nowhere are missing.")
            ]
            assert group(clients).state is State.NOT_READY

    run(story())


def test_members_of_a_restarted_node_keep_their_tasks() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            first, second = Thread(clients, "m1"), Thread(clients, "m2")
            await first.join()
            await second.join()
            await settle(clients, first, second)
            before = group(clients)
            await clients.restart()
            assert group(clients) == before
            await settle(clients, first, second, rounds=2)
            assert group(clients) == before

    run(story())


def test_a_member_without_heartbeats_is_removed_and_an_empty_group_can_be_deleted() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            await Thread(clients, "m1").join()
            found = await clients.ask(DeleteGroupsRequest(groups_names=["g"]), 2)
            assert found.results[0].error_code == ErrorCode.NON_EMPTY_GROUP
            await clients.pass_time(45_000)
            assert group(clients).state is State.EMPTY
            found = await clients.ask(DeleteGroupsRequest(groups_names=["g"]), 2)
            assert found.results[0].error_code == 0
            assert clients.groups.committed_group("g") is None

    run(story())


def test_a_shutdown_of_the_application_reaches_all_members() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            first, second = Thread(clients, "m1"), Thread(clients, "m2")
            await first.join()
            await second.join()
            await first.leave(shutdown_application=True)
            response = await second.beat()
            assert 4 in codes(response)

    run(story())


def test_groups_of_other_types_and_streams_groups_do_not_mix() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            await Thread(clients, "m1").join()
            consumer = ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id="c",
                rebalance_timeout_ms=1000,
                subscribed_topic_names=["lines"],
                topic_partitions=[],
            )
            response = await clients.ask(consumer, 1)
            assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND
            joined = await clients.ask(
                JoinGroupRequest(
                    group_id="g",
                    session_timeout_ms=10_000,
                    protocol_type="consumer",
                    protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")],
                ),
                9,
            )
            assert joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            listed = await clients.ask(ListGroupsRequest(types_filter=["streams"]), 5)
            assert [(row.group_id, row.protocol_type, row.group_type) for row in listed.groups] == [
                ("g", "streams", "streams")
            ]

    run(story())


def test_a_description_has_topology_members_and_tasks() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, TOPICS) as clients:
            thread = Thread(clients, "m1")
            await thread.join()
            response = await clients.ask(StreamsGroupDescribeRequest(group_ids=["g", "none"]), 0)
            row, missing = response.groups
            assert (row.group_state, row.group_epoch, row.assignment_epoch) == ("Stable", 2, 2)
            assert row.topology.subtopologies[0].source_topics == ["lines"]
            assert row.members[0].assignment.active_tasks[0].partitions == [0, 1, 2, 3]
            assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND

    run(story())


def test_without_the_feature_the_requests_are_unsupported() -> None:
    async def story() -> None:
        async with Clients(AT_ONCE, topic("lines", 4)) as clients:
            response = await Thread(clients, "m1").join()
            assert response.error_code == ErrorCode.UNSUPPORTED_VERSION

    run(story())


def test_internal_topics_are_not_created_without_the_permission_to_create_them() -> None:
    async def story() -> None:
        rights = [
            allow("User:alice", AclOperation.READ, ResourceType.GROUP, "g"),
            allow("User:alice", AclOperation.DESCRIBE, ResourceType.TOPIC, "lines"),
            allow("User:alice", AclOperation.DESCRIBE, ResourceType.TOPIC, "g-store-changelog"),
        ]
        stateful = subtopology("lines", state_changelog_topics=[changelog("g-store-changelog")])
        async with Clients(AT_ONCE, [*TOPICS, *rights], authorizer=WITH_ACLS) as clients:
            response = await Thread(clients, "m1", stateful, principal=ALICE).join()
            assert [(each.status_code, each.status_detail) for each in response.status or ()] == [
                (
                    3,
                    "Internal topics are missing: g-store-changelog; Unauthorized to CREATE on topics g-store-changelog.",
                )
            ]

    run(story())


def test_a_topology_needs_the_permission_to_describe_its_topics() -> None:
    async def story() -> None:
        rights = [
            allow("User:alice", AclOperation.READ, ResourceType.GROUP, "g"),
            allow("User:alice", AclOperation.DESCRIBE, ResourceType.GROUP, "g"),
        ]
        async with Clients(AT_ONCE, [*TOPICS, *rights], authorizer=WITH_ACLS) as clients:
            response = await Thread(clients, "m1", principal=ALICE).join()
            assert response.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            await Thread(clients, "m1").join()
            shown = await clients.ask(StreamsGroupDescribeRequest(group_ids=["g"]), 0, principal=ALICE)
            assert shown.groups[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert shown.groups[0].topology is None

    run(story())
