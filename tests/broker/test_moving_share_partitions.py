"""Share partitions on three nodes: they move with the leaders of their partitions, and are loaded again."""

from __future__ import annotations

import asyncio
import random
from random import Random

from barnabas.config.internal_topics import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC
from barnabas.testing import AsyncCluster
from barnabas.wire import ErrorCode
from barnabas.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from barnabas.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from tests.broker.clusters import in_sync, led, on_three, until
from tests.broker.sharing import ACCEPT, Member, acquired, produce, row_of
from tests.client.share_scenes import BROKER_CONFIGS, set_up_group
from tests.client.share_work import Work

MOVES = 8


def address_of(cluster: AsyncCluster, node_id: int) -> tuple[str, int]:
    host, port = cluster.address(node_id).rsplit(":", 1)
    return host, int(port)


async def begun(cluster: AsyncCluster) -> tuple[int, Member]:
    """The leader of the topic with 12 records, and a member that has accepted 0 to 4 and holds 5 to 9."""
    leader = await led(cluster)
    address = address_of(cluster, leader)
    topic = cluster.nodes[leader].image.topics.get("t")
    assert topic is not None
    kind = InitializeShareGroupStateRequest
    topics = [kind.InitializeStateData(topic_id=topic.topic_id, partitions=[kind.PartitionData(state_epoch=1)])]
    done = await cluster.nodes[leader].persister.initialize(kind(group_id="g", topics=topics))
    assert not done.results[0].partitions[0].error_code, done
    await in_sync(cluster, *cluster.nodes)
    await produce(address, topic.topic_id, 5)
    await produce(address, topic.topic_id, 5)
    await produce(address, topic.topic_id, 2)
    member = Member(address, topic.topic_id)
    assert acquired(await member.fetch(max_records=10)) == [(0, 9, 1)]
    assert not row_of(await member.acknowledge([(0, 4, [ACCEPT])])).error_code
    (held,) = cluster.share_group("g").acquired("t")
    assert (held.first_offset, held.last_offset, held.member_id, held.delivery_count) == (5, 9, "a", 1)
    return leader, member


def test_the_next_leader_goes_on_with_what_was_stored_and_the_old_one_names_it() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        leader, member = await begun(cluster)
        waiting = asyncio.create_task(member.fetch(max_wait_ms=30_000, min_bytes=1 << 20))
        await until(lambda: cluster.nodes[leader].share_partitions.all()[0].replica.waiting_count > 0)
        other = await cluster.move_leader("t")
        assert other != leader
        told = await waiting
        assert row_of(told).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert row_of(told).current_leader.leader_id == other
        assert [each.node_id for each in told.node_endpoints] == [other]
        assert len(cluster.nodes[leader].share_partitions) == 0
        late = await member.acknowledge([(5, 9, [ACCEPT])])
        assert row_of(late).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        again = Member(address_of(cluster, other), member.topic_id)
        assert acquired(await again.fetch(max_records=5)) == [(5, 9, 1)]
        assert not row_of(await again.acknowledge([(5, 9, [ACCEPT])])).error_code
        assert acquired(await again.fetch()) == [(10, 11, 1)]
        await member.leave()
        await again.leave()

    on_three(scenario)


def test_the_next_leader_goes_on_when_the_leader_dies() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        leader, member = await begun(cluster)
        await cluster.kill(leader)
        await member.leave()
        other = await led(cluster, other_than=leader)
        again = Member(address_of(cluster, other), member.topic_id)
        found: list[tuple[int, int, int]] = []
        while not found:  # the coordinator of the state may have to move first
            response = await again.fetch(max_wait_ms=2000)
            found = acquired(response)
        assert found == [(5, 11, 1)]
        await again.leave()

    on_three(scenario)


def test_a_leader_that_another_one_has_fenced_stores_nothing_more() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        leader, member = await begun(cluster)
        node = cluster.nodes[leader]
        kind = ReadShareGroupStateRequest
        newer = kind.PartitionData(leader_epoch=node.share_partitions.all()[0].leader_epoch + 1)
        topics = [kind.ReadStateData(topic_id=member.topic_id, partitions=[newer])]
        await node.persister.read(kind(group_id="g", topics=topics))  # as the next leader does
        fenced = await member.acknowledge([(5, 9, [ACCEPT])])
        row = row_of(fenced)
        assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert row.current_leader.leader_id == leader
        assert row_of(await member.fetch(max_wait_ms=100)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert len(node.share_partitions) == 0
        await member.leave()

    on_three(scenario)


def test_nothing_is_lost_and_nothing_comes_twice_while_leaders_move_and_a_node_dies() -> None:
    """Leaders of the topic, of the states, and of the group move while two members work."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    choice = Random(seed)

    async def scenario(cluster: AsyncCluster) -> None:
        for topic in ("t", GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC):
            if topic != "t":
                await cluster.create_topic(topic, 1, replication_factor=3)
        await set_up_group(
            cluster.bootstrap_servers, "g", share_record_lock_duration_ms="1000", share_delivery_count_limit="10"
        )
        work = Work({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"}, "t", 1)
        work.start(Random(choice.random()))
        try:
            for _ in range(MOVES):
                await work.until(choice.randint(10, 40))
                await cluster.move_leader(choice.choice(["t", "t", GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC]))
            await work.until(20)
            victim = await led(cluster)
            await cluster.kill(victim)
            await led(cluster, other_than=victim)
            await work.until(20)
            await work.finish()
        finally:
            await work.stop()
        work.check()

    on_three(scenario, BROKER_CONFIGS)
