"""The records of a producer that are not written yet, in batches by partition: at most `buffer.memory` bytes.

Its one rule: `buffered` is the size of all records in `incomplete` batches. A record counts from `append` until its
batch is written or has failed. `wake` tells the sender that there is something to do.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from barnabas.batches import Headers, Record
from barnabas.client.cluster import Cluster
from barnabas.client.errors import CallTimeoutError, ClosedError
from barnabas.client.producing.batch import Batch, Delivery, PartitionQueue, record_size
from barnabas.client.producing.identity import Identity
from barnabas.client.producing.partitioner import Partitioner
from barnabas.client.producing.settings import ProducerSettings
from barnabas.client.records import TopicPartition
from barnabas.wire import ErrorCode, KafkaError


class Accumulator:
    """Batches by partition. `active` has the queues that the sender has to check, `queues` all of them."""

    def __init__(
        self, cluster: Cluster, settings: ProducerSettings, identity: Identity, random: Callable[[], float]
    ) -> None:
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        self.active: dict[TopicPartition, PartitionQueue] = {}
        self.incomplete: set[Batch] = set()
        self.buffered = 0
        self.wake = asyncio.Event()
        self._cluster = cluster
        self._settings = settings
        self._identity = identity
        self._partitioner = Partitioner(settings.batch_size, settings.ignore_keys, random)
        self._flushes = 0
        self._waiting_for_room: deque[asyncio.Future[None]] = deque()
        self._refusal: str | None = "the producer was not started"

    def open(self) -> None:
        """Accept records from now on."""
        self._refusal = None

    def refuse(self) -> None:
        """Accept no more records. Those that were accepted can still be sent."""
        self._refusal = "the producer is closed"

    def close(self) -> None:
        """Fail the records that are left with `ClosedError`."""
        for batch in self.incomplete:
            batch.fail(ClosedError("the producer was closed before the record was written"))
        for waiting in self._waiting_for_room:
            if not waiting.done():
                waiting.set_exception(ClosedError("the producer is closed"))

    def append(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        headers: Headers,
        timestamp_ms: int | None,
    ) -> Delivery | None:
        """Add a record to the batch of its partition. Returns None if the topic is unknown or there is no room."""
        if self._refusal is not None:
            raise ClosedError(self._refusal)
        known = self._cluster.state.topics.get(topic)
        if known is None:
            return None
        size = record_size(key, value, headers)
        settings = self._settings
        if size > settings.max_request_size:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE, f"the record has {size} bytes, more than max.request.size allows"
            )
        if self.buffered + size > settings.buffer_memory and self.buffered:
            return None
        if partition is None:
            partition = self._partitioner.partition(known, key, size)
        elif partition not in known.partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic} has no partition {partition}")
        place = TopicPartition(topic, partition)
        if self._identity.transactional_id is not None:
            self._identity.touch(place)
        queue = self.active.get(place)
        if queue is None:
            queue = self.queues.get(place)
            if queue is None:
                queue = self.queues[place] = PartitionQueue(place)
            self.active[place] = queue
        if timestamp_ms is None:
            timestamp_ms = int(time.time() * 1000)
        last, batch_size = queue.open, settings.batch_size
        opens_batch = last is None or last.size + size > batch_size
        now_s = asyncio.get_running_loop().time() if opens_batch else 0.0
        delivery = queue.append(Record(-1, timestamp_ms, key, value, headers), size, batch_size, now_s)
        self.buffered += size
        if opens_batch and queue.open is not None:
            self.incomplete.add(queue.open)
            self.wake.set()
        return delivery

    async def flush(self) -> None:
        """Have everything sent that was appended before, and wait until it is written or has failed."""
        self._flushes += 1
        self.wake.set()
        try:
            for batch in list(self.incomplete):
                await batch.settled()
        finally:
            self._flushes -= 1

    @property
    def is_flushing(self) -> bool:
        """Whether batches are sent although they are not full: someone flushes, or waits for room."""
        return bool(self._flushes or self._waiting_for_room)

    # --- room

    async def wait_for_room(self) -> None:
        """Wait until some bytes are free. Raises `CallTimeoutError` after `max.block.ms`."""
        room = asyncio.get_running_loop().create_future()
        self._waiting_for_room.append(room)
        self.wake.set()
        timeout_ms = self._settings.max_block_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await room
        except TimeoutError:
            text = f"no room within max.block.ms={timeout_ms}: {self.buffered} bytes wait to be written"
            raise CallTimeoutError(text) from None

    def offer_room(self) -> None:
        """Wake all that wait for room, if there is any."""
        if self.buffered < self._settings.buffer_memory:
            for waiting in self._waiting_for_room:
                if not waiting.done():
                    waiting.set_result(None)
            self._waiting_for_room.clear()

    def release(self, batch: Batch) -> None:
        """Free the bytes of a batch that is written or has failed."""
        self.incomplete.discard(batch)
        self.buffered -= batch.payload_size
        self.wake.set()

    # --- batches that are sent again

    def put_back(self, queue: PartitionQueue, batch: Batch) -> None:
        """Return a batch to its queue, to be sent again."""
        queue.put_back(batch)
        self.active[queue.partition] = queue

    def split(self, queue: PartitionQueue, batch: Batch) -> None:
        """Replace a batch that was too large by two halves."""
        halves = batch.split()
        queue.replace(batch, halves)
        self.incomplete.discard(batch)
        self.incomplete.update(halves)
        self.active[queue.partition] = queue
