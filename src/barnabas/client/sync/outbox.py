"""Records on their way from the threads of callers to a producer in its event loop.

Its one rule: the records of a thread reach the producer in the order in which they were put, and at most `MAX_RECORDS` and
`MAX_BYTES` wait; `put` blocks when they do. The loop is woken once for many records, which makes `put` cheap.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeAlias

from barnabas.client.errors import CallTimeoutError, ClosedError
from barnabas.client.loop_thread import LoopThread
from barnabas.client.producer import Producer
from barnabas.client.producing.encoding import Encoded
from barnabas.client.records import RecordMetadata

MAX_RECORDS = 10_000
MAX_BYTES = 1 << 20

Item: TypeAlias = tuple[Encoded | None, "Future[Any]"]
"""A record and the future of its metadata. Without a record, the future is done when all records before have left."""


class Outbox:
    """A queue of records. All methods but `put` run in the loop."""

    def __init__(self, thread: LoopThread, producer: Producer[Any, Any]) -> None:
        self._thread = thread
        self._producer = producer
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._waiting: deque[Item] = deque()
        self._size = 0  # bytes of keys and values in `_waiting`
        self._moving: deque[Item] = deque()  # taken out of `_waiting` by the task
        self._is_moving = False
        self._is_closed = False
        self._task: asyncio.Task[None] | None = None

    def put(self, record: Encoded) -> Future[RecordMetadata]:
        """Hand a record over. Raises `CallTimeoutError` if there is no room within `max.block.ms`."""
        future: Future[RecordMetadata] = Future()
        size = len(record[1] or b"") + len(record[2] or b"")
        with self._lock:
            if self._size >= MAX_BYTES or len(self._waiting) >= MAX_RECORDS:
                self._wait_for_room()
            self._size += size
            self._append(record, future)
        return future

    def _wait_for_room(self) -> None:
        if self._thread.is_current:
            return  # a callback of a future must not stop the loop
        timeout_ms = self._producer.settings.max_block_ms
        if not self._room.wait_for(lambda: not self._waiting or self._is_closed, timeout_ms / 1000):
            raise CallTimeoutError(f"no room within max.block.ms={timeout_ms}: {len(self._waiting)} records wait")

    def _append(self, record: Encoded | None, future: Future[Any]) -> None:
        if self._is_closed:
            raise ClosedError("the producer is closed")
        self._waiting.append((record, future))
        if not self._is_moving:
            self._is_moving = True
            self._thread.call_soon(self._start)

    # --- in the loop

    def _start(self) -> None:
        self._task = asyncio.create_task(self._move())

    async def _move(self) -> None:
        """Move all records to the producer."""
        while self._take():
            while self._moving:
                record, future = self._moving.popleft()
                if not future.set_running_or_notify_cancel():
                    continue
                if record is None:
                    future.set_result(None)
                else:
                    await self._send(record, future)

    def _take(self) -> bool:
        with self._lock:
            self._moving, self._waiting, self._size = self._waiting, deque(), 0
            self._is_moving = bool(self._moving)
            self._room.notify_all()
            return self._is_moving

    async def _send(self, record: Encoded, future: Future[RecordMetadata]) -> None:
        topic, value, key, partition, headers, timestamp_ms = record
        try:
            delivery = await self._producer.send(
                topic, value, key, partition=partition, headers=headers, timestamp_ms=timestamp_ms
            )
        except Exception as error:
            future.set_exception(error)
        except asyncio.CancelledError:
            future.set_exception(_closed())
            raise
        else:
            delivery.add_done_callback(partial(_complete, future))

    async def emptied(self) -> None:
        """Wait until the producer has all records that were put before."""
        future: Future[None] = Future()
        with self._lock:
            self._append(None, future)
        await asyncio.wrap_future(future)

    async def close(self) -> None:
        """Accept no more records, and fail those that the producer does not have yet."""
        with self._lock:
            self._is_closed = True
            self._room.notify_all()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for _, future in (*self._moving, *self._waiting):
            if future.set_running_or_notify_cancel():
                future.set_exception(_closed())


def _complete(future: Future[RecordMetadata], metadata: RecordMetadata | None, error: Exception | None) -> None:
    if error is not None:
        future.set_exception(error)
    elif metadata is not None:
        future.set_result(metadata)


def _closed() -> ClosedError:
    return ClosedError("the producer was closed before the record was written")
