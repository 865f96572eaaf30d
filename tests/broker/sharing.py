"""A share group over the raw protocol: its state, and members that fetch and acknowledge on connections of their own."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from barnabas import wire
from barnabas.batches.builder import build_batch
from barnabas.batches.format import Record
from barnabas.broker.node import Node
from barnabas.broker.surroundings import REAL_WORLD, Surroundings
from barnabas.config import server
from barnabas.wire import APIS, ErrorCode, Message, Uuid
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_records import DeleteRecordsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from barnabas.wire.messages.share_fetch import ShareFetchRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest
from tests.broker.clients import RawClient, ask

Address = tuple[str, int]
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
GROUP_RESOURCE = 32
WAIT_S = 30.0
AGAIN = (3, 14, 15, 16)  # the topic is not known there yet; the coordinator is loading, not available, or elsewhere


async def until(is_true: Callable[[], Any], what: str = "") -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_true():
        assert time.monotonic() < deadline, what or "waited for too long"
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def running_node(tmp_path: Path, surroundings: Surroundings = REAL_WORLD, **settings: str) -> AsyncIterator[Node]:
    """A node. In the names of settings, _ stands for a dot."""
    text = (
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.bootstrap.servers=127.0.0.1:9093\n"
        f"listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\nlog.dirs={tmp_path}/data\n"
        "share.coordinator.state.topic.num.partitions=1\nshare.coordinator.state.topic.replication.factor=1\n"
        "share.coordinator.state.topic.min.isr=1\noffsets.topic.num.partitions=1\n"
    )
    given = "".join(f"{name.replace('_', '.')}={value}\n" for name, value in settings.items())
    node = Node(server.load(text + given), surroundings)
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


async def set_share_version(address: Address, level: int) -> None:
    """Set share.version."""
    kind = UpdateFeaturesRequest.FeatureUpdateKey
    update = kind(feature="share.version", max_version_level=level, upgrade_type=1 if level else 2)
    response = await ask(address, UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update]), 2)
    assert not response.error_code, response


async def create_topic(address: Address, name: str = "t", partitions: int = 1, **configs: str) -> Uuid:
    kind = CreateTopicsRequest
    rows = [kind.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    topic = kind.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=rows)
    response = await ask(address, kind(topics=[topic], timeout_ms=10_000), 7)
    assert not response.topics[0].error_code, response
    topic_id: Uuid = response.topics[0].topic_id
    return topic_id


async def initialize(
    address: Address, topic_id: Uuid, partitions: int = 1, *, group: str = "g", start: int = 0, epoch: int = 1
) -> None:
    """Set the state of a group's share partitions, as the group coordinator does."""
    deadline = time.monotonic() + WAIT_S
    for index in range(partitions):
        kind = InitializeShareGroupStateRequest
        row = kind.PartitionData(partition=index, state_epoch=epoch, start_offset=start)
        request = kind(group_id=group, topics=[kind.InitializeStateData(topic_id=topic_id, partitions=[row])])
        while True:
            found = FindCoordinatorRequest(key_type=2, coordinator_keys=[f"{group}:{topic_id}:{index}"])
            await ask(address, found, 6)  # it creates the topic of the states
            response = await ask(address, request, 0)
            code = response.results[0].partitions[0].error_code
            if not code:
                break
            assert code in AGAIN and time.monotonic() < deadline, response
            await asyncio.sleep(0.05)


async def produce(
    address: Address, topic_id: Uuid, count: int, *, partition: int = 0, batches: int = 1, age_ms: int = 0
) -> None:
    """Write batches of `count` records each."""
    for _ in range(batches):
        records = build_batch([Record(0, time.time_ns() // 1_000_000 - age_ms, None, b"value") for _ in range(count)])
        await produce_batch(address, topic_id, records, partition=partition)


async def produce_batch(
    address: Address, topic_id: Uuid, records: bytes, *, partition: int = 0, transactional_id: str | None = None
) -> None:
    kind = ProduceRequest
    data = kind.PartitionProduceData(index=partition, records=records)
    topics = [kind.TopicProduceData(topic_id=topic_id, partition_data=[data])]
    request = kind(transactional_id=transactional_id, acks=-1, timeout_ms=10_000, topic_data=topics)
    response = await ask(address, request, 13)
    assert not response.responses[0].partition_responses[0].error_code, response


async def configure_group(address: Address, group: str = "g", **configs: str) -> None:
    kind = IncrementalAlterConfigsRequest
    rows = [kind.AlterableConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
    resource = kind.AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=rows)
    response = await ask(address, kind(resources=[resource]), 1)
    assert not response.responses[0].error_code, response


async def delete_records(address: Address, topic: str, offset: int, partition: int = 0) -> None:
    kind = DeleteRecordsRequest
    rows = [kind.DeleteRecordsPartition(partition_index=partition, offset=offset)]
    response = await ask(
        address, kind(topics=[kind.DeleteRecordsTopic(name=topic, partitions=rows)], timeout_ms=10_000), 2
    )
    assert not response.topics[0].partitions[0].error_code, response


async def delete_topic(address: Address, topic_id: Uuid) -> None:
    kind = DeleteTopicsRequest
    response = await ask(
        address, kind(topics=[kind.DeleteTopicState(name=None, topic_id=topic_id)], timeout_ms=10_000), 6
    )
    assert not response.responses[0].error_code, response


async def transaction(address: Address, name: str, topic_id: Uuid, count: int, *, commits: bool) -> None:
    """Write a batch of records in a transaction, and end it."""
    deadline = time.monotonic() + WAIT_S
    while True:
        await ask(address, FindCoordinatorRequest(key_type=1, coordinator_keys=[name]), 4)
        begun = await ask(address, InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=10_000), 5)
        if not begun.error_code:
            break
        assert time.monotonic() < deadline, begun
        await asyncio.sleep(0.05)
    producer_id, epoch = begun.producer_id, begun.producer_epoch
    records = build_batch(
        [Record(0, time.time_ns() // 1_000_000, None, b"value") for _ in range(count)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        is_transactional=True,
    )
    await produce_batch(address, topic_id, records, transactional_id=name)
    end = EndTxnRequest(transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=commits)
    while (code := (await ask(address, end, 5)).error_code) != 0:
        assert code == ErrorCode.CONCURRENT_TRANSACTIONS and time.monotonic() < deadline, code
        await asyncio.sleep(0.05)


async def stable(address: Address, topic: str, end: int) -> None:
    """Wait until all transactions before this offset have ended."""
    kind = ListOffsetsRequest
    rows = [kind.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)]
    request = kind(replica_id=-1, isolation_level=1, topics=[kind.ListOffsetsTopic(name=topic, partitions=rows)])
    deadline = time.monotonic() + WAIT_S
    while (response := await ask(address, request, 7)).topics[0].partitions[0].offset != end:
        assert time.monotonic() < deadline, response
        await asyncio.sleep(0.05)


class Member:
    """A member of a share group on a connection of its own, which continues its share session with each request."""

    def __init__(self, address: Address, topic_id: Uuid, member_id: str = "a", group: str = "g") -> None:
        self.address = address
        self.topic_id = topic_id
        self.member_id = member_id
        self.group = group
        self.epoch = 0
        self._client: RawClient | None = None

    async def ask(self, request: Message, version: int = 2) -> Any:
        if self._client is None:
            self._client = await RawClient.connect(self.address)
        key = request.schema().key or 0
        api = APIS[key]
        header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=7, client_id="test")
        frame = wire.encode(header, api.request_header_version(version)) + wire.encode(request, version)
        answer = await self._client.call(frame)
        return wire.decode(api.response, version, answer[4 + api.response_header_version(version) :])

    async def leave(self) -> None:
        """Disconnect without a word."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _moved_on(self, response: Any) -> Any:
        if not response.error_code and self.epoch >= 0:
            self.epoch += 1
        return response

    async def fetch(
        self,
        partitions: Sequence[int] = (0,),
        *,
        said: dict[int, list[tuple[int, int, list[int]]]] | None = None,
        version: int = 2,
        topic_id: Uuid | None = None,
        forgotten: Sequence[int] = (),
        **fields: Any,
    ) -> Any:
        kind = ShareFetchRequest
        named = dict.fromkeys([*(partitions if self.epoch == 0 else ()), *(said or {})])
        rows = [
            kind.FetchPartition(
                partition_index=index,
                acknowledgement_batches=[
                    kind.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
                    for first, last, types in (said or {}).get(index, [])
                ],
            )
            for index in named
        ]
        wanted = {
            **{"group_id": self.group, "member_id": self.member_id, "share_session_epoch": self.epoch},
            **{"max_wait_ms": 2000, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500},
        }
        topic = topic_id or self.topic_id
        request = kind(
            topics=[kind.FetchTopic(topic_id=topic, partitions=rows)] if rows else [],
            forgotten_topics_data=[kind.ForgottenTopic(topic_id=topic, partitions=list(forgotten))]
            if forgotten
            else [],
            **{**wanted, **fields},
        )
        return self._moved_on(await self.ask(request, version))

    async def acknowledge(
        self,
        said: list[tuple[int, int, list[int]]],
        *,
        partition: int = 0,
        version: int = 2,
        topic_id: Uuid | None = None,
        **fields: Any,
    ) -> Any:
        kind = ShareAcknowledgeRequest
        batches = [
            kind.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
            for first, last, types in said
        ]
        row = kind.AcknowledgePartition(partition_index=partition, acknowledgement_batches=batches)
        topics = [kind.AcknowledgeTopic(topic_id=topic_id or self.topic_id, partitions=[row])]
        wanted = {"group_id": self.group, "member_id": self.member_id, "share_session_epoch": self.epoch}
        request = kind(topics=topics, **{**wanted, **fields})
        return self._moved_on(await self.ask(request, version))

    async def close(self) -> Any:
        """End the session."""
        self.epoch = -1
        return await self.fetch(max_wait_ms=0)


def acquired(response: Any, partition: int = 0) -> list[tuple[int, int, int]]:
    """What a fetch has acquired of a partition: first and last offset, and delivery count."""
    assert not response.error_code, response
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in response.responses
        for row in topic.partitions
        if row.partition_index == partition
        for each in row.acquired_records
    ]


def row_of(response: Any, partition: int = 0) -> Any:
    """The row of a partition."""
    return next(row for topic in response.responses for row in topic.partitions if row.partition_index == partition)
