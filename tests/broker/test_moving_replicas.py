"""Replicas that move between three nodes, leaders that are elected, and consumers that read nearby."""

from __future__ import annotations

import asyncio

from barnabas.client import (
    Admin,
    AlterConfigOp,
    AlterConfigOpType,
    ConfigResource,
    ConfigResourceType,
    Consumer,
    ElectionType,
    Producer,
    TopicPartition,
)
from barnabas.config.unsupported import RACK_AWARE_SELECTOR
from barnabas.testing import AsyncCluster
from tests.broker.clusters import (
    TIMEOUT_S,
    assert_same_logs,
    caught_up,
    consume,
    follow_again,
    in_sync,
    led,
    on_three,
    produce,
    replica,
    state,
    stop_following,
    until,
)

PLACE = TopicPartition("m", 0)
RACK_AWARE = {"replica.selector.class": RACK_AWARE_SELECTOR}


def admin_of(cluster: AsyncCluster) -> Admin:
    return Admin({"bootstrap.servers": cluster.bootstrap_servers})


async def throttle(admin: Admin, topic: str, rate: int | None) -> None:
    """Limit, or no longer limit, replication of a topic on all brokers."""
    kind = AlterConfigOpType.DELETE if rate is None else AlterConfigOpType.SET
    sides = ("leader", "follower")
    of_topic = [
        AlterConfigOp(f"{side}.replication.throttled.replicas", kind, None if rate is None else "*") for side in sides
    ]
    of_broker = [
        AlterConfigOp(f"{side}.replication.throttled.rate", kind, None if rate is None else str(rate)) for side in sides
    ]
    changes = {ConfigResource(ConfigResourceType.TOPIC, topic): of_topic}
    changes[ConfigResource(ConfigResourceType.BROKER, "")] = of_broker
    results = await admin.incremental_alter_configs(changes)
    assert not any(results.values()), results


def test_a_reassigned_partition_is_copied_before_the_old_replica_goes_and_stays_available() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        await cluster.create_topic("m", 1, replication_factor=1)
        await produce(cluster, *(b"%d" % number for number in range(100)), topic="m")
        old = state(cluster, "m").leader
        new = next(each for each in cluster.node_ids if each != old)
        directory = replica(cluster.nodes[old], "m").log.directory
        async with admin_of(cluster) as admin, Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
            sending = [asyncio.ensure_future(await producer.send("m", b"more", partition=0)) for _ in range(10)]
            assert await admin.alter_partition_reassignments({PLACE: [new]}) == {PLACE: None}
            sending += [asyncio.ensure_future(await producer.send("m", b"more", partition=0)) for _ in range(10)]
            await until(lambda: state(cluster, "m").replicas == (new,))
            await asyncio.gather(*sending)
        assert (state(cluster, "m").leader, state(cluster, "m").isr) == (new, (new,))
        await until(lambda: cluster.nodes[old].replicas.get("m", 0) is None and not directory.exists())
        assert len(await consume(cluster, 120, "m")) == 120

    on_three(scenario)


def test_a_throttled_reassignment_shows_its_progress_survives_a_death_and_can_be_cancelled() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        await cluster.create_topic("m", 1, replication_factor=1)
        for _ in range(4):
            await produce(cluster, *(b"x" * 1000 for _ in range(250)), topic="m")
        old = state(cluster, "m").leader
        new, third = (each for each in cluster.node_ids if each != old)
        async with admin_of(cluster) as admin:
            await throttle(admin, "m", 1000)
            await until(lambda: bool(replica(cluster.nodes[old], "m").settings.leader_throttled_replicas))
            # The first fetch may take as much as it wants, as in Kafka. The next ones wait.
            assert await admin.alter_partition_reassignments({PLACE: [old, new]}) == {PLACE: None}
            await until(lambda: set(state(cluster, "m").replicas) == {old, new})
            (progress,) = (await admin.list_partition_reassignments()).values()
            assert (set(progress.replicas), progress.adding_replicas) == ({old, new}, (new,))
            await cluster.kill(third)
            await asyncio.sleep(1)
            assert set(state(cluster, "m").isr) == {old}
            assert await admin.alter_partition_reassignments({PLACE: None}) == {PLACE: None}
            await until(lambda: state(cluster, "m").replicas == (old,))
            assert await admin.list_partition_reassignments() == {}
            await until(lambda: cluster.nodes[new].replicas.get("m", 0) is None)
            await throttle(admin, "m", None)
            assert await admin.alter_partition_reassignments({PLACE: [new, old]}) == {PLACE: None}
            await until(lambda: set(state(cluster, "m").isr) == {old, new} and not state(cluster, "m").is_reassigning)
        assert len(await consume(cluster, 1000, "m")) == 1000

    on_three(scenario, {"replica.fetch.max.bytes": "50000", "replica.fetch.response.max.bytes": "50000"})


def test_the_preferred_leader_leads_again_when_it_is_asked_for() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        first = state(cluster).preferred_leader
        await cluster.stop_node(first)
        await led(cluster, other_than=first)
        await cluster.start_node(first)
        await in_sync(cluster, 1, 2, 3)
        assert state(cluster).leader != first
        async with admin_of(cluster) as admin:
            assert await admin.elect_leaders(ElectionType.PREFERRED, [("t", 0)]) == {("t", 0): None}
        assert await led(cluster) == first
        await produce(cluster, b"x")
        await caught_up(cluster)
        assert_same_logs(cluster)

    on_three(scenario, {"auto.leader.rebalance.enable": "false"})


def test_preferred_leaders_return_by_themselves_after_a_while() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        first = state(cluster).preferred_leader
        await cluster.stop_node(first)
        await led(cluster, other_than=first)
        await cluster.start_node(first)
        await until(lambda: state(cluster).leader == first)

    on_three(scenario, {"leader.imbalance.check.interval.seconds": "1"})


def test_an_unclean_election_takes_a_replica_that_lacks_records_and_the_others_follow_it() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        await produce(cluster, b"kept")
        await caught_up(cluster)
        leader = await led(cluster)
        behind, gone = (each for each in cluster.node_ids if each != leader)
        await stop_following(cluster, behind, gone)
        await produce(cluster, b"lost", acks="1")
        await in_sync(cluster, leader)
        follow_again(cluster, gone)  # so that the quorum of controllers is not all that is left of it
        await in_sync(cluster, leader, gone)
        await stop_following(cluster, gone)
        await produce(cluster, b"lost too", acks="1")
        await in_sync(cluster, leader)
        await cluster.kill(leader)
        await until(lambda: state(cluster).leader == -1)
        async with admin_of(cluster) as admin:
            assert await admin.elect_leaders(ElectionType.UNCLEAN, [("t", 0)]) == {("t", 0): None}
        follow_again(cluster, behind, gone)
        await led(cluster, other_than=leader)
        await produce(cluster, b"new")
        await cluster.start_node(leader)
        await in_sync(cluster, 1, 2, 3)
        await caught_up(cluster)
        assert_same_logs(cluster)
        values = await consume(cluster, replica(cluster.nodes[leader]).log_end_offset)
        assert (values[0], values[-1]) == (b"kept", b"new")
        assert b"lost too" not in values

    on_three(scenario)


def test_a_consumer_reads_from_a_follower_in_its_rack() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        await produce(cluster, *(b"%d" % number for number in range(10)))
        await caught_up(cluster)
        leader = await led(cluster)
        near = next(each for each in cluster.node_ids if each != leader)
        settings = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "auto.offset.reset": "earliest",
            "client.rack": f"rack-{near}",
        }
        found: list[bytes | None] = []
        async with Consumer(settings) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            async with asyncio.timeout(TIMEOUT_S):
                while len(found) < 10:
                    found += [record.value for record in await consumer.poll(500)]
            read = cluster.nodes[near].replicas.traffic.get("t").bytes_out
            assert read > 0
            assert cluster.nodes[leader].replicas.traffic.get("t").bytes_out == 0
            await produce(cluster, b"fresh")
            async with asyncio.timeout(TIMEOUT_S):
                while found[-1] != b"fresh":
                    found += [record.value for record in await consumer.poll(500)]
        assert found == [*(b"%d" % number for number in range(10)), b"fresh"]

    on_three(scenario, RACK_AWARE, racks=("rack-1", "rack-2", "rack-3"))


def test_a_topic_deleted_while_a_broker_is_away_is_cleaned_up_when_it_returns() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        await cluster.create_topic("gone", 1, replication_factor=3)
        await produce(cluster, b"x", topic="gone")
        await caught_up(cluster, "gone")
        away = next(each for each in cluster.node_ids if each != cluster.active_controller)
        await cluster.kill(away)
        await in_sync(cluster, *(each for each in cluster.node_ids if each != away))
        async with admin_of(cluster) as admin:
            await admin.delete_topics(["gone"])
        await cluster.create_topic("gone", 1, replication_factor=2)
        node = await cluster.start_node(away)
        assert not (cluster.data_dir(away) / "gone-0").exists() or node.replicas.get("gone", 0) is not None
        names = [path.name for path in cluster.data_dir(away).iterdir() if path.name.startswith("gone-0.")]
        assert len(names) == 1
        assert names[0].endswith("-stray")

    on_three(scenario)


def test_a_replica_that_moved_away_while_its_broker_was_away_is_set_aside_when_it_returns() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        await cluster.create_topic("m", 1, replication_factor=2)
        await produce(cluster, b"x", topic="m")
        await in_sync(cluster, *state(cluster, "m").replicas, topic="m")
        away = next(each for each in state(cluster, "m").replicas if each != cluster.active_controller)
        (stays,) = (each for each in state(cluster, "m").replicas if each != away)
        (new,) = (each for each in cluster.node_ids if each not in (away, stays))
        await cluster.kill(away)
        await in_sync(cluster, stays, topic="m")
        async with admin_of(cluster) as admin:
            assert await admin.alter_partition_reassignments({PLACE: [stays, new]}) == {PLACE: None}
            await until(lambda: state(cluster, "m").replicas == (stays, new))
        node = await cluster.start_node(away)
        assert node.replicas.get("m", 0) is None
        names = [path.name for path in cluster.data_dir(away).iterdir() if path.name.startswith("m-0")]
        assert [name.rpartition("-")[2] for name in names] == ["stray"]
        assert await consume(cluster, 1, "m") == [b"x"]

    on_three(scenario)


def test_a_follower_does_not_write_a_damaged_batch() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        await cluster.create_topic("m", 1, replication_factor=1)
        await produce(cluster, b"intact", topic="m")
        await produce(cluster, b"damaged", topic="m")
        old = state(cluster, "m").leader
        new = next(each for each in cluster.node_ids if each != old)
        segment = next(replica(cluster.nodes[old], "m").log.directory.glob("*.log"))
        with segment.open("r+b") as file:
            file.seek(-3, 2)
            file.write(b"!")
        async with admin_of(cluster) as admin:
            assert await admin.alter_partition_reassignments({PLACE: [old, new]}) == {PLACE: None}
            await until(lambda: cluster.nodes[new].replicas.get("m", 0) is not None)
            copy = replica(cluster.nodes[new], "m")
            await until(lambda: (log := copy.opened_log) is not None and log.log_end_offset < 2)
            await asyncio.sleep(1)
            assert copy.log_end_offset < 2
            assert state(cluster, "m").isr == (old,)

    on_three(scenario)
