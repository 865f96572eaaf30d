"""A node that moves to another address while it is being connected to."""

from __future__ import annotations

import asyncio

from barnabas.client import Cluster, node
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.wire.messages.metadata import MetadataResponse
from tests.client.peers import Asked, answering, peer, ranges


def test_a_request_to_a_node_that_moves_goes_to_its_new_address() -> None:
    async def main() -> str:
        ports = {"here": 0, "second": 0}

        def answer(asked: Asked) -> bytes:
            if asked.name == "ApiVersions":
                return asked.answer(ranges(Metadata=(0, 9), DescribeCluster=(0, 1)))
            if asked.name == "DescribeCluster":
                return asked.answer(DescribeClusterResponse(cluster_id="moved"))
            of = MetadataResponse.MetadataResponseBroker
            brokers = [
                of(node_id=1, host="127.0.0.1", port=ports["here"]),
                of(
                    node_id=2,
                    host="localhost" if ports["second"] == ports["here"] else "127.0.0.1",
                    port=ports["second"],
                ),
            ]
            return asked.answer(MetadataResponse(brokers=brokers, controller_id=1, cluster_id="moved"))

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

        async with (
            peer(answering(answer)) as ports["here"],
            peer(silent) as silent_port,
            Cluster({"bootstrap.servers": f"127.0.0.1:{ports['here']}"}) as cluster,
        ):
            ports["second"] = silent_port
            await cluster.refresh()
            asked = asyncio.create_task(cluster.call(DescribeClusterRequest(), to=node(2), timeout_ms=5000))
            await asyncio.sleep(0.1)
            ports["second"] = ports["here"]
            await cluster.refresh()
            response: DescribeClusterResponse = await asked
            return response.cluster_id

    assert asyncio.run(main()) == "moved"
