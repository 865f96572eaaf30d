"""Three nodes with two log dirs each: a disk fails under load and only its replicas move, and replicas change their log dir."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from barnabas.broker.faults.disk import disks
from barnabas.client import Admin, Producer
from barnabas.client.admin.log_dirs import Replica
from barnabas.config.server import load
from barnabas.config.server_config import ServerConfig
from barnabas.operations.local_cluster.formatting import format_joining
from barnabas.testing import AsyncCluster
from tests.broker.clusters import (
    QUICK,
    assert_same_logs,
    caught_up,
    consume,
    in_sync,
    led,
    log_bytes,
    replica,
    state,
    until,
)

PARTITIONS = 6


class TwoDirs(AsyncCluster):
    """Each node has a second log dir beside that of its metadata."""

    def second_dir(self, node_id: int) -> Path:
        return self.data_dir(node_id).with_name(f"node-{node_id}-second")

    def format_second(self, node_id: int) -> None:
        format_joining(self.cluster_id, node_id, self.second_dir(node_id), lambda: 0, Random())

    def _format(self) -> None:
        super()._format()
        for node_id in self.node_ids:
            self.format_second(node_id)

    def _config(self, node_id: int) -> ServerConfig:
        config = super()._config(node_id)
        dirs = f"{self.data_dir(node_id)},{self.second_dir(node_id)}"
        metadata = {"metadata.log.dir": str(self.data_dir(node_id))}
        return load({**config.given, "log.dirs": dirs, **metadata}, broker_count=len(self.broker_ids))

    def log_dir_of(self, node_id: int, index: int) -> Path:
        return replica(self.nodes[node_id], "t", index).log.directory.parent

    def led_in(self, node_id: int, log_dir: Path) -> set[int]:
        """The partitions that this node leads and has in this log dir."""
        return {
            index
            for index in range(PARTITIONS)
            if state(self, "t", index).leader == node_id and self.log_dir_of(node_id, index) == log_dir
        }

    async def assert_same_bytes(self) -> None:
        """Compare the logs, and not the producers: a snapshot of a clean stop has only the last batch of each, as in Kafka."""
        await caught_up(self, "t", range(PARTITIONS))
        for index in range(PARTITIONS):
            first, *others = (log_bytes(replica(each, "t", index).log.directory) for each in self.nodes.values())
            assert others == [first] * 2, f"t-{index}"

    def assigned(self, node_id: int, index: int) -> Path | None:
        """The log dir of a replica, as the controller has it."""
        directories = self.nodes[node_id].log_directories
        wanted = state(self, "t", index).directory(node_id)
        return next((Path(path) for path in directories.paths if directories.id_of(path) == wanted), None)


@asynccontextmanager
async def two_dirs() -> AsyncIterator[TwoDirs]:
    async with TwoDirs(3, config={**QUICK, "auto.leader.rebalance.enable": "false"}) as cluster:
        await cluster.create_topic("t", PARTITIONS, replication_factor=3)
        async with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
            for index in range(PARTITIONS):
                await (await producer.send("t", b"first", partition=index))
        yield cluster


def test_a_failed_log_dir_moves_what_it_leads_and_nothing_else() -> None:
    async def main() -> None:
        async with two_dirs() as cluster:
            active = await cluster.wait_active_controller()
            victim = next(
                each for each in cluster.node_ids if each != active and cluster.led_in(each, cluster.second_dir(each))
            )
            failing = cluster.second_dir(victim)
            moving, staying = cluster.led_in(victim, failing), cluster.led_in(victim, cluster.data_dir(victim))
            lost = {index for index in range(PARTITIONS) if cluster.log_dir_of(victim, index) == failing}
            sent = 0

            async with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:

                async def send() -> None:
                    nonlocal sent
                    for index in range(PARTITIONS):
                        await (await producer.send("t", b"%d" % sent, partition=index))
                    sent += 1

                await send()
                disks.set([failing], is_full=True)
                try:
                    await send()  # no error comes to the application
                    await until(lambda: all(victim not in state(cluster, "t", index).isr for index in lost))
                    await send()
                finally:
                    disks.set([failing])
            assert all(state(cluster, "t", index).leader not in (-1, victim) for index in moving)
            assert all(state(cluster, "t", index).leader == victim for index in staying)
            assert all(victim in state(cluster, "t", index).isr for index in set(range(PARTITIONS)) - lost)
            assert not cluster.nodes[victim].image.brokers[victim].fenced

            await cluster.stop_node(victim)
            await cluster.start_node(victim)  # with a new disk, or the old one
            for index in range(PARTITIONS):
                await in_sync(cluster, 1, 2, 3, topic="t", index=index)
            await cluster.assert_same_bytes()
            assert await consume(cluster, 1 + sent) == [b"first", *(b"%d" % number for number in range(sent))]

    asyncio.run(main())


def test_a_new_disk_in_the_place_of_a_failed_one_is_filled_from_the_leaders() -> None:
    async def main() -> None:
        async with two_dirs() as cluster:
            active = await cluster.wait_active_controller()
            victim = next(each for each in cluster.node_ids if each != active)
            second = cluster.second_dir(victim)
            lost = {index for index in range(PARTITIONS) if cluster.log_dir_of(victim, index) == second}
            assert lost
            await cluster.stop_node(victim)
            shutil.rmtree(second)
            cluster.format_second(victim)
            await cluster.start_node(victim)
            for index in range(PARTITIONS):
                await in_sync(cluster, 1, 2, 3, topic="t", index=index)
            await cluster.assert_same_bytes()
            await until(lambda: all(cluster.assigned(victim, index) is not None for index in range(PARTITIONS)))

    asyncio.run(main())


def test_replicas_of_a_leader_and_of_a_follower_change_their_log_dir_while_records_come() -> None:
    async def main() -> None:
        async with two_dirs() as cluster:
            leader = await led(cluster)
            follower = next(each for each in cluster.node_ids if each != leader)
            targets: dict[int, Path] = {}
            for each in (leader, follower):
                is_second = cluster.log_dir_of(each, 0) == cluster.second_dir(each)
                targets[each] = cluster.data_dir(each) if is_second else cluster.second_dir(each)
            servers = {"bootstrap.servers": cluster.bootstrap_servers}
            async with Admin(servers) as admin, Producer(servers) as producer:
                sending = [asyncio.ensure_future(await producer.send("t", b"x" * 1000, partition=0)) for _ in range(50)]
                moves = {Replica("t", 0, each): str(target) for each, target in targets.items()}
                assert set((await admin.alter_replica_log_dirs(moves)).values()) == {None}
                sending += [asyncio.ensure_future(await producer.send("t", b"y", partition=0)) for _ in range(50)]
                await asyncio.gather(*sending)
                for each, target in targets.items():
                    await until(lambda each=each, target=target: cluster.log_dir_of(each, 0) == target)  # type: ignore[misc]
                    await until(lambda each=each, target=target: cluster.assigned(each, 0) == target)  # type: ignore[misc]
            await in_sync(cluster, 1, 2, 3)
            await caught_up(cluster)
            assert_same_logs(cluster)
            assert await cluster.move_leader("t", to=follower) == follower
            assert len(await consume(cluster, 101)) == 101

    asyncio.run(main())
