"""One replicated machine: its committed image, its head, and the writers that wait for a commit.

Decisions are pure functions of the head: they give records and a response. The records are appended to the log and
applied to the head at once; the response waits until the log says that they are committed. Readers see the committed
image only. When leadership is lost the head is dropped and every writer that waits is told so: taking back what was not
committed is one assignment.

The loop knows its log only as something that appends. Whoever drives the log calls `gained`, `lost`, `committed` and `advance`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from barnabas.replicated.decision import Producer, Records, Result
from barnabas.wire import ErrorCode, KafkaError

Image = TypeVar("Image")
R = TypeVar("R")


class Appender(Protocol):
    """The side of a log that a leader writes to."""

    def append(self, epoch: int, records: Records) -> int:
        """Give the records to the log; the offset of the last one. Raises KafkaError when this is not the leader."""
        ...


class TransactionalAppender(Appender, Protocol):
    """A log that takes records as part of a producer's transaction."""

    def append(self, epoch: int, records: Records, producer: Producer | None = None) -> int: ...


class Marker(NamedTuple):
    """The end of a producer's transaction in a log."""

    is_commit: bool
    coordinator_epoch: int


class Batch(NamedTuple):
    """Records, or the marker of a transaction, with their place in the log."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    records: Sequence[Any]
    producer: Producer | None = None
    marker: Marker | None = None


Apply = Callable[[Image, Batch], Image]
Subscriber = Callable[[Image, Image, Sequence[Any]], None]


MAX_BATCH_RECORDS = 10_000  # what a request may cause; only what a controller does by itself is larger, and may be cut


class _Pending(NamedTuple):
    last_offset: int
    image: Any
    records: Sequence[Any]


class Loop(Generic[Image]):
    """A machine's two images and its waiting writers. Not thread-safe: it belongs to one event loop."""

    def __init__(
        self,
        image: Image,
        apply: Apply[Image],
        log: Appender,
        now_ms: Callable[[], int],
        *,
        not_leader: ErrorCode = ErrorCode.NOT_CONTROLLER,
    ) -> None:
        self.image = image
        self.head: Image | None = None
        self.epoch = -1
        self._apply = apply
        self._log = log
        self._now_ms = now_ms
        self._not_leader = not_leader
        self._committed_offset = -1
        self._head_offset = -1
        self._pending: deque[_Pending] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._subscribers: list[Subscriber[Image]] = []

    @property
    def is_leader(self) -> bool:
        return self.head is not None

    def subscribe(self, subscriber: Subscriber[Image]) -> None:
        """Call with (old image, new image, records) after each commit."""
        self._subscribers.append(subscriber)

    # --- the writers' side

    async def write(
        self, decide: Callable[[Image], Result[R]], accepted: Callable[[R], None] = lambda response: None
    ) -> R:
        """Decide on the head, append the records, and return the response when they are committed.

        `accepted` is called with the response once the records are appended, before any other decision: it applies what
        the decision says about soft state. A decision that raises changes nothing.
        """
        response = self.write_nowait(decide)
        accepted(response)
        # Also without records: the response may rest on what is not committed yet.
        await self.wait_head_committed()
        return response

    def write_nowait(self, decide: Callable[[Image], Result[R]]) -> R:
        """Decide on the head and append; what is answered may still be lost."""
        result = decide(self._head())
        for start in range(0, len(result.records), MAX_BATCH_RECORDS):
            self._append(result.records[start : start + MAX_BATCH_RECORDS], result.producer)
        return result.response

    def appended(self, batch: Batch) -> None:
        """What this leader has just written into the log by other means than a decision: a marker."""
        self.head = self._apply(self._head(), batch)
        self._head_offset = batch.last_offset
        self._pending.append(_Pending(batch.last_offset, self.head, batch.records))
        self._publish_committed()

    def _head(self) -> Image:
        if self.head is None:
            raise KafkaError(self._not_leader, "this node is not the leader")
        return self.head

    def _append(self, records: Records, producer: Producer | None) -> None:
        if producer is None:
            last_offset = self._log.append(self.epoch, records)
        else:
            last_offset = cast(TransactionalAppender, self._log).append(self.epoch, records, producer)
        plain = [record for record, _ in records]
        self.appended(Batch(last_offset - len(plain) + 1, last_offset, self.epoch, self._now_ms(), plain, producer))

    async def wait_head_committed(self) -> None:
        """Wait until everything that was appended so far is committed. Raises KafkaError if this node is not the leader."""
        self._head()
        await self.wait_committed(self._head_offset)

    async def wait_committed(self, offset: int) -> None:
        """Wait until the log is committed up to and including `offset`. Raises KafkaError if leadership is lost before."""
        if offset <= self._committed_offset:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, future))
        await future

    # --- the log's side

    def gained(self, epoch: int, end_offset: int) -> None:
        """This node leads, and everything before `end_offset` is committed and applied."""
        self.epoch = epoch
        self.head = self.image
        self._head_offset = self._committed_offset = end_offset - 1

    def lost(self) -> None:
        """This node leads no more: what was not committed is forgotten, and who waits for it is told."""
        self.head = None
        self._pending.clear()
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(KafkaError(self._not_leader, "leadership moved before this was committed"))
        self._waiting.clear()

    def committed(self, offset: int) -> None:
        """Everything up to and including `offset` of what this leader appended is committed."""
        if offset <= self._committed_offset:
            return
        self._committed_offset = offset
        self._publish_committed()
        while self._waiting and self._waiting[0][0] <= offset:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)

    def _publish_committed(self) -> None:
        # A log with one replica commits while it appends, before the records are pending here.
        while self._pending and self._pending[0].last_offset <= self._committed_offset:
            pending = self._pending.popleft()
            self._publish(pending.image, pending.records)

    def advance(self, image: Image, last_offset: int, records: Sequence[Any] = ()) -> None:
        """What the log holds up to `last_offset` and this node did not append itself: a batch, or a snapshot."""
        self._committed_offset = last_offset
        self._publish(image, records)

    def _publish(self, image: Image, records: Sequence[Any]) -> None:
        old, self.image = self.image, image
        for subscriber in self._subscribers:
            subscriber(old, image, records)
