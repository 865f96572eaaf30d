"""Read the metadata log of a running cluster from its controllers, up to the high watermark or without end.

    async with Cluster({"bootstrap.controllers": "localhost:9093"}) as cluster:
        async for part in read_metadata_log(cluster):
            match part:
                case LogSnapshot(): ...   # replaces all records before `end_offset`, if the log begins later
                case LogBatch(): ...      # committed records, in order

`fetch_metadata_log` yields the same as the bytes that came, for copies.

Uses Fetch (1) as an observer with replica id -1, FetchSnapshot (59) and DescribeQuorum (55). Its one rule: only committed
records are yielded, and their checksums fit. Batches are whole, so the first one may begin before the requested offset. Records
are not interpreted here. Reading needs CLUSTER_ACTION on the cluster; brokers do not serve the metadata log.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from barnabas.batches import BatchError, BatchHeader, Record, check_crc, decode_records, iterate_batches
from barnabas.client.admin.part import failed
from barnabas.client.admin.quorum import Quorum
from barnabas.client.cluster import Cluster
from barnabas.client.errors import UnsupportedByNodeError
from barnabas.client.retry import NOT_DONE
from barnabas.client.routing import controller
from barnabas.config.internal_topics import CLUSTER_METADATA_TOPIC
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from barnabas.wire.primitives import Uuid

METADATA_TOPIC_ID = Uuid(bytes(15) + b"\x01")
MAX_BYTES = 8 * 1024 * 1024
MAX_WAIT_MS = 500

_FIRST_WITH_TOPIC_IDS = 13  # controllers require them
_ATTEMPTS = 10
_MOVED = NOT_DONE | {ErrorCode.SNAPSHOT_NOT_FOUND}  # the leader changed, or made a newer snapshot
_LANE = "metadata-log"
_UNCOMMITTED_S = 0.02  # a leader answers at once while it has records that are not committed yet


@dataclass(frozen=True, slots=True)
class LogBatch:
    """A committed batch. `records` of a control batch have the keys of Kafka's control records."""

    header: BatchHeader
    records: tuple[Record, ...]

    @property
    def base_offset(self) -> int:
        return self.header.base_offset

    @property
    def last_offset(self) -> int:
        return self.header.last_offset

    @property
    def epoch(self) -> int:
        return self.header.partition_leader_epoch

    @property
    def is_control(self) -> bool:
        return self.header.is_control


@dataclass(frozen=True, slots=True)
class LogSnapshot:
    """Replaces all records before `end_offset`. `epoch` is that of the last of them. Offsets in a snapshot begin at 0."""

    end_offset: int
    epoch: int
    batches: tuple[LogBatch, ...]


LogPart: TypeAlias = LogBatch | LogSnapshot


class RawBatch(NamedTuple):
    """A committed batch as it is in the leader's log."""

    header: BatchHeader
    data: bytes


class RawSnapshot(NamedTuple):
    """A snapshot file, which replaces all records before `end_offset`."""

    end_offset: int
    epoch: int
    data: bytes


class CaughtUp(NamedTuple):
    """All records before `end_offset` were yielded, and no others are committed yet."""

    end_offset: int


class _Place(NamedTuple):
    """The next offset to read, and the epoch of the record before it."""

    offset: int
    epoch: int | None = None  # None: nothing was read yet


async def read_metadata_log(
    cluster: Cluster,
    offset: int = 0,
    *,
    follow: bool = False,
    max_bytes: int = MAX_BYTES,
    max_wait_ms: int = MAX_WAIT_MS,
    timeout_ms: float | None = None,
) -> AsyncIterator[LogPart]:
    """Yield committed batches from `offset` on, up to the high watermark of the first response, or without end if `follow`.

    A snapshot comes first if the log begins after `offset`; leaders may also send one to readers that begin at 0. The
    cluster must be given by `bootstrap.controllers`. A new leader is found automatically. Raises `KafkaError`.
    """
    parts = fetch_metadata_log(
        cluster, offset, follow=follow, max_bytes=max_bytes, max_wait_ms=max_wait_ms, timeout_ms=timeout_ms
    )
    async for part in parts:
        if isinstance(part, RawBatch):
            yield _decoded(part)
        elif isinstance(part, RawSnapshot):
            yield LogSnapshot(part.end_offset, part.epoch, tuple(decode_batches(part.data)))


async def fetch_metadata_log(
    cluster: Cluster,
    offset: int = 0,
    *,
    epoch: int | None = None,
    follow: bool = False,
    max_bytes: int = MAX_BYTES,
    max_wait_ms: int = MAX_WAIT_MS,
    timeout_ms: float | None = None,
) -> AsyncIterator[RawBatch | RawSnapshot | CaughtUp]:
    """Yield what `read_metadata_log` does, as bytes, and `CaughtUp` when all that is committed was yielded.

    `epoch` is that of the record before `offset`, if it is known.
    """
    if not cluster.settings.bootstrap_controllers:
        raise UnsupportedByNodeError("brokers do not serve the metadata log: use bootstrap.controllers")
    place = _Place(offset, epoch)
    end_offset: int | None = None
    leader_epoch, attempts = await _leader_epoch(cluster, timeout_ms), 0
    while end_offset is None or follow or place.offset < end_offset:
        try:
            row = await _fetch(cluster, place, leader_epoch, max_bytes, max_wait_ms, timeout_ms)
            snapshot = await _snapshot_of(cluster, row, leader_epoch, max_bytes, timeout_ms)
        except KafkaError as error:
            attempts += 1
            if error.code not in _MOVED or attempts >= _ATTEMPTS:
                raise
            await cluster.refresh(timeout_ms=timeout_ms)
            leader_epoch = await _leader_epoch(cluster, timeout_ms)
            continue
        attempts = 0
        if snapshot is not None:
            yield snapshot
            place = _Place(snapshot.end_offset, snapshot.epoch)
        elif row.diverging_epoch.epoch >= 0 or row.diverging_epoch.end_offset >= 0:
            text = f"the log has no offset {place.offset}: it ends at {row.diverging_epoch.end_offset}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, text)
        else:
            before = place
            for batch in _committed(row.records or b"", place.offset, row.high_watermark):
                yield batch
                place = _Place(batch.header.last_offset + 1, batch.header.partition_leader_epoch)
            if row.records and place is before:
                await asyncio.sleep(_UNCOMMITTED_S)
        if place.offset >= row.high_watermark >= 0:
            yield CaughtUp(row.high_watermark)
        if end_offset is None and row.high_watermark >= 0:
            end_offset = row.high_watermark


def _committed(data: bytes, offset: int, high_watermark: int) -> Iterator[RawBatch]:
    for batch in _split(data):
        if batch.header.last_offset >= high_watermark:
            return
        if batch.header.last_offset >= offset:
            yield batch


def _split(data: bytes) -> Iterator[RawBatch]:
    """Yield the whole batches in a response. Raises `KafkaError` CORRUPT_MESSAGE if bytes are damaged."""
    try:
        for position, header in iterate_batches(data, tolerate_truncated=True):
            check_crc(header, data, position)
            yield RawBatch(header, data[position : position + header.size_in_bytes])
    except BatchError as error:
        raise _damaged(error) from error


def decode_batches(data: bytes) -> Iterator[LogBatch]:
    """Decode the whole batches in a response. Raises `KafkaError` CORRUPT_MESSAGE if bytes are damaged."""
    return map(_decoded, _split(data))


def _decoded(batch: RawBatch) -> LogBatch:
    try:
        return LogBatch(batch.header, tuple(decode_records(batch.data, 0, batch.header)))
    except BatchError as error:
        raise _damaged(error) from error


def _damaged(error: BatchError) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{CLUSTER_METADATA_TOPIC}: {error}")


async def _leader_epoch(cluster: Cluster, timeout_ms: float | None) -> int:
    return (await Quorum(cluster).describe_quorum(timeout_ms=timeout_ms)).leader_epoch


async def _fetch(
    cluster: Cluster, place: _Place, leader_epoch: int, max_bytes: int, max_wait_ms: int, timeout_ms: float | None
) -> FetchResponse.PartitionData:
    epoch = place.epoch if place.epoch is not None else leader_epoch if place.offset else 0
    partition = FetchRequest.FetchPartition(
        partition=0,
        current_leader_epoch=leader_epoch,
        fetch_offset=place.offset,
        last_fetched_epoch=min(epoch, leader_epoch),
        partition_max_bytes=max_bytes,
    )
    topic = FetchRequest.FetchTopic(topic=CLUSTER_METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
    response: FetchResponse = await cluster.call(
        FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=max_bytes, topics=[topic]),
        controller(),
        least_version=_FIRST_WITH_TOPIC_IDS,
        feature="reading the metadata log",
        give_up_on=NOT_DONE,
        timeout_ms=timeout_ms,
        lane=_LANE,
    )
    rows = [row for each in response.responses for row in each.partitions]
    if len(rows) != 1:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"the response to Fetch has {len(rows)} rows for the metadata log"
        )
    if (error := failed(rows[0].error_code)) is not None:
        raise error
    return rows[0]


async def _snapshot_of(
    cluster: Cluster, fetched: FetchResponse.PartitionData, leader_epoch: int, max_bytes: int, timeout_ms: float | None
) -> RawSnapshot | None:
    """Fetch the snapshot that a response refers to, in pieces."""
    end_offset, epoch = fetched.snapshot_id.end_offset, fetched.snapshot_id.epoch
    if end_offset < 0:
        return None
    data = bytearray()
    size = None
    while size is None or len(data) < size:
        partition = FetchSnapshotRequest.PartitionSnapshot(
            partition=0,
            current_leader_epoch=leader_epoch,
            snapshot_id=FetchSnapshotRequest.SnapshotId(end_offset=end_offset, epoch=epoch),
            position=len(data),
        )
        topic = FetchSnapshotRequest.TopicSnapshot(name=CLUSTER_METADATA_TOPIC, partitions=[partition])
        response: FetchSnapshotResponse = await cluster.call(
            FetchSnapshotRequest(max_bytes=max_bytes, topics=[topic]),
            controller(),
            feature=f"reading a metadata log that begins with the snapshot at offset {end_offset}",
            give_up_on=NOT_DONE,
            timeout_ms=timeout_ms,
            lane=_LANE,
        )
        row = response.topics[0].partitions[0]
        if (error := failed(row.error_code)) is not None:
            raise error
        size = row.size
        if not row.unaligned_records and len(data) < size:
            text = f"the snapshot at offset {end_offset} ends after {len(data)} of {size} bytes"
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, text)
        data += row.unaligned_records or b""
    return RawSnapshot(end_offset, epoch, bytes(data))
