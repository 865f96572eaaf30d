"""`barnabas groups` and groups that are not consumer groups: a streams group on a node of barnabas."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import Admin, StreamsGroupDescription, TaskId, TopicPartition, coordinator
from barnabas.testing import Broker
from barnabas.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from tests import documents
from tests.client.admin.group_scenes import commit, fill
from tests.command_line import invoke

GROUP = "word-count"
AT_ONCE = {"group.streams.initial.rebalance.delay.ms": 0, "group.streams.assignment.interval.ms": 0}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"words": 2, "stock": 1}, config=AT_ONCE) as broker:
        fill(broker.bootstrap_servers, "words", 0, 5)
        yield broker


async def beat(admin: Admin, epoch: int, group: str = GROUP, **fields: Any) -> StreamsGroupHeartbeatResponse:
    request = StreamsGroupHeartbeatRequest(group_id=group, member_id="one", member_epoch=epoch, **fields)
    response: StreamsGroupHeartbeatResponse = await admin.cluster.call(request, coordinator(group))
    assert response.error_code == 0, response
    return response


def subtopology(number: int, *sources: str, **fields: Any) -> StreamsGroupHeartbeatRequest.Subtopology:
    """A part of a topology. Of internal topics that it reads or writes, the names are enough."""
    for name in ("repartition_source_topics", "state_changelog_topics"):
        fields[name] = [StreamsGroupHeartbeatRequest.TopicInfo(name=each) for each in fields.get(name, ())]
    kind = StreamsGroupHeartbeatRequest.Subtopology
    return kind(subtopology_id=str(number), source_topics=list(sources), **fields)


WORDS = (subtopology(0, "words"),)


async def join(
    admin: Admin, group: str = GROUP, parts: Sequence[StreamsGroupHeartbeatRequest.Subtopology] = WORDS
) -> None:
    """A member of a streams group that has all tasks."""
    topology = StreamsGroupHeartbeatRequest.Topology(epoch=1, subtopologies=list(parts))
    fields = {"process_id": "p", "rebalance_timeout_ms": 60_000, "topology": topology}
    none: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    response = await beat(admin, 0, group, **none, **fields)
    async with asyncio.timeout(30):
        while not response.active_tasks:
            response = await beat(admin, response.member_epoch, group, **none)
            await asyncio.sleep(0.02)
    tasks = [
        StreamsGroupHeartbeatRequest.TaskIds(subtopology_id=each.subtopology_id, partitions=each.partitions)
        for each in response.active_tasks
    ]
    await beat(admin, response.member_epoch, group, **{**none, "active_tasks": tasks})


def counting(group: str) -> list[StreamsGroupHeartbeatRequest.Subtopology]:
    """A topology with a repartition topic and a store."""
    repartition, changelog = f"{group}-by-word-repartition", f"{group}-counts-changelog"
    return [
        subtopology(0, "words", repartition_sink_topics=[repartition]),
        subtopology(1, repartition_source_topics=[repartition], state_changelog_topics=[changelog]),
    ]


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


def topics_of(broker: Broker) -> set[str]:
    rows = invoke("topics", "list", "--bootstrap-server", broker.bootstrap_servers, "-o", "json", code=0).json
    return {row["name"] for row in rows}


def test_a_reset_of_all_topics_leaves_the_internal_topics_of_an_application(broker: Broker) -> None:
    server = ("--bootstrap-server", broker.bootstrap_servers)
    repartition = "count-by-word-repartition"

    async def used() -> None:
        async with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
            await join(admin, "count", counting("count"))
            await beat(admin, -1, "count")
            offsets = {TopicPartition("words", 0): 4, TopicPartition("words", 1): 0, TopicPartition(repartition, 0): 0}
            assert set((await admin.alter_consumer_group_offsets("count", offsets)).values()) == {None}

    asyncio.run(used())
    done = invoke("groups", "reset", "count", "--all-topics", "--to-earliest", "--yes", *server, "-o", "json", code=0)
    assert [(each["topic"], each["oldOffset"], each["newOffset"]) for each in done.json] == [
        ("words", 4, 0),
        ("words", 0, 0),
    ]
    assert "the state of the application stay as they are" in done.stderr
    named = invoke("groups", "reset", "count", "--topic", repartition, "--to-latest", "--yes", *server, "-o", "json")
    assert {each["topic"] for each in named.json} == {repartition}
    tool = ("kafka-streams-groups", *server, "--group", "count")
    both = {repartition, "count-counts-changelog"}
    assert both <= topics_of(broker)
    invoke(*tool, "--reset-offsets", "--all-input-topics", "--to-earliest", "--execute", code=0)
    assert both <= topics_of(broker)
    said = invoke(*tool, "--delete", "--delete-all-internal-topics", code=0).stdout
    assert "Deletion of associated internal topics of the streams groups ('count') was successful." in said
    assert both.isdisjoint(topics_of(broker))


def test_the_guide_to_streams_groups_works(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its commands and its code, in their order, with an application that counts words; its instances stop for the resets."""
    monkeypatch.chdir(tmp_path)
    page = (documents.ROOT / "docs" / "streams-groups.md").read_text()
    shown, standbys, anew, replaced = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    group, server = "word-count", broker.bootstrap_servers

    def run(commands: str) -> list[str]:
        asks = ("barnabas groups delete", "barnabas groups reset")
        lines = [f"{line} --yes" if line.startswith(asks) else line for line in commands.splitlines()]
        return [documents.run(documents.Example(line), broker) for line in lines]

    async def with_members(parts: Sequence[StreamsGroupHeartbeatRequest.Subtopology], stays: bool) -> None:
        async with Admin({"bootstrap.servers": server}) as admin:
            await join(admin, group, parts)
            if not stays:
                await beat(admin, -1, group)

    asyncio.run(with_members(counting(group), stays=True))
    state, members, lag, tasks = run(shown)
    assert "Stable" in state
    assert "words:0,1" in members
    assert f"{group}-by-word-repartition" in lag
    assert "ACTIVE: 0:[0,1]; 1:[0,1]; " in tasks
    exec(compile(code.replace("localhost:9092", server), "docs/streams-groups.md", "exec"), {"__name__": "guide"})
    assert f"Stable ['{group}-counts-changelog']" in capsys.readouterr().out
    run(standbys)
    asyncio.run(with_members(counting(group), stays=False))
    commit(server, group, {("words", 0): 3})
    run(anew)
    assert topics_of(broker).isdisjoint({f"{group}-by-word-repartition", f"{group}-counts-changelog"})
    commit(server, group, {("words", 0): 4})
    run(replaced)
    (row,) = invoke("groups", "state", group, "--bootstrap-server", server, "-o", "json", code=0).json
    assert row["type"] == "Classic"
    asyncio.run(with_members([subtopology(0, "words"), subtopology(1, "stock")], stays=False))
    shown_again = invoke("groups", "describe", group, "--bootstrap-server", server, "-o", "json", code=0).json
    offsets = {(each["topic"], each["partition"]): each["currentOffset"] for each in shown_again}
    assert offsets["words", 0] == 4
    invoke("groups", "delete", group, "--yes", "--bootstrap-server", server, code=0)


def test_offsets_of_a_share_group_cannot_be_copied(broker: Broker) -> None:
    server = ("--bootstrap-server", broker.bootstrap_servers)
    tool = ("kafka-share-groups", *server, "--group", "shares", "--topic", "stock")
    invoke(*tool, "--reset-offsets", "--to-latest", "--execute", code=0)
    commit(broker.bootstrap_servers, "plain", {("stock", 0): 0})
    for source, target in (("shares", "new"), ("plain", "shares")):
        refused = invoke("groups", "copy", source, target, "--yes", *server, code=1)
        assert "group shares: is a share group, which has no committed offsets" in refused.stderr
    invoke("groups", "delete", "shares", "plain", "--yes", *server, code=0)


def test_types_are_shown_together(broker: Broker) -> None:
    server = ("--bootstrap-server", broker.bootstrap_servers)
    commit(broker.bootstrap_servers, "plain", {("stock", 0): 0})
    rows = invoke("groups", "state", "--all", *server, "-o", "json", code=0).json
    assert {row["groupId"]: row["type"] for row in rows}["plain"] == "Classic"
    missing = invoke("groups", "describe", "nobody", *server, code=1)
    assert "GROUP_ID_NOT_FOUND" in missing.stderr
