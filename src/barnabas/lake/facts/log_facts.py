"""The facts of one compacted log while its records are folded: open ones, ended ones, and whether they are exact. Pure.

Its one rule: a fact is exact if no offset is missing between the last known state of its key (or the start of the log) and the
records at its start and end. If compaction removed records, or a batch could not be read, an earlier record may have had the
same value, or another one in between. Then the fact holds from its own record on, and is marked as not exact.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from barnabas.lake.facts.schema import Fact, key_text, kinds

LOG_KIND: Final = "_log"
"""The internal fact with the progress in a log."""

_PROGRESS = struct.Struct(">qq")
_LAST_TIME_MS = 253_402_300_799_999


class LogPosition(NamedTuple):
    """The record at which a fact started or ended."""

    offset: int
    time_us: int | None
    epoch: int | None


class LogFacts:
    """Open facts are in `open`, by kind and key; those that end are appended to `ended`. Records call `set` and `close`."""

    def __init__(self, kinds: Iterable[str]) -> None:
        self.open: dict[str, dict[str, Fact]] = {kind: {} for kind in kinds}
        self.ended: dict[str, list[Fact]] = {kind: [] for kind in self.open}
        self.next_offset = 0
        self.whole_from = 0
        """No offset is missing from here on."""

    def reach(self, offset: int) -> None:
        """Note the offset of each record, before its effects."""
        if offset != self.next_offset:
            if offset < self.next_offset:  # another log under the same name: earlier facts are not reliable
                for facts in self.open.values():
                    facts.update({key: (*fact[:6], False, fact[7]) for key, fact in facts.items()})
            self.whole_from = offset
        self.next_offset = offset + 1

    def set(self, kind: str, key: str, value: tuple[Any, ...], place: LogPosition, *, in_pieces: bool = False) -> None:
        """Set the value of a key from this place on. With `in_pieces`, it is exact only if the value before it was."""
        facts = self.open[kind]
        before = facts.get(key)
        exact = self.whole_from == 0
        if before is not None:
            if before[7] == value:
                if before[6] and before[1] < self.whole_from:  # there may have been another value in between
                    facts[key] = (*before[:6], False, value)
                return
            exact = before[1] >= self.whole_from and (before[6] or not in_pieces)
            self._end(kind, before, place)
        facts[key] = (key, place.offset, place.time_us, place.epoch, None, None, exact, value)

    def close(self, kind: str, key: str, place: LogPosition) -> None:
        """End the fact of a key at this place."""
        before = self.open[kind].pop(key, None)
        if before is not None:
            self._end(kind, before, place)

    def _end(self, kind: str, fact: Fact, place: LogPosition) -> None:
        exact = fact[6] and fact[1] >= self.whole_from
        self.ended[kind].append((*fact[:4], place.offset, place.time_us, exact, fact[7]))

    # --- state between runs

    def progress(self) -> Fact:
        """Return the internal fact with the progress."""
        last = max(self.next_offset - 1, 0)
        return ("", last, None, None, None, None, True, _PROGRESS.pack(self.next_offset, self.whole_from))

    def resume(self, kind: str, facts: Iterable[Fact]) -> None:
        """Restore open facts of an earlier run."""
        if kind == LOG_KIND:
            for fact in facts:
                self.next_offset, self.whole_from = _PROGRESS.unpack(fact[7])
        else:
            keys = len(kinds()[kind].keys)
            for fact in facts:  # a row of a table has no text of its key
                text = key_text(*fact[7][:keys])
                self.open[kind][text] = (text, *fact[1:7], tuple(map(plain, fact[7])))

    def all_open(self) -> Iterator[tuple[str, Fact]]:
        for kind, facts in self.open.items():
            yield from ((kind, fact) for fact in facts.values())
        yield LOG_KIND, self.progress()


def next_offset_of(state: bytes) -> int:
    """Return the offset that a log was read up to, from its progress."""
    next_offset: int = _PROGRESS.unpack(state)[0]
    return next_offset


def known(number: int) -> int | None:
    """Return None for -1, which records use for unknown numbers."""
    return None if number < 0 else number


def time_us(time_ms: int) -> int | None:
    """Convert milliseconds to microseconds; None for a time that is out of range."""
    return time_ms * 1000 if 0 <= time_ms <= _LAST_TIME_MS else None


def plain(value: Any) -> Any:
    """Convert a value from Arrow or JSON to the form that folds use: arrays become tuples."""
    if isinstance(value, list):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return value


class FoldWithoutMarkers:
    """What folds of logs without markers have in common: each record is applied by itself, and its facts are in `facts`."""

    def __init__(self, kinds: Iterable[str]) -> None:
        self.facts = LogFacts(kinds)

    def apply_marker(self, key: bytes | None, value: bytes | None, place: LogPosition, producer_id: int) -> None:
        """Do nothing: this log has no markers."""
        self.facts.reach(place.offset)

    def end_batch(self) -> None:
        """Do nothing: each record was applied by itself."""

    def restore(self, kind: str, facts: list[Fact]) -> None:
        self.facts.resume(kind, facts)

    def all_open(self) -> Iterator[tuple[str, Fact]]:
        return self.facts.all_open()
