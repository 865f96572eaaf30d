"""What is done to a node while it is killed, and what must then be true.

A load has `prepare` (topics, clients), `step` (a little work, over and over, in threads of its own), `restarted` (what must be
true at once after a kill), `settle` (nothing is under way any more) and `check` (what must be true then). Its one rule: what
was acknowledged is written down, and nothing else is believed.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any

import confluent_kafka as ck
from confluent_kafka.admin import OffsetSpec

from tests.crash.clients import (
    PATIENCE_S,
    Found,
    Place,
    abort,
    admin,
    close_producer,
    committed,
    consumer,
    create_topic,
    is_stable,
    offsets,
    place_of,
    producer,
    read,
    retried,
    wait_until,
)

IN_FLIGHT_MAX = 1000
# If the coordinator of a group was fenced, librdkafka 2.16 waits for it for ever, whatever the timeout, and looks for another
# only when some connection opens or closes (its issues 5456 and 5511). So some connection always does.
RESTLESS: dict[str, int] = {"connections_max_idle_ms": 3000, "topic_metadata_refresh_interval_ms": 4000}
PADDING = bytes(range(256)) * 8


def content(number: int) -> bytes:
    """A number, and so many bytes that follow from it."""
    return b"%d:%s" % (number, PADDING[: number * 7919 % 700])


def number_of(value: bytes) -> int:
    number = int(value.partition(b":")[0])
    assert value == content(number), f"{number} is not what was sent"
    return number


class Load:
    """Does nothing."""

    threads = 1

    def __init__(self, name: str, random: Random) -> None:
        self.name = name
        self.random = random
        self.bootstrap = ""
        self.acknowledged = 0

    def prepare(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def step(self, thread: int) -> None:
        raise NotImplementedError

    def restarted(self) -> None:
        """Nothing to be seen at once."""

    def settle(self) -> None:
        """Nothing is under way after a step."""

    def check(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Nothing to close."""


class Stream(Load):
    """One producer, which sends numbers in order to the partitions of a topic; `config` is of the topic."""

    partitions = 3

    def __init__(
        self, name: str, random: Random, *, config: dict[str, str] | None = None, keys: int = 0, **settings: Any
    ) -> None:
        super().__init__(name, random)
        self._config = config or {}
        self._keys = keys
        self._settings = settings
        self.is_idempotent = settings.get("enable_idempotence", False)
        self.sent: dict[int, list[int]] = {partition: [] for partition in range(self.partitions)}
        self.placed: dict[int, dict[int, int]] = {partition: {} for partition in range(self.partitions)}
        self._failures: list[str] = []
        self._count = 0

    @property
    def places(self) -> list[Place]:
        return [(self.name, partition) for partition in range(self.partitions)]

    def prepare(self, bootstrap: str) -> None:
        super().prepare(bootstrap)
        create_topic(bootstrap, self.name, self.partitions, self._config)
        self.producer = producer(bootstrap, **self._settings)

    def step(self, thread: int) -> None:
        for _ in range(self.random.randint(1, 60)):
            partition = self.random.randrange(self.partitions)
            key = b"%d" % self.random.randrange(self._keys) if self._keys else None
            number, self._count = self._count, self._count + 1
            self.sent[partition].append(number)
            self.producer.produce(
                self.name, content(number), key, partition=partition, on_delivery=self._delivered(partition, number)
            )
        self.producer.poll(0)
        while len(self.producer) > IN_FLIGHT_MAX:
            self.producer.poll(0.05)
        time.sleep(0.05)  # enough to be busy, and no more: what is measured is not speed

    def _delivered(self, partition: int, number: int) -> Any:
        def delivered(error: ck.KafkaError | None, message: ck.Message) -> None:
            if error is not None:
                self._failures.append(f"{number}: {error}")
            else:
                self.acknowledged += 1
                offset = message.offset()
                if offset is not None and offset >= 0:
                    self.placed[partition][offset] = number

        return delivered

    def settle(self) -> None:
        assert self.producer.flush(PATIENCE_S) == 0, f"{self.name}: not everything was answered"
        assert not self._failures, f"{self.name}: {self._failures[:5]} of {len(self._failures)}"

    def check(self) -> None:
        found = read(self.bootstrap, self.places, "read_uncommitted")
        for place in self.places:
            self.check_partition(place, found[place])

    def check_partition(self, place: Place, found: list[Found]) -> None:
        """All that was sent was acknowledged: all of it is there, in order, and once or at least once."""
        numbers = [number_of(each.value) for each in found]
        assert [each.offset for each in found] == list(range(len(found))), f"{place}: offsets have gaps"
        self.check_placed(place, found)
        sent = self.sent[place[1]]
        unique = numbers if self.is_idempotent else list(dict.fromkeys(numbers))
        assert unique == sent, f"{place}: {difference(unique, sent)}"

    def check_placed(self, place: Place, found: list[Found]) -> None:
        at = {each.offset: number_of(each.value) for each in found}
        first = found[0].offset if found else 0
        for offset, number in self.placed[place[1]].items():
            if offset >= first:
                assert at.get(offset) == number, f"{place}: {number} was at {offset}, where now {at.get(offset)} is"

    def close(self) -> None:
        close_producer(self.producer)


def difference(found: list[int], sent: list[int]) -> str:
    lost = sorted(set(sent) - set(found))
    twice = sorted(number for number in set(found) if found.count(number) > 1) if len(found) < 20000 else []
    at = next((i for i, (a, b) in enumerate(zip(found, sent, strict=False)) if a != b), min(len(found), len(sent)))
    return (
        f"{len(found)} of {len(sent)}, lost {lost[:5]} ({len(lost)}), twice {twice[:5]} ({len(twice)}), "
        f"from {at} on {found[at : at + 5]} and not {sent[at : at + 5]}"
    )


class Compacted(Stream):
    """Of each key the last is there, and whatever else is there was sent, at that offset, in that order."""

    def check_partition(self, place: Place, found: list[Found]) -> None:
        numbers = [number_of(each.value) for each in found]
        assert numbers == sorted(set(numbers)), f"{place}: out of order, or twice"
        placed = self.placed[place[1]]
        last: dict[bytes | None, int] = {}
        for each in found:
            number = number_of(each.value)
            assert placed.get(each.offset, number) == number, f"{place}: {number} at {each.offset}"
            last[each.key] = number
        assert last == self._last[place[1]], f"{place}: the last of each key is not what was sent"

    def prepare(self, bootstrap: str) -> None:
        self._last: dict[int, dict[bytes | None, int]] = defaultdict(dict)
        super().prepare(bootstrap)

    def _delivered(self, partition: int, number: int) -> Any:
        noted = super()._delivered(partition, number)

        def delivered(error: ck.KafkaError | None, message: ck.Message) -> None:
            noted(error, message)
            if error is None:
                self._last[partition][message.key()] = number

        return delivered


class Shrinking(Stream):
    """A log that loses its beginning, by retention or by DeleteRecords: what is left is whole up to its end."""

    def __init__(self, name: str, random: Random, *, delete_records: bool = False, **settings: Any) -> None:
        super().__init__(name, random, **settings)
        self._delete_records = delete_records
        self._starts: dict[int, int] = dict.fromkeys(range(self.partitions), 0)
        self._asked: dict[int, int] = dict.fromkeys(range(self.partitions), 0)

    def step(self, thread: int) -> None:
        super().step(thread)
        if self._delete_records and self.random.random() < 0.05:
            partition = self.random.randrange(self.partitions)
            before = max(self.placed[partition], default=0)
            asked = ck.TopicPartition(self.name, partition, self.random.randint(before // 2, before))
            self._asked[partition] = max(self._asked[partition], asked.offset)
            client = admin(self.bootstrap)
            try:
                for future in client.delete_records([asked], request_timeout=PATIENCE_S).values():
                    assert future.result(PATIENCE_S).low_watermark >= asked.offset
            except (ck.KafkaException, TimeoutError):
                pass  # it was killed meanwhile: it may have been done, or not

    def check_partition(self, place: Place, found: list[Found]) -> None:
        start = offsets(self.bootstrap, [place], OffsetSpec.earliest())[place]
        if self._delete_records:  # where it begins is written down now and then, as Kafka does: it may have gone back
            assert start <= self._asked[place[1]], f"{place}: begins at {start}, more than anyone asked to delete"
        else:
            assert start >= self._starts[place[1]], f"{place}: began at {self._starts[place[1]]}, and now at {start}"
            self._starts[place[1]] = start
        if found:
            numbered = [each.offset for each in found]
            assert numbered == list(range(numbered[0], numbered[0] + len(found))), f"{place}: offsets have gaps"
        numbers = [number_of(each.value) for each in found]
        sent = self.sent[place[1]]
        assert numbers == sent[len(sent) - len(numbers) :], f"{place}: {difference(numbers, sent)}"
        self.check_placed(place, found)
        end = found[-1].offset + 1 if found else start
        assert end > max(self.placed[place[1]], default=-1), f"{place}: ends at {end}"


class Transactions(Load):
    """Producers with transactions over two topics and the offsets of a group; some are replaced in the middle of one."""

    threads = 3
    partitions = 2

    def __init__(self, name: str, random: Random) -> None:
        super().__init__(name, random)
        self.producers: dict[int, ck.Producer] = {}
        self.outcomes: dict[tuple[int, int], str] = {}  # of (producer, transaction): committed, aborted, unknown
        self.members: dict[tuple[int, int], list[tuple[Place, bytes]]] = {}
        self.told: dict[tuple[int, int], list[str]] = {}  # what the client said of each, shown when a check fails
        self.offsets: dict[int, list[tuple[int, int]]] = {thread: [] for thread in range(self.threads)}
        self._randoms = [Random(random.random()) for _ in range(self.threads)]
        self._numbers = [0] * self.threads
        self.replaced = self.failed = 0

    @property
    def places(self) -> list[Place]:
        return [(f"{self.name}-{side}", part) for side in ("left", "right") for part in range(self.partitions)]

    def prepare(self, bootstrap: str) -> None:
        super().prepare(bootstrap)
        for topic in dict.fromkeys(topic for topic, _ in self.places):
            create_topic(bootstrap, topic, self.partitions)
        self._source = ck.TopicPartition(self.places[0][0], 0)
        self._groups = [consumer(bootstrap, group_id=self.group(thread)) for thread in range(self.threads)]
        for thread in range(self.threads):
            self._new_producer(thread)

    def group(self, thread: int) -> str:
        return f"{self.name}-group-{thread}"

    def _new_producer(self, thread: int) -> None:
        made = producer(
            self.bootstrap, transactional_id=f"{self.name}-{thread}", transaction_timeout_ms=20000, **RESTLESS
        )
        self.producers[thread] = made
        retried(made.init_transactions)

    def step(self, thread: int) -> None:
        random = self._randoms[thread]
        number, self._numbers[thread] = self._numbers[thread], self._numbers[thread] + 1
        one = self.producers[thread]
        transaction = (thread, number)
        members = self.members[transaction] = []
        self.outcomes[transaction] = "aborted"
        wanted = random.choice(("commit", "commit", "commit", "abort", "replace" if random.random() < 0.3 else "abort"))
        self.told[transaction] = [f"wants to {wanted}"]
        try:
            one.begin_transaction()
            for index in range(random.randint(1, 30)):
                place = random.choice(self.places)
                value = b"%d:%d:%d" % (thread, number, index)
                members.append((place, value))
                one.produce(place[0], value, b"%d" % thread, partition=place[1])
            if random.random() < 0.5:
                one.flush(PATIENCE_S)
            with_offsets = random.random() < 0.5
            if with_offsets:
                self._send_offsets(one, thread, number)
            if wanted == "replace":
                self._replace(thread, one)
            elif wanted == "abort":
                abort(one)
            else:
                self.outcomes[transaction] = "unknown"
                retried(one.commit_transaction)
                self.outcomes[transaction] = "committed"
                self.acknowledged += 1
                if with_offsets:
                    self.offsets[thread].append((number, number + 1))
        except ck.KafkaException as error:
            self.told[transaction].append(str(error))
            self._failed(thread, transaction, error.args[0])

    def _send_offsets(self, one: ck.Producer, thread: int, number: int) -> None:
        position = ck.TopicPartition(self._source.topic, self._source.partition, number + 1)
        group = self._groups[thread].consumer_group_metadata()
        retried(lambda timeout_s: one.send_offsets_to_transaction([position], group, timeout_s))

    def _replace(self, thread: int, zombie: ck.Producer) -> None:
        """The one after it ends what the one before it began, which then cannot end it itself."""
        self._new_producer(thread)
        self.replaced += 1
        try:
            zombie.commit_transaction(PATIENCE_S)
        except ck.KafkaException as error:
            close_producer(zombie)  # with dozens left, one test was seen to take 15 GB
            assert error.args[0].fatal() or error.args[0].txn_requires_abort(), error
        else:
            raise AssertionError("a producer that was replaced has committed")

    def _failed(self, thread: int, transaction: tuple[int, int], error: ck.KafkaError) -> None:
        self.failed += 1
        one = self.producers[thread]
        if error.txn_requires_abort():
            try:
                abort(one)
            except ck.KafkaException as last:  # its coordinator has timed it out
                error = last.args[0]
            else:
                self.outcomes[transaction] = "aborted"
                return
        assert error.fatal(), error
        close_producer(one)
        self._new_producer(thread)

    def check(self) -> None:
        wait_until(lambda: is_stable(self.bootstrap, self.places), "the last stable offset stands still")
        seen = read(self.bootstrap, self.places, "read_committed")
        everything = read(self.bootstrap, self.places, "read_uncommitted")
        placed: dict[tuple[int, int], list[tuple[Place, bytes]]] = defaultdict(list)
        for place, found in seen.items():
            values = [each.value for each in found]
            assert len(set(values)) == len(values), f"{place}: a record twice"
            by_producer: dict[int, list[tuple[int, int]]] = defaultdict(list)
            for value in values:
                thread, number, index = map(int, value.split(b":"))
                by_producer[thread].append((number, index))
                placed[thread, number].append((place, value))
            for thread, numbers in by_producer.items():
                assert numbers == sorted(numbers), f"{place}: producer {thread} out of order"
            assert set(values) <= {each.value for each in everything[place]}
        for transaction, outcome in self.outcomes.items():
            there, members = sorted(placed.get(transaction, [])), sorted(self.members[transaction])
            allowed = {"committed": (members,), "aborted": ([],), "unknown": (members, [])}[outcome]
            assert there in allowed, (
                f"{transaction} is {outcome}: {len(there)} of {len(members)} records are seen; {self.told[transaction]}"
            )
        self._check_offsets()

    def _check_offsets(self) -> None:
        place = (self._source.topic, self._source.partition)
        for thread, acknowledged in self.offsets.items():
            found = committed(self.bootstrap, self.group(thread), [place])[place]
            if acknowledged:
                number, offset = acknowledged[-1]
                later = [n + 1 for (t, n), outcome in self.outcomes.items() if (t, outcome) == (thread, "unknown")]
                allowed = {offset, *(each for each in later if each > number)}
                assert found in allowed, f"{self.group(thread)} committed {offset}, and now it is {found}"

    def close(self) -> None:
        for each in self._groups:
            each.close()
        for one in self.producers.values():
            close_producer(one)


class Abandoned(Load):
    """Transactions whose producers go away and never come back: they end by their timeout."""

    def __init__(self, name: str, random: Random) -> None:
        super().__init__(name, random)
        self._count = 0
        self._wanted = threading.Event()
        self._wanted.set()
        self._left: list[ck.Producer] = []

    def prepare(self, bootstrap: str) -> None:
        super().prepare(bootstrap)
        create_topic(bootstrap, self.name, 1)

    def step(self, thread: int) -> None:
        """One a round, begun when the round begins."""
        if not self._wanted.is_set():
            time.sleep(0.05)
            return
        self._wanted.clear()
        self._count += 1
        one = producer(self.bootstrap, transactional_id=f"{self.name}-{self._count}", transaction_timeout_ms=1500)
        self._left.append(one)
        try:
            retried(one.init_transactions)
            one.begin_transaction()
            one.produce(self.name, b"never")
            one.flush(PATIENCE_S)
        except ck.KafkaException:
            return  # it was so slow that its time was over

    def check(self) -> None:
        place = (self.name, 0)
        wait_until(lambda: is_stable(self.bootstrap, [place]), "an abandoned transaction is not ended")
        assert read(self.bootstrap, [place], "read_committed") == {place: []}
        self._wanted.set()

    def close(self) -> None:
        for one in self._left:
            close_producer(one)


class Group(Load):
    """Two members of one group that read a stream and commit; `protocol` is classic or consumer."""

    threads = 2

    def __init__(self, name: str, random: Random, stream: Stream, protocol: str) -> None:
        super().__init__(name, random)
        self._stream = stream
        self._protocol = protocol
        self._acknowledged: dict[Place, int] = {}
        self._seen: set[int] = set()
        self._lock = threading.Lock()
        self.refused = 0

    def prepare(self, bootstrap: str) -> None:
        super().prepare(bootstrap)
        settings: dict[str, Any] = {"group_id": self.name, "auto_offset_reset": "earliest"}
        settings["group_protocol"] = self._protocol
        if self._protocol == "classic":
            settings.update(session_timeout_ms=6000, heartbeat_interval_ms=200)
        self._members = [consumer(bootstrap, **settings) for _ in range(self.threads)]
        for member in self._members:
            member.subscribe([self._stream.name])

    def step(self, thread: int) -> None:
        member = self._members[thread]
        first: dict[Place, int] = {}
        positions: dict[Place, int] = {}
        numbers: list[int] = []
        for message in member.consume(200, 0.1):
            if message.error() is None:
                place, offset = place_of(message)
                first.setdefault(place, offset)
                positions[place] = offset + 1
                numbers.append(number_of(message.value() or b""))
        with self._lock:
            self._seen.update(numbers)
        if not positions:
            return
        wanted = [ck.TopicPartition(*place, offset) for place, offset in positions.items()]
        with contextlib.suppress(ck.KafkaException):  # killed meanwhile, or the partitions are another member's now
            for each in member.commit(offsets=wanted, asynchronous=False):
                if each.error is None:
                    self._note((each.topic, each.partition), each.offset)
                    del first[each.topic, each.partition]
        self.refused += bool(first)
        for place, offset in first.items():  # what is not committed is read again: there may be no later record
            with contextlib.suppress(ck.KafkaException):
                member.seek(ck.TopicPartition(*place, offset))

    def _note(self, place: Place, offset: int) -> None:
        with self._lock:
            self.acknowledged += 1
            self._acknowledged[place] = max(offset, self._acknowledged.get(place, 0))

    def _check_offsets(self) -> None:
        with self._lock:
            acknowledged = dict(self._acknowledged)
        found = committed(self.bootstrap, self.name, self._stream.places)
        for place, offset in acknowledged.items():
            assert found[place] >= offset, f"{self.name} committed {offset} of {place}, and now it is {found[place]}"

    def restarted(self) -> None:
        self._check_offsets()

    def settle(self) -> None:
        """Members go on while the stream has settled: the group comes to its end."""
        goals = offsets(self.bootstrap, self._stream.places, OffsetSpec.latest())
        wait_until(lambda: self._is_at(goals), f"{self.name} does not come to {goals}, it is at {self._acknowledged}")

    def _is_at(self, goals: dict[Place, int]) -> bool:
        with self._lock:
            return all(self._acknowledged.get(place, 0) >= goal for place, goal in goals.items())

    def check(self) -> None:
        self._check_offsets()
        missed = {number for sent in self._stream.sent.values() for number in sent} - self._seen
        assert not missed, f"{self.name} never saw {sorted(missed)[:5]} ({len(missed)})"

    def close(self) -> None:
        for member in self._members:
            member.close()


class Churn(Load):
    """Topics that come and go with a record in them: what was answered stays so."""

    def __init__(self, name: str, random: Random) -> None:
        super().__init__(name, random)
        self._there: dict[str, bytes] = {}
        self._gone: set[str] = set()
        self._unknown: set[str] = set()
        self._count = 0

    def prepare(self, bootstrap: str) -> None:
        super().prepare(bootstrap)
        self._admin = admin(bootstrap)
        self._producer = producer(bootstrap, message_timeout_ms=5000)

    def step(self, thread: int) -> None:
        if len(self._there) > 5:
            self._delete(self.random.choice(sorted(self._there)))
        else:
            self._create()

    def _create(self) -> None:
        self._count += 1
        topic = f"{self.name}-{self._count}"
        try:
            create_topic(self.bootstrap, topic, self.random.randint(1, 3))
        except (ck.KafkaException, TimeoutError):
            self._unknown.add(topic)
            return
        delivered: list[ck.Message] = []
        value = content(self._count)
        self._producer.produce(
            topic, value, partition=0, on_delivery=lambda error, _: delivered.append(_) if error is None else None
        )
        self._producer.flush(PATIENCE_S)
        self.acknowledged += 1
        self._there[topic] = value if delivered else b""

    def _delete(self, topic: str) -> None:
        del self._there[topic]
        try:
            for future in self._admin.delete_topics([topic], request_timeout=PATIENCE_S).values():
                future.result(PATIENCE_S)
        except (ck.KafkaException, TimeoutError):
            self._unknown.add(topic)
            return
        self.acknowledged += 1
        self._gone.add(topic)

    def check(self) -> None:
        topics = {each for each in self._admin.list_topics(timeout=PATIENCE_S).topics if each.startswith(self.name)}
        assert topics >= self._there.keys(), f"lost {self._there.keys() - topics}"
        assert not topics & self._gone, f"deleted, and there: {topics & self._gone}"
        found = read(self.bootstrap, [(topic, 0) for topic in self._there], "read_uncommitted") if self._there else {}
        for (topic, _), records in found.items():
            value = self._there[topic]
            assert {each.value for each in records} >= ({value} if value else set()), topic

    def close(self) -> None:
        close_producer(self._producer)


def settled_first(loads: list[Load]) -> Iterator[Load]:
    """Those who send, then those who read what they sent."""
    yield from sorted(loads, key=lambda load: isinstance(load, Group))
