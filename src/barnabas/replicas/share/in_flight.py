"""The records of a share partition that are in flight: batches, and spans of records with the same state within them.

Its one rule: the spans of a batch are in the order of their offsets and cover it without a gap. A batch is what was
acquired at once. Kafka keeps one state for a batch as long as possible, and then one for each offset; `is_by_offset` says
which, because some answers depend on it.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import IntEnum
from typing import Final, NamedTuple

NO_MEMBER: Final = ""


class RecordState(IntEnum):
    """The state of a record, with the numbers that Kafka stores."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        """Whether the record is never delivered again."""
        return self >= RecordState.ACKNOWLEDGED


class AcknowledgeType(IntEnum):
    """What a member says about a record. GAP means that there is no record at this offset."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class StateBatch(NamedTuple):
    """Consecutive records with the same state, as they are stored."""

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int


class Write:
    """A change of states that is being stored. Until it is, nobody else can change these records.

    `given_up` are those among the batches that were released, but delivered too often to be delivered again.
    """

    __slots__ = ("batches", "given_up")

    def __init__(self) -> None:
        self.batches: list[StateBatch] = []
        self.given_up: list[StateBatch] = []


class Before(NamedTuple):
    """The state of a record before the write that is under way."""

    state: RecordState
    member_id: str
    deadline_ms: int


class Span:
    """Consecutive records with the same state. An acquired one belongs to a member until its deadline."""

    __slots__ = ("before", "deadline_ms", "delivery_count", "first", "last", "member_id", "state", "write")

    def __init__(
        self,
        first: int,
        last: int,
        state: RecordState,
        delivery_count: int,
        member_id: str = NO_MEMBER,
        deadline_ms: int = 0,
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.deadline_ms = deadline_ms
        self.write: Write | None = None
        self.before: Before | None = None

    @property
    def is_available(self) -> bool:
        return self.state is RecordState.AVAILABLE and self.write is None

    @property
    def is_done(self) -> bool:
        """Whether the records are never delivered again, and that is stored."""
        return self.state.is_terminal and self.write is None

    def _copy(self, first: int, last: int) -> Span:
        copy = Span(first, last, self.state, self.delivery_count, self.member_id, self.deadline_ms)
        copy.write, copy.before = self.write, self.before
        return copy

    def split(self, offset: int) -> Span:
        """End this span before `offset`, and return the rest."""
        rest = self._copy(offset, self.last)
        self.last = offset - 1
        return rest

    def acquire(self, member_id: str, deadline_ms: int) -> None:
        self.state = RecordState.ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.deadline_ms = deadline_ms

    def undo(self) -> None:
        """Undo the acquisition."""
        self.delivery_count -= 1
        self.release(RecordState.AVAILABLE)

    def archive(self) -> None:
        """Give up the records at once, whatever is being stored about them."""
        self.state = RecordState.ARCHIVED
        self.member_id, self.deadline_ms = NO_MEMBER, 0
        self.write = self.before = None

    def release(self, state: RecordState) -> None:
        """Take the records away from their member at once."""
        self.state = state
        self.member_id, self.deadline_ms = NO_MEMBER, 0

    def begin(self, state: RecordState, write: Write) -> None:
        """Take the records away from their member, as soon as the new state is stored."""
        self.before = Before(self.state, self.member_id, self.deadline_ms)
        self.write = write
        self.release(state)
        write.batches.append(StateBatch(self.first, self.last, state, self.delivery_count))

    def commit(self) -> None:
        self.write = self.before = None

    def roll_back(self) -> None:
        assert self.before is not None
        self.state, self.member_id, self.deadline_ms = self.before
        self.write = self.before = None


class Batch:
    """Records that were acquired, or read from the stored state, at once."""

    __slots__ = ("first", "is_by_offset", "last", "spans")

    def __init__(self, span: Span) -> None:
        self.first = span.first
        self.last = span.last
        self.spans = [span]
        self.is_by_offset = False

    @property
    def whole(self) -> Span:
        """The state of a batch that is not kept by offset."""
        return self.spans[0]

    def cut(self, offset: int) -> None:
        """Let a span begin at `offset`, if that is within the batch."""
        if self.first < offset <= self.last:
            at = bisect_right(self.spans, offset, key=_first) - 1
            span = self.spans[at]
            if span.first != offset:
                self.spans.insert(at + 1, span.split(offset))

    def within(self, first: int, last: int) -> list[Span]:
        """Return the spans that have records from `first` to `last`."""
        begin = max(bisect_right(self.spans, first, key=_first) - 1, 0)
        end = bisect_right(self.spans, last, key=_first)
        return [span for span in self.spans[begin:end] if span.last >= first]

    def cut_out(self, first: int, last: int) -> list[Span]:
        """Return the spans of exactly the records from `first` to `last`."""
        self.cut(first)
        self.cut(last + 1)
        return self.within(first, last)


def _first(span: Span) -> int:
    return span.first
