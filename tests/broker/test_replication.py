"""Replication between three nodes: nothing acknowledged is lost, logs become equal again, and waiting clients hear of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from barnabas.batches import Compression, Record, build_batch, compression
from barnabas.client import Admin, TopicPartition
from barnabas.client.connection import Connection
from barnabas.storage import Log
from barnabas.testing import AsyncCluster
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.broker.clusters import (
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


async def connect(cluster: AsyncCluster, node_id: int) -> Connection:
    host, _, port = cluster.address(node_id).rpartition(":")
    return await Connection.open(host, int(port), "test")


async def produce_raw(
    cluster: AsyncCluster, node_id: int, value: bytes, acks: int = -1, timeout_ms: int = 30_000
) -> ProduceResponse:
    """Send one Produce request to a node and return its response."""
    connection = await connect(cluster, node_id)
    data = ProduceRequest.PartitionProduceData(index=0, records=build_batch([Record(0, 1, None, value)]))
    topic = cluster.nodes[node_id].image.topics.get("t")
    assert topic is not None
    topics = [ProduceRequest.TopicProduceData(topic_id=topic.topic_id, partition_data=[data])]
    try:
        response: ProduceResponse = await connection.call(
            ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=topics), 13, timeout_ms=40_000
        )
        return response
    finally:
        connection.close()


def test_an_acknowledged_record_survives_its_leader_which_rejoins() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        assert await produce(cluster, b"one") == [0]
        leader = await led(cluster)
        await cluster.kill(leader)
        await led(cluster, other_than=leader)
        assert await consume(cluster, 1) == [b"one"]
        assert await produce(cluster, b"two") == [1]
        await cluster.start_node(leader)
        await in_sync(cluster, 1, 2, 3)
        await caught_up(cluster)
        assert_same_logs(cluster)
        assert await consume(cluster, 2) == [b"one", b"two"]

    on_three(scenario)


def test_records_that_only_the_old_leader_had_are_truncated_when_it_returns() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        await produce(cluster, b"common")
        await caught_up(cluster)
        leader = await led(cluster)
        others = [each for each in cluster.node_ids if each != leader]
        await stop_following(cluster, *others)
        for number in range(5):
            await produce_raw(cluster, leader, b"lost %d" % number, acks=1)
        await cluster.kill(leader)
        follow_again(cluster, *others)
        await led(cluster, other_than=leader)
        await produce(cluster, b"kept")
        await cluster.start_node(leader)
        await in_sync(cluster, 1, 2, 3)
        await caught_up(cluster)
        assert_same_logs(cluster)
        assert await consume(cluster, 2) == [b"common", b"kept"]

    on_three(scenario)


def test_a_follower_that_does_not_fetch_leaves_the_isr_and_returns_to_it() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        leader = await led(cluster)
        slow, other = (each for each in cluster.node_ids if each != leader)
        await stop_following(cluster, slow)
        await produce(cluster, b"a")  # acknowledged without the slow one, once it is out
        assert set(state(cluster).isr) == {leader, other}
        await stop_following(cluster, other)
        response = await produce_raw(cluster, leader, b"b", timeout_ms=4000)
        (row,) = response.responses[0].partition_responses
        await in_sync(cluster, leader)
        # The ISR became too small while the record waited, so its high watermark does not advance.
        assert row.error_code == ErrorCode.REQUEST_TIMED_OUT
        response = await produce_raw(cluster, leader, b"c")
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        follow_again(cluster, slow, other)
        await in_sync(cluster, 1, 2, 3)
        await produce(cluster, b"d")
        await caught_up(cluster)
        assert_same_logs(cluster)
        assert await consume(cluster, 3) == [b"a", b"b", b"d"]

    on_three(scenario, {"min.insync.replicas": "2"})


def test_a_follower_flushes_what_flush_messages_wants_before_it_tells_the_leader_that_it_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the leader acknowledges what a loss of power may take from all replicas but one."""
    may_flush = threading.Event()

    async def scenario(cluster: AsyncCluster) -> None:
        await produce(cluster, b"a")
        leader = await led(cluster)
        slow = next(each for each in cluster.node_ids if each != leader)
        log, flush = replica(cluster.nodes[slow]).log, Log.flush

        def flush_later(flushed: Log, up_to_offset: int | None = None) -> None:
            if flushed is log:
                may_flush.wait(30)
            flush(flushed, up_to_offset)

        monkeypatch.setattr(Log, "flush", flush_later)
        try:
            response = await produce_raw(cluster, leader, b"b", timeout_ms=1500)
            assert response.responses[0].partition_responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
            assert log.log_end_offset == 2  # it has the record
            assert log.recovery_point == 1
        finally:
            may_flush.set()
        await caught_up(cluster)
        assert log.recovery_point == replica(cluster.nodes[leader]).high_watermark == 2

    on_three(scenario, {"log.flush.interval.messages": "1", "replica.lag.time.max.ms": "30000"})


def test_followers_copy_compressed_batches_without_opening_them(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Compression] = []

    def counting(codec: Compression) -> Callable[[bytes, int], bytes]:
        real = compression._DECOMPRESSORS[codec]

        def decompress(data: bytes, limit: int) -> bytes:
            opened.append(codec)
            return real(data, limit)

        return decompress

    codecs = [each for each in Compression if each is not Compression.NONE]
    monkeypatch.setattr(compression, "_DECOMPRESSORS", {each: counting(each) for each in codecs})

    async def scenario(cluster: AsyncCluster) -> None:
        leader = await led(cluster)
        others = [each for each in cluster.node_ids if each != leader]
        await stop_following(cluster, *others)
        for codec in codecs:
            await produce(cluster, codec.name.encode() * 100, acks="1", **{"compression.type": codec.name.lower()})
        before = list(opened)
        follow_again(cluster, *others)
        await in_sync(cluster, 1, 2, 3)
        await caught_up(cluster)
        assert opened == before
        assert_same_logs(cluster)
        assert await consume(cluster, len(codecs)) == [codec.name.encode() * 100 for codec in codecs]
        assert set(opened) == set(codecs)  # by the consumer

    on_three(scenario)


def test_a_producer_that_waits_is_told_the_new_leader_at_once() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        leader = await led(cluster)
        others = [each for each in cluster.node_ids if each != leader]
        await stop_following(cluster, *others)
        waiting = asyncio.create_task(produce_raw(cluster, leader, b"x"))
        await until(lambda: (log := replica(cluster.nodes[leader]).opened_log) is not None and log.log_end_offset == 1)
        await cluster.nodes[leader].leave()
        response = await waiting
        (row,) = response.responses[0].partition_responses
        assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        now = state(cluster)
        assert now.leader in others
        assert (row.current_leader.leader_id, row.current_leader.leader_epoch) == (now.leader, now.leader_epoch)
        (node,) = response.node_endpoints
        assert f"{node.host}:{node.port}" == cluster.address(now.leader)

    on_three(scenario, {"replica.lag.time.max.ms": "30000"})


def test_a_fetch_that_waits_is_told_the_new_leader_at_once() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        leader = await led(cluster)
        topic = cluster.nodes[leader].image.topics.get("t")
        assert topic is not None
        epoch = state(cluster).leader_epoch
        row = FetchRequest.FetchPartition(
            partition=0, fetch_offset=0, partition_max_bytes=1000, current_leader_epoch=epoch
        )
        wanted = [FetchRequest.FetchTopic(topic_id=topic.topic_id, partitions=[row])]
        connection = await connect(cluster, leader)
        request = FetchRequest(max_wait_ms=3_600_000, min_bytes=1, topics=wanted)
        waiting = asyncio.create_task(connection.call(request, 17, timeout_ms=40_000))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        now = await cluster.move_leader("t")
        response: FetchResponse = await waiting
        connection.close()
        (found,) = response.responses[0].partitions
        assert found.error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (now, state(cluster).leader_epoch)
        (node,) = response.node_endpoints
        assert f"{node.host}:{node.port}" == cluster.address(now)

    on_three(scenario)


def test_a_deletion_of_records_that_waits_is_told_at_once_that_another_broker_leads() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        await produce(cluster, *(b"%d" % number for number in range(10)))
        await caught_up(cluster)
        leader = await led(cluster)
        await stop_following(cluster, *(each for each in cluster.node_ids if each != leader))
        connection = await connect(cluster, leader)
        partition = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=6)
        topic = DeleteRecordsRequest.DeleteRecordsTopic(name="t", partitions=[partition])
        request = DeleteRecordsRequest(topics=[topic], timeout_ms=3_600_000)
        waiting = asyncio.create_task(connection.call(request, 2, timeout_ms=40_000))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        await cluster.move_leader("t")
        response: DeleteRecordsResponse = await waiting
        connection.close()
        assert response.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    on_three(scenario, {"replica.lag.time.max.ms": "30000"})


def test_deleting_records_waits_until_the_followers_have_deleted_them() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        await produce(cluster, *(b"%d" % number for number in range(10)))
        await caught_up(cluster)
        async with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            await admin.delete_records({TopicPartition("t", 0): 4})
        assert [replica(node).log_start_offset for node in cluster.nodes.values()] == [4, 4, 4]
        leader = await led(cluster)
        await stop_following(cluster, *(each for each in cluster.node_ids if each != leader))
        connection = await connect(cluster, leader)
        topic = DeleteRecordsRequest.DeleteRecordsTopic(
            name="t", partitions=[DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=6)]
        )
        response: DeleteRecordsResponse = await connection.call(DeleteRecordsRequest(topics=[topic], timeout_ms=300), 2)
        connection.close()
        assert response.topics[0].partitions[0].error_code == ErrorCode.REQUEST_TIMED_OUT

    on_three(scenario)


def test_a_follower_that_was_away_while_the_log_was_deleted_begins_where_the_leader_does() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        await produce(cluster, *(b"%d" % number for number in range(5)))
        leader = await led(cluster)
        away = next(each for each in cluster.node_ids if each != leader)
        await cluster.kill(away)
        await in_sync(cluster, *(each for each in cluster.node_ids if each != away))
        await produce(cluster, *(b"%d" % number for number in range(5, 20)))
        async with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            await admin.delete_records({TopicPartition("t", 0): 15})
        await cluster.start_node(away)
        await in_sync(cluster, 1, 2, 3)
        await caught_up(cluster)
        await until(lambda: replica(cluster.nodes[away]).log_start_offset == 15)
        assert await consume(cluster, 5) == [b"%d" % number for number in range(15, 20)]

    on_three(scenario)


def test_a_topic_needs_as_many_brokers_as_replicas() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        with pytest.raises(KafkaError) as error:
            await cluster.create_topic("u", 1, replication_factor=4)
        assert error.value.code is ErrorCode.INVALID_REPLICATION_FACTOR

    on_three(scenario)
