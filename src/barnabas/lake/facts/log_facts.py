"""The facts of one compacted log while its records are folded: what is open, what has ended, and what can be relied on. Pure.

Its one rule: a fact is exact if no offset is missing between what was known of its key before (or the beginning of the log)
and the places where it begins and ends. Where compaction took records away, or a batch could not be read, an earlier record may
have said the same, or something else in between; the fact is right from its own record on, and is marked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from barnabas.lake.facts.schema import Fact

LOG_KIND: Final = "_log"
"""The internal fact that says how far a log was folded."""

_PROGRESS = struct.Struct(">qq")
_LAST_TIME_MS = 253_402_300_799_999


class Place(NamedTuple):
    """Where in its log something became true, or ended."""

    offset: int
    time_us: int | None
    epoch: int | None


class LogFacts:
    """`set` and `close` as records say. Open facts are in `open`, by kind and key; those that end are added to `ended`."""

    def __init__(self, kinds: Iterable[str]) -> None:
        self.open: dict[str, dict[str, Fact]] = {kind: {} for kind in kinds}
        self.ended: dict[str, list[Fact]] = {kind: [] for kind in self.open}
        self.next_offset = 0
        self.whole_from = 0
        """No offset is missing from here on."""

    def reach(self, offset: int) -> None:
        """Called with the offset of each record, before what it says."""
        if offset != self.next_offset:
            if offset < self.next_offset:  # another log under the same name: nothing of before can be relied on
                for facts in self.open.values():
                    facts.update({key: (*fact[:6], False, fact[7]) for key, fact in facts.items()})
            self.whole_from = offset
        self.next_offset = offset + 1

    def set(self, kind: str, key: str, value: tuple[Any, ...], place: Place, *, in_pieces: bool = False) -> None:
        """From this place on, this is true of the key. What is said in pieces is no surer than what was known before."""
        facts = self.open[kind]
        before = facts.get(key)
        exact = self.whole_from == 0
        if before is not None:
            if before[7] == value:
                if before[6] and before[1] < self.whole_from:  # something else may have been true in between
                    facts[key] = (*before[:6], False, value)
                return
            exact = before[1] >= self.whole_from and (before[6] or not in_pieces)
            self._end(kind, before, place)
        facts[key] = (key, place.offset, place.time_us, place.epoch, None, None, exact, value)

    def close(self, kind: str, key: str, place: Place) -> None:
        """From this place on, nothing is true of the key."""
        before = self.open[kind].pop(key, None)
        if before is not None:
            self._end(kind, before, place)

    def _end(self, kind: str, fact: Fact, place: Place) -> None:
        exact = fact[6] and fact[1] >= self.whole_from
        self.ended[kind].append((*fact[:4], place.offset, place.time_us, exact, fact[7]))

    # --- from one run to the next

    def progress(self) -> Fact:
        """The internal fact of how far this went."""
        last = max(self.next_offset - 1, 0)
        return ("", last, None, None, None, None, True, _PROGRESS.pack(self.next_offset, self.whole_from))

    def resume(self, kind: str, facts: Iterable[Fact]) -> None:
        """Open facts of an earlier run."""
        if kind == LOG_KIND:
            for fact in facts:
                self.next_offset, self.whole_from = _PROGRESS.unpack(fact[7])
        else:
            self.open[kind].update((fact[0], (*fact[:7], tuple(map(plain, fact[7])))) for fact in facts)

    def all_open(self) -> Iterator[tuple[str, Fact]]:
        for kind, facts in self.open.items():
            yield from ((kind, fact) for fact in facts.values())
        yield LOG_KIND, self.progress()


def known(number: int) -> int | None:
    """Records say -1 where they say nothing."""
    return None if number < 0 else number


def time_us(time_ms: int) -> int | None:
    """Times that no calendar has are taken for none."""
    return time_ms * 1000 if 0 <= time_ms <= _LAST_TIME_MS else None


def plain(value: Any) -> Any:
    """A value that comes from Arrow or JSON as folds make it: arrays are tuples."""
    if isinstance(value, list):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return value
