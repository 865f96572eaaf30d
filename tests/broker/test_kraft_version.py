"""A quorum whose voters stand in the settings is made one whose voters stand in the log."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tools.apache_kafka import free_ports

from barnabas.broker.node import Node
from barnabas.client import Cluster, any_broker
from barnabas.config import server
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest

Update = UpdateFeaturesRequest.FeatureUpdateKey


def properties(directory: Path) -> str:
    broker, controller = free_ports(2)
    return (
        f"process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@localhost:{controller}\n"
        f"listeners=PLAINTEXT://localhost:{broker},CONTROLLER://localhost:{controller}\n"
        f"controller.listener.names=CONTROLLER\nlog.dirs={directory}\n"
    )


async def with_node(text: str, *updates: tuple[UpdateFeaturesRequest, int]) -> tuple[list[Any], Any, int]:
    """What the updates were answered, who votes then, and the finalized kraft.version."""
    node = Node(server.load(text))
    await node.start()
    try:
        address = text.partition("listeners=PLAINTEXT://")[2].partition(",")[0]
        async with Cluster({"bootstrap.servers": address}) as cluster:
            answers = [await cluster.send(request, any_broker(), version=version) for request, version in updates]
            partition = DescribeQuorumRequest.PartitionData(partition_index=0)
            topic = DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])
            response = await cluster.call(DescribeQuorumRequest(topics=[topic]), any_broker())
        return answers, response.topics[0].partitions[0].current_voters, node.quorum.kraft_version
    finally:
        await node.stop()


def test_the_only_voter_raises_it_and_it_stays(tmp_path: Path) -> None:
    text = properties(tmp_path / "data")
    raised = UpdateFeaturesRequest(feature_updates=[Update(feature="kraft.version", max_version_level=1)])
    only_asked = UpdateFeaturesRequest(feature_updates=raised.feature_updates, validate_only=True)
    answers, _, level = asyncio.run(with_node(text, (only_asked, 2)))
    assert ([each.error_code for each in answers], level) == ([0], 0)
    answers, voters, level = asyncio.run(with_node(text, (raised, 2), (raised, 2)))
    assert ([each.error_code for each in answers], level) == ([0, 0], 1)
    directory_id = voters[0].replica_directory_id
    assert any(directory_id)
    _, voters, level = asyncio.run(with_node(text))
    assert (level, voters[0].replica_directory_id) == (1, directory_id)
