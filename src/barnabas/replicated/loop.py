"""The state of one replicated log: its committed image, its head, and the writers that wait for a commit.

A decision is a pure function that takes the head and returns records and a response. The records are appended to the
log and applied to the head at once. The response waits until the log reports that they are committed. Readers see only
the committed image. When leadership is lost, the head is dropped and every waiting writer gets an error. Undoing
uncommitted changes is therefore one assignment.

The loop only knows that its log can append. The driver of the log calls `gained`, `lost`, `committed` and `advance`.
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
    """The part of a log that its leader writes to."""

    def append(self, epoch: int, records: Records) -> int:
        """Append the records and return the offset of the last one.

        Raises KafkaError if this node is not the leader.
        """
        ...


class TransactionalAppender(Appender, Protocol):
    """A log that also accepts records as part of a producer's transaction."""

    def append(self, epoch: int, records: Records, producer: Producer | None = None) -> int: ...


class Marker(NamedTuple):
    """The commit or abort marker that ends a producer's transaction in a log."""

    is_commit: bool
    coordinator_epoch: int


class Batch(NamedTuple):
    """Records, or a transaction marker, with their offsets in the log."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    records: Sequence[Any]
    producer: Producer | None = None
    marker: Marker | None = None


Apply = Callable[[Image, Batch], Image]
Subscriber = Callable[[Image, Image, Sequence[Any]], None]


MAX_BATCH_RECORDS = 10_000  # a request causes no more; only the controller's own actions do, and may be split


class _Pending(NamedTuple):
    last_offset: int
    image: Any
    records: Sequence[Any]


class Loop(Generic[Image]):
    """Two images of the state, committed and head, and the waiting writers.

    Not thread-safe: belongs to one event loop.
    """

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
        """Call `subscriber` with (old image, new image, records) after each commit."""
        self._subscribers.append(subscriber)

    # --- called by writers

    async def write(
        self, decide: Callable[[Image], Result[R]], accepted: Callable[[R], None] = lambda response: None
    ) -> R:
        """Decide on the head, append the records, and return the response when they are committed.

        `accepted` is called with the response once the records are appended, before any other decision: it applies what
        the decision says about soft state. A decision that raises changes nothing.
        """
        response = self.write_nowait(decide)
        accepted(response)
        # Wait even without records: the response may depend on state that is not committed yet.
        await self.wait_head_committed()
        return response

    def write_nowait(self, decide: Callable[[Image], Result[R]]) -> R:
        """Decide on the head and append.

        The response is returned before the commit, so its records may still be lost.
        """
        result = decide(self._head())
        for start in range(0, len(result.records), MAX_BATCH_RECORDS):
            self._append(result.records[start : start + MAX_BATCH_RECORDS], result.producer)
        return result.response

    def appended(self, batch: Batch) -> None:
        """Apply a batch that this leader wrote to the log without a decision, such as a transaction marker."""
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
        """Wait until everything that was appended so far is committed.

        Raises KafkaError if this node is not the leader.
        """
        self._head()
        await self.wait_committed(self._head_offset)

    async def wait_committed(self, offset: int) -> None:
        """Wait until the log is committed up to and including `offset`.

        Raises KafkaError if leadership is lost before.
        """
        if offset <= self._committed_offset:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, future))
        await future

    # --- called by the driver of the log

    def gained(self, epoch: int, end_offset: int) -> None:
        """Become the leader. Everything before `end_offset` is committed and applied."""
        self.epoch = epoch
        self.head = self.image
        self._head_offset = self._committed_offset = end_offset - 1

    def lost(self) -> None:
        """Lose leadership: drop uncommitted state and fail every waiting writer."""
        self.head = None
        self._pending.clear()
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(KafkaError(self._not_leader, "leadership was lost before this was committed"))
        self._waiting.clear()

    def committed(self, offset: int) -> None:
        """Mark everything this leader appended, up to and including `offset`, as committed."""
        if offset <= self._committed_offset:
            return
        self._committed_offset = offset
        self._publish_committed()
        while self._waiting and self._waiting[0][0] <= offset:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)

    def _publish_committed(self) -> None:
        # A log with a single replica commits during the append, before the records are in `_pending`.
        while self._pending and self._pending[0].last_offset <= self._committed_offset:
            pending = self._pending.popleft()
            self._publish(pending.image, pending.records)

    def advance(self, image: Image, last_offset: int, records: Sequence[Any] = ()) -> None:
        """Publish state that this node did not append itself, read from the log or a snapshot up to `last_offset`."""
        self._committed_offset = last_offset
        self._publish(image, records)

    def _publish(self, image: Image, records: Sequence[Any]) -> None:
        old, self.image = self.image, image
        for subscriber in self._subscribers:
            subscriber(old, image, records)
