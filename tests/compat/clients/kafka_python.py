"""kafka-python."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from queue import Empty, Queue
from threading import Event, Lock, Thread
from typing import Any

from tests.compat.clients.common import Placed

with warnings.catch_warnings():  # its own way to read its schemas is deprecated in Python 3.11
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka import codec as kafka_codec
    from kafka.consumer.subscription_state import ConsumerRebalanceListener
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.errors import InvalidProducerEpochError, KafkaError, ProducerFencedError
    from kafka.structs import OffsetAndMetadata, TopicPartition

from tests.compat.clients.common import (
    BEGINNING,
    END,
    WAIT_S,
    Closing,
    Consumer,
    Place,
    Producer,
    Record,
    RefusedError,
    underscored,
)

WAIT_MS = int(WAIT_S * 1000)
MEMBER_POLL_S = 0.1
_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
_LIBRARIES = {
    "gzip": kafka_codec.has_gzip,
    "snappy": kafka_codec.has_snappy,
    "lz4": kafka_codec.has_lz4,
    "zstd": kafka_codec.has_zstd,
}
_FENCED = (InvalidProducerEpochError, ProducerFencedError)


class KafkaPython:
    name = "kafka-python"
    codecs = frozenset({"none", *(name for name, is_here in _LIBRARIES.items() if is_here())})
    sends_null_headers = False
    sends_null_records = False

    def producer(self, bootstrap: str, settings: Mapping[str, Any] | None = None) -> Producer:
        config = underscored(settings)
        if config.get("compression_type") == "none":
            del config["compression_type"]
        return KafkaPythonProducer(bootstrap, config)

    def consumer(self, bootstrap: str, settings: Mapping[str, Any] | None = None) -> Consumer:
        config = underscored(settings)
        if "partition_assignment_strategy" in config:
            config["partition_assignment_strategy"] = [_ASSIGNORS[config["partition_assignment_strategy"]]]
        return KafkaPythonConsumer(bootstrap, config)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        is_fenced = isinstance(error, _FENCED)
        raise RefusedError(getattr(error, "errno", -1), str(error), is_fenced=is_fenced) from error


class KafkaPythonProducer(Closing):
    def __init__(self, bootstrap: str, config: Mapping[str, Any]) -> None:
        self._producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, metrics_enabled=False, **config)
        self._futures: list[Any] = []
        if "transactional_id" in config:
            with _refusals():
                self._producer.init_transactions()

    def send(self, topic: str, record: Record) -> None:
        with _refusals():
            future = self._producer.send(
                topic,
                record.value,
                record.key,
                headers=list(record.headers),
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
            )
        self._futures.append(future)

    def flush(self) -> list[Placed]:
        futures, self._futures = self._futures, []
        with _refusals():
            self._producer.flush(WAIT_S)
            answers = [future.get(WAIT_S) for future in futures]
        return [(each.partition, each.offset) for each in answers]

    def begin(self) -> None:
        with _refusals():
            self._producer.begin_transaction()

    def commit(self) -> None:
        with _refusals():
            self._producer.commit_transaction()

    def abort(self) -> None:
        with _refusals():
            self._producer.abort_transaction()
        self._futures = []  # of records that were not sent yet

    def send_offsets(self, offsets: Mapping[Place, int], consumer: KafkaPythonConsumer) -> None:
        with _refusals():
            self._producer.send_offsets_to_transaction(_offsets(offsets), consumer.consumer.group_metadata())

    def close(self) -> None:
        self._producer.close(timeout=0.1 if self._futures else WAIT_S)


class _Listener(ConsumerRebalanceListener):
    def __init__(self, events: list[tuple[str, frozenset[Place]]]) -> None:
        self._events = events

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._events.append(("assigned", _places(assigned)))

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._events.append(("revoked", _places(revoked)))

    def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        self._events.append(("lost", _places(lost)))


class KafkaPythonConsumer(Closing):
    """A member of a group polls in a thread of its own: between two polls kafka-python does not take part in a rebalance."""

    def __init__(self, bootstrap: str, config: Mapping[str, Any]) -> None:
        self.events: list[tuple[str, frozenset[Place]]] = []
        self.consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap, metrics_enabled=False, **{"enable_auto_commit": False, **config}
        )
        self._polled: Queue[list[Record] | Exception] = Queue()
        self._mutex = Lock()
        self._closing = Event()
        self._thread: Thread | None = None

    def subscribe(self, topics: Sequence[str] = (), pattern: str | None = None) -> None:
        with self._mutex:
            self.consumer.subscribe(list(topics), pattern, _Listener(self.events))
        if self._thread is None:
            self._thread = Thread(target=self._keep_polling, daemon=True)
            self._thread.start()

    def _keep_polling(self) -> None:
        try:
            while not self._closing.is_set():
                with self._mutex:
                    self._remember_join()
                    records = self._poll(MEMBER_POLL_S)
                if records:
                    self._polled.put(records)
                self._closing.wait(0.001)  # who waits for the mutex may have it
        except Exception as error:
            self._polled.put(error)  # for who polls next

    def _remember_join(self) -> None:
        """kafka-python 3.0 forgets a join that new metadata began and that ended between two polls: then it joins again."""
        coordinator = self.consumer._coordinator
        if getattr(coordinator, "_join_task", None) is not None and not coordinator.need_rejoin():
            coordinator.request_rejoin()

    def assign(self, positions: Mapping[Place, int]) -> None:
        self.consumer.assign([TopicPartition(*place) for place in positions])
        for place, offset in positions.items():
            self.seek(place, offset)

    def _poll(self, timeout_s: float) -> list[Record]:
        with _refusals():
            found = self.consumer.poll(int(timeout_s * 1000))
        return [_record(each) for records in found.values() for each in records]

    def poll(self, timeout_s: float) -> list[Record]:
        if self._thread is None:
            return self._poll(timeout_s)
        try:
            polled = self._polled.get(timeout=timeout_s)
        except Empty:
            return []
        if isinstance(polled, Exception):
            raise polled
        return polled

    def assignment(self) -> set[Place]:
        return set(_places(self.consumer.assignment()))

    def commit(self, offsets: Mapping[Place, int]) -> None:
        with _refusals(), self._mutex:
            self.consumer.commit(_offsets(offsets), WAIT_MS)

    def committed(self, places: Iterable[Place]) -> dict[Place, int | None]:
        with _refusals(), self._mutex:
            return {place: self.consumer.committed(TopicPartition(*place), timeout_ms=WAIT_MS) for place in places}

    def seek(self, place: Place, offset: int) -> None:
        partition = TopicPartition(*place)
        if offset == BEGINNING:
            self.consumer.seek_to_beginning(partition)
        elif offset == END:
            self.consumer.seek_to_end(partition)
        else:
            self.consumer.seek(partition, offset)

    def is_at(self, place: Place, offset: int) -> bool:
        with _refusals():
            return bool(self.consumer.position(TopicPartition(*place), WAIT_MS) == offset)

    def pause(self, places: Iterable[Place]) -> None:
        self.consumer.pause(*(TopicPartition(*place) for place in places))

    def resume(self, places: Iterable[Place]) -> None:
        self.consumer.resume(*(TopicPartition(*place) for place in places))

    def ends(self, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
        partitions = [TopicPartition(*place) for place in places]
        with _refusals():
            first = self.consumer.beginning_offsets(partitions, WAIT_MS)
            end = self.consumer.end_offsets(partitions, WAIT_MS)
        return {tuple(each): (first[each], end[each]) for each in partitions}

    def offsets_for_times(self, times_ms: Mapping[Place, int]) -> dict[Place, int | None]:
        with _refusals():
            found = self.consumer.offsets_for_times(
                {TopicPartition(*place): at for place, at in times_ms.items()}, WAIT_MS
            )
        return {tuple(place): None if each is None else each.offset for place, each in found.items()}

    def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join(WAIT_S)
        self.consumer.close()


def _offsets(offsets: Mapping[Place, int]) -> dict[Any, Any]:
    return {TopicPartition(*place): OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()}


def _places(partitions: Iterable[Any]) -> frozenset[Place]:
    return frozenset((each.topic, each.partition) for each in partitions)


def _record(each: Any) -> Record:
    return Record(
        each.value,
        each.key,
        tuple(each.headers),
        each.timestamp,
        each.topic,
        each.partition,
        each.offset,
        each.timestamp_type == 1,
    )
