"""Partitions whose replicas go one after another: who may lead then, and what unclean.leader.election.enable changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from barnabas.client import Admin, AlterConfigOp, AlterConfigOpType, ConfigResource, ConfigResourceType
from barnabas.testing import AsyncCluster
from tests.broker.clusters import QUICK, consume, in_sync, led, produce, state, until

SETTINGS = {
    **QUICK,
    "min.insync.replicas": "2",
    "auto.leader.rebalance.enable": "false",
    "unclean.leader.election.interval.ms": "200",
}


def with_controllers(scenario: Callable[[AsyncCluster], Awaitable[None]]) -> None:
    """Run a scenario on three brokers whose controllers are nodes of their own, with the topic `t`, three replicas."""

    async def main() -> None:
        async with AsyncCluster(3, controllers=3, config=SETTINGS) as cluster:
            await cluster.create_topic("t", 1, replication_factor=3)
            await scenario(cluster)

    asyncio.run(main())


async def one_is_left(cluster: AsyncCluster) -> tuple[int, int, int]:
    """Stop the followers one after another. Return the leader, who left last and has everything, and who left first."""
    await produce(cluster, b"all three")
    leader = await led(cluster)
    last, first = (each for each in cluster.broker_ids if each != leader)
    await cluster.stop_node(first)
    await in_sync(cluster, leader, last)
    await produce(cluster, b"two")
    await cluster.stop_node(last)
    await in_sync(cluster, leader)
    return leader, last, first


def test_a_replica_that_left_an_isr_below_the_minimum_leads_and_one_that_left_before_does_not() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        leader, last, first = await one_is_left(cluster)
        assert state(cluster).elr == (last,)
        await produce(cluster, b"leader alone", acks="1")
        await cluster.kill(leader)
        await until(lambda: state(cluster).leader == -1)
        assert (state(cluster).isr, set(state(cluster).elr)) == ((), {leader, last})
        assert state(cluster).last_known_elr == (leader,)
        await cluster.start_node(first)
        await asyncio.sleep(1)
        assert state(cluster).leader == -1  # it lacks what was acknowledged
        await cluster.start_node(last)
        assert await led(cluster) == last
        await in_sync(cluster, last, first)
        assert (state(cluster).elr, state(cluster).last_known_elr) == ((), ())
        await cluster.start_node(leader)
        await in_sync(cluster, 1, 2, 3)
        await produce(cluster, b"again")
        assert await consume(cluster, 3) == [b"all three", b"two", b"again"]

    with_controllers(scenario)


def test_the_last_known_leader_leads_again_when_nobody_is_eligible() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        await produce(cluster, b"all three")
        leader = await led(cluster)
        others = [each for each in cluster.broker_ids if each != leader]
        for each in (*others, leader):  # killed: what they had may be gone with their memory, so they are not eligible
            await cluster.kill(each)
            await until(lambda each=each: each not in state(cluster).isr)  # type: ignore[misc]
        await until(lambda: state(cluster).leader == -1)
        for each in others:
            await cluster.start_node(each)
        await until(lambda: set(state(cluster).elr) == {leader})
        assert state(cluster).leader == -1
        await cluster.start_node(leader)
        assert await led(cluster) == leader
        await in_sync(cluster, 1, 2, 3)
        await produce(cluster, b"again")
        assert await consume(cluster, 2) == [b"all three", b"again"]

    with_controllers(scenario)


def test_a_setting_lets_a_replica_lead_that_lacks_records() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        leader, last, first = await one_is_left(cluster)
        await produce(cluster, b"leader alone", acks="1")
        await cluster.kill(leader)
        await until(lambda: state(cluster).leader == -1)
        await cluster.start_node(first)
        await asyncio.sleep(1)
        assert state(cluster).leader == -1
        async with Admin({"bootstrap.servers": cluster.address(first)}) as admin:
            topic = ConfigResource(ConfigResourceType.TOPIC, "t")
            allowed = AlterConfigOp("unclean.leader.election.enable", AlterConfigOpType.SET, "true")
            assert await admin.incremental_alter_configs({topic: [allowed]}) == {topic: None}
        assert await led(cluster) == first
        await cluster.start_node(last)
        await cluster.start_node(leader)
        await in_sync(cluster, 1, 2, 3)
        await produce(cluster, b"again")
        assert await consume(cluster, 2) == [b"all three", b"again"]  # as the setting says, "two" is lost

    with_controllers(scenario)
