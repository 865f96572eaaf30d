"""The persister of a broker reaches the share coordinators on other brokers."""

from __future__ import annotations

import asyncio

from barnabas.testing.cluster import AsyncCluster
from barnabas.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from barnabas.wire.messages.read_share_group_state import ReadShareGroupStateRequest


def test_every_broker_reads_what_another_has_written() -> None:
    async def main() -> None:
        async with AsyncCluster(nodes=3, topics={"t": 4}) as cluster:
            first, *others = cluster.nodes.values()
            topic = first.image.topics.get("t")
            assert topic is not None
            kind = InitializeShareGroupStateRequest
            partitions = [kind.PartitionData(partition=index, state_epoch=1, start_offset=index) for index in range(4)]
            topics = [kind.InitializeStateData(topic_id=topic.topic_id, partitions=partitions)]
            response = await first.persister.initialize(kind(group_id="g", topics=topics))
            assert [row.error_code for row in response.results[0].partitions] == [0] * 4
            read = ReadShareGroupStateRequest
            rows = [read.PartitionData(partition=index, leader_epoch=0) for index in range(4)]
            wanted = read(group_id="g", topics=[read.ReadStateData(topic_id=topic.topic_id, partitions=rows)])
            for node in others:
                found = (await node.persister.read(wanted)).results[0].partitions
                assert [(row.error_code, row.start_offset) for row in found] == [(0, index) for index in range(4)]

    asyncio.run(main())
