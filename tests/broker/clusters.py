"""Three nodes in one process for tests of replication: what they have, what they agree on, and what clients see."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path

from barnabas.broker.node import Node
from barnabas.client import Consumer, Producer, TopicPartition
from barnabas.metadata.topics import Partition as PartitionState
from barnabas.replicas.partition import Partition
from barnabas.storage import Log
from barnabas.storage.checkpoints import EpochEntry
from barnabas.testing import AsyncCluster

TIMEOUT_S = 60.0
# Failures are noticed within a second or two.
QUICK = {
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "200",
    "replica.lag.time.max.ms": "1500",
    "replica.fetch.wait.max.ms": "200",
    # Longer than an event loop is late on a busy machine.
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1500",
}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():
            await asyncio.sleep(0.01)


def on_three(
    scenario: Callable[[AsyncCluster], Awaitable[None]],
    settings: Mapping[str, str] | None = None,
    *,
    racks: Sequence[str] = (),
) -> None:
    """Run a scenario on three nodes that have the topic `t` with three replicas."""

    async def main() -> None:
        async with AsyncCluster(3, config={**QUICK, **(settings or {})}, racks=racks) as cluster:
            await cluster.create_topic("t", 1, replication_factor=3)
            await scenario(cluster)

    asyncio.run(main())


async def stop_following(cluster: AsyncCluster, *nodes: int) -> None:
    for node_id in nodes:
        await cluster.nodes[node_id].replication.fetchers.stop()


def follow_again(cluster: AsyncCluster, *nodes: int) -> None:
    for node_id in nodes:
        fetchers = cluster.nodes[node_id].replication.fetchers
        fetchers.start()
        for partition in cluster.nodes[node_id].replicas:
            fetchers.changed(partition)


def state(cluster: AsyncCluster, topic: str = "t", index: int = 0) -> PartitionState:
    """The partition in the metadata of the node that knows most."""
    node = max(cluster.nodes.values(), key=lambda each: each.image.offset)
    found = node.image.topics.get(topic)
    assert found is not None, topic
    return found.partitions[index]


def replica(node: Node, topic: str = "t", index: int = 0) -> Partition:
    found = node.replicas.get(topic, index)
    assert found is not None, f"{topic}-{index}"
    return found


async def led(cluster: AsyncCluster, topic: str = "t", index: int = 0, *, other_than: int = -1) -> int:
    """Wait until the leader knows that it leads, and return its id."""
    found = -1

    def is_led() -> bool:
        nonlocal found
        found = state(cluster, topic, index).leader
        return (
            found not in (-1, other_than) and found in cluster.nodes and replica(cluster.nodes[found], topic).is_leader
        )

    await until(is_led)
    return found


async def in_sync(cluster: AsyncCluster, *nodes: int, topic: str = "t", index: int = 0) -> None:
    """Wait until exactly these nodes are in the ISR."""
    await until(lambda: set(state(cluster, topic, index).isr) == set(nodes))


async def produce(cluster: AsyncCluster, *values: bytes, topic: str = "t", **settings: str) -> list[int]:
    """Produce to partition 0 and return the offsets."""
    given = {"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "delivery.timeout.ms": "50000", **settings}
    given.setdefault("request.timeout.ms", "20000")
    async with Producer(given) as producer:
        sent = [await producer.send(topic, value, partition=0) for value in values]
        return [(await each).offset for each in sent]


async def consume(cluster: AsyncCluster, count: int, topic: str = "t", **settings: str) -> list[bytes | None]:
    """Return the values of partition 0 from its start."""
    given = {"bootstrap.servers": cluster.bootstrap_servers, "auto.offset.reset": "earliest", **settings}
    found: list[bytes | None] = []
    async with Consumer(given) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        async with asyncio.timeout(TIMEOUT_S):
            while len(found) < count:
                found += [record.value for record in await consumer.poll(500)]
    return found


async def caught_up(cluster: AsyncCluster, topic: str = "t", indexes: Iterable[int] = (0,)) -> None:
    """Wait until all replicas have the same end and the same high watermark."""

    def is_same() -> bool:
        for index in indexes:
            logs = [replica(node, topic, index) for node in cluster.nodes.values()]
            if any(each.opened_log is None for each in logs):
                return False
            if len({offset for each in logs for offset in (each.log_end_offset, each.high_watermark)}) != 1:
                return False
        return True

    await until(is_same)


def log_bytes(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob("*.log"))}


def epochs_of(log: Log) -> list[EpochEntry]:
    """The epochs that have records. A leader has its own from the start, and a follower from the first record."""
    return [entry for entry in log.epochs.entries if entry.start_offset < log.log_end_offset]


def assert_same_logs(cluster: AsyncCluster, topic: str = "t", indexes: Iterable[int] = (0,)) -> None:
    """Compare the logs of all replicas byte for byte, and their epochs and producers."""
    for index in indexes:
        logs = [replica(node, topic, index).log for node in cluster.nodes.values()]
        first, *others = logs
        for other in others:
            assert log_bytes(other.directory) == log_bytes(first.directory), f"{topic}-{index}"
            assert epochs_of(other) == epochs_of(first)
            assert other.active_producers() == first.active_producers()
            assert other.aborted_transactions(0, other.log_end_offset) == (
                first.aborted_transactions(0, first.log_end_offset)
            )
