"""aiokafka, each client in an event loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka import codec as aiokafka_codec
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import InvalidProducerEpoch, KafkaError, ProducerFenced

from barnabas.client.loop_thread import LoopThread
from tests.compat.clients.common import (
    BEGINNING,
    END,
    WAIT_S,
    Closing,
    Consumer,
    Place,
    Placed,
    Producer,
    Record,
    RefusedError,
    underscored,
)

_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
_LIBRARIES = {
    "gzip": aiokafka_codec.has_gzip,
    "snappy": aiokafka_codec.has_snappy,
    "lz4": aiokafka_codec.has_lz4,
    "zstd": aiokafka_codec.has_zstd,
}
_FENCED = (InvalidProducerEpoch, ProducerFenced)


class Aio:
    name = "aiokafka"
    codecs = frozenset({"none", *(name for name, is_here in _LIBRARIES.items() if is_here())})
    sends_null_headers = True
    sends_null_records = False

    def producer(self, bootstrap: str, settings: Mapping[str, Any] | None = None) -> Producer:
        config = underscored(settings)
        if config.get("compression_type") == "none":
            del config["compression_type"]
        return AioProducer(bootstrap, config)

    def consumer(self, bootstrap: str, settings: Mapping[str, Any] | None = None) -> Consumer:
        config = underscored(settings)
        if "partition_assignment_strategy" in config:
            config["partition_assignment_strategy"] = [_ASSIGNORS[config["partition_assignment_strategy"]]]
        return AioConsumer(bootstrap, config)


class _InLoop(Closing):
    """What runs in a loop of its own; what is refused there is raised here."""

    def __init__(self) -> None:
        self._loop = LoopThread("aiokafka")

    def call(self, work: Any) -> Any:
        with _refusals():
            return self._loop.call(work, WAIT_S)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        is_fenced = isinstance(error, _FENCED)
        raise RefusedError(getattr(error, "errno", -1), str(error), is_fenced=is_fenced) from error


class AioProducer(_InLoop):
    def __init__(self, bootstrap: str, config: Mapping[str, Any]) -> None:
        super().__init__()
        self._futures: list[Any] = []

        async def start() -> AIOKafkaProducer:
            producer = AIOKafkaProducer(bootstrap_servers=bootstrap, **config)
            await producer.start()
            return producer

        self._producer = self.call(start())

    def send(self, topic: str, record: Record) -> None:
        sent = self._producer.send(
            topic,
            record.value,
            record.key,
            partition=record.partition,
            timestamp_ms=record.timestamp_ms,
            headers=list(record.headers) or None,
        )
        self._futures.append(self.call(sent))

    def flush(self) -> list[Placed]:
        futures, self._futures = self._futures, []

        async def answers() -> list[Placed]:
            await self._producer.flush()
            answered = [await future for future in futures]
            return [(each.partition, each.offset) for each in answered if each is not None]  # None: acks=0

        placed: list[Placed] = self.call(answers())
        return placed

    def begin(self) -> None:
        self.call(self._producer.begin_transaction())

    def commit(self) -> None:
        self.call(self._producer.commit_transaction())

    def abort(self) -> None:
        self.call(self._producer.abort_transaction())
        self._futures = []  # of records that were not sent yet

    def send_offsets(self, offsets: Mapping[Place, int], consumer: AioConsumer) -> None:
        self.call(self._producer.send_offsets_to_transaction(_offsets(offsets), consumer.group_id))

    def close(self) -> None:
        try:
            self.call(self._producer.stop())
        finally:
            self._loop.close(WAIT_S)


class _Listener(ConsumerRebalanceListener):
    def __init__(self, events: list[tuple[str, frozenset[Place]]]) -> None:
        self._events = events

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._events.append(("assigned", _places(assigned)))

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self._events.append(("revoked", _places(revoked)))


class AioConsumer(_InLoop):
    def __init__(self, bootstrap: str, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.events: list[tuple[str, frozenset[Place]]] = []
        self.group_id = config.get("group_id")
        self._polling: asyncio.Future[dict[TopicPartition, list[Any]]] | None = None

        async def start() -> AIOKafkaConsumer:
            consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, **{"enable_auto_commit": False, **config})
            await consumer.start()
            return consumer

        self._consumer = self.call(start())

    def subscribe(self, topics: Sequence[str] = (), pattern: str | None = None) -> None:
        async def subscribe() -> None:
            self._consumer.subscribe(topics, pattern, _Listener(self.events))

        self.call(subscribe())

    def assign(self, positions: Mapping[Place, int]) -> None:
        async def assign() -> None:
            self._consumer.assign([TopicPartition(*place) for place in positions])
            for place, offset in positions.items():
                await self._seek(place, offset)

        self.call(assign())

    def poll(self, timeout_s: float) -> list[Record]:
        found = self.call(self._poll(timeout_s))
        return [_record(each) for records in found.values() for each in records]

    async def _poll(self, timeout_s: float) -> dict[TopicPartition, list[Any]]:
        """In a rebalance aiokafka waits longer than it was told, for members that may need us to go on: then ask later."""
        if self._polling is None:
            timeout_ms = int(timeout_s * 1000)
            self._polling = asyncio.ensure_future(self._consumer.getmany(timeout_ms=timeout_ms, max_records=500))
        await asyncio.wait({self._polling}, timeout=timeout_s + 0.1)
        if not self._polling.done():
            return {}
        polled, self._polling = self._polling, None
        return polled.result()

    def assignment(self) -> set[Place]:
        return set(_places(self._consumer.assignment()))

    def commit(self, offsets: Mapping[Place, int]) -> None:
        self.call(self._consumer.commit(_offsets(offsets)))

    def committed(self, places: Iterable[Place]) -> dict[Place, int | None]:
        return {place: self.call(self._consumer.committed(TopicPartition(*place))) for place in places}

    async def _seek(self, place: Place, offset: int) -> None:
        partition = TopicPartition(*place)
        if offset == BEGINNING:
            await self._consumer.seek_to_beginning(partition)
        elif offset == END:
            await self._consumer.seek_to_end(partition)
        else:
            self._consumer.seek(partition, offset)

    def seek(self, place: Place, offset: int) -> None:
        self.call(self._seek(place, offset))

    def is_at(self, place: Place, offset: int) -> bool:
        return bool(self.call(self._consumer.position(TopicPartition(*place))) == offset)

    def pause(self, places: Iterable[Place]) -> None:
        async def pause() -> None:
            self._consumer.pause(*(TopicPartition(*place) for place in places))

        self.call(pause())

    def resume(self, places: Iterable[Place]) -> None:
        async def resume() -> None:
            self._consumer.resume(*(TopicPartition(*place) for place in places))

        self.call(resume())

    def ends(self, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
        partitions = [TopicPartition(*place) for place in places]
        first = self.call(self._consumer.beginning_offsets(partitions))
        end = self.call(self._consumer.end_offsets(partitions))
        return {tuple(each): (first[each], end[each]) for each in partitions}

    def offsets_for_times(self, times_ms: Mapping[Place, int]) -> dict[Place, int | None]:
        asked = {TopicPartition(*place): at for place, at in times_ms.items()}
        found = self.call(self._consumer.offsets_for_times(asked))
        return {tuple(place): None if each is None else each.offset for place, each in found.items()}

    def close(self) -> None:
        async def stop() -> None:
            await self._consumer.stop()
            if self._polling is not None:
                self._polling.cancel()

        try:
            self.call(stop())
        finally:
            self._loop.close(WAIT_S)


def _offsets(offsets: Mapping[Place, int]) -> dict[TopicPartition, tuple[int, str]]:
    return {TopicPartition(*place): (offset, "") for place, offset in offsets.items()}


def _places(partitions: Iterable[TopicPartition]) -> frozenset[Place]:
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
