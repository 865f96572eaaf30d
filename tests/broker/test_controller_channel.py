"""A request for the active controller reaches the next one when the first stands still."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from barnabas.broker.controller_channel import ControllerAddress, ControllerChannel
from barnabas.broker.own_connections import OwnConnections
from barnabas.testing import AsyncCluster
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest

IN_TIME_S = 20  # far less than `request.timeout.ms`


@contextlib.asynccontextmanager
async def silent() -> AsyncIterator[tuple[int, asyncio.Event]]:
    """A controller that stands still: it accepts and reads, and never answers. The event is set by a request."""
    asked, writers = asyncio.Event(), []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with contextlib.suppress(ConnectionError):
            while await reader.read(1000):
                asked.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], asked
        for writer in writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def test_a_request_leaves_a_controller_that_stands_still_when_another_one_is_elected() -> None:
    async def main() -> None:
        async with AsyncCluster(1) as cluster, silent() as (port, asked):
            host, _, other = cluster.address(1, "CONTROLLER").rpartition(":")
            found = [ControllerAddress(7, "127.0.0.1", port)]
            channel = ControllerChannel("test", lambda: found[-1], OwnConnections())
            call = asyncio.create_task(channel.call(DescribeClusterRequest(endpoint_type=2), 1))
            also = asyncio.create_task(channel.call(DescribeClusterRequest(endpoint_type=2), 1))
            await asked.wait()
            found.append(ControllerAddress(1, host, int(other)))
            async with asyncio.timeout(IN_TIME_S):
                assert [each.cluster_id for each in (await call, await also)] == 2 * [cluster.cluster_id]
            channel.close()

    asyncio.run(main())


def test_a_request_asks_the_same_controller_again_when_it_did_not_answer_in_time() -> None:
    async def main() -> None:
        async with silent() as (port, asked):
            channel = ControllerChannel(
                "test", lambda: ControllerAddress(7, "127.0.0.1", port), OwnConnections(), exchange_timeout_s=0.05
            )
            call = asyncio.create_task(channel.call(BrokerHeartbeatRequest(), 1))
            for _ in range(2):
                await asyncio.wait_for(asked.wait(), IN_TIME_S)
                asked.clear()
            call.cancel()
            await asyncio.wait([call])
            channel.close()

    asyncio.run(main())
