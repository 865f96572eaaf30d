"""Connections that end with unfinished business leave nothing behind, however many there are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from bench.connection import frame as framed

from barnabas.broker.node import Node
from barnabas.testing import AsyncBroker
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.metadata import MetadataRequest
from tests.broker.clients import RawClient

CONNECTIONS = 300
AT_ONCE = 100
MINUTE_MS = 60_000
SETTINGS = {"group.initial.rebalance.delay.ms": 500, "group.min.session.timeout.ms": 100}


def waiting_fetch() -> bytes:
    partition = FetchRequest.FetchPartition(partition=0, partition_max_bytes=1000)
    topic = FetchRequest.FetchTopic(topic="t", partitions=[partition])
    return framed(
        FetchRequest(max_wait_ms=MINUTE_MS, min_bytes=1, max_bytes=1000, session_epoch=-1, topics=[topic]), 12
    )


def waiting_join() -> bytes:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"m")
    return framed(
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=1000,
            rebalance_timeout_ms=1000,
            protocol_type="consumer",
            protocols=[protocol],
        ),
        3,
    )


def half_a_frame() -> bytes:
    return framed(MetadataRequest(), 12)[:9]


def announced() -> bytes:
    return (50 << 20).to_bytes(4) + bytes(5000)


def pipelined() -> bytes:
    return waiting_fetch() + framed(MetadataRequest(), 12) * 1000


def unread() -> bytes:
    return framed(ApiVersionsRequest(), 0) * 500


BUSINESS = (half_a_frame, announced, waiting_fetch, waiting_join, pipelined, unread)


def counted(node: Node) -> dict[str, int]:
    server, groups = node._server, node.coordinators.groups
    partition = node.replicas.get("t", 0)
    assert partition is not None
    return {
        "connections": len(server.connections),
        "hosts": len(server.by_host),
        "held bytes": server.memory.requests.held_bytes,
        "waiting for memory": server.memory.requests.waiting_count,
        "unread bytes": server.memory.unread_bytes,
        "waiting fetches": partition.waiting_count,
        "fetch sessions": len(node.fetch_sessions),
        "members": sum(len(group.members) for shard in groups.shards.loaded() for group in shard.classic.values()),
        "tasks": len(asyncio.all_tasks()),
    }


@pytest.mark.parametrize("business", BUSINESS)
def test_connections_with_unfinished_business_leave_nothing_behind(business: Callable[[], bytes]) -> None:
    async def scenario() -> None:
        async with AsyncBroker({"t": 1}, config=SETTINGS) as broker:
            host, port = broker.bootstrap_servers.split(":")
            address = host, int(port)
            node = broker._node
            assert node is not None
            own = len(node._server.connections)  # to its own controller
            client = await RawClient.connect(address)  # everything that is created at first use
            client.send(framed(MetadataRequest(), 12))
            await client.frame()
            await client.close()
            node.coordinators  # noqa: B018
            await until(lambda: len(node._server.connections) == own)
            before = counted(node)
            for _ in range(CONNECTIONS // AT_ONCE):
                clients = [await RawClient.connect(address, receive_buffer_bytes=4096) for _ in range(AT_ONCE)]
                for client in clients:
                    client.transport.pause_reading()
                    client.send(business())
                await until(lambda: len(node._server.connections) == own + AT_ONCE)
                await asyncio.sleep(0.02)
                for client in clients:
                    client.transport.abort()
                await until(lambda: len(node._server.connections) == own)
            # Not equal: a short task of the node may have been counted before.
            await until(lambda: all(count <= before[what] for what, count in counted(node).items()))

    async def limited() -> None:
        await asyncio.wait_for(scenario(), 300)

    asyncio.run(limited())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)
