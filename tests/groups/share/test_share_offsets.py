"""Offsets of share groups: described with their lag, altered, deleted, and deleted with their group. On a whole broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from barnabas.broker.node import Node
from barnabas.client import Producer
from barnabas.testing import AsyncBroker
from barnabas.wire import ErrorCode, Message
from barnabas.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from barnabas.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.share_group_describe import ShareGroupDescribeRequest
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest
from tests.broker.clients import ask

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.share.assignment.interval.ms": "0",
}
Story = Callable[["Asker"], Coroutine[Any, Any, None]]


class Asker:
    """Sends requests about the group g to a broker."""

    def __init__(self, node: Node, broker: AsyncBroker) -> None:
        self.node = node
        self.broker = broker

    async def ask(self, request: Message, version: int) -> Any:
        return await ask(self.node.addresses["PLAINTEXT"], request, version)

    async def beat(self, epoch: int, topics: list[str] | None = None) -> Any:
        request = ShareGroupHeartbeatRequest(
            group_id="g", member_id="m", member_epoch=epoch, subscribed_topic_names=topics
        )
        return await self.ask(request, 1)

    async def join(self) -> None:
        """Join until there are partitions, and leave."""
        epoch, topics = 0, ["t"]
        while True:
            response = await self.beat(epoch, topics)
            epoch = response.member_epoch
            if response.error_code == 0 and response.assignment.topic_partitions:
                break
            await asyncio.sleep(0.01)

    async def alter(self, *rows: tuple[int, int], name: str = "t", group_id: str = "g") -> Any:
        kind = AlterShareGroupOffsetsRequest
        partitions = [
            kind.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
            for index, offset in rows
        ]
        topic = kind.AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=partitions)
        return await self.ask(kind(group_id=group_id, topics=[topic]), 0)

    async def described(self, *, group_id: str = "g", version: int = 1) -> dict[int, tuple[int, int]]:
        """The offset and the lag of the partitions of the topic."""
        kind = DescribeShareGroupOffsetsRequest
        asked = kind.DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
        group = (await self.ask(kind(groups=[asked]), version)).groups[0]
        assert group.error_code == 0
        return {row.partition_index: (row.start_offset, row.lag) for topic in group.topics for row in topic.partitions}

    async def delete(self, *names: str) -> Any:
        kind = DeleteShareGroupOffsetsRequest
        topics = [kind.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
        return await self.ask(kind(group_id="g", topics=topics), 0)


def run(story: Story) -> None:
    async def main() -> None:
        async with AsyncBroker(topics={"t": 2}, config=SETTINGS) as broker:
            asker = Asker(broker._running(), broker)
            find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])  # creates the topic
            async with asyncio.timeout(60):
                while (await asker.ask(find, 6)).coordinators[0].error_code:
                    await asyncio.sleep(0.05)
                await story(asker)

    asyncio.run(main())


def test_altered_offsets_are_described_with_their_lag_and_deleted() -> None:
    async def story(asker: Asker) -> None:
        async with Producer({"bootstrap.servers": asker.broker.bootstrap_servers}) as producer:
            for number in range(5):
                await producer.send("t", b"record %d" % number, partition=0)
            await producer.flush()
        response = await asker.alter((0, 2), (7, 1))
        codes = [row.error_code for row in response.responses[0].partitions]
        assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert await asker.described() == {0: (2, 3)}
        assert await asker.described(version=0) == {0: (2, -1)}
        rows = (await asker.delete("t", "nowhere")).responses
        assert [(row.topic_name, row.error_code) for row in rows] == [
            ("t", 0),
            ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        assert await asker.described() == {}
        assert (await asker.delete("t")).responses[0].error_message == "There is no offset information to delete."

    run(story)


def test_offsets_of_a_group_with_members_stay() -> None:
    async def story(asker: Asker) -> None:
        await asker.join()
        for refused in (await asker.alter((0, 2)), await asker.delete("t")):
            assert (refused.error_code, refused.error_message) == (ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
        deleted = await asker.ask(DeleteGroupsRequest(groups_names=["g"]), 2)
        assert deleted.results[0].error_code == ErrorCode.NON_EMPTY_GROUP
        assert set(await asker.described()) == {0, 1}

    run(story)


def test_a_deleted_group_leaves_nothing_at_the_share_coordinator() -> None:
    async def story(asker: Asker) -> None:
        await asker.join()
        await asker.beat(-1)
        states = [machine.image.states for machine in asker.node.share_state.machines.loaded()]
        assert sum(map(len, states)) == 2
        deleted = await asker.ask(DeleteGroupsRequest(groups_names=["g", "other"]), 2)
        assert [(row.group_id, row.error_code) for row in deleted.results] == [
            ("g", 0),
            ("other", ErrorCode.GROUP_ID_NOT_FOUND),
        ]
        states = [machine.image.states for machine in asker.node.share_state.machines.loaded()]
        assert sum(map(len, states)) == 0
        described = await asker.ask(ShareGroupDescribeRequest(group_ids=["g"]), 1)
        assert described.groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND

    run(story)


def test_what_does_not_exist_and_the_version_without_share_groups() -> None:
    async def story(asker: Asker) -> None:
        assert (await asker.delete("t")).error_code == ErrorCode.GROUP_ID_NOT_FOUND
        response = await asker.alter((0, 1), name="nowhere")
        assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await asker.described(group_id="never") == {}
        assert (await asker.alter((0, 1), group_id="")).error_code == ErrorCode.INVALID_GROUP_ID
        update = UpdateFeaturesRequest.FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)
        await asker.ask(UpdateFeaturesRequest(timeout_ms=30_000, feature_updates=[update]), 1)
        assert (await asker.delete("t")).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert (await asker.alter((0, 1))).error_code == ErrorCode.UNSUPPORTED_VERSION
        kind = DescribeShareGroupOffsetsRequest
        asked = kind.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)
        assert (await asker.ask(kind(groups=[asked]), 1)).groups[0].error_code == ErrorCode.UNSUPPORTED_VERSION

    run(story)
