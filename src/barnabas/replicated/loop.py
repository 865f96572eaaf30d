"""The state of one replicated log: its committed image, its head, and the writers that wait for a commit.

A decision is a pure function that takes the head and returns records and a response. The records are appended to the
log and applied to the head at once. The response waits until the log reports that they are committed. Readers see only
the committed image. When leadership is lost, the head is dropped and every waiting writer gets an error. Undoing
uncommitted changes is therefore one assignment.

A large change is made in slices. Decisions, the log's `append`, `apply` and subscribers may be generators, which wait for
nothing. Changes are made one after another and published one after another, each as a whole: no decision sees a part of
the one before it. A small change is made in one turn, as if there were no slices.

The loop only knows that its log can append. The driver of the log calls `gained`, `lost`, `committed` and `advance`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from barnabas.replicated.decision import Producer, Records, Result
from barnabas.slices import Queue, Work
from barnabas.steps import Slices, at_once, result_of
from barnabas.wire import ErrorCode, KafkaError

Image = TypeVar("Image")
R = TypeVar("R")


class Appender(Protocol):
    """The part of a log that its leader writes to."""

    def append(self, epoch: int, records: Records) -> int | Slices[int]:
        """Append the records and return the offset of the last one. In slices, the append itself is the last step.

        Raises KafkaError if this node is not the leader.
        """
        ...


class TransactionalAppender(Appender, Protocol):
    """A log that also accepts records as part of a producer's transaction."""

    def append(self, epoch: int, records: Records, producer: Producer | None = None) -> int | Slices[int]: ...


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


Apply = Callable[[Image, Batch], Image | Slices[Image]]
Subscriber = Callable[[Image, Image, Sequence[Any]], Slices[None] | None]
Decision = Callable[[Image], Result[R] | Slices[Result[R]]]
Appended = Callable[[int, int, int], None]


def ignore_appended(epoch: int, first_offset: int, last_offset: int) -> None:
    """The default of `appended`."""


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
        on_failure: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        """`on_failure` is called when a subscriber raises: it has not followed the image, so the node must stop."""
        self.image = image
        self.head: Image | None = None
        self.epoch = -1
        self._apply = apply
        self._log = log
        self._now_ms = now_ms
        self._not_leader = not_leader
        self._on_failure = on_failure
        self._committed_offset = -1
        self._published_offset = -1
        self._head_offset = -1
        self._pending: deque[_Pending] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._subscribers: list[Subscriber[Image]] = []
        self._writing = Queue()
        self._publishing = Queue()

    @property
    def is_leader(self) -> bool:
        return self.head is not None

    def subscribe(self, subscriber: Subscriber[Image]) -> None:
        """Call `subscriber` with (old image, new image, records) after each commit."""
        self._subscribers.append(subscriber)

    # --- called by writers

    async def write(
        self,
        decide: Decision[Image, R],
        accepted: Callable[[R], None] = lambda response: None,
        appended: Appended = ignore_appended,
    ) -> R:
        """Decide on the head, append the records, and return the response when they are committed.

        `accepted` is called with the response once the records are appended, before any other decision: it applies what
        the decision says about soft state. A decision that raises changes nothing. `appended` is called with the epoch
        and the first and last offset of each batch of records.
        """
        response = await self.write_soon(decide, accepted, appended)
        # Wait even without records: the response may depend on state that is not committed yet.
        await self.wait_head_committed()
        return response

    async def write_soon(
        self,
        decide: Decision[Image, R],
        accepted: Callable[[R], None] = lambda response: None,
        appended: Appended = ignore_appended,
    ) -> R:
        """Decide and append, after the changes that have begun and in slices, as `write` does.

        The response is returned before the commit, so its records may still be lost.
        """
        self._head()
        work = self._writing.add(self._write(decide, accepted, appended))
        return work.result if work.is_done else await work.wait()

    def write_nowait(self, decide: Decision[Image, R]) -> R:
        """Decide and append at once, for callers that cannot wait. A change that has begun is finished first.

        The response is returned before the commit, so its records may still be lost.
        """
        self._writing.finish_begun()
        return at_once(self._write(decide, lambda response: None))

    def finish_writing(self) -> None:
        """Finish the change that has begun, before something is appended without a decision."""
        self._writing.finish_begun()

    def appended(self, batch: Batch) -> None:
        """Apply a batch that this leader wrote to the log without a decision, such as a transaction marker."""
        at_once(self._apply_to_head(batch))

    def _write(
        self, decide: Decision[Image, R], accepted: Callable[[R], None], appended: Appended = ignore_appended
    ) -> Slices[R]:
        head, epoch = self._head(), self.epoch
        result = yield from result_of(decide(head))
        for start in range(0, len(result.records), MAX_BATCH_RECORDS):
            records = result.records[start : start + MAX_BATCH_RECORDS]
            self._check_unchanged(head)
            head = yield from self._append(epoch, records, result.producer, appended)
        accepted(result.response)
        return result.response

    def _append(self, epoch: int, records: Records, producer: Producer | None, appended: Appended) -> Slices[Image]:
        if producer is None:
            last_offset = yield from result_of(self._log.append(epoch, records))
        else:
            log = cast(TransactionalAppender, self._log)
            last_offset = yield from result_of(log.append(epoch, records, producer))
        plain = [record for record, _ in records]
        batch = Batch(last_offset - len(plain) + 1, last_offset, epoch, self._now_ms(), plain, producer)
        appended(epoch, batch.base_offset, last_offset)
        return (yield from self._apply_to_head(batch))

    def _apply_to_head(self, batch: Batch) -> Slices[Image]:
        before = self._head()
        head = yield from result_of(self._apply(before, batch))
        self._check_unchanged(before)
        self.head = head
        self._head_offset = batch.last_offset
        self._pending.append(_Pending(batch.last_offset, head, batch.records))
        self._publish_committed()
        return head

    def _check_unchanged(self, head: Image) -> None:
        """Raise KafkaError if leadership was lost since a decision saw the head, even if it was gained again."""
        if self.head is not head:
            raise KafkaError(self._not_leader, "leadership was lost before this was committed")

    def _head(self) -> Image:
        if self.head is None:
            raise KafkaError(self._not_leader, "this node is not the leader")
        return self.head

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
        if offset <= self._published_offset:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, future))
        await future

    # --- called by the driver of the log

    def gained(self, epoch: int, end_offset: int) -> None:
        """Become the leader. Everything before `end_offset` is committed and applied."""
        self._publishing.finish()
        self.epoch = epoch
        self.head = self.image
        self._head_offset = self._committed_offset = self._published_offset = end_offset - 1

    def lost(self) -> None:
        """Lose leadership: drop uncommitted state and fail every waiting writer."""
        self._publishing.finish()
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

    def _publish_committed(self) -> None:
        # A log with a single replica commits during the append, before the records are in `_pending`.
        while self._pending and self._pending[0].last_offset <= self._committed_offset:
            self._begin_publishing(*self._pending.popleft())

    def advance(self, image: Image, last_offset: int, records: Sequence[Any] = ()) -> Work[None]:
        """Publish state that this node did not append itself, read from the log or a snapshot up to `last_offset`.

        The work is done when all subscribers have followed.
        """
        self._committed_offset = last_offset
        return self._begin_publishing(last_offset, image, records)

    def _begin_publishing(self, last_offset: int, image: Image, records: Sequence[Any]) -> Work[None]:
        work = self._publishing.add(self._publish(last_offset, image, records))
        if work.is_done:
            _ = work.result  # raises what a subscriber raised
        return work

    def _publish(self, last_offset: int, image: Image, records: Sequence[Any]) -> Slices[None]:
        """Publish an image. Its writers get their response after all subscribers have followed it."""
        old, self.image = self.image, image
        try:
            for subscriber in self._subscribers:
                yield from result_of(subscriber(old, image, records))
        except Exception as error:
            self._on_failure(error)
            raise
        self._published_offset = last_offset
        while self._waiting and self._waiting[0][0] <= last_offset:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
