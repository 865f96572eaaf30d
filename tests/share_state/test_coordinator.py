"""A broker keeps the state of share partitions, also over a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from barnabas.broker.node import Node
from barnabas.config import server
from barnabas.share_state.state import TOPIC
from barnabas.wire import ErrorCode, Uuid
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from barnabas.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from barnabas.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from barnabas.wire.messages.write_share_group_state import WriteShareGroupStateRequest
from tests.broker.clients import ask


async def started(tmp_path: Path, **settings: str) -> Node:
    text = (
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.bootstrap.servers=127.0.0.1:9093\n"
        f"listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\nlog.dirs={tmp_path}/data\n"
        "share.coordinator.state.topic.num.partitions=1\nshare.coordinator.state.topic.replication.factor=1\n"
        "share.coordinator.state.topic.min.isr=1\n"
    )
    node = Node(server.load(text + "".join(f"{name}={value}\n" for name, value in settings.items())))
    await node.start()
    if node.image.topics.get("t") is None:
        topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=2, replication_factor=1)
        await ask(node.addresses["PLAINTEXT"], CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
    return node


def topic_id(node: Node) -> Uuid:
    topic = node.image.topics.get("t")
    assert topic is not None
    return topic.topic_id


async def initialize(node: Node, state_epoch: int = 1, start_offset: int = 5) -> int:
    kind = InitializeShareGroupStateRequest
    partition = kind.PartitionData(partition=0, state_epoch=state_epoch, start_offset=start_offset)
    topics = [kind.InitializeStateData(topic_id=topic_id(node), partitions=[partition])]
    response = await node.persister.initialize(kind(group_id="g", topics=topics))
    return response.results[0].partitions[0].error_code


async def write(node: Node, first: int, last: int, *, state_epoch: int = 1, leader_epoch: int = 0) -> int:
    kind = WriteShareGroupStateRequest
    states = [kind.StateBatch(first_offset=first, last_offset=last, delivery_state=2, delivery_count=1)]
    partition = kind.PartitionData(
        partition=0, state_epoch=state_epoch, leader_epoch=leader_epoch, start_offset=-1, state_batches=states
    )
    topics = [kind.WriteStateData(topic_id=topic_id(node), partitions=[partition])]
    response = await node.persister.write(kind(group_id="g", topics=topics))
    return response.results[0].partitions[0].error_code


async def read(node: Node, leader_epoch: int = 0) -> Any:
    kind = ReadShareGroupStateRequest
    topics = [kind.ReadStateData(topic_id=topic_id(node), partitions=[kind.PartitionData(leader_epoch=leader_epoch)])]
    return (await node.persister.read(kind(group_id="g", topics=topics))).results[0].partitions[0]


def test_states_are_kept_over_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        node = await started(tmp_path)
        assert (await read(node)).error_code == ErrorCode.INVALID_REQUEST  # it is not initialized
        assert await initialize(node) == 0
        assert await write(node, 5, 7) == 0
        assert await write(node, 8, 9) == 0
        await node.stop()
        node = await started(tmp_path)
        try:
            row = await read(node)
            assert (row.error_code, row.state_epoch, row.start_offset) == (0, 1, 5)
            assert [(each.first_offset, each.last_offset) for each in row.state_batches] == [(5, 9)]
        finally:
            await node.stop()

    asyncio.run(main())


def test_older_leaders_and_states_are_fenced(tmp_path: Path) -> None:
    async def main() -> None:
        node = await started(tmp_path)
        try:
            await initialize(node, state_epoch=3)
            assert (await read(node, leader_epoch=2)).error_code == 0
            assert (await read(node, leader_epoch=1)).error_code == ErrorCode.FENCED_LEADER_EPOCH
            assert await write(node, 5, 5, state_epoch=3, leader_epoch=1) == ErrorCode.FENCED_LEADER_EPOCH
            assert await write(node, 5, 5, state_epoch=2, leader_epoch=2) == ErrorCode.FENCED_STATE_EPOCH
            assert await initialize(node, state_epoch=2) == ErrorCode.FENCED_STATE_EPOCH
        finally:
            await node.stop()

    asyncio.run(main())


def test_replaced_records_are_deleted_and_a_deleted_state_is_gone(tmp_path: Path) -> None:
    async def main() -> None:
        limit = {"share.coordinator.snapshot.update.records.per.snapshot": "3"}
        node = await started(tmp_path, **limit)
        try:
            await initialize(node)
            for offset in range(5, 9):  # three updates, and a snapshot
                assert await write(node, offset, offset) == 0
            await node.share_state.prune()
            assert node.replicas.leader(TOPIC, 0).log_start_offset == 4
            summary = ReadShareGroupStateSummaryRequest
            topics = [summary.ReadStateSummaryData(topic_id=topic_id(node), partitions=[summary.PartitionData()])]
            asked = summary(group_id="g", topics=topics)
            assert (await node.persister.read_summary(asked)).results[0].partitions[0].start_offset == 5
            delete = DeleteShareGroupStateRequest
            gone = [delete.DeleteStateData(topic_id=topic_id(node), partitions=[delete.PartitionData()])]
            await node.persister.delete(delete(group_id="g", topics=gone))
            assert (await node.persister.read_summary(asked)).results[0].partitions[0].start_offset == -1
        finally:
            await node.stop()

    asyncio.run(main())


def test_the_state_of_a_deleted_topic_is_deleted(tmp_path: Path) -> None:
    async def main() -> None:
        node = await started(tmp_path)
        try:
            await initialize(node)
            machine = node.share_state.machines.machine(0)
            assert len(machine.image.states) == 1
            await ask(node.addresses["PLAINTEXT"], DeleteTopicsRequest(topic_names=["t"], timeout_ms=10_000), 5)
            async with asyncio.timeout(30):
                while machine.image.states:
                    await asyncio.sleep(0.01)
        finally:
            await node.stop()

    asyncio.run(main())


def test_a_share_partition_that_nobody_writes_to_gets_one_snapshot(tmp_path: Path) -> None:
    async def main() -> None:
        node = await started(tmp_path, **{"share.coordinator.cold.partition.snapshot.interval.ms": "1"})
        try:
            await initialize(node)
            machine = node.share_state.machines.machine(0)
            async with asyncio.timeout(30):
                while not all(state.snapshot_epoch for state in machine.image.states.values()):  # its timer does it too
                    await asyncio.sleep(0.005)
                    await node.share_state.snapshot_cold()
            (again,) = machine.image.states.values()
            assert again.snapshot_epoch == 1 and again.write_timestamp_ms > again.create_timestamp_ms
            await asyncio.sleep(0.01)
            await node.share_state.snapshot_cold()
            assert machine.log.log_end_offset == 2
        finally:
            await node.stop()

    asyncio.run(main())
