"""Sends the markers that end a transaction to the leaders of its partitions, until each partition has one.

Its one rule: a marker is retried until it is written, its partition is deleted, or another coordinator has taken over.
Writing a marker twice is harmless. Partitions that this node leads are written by a call, the others by WriteTxnMarkers
requests, with markers for the same broker combined. The coordinator records when all are written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from barnabas.metadata.image import MetadataImage
from barnabas.replicated.decision import Producer
from barnabas.replicated.loop import Marker
from barnabas.replicated.scheduler import Scheduler, pause
from barnabas.storage.checkpoints import TopicPartition
from barnabas.transactions.state import by_topic
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

_log = logging.getLogger(__name__)

FIRST_BACKOFF_MS: Final = 10
MAX_BACKOFF_MS: Final = 1_000
MAX_MARKERS_IN_REQUEST: Final = 1_000

Errors = Mapping[TopicPartition, ErrorCode]
AskBroker = Callable[[int, Message], Awaitable[Any]]
"""Sends a request to another broker in the newest common version. Raises KafkaError, OSError or TimeoutError."""


class EndedTransaction(NamedTuple):
    """The content of a transaction's markers."""

    producer: Producer
    marker: Marker
    transaction_version: int


WriteMarkers = Callable[[Sequence[TopicPartition], EndedTransaction], Awaitable[Errors]]
"""Writes markers to partitions that this node leads, and returns the error of each, or NONE."""


class TakenOverError(Exception):
    """A partition knows a later coordinator or producer, so this node must not end the transaction."""


class MarkerOutcome(Enum):
    """The meaning of a response about one marker."""

    DONE = 0
    AGAIN = 1
    TAKEN_OVER = 2


_DONE = frozenset(
    # The last two mean that the transaction cannot have written anything there.
    {ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION}
)
_TAKEN_OVER = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


def judge(code: ErrorCode) -> MarkerOutcome:
    if code in _DONE:
        return MarkerOutcome.DONE
    return MarkerOutcome.TAKEN_OVER if code in _TAKEN_OVER else MarkerOutcome.AGAIN


def by_leader(image: MetadataImage, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
    """Return the existing partitions by leader; -1 means no leader."""
    found: dict[int, list[TopicPartition]] = {}
    for partition in sorted(partitions):
        topic = image.topics.get(partition.topic)
        if topic is not None and partition.partition < len(topic.partitions):
            found.setdefault(topic.partitions[partition.partition].leader, []).append(partition)
    return found


class MarkerSender:
    """Sends markers. `send` returns when a transaction has all its markers."""

    def __init__(
        self,
        node_id: int,
        image: Callable[[], MetadataImage],
        write_local: WriteMarkers,
        ask_broker: AskBroker | None,
        scheduler: Scheduler,
    ) -> None:
        self._node_id = node_id
        self._image = image
        self._write_local = write_local
        self._ask_broker = ask_broker
        self._scheduler = scheduler
        self._queues: dict[int, _Queue] = {}
        self._news: asyncio.Future[None] | None = None

    async def send(self, ended: EndedTransaction, remaining: set[TopicPartition]) -> None:
        """Write the markers, removing finished partitions from `remaining`. Raises TakenOverError."""
        backoff_ms = FIRST_BACKOFF_MS
        while True:
            leaders = by_leader(self._image(), remaining)
            remaining.intersection_update(partition for led in leaders.values() for partition in led)
            for errors in await asyncio.gather(*(self._write(each, led, ended) for each, led in leaders.items())):
                _take_out(remaining, errors, ended)
            if not remaining:
                return
            if self._news is None:
                self._news = asyncio.get_running_loop().create_future()
            await pause(self._scheduler, backoff_ms, self._news)
            backoff_ms = min(backoff_ms * 2, MAX_BACKOFF_MS)

    def look_again(self) -> None:
        """Retry at once, because leaders or partitions have changed."""
        news, self._news = self._news, None
        if news is not None and not news.done():
            news.set_result(None)

    def stop(self) -> None:
        for queue in self._queues.values():
            queue.stop()

    async def _write(self, leader: int, partitions: list[TopicPartition], ended: EndedTransaction) -> Errors:
        try:
            if leader == self._node_id:
                return await self._write_local(partitions, ended)
            if leader >= 0 and self._ask_broker is not None:
                if leader not in self._queues:
                    self._queues[leader] = _Queue(leader, self._ask_broker)
                return await self._queues[leader].write(partitions, ended)
        except Exception:
            # Retry even after a bug here: a transaction that is never ended would block its producer forever.
            _log.exception("could not write the markers of %s on node %d", ended.producer, leader)
        return {}


def _take_out(remaining: set[TopicPartition], errors: Errors, ended: EndedTransaction) -> None:
    for partition, code in errors.items():
        verdict = judge(code)
        if verdict is MarkerOutcome.TAKEN_OVER:
            raise TakenOverError(f"{partition} rejected the marker of {ended.producer}: {code.name}")
        if verdict is MarkerOutcome.DONE:
            remaining.discard(partition)


class _Queue:
    """Markers for one broker. While a request is pending, further ones accumulate."""

    def __init__(self, broker_id: int, ask_broker: AskBroker) -> None:
        self._broker_id = broker_id
        self._ask_broker = ask_broker
        self._waiting: list[tuple[WriteTxnMarkersRequest.WritableTxnMarker, asyncio.Future[Errors]]] = []
        self._sending: asyncio.Task[None] | None = None

    async def write(self, partitions: list[TopicPartition], ended: EndedTransaction) -> Errors:
        answer: asyncio.Future[Errors] = asyncio.get_running_loop().create_future()
        self._waiting.append((writable(partitions, ended), answer))
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())
        return await answer

    def stop(self) -> None:
        if self._sending is not None:
            self._sending.cancel()

    async def _send(self) -> None:
        try:
            while self._waiting:
                batch = self._waiting[:MAX_MARKERS_IN_REQUEST]
                del self._waiting[:MAX_MARKERS_IN_REQUEST]
                request = WriteTxnMarkersRequest(markers=[marker for marker, _ in batch])
                try:
                    response = await self._ask_broker(self._broker_id, request)
                    errors = errors_by_producer_id(response)
                except (KafkaError, OSError, TimeoutError) as error:
                    _log.info("could not send markers to node %d, will retry: %s", self._broker_id, error)
                    errors = {}
                for marker, answer in batch:
                    if not answer.done():
                        answer.set_result(errors.get(marker.producer_id, {}))
        finally:
            self._sending = None


def writable(partitions: Iterable[TopicPartition], ended: EndedTransaction) -> WriteTxnMarkersRequest.WritableTxnMarker:
    """Return the marker for these partitions, as in a request."""
    return WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=ended.producer.producer_id,
        producer_epoch=ended.producer.producer_epoch,
        transaction_result=ended.marker.is_commit,
        topics=[
            WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(set(partitions)).items()
        ],
        coordinator_epoch=ended.marker.coordinator_epoch,
        transaction_version=ended.transaction_version,
    )


def errors_by_producer_id(response: WriteTxnMarkersResponse) -> dict[int, dict[TopicPartition, ErrorCode]]:
    found: dict[int, dict[TopicPartition, ErrorCode]] = {}
    for marker in response.markers:
        errors = found.setdefault(marker.producer_id, {})
        for topic in marker.topics:
            for each in topic.partitions:
                errors[TopicPartition(topic.name, each.partition_index)] = ErrorCode(each.error_code)
    return found
