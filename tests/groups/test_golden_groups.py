"""The groups that Apache Kafka 4.3.1 left in its log, and what it answered about them, compared with ours."""

from __future__ import annotations

import asyncio
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from barnabas.batches import iterate_batches
from barnabas.groups.image import GroupMetadata, GroupsImage
from tests.broker.harness import MemoryNode
from tests.broker.topic_captures import AUTHORIZER, PROPERTIES, Capture, captures, image_before, params
from tests.groups.harness import Clients
from tests.metadata import golden
from tests.replicated.memory_log import MemoryLog

DATA = Path(__file__).parent / "data"
OFFSET_OF_3 = 2000  # of the metadata, before brokers were stopped for the first time
CLASSIC_GROUPS = ("g-hand", "g-simple", "g-classic", "g-txn", "g-empty")


@cache
def batches(partition_id: int) -> tuple[bytes, ...]:
    data = gzip.decompress((DATA / f"consumer_offsets_{partition_id}.log.gz").read_bytes())
    return tuple(data[position : position + header.size_in_bytes] for position, header in iterate_batches(data))


def golden_node(node_id: int, offset: int = OFFSET_OF_3, *, with_logs: bool = True) -> MemoryNode:
    properties = {**PROPERTIES, "node.id": str(node_id)}
    node = MemoryNode(properties, image=image_before(offset), authorizer=AUTHORIZER)
    if with_logs:
        node.memory_groups.logs.update({partition_id: MemoryLog(batches(partition_id)) for partition_id in range(3)})
    return node


def images() -> dict[str, GroupsImage]:
    """The image that has each group, of all nodes."""
    found = {}

    async def load(node_id: int) -> None:
        async with Clients(node=golden_node(node_id)) as clients:
            for shard in clients.groups.shards.all():
                found.update(dict.fromkeys(shard.machine.image.groups, shard.machine.image))

    for node_id in (1, 2, 3, 4):
        asyncio.run(load(node_id))
    return found


def test_the_groups_of_kafka_s_log_are_those_that_kafka_listed_with_their_offsets() -> None:
    found = images()
    listed = json.loads((DATA / "groups.json").read_text())
    assert set(found) == set(listed)
    for group_id, row in listed.items():
        group = found[group_id].groups[group_id]
        assert (group.protocol_type or "") == row["protocolType"]
        assert isinstance(group, GroupMetadata) == (group_id in CLASSIC_GROUPS)
        offsets = {
            (topic, partition): (committed.offset, committed.leader_epoch, committed.metadata)
            for topic, partitions in found[group_id].offsets.get(group_id, {}).items()
            for partition, committed in partitions.items()
        }
        assert offsets == {
            (topic["name"], each["partitionIndex"]): (
                each["committedOffset"],
                each["committedLeaderEpoch"],
                each["metadata"],
            )
            for topic in row["offsets"]
            for each in topic["partitions"]
        }


def test_no_transaction_is_open_in_kafka_s_log() -> None:
    assert not any(image.pending or image.open_transactions for image in images().values())


@pytest.fixture(scope="module")
def nodes() -> dict[int, MemoryNode]:
    return {node_id: golden_node(node_id) for node_id in (1, 2, 3, 4)}


def steady(api: str) -> list[Any]:
    """Captures that do not hang on who was a member of what then."""
    return [each for each in params(api) if each.values[0].stability != "volatile"]


@pytest.mark.parametrize(
    "capture",
    [
        *steady("FindCoordinator"),
        *steady("OffsetFetch"),
        *steady("OffsetDelete"),
        *steady("DescribeGroups"),
        *params("ShareGroupDescribe"),
    ],
)
def test_kafka_s_answers(capture: Capture, nodes: dict[int, MemoryNode]) -> None:
    assert capture.ask(nodes[capture.node]) == capture.answer


@pytest.mark.parametrize("capture", steady("OffsetCommit"))
def test_kafka_s_answers_to_commits(capture: Capture) -> None:
    assert capture.ask(golden_node(capture.node)) == capture.answer


@pytest.mark.parametrize("capture", params("ListGroups"))
def test_kafka_s_lists_of_groups(capture: Capture, nodes: dict[int, MemoryNode]) -> None:
    """Ours are sorted, and are of the end, when nobody was a member any more."""
    if capture.phase == "5-final":
        offset = golden.expected()["metadata_offset_before"] + 1
        ours = capture.decode(capture.ask(golden_node(capture.node, offset)))
    else:
        ours = capture.decode(capture.ask(nodes[capture.node]))
    theirs = capture.response
    names = [group.group_id for group in ours.groups]
    assert names == sorted(names)
    listed = {group.group_id: group for group in ours.groups}
    for group in theirs.groups:
        if capture.phase != "5-final":
            group.group_state = listed[group.group_id].group_state
        assert group == listed.pop(group.group_id)
    came_later = {"g-hand", "g-simple"} if capture.phase == "3-data" else set()
    assert set(listed) <= came_later | ({"g-classic", "g-consumer"} if "states" in capture.case else set())


STORY = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup")


def stories() -> list[list[Capture]]:
    """One life of a member after another: it joins (from version 4 on twice), syncs, sends heartbeats, leaves."""
    joins: list[list[Capture]] = []
    for capture in captures("JoinGroup"):
        if capture.case == "first join":
            joins.append([capture])
        elif capture.case == "second join":
            joins[-1].append(capture)
    rest = [each for api in STORY[1:] for each in captures(api)]
    return [
        [*story, *(each for each in rest if each.case.endswith(f"after join v{story[0].version}"))] for story in joins
    ]


def test_kafka_s_answers_to_ten_lives_of_a_member() -> None:
    """The same bytes, but for the member id, which is random; in all versions, each generation after the one before."""

    async def run() -> None:
        async with Clients(node=golden_node(2, with_logs=False)) as clients:
            for story in stories():
                await live(clients, story)

    async def live(clients: Clients, story: list[Capture]) -> None:
        theirs = story[0].response.member_id.encode()
        ours = theirs
        for capture in story:
            asking = asyncio.get_running_loop().create_task(
                clients.ask_frame(bytes.fromhex(capture.request_hex).replace(theirs, ours))
            )
            await clients.pass_time(3000 if capture.api == "JoinGroup" else 0)
            answer = await asking
            if capture is story[0]:
                ours = capture.decode(answer).member_id.encode()
                assert len(ours) == len(theirs)
            assert answer.replace(ours, theirs) == capture.answer, f"{capture.api} {capture}"

    asyncio.run(run())


@pytest.mark.parametrize("capture", [each for each in params("JoinGroup") if each.values[0].stability == "exact"])
def test_kafka_s_answers_to_joins_that_fail(capture: Capture, nodes: dict[int, MemoryNode]) -> None:
    assert capture.ask(nodes[capture.node]) == capture.answer
