"""What clients did and were told, and whether that was right. Pure: it judges any history, also one of real processes.

Its one rule: only what was answered counts. A request without an answer may have happened or not, but not in part. Values are
unique in a run: `<producer> <number>`, where the numbers of one producer grow in the order in which it sends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class Place(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Outcome(Enum):
    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass
class Sent:
    """One record: where it was acknowledged, if it was, and the transaction it belongs to."""

    value: bytes
    topic: str
    transaction: str | None = None
    acknowledged: tuple[Place, int] | None = None


@dataclass
class Transaction:
    name: str
    outcome: Outcome = Outcome.OPEN
    values: list[bytes] = field(default_factory=list)


class Record(NamedTuple):
    offset: int
    value: bytes


class Final(NamedTuple):
    """What is there when everything has come to rest."""

    committed: Mapping[Place, list[Record]]  # as read_committed sees it
    all_records: Mapping[Place, list[Record]]  # as read_uncommitted sees it
    topics: Mapping[str, str]  # name to id
    offsets: Mapping[tuple[str, Place], int]  # of groups
    settings: Mapping[str, str] = {}  # by the names that `was_set` was told


class History:
    """Collects what clients report. `contradictions` are seen at once, `check` compares all of it with the end."""

    def __init__(self) -> None:
        self.sent: dict[bytes, Sent] = {}
        self.transactions: dict[str, Transaction] = {}
        self.read: dict[Place, dict[int, tuple[bytes, str]]] = defaultdict(dict)
        self.committed_offsets: dict[tuple[str, Place], int] = {}
        self.created: dict[str, str] = {}
        self.deleting: set[str] = set()
        self.deleted: set[str] = set()
        self.settings: dict[str, tuple[str, str | None]] = {}  # name to value, and the topic that it ends with
        self.copies: dict[bytes, bytes] = {}  # the value of a copy, and of what it was copied from
        self.contradictions: list[str] = []
        self.counts: dict[str, int] = defaultdict(int)
        # Whether a request that was sent again may have been carried out once more, after later ones. What it repeats is as the
        # client wanted it, but old: Kafka promises nothing else.
        self.offsets_may_be_old = False
        self.topics_may_be_old = False

    # --- producers

    def sending(self, value: bytes, topic: str, transaction: str | None = None) -> None:
        self.counts["sent"] += 1
        self.sent[value] = Sent(value, topic, transaction)
        if transaction is not None:
            self.transactions.setdefault(transaction, Transaction(transaction)).values.append(value)

    def acknowledged(self, value: bytes, place: Place, offset: int) -> None:
        self.counts["acknowledged"] += 1
        self.sent[value].acknowledged = place, offset

    def ended(self, transaction: str, outcome: Outcome) -> None:
        self.counts[outcome.value] += 1
        self.transactions.setdefault(transaction, Transaction(transaction)).outcome = outcome

    def copied(self, value: bytes, original: bytes) -> None:
        """Note what a record is a copy of, before it is sent."""
        self.copies[value] = original

    # --- consumers

    def received(self, reader: str, place: Place, offset: int, value: bytes, *, committed: bool) -> None:
        """Note a record that a consumer returned. What is at an offset never changes."""
        self.counts["read"] += 1
        before = self.read[place].setdefault(offset, (value, reader))
        if before[0] != value:
            self._contradict(f"{place} {offset}: {reader} read {value!r}, but {before[1]} read {before[0]!r}")
        sent = self.sent.get(value)
        if sent is None:
            self._contradict(f"{place} {offset}: {reader} read {value!r}, which nobody sent")
        elif committed and sent.transaction is not None:
            outcome = self.transactions[sent.transaction].outcome
            if outcome is Outcome.ABORTED:
                self._contradict(f"{place} {offset}: {reader} read {value!r} of an aborted transaction")

    def offset_committed(self, group: str, place: Place, offset: int) -> None:
        self.counts["offsets committed"] += 1
        key = group, place
        self.committed_offsets[key] = max(offset, self.committed_offsets.get(key, 0))

    def offset_found(self, group: str, place: Place, offset: int | None, least: int) -> None:
        """Note an offset that a group was told. `least` is the highest that was acknowledged before it asked."""
        if (offset or 0) < least and not (self.offsets_may_be_old and offset):
            self._contradict(f"group {group} was told {offset} for {place}, but {least} was acknowledged before")

    # --- administrators

    def topic_created(self, name: str, topic_id: str) -> None:
        self.counts["created"] += 1
        self.created[name] = topic_id

    def topic_deleting(self, name: str) -> None:
        self.deleting.add(name)

    def topic_deleted(self, name: str) -> None:
        self.counts["deleted"] += 1
        self.deleted.add(name)

    def was_set(self, name: str, value: str, topic: str | None = None) -> None:
        """Note a setting or an ACL that was acknowledged, and that nobody changes again. It may end with its topic."""
        self.counts["set"] += 1
        self.settings[name] = value, topic

    def _contradict(self, what: str) -> None:
        self.contradictions.append(what)

    # --- the end

    def check(self, final: Final) -> Iterator[str]:
        """Yield what is wrong."""
        yield from self.contradictions
        places: dict[bytes, tuple[Place, int]] = {}
        for place, records in final.all_records.items():
            for offset, value in records:
                if value in places:
                    yield f"duplicate: {value!r} is at {place} {offset} and at {places[value]}"
                places[value] = place, offset
        committed = {value: (place, offset) for place, found in final.committed.items() for offset, value in found}
        yield from self._lost(places, committed)
        yield from self._transactions(committed)
        for place, records in final.all_records.items():
            yield from _disorder(place, records)
            yield from self._changed(place, records)
        yield from self._copied(committed)
        for (group, place), offset in self.committed_offsets.items():
            found = final.offsets.get((group, place), 0)
            if found < offset and not (self.offsets_may_be_old and found):
                yield f"group {group} is at {final.offsets.get((group, place))} of {place}, but {offset} was acknowledged"
        yield from self._topics(final.topics)
        for name, (text, topic) in self.settings.items():
            if topic not in self.deleting and final.settings.get(name) != text:
                yield f"{name} was set to {text!r} and is {final.settings.get(name)!r}"

    def _lost(
        self, places: Mapping[bytes, tuple[Place, int]], committed: Mapping[bytes, tuple[Place, int]]
    ) -> Iterator[str]:
        for sent in self.sent.values():
            if sent.acknowledged is None or sent.topic in self.deleting:
                continue
            if sent.value not in places:
                yield f"lost: {sent.value!r} was acknowledged at {_text(sent.acknowledged)}"
            elif places[sent.value] != sent.acknowledged:
                yield f"moved: {sent.value!r} was acknowledged at {_text(sent.acknowledged)}, is {_text(places[sent.value])}"
            elif sent.transaction is None and sent.value not in committed:
                yield f"hidden: {sent.value!r} was acknowledged at {_text(sent.acknowledged)}"

    def _transactions(self, committed: Mapping[bytes, object]) -> Iterator[str]:
        for transaction in self.transactions.values():
            seen = [value for value in transaction.values if value in committed]
            if transaction.outcome is Outcome.ABORTED and seen:
                yield f"{transaction.name} was aborted, but {seen[0]!r} is visible"
            elif transaction.outcome is Outcome.COMMITTED and len(seen) < len(transaction.values):
                missing = next(value for value in transaction.values if value not in committed)
                yield f"{transaction.name} was committed, but {missing!r} is missing"
            elif seen and len(seen) < len(transaction.values):
                yield f"{transaction.name} is visible in part: {len(seen)} of {len(transaction.values)}"

    def _changed(self, place: Place, records: Iterable[Record]) -> Iterator[str]:
        final = dict(records)
        for offset, (value, reader) in self.read[place].items():
            if final.get(offset, value) != value:
                yield f"{place} {offset}: {reader} read {value!r}, and now it is {final[offset]!r}"

    def _copied(self, committed: Mapping[bytes, object]) -> Iterator[str]:
        """A copy and the offset of its original are committed together, so nothing is copied twice."""
        seen: dict[bytes, bytes] = {}
        for copy, original in self.copies.items():
            if copy in committed:
                if original in seen:
                    yield f"copied twice: {original!r} as {seen[original]!r} and {copy!r}"
                seen[original] = copy

    def _topics(self, found: Mapping[str, str]) -> Iterator[str]:
        for name, topic_id in self.created.items():
            if name not in self.deleting and found.get(name) != topic_id:
                yield f"the topic {name} was created with the id {topic_id} and has {found.get(name)}"
        for name in self.deleted:
            if name in found and not self.topics_may_be_old:
                yield f"the topic {name} was deleted and is there"


def _text(where: tuple[Place, int]) -> str:
    return f"{where[0]} {where[1]}"


def number_of(value: bytes) -> tuple[bytes, int]:
    """Return the producer of a value, and the number that it gave it."""
    producer, number = value.split(b" ")[:2]
    return producer, int(number)


def _disorder(place: Place, records: Iterable[Record]) -> Iterator[str]:
    last: dict[bytes, int] = {}
    for offset, value in records:
        producer, number = number_of(value)
        if number <= last.get(producer, -1):
            yield f"disorder: {value!r} is at {place} {offset} after number {last[producer]}"
        last[producer] = max(number, last.get(producer, -1))
