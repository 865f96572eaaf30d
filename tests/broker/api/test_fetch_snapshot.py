"""FetchSnapshot (59): pieces of a snapshot for whoever may, and errors for what is not there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.client import Cluster, controller
from barnabas.testing import Broker
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse

TOPIC = "__cluster_metadata"
SMALL = {"metadata.log.max.record.bytes.between.snapshots": 1000}


async def fetch(
    cluster: Cluster, end_offset: int, position: int = 0, *, leader_epoch: int = 1, topic: str = TOPIC
) -> Any:
    partition = FetchSnapshotRequest.PartitionSnapshot(
        current_leader_epoch=leader_epoch,
        snapshot_id=FetchSnapshotRequest.SnapshotId(end_offset=end_offset, epoch=1),
        position=position,
    )
    topics = [FetchSnapshotRequest.TopicSnapshot(name=topic, partitions=[partition])]
    response: FetchSnapshotResponse = await cluster.send(
        FetchSnapshotRequest(max_bytes=100, topics=topics), controller()
    )
    if response.error_code:
        raise KafkaError(ErrorCode(response.error_code))
    return response.topics[0].partitions[0]


def test_a_snapshot_comes_in_pieces_and_what_is_not_there_is_an_error() -> None:
    async def ask(broker: Broker) -> None:
        path = max((broker.data_dir / f"{TOPIC}-0").glob("*.checkpoint"))
        end_offset = int(path.name.partition("-")[0])
        async with Cluster({"bootstrap.controllers": broker.listeners["CONTROLLER"]}) as cluster:
            first = await fetch(cluster, end_offset)
            second = await fetch(cluster, end_offset, 100)
            assert (first.size, first.unaligned_records) == (path.stat().st_size, path.read_bytes()[:100])
            assert second.unaligned_records == path.read_bytes()[100:200]
            assert (first.current_leader.leader_id, first.current_leader.leader_epoch) == (1, 1)
            codes = {
                "no such snapshot": await fetch(cluster, 999_999),
                "beyond its end": await fetch(cluster, end_offset, first.size + 1),
                "another epoch": await fetch(cluster, end_offset, leader_epoch=9),
                "another topic": await fetch(cluster, end_offset, topic="orders"),
            }
        assert {name: ErrorCode(row.error_code).name for name, row in codes.items()} == {
            "no such snapshot": "SNAPSHOT_NOT_FOUND",
            "beyond its end": "POSITION_OUT_OF_RANGE",
            "another epoch": "UNKNOWN_LEADER_EPOCH",
            "another topic": "UNKNOWN_TOPIC_OR_PARTITION",
        }

    with Broker(config=SMALL) as broker:
        for number in range(15):
            broker.create_topic(f"t{number}")
        asyncio.run(ask(broker))


def test_it_needs_cluster_action() -> None:
    denied = CreateAclsRequest.AclCreation(
        resource_type=4,
        resource_name="kafka-cluster",
        resource_pattern_type=3,
        principal="User:ANONYMOUS",
        host="*",
        operation=9,
        permission_type=2,
    )
    allowed = CreateAclsRequest.AclCreation(
        resource_type=4,
        resource_name="kafka-cluster",
        resource_pattern_type=3,
        principal="User:ANONYMOUS",
        host="*",
        operation=2,
        permission_type=3,
    )

    async def ask(broker: Broker) -> None:
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            await cluster.call(CreateAclsRequest(creations=[denied, allowed]))
        async with Cluster({"bootstrap.controllers": broker.listeners["CONTROLLER"]}) as cluster:
            with pytest.raises(KafkaError) as refused:
                await fetch(cluster, 10)
        assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    settings: dict[str, str | bool] = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": True,
    }
    with Broker(config=settings) as broker:
        asyncio.run(ask(broker))
