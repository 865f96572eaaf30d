"""Batches of records, and the queue of batches of each partition: gathered, sent, retried, split, and completed.

Its one rule: the records of a partition are written once each, in the order in which they were appended. So batches
with a sequence stay in order until they are completed, and of batches that are retried only the first may be sent. No
I/O and no clock: times are passed in, in seconds.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from barnabas.batches import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Compression,
    Headers,
    Record,
    build_batch,
    crc32c,
)
from barnabas.batches.format import ATTRIBUTES_POSITION, CRC_POSITION, HEADER_SIZE, MAX_INT32
from barnabas.client.producing.settings import MAX_ORDERED_IN_FLIGHT
from barnabas.client.records import RecordMetadata, TopicPartition

__all__ = ["Batch", "Delivery", "PartitionQueue", "record_size", "stamp_producer"]

_RECORD_OVERHEAD = 21  # maximum size of the lengths, deltas and attributes of a record
_PRODUCER_POSITION = 43
_PRODUCER = struct.Struct(">qhi")
_CRC = struct.Struct(">I")


def record_size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Return an upper bound of the size of a record in a batch."""
    size = _RECORD_OVERHEAD + (len(key) if key is not None else 0) + (len(value) if value is not None else 0)
    for name, content in headers:
        size += 10 + 3 * len(name) + (len(content) if content is not None else 0)
    return size


def stamp_producer(batch: bytearray, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
    """Write the producer id, the epoch and the first sequence number into the header of a batch."""
    _PRODUCER.pack_into(batch, _PRODUCER_POSITION, producer_id, producer_epoch, base_sequence)
    with memoryview(batch) as view:
        _CRC.pack_into(batch, CRC_POSITION, crc32c(view[ATTRIBUTES_POSITION:]))


DoneCallback: TypeAlias = Callable[[RecordMetadata | None, Exception | None], None]


class Delivery:
    """A record that was accepted.

    Awaiting it returns its `RecordMetadata`, or raises the error if it was not written.
    """

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: Batch, index: int) -> None:
        self._batch = batch
        self._index = index

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        batch, index = self._batch, self._index
        while True:
            yield from batch.answered().__await__()
            if batch.parts is None:
                return batch.metadata(index)
            for part in batch.parts:  # the batch was too large and was split
                if index < part.count:
                    batch = part
                    break
                index -= part.count

    def add_done_callback(self, callback: DoneCallback) -> None:
        """Call `callback(metadata, None)` when the record is written, or `callback(None, error)` when it has failed."""
        self._batch.call_when_done(self._index, callback)

    def done(self) -> bool:
        """Whether the record is written or has failed."""
        batch, index = self._batch, self._index
        while batch.parts is not None:
            first = batch.parts[0]
            batch, index = (first, index) if index < first.count else (batch.parts[1], index - first.count)
        return batch.is_done

    def shares_batch(self, other: Delivery) -> bool:
        """Whether both records were accepted into one batch, so that they are written together."""
        return self._batch is other._batch


class Batch:
    """Records of one partition that are sent together. Records can be added until it is encoded."""

    __slots__ = (
        "_answer",
        "_callbacks",
        "attempts",
        "base_offset",
        "base_sequence",
        "count",
        "created_s",
        "data",
        "error",
        "is_done",
        "last_error",
        "log_append_time_ms",
        "maybe_written",
        "not_before_s",
        "partition",
        "parts",
        "producer",
        "records",
        "size",
        "was_rewritten",
    )

    def __init__(self, partition: TopicPartition, created_s: float) -> None:
        self.partition = partition
        self.created_s = created_s
        self.records: list[Record] = []
        self.count = 0
        self.size = HEADER_SIZE
        self.data: bytearray | None = None
        self.producer = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        self.base_sequence = NO_SEQUENCE
        self.attempts = 0
        self.not_before_s = 0.0
        self.maybe_written = False
        self.was_rewritten = False
        self.parts: list[Batch] | None = None
        self.is_done = False
        self.base_offset = -1
        self.log_append_time_ms = -1
        self.error: Exception | None = None
        self.last_error: Exception | None = None  # the reason of the last retry
        self._answer: asyncio.Future[None] | None = None
        self._callbacks: list[tuple[int, DoneCallback]] | None = None

    @property
    def has_sequence(self) -> bool:
        return self.base_sequence != NO_SEQUENCE

    def encode(self, compression: Compression, level: int | None, *, is_transactional: bool) -> None:
        if self.data is None:
            self.data = bytearray(
                build_batch(
                    self.records,
                    compression=compression,
                    level=level,
                    is_transactional=is_transactional,
                    partition_leader_epoch=NO_LEADER_EPOCH,
                )
            )

    def stamp(self, producer: tuple[int, int], base_sequence: int) -> None:
        """Set the producer and the first sequence number. They change when the producer gets a new id or epoch."""
        self.producer, self.base_sequence = producer, base_sequence
        if self.data is not None:
            stamp_producer(self.data, *producer, base_sequence)

    def split(self) -> list[Batch]:
        """Return two halves that replace this batch, with its sequence numbers.

        Deliveries of this batch follow the halves.
        """
        middle = self.count // 2
        halves = []
        for records in (self.records[:middle], self.records[middle:]):
            half = Batch(self.partition, self.created_s)
            half.records, half.count, half.attempts = records, len(records), self.attempts + 1
            half.size = HEADER_SIZE + sum(record_size(each.key, each.value, each.headers) for each in records)
            halves.append(half)
        if self.base_sequence != NO_SEQUENCE:
            halves[0].stamp(self.producer, self.base_sequence)
            halves[1].stamp(self.producer, (self.base_sequence + middle) & MAX_INT32)
        self.parts = halves
        self._finish()
        return halves

    # --- completion

    @property
    def payload_size(self) -> int:
        """Number of bytes that it occupies of `buffer.memory`."""
        return self.size - HEADER_SIZE

    async def settled(self) -> None:
        """Wait until all its records are written or have failed, also those of its halves."""
        await self.answered()
        for part in self.parts or ():
            await part.settled()

    def answered(self) -> asyncio.Future[None]:
        """Return a future that is done when the batch is completed or split. Created on first use."""
        if self._answer is None:
            self._answer = asyncio.get_running_loop().create_future()
            if self.is_done:
                self._answer.set_result(None)
        return self._answer if self._answer.done() else asyncio.shield(self._answer)

    def succeed(self, base_offset: int, log_append_time_ms: int) -> None:
        self.base_offset, self.log_append_time_ms = base_offset, log_append_time_ms
        self._finish()

    def fail(self, error: Exception) -> None:
        self.error = error
        self._finish()

    def _finish(self) -> None:
        self.is_done = True
        self.data = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)
        if self._callbacks is not None:
            callbacks, self._callbacks = self._callbacks, None
            for index, callback in callbacks:
                self.call_when_done(index, callback)

    def call_when_done(self, index: int, callback: DoneCallback) -> None:
        """Call a callback with the outcome of a record, once it is known."""
        if self.parts is not None:
            first, second = self.parts
            if index < first.count:
                first.call_when_done(index, callback)
            else:
                second.call_when_done(index - first.count, callback)
        elif not self.is_done:
            if self._callbacks is None:
                self._callbacks = []
            self._callbacks.append((index, callback))
        elif self.error is not None:
            callback(None, self.error)
        else:
            callback(self.metadata(index), None)

    def metadata(self, index: int) -> RecordMetadata:
        if self.error is not None:
            raise self.error
        offset = -1 if self.base_offset < 0 else self.base_offset + index
        timestamp_ms = self.log_append_time_ms if self.log_append_time_ms >= 0 else self.records[index].timestamp
        return RecordMetadata(*self.partition, offset, timestamp_ms)


class PartitionQueue:
    """The batches of one partition that wait, in order, and those in flight."""

    __slots__ = (
        "in_flight",
        "is_unresolved",
        "known_id",
        "last_acked_offset",
        "next_sequence",
        "node_id",
        "on_the_wire",
        "open",
        "partition",
        "producer",
        "waiting",
    )

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.waiting: deque[Batch] = deque()
        self.open: Batch | None = None  # the last batch of `waiting`, while records can be added to it
        self.in_flight: list[Batch] = []  # batches with a sequence, in order, also those that wait for a retry
        self.on_the_wire = 0  # batches in requests without a response yet
        self.producer = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        self.next_sequence = 0
        self.node_id = -1  # the node of the requests on the wire
        self.last_acked_offset = -1
        self.is_unresolved = False  # a batch failed that may have been written
        self.known_id = NO_PRODUCER_ID  # the last producer id of which the partition has a batch

    def append(self, record: Record, size: int, batch_size: int, now_s: float) -> Delivery:
        """Add a record to the open batch, or to a new one if it is full. A record larger than a batch gets its own."""
        batch = self.open
        if batch is None or batch.size + size > batch_size:
            batch = self.open = Batch(self.partition, now_s)
            self.waiting.append(batch)
        index = batch.count
        batch.records.append(record)
        batch.count = index + 1
        batch.size += size
        return Delivery(batch, index)

    # --- sending

    def ready_in_s(self, now_s: float, linger_s: float, batch_size: int, *, is_flushing: bool) -> float | None:
        """Return the seconds until the first batch may be sent, 0 for now, or None if no batch waits."""
        if not self.waiting:
            return None
        batch = self.waiting[0]
        if batch.attempts:
            return max(0.0, batch.not_before_s - now_s)
        if is_flushing or batch is not self.open or batch.size >= batch_size:
            return 0.0
        return max(0.0, batch.created_s + linger_s - now_s)

    def may_drain(self, producer: tuple[int, int] | None) -> bool:
        """Whether the first batch may be sent beside those in flight. `producer` is None if not idempotent."""
        if producer is None:
            return True
        first = self.waiting[0]
        if first.has_sequence:  # only the first batch in flight is retried, so that the order is kept
            return bool(self.in_flight) and self.in_flight[0] is first
        if self.is_unresolved or len(self.in_flight) >= MAX_ORDERED_IN_FLIGHT:
            return False
        # A broker takes any sequence number from a producer id that it does not know. If it refused the first batch,
        # it could accept the second one, and the first would come after it.
        if self.in_flight and self.known_id != producer[0]:
            return False
        if any(batch.attempts and batch in self.waiting for batch in self.in_flight):
            return False
        # A new id or epoch is used once all batches of the old one are completed.
        return self.producer == producer or not self.in_flight

    def drain(self, producer: tuple[int, int] | None) -> Batch:
        """Remove and return the first batch, with a sequence number."""
        batch = self.waiting.popleft()
        if batch is self.open:
            self.open = None
        self.on_the_wire += 1
        if producer is not None and not batch.has_sequence:
            if self.producer != producer:
                self.begin_anew(producer)
            batch.stamp(producer, self.next_sequence)
            self.next_sequence = (self.next_sequence + batch.count) & MAX_INT32
            self.in_flight.append(batch)
        return batch

    def begin_anew(self, producer: tuple[int, int]) -> None:
        """Start sequence numbers at 0 with a new id or epoch, also for batches in flight: none of them was written."""
        self.producer = producer
        self.is_unresolved = False
        sequence = 0
        for batch in self.in_flight:
            batch.stamp(producer, sequence)
            batch.was_rewritten = True
            sequence = (sequence + batch.count) & MAX_INT32
        self.next_sequence = sequence

    # --- outcomes

    def put_back(self, batch: Batch) -> None:
        """Insert a batch that is retried, before all batches that come after it in order."""
        place = 0
        if batch.has_sequence:
            order = {id(each): at for at, each in enumerate(self.in_flight)}
            mine = order[id(batch)]
            while place < len(self.waiting) and order.get(id(self.waiting[place]), len(order)) < mine:
                place += 1
        else:
            while place < len(self.waiting) and 0 < self.waiting[place].attempts <= batch.attempts:
                place += 1
        self.waiting.insert(place, batch)

    def acked(self, batch: Batch, base_offset: int) -> None:
        if batch.has_sequence:
            self.known_id = batch.producer[0]
        if batch in self.in_flight:
            self.in_flight.remove(batch)
        self.last_acked_offset = max(self.last_acked_offset, base_offset + batch.count - 1)

    def given_up(self, batch: Batch) -> None:
        if batch in self.in_flight:
            self.in_flight.remove(batch)

    def replace(self, batch: Batch, halves: list[Batch]) -> None:
        """Replace a batch that was too large by its halves."""
        if batch in self.in_flight:
            at = self.in_flight.index(batch)
            self.in_flight[at : at + 1] = halves
        for half in halves:
            self.put_back(half)

    def is_first(self, batch: Batch) -> bool:
        """Whether all batches before this one are completed."""
        return not self.in_flight or self.in_flight[0] is batch
