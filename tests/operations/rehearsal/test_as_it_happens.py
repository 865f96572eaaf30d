"""A rehearsal says what then really happens to three nodes: who leads, who is in sync, and which records are written."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from barnabas.broker.faults.disk import disks
from barnabas.client import Admin, Producer
from barnabas.client.cluster import Cluster as Client
from barnabas.client.metadata_log import LogSnapshot, read_metadata_log
from barnabas.metadata.image import MetadataImage
from barnabas.operations.metadata_image import read_image, records_of
from barnabas.operations.rehearsal.happenings import (
    DeleteTopics,
    FailLogDir,
    Happening,
    Kill,
    KillRack,
    Reassign,
    Start,
    StartRack,
    Stop,
    Unregister,
)
from barnabas.operations.rehearsal.live import look_around
from barnabas.operations.rehearsal.rehearse import Rehearsal, Scene, rehearse
from barnabas.testing import AsyncCluster
from barnabas.wire import Message
from tests.broker.clusters import QUICK, TIMEOUT_S
from tests.broker.test_log_dirs_of_clusters import PARTITIONS, two_dirs

Really = Callable[[AsyncCluster], Awaitable[None]]


async def scene_of(cluster: AsyncCluster) -> Scene:
    async with Client({"bootstrap.controllers": cluster.bootstrap_controllers}) as client:
        image = await read_image(client)
    async with Client({"bootstrap.servers": cluster.bootstrap_servers}) as client:
        around = await look_around(client)
    assert around.warnings == []
    assert around.sizes is not None
    return Scene(image, around.config, around.voters, around.sizes)


def state(image: MetadataImage) -> dict[object, object]:
    """What a rehearsal promises. The order of an ISR follows from who is faster."""
    found: dict[object, object] = {
        (topic.name, index): (
            *(p.leader, p.replicas, set(p.isr), p.elr, p.last_known_elr, p.adding_replicas, p.removing_replicas),
            p.leader_recovery_state,
        )
        for topic in image.topics.by_id.values()
        for index, p in enumerate(topic.partitions)
    }
    found.update({key: (broker.fenced, broker.rack) for key, broker in image.brokers.items()})
    return found


def compare(
    happenings: Sequence[Happening],
    really: Really,
    settings: dict[str, str] | None = None,
    *,
    controllers: int = 0,
    racks: Sequence[str] = (),
) -> None:
    """Rehearse, do it, and wait until the cluster is as the rehearsal has it."""

    async def main() -> None:
        config = {
            **QUICK,
            "leader.imbalance.check.interval.seconds": "1",
            "min.insync.replicas": "2",
            **(settings or {}),
        }
        async with AsyncCluster(4, controllers=controllers, racks=racks, config=config) as cluster:
            for name, factor in (("three", 3), ("two", 2), ("one", 1)):
                await cluster.create_topic(name, 6, replication_factor=factor)
            async with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
                for number in range(100):
                    await producer.send("three", str(number).encode())
            begin = await scene_of(cluster)
            found = rehearse(begin, happenings)
            assert found.refusals == []
            await really(cluster)
            await wait_for(cluster, found)

    asyncio.run(main())


async def wait_for(cluster: AsyncCluster, found: Rehearsal) -> None:
    wanted = state(found.image)
    now: dict[object, object] = {}

    def differs() -> bool:
        nonlocal now
        now = state(next(iter(cluster.nodes.values())).image)
        return now != wanted

    try:
        async with asyncio.timeout(TIMEOUT_S):
            while differs():
                await asyncio.sleep(0.05)
    except TimeoutError:
        different = {key: (now.get(key), wanted.get(key)) for key in {*now, *wanted} if now.get(key) != wanted.get(key)}
        raise AssertionError(f"really, and in the rehearsal: {different}") from None


def test_a_node_dies() -> None:
    async def really(cluster: AsyncCluster) -> None:
        await cluster.kill(2)

    compare([Kill([2])], really)


def test_a_node_dies_and_returns() -> None:
    async def really(cluster: AsyncCluster) -> None:
        await cluster.kill(3)
        async with asyncio.timeout(TIMEOUT_S):
            while not next(iter(cluster.nodes.values())).image.brokers[3].fenced:
                await asyncio.sleep(0.05)
        await cluster.start_node(3)

    compare([Kill([3]), Start([3])], really)


def test_a_node_stops_cleanly() -> None:
    async def really(cluster: AsyncCluster) -> None:
        await cluster.stop_node(1)

    compare([Stop(1)], really)


def test_replicas_move() -> None:
    targets = {("three", index): [4, 2, 1] for index in range(6)} | {("one", 0): [3], ("two", 1): [1, 4]}

    async def really(cluster: AsyncCluster) -> None:
        async with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            assert set((await admin.alter_partition_reassignments(targets)).values()) == {None}

    compare([Reassign(targets)], really)


async def die(cluster: AsyncCluster, *nodes: int) -> None:
    """Kill nodes, each when the one before is fenced: who is eligible afterwards depends on their order."""
    for node in nodes:
        await cluster.kill(node)
        async with asyncio.timeout(TIMEOUT_S):
            while not next(iter(cluster.nodes.values())).image.brokers[node].fenced:
                await asyncio.sleep(0.05)


def test_a_rack_is_lost() -> None:
    async def really(cluster: AsyncCluster) -> None:
        await die(cluster, 1, 3)

    compare([KillRack("a")], really, controllers=1, racks=("a", "b"))


def test_a_rack_is_lost_and_returns() -> None:
    async def really(cluster: AsyncCluster) -> None:
        await die(cluster, 2, 4)
        await cluster.start_node(2)
        await cluster.start_node(4)

    compare([KillRack("b"), StartRack("b")], really, controllers=1, racks=("a", "b"))


def test_a_broker_leaves_for_good_and_a_topic_is_deleted() -> None:
    async def really(cluster: AsyncCluster) -> None:
        await cluster.stop_node(4)
        async with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            await admin.unregister_broker(4)
            assert await admin.delete_topics(["one"]) == {"one": None}

    compare([Stop(4), Unregister(4), DeleteTopics(["one"])], really)


def test_a_log_dir_fails() -> None:
    async def main() -> None:
        async with two_dirs() as cluster:
            begin = await scene_of(cluster)
            active = await cluster.wait_active_controller()
            victim = next(each for each in cluster.node_ids if each != active)
            failing = cluster.second_dir(victim)
            directory = cluster.nodes[victim].log_directories.id_of(str(failing))
            assert directory is not None
            found = rehearse(begin, [FailLogDir(victim, directory)])
            assert found.refusals == []
            disks.set([failing], is_full=True)
            try:
                async with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
                    for index in range(PARTITIONS):
                        await (await producer.send("t", b"needs room", partition=index))
                await wait_for(cluster, found)
            finally:
                disks.set([failing])

    asyncio.run(main())


def test_the_records_of_a_death_are_those_of_the_metadata_log() -> None:
    async def main() -> None:
        # Sessions end before a leader finds that a follower lags, so that fencing is all that is written.
        config = {**QUICK, "replica.lag.time.max.ms": "60000", "auto.leader.rebalance.enable": "false"}
        async with AsyncCluster(4, config=config) as cluster:
            await cluster.create_topic("three", 12, replication_factor=3)
            begin = await scene_of(cluster)
            controller = await cluster.wait_active_controller()
            victim = next(each for each in cluster.node_ids if each != controller)
            found = rehearse(begin, [Kill([victim])])
            await cluster.kill(victim)
            written = await written_after(cluster, begin.image.offset, lambda image: image.brokers[victim].fenced)
            assert [record for record, _ in found.steps[0].records] == written

    asyncio.run(main())


async def written_after(cluster: AsyncCluster, offset: int, is_done: Callable[[MetadataImage], bool]) -> list[Message]:
    """The records of the metadata log behind an offset, read by a client until something is so."""
    while not is_done(next(iter(cluster.nodes.values())).image):
        await asyncio.sleep(0.05)
    found: list[Message] = []
    async with Client({"bootstrap.controllers": cluster.bootstrap_controllers}) as client:
        async for part in read_metadata_log(client):
            assert not isinstance(part, LogSnapshot)
            if part.base_offset > offset:
                found += records_of(part)
    return [record for record in found if type(record).__name__ != "NoOpRecord"]
