"""Groups and transactions on three nodes: their coordinators move with the leaders of their partitions."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from barnabas.client import Admin, Consumer, Producer
from barnabas.client.connection import Connection
from barnabas.config.internal_topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.testing import AsyncCluster
from barnabas.testing.cluster import leader_of
from barnabas.wire import ErrorCode
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from tests.broker.clusters import (
    QUICK,
    TIMEOUT_S,
    assert_same_logs,
    caught_up,
    consume,
    in_sync,
    led,
    on_three,
    produce,
    state,
    until,
)

ONE_EACH = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
MOVING = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.REQUEST_TIMED_OUT,
)
# Brokers and clients log in as different users.
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="broker" password="b" user_broker="b" user_client="c";'
)
WITH_LOGINS = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": JAAS,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:broker;User:client;User:ANONYMOUS",
}
CLIENT = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": (
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="client" password="c";'
    ),
}


async def transact(producer: Producer, values: list[bytes], *, commit: bool) -> None:
    """Write one record to each of the three partitions of `three` in one transaction."""
    producer.begin_transaction()
    for partition, value in enumerate(values):
        await producer.send("three", value, partition=partition)
    await (producer.commit_transaction() if commit else producer.abort_transaction())


def test_a_transaction_has_partitions_on_all_brokers_and_goes_on_when_its_coordinator_dies() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        await cluster.create_topic("three", 3, replication_factor=3)
        settings = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "tx"}
        async with Producer({**settings, "max.block.ms": "50000", "delivery.timeout.ms": "50000"}) as producer:
            await producer.init_transactions()
            assert len({state(cluster, "three", index).leader for index in range(3)}) == 3
            await transact(producer, [b"a0", b"a1", b"a2"], commit=True)
            await transact(producer, [b"no", b"no", b"no"], commit=False)
            coordinator = await led(cluster, TRANSACTION_STATE_TOPIC)
            await cluster.kill(coordinator)
            await transact(producer, [b"b0", b"b1", b"b2"], commit=True)
            await cluster.start_node(coordinator)
            for index in range(3):
                await in_sync(cluster, 1, 2, 3, topic="three", index=index)
            await transact(producer, [b"c0", b"c1", b"c2"], commit=True)
        await caught_up(cluster, "three", range(3))
        assert_same_logs(cluster, "three", range(3))
        found = await consume(cluster, 3, "three", **{"isolation.level": "read_committed"})
        assert found == [b"a0", b"b0", b"c0"]

    on_three(scenario, ONE_EACH)


def test_a_group_keeps_its_offsets_and_its_member_when_its_coordinator_dies() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        servers = cluster.bootstrap_servers
        async with Producer({"bootstrap.servers": servers}) as producer:
            for number in range(10):
                await producer.send("t", b"%d" % number, partition=0)
        settings = {"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest"}
        found: list[bytes | None] = []
        async with Consumer({**settings, "enable.auto.commit": "false"}) as consumer:
            await consumer.subscribe(["t"])
            async with asyncio.timeout(TIMEOUT_S):
                while len(found) < 10:
                    found += [record.value for record in await consumer.poll(500)]
            await consumer.commit()
            coordinator = await led(cluster, GROUP_METADATA_TOPIC)
            await cluster.kill(coordinator)
            await led(cluster, GROUP_METADATA_TOPIC, other_than=coordinator)
            await led(cluster)
            async with Producer({"bootstrap.servers": servers, "delivery.timeout.ms": "50000"}) as producer:
                await (await producer.send("t", b"more", partition=0))
            async with asyncio.timeout(TIMEOUT_S):
                while len(found) < 11:
                    found += [record.value for record in await consumer.poll(500)]
            await consumer.commit()
        assert found == [*(b"%d" % number for number in range(10)), b"more"]
        async with Admin({"bootstrap.servers": servers}) as admin:
            offsets = await admin.list_consumer_group_offsets({"g": None})
        assert "11" in str(offsets["g"])

    on_three(scenario, ONE_EACH)


async def commit_at(cluster: AsyncCluster, node_id: int, offset: int) -> ErrorCode:
    """Commit an offset of the group `g` at one node, whether or not it is the coordinator."""
    host, _, port = cluster.address(node_id).rpartition(":")
    connection = await Connection.open(host, int(port), "test")
    row = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[row])
    try:
        request = OffsetCommitRequest(group_id="g", topics=[topic])
        response: OffsetCommitResponse = await connection.call(request, 8, timeout_ms=50_000)
        return ErrorCode(response.topics[0].partitions[0].error_code)
    finally:
        connection.close()


async def committed(cluster: AsyncCluster) -> str:
    async with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        return str((await admin.list_consumer_group_offsets({"g": None}))["g"])


def test_a_coordinator_that_is_cut_off_acknowledges_nothing_while_another_one_acts() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        async with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            await admin.list_consumer_group_offsets({"g": None})  # so that there is a coordinator
        old = await led(cluster, GROUP_METADATA_TOPIC)
        others = [each for each in cluster.node_ids if each != old]
        async with asyncio.timeout(TIMEOUT_S):
            while await commit_at(cluster, old, 1) is not ErrorCode.NONE:
                await asyncio.sleep(0.05)
        cluster.faults.isolate(old, others=others, clients=False)
        lost = asyncio.create_task(commit_at(cluster, old, 1000))
        new = -1

        def has_moved() -> bool:
            nonlocal new
            first, second = (leader_of(cluster.nodes[each], GROUP_METADATA_TOPIC, 0) for each in others)
            new = first if first == second and first is not None else -1
            return new in others

        await until(has_moved)
        async with asyncio.timeout(TIMEOUT_S):
            while (code := await commit_at(cluster, new, 5)) is not ErrorCode.NONE:
                assert code in MOVING
                await asyncio.sleep(0.05)
        assert await commit_at(cluster, old, 2000) is not ErrorCode.NONE  # it believes that it leads, and cannot commit
        assert await lost is not ErrorCode.NONE
        cluster.faults.heal()
        await in_sync(cluster, 1, 2, 3, topic=GROUP_METADATA_TOPIC)
        assert await commit_at(cluster, old if new != old else others[0], 3000) is ErrorCode.NOT_COORDINATOR
        assert "offset=5" in await committed(cluster)

    on_three(scenario, {**ONE_EACH, "auto.leader.rebalance.enable": "false"})


def test_aiokafka_writes_and_reads_transactions_on_three_nodes_while_a_leader_stops() -> None:
    async def scenario(cluster: AsyncCluster) -> None:
        servers = cluster.bootstrap_servers
        producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id="aio", request_timeout_ms=20_000)
        await producer.start()
        try:
            async with producer.transaction():
                await producer.send_and_wait("t", b"one", partition=0)
            leader = await led(cluster)
            await cluster.stop_node(leader)
            await led(cluster, other_than=leader)
            async with producer.transaction():
                await producer.send_and_wait("t", b"two", partition=0)
        finally:
            await producer.stop()
        await cluster.start_node(leader)  # the topic of groups needs three brokers when it is created
        consumer = AIOKafkaConsumer(
            "t",
            bootstrap_servers=servers,
            group_id="aio",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        await consumer.start()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                assert [(await consumer.getone()).value for _ in range(2)] == [b"one", b"two"]
        finally:
            await consumer.stop()

    on_three(scenario, ONE_EACH)


def test_brokers_log_in_at_each_other_and_need_a_permission_to_replicate() -> None:
    async def main() -> None:
        async with AsyncCluster(3, config={**QUICK, **WITH_LOGINS}) as cluster:
            await cluster.create_topic("t", 1, replication_factor=3)
            await produce(cluster, b"x", **CLIENT)
            await caught_up(cluster)
            assert_same_logs(cluster)
            for node in cluster.nodes.values():
                node.authorizer = replace(node.authorizer, super_users=frozenset({"User:ANONYMOUS", "User:client"}))
            await produce(cluster, b"y", **{**CLIENT, "acks": "1"})
            await until(lambda: len(state(cluster).isr) == 1)

    asyncio.run(main())
