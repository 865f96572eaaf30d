"""A node in memory with logs on disk: topics, what is appended to them, and readers that may wait."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from barnabas import wire
from barnabas.batches import Record, build_batch, decode_records, iterate_batches
from barnabas.broker.context import Listener, Peer
from barnabas.broker.dispatch import Pieces, dispatch
from barnabas.metadata.topics import UNASSIGNED_DIR
from barnabas.replicas.partition import Partition
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal
from barnabas.wire import APIS, ApiKey, Message, Uuid
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.records.metadata import PartitionRecord, TopicRecord
from tests.broker.harness import MemoryNode
from tests.storage.made import validated

NOW_MS = 1_700_000_000_000


def topic_id(name: str) -> Uuid:
    return Uuid(name.encode().ljust(16, b"."))


def partition_record(name: str, index: int, replicas: list[int], *, epoch: int = 0) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id(name),
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        leader_epoch=epoch,
        partition_epoch=epoch,
        directories=[UNASSIGNED_DIR] * len(replicas),
    )


class ReadingNode(MemoryNode):
    """Node 1, with its logs in a directory. `topics` gives the replicas of each partition of a topic."""

    def __init__(
        self,
        directory: Path,
        *,
        records: list[Message] | None = None,
        properties: dict[str, str] | None = None,
        **topics: list[list[int]],
    ) -> None:
        made: list[Message] = []
        for name, partitions in topics.items():
            made.append(TopicRecord(name=name, topic_id=topic_id(name)))
            made += [partition_record(name, index, replicas) for index, replicas in enumerate(partitions)]
        settings = {"log.dirs": str(directory), **(properties or {})}
        super().__init__(settings, brokers=2, records=[*made, *(records or ())], now_ms=NOW_MS)

    def partition(self, name: str = "t", index: int = 0) -> Partition:
        return self.replicas.partition(name, index)

    def append(
        self,
        *values: bytes,
        name: str = "t",
        index: int = 0,
        timestamp: int = NOW_MS,
        guard: int | None = None,
        **producer: Any,
    ) -> int:
        """One batch; gives its size."""
        records = [
            Record(offset=number, timestamp=timestamp, key=None, value=value, headers=())
            for number, value in enumerate(values)
        ]
        batch = build_batch(records, **producer)
        self.partition(name, index).append(validated(batch), guard)
        return len(batch)

    def begin(
        self, request: Message, version: int, principal: KafkaPrincipal = ANONYMOUS
    ) -> Pieces | Awaitable[Pieces | None] | None:
        """What a connection gets when the request has come in."""
        key = request.schema().key or 0
        header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=5, client_id="test")
        frame = wire.encode(header, APIS[key].request_header_version(version)) + wire.encode(request, version)
        return dispatch(frame, self, Peer("127.0.0.1", principal, Listener("PLAINTEXT", False)))

    async def ask(self, request: Message, version: int, principal: KafkaPrincipal = ANONYMOUS) -> Any:
        return await self.finish(self.begin(request, version, principal), version, request.schema().key or 0)

    async def finish(
        self, answer: Pieces | Awaitable[Pieces | None] | None, version: int, key: int = ApiKey.FETCH
    ) -> Any:
        pieces = await answer if inspect.isawaitable(answer) else answer
        assert pieces is not None
        body = b"".join(map(bytes, pieces))[8 + APIS[key].response_header_version(version) :]
        return wire.decode(APIS[key].response, version, body)


def fetch(
    *partitions: tuple[str, int, int],
    max_wait_ms: int = 0,
    partition_max_bytes: int = 1 << 20,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    **request: Any,
) -> FetchRequest:
    """A request for (topic, partition, offset), by name and by id: the version says which counts."""
    topics: dict[str, list[FetchRequest.FetchPartition]] = {}
    for name, index, offset in partitions:
        topics.setdefault(name, []).append(
            FetchRequest.FetchPartition(
                partition=index,
                fetch_offset=offset,
                partition_max_bytes=partition_max_bytes,
                current_leader_epoch=current_leader_epoch,
                last_fetched_epoch=last_fetched_epoch,
            )
        )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=request.pop("min_bytes", 1),
        topics=[
            FetchRequest.FetchTopic(topic=name, topic_id=topic_id(name), partitions=rows)
            for name, rows in topics.items()
        ],
        **request,
    )


def rows(response: FetchResponse) -> list[FetchResponse.PartitionData]:
    return [row for topic in response.responses for row in topic.partitions]


def values(row: FetchResponse.PartitionData) -> list[bytes]:
    """The values of the records that are no markers."""
    data = row.records or b""
    return [
        record.value or b""
        for position, header in iterate_batches(data)
        if not header.is_control
        for record in decode_records(data, position)
    ]
