"""The fetchers of a broker: as many for each leader as configured, and each partition with one of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from barnabas.client.connection import Connection
from barnabas.config import server
from barnabas.replicas.following.fetcher import Surroundings
from barnabas.replicas.following.fetchers import Fetchers
from barnabas.wire.records.metadata import PartitionChangeRecord
from tests.replicas.test_replicas import TOPIC, Broker, topic


async def refuse(broker_id: int, client_id: str) -> Connection:
    raise ConnectionRefusedError(f"{broker_id} is not there")


def test_partitions_are_distributed_and_follow_their_leaders(tmp_path: Path) -> None:
    count = [1]

    async def main() -> None:
        broker = Broker(tmp_path, *topic(partitions=6, replicas=(2, 1)))
        fetchers = Fetchers(
            Surroundings(
                1,
                lambda: server.load(None, {"num.replica.fetchers": str(count[0])}),
                lambda: 1,
                lambda: None,
                refuse,
                broker.replicas.truncate,
                broker.replicas.flush,
                lambda: broker.replicas.follower_throttle,
            )
        )
        for partition in broker.replicas:
            fetchers.changed(partition)
        assert fetchers.counts == {}  # not before it starts
        fetchers.start()
        assert fetchers.counts == {(2, 0): 6}
        count[0] = 3
        fetchers.resize()
        assert fetchers.counts == {(2, 0): 2, (2, 1): 2, (2, 2): 2}
        for leader, left in ((1, 5), (3, 5)):
            change = PartitionChangeRecord(topic_id=TOPIC, partition_id=0, leader=leader, isr=[1, 2])
            broker.change(change)
            fetchers.changed(broker.replicas.partition("t", 0))
            assert sum(found for (each, _), found in fetchers.counts.items() if each == 2) == left
        assert sum(found for (each, _), found in fetchers.counts.items() if each == 3) == 1
        await asyncio.sleep(0.05)  # connections are refused, and tried again
        await fetchers.stop()
        assert fetchers.counts == {}

    asyncio.run(main())
