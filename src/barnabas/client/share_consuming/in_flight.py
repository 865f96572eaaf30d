"""The records that a share consumer has: those that brokers acquired for it and wait in the buffer, and those that the
application has and must acknowledge. No I/O.

Its one rule: every record that was returned is acknowledged at most once in each delivery, and to the session that delivered
it. A record whose lock was renewed is the application's again, and has to be acknowledged again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from barnabas.client.records import TopicPartition
from barnabas.client.share_consuming.acknowledgements import GAP, AcknowledgeType, Span, spans_of
from barnabas.client.share_consuming.acquired import ShareRecord
from barnabas.wire import ErrorCode, KafkaError, Uuid


class Origin(NamedTuple):
    """The session that delivered records: its broker, and its number among the sessions with that broker."""

    node_id: int
    session: int


class Decided(NamedTuple):
    """Acknowledgements to send for records of one partition."""

    origin: Origin
    place: TopicPartition
    topic_id: Uuid
    spans: list[Span]

    def offsets(self) -> frozenset[int]:
        """Return the offsets of records, without gaps."""
        return frozenset(
            offset for span in self.spans if span.type != GAP for offset in range(span.first, span.last + 1)
        )


class Delivery:
    """Records of a partition from one response, in the buffer. After `expires_s` other members may have them."""

    __slots__ = ("error", "expires_s", "index", "origin", "place", "records", "topic_id")

    def __init__(
        self,
        origin: Origin,
        place: TopicPartition,
        topic_id: Uuid,
        records: list[ShareRecord],
        expires_s: float,
        error: KafkaError | None = None,
    ) -> None:
        self.origin = origin
        self.place = place
        self.topic_id = topic_id
        self.records = records
        self.expires_s = expires_s
        self.error = error  # to raise after the records
        self.index = 0

    def rest(self) -> list[ShareRecord]:
        return self.records[self.index :]


class _Taken:
    """Records of a partition that the application has."""

    __slots__ = ("decided", "origin", "records", "renewed", "renewing", "topic_id")

    def __init__(self, origin: Origin, topic_id: Uuid) -> None:
        self.origin = origin
        self.topic_id = topic_id
        self.records: dict[int, ShareRecord] = {}  # to be acknowledged, by offset
        self.decided: dict[int, AcknowledgeType] = {}  # acknowledged, but not sent
        self.renewing: dict[int, ShareRecord] = {}  # renewal sent, but not answered
        self.renewed: dict[int, ShareRecord] = {}  # to be returned by the next poll once more


class InFlight:
    """Buffered records, and those that the application has."""

    def __init__(self) -> None:
        self._buffer: deque[Delivery] = deque()
        self._taken: dict[TopicPartition, _Taken] = {}

    # --- the buffer

    @property
    def has_buffered(self) -> bool:
        return bool(self._buffer)

    def add(self, delivery: Delivery) -> None:
        self._buffer.append(delivery)

    def take(self, limit: int, now_s: float) -> list[ShareRecord]:
        """Return the next buffered records, at most `limit`. Raises the error of a batch if no records are before it."""
        found: list[ShareRecord] = []
        while self._buffer and limit > 0:
            delivery = self._buffer[0]
            if delivery.expires_s <= now_s:
                self._buffer.popleft()
                continue
            taken = self._taken.get(delivery.place)
            if taken is None:
                taken = self._taken[delivery.place] = _Taken(delivery.origin, delivery.topic_id)
            elif taken.origin != delivery.origin:
                if taken.records or taken.renewing or found:
                    break  # first those of the earlier session
                taken.origin, taken.topic_id = delivery.origin, delivery.topic_id
            some = delivery.records[delivery.index : delivery.index + limit]
            delivery.index += len(some)
            limit -= len(some)
            taken.records.update((record.offset, record) for record in some)
            found = found + some if found else some
            if delivery.index >= len(delivery.records):
                if delivery.error is not None and found:
                    break  # the next call raises it
                self._buffer.popleft()
                if delivery.error is not None:
                    raise delivery.error
        return found

    def put_back(self, records: Iterable[ShareRecord]) -> None:
        """Take these records, which were returned by `take`, back from the application, to the front of the buffer."""
        by_place: dict[TopicPartition, list[ShareRecord]] = {}
        for record in records:
            by_place.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
        for place, some in reversed(by_place.items()):
            taken = self._taken[place]
            for record in some:
                del taken.records[record.offset]
            delivery = Delivery(taken.origin, place, taken.topic_id, some, float("inf"))
            self._buffer.appendleft(delivery)

    def drop(self, origin: Origin) -> None:
        """Drop what is buffered from a session that ended: the broker has released it."""
        self._buffer = deque(each for each in self._buffer if each.origin != origin)

    def release_buffered(self, places: Collection[TopicPartition] | None = None) -> Iterator[Decided]:
        """Drop what is buffered of these partitions, or all, and yield the acknowledgements that release it."""
        kept: deque[Delivery] = deque()
        for each in self._buffer:
            if places is not None and each.place not in places:
                kept.append(each)
            elif rest := each.rest():
                spans = spans_of((record.offset, AcknowledgeType.RELEASE) for record in rest)
                yield Decided(each.origin, each.place, each.topic_id, spans)
        self._buffer = kept

    # --- what the application has

    def acknowledge(self, place: TopicPartition, offset: int, type: AcknowledgeType) -> None:
        """Note what becomes of a record, to be sent later. Raises INVALID_RECORD_STATE if it is not the application's."""
        taken = self._taken.get(place)
        if taken is None or offset not in taken.records:
            text = f"{place} at {offset} is not in flight: it was not returned by the last poll, or is acknowledged already"
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, text)
        taken.decided[offset] = type
        taken.renewed.pop(offset, None)

    def accept_all(self) -> None:
        """Accept all records that the application has not acknowledged."""
        for taken in self._taken.values():
            for offset in taken.records:
                taken.decided.setdefault(offset, AcknowledgeType.ACCEPT)

    def undecided(self) -> list[ShareRecord]:
        """Return the records that have to be acknowledged before the next poll."""
        return [
            record
            for taken in self._taken.values()
            if len(taken.records) > len(taken.decided) + len(taken.renewed)
            for offset, record in taken.records.items()
            if offset not in taken.decided and offset not in taken.renewed
        ]

    def take_decided(self) -> Iterator[Decided]:
        """Yield what is to be sent. Records are not the application's any more, unless their locks are renewed."""
        for place, taken in list(self._taken.items()):
            if taken.decided:
                for offset, kind in taken.decided.items():
                    record = taken.records.pop(offset)
                    if kind is AcknowledgeType.RENEW:
                        taken.renewing[offset] = record
                spans = spans_of(taken.decided.items())
                taken.decided = {}
                yield Decided(taken.origin, place, taken.topic_id, spans)
            if not taken.records and not taken.renewing:
                del self._taken[place]

    # --- renewals

    @property
    def is_renewing(self) -> bool:
        return any(taken.renewing for taken in self._taken.values())

    def answered(self, decided: Decided, error: KafkaError | None) -> None:
        """Follow the outcome of acknowledgements: records whose locks were renewed are the application's again."""
        taken = self._taken.get(decided.place)
        if taken is None:
            return
        for first, last, kind in decided.spans:
            if kind == AcknowledgeType.RENEW:
                for offset in range(first, last + 1):
                    record = taken.renewing.pop(offset, None)
                    if record is not None and error is None:
                        taken.records[offset] = taken.renewed[offset] = record
        if not taken.records and not taken.renewing:
            del self._taken[decided.place]

    def take_renewed(self) -> list[ShareRecord]:
        """Return the records whose locks were renewed, once."""
        found: list[ShareRecord] = []
        for taken in self._taken.values():
            if taken.renewed:
                found += taken.renewed.values()
                taken.renewed = {}
        return found
