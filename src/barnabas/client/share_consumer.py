"""A share consumer: a member of a share group (KIP-932), whose members share the records of all partitions, as with a queue.

    async with ShareConsumer({"bootstrap.servers": ..., "group.id": "workers"}, topics=["jobs"]) as consumer:
        while True:
            for record in await consumer.poll(timeout_ms=1000):
                await work(record.value)

Each record is acquired for one member, which has to acknowledge it before its lock ends
(`group.share.record.lock.duration.ms`). With `share.acknowledgement.mode=implicit`, the next poll accepts the records of the
last one. With `explicit`, the application says what becomes of each: `acknowledge`, `release`, `reject` or `renew`. A record
that was released, or whose lock ended, is delivered again, until its limit (`group.share.delivery.count.limit`).

The parts are in `share_consuming/`: `in_flight` has the records, `exchange` fetches and acknowledges, `session` knows what
each broker remembers, `acquired` reads responses, and `subscription` has the membership. APIs: ShareGroupHeartbeat,
ShareFetch, ShareAcknowledge.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, Generic, Self, TypeAlias, cast

from barnabas.batches import TimestampType
from barnabas.client import settings as client_settings
from barnabas.client.arguments import check_config, check_number, checks_arguments
from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClosedError, DeserializationError
from barnabas.client.records import K, TopicPartition, V
from barnabas.client.settings import ClientSettings
from barnabas.client.share_consuming.acknowledgements import Acknowledgements, AcknowledgeType
from barnabas.client.share_consuming.acquired import ShareRecord, deserialized
from barnabas.client.share_consuming.exchange import Exchange
from barnabas.client.share_consuming.in_flight import Decided, Delivery, InFlight, Origin
from barnabas.client.share_consuming.settings import ShareConsumerSettings, definitions, share_consumer_settings
from barnabas.client.share_consuming.subscription import ShareSubscription
from barnabas.client.state import ClusterState
from barnabas.wire import ErrorCode, KafkaError

__all__ = ["AcknowledgeType", "ShareConsumer", "ShareRecord"]

_log = logging.getLogger(__name__)

AcknowledgementCommitCallback: TypeAlias = Callable[[Mapping[TopicPartition, frozenset[int]], KafkaError | None], Any]
"""Called with the offsets of acknowledgements that were answered, and their error."""

CLOSE_TIMEOUT_S = 10.0


class ShareConsumer(Generic[K, V]):
    """A share consumer: `async with ShareConsumer({"bootstrap.servers": ..., "group.id": ...}, topics=["jobs"]) as consumer`.
    Or on a `Cluster` that exists already and is not closed with it.

    It belongs to one event loop, and one task reads.

    Keys and values are bytes. With a `key_deserializer` or a `value_deserializer`, a function of bytes, records have its
    result. None is not deserialized. A record that cannot be deserialized is released.
    """

    def __init__(
        self,
        config: Cluster | ClientSettings | Mapping[str, object],
        more: Mapping[str, object] | None = None,
        *,
        topics: Iterable[str] = (),
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        random: Callable[[], float] = random.random,
    ) -> None:
        """Settings have the names of Kafka's share consumer. Raises `ConfigError`, which names the setting."""
        check_config(config, ClientSettings, Cluster)
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        given: dict[str, object] = {**(config if isinstance(config, Mapping) else {}), **(more or {})}
        base = config.settings if isinstance(config, Cluster) else None if isinstance(config, Mapping) else config
        loaded = client_settings.load_over(base, given, definitions())
        self.settings: ShareConsumerSettings = share_consumer_settings(loaded, given)
        self._owns_cluster = not isinstance(config, Cluster)
        self._cluster = config if isinstance(config, Cluster) else Cluster(loaded)
        self._news = asyncio.Event()  # set for records, errors, assignments and outcomes
        self._in_flight = InFlight()
        self._subscription = ShareSubscription(
            self._cluster, self.settings, self._revoked, self._news.set, random, _names(topics)
        )
        self._member = _Member(self._in_flight, self._subscription, self._news)
        self._exchange = Exchange(self._cluster, self.settings, self._member)
        self._callback: AcknowledgementCommitCallback | None = None
        self._is_started = False
        self._is_closed = False

    # --- lifetime

    async def start(self) -> Self:
        """Connect to the cluster, and join the group if topics were given. Raises as `Cluster.start`."""
        if self._owns_cluster:
            await self._cluster.start()
        self._is_started = True
        self._subscription.polled_at_s = asyncio.get_running_loop().time()
        if self._subscription.topics:
            await self.subscribe(self._subscription.topics)
        return self

    async def close(self) -> None:
        """Send acknowledgements, release all other records, leave the group, and disconnect.

        In implicit mode, the records of the last poll are accepted.
        """
        await self._close(accept=True)

    async def _close(self, *, accept: bool) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._is_started:
            if accept:
                self._accept_if_implicit()
            self._exchange.send(self._in_flight.take_decided())
        await self._exchange.close(CLOSE_TIMEOUT_S)
        await self._call_back()
        await self._subscription.end()
        self._news.set()
        if self._owns_cluster:
            await self._cluster.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close. After an exception, the records of the last poll are released: they may not have been processed."""
        await self._close(accept=error is None)

    def _check_open(self) -> None:
        if self._is_closed or not self._is_started:
            raise ClosedError("the consumer is closed" if self._is_closed else "the consumer was not started")

    # --- subscription

    @checks_arguments
    async def subscribe(self, topics: Iterable[str]) -> None:
        """Share the records of these topics with the other members of the group. No topics: as `unsubscribe`."""
        self._check_open()
        wanted = list(topics)
        if wanted:
            await self._subscription.change(wanted)
        else:
            await self.unsubscribe()

    async def unsubscribe(self) -> None:
        """Send acknowledgements, release buffered records, and leave the group. In implicit mode, the records of the last
        poll are accepted."""
        self._check_open()
        self._accept_if_implicit()
        self._exchange.send([*self._in_flight.take_decided(), *self._in_flight.release_buffered()])
        await _outcomes(self._exchange.unanswered())
        await self._subscription.end()

    def subscription(self) -> tuple[str, ...]:
        """Return the topics that are subscribed to now."""
        return self._subscription.topics

    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions whose records are fetched now. Other members may have them too."""
        return frozenset(self._subscription.assigned)

    def member_id(self) -> str | None:
        """Return the id of this member, or None if it has not joined the group."""
        return self._member.member_id()

    def acquisition_lock_timeout_ms(self) -> int | None:
        """Return how long a record stays locked after it was acquired or renewed, or None before the first response."""
        return self._exchange.lock_timeout_ms

    # --- records

    async def poll(self, timeout_ms: float = 0, *, max_records: int | None = None) -> list[ShareRecord[K, V]]:
        """Return the next records as soon as there are some, or none after `timeout_ms`.

        Returns at most `max_records`, by default `max.poll.records`. In implicit mode, this accepts the records of the last
        poll. In explicit mode, raises RuntimeError if one of them is not acknowledged; records whose locks were renewed are
        returned again first. Raises an error from the background once.

        A record that cannot be deserialized is released. If it is the first one, raises `DeserializationError`.
        """
        check_number("timeout_ms", timeout_ms)
        if max_records is not None:
            check_number("max_records", max_records)
        limit = self.settings.max_poll_records if max_records is None else max_records
        return await self._poll(timeout_ms / 1000, limit, limit)

    async def getone(self) -> ShareRecord[K, V]:
        """Return the next record. Waits without a timeout. Acknowledges and raises as `poll`."""
        return (await self._poll(None, 1, self.settings.max_poll_records))[0]

    def __aiter__(self) -> AsyncIterator[ShareRecord[K, V]]:
        return self

    async def __anext__(self) -> ShareRecord[K, V]:
        return await self.getone()

    async def _poll(self, timeout_s: float | None, limit: int, to_fetch: int) -> list[ShareRecord[K, V]]:
        """Return the next records, at most `limit`. Without a timeout, there is at least one."""
        self._begin_poll()
        loop = asyncio.get_running_loop()
        deadline_s = None if timeout_s is None else loop.time() + timeout_s
        self._subscription.polls += 1
        try:
            while True:
                self._news.clear()
                await self._call_back()
                if not self._in_flight.is_renewing and (found := self._take(limit)):
                    return found
                self._raise_errors()
                left_s = None if deadline_s is None else deadline_s - loop.time()
                if left_s is not None and left_s <= 0:
                    return []
                if not self._in_flight.is_renewing:
                    self._exchange.want(to_fetch)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(left_s):
                        await self._news.wait()
                self._check_open()
        finally:
            self._exchange.rest()
            self._subscription.polls -= 1
            self._subscription.polled_at_s = loop.time()

    def _begin_poll(self) -> None:
        """Start a poll: send what was acknowledged since the last one."""
        self._check_open()
        if not self._subscription.topics:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the consumer is not subscribed to any topics")
        self._accept_if_implicit()
        if missing := self._in_flight.undecided():
            first, count = missing[0], len(missing)
            raise RuntimeError(
                f"{count} record{'s' if count > 1 else ''} of the last poll must be acknowledged, released, rejected or "
                f"renewed first, such as {TopicPartition(*first[:2])} at offset {first.offset}"
            )
        self._exchange.send(self._in_flight.take_decided())

    def _take(self, limit: int) -> list[ShareRecord[K, V]]:
        """Return records whose locks were renewed, or else buffered ones."""
        if renewed := self._in_flight.take_renewed():
            return cast("list[ShareRecord[K, V]]", self._deserialized(renewed))
        found = self._in_flight.take(limit, asyncio.get_running_loop().time())
        return cast("list[ShareRecord[K, V]]", self._deserialized(found))

    def _deserialized(self, found: list[ShareRecord]) -> list[ShareRecord[Any, Any]]:
        """Deserialize records. Those after one that cannot be deserialized return to the buffer; it is released itself if it
        is the first."""
        if self._key_deserializer is None and self._value_deserializer is None:
            return found
        ready: list[ShareRecord[Any, Any]] = []
        for at, record in enumerate(found):
            try:
                ready.append(deserialized(record, self._key_deserializer, self._value_deserializer))
            except Exception as error:
                if ready:
                    self._in_flight.put_back(found[at:])
                    break
                self._in_flight.put_back(found[1:])
                place = TopicPartition(*record[:2])
                self._in_flight.acknowledge(place, record.offset, AcknowledgeType.RELEASE)
                self._exchange.send(self._in_flight.take_decided())
                raise DeserializationError(place, record.offset, error) from error
        return ready

    def _raise_errors(self) -> None:
        membership = self._subscription.membership
        if membership is not None and membership.error is not None:
            raise membership.error
        if self._member.errors:
            raise self._member.errors.pop(0)

    @checks_arguments
    def timestamp_type(self, partition: tuple[str, int]) -> TimestampType:
        """Return the timestamp type of the last records of a partition: set by the producer or by the broker."""
        return self._exchange.timestamp_types.get(TopicPartition(*partition), TimestampType.CREATE_TIME)

    # --- acknowledgements

    def acknowledge(
        self,
        record: ShareRecord[Any, Any] | tuple[str, int, int],
        type: AcknowledgeType = AcknowledgeType.ACCEPT,
    ) -> None:
        """Say what becomes of a record of the last poll, given itself or as topic, partition and offset.

        It is sent with the next poll or commit. Needs `share.acknowledgement.mode=explicit`. Raises INVALID_RECORD_STATE if
        the record is not in flight.
        """
        self._check_open()
        if not self.settings.is_explicit:
            raise RuntimeError(
                "the next poll accepts all records: set share.acknowledgement.mode=explicit to acknowledge them"
            )
        self._in_flight.acknowledge(TopicPartition(record[0], record[1]), record[2], AcknowledgeType(type))

    def release(self, record: ShareRecord[Any, Any] | tuple[str, int, int]) -> None:
        """Give a record back, to be delivered again, to this member or another."""
        self.acknowledge(record, AcknowledgeType.RELEASE)

    def reject(self, record: ShareRecord[Any, Any] | tuple[str, int, int]) -> None:
        """Say that a record cannot be processed: it is not delivered again."""
        self.acknowledge(record, AcknowledgeType.REJECT)

    def renew(self, record: ShareRecord[Any, Any] | tuple[str, int, int]) -> None:
        """Keep a record that takes long: with the next commit or poll, its lock starts anew (Kafka 4.2).

        After that it has to be acknowledged again. A poll returns it once more.
        """
        self.acknowledge(record, AcknowledgeType.RENEW)

    async def commit(self, *, timeout_ms: float | None = None) -> dict[TopicPartition, KafkaError | None]:
        """Send acknowledgements, and return the result of each partition when all have been answered.

        In implicit mode, the records of the last poll are accepted. Acknowledgements without an answer within `timeout_ms`
        (default `default.api.timeout.ms`) have REQUEST_TIMED_OUT as their result, and may still be carried out.
        """
        self._check_open()
        if timeout_ms is None:
            timeout_ms = self._cluster.settings.get_int("default.api.timeout.ms")
        check_number("timeout_ms", timeout_ms)
        self._accept_if_implicit()
        self._exchange.send(self._in_flight.take_decided())
        results = await _outcomes(self._exchange.unanswered(), timeout_ms / 1000)
        await self._call_back()
        return results

    def commit_async(self) -> None:
        """Send acknowledgements as `commit`, without waiting. Their results go to the callback."""
        self._check_open()
        self._accept_if_implicit()
        self._exchange.send(self._in_flight.take_decided())

    def set_acknowledgement_commit_callback(self, callback: AcknowledgementCommitCallback | None) -> None:
        """Call `callback(offsets, error)` when acknowledgements were answered, with offsets by partition, and an error or None.

        It may be a coroutine function. It is called during `poll`, `commit` and `close`; an exception in it is logged.
        """
        self._callback = callback
        self._member.has_callback = callback is not None
        self._member.outcomes.clear()

    def cluster_state(self) -> ClusterState:
        """Return the metadata of the cluster that the client has now."""
        return self._cluster.state

    def _accept_if_implicit(self) -> None:
        if not self.settings.is_explicit:
            self._in_flight.accept_all()

    async def _call_back(self) -> None:
        """Call the callback with what was answered since the last time."""
        while self._member.outcomes and self._callback is not None:
            decided, error = self._member.outcomes.popleft()
            offsets = decided.offsets()
            if not offsets:
                continue
            try:
                result = self._callback({decided.place: offsets}, error)
                if inspect.isawaitable(result):
                    await result
            except Exception:
                _log.exception("the callback of acknowledgements failed")

    def _revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._exchange.send(self._in_flight.release_buffered(set(partitions)))


class _Member:
    """What happens to the member. Implements `exchange.Member`."""

    def __init__(self, in_flight: InFlight, subscription: ShareSubscription, news: asyncio.Event) -> None:
        self.errors: list[Exception] = []
        self.has_callback = False
        self.outcomes: deque[tuple[Decided, KafkaError | None]] = deque()  # for the callback
        self._in_flight = in_flight
        self._subscription = subscription
        self._news = news

    def member_id(self) -> str | None:
        membership = self._subscription.membership
        return membership.member_id or None if membership is not None else None

    def assigned(self) -> Collection[TopicPartition]:
        return self._subscription.assigned

    def delivered(self, delivery: Delivery) -> list[Decided]:
        self._in_flight.add(delivery)
        self._news.set()
        if delivery.place in self._subscription.assigned:
            return []
        return list(self._in_flight.release_buffered({delivery.place}))  # revoked meanwhile

    def session_lost(self, origin: Origin) -> None:
        self._in_flight.drop(origin)

    def answered(self, decided: Decided, error: KafkaError | None) -> None:
        self._in_flight.answered(decided, error)
        if self.has_callback:
            self.outcomes.append((decided, error))
        self._news.set()

    def failed(self, error: Exception) -> None:
        self.errors.append(error)
        self._news.set()


@checks_arguments
def _names(topics: Iterable[str]) -> Iterable[str]:
    return topics


async def _outcomes(
    some: Iterable[Acknowledgements], timeout_s: float | None = None
) -> dict[TopicPartition, KafkaError | None]:
    """Wait for acknowledgements, and return the first error of each partition, or None."""
    waiting = list(some)
    if waiting:
        await asyncio.wait([each.outcome for each in waiting], timeout=timeout_s)
    results: dict[TopicPartition, KafkaError | None] = {}
    late = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "the acknowledgements were not answered in time")
    for each in waiting:
        results[each.place] = results.get(each.place) or (each.outcome.result() if each.outcome.done() else late)
    return results
