"""The state machine of one share partition: the records of a partition that one share group consumes.

Its one rule: each record from the start offset on is available, acquired by one member, acknowledged or archived, and its
delivery count never exceeds the limit. What is before the start offset is done; what is behind the end offset was never
delivered. It knows no clock, no log and no network: the caller passes the time and the batches of the log, stores what a
`Write` contains, and then commits it or rolls it back.

Not done here: reading the log, timers, sessions, permissions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from barnabas.replicas.share.in_flight import (
    NO_MEMBER,
    AcknowledgeType,
    Batch,
    RecordState,
    Span,
    StateBatch,
    Write,
)
from barnabas.steps import Slices, at_once
from barnabas.wire import ErrorCode, KafkaError

_MIN_THROTTLED_DELIVERY: Final = 2
_STATES: Final = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


class Limits(NamedTuple):
    """The settings of a share group that decide what is delivered."""

    max_delivery_count: int = 5
    max_in_flight: int = 2000
    lock_duration_ms: int = 30_000
    may_renew: bool = True

    @property
    def throttled_delivery(self) -> int:
        """The delivery count from which on fewer records are delivered at once."""
        return max(_MIN_THROTTLED_DELIVERY, (self.max_delivery_count + 1) // 2)


class Acquired(NamedTuple):
    """Consecutive records that a member acquired."""

    first_offset: int
    last_offset: int
    delivery_count: int

    @property
    def size(self) -> int:
        return self.last_offset - self.first_offset + 1


class Acknowledged(NamedTuple):
    """What a member says about consecutive records: one type for all of them, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]


class LogBatch(NamedTuple):
    """The offsets of a batch in the log."""

    base_offset: int
    last_offset: int


class Asked(NamedTuple):
    """What a member wants to acquire. `is_record_limit` means that `max_records` must not be exceeded to end a batch."""

    member_id: str
    fetch_offset: int
    max_records: int
    batch_size: int
    is_record_limit: bool = False


class _Gap:
    """Offsets without a stored state, before the last one that has one. Nobody has acquired them yet."""

    __slots__ = ("end_offset", "start")

    def __init__(self, end_offset: int, start: int) -> None:
        self.end_offset = end_offset
        self.start = start


class SharePartition:
    """A share partition. `end_offset` is the last offset that was delivered, or the start offset if there is none."""

    __slots__ = (
        "_batches",
        "_firsts",
        "_gap",
        "_is_any_available",
        "delivery_complete_count",
        "end_offset",
        "start_offset",
        "state_epoch",
    )

    def __init__(self, start_offset: int, state_epoch: int = 0, stored: Iterable[StateBatch] = ()) -> None:
        """Begin with the stored state. Raises ValueError if it is not possible."""
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.state_epoch = state_epoch
        self.delivery_complete_count = 0
        self._batches: list[Batch] = []
        self._firsts: list[int] = []  # the first offsets of the batches, for searching
        self._gap: _Gap | None = None
        self._is_any_available = False  # among the batches; otherwise records are fetched behind the end
        gap_start = None
        end = start_offset
        for first, last, state, delivery_count in stored:
            if first < end or last < first:
                raise ValueError(f"the stored batch from {first} to {last} is not behind {end}")
            if first > end and gap_start is None:
                gap_start = end
            end = last + 1
            self._add(Batch(Span(first, last, state, delivery_count)))
            if state.is_terminal:
                self.delivery_complete_count += last - first + 1
        if self._batches:
            self._is_any_available = True
            self.end_offset = end - 1
            if gap_start is not None:
                self._gap = _Gap(self.end_offset, gap_start)
            self._advance()

    # --- what is in flight

    @property
    def in_flight_count(self) -> int:
        return self.end_offset - self.start_offset + 1 if self._batches else 0

    @property
    def spans(self) -> list[Span]:
        """All records in flight, in order."""
        return [span for batch in self._batches for span in batch.spans]

    @property
    def next_deadline_ms(self) -> int | None:
        """The time at which the first lock expires."""
        return min(
            (span.deadline_ms for batch in self._batches for span in batch.spans if _is_acquired(span)), default=None
        )

    def next_fetch_offset(self) -> int:
        """Return the first offset that may be acquired."""
        batches = self._batches
        if not batches or self.start_offset > batches[-1].last:
            self._is_any_available = False
            return self.end_offset
        if self._is_any_available:
            gap = self._active_gap
            gap_start = -1 if gap is None else gap.start
            for batch in batches:
                if gap is not None:
                    if batch.first > gap_start:
                        return gap_start
                    gap_start = max(batch.last + 1, gap_start)
                for span in batch.spans:
                    if span.is_available and span.last >= self.start_offset:
                        return max(span.first, self.start_offset)
            self._is_any_available = False
        return self.end_offset + 1

    def can_acquire(self, limits: Limits) -> bool:
        """Whether records can be acquired: some in flight are available, or there may be more in flight."""
        return self.next_fetch_offset() != self.end_offset + 1 or self.in_flight_count < limits.max_in_flight

    # --- acquiring

    def acquire(self, asked: Asked, log: Sequence[LogBatch], limits: Limits, now_ms: int) -> list[Acquired]:
        """Acquire records of these batches of the log, and return them in order."""
        if not log or asked.max_records <= 0 or log[-1].last_offset < self.start_offset:
            return []
        last_offset = log[-1].last_offset
        max_records = min(asked.max_records, limits.max_in_flight - self.in_flight_count)
        if max_records <= 0 and asked.fetch_offset <= self.end_offset:  # some that are in flight may be available
            max_records = min(asked.max_records, self.end_offset - asked.fetch_offset + 1)
            last_offset = min(last_offset, self.end_offset)
        if max_records <= 0:
            return []
        first_offset = log[0].base_offset
        self._archive_vanished(asked.fetch_offset, first_offset)
        return _Acquisition(self, asked, log, limits, now_ms).run(first_offset, last_offset, max_records)

    def archive_aborted(self, aborted: Iterable[LogBatch], acquired: Sequence[Acquired]) -> list[Acquired]:
        """Archive the records of aborted transactions, and return what is left of those that were acquired."""
        left = list(acquired)
        for first, last in aborted:
            self._archive(first, last + 1, RecordState.ACQUIRED, is_counted=True)
            left = [part for each in left for part in _without(each, first, last)]
        self._advance()
        return left

    def undo(self, member_id: str, acquired: Iterable[Acquired]) -> None:
        """Undo the acquisition of records that were not delivered: they do not count as delivered either."""
        for first, last, _ in acquired:
            for batch in self._between(first, last):
                for span in batch.cut_out(first, last):
                    if _is_acquired(span) and span.member_id == member_id:
                        batch.is_by_offset = batch.is_by_offset or len(batch.spans) > 1
                        span.undo()
                        self._is_any_available = True

    # --- acknowledging

    def acknowledge(
        self, member_id: str, acknowledged: Iterable[Acknowledged], limits: Limits, now_ms: int
    ) -> Slices[Write | None]:
        """Change the states of records of a member, and return what to store, or None if nothing changes.

        Raises KafkaError, and then changes nothing but locks that were renewed. Others may acquire and acknowledge other
        records meanwhile.
        """
        write = Write()
        try:
            for each in acknowledged:
                if each.last_offset >= self.start_offset:
                    yield from self._acknowledge(member_id, each, limits, now_ms, write)
                yield
        except (KafkaError, GeneratorExit):
            at_once(self.roll_back(write))
            raise
        return write if write.batches else None

    def release(self, member_id: str, limits: Limits) -> Write | None:
        """Make all records of a member available again, and return what to store, or None if there are none."""
        write = Write()
        for batch in self._batches:
            for span in self._acquired_of(batch, lambda span: span.member_id == member_id):
                self._begin(span, RecordState.AVAILABLE, limits, write)
        return write if write.batches else None

    def commit(self, write: Write) -> Slices[bool]:
        """Complete a change after it was stored. Return whether the start offset has moved."""
        for row in write.batches:
            for span in self._spans_of(write, row):
                span.commit()
                if span.state is RecordState.AVAILABLE:
                    self._is_any_available = True
            yield
        return self._advance()

    def roll_back(self, write: Write) -> Slices[None]:
        """Undo a change that could not be stored."""
        for row in write.batches:
            for span in self._spans_of(write, row):
                if span.state.is_terminal:
                    self.delivery_complete_count -= self._count(span)
                span.roll_back()
            yield

    def expire(self, limits: Limits, now_ms: int) -> list[StateBatch]:
        """Release all records whose lock has expired, at once. Return what to store."""
        released = []
        for batch in self._batches:
            for span in self._acquired_of(batch, lambda span: span.deadline_ms <= now_ms):
                span.release(self._released_state(span, limits))
                self._ended(span)
                released.append(StateBatch(span.first, span.last, span.state, span.delivery_count))
        return released

    # --- the log moves

    def log_start_moved(self, log_start_offset: int) -> None:
        """Give up the records before the log's new start offset. Acquired ones stay with their members until released."""
        if log_start_offset <= self.start_offset:
            return
        if not self._batches:
            self.start_offset = self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return
        for batch in self._batches:
            for span in batch.within(self.start_offset, log_start_offset - 1):
                if span.state.is_terminal:
                    first, last = max(span.first, self.start_offset), min(span.last, log_start_offset - 1)
                    self.delivery_complete_count -= last - first + 1
        if self._archive(self.start_offset, log_start_offset, RecordState.AVAILABLE, is_counted=False):
            self._is_any_available = True
        self.start_offset = log_start_offset
        self.end_offset = max(self.end_offset, log_start_offset)

    def advance(self) -> bool:
        """Move the start offset over records that are done. Return whether it has moved."""
        return self._advance()

    # --- parts

    @property
    def _active_gap(self) -> _Gap | None:
        gap = self._gap
        return gap if gap is not None and gap.end_offset == self.end_offset else None

    def _add(self, batch: Batch) -> None:
        at = bisect_right(self._firsts, batch.first)
        self._firsts.insert(at, batch.first)
        self._batches.insert(at, batch)

    def _floor(self, offset: int) -> int:
        """Return the position of the last batch that begins at `offset` or before, -1 if there is none."""
        return bisect_right(self._firsts, offset) - 1

    def _between(self, first: int, last: int) -> list[Batch]:
        """Return the batches that have records from `first` to `last`."""
        begin = self._floor(first)
        if begin < 0 or self._batches[begin].last < first:
            begin += 1
        return self._batches[begin : bisect_right(self._firsts, last)]

    def _count(self, span: Span) -> int:
        """Return how many records of a span are in flight."""
        return max(0, span.last - max(span.first, self.start_offset) + 1)

    def _spans_of(self, write: Write, row: StateBatch) -> list[Span]:
        """Return the spans of one row of a write: it may have been cut since."""
        first, last = row.first_offset, row.last_offset
        return [
            span for batch in self._between(first, last) for span in batch.within(first, last) if span.write is write
        ]

    def _acquired_of(self, batch: Batch, is_wanted: Callable[[Span], bool]) -> list[Span]:
        """Return the acquired spans that are wanted, cut at the start offset."""
        if batch.first < self.start_offset <= batch.last and any(_is_acquired(s) and is_wanted(s) for s in batch.spans):
            batch.is_by_offset = True
            batch.cut(self.start_offset)
        return [span for span in batch.spans if _is_acquired(span) and is_wanted(span)]

    def _released_state(self, span: Span, limits: Limits) -> RecordState:
        is_over = span.last < self.start_offset or span.delivery_count >= limits.max_delivery_count
        return RecordState.ARCHIVED if is_over else RecordState.AVAILABLE

    def _begin(self, span: Span, state: RecordState, limits: Limits, write: Write) -> None:
        """Begin to store a new state."""
        is_released = state is RecordState.AVAILABLE
        if is_released:
            state = self._released_state(span, limits)
        span.begin(state, write)
        if state.is_terminal:
            self.delivery_complete_count += self._count(span)
            if is_released and span.last >= self.start_offset:
                write.given_up.append(write.batches[-1])

    def _ended(self, span: Span) -> None:
        """Count a span that changed its state at once."""
        if span.state.is_terminal:
            self.delivery_complete_count += self._count(span)
        else:
            self._is_any_available = True

    def _acknowledge(
        self, member_id: str, acknowledged: Acknowledged, limits: Limits, now_ms: int, write: Write
    ) -> Slices[None]:
        first, last, types = acknowledged
        for batch in self._acknowledged_batches(first, last):
            if batch.last < self.start_offset:
                continue
            is_cut = batch.first < first or batch.last > last or batch.first < self.start_offset
            if not batch.is_by_offset:
                _check_whole(batch.whole, member_id)
                batch.is_by_offset = is_cut or len(types) > 1
            begin, end = max(batch.first, first, self.start_offset), min(batch.last, last)
            for run_first, run_last, kind in _runs(acknowledged, begin, end):
                for span in batch.within(run_first, run_last):
                    if batch.is_by_offset:
                        _check_offsets(span, member_id)
                for span in batch.cut_out(run_first, run_last):
                    self._apply(span, kind, limits, now_ms, write)
                yield

    def _apply(self, span: Span, kind: int, limits: Limits, now_ms: int, write: Write) -> None:
        if kind != AcknowledgeType.RENEW:
            self._begin(span, _STATES[AcknowledgeType(kind)], limits, write)
        elif limits.may_renew:
            span.deadline_ms = now_ms + limits.lock_duration_ms
        else:
            raise _invalid_state("Renewing acquisition locks is not enabled for the group.")

    def _acknowledged_batches(self, first: int, last: int) -> list[Batch]:
        at = self._floor(first)
        if at < 0:
            at = self._floor(self.start_offset) if first < self.start_offset <= last else -1
        if at < 0:
            raise _invalid_state("Batch record not found. The request batch offsets are not found in the cache.")
        found = self._batches[at : bisect_right(self._firsts, last)]
        for offset, name in ((first, "first"), (last, "last")):
            if found[-1].last < offset:
                text = f"Batch record not found. The {name} offset in request is past acquired records."
                raise KafkaError(ErrorCode.INVALID_REQUEST, text)
        return found

    def _archive_vanished(self, fetch_offset: int, base_offset: int) -> None:
        """Archive available records that are no longer in the log: it was compacted, or its start was moved."""
        if fetch_offset < base_offset and self._archive(
            fetch_offset, base_offset, RecordState.AVAILABLE, is_counted=True
        ):
            self._is_any_available = True

    def _archive(self, first: int, end: int, state: RecordState, *, is_counted: bool) -> bool:
        """Archive all records in a state from `first` to before `end`. Return whether there were any."""
        is_any = False
        for batch in self._between(first, end - 1):
            is_whole = first <= batch.first and batch.last < end
            if not batch.is_by_offset and not is_whole:
                if batch.whole.state is not state:
                    continue
                batch.is_by_offset = True
            spans = batch.within(first, end - 1)
            if any(span.state is state for span in spans) and not is_whole:
                spans = batch.cut_out(first, end - 1)
            for span in spans:
                if span.state is state:
                    span.archive()
                    is_any = True
                    if is_counted:
                        self.delivery_complete_count += self._count(span)
        return is_any

    def _advance(self) -> bool:
        """Move the start offset over records that are done, and forget them. Return whether it has moved."""
        gap = self._active_gap
        last_done = -1
        count = 0
        for batch in self._batches:
            if gap is not None and batch.last >= gap.start:
                break
            for span in batch.spans:
                if span.last >= self.start_offset and not span.is_done:
                    break
                last_done = span.last
                if span.state.is_terminal:
                    count += self._count(span)
            if last_done != batch.last:
                break
        if last_done < 0:
            return False
        if last_done == self._batches[-1].last:
            self.start_offset = self.end_offset = max(last_done + 1, self.start_offset)
            self._batches.clear()
            self._firsts.clear()
            self.delivery_complete_count = 0
            return True
        keep = bisect_left(self._firsts, last_done + 1)
        if self._batches[keep - 1].last > last_done:  # it ends within this batch
            keep -= 1
            start = last_done + 1
        else:
            start = self._firsts[keep] if gap is None else min(gap.start, self._firsts[keep])
        del self._batches[:keep], self._firsts[:keep]
        self.delivery_complete_count -= count
        has_moved = start > self.start_offset
        self.start_offset = max(start, self.start_offset)
        return has_moved


class _Acquisition:
    """One member acquires records."""

    def __init__(
        self, partition: SharePartition, asked: Asked, log: Sequence[LogBatch], limits: Limits, now_ms: int
    ) -> None:
        self._partition = partition
        self._asked = asked
        self._log = log
        self._limits = limits
        self._deadline_ms = now_ms + limits.lock_duration_ms
        self._acquired: list[Acquired] = []
        self._count = 0

    def run(self, first_offset: int, last_offset: int, max_records: int) -> list[Acquired]:
        partition = self._partition
        batches = partition._between(first_offset, last_offset)
        base = max(first_offset, partition.start_offset)
        if batches and batches[0].first <= first_offset:
            base = batches[0].first
        if not batches:
            self._acquire_new(base, last_offset, max_records)
            return self._acquired
        gap_start = base
        is_throttled = False
        for batch in batches:
            if self._count >= max_records or is_throttled:
                break
            if partition._active_gap is not None:
                if gap_start < batch.first:
                    self._acquire_new(gap_start, batch.first - 1, max_records - self._count)
                gap_start = batch.last + 1
                if self._count >= max_records:
                    break
            is_throttled = self._acquire_cached(batch, first_offset, last_offset, max_records - self._count)
        if not is_throttled and self._count < max_records and batches[-1].last < last_offset:
            self._acquire_new(batches[-1].last + 1, last_offset, max_records - self._count)
        if self._acquired:
            self._passed_gap(self._acquired[-1].last_offset + 1)
        return self._acquired

    def _acquire_cached(self, batch: Batch, first: int, last: int, max_records: int) -> bool:
        """Acquire what is available of a batch in flight. Return whether nothing more may be acquired.

        Records that were delivered often are delivered in smaller numbers, and alone at the end, so that a record
        which no member can process does not take others with it.
        """
        limits = self._limits
        available = [span for span in batch.within(first, last) if span.is_available]
        if not batch.is_by_offset:
            available = [span for span in batch.spans if span.is_available]
        if not available:
            return False
        is_throttled = max(span.delivery_count for span in available) >= limits.throttled_delivery
        if is_throttled and self._count > 0:
            return True
        is_whole = first <= batch.first and batch.last <= last
        is_over_limit = self._asked.is_record_limit and batch.last - batch.first + 1 > max_records
        if batch.is_by_offset or not is_whole or is_over_limit or is_throttled:
            batch.is_by_offset = True
            count = self._acquire_some(batch, first, last, max_records)
            return is_throttled and count > 0
        self._take(batch.whole)
        self._acquired.append(Acquired(batch.first, batch.last, batch.whole.delivery_count))
        return False

    def _acquire_some(self, batch: Batch, first: int, last: int, max_records: int) -> int:
        limits = self._limits
        most = limits.max_delivery_count
        taken: list[Acquired] = []
        count = 0
        allowed: int | None = max_records if self._asked.is_record_limit else None
        throttled: int | None = None
        first = max(first, self._partition.start_offset)
        for span in batch.within(first, last):
            if not span.is_available:
                continue
            delivered = span.delivery_count
            is_last_delivery = most > _MIN_THROTTLED_DELIVERY and delivered == most - 1
            if is_last_delivery and count > 0:
                break
            if delivered >= limits.throttled_delivery and throttled is None:
                shift = delivered - limits.throttled_delivery + 1
                throttled = max(1, (batch.last - batch.first + 1) >> shift)
            begin, end = max(span.first, first), min(span.last, last)
            size = 1 if is_last_delivery else end - begin + 1
            if allowed is not None:
                size = min(size, allowed - count)
            if throttled is not None and count < throttled:
                size = min(size, throttled - count)
            for part in batch.cut_out(begin, begin + size - 1):
                self._take(part)
            _append(taken, Acquired(begin, begin + size - 1, delivered + 1))
            count += size
            if is_last_delivery or count in (allowed, throttled):
                break
        self._acquired += taken
        return count

    def _take(self, span: Span) -> None:
        span.acquire(self._asked.member_id, self._deadline_ms)
        self._count += span.last - span.first + 1

    def _acquire_new(self, first: int, last: int, max_records: int) -> None:
        """Acquire records that nobody has acquired before."""
        partition, asked = self._partition, self._asked
        if not partition._batches and partition.end_offset > first:
            first = partition.end_offset
        if first > last:
            return
        wanted_last = last
        if max_records < last - first + 1:
            wanted_last = self._end_of_batch(first + max_records - 1)
            if partition._active_gap is not None:
                wanted_last = min(wanted_last, last)
        acquired_last = wanted_last
        if not asked.is_record_limit:
            for begin, end in self._parts(first, wanted_last):
                self._add(begin, end)
        else:
            acquired_last = min(wanted_last, first + max_records - 1)
            batch = self._add(first, wanted_last, acquired_last)
            if acquired_last < wanted_last:
                batch.is_by_offset = True
                partition._is_any_available = True
        if partition._firsts[0] == first:
            partition.start_offset = first
        partition.end_offset = max(partition.end_offset, wanted_last)
        self._count += acquired_last - first + 1
        self._passed_gap(acquired_last + 1)

    def _add(self, first: int, last: int, acquired_last: int | None = None) -> Batch:
        until = last if acquired_last is None else acquired_last
        batch = Batch(Span(first, last, RecordState.AVAILABLE, 0))
        batch.cut(until + 1)
        batch.whole.acquire(self._asked.member_id, self._deadline_ms)
        self._partition._add(batch)
        self._acquired.append(Acquired(first, until, 1))
        return batch

    def _parts(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Divide offsets at batches of the log into parts of at least `batch_size` records."""
        begin = first
        if last - first + 1 > self._asked.batch_size:
            for base, _ in self._log:
                if base > last:
                    break
                if base - begin >= self._asked.batch_size and base > begin:
                    yield begin, base - 1
                    begin = base
        yield begin, last

    def _end_of_batch(self, offset: int) -> int:
        """Return the last offset of the log's batch with this offset, or the offset if there is no such batch."""
        at = bisect_right(self._log, offset, key=lambda batch: batch.base_offset) - 1
        return max(offset, self._log[at].last_offset) if at >= 0 else offset

    def _passed_gap(self, offset: int) -> None:
        """Note that everything before `offset` was acquired."""
        partition = self._partition
        gap = partition._gap
        if gap is not None:
            if gap.end_offset == partition.end_offset and offset <= gap.end_offset:
                gap.start = offset
            else:
                partition._gap = None


def _is_acquired(span: Span) -> bool:
    return span.state is RecordState.ACQUIRED


def _append(taken: list[Acquired], new: Acquired) -> None:
    """Add acquired records, to the last ones if they follow them with the same delivery count."""
    if taken and taken[-1].last_offset + 1 == new.first_offset and taken[-1].delivery_count == new.delivery_count:
        taken[-1] = taken[-1]._replace(last_offset=new.last_offset)
    else:
        taken.append(new)


def _without(acquired: Acquired, first: int, last: int) -> Iterator[Acquired]:
    """Yield what is left of acquired records without those from `first` to `last`."""
    if acquired.last_offset < first or acquired.first_offset > last:
        yield acquired
        return
    if acquired.first_offset < first:
        yield acquired._replace(last_offset=first - 1)
    if acquired.last_offset > last:
        yield acquired._replace(first_offset=last + 1)


def _runs(acknowledged: Acknowledged, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """Yield the offsets from `first` to `last` in runs of the same type: first and last offset, and type."""
    types = acknowledged.types
    if len(types) == 1:
        yield first, last, types[0]
        return
    base = acknowledged.first_offset
    begin = first
    for offset in range(first + 1, last + 1):
        if types[offset - base] != types[begin - base]:
            yield begin, offset - 1, types[begin - base]
            begin = offset
    yield begin, last, types[begin - base]


def _check_whole(span: Span, member_id: str) -> None:
    """Check that a batch, which is kept as a whole, can be acknowledged by a member."""
    if span.member_id == NO_MEMBER:
        raise _invalid_state("The batch cannot be acknowledged. The batch is not in the acquired state.")
    if span.member_id != member_id:
        raise _invalid_state("Member is not the owner of batch record")


def _check_offsets(span: Span, member_id: str) -> None:
    if not _is_acquired(span):
        raise _invalid_state("The offset cannot be acknowledged. The offset is not acquired.")
    if span.member_id != member_id:
        raise _invalid_state("Member is not the owner of offset")


def _invalid_state(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD_STATE, text)
