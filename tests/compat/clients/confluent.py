"""librdkafka through confluent-kafka."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import confluent_kafka as ck

from tests.compat.clients.common import WAIT_S, Closing, Consumer, Place, Placed, Producer, Record, RefusedError

# librdkafka's own names for what Kafka calls otherwise
_NAMES = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "metadata.max.age.ms": "topic.metadata.refresh.interval.ms",
}


class Confluent:
    name = "confluent"
    codecs = frozenset({"none", "gzip", "snappy", "lz4", "zstd"})
    sends_null_headers = True
    sends_null_records = True

    def producer(self, bootstrap: str, settings: Mapping[str, Any] | None = None) -> Producer:
        return ConfluentProducer(_config(bootstrap, settings))

    def consumer(self, bootstrap: str, settings: Mapping[str, Any] | None = None) -> Consumer:
        return ConfluentConsumer(_config(bootstrap, settings))


def _config(bootstrap: str, settings: Mapping[str, Any] | None) -> dict[str, Any]:
    renamed = {_NAMES.get(name, name): value for name, value in (settings or {}).items()}
    # a node that comes back is found at once
    return {"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200, **renamed}


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except ck.KafkaException as error:
        raise _refused(error.args[0]) from error


def _refused(error: ck.KafkaError) -> RefusedError:
    is_fenced = error.code() == ck.KafkaError._FENCED
    return RefusedError(
        error.code(), error.str(), is_fenced=is_fenced, is_fatal=error.fatal() or error.code() == ck.KafkaError._FATAL
    )


class ConfluentProducer(Closing):
    def __init__(self, config: Mapping[str, Any]) -> None:
        self._producer = ck.Producer(dict(config))
        self._placed: list[Placed] = []
        self._errors: list[ck.KafkaError] = []
        if "transactional.id" in config:
            with _refusals():
                self._producer.init_transactions(WAIT_S)

    def send(self, topic: str, record: Record) -> None:
        where: dict[str, Any] = {} if record.partition is None else {"partition": record.partition}
        when: dict[str, Any] = {} if record.timestamp_ms is None else {"timestamp": record.timestamp_ms}
        headers: Any = list(record.headers) or None
        with _refusals():
            self._producer.produce(
                topic, record.value, record.key, on_delivery=self._delivered, headers=headers, **where, **when
            )

    def _delivered(self, error: ck.KafkaError | None, message: ck.Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None:
            self._errors.append(error)
        elif partition is not None and offset is not None:  # None: acks=0
            self._placed.append((partition, offset))

    def flush(self) -> list[Placed]:
        assert self._producer.flush(WAIT_S) == 0
        placed, errors = self._placed, self._errors
        self._placed, self._errors = [], []
        if errors:
            raise _refused(errors[0])
        return placed

    def begin(self) -> None:
        with _refusals():
            self._producer.begin_transaction()

    def commit(self) -> None:
        with _refusals():
            self._producer.commit_transaction(WAIT_S)

    def abort(self) -> None:
        with _refusals():
            self._producer.abort_transaction(WAIT_S)
        self._placed, self._errors = [], []  # of records that were not sent yet

    def send_offsets(self, offsets: Mapping[Place, int], consumer: ConfluentConsumer) -> None:
        with _refusals():
            group = consumer.consumer.consumer_group_metadata()
            self._producer.send_offsets_to_transaction(_positions(offsets), group, WAIT_S)

    def close(self) -> None:
        self._producer.purge()
        with suppress(ck.KafkaException):  # one that was fenced says so again
            self._producer.close()


class ConfluentConsumer(Closing):
    def __init__(self, config: dict[str, Any]) -> None:
        self.events: list[tuple[str, frozenset[Place]]] = []
        self._ends: dict[Place, int] = {}
        defaults = {"group.id": "unused", "enable.auto.commit": False, "enable.partition.eof": True, "check.crcs": True}
        self.consumer = ck.Consumer({**defaults, **config})

    def subscribe(self, topics: Sequence[str] = (), pattern: str | None = None) -> None:
        wanted = list(topics) if pattern is None else [f"^{pattern}"]
        self.consumer.subscribe(wanted, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def _assigned(self, consumer: ck.Consumer, partitions: list[ck.TopicPartition]) -> None:
        self.events.append(("assigned", _places(partitions)))

    def _revoked(self, consumer: ck.Consumer, partitions: list[ck.TopicPartition]) -> None:
        self.events.append(("revoked", _places(partitions)))

    def _lost(self, consumer: ck.Consumer, partitions: list[ck.TopicPartition]) -> None:
        self.events.append(("lost", _places(partitions)))

    def assign(self, positions: Mapping[Place, int]) -> None:
        self.consumer.assign(_positions(positions))

    def incremental_assign(self, positions: Mapping[Place, int]) -> None:
        self.consumer.incremental_assign(_positions(positions))

    def incremental_unassign(self, places: Iterable[Place]) -> None:
        self.consumer.incremental_unassign([ck.TopicPartition(*place) for place in places])

    def poll(self, timeout_s: float) -> list[Record]:
        with _refusals():
            message = self.consumer.poll(timeout_s)
            messages = [] if message is None else [message, *self.consumer.consume(500, 0)]
        for each in messages:
            error = each.error()
            if error is not None and error.code() == ck.KafkaError._PARTITION_EOF:
                topic, partition, offset = _place_of(each)
                self._ends[topic, partition] = offset
            elif error is not None:
                raise _refused(error)
        return [_record(each) for each in messages if each.error() is None]

    def assignment(self) -> set[Place]:
        return set(_places(self.consumer.assignment()))

    def commit(self, offsets: Mapping[Place, int]) -> None:
        with _refusals():
            done = self.consumer.commit(offsets=_positions(offsets), asynchronous=False)
        for each in done:
            if each.error is not None:
                raise _refused(each.error)

    def committed(self, places: Iterable[Place]) -> dict[Place, int | None]:
        with _refusals():
            found = self.consumer.committed([ck.TopicPartition(*place) for place in places], WAIT_S)
        return {(each.topic, each.partition): each.offset if each.offset >= 0 else None for each in found}

    def seek(self, place: Place, offset: int) -> None:
        self.consumer.seek(ck.TopicPartition(*place, offset))

    def is_at(self, place: Place, offset: int) -> bool:
        """librdkafka has a position after the first record only; that it has nothing to read, it says."""
        return self._ends.get(place) == offset

    def pause(self, places: Iterable[Place]) -> None:
        self.consumer.pause([ck.TopicPartition(*place) for place in places])

    def resume(self, places: Iterable[Place]) -> None:
        self.consumer.resume([ck.TopicPartition(*place) for place in places])

    def ends(self, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
        with _refusals():
            return {
                place: self.consumer.get_watermark_offsets(ck.TopicPartition(*place), WAIT_S, cached=False)
                for place in places
            }

    def offsets_for_times(self, times_ms: Mapping[Place, int]) -> dict[Place, int | None]:
        with _refusals():
            found = self.consumer.offsets_for_times(_positions(times_ms), WAIT_S)
        return {(each.topic, each.partition): each.offset if each.offset >= 0 else None for each in found}

    def close(self) -> None:
        self.consumer.close()


def _positions(offsets: Mapping[Place, int]) -> list[ck.TopicPartition]:
    return [ck.TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]


def _places(partitions: Iterable[ck.TopicPartition]) -> frozenset[Place]:
    return frozenset((each.topic, each.partition) for each in partitions)


def _place_of(message: ck.Message) -> tuple[str, int, int]:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None and partition is not None and offset is not None
    return topic, partition, offset


def _record(message: ck.Message) -> Record:
    kind, timestamp_ms = message.timestamp()
    headers: Any = message.headers() or ()
    return Record(
        message.value(),
        message.key(),
        tuple(headers),
        timestamp_ms,
        *_place_of(message),
        kind == ck.TIMESTAMP_LOG_APPEND_TIME,
    )
