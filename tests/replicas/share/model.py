"""What a share partition should hold, as a plain dict: one page, to be read as the specification.

Each delivered record is available, acquired, acknowledged or archived. The stored states are a second dict, from which a new
leader begins.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.replicas.share.in_flight import RecordState, Span, StateBatch


class Delivered:
    """A record that was delivered at least once, or skipped."""

    def __init__(self) -> None:
        self.state = RecordState.AVAILABLE
        self.count = 0
        self.member_id = ""


class Model:
    """All records that were ever delivered, and the states that were stored."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.records: dict[int, Delivered] = {}
        self.stored: dict[int, tuple[RecordState, int]] = {}
        self.given_up = 0  # records that were released after their last delivery

    def acquired(self, member_id: str, offsets: Iterable[int], count: int) -> None:
        for offset in offsets:
            record = self.records.setdefault(offset, Delivered())
            assert record.state is RecordState.AVAILABLE, f"{offset} is {record.state.name}, and was delivered"
            record.count += 1
            assert record.count == count
            assert record.count <= self.limit
            record.state, record.member_id = RecordState.ACQUIRED, member_id

    def ended(self, offsets: Iterable[int], state: RecordState) -> None:
        """Acquired records were accepted, rejected, or released for another delivery, if there may be one."""
        for offset in offsets:
            record = self.records[offset]
            is_over = state is RecordState.AVAILABLE and record.count >= self.limit
            self.given_up += is_over
            record.state = RecordState.ARCHIVED if is_over else state
            record.member_id = ""

    def held_by(self, member_id: str) -> list[int]:
        return [offset for offset, record in self.records.items() if record.member_id == member_id]

    def store(self, batches: Iterable[StateBatch]) -> None:
        for first, last, state, count in batches:
            for offset in range(first, last + 1):
                self.stored[offset] = state, count

    def restart(self) -> list[StateBatch]:
        """Return what is stored. Records whose acquisition or release was not stored are as they were before."""
        self.records = {}
        for offset, (state, count) in self.stored.items():
            record = self.records[offset] = Delivered()
            record.state, record.count = state, count
        return [StateBatch(offset, offset, *self.stored[offset]) for offset in sorted(self.stored)]

    def check(self, start_offset: int, spans: Iterable[Span]) -> None:
        """Check that the records in flight are as they should be, and that all before the start offset are done."""
        found = {
            offset: span for span in spans for offset in range(span.first, span.last + 1) if offset >= start_offset
        }
        for offset, record in self.records.items():
            if offset < start_offset:
                assert record.state.is_terminal, f"{offset} was lost as {record.state.name}"
                continue
            span = found[offset]
            assert (span.state, span.delivery_count, span.member_id) == (record.state, record.count, record.member_id)
