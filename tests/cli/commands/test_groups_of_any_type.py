"""`barnabas groups` and groups that are not consumer groups: a streams group on a node of barnabas."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.client import Admin, StreamsGroupDescription, TaskId, TopicPartition, coordinator
from barnabas.testing import Broker
from barnabas.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from tests.client.admin.group_scenes import commit, fill
from tests.command_line import invoke

GROUP = "word-count"
AT_ONCE = {"group.streams.initial.rebalance.delay.ms": 0, "group.streams.assignment.interval.ms": 0}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"words": 2, "stock": 1}, config=AT_ONCE) as broker:
        fill(broker.bootstrap_servers, "words", 0, 5)
        yield broker


async def beat(admin: Admin, epoch: int, **fields: Any) -> StreamsGroupHeartbeatResponse:
    request = StreamsGroupHeartbeatRequest(group_id=GROUP, member_id="one", member_epoch=epoch, **fields)
    response: StreamsGroupHeartbeatResponse = await admin.cluster.call(request, coordinator(GROUP))
    assert response.error_code == 0, response
    return response


async def join(admin: Admin) -> None:
    """A member of a streams group that has all tasks."""
    parts = [StreamsGroupHeartbeatRequest.Subtopology(subtopology_id="0", source_topics=["words"])]
    topology = StreamsGroupHeartbeatRequest.Topology(epoch=1, subtopologies=parts)
    fields = {"process_id": "p", "rebalance_timeout_ms": 60_000, "topology": topology}
    response = await beat(admin, 0, active_tasks=[], standby_tasks=[], warmup_tasks=[], **fields)
    async with asyncio.timeout(30):
        while not response.active_tasks:
            response = await beat(admin, response.member_epoch, active_tasks=[], standby_tasks=[], warmup_tasks=[])
            await asyncio.sleep(0.02)
    tasks = [StreamsGroupHeartbeatRequest.TaskIds(subtopology_id="0", partitions=[0, 1])]
    await beat(admin, response.member_epoch, active_tasks=tasks, standby_tasks=[], warmup_tasks=[])


def test_a_streams_group_is_shown_reset_and_deleted(broker: Broker) -> None:
    server = ("--bootstrap-server", broker.bootstrap_servers)

    async def described() -> StreamsGroupDescription:
        async with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
            await join(admin)
            found = await admin.describe_streams_groups([GROUP, "nobody"])
            assert str(found["nobody"]).startswith("GROUP_ID_NOT_FOUND")
            group = found[GROUP]
            assert isinstance(group, StreamsGroupDescription)
            return group

    group = asyncio.run(described())
    assert (group.state, group.topology_epoch) == ("Stable", 1)
    (member,) = group.members
    assert member.tasks.active == (TaskId("0", 0), TaskId("0", 1))
    assert group.partitions(member.tasks.active) == [TopicPartition("words", 0), TopicPartition("words", 1)]

    (listed,) = invoke("groups", "list", *server, "-o", "json").json
    assert (listed["groupId"], listed["type"], listed["state"]) == (GROUP, "Streams", "Stable")
    shown = invoke("groups", "describe", GROUP, *server, "-o", "json", code=0).json
    assert [(each["partition"], each["logEndOffset"], each["memberId"]) for each in shown] == [
        (0, 5, "one"),
        (1, 0, "one"),
    ]
    (row,) = invoke("groups", "members", "--all", *server, "-o", "json", code=0).json
    assert row["assignment"] == [{"topic": "words", "partitions": [0, 1]}]
    refused = invoke("groups", "reset", GROUP, "--topic", "words", "--to-latest", "--yes", *server, code=1)
    assert "is Stable, with 1 member" in refused.stderr
    assert "NON_EMPTY_GROUP" in invoke("groups", "delete", GROUP, "--yes", *server, code=1).output

    async def leave() -> None:
        async with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
            await beat(admin, -1)

    asyncio.run(leave())
    invoke("groups", "reset", GROUP, "--topic", "words", "--to-latest", "--yes", *server, code=0)
    shown = invoke("groups", "describe", GROUP, *server, "-o", "json", code=0).json
    assert [(each["currentOffset"], each["lag"]) for each in shown] == [(5, 0), (0, 0)]
    invoke("groups", "delete-offsets", GROUP, "--topic", "words:1", "--yes", *server, code=0)
    shown = invoke("groups", "describe", GROUP, *server, "-o", "json", code=0).json
    assert [each["partition"] for each in shown] == [0]
    invoke("groups", "delete", GROUP, "--yes", *server, code=0)
    assert invoke("groups", "list", *server, "-o", "json").json == []


def test_types_are_shown_together(broker: Broker) -> None:
    server = ("--bootstrap-server", broker.bootstrap_servers)
    commit(broker.bootstrap_servers, "plain", {("stock", 0): 0})
    rows = invoke("groups", "state", "--all", *server, "-o", "json", code=0).json
    assert {row["groupId"]: row["type"] for row in rows}["plain"] == "Classic"
    missing = invoke("groups", "describe", "nobody", *server, code=1)
    assert "GROUP_ID_NOT_FOUND" in missing.stderr
