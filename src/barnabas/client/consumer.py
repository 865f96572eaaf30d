"""A consumer: reads the records of partitions in order, alone or as a member of a group.

>>> import asyncio
>>> from barnabas.client.producer import Producer
>>> from barnabas.testing import Broker
>>> async def main() -> None:
...     async with Broker({"orders": 1}) as broker:
...         settings = {"bootstrap.servers": broker.bootstrap_servers}
...         async with Producer(settings) as producer:
...             await producer.send_and_wait("orders", b"two apples", key=b"alice")
...         reading = {**settings, "group.id": "billing", "auto.offset.reset": "earliest"}
...         async with Consumer(reading, topics=["orders"]) as consumer:
...             async for record in consumer:
...                 print(record.topic, record.offset, record.key, record.value)
...                 break
>>> asyncio.run(main())
orders 0 b'alice' b'two apples'

`getmany` is the fast way: records by partition, whole batches at once. The parts of a consumer are in `consuming/`:
`partition` has the position and buffer of a partition, `fetching` fills buffers, `collector` takes records out of them,
`positions` finds where to begin, `commits` keeps offsets in the group, and `subscription` has the membership in the
group. Rebalances happen in the background, but a partition is revoked only when a poll begins, or while one waits:
records that were returned before count as processed then, and their offsets are committed. APIs: Fetch, ListOffsets,
OffsetFetch, OffsetCommit, and those of groups.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, Generic, Self, cast

from barnabas.batches import Record, TimestampType
from barnabas.client import settings as client_settings
from barnabas.client.arguments import check_config, check_number, checks_arguments
from barnabas.client.cluster import Cluster
from barnabas.client.consuming.assignment import Assignment
from barnabas.client.consuming.collector import Collector
from barnabas.client.consuming.commits import Commits
from barnabas.client.consuming.fetching import Fetcher
from barnabas.client.consuming.offset_lookup import OffsetLookup
from barnabas.client.consuming.offsets import EARLIEST, LATEST
from barnabas.client.consuming.positions import Positions
from barnabas.client.consuming.settings import ConsumerSettings, consumer_settings, definitions
from barnabas.client.consuming.subscription import Subscription
from barnabas.client.errors import ClosedError, DeserializationError
from barnabas.client.records import (
    ConsumerRecord,
    GroupMetadata,
    K,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetsLike,
    TopicPartition,
    V,
)
from barnabas.client.settings import ClientSettings
from barnabas.client.state import ClusterState
from barnabas.wire import ErrorCode, KafkaError

__all__ = [
    "Consumer",
    "ConsumerRecord",
    "GroupMetadata",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "Record",
    "TopicPartition",
]

_new = tuple.__new__


class Consumer(Generic[K, V]):
    """A consumer: `async with Consumer({"bootstrap.servers": ..., "group.id": ...}, topics=["orders"]) as consumer`, or
    `Consumer(cluster, {"isolation.level": "read_committed"})` on a `Cluster` that
    exists already and is not closed with it.

    It belongs to one event loop, and one task reads. A `listener` may have the methods `on_partitions_revoked`,
    `on_partitions_assigned` and `on_partitions_lost`, plain or asynchronous. Each is called with a list of
    `TopicPartition`.

    Keys and values are bytes. With a `key_deserializer` or a `value_deserializer`, a function of bytes, `poll`, `getone` and
    iteration return its result; `getmany` always returns bytes. None is not deserialized.
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
        """Settings have the names of Kafka's consumer. Raises `ConfigError`, which names the setting."""
        check_config(config, ClientSettings, Cluster)
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        given: dict[str, object] = {**(config if isinstance(config, Mapping) else {}), **(more or {})}
        base = config.settings if isinstance(config, Cluster) else None if isinstance(config, Mapping) else config
        loaded = client_settings.load_over(base, given, definitions())
        self.settings: ConsumerSettings = consumer_settings(loaded, given)
        self._owns_cluster = not isinstance(config, Cluster)
        self._cluster = config if isinstance(config, Cluster) else Cluster(loaded)
        self._news = asyncio.Event()  # set for records, errors and assignments
        self._assignment = Assignment(self._reassigned)
        self._states = self._assignment.states
        self._commits = Commits(self._cluster, self.settings, self._states, self.group_metadata, random)
        self._lookup = OffsetLookup(self._cluster, self.settings, random)
        self._positions = Positions(
            self._cluster,
            self.settings,
            self._states,
            self._lookup,
            self._commits,
            random,
            self._news,
            self._repositioned,
        )
        self._fetcher = Fetcher(self._cluster, self.settings, self._states, self._news, self._positions.fetch_failed)
        self._collector = Collector(self.settings, self._states, self._fetcher)
        self._subscription = Subscription(
            self._cluster, self.settings, self._assignment, self._commits, random, self._news.set, _names(topics)
        )
        self._is_started = False
        self._is_closed = False

    # --- lifetime

    async def start(self) -> Self:
        """Connect to the cluster, and join the group if topics were given. Raises as `Cluster.start`."""
        if self._owns_cluster:
            await self._cluster.start()
        self._is_started = True
        now_s = self._subscription.polled_at_s = asyncio.get_running_loop().time()
        self._commits.start_interval(now_s)
        topics = self._subscription.topics()
        if topics:
            await self.subscribe(topics)
        return self

    async def close(self) -> None:
        """Commit if automatic commits are enabled, revoke all partitions, leave the group, and disconnect."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._is_started:
            await self._end_reading()
        await self._positions.close()
        await self._fetcher.close()
        self._news.set()
        if self._owns_cluster:
            await self._cluster.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _check_open(self) -> None:
        if self._is_closed or not self._is_started:
            raise ClosedError("the consumer is closed" if self._is_closed else "the consumer was not started")

    # --- assignment and subscription

    @checks_arguments
    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read these partitions, without a group. Partitions that were assigned before keep their positions.

        If automatic commits are enabled, partitions that are not assigned any more are committed in the background.
        """
        self._check_open()
        if self._subscription.membership is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "assign and subscribe exclude each other: unsubscribe first")
        wanted = [TopicPartition(*place) for place in partitions]
        if self.settings.enable_auto_commit:
            self._collector.mark_processed()
            self._commits.commit_in_background(self._states.keys() - set(wanted))
        self._assignment.replace(wanted)

    def _reassigned(self) -> None:
        """Follow a change of the assignment."""
        self._collector.reassigned()
        self._cluster.follow({place.topic for place in self._states})
        self._positions.find_soon()
        self._repositioned()

    def _repositioned(self) -> None:
        """Fetch from new positions."""
        self._fetcher.interrupt()
        self._news.set()

    @checks_arguments
    async def subscribe(
        self, topics: Iterable[str] | re.Pattern[str] = (), listener: Any = None, *, pattern: str | None = None
    ) -> None:
        """Read these topics, or all whose whole names match a pattern, as a member of the group.

        With group.protocol=consumer, the broker matches `pattern`, in RE2 syntax (Kafka 4.0). If the broker rejects
        it, the next poll raises INVALID_REGULAR_EXPRESSION. A classic group, and a compiled pattern in `topics`, are
        matched by this client, and leave out internal topics.
        """
        self._check_open()
        if pattern is not None and topics:
            raise ValueError("pass topics or a pattern, not both")
        if self.settings.group_id is None:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "a group.id is needed to subscribe to topics")
        if self._states and self._subscription.membership is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "assign and subscribe exclude each other: unsubscribe first")
        await self._subscription.change(topics, pattern, listener)

    async def unsubscribe(self) -> None:
        """Commit if automatic commits are enabled, leave the group, and stop reading."""
        await self._end_reading()

    async def _end_reading(self) -> None:
        """Count all returned records as processed, commit them, and give up all partitions."""
        self._collector.mark_processed()
        await self._subscription.end()
        if self.settings.enable_auto_commit:
            await self._commits.commit_processed(self._states)  # those that were assigned without a group
        self._assignment.clear()

    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions that are assigned now."""
        return frozenset(self._states)

    def subscription(self) -> tuple[str, ...]:
        """Return the topics that are subscribed to now."""
        return self._subscription.topics()

    def group_metadata(self) -> GroupMetadata:
        """Return the member that commits, for `Producer.send_offsets_to_transaction`."""
        return self._subscription.group_metadata()

    @checks_arguments
    def pause(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Return no records of these partitions until `resume`. They stay assigned."""
        for place in partitions:
            self._assignment.state(place).is_paused = True

    @checks_arguments
    def resume(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Return records of these partitions again."""
        for place in partitions:
            self._assignment.state(place).is_paused = False
        self._fetcher.wake()
        self._news.set()

    def paused(self) -> frozenset[TopicPartition]:
        """Return the partitions that are paused now."""
        return frozenset(place for place, state in self._states.items() if state.is_paused)

    # --- records

    async def getmany(
        self, *, timeout_ms: float = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[Record]]:
        """Return the next records by partition as soon as there are some, or none after `timeout_ms`.

        Returns at most `max_records`, by default `max.poll.records`. Raises an error from the background once.
        """
        now_s = self._begin_poll()
        if now_s >= self._commits.due_s:
            self._commits.commit_automatically(now_s)
        check_number("timeout_ms", timeout_ms)
        if max_records is not None:
            check_number("max_records", max_records)
        limit = self.settings.max_poll_records if max_records is None else max_records
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_ms / 1000
        while True:
            self._news.clear()
            found = {} if self._subscription.is_revoking else self._collector.take(limit)
            if found:
                self._subscription.is_processing = True
                return found
            self._raise_errors()
            left_s = deadline_s - loop.time()
            if left_s <= 0:
                return found
            await self._wait_for_news(left_s)

    async def poll(self, timeout_ms: float = 0, *, max_records: int | None = None) -> list[ConsumerRecord[K, V]]:
        """Return the next records as `getmany` does, in one list, each with its topic and partition.

        A record that cannot be deserialized ends the records of its partition. If it is the first one, raises
        `DeserializationError`; to skip it, seek to the offset after it.
        """
        found = await self.getmany(timeout_ms=timeout_ms, max_records=max_records)
        if self._key_deserializer is not None or self._value_deserializer is not None:
            return self._deserialized_until_error(found)
        return [
            _new(ConsumerRecord, (topic, partition, *record))
            for (topic, partition), records in found.items()
            for record in records
        ]

    def _deserialized_until_error(self, found: Mapping[TopicPartition, list[Record]]) -> list[ConsumerRecord[K, V]]:
        """Deserialize records. Positions return to the first record that is not returned."""
        records: list[ConsumerRecord[K, V]] = []
        for (topic, partition), raw in found.items():
            for record in raw:
                try:
                    records.append(self._deserialized(_new(ConsumerRecord, (topic, partition, *record))))
                except DeserializationError as error:
                    if record is not raw[0]:
                        self.seek((topic, partition), record.offset)
                        break
                    for place, others in found.items():
                        self.seek(place, others[0].offset)
                    raise error
        return records

    def _deserialized(self, record: ConsumerRecord) -> ConsumerRecord[K, V]:
        """Return a record with key and value deserialized. Raises `DeserializationError`."""
        key: Any = record.key
        value: Any = record.value
        try:
            if key is not None and self._key_deserializer is not None:
                key = self._key_deserializer(key)
            if value is not None and self._value_deserializer is not None:
                value = self._value_deserializer(value)
        except Exception as error:
            raise DeserializationError(TopicPartition(*record[:2]), record.offset, error) from error
        return _new(ConsumerRecord, (*record[:4], key, value, record.headers))

    async def getone(self) -> ConsumerRecord[K, V]:
        """Return the next record. Waits without a timeout. Raises `DeserializationError` as `poll`."""
        now_s = self._begin_poll()
        if now_s >= self._commits.due_s:
            self._commits.commit_automatically(now_s)
        while True:
            self._news.clear()
            record = None if self._subscription.is_revoking else self._collector.take_one()
            if record is not None:
                self._subscription.is_processing = True
                if self._key_deserializer is None and self._value_deserializer is None:
                    return cast(ConsumerRecord[K, V], record)
                try:
                    return self._deserialized(record)
                except DeserializationError as error:
                    self.seek(error.partition, error.offset)
                    raise
            self._raise_errors()
            await self._wait_for_news(None)

    async def _wait_for_news(self, timeout_s: float | None) -> None:
        """Wait until something has happened. A member that waits is polling, however long."""
        self._subscription.polls += 1
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._news.wait()
        finally:
            self._subscription.polls -= 1
            self._subscription.polled_at_s = asyncio.get_running_loop().time()
        self._check_open()

    def has_buffered(self) -> bool:
        """Whether records are buffered. They may all be skipped: markers, or records of aborted transactions."""
        return self._collector.has_buffered

    def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        return self

    async def __anext__(self) -> ConsumerRecord[K, V]:
        return await self.getone()

    def _begin_poll(self) -> float:
        """Start a poll: records that the last one returned count as processed. Returns the time."""
        self._check_open()
        now_s = asyncio.get_running_loop().time()
        self._subscription.poll_begins(now_s)
        if self._collector.touched:
            self._collector.mark_processed()
        return now_s

    def _raise_errors(self) -> None:
        membership = self._subscription.membership
        if membership is not None and membership.error is not None:
            raise membership.error
        if self._positions.errors:
            raise self._positions.errors.pop(0)

    # --- positions

    @checks_arguments
    def seek(self, partition: tuple[str, int], offset: int) -> None:
        """Continue at this offset."""
        self._assignment.state(partition).seek(offset)
        self._fetcher.interrupt()

    @checks_arguments
    def seek_to_beginning(self, *partitions: tuple[str, int]) -> None:
        """Continue at the first record of these partitions, or of all assigned ones if none are given."""
        self._seek_to("earliest", partitions)

    @checks_arguments
    def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        """Continue after the last record of these partitions, or of all assigned ones if none are given."""
        self._seek_to("latest", partitions)

    def _seek_to(self, where: str, partitions: Collection[tuple[str, int]]) -> None:
        for place in partitions or self._states:
            self._assignment.state(place).reset(where)
        self._positions.find_soon()

    @checks_arguments
    async def position(self, partition: tuple[str, int]) -> int:
        """Return the offset of the next record. Waits until it is known. Raises `KafkaError` if it cannot be found."""
        while (position := self._assignment.state(partition).position) is None:
            await asyncio.wait([self._positions.find_soon()])
            self._raise_errors()
            self._check_open()
        return position

    @checks_arguments
    def high_watermark(self, partition: tuple[str, int]) -> int:
        """Return the high watermark in the last response for the partition, or -1 before the first one."""
        return self._assignment.state(partition).high_watermark

    @checks_arguments
    def timestamp_type(self, partition: tuple[str, int]) -> TimestampType:
        """Return the timestamp type of the last record that was returned: set by the producer or by the broker."""
        return self._assignment.state(partition).timestamp_type

    @checks_arguments
    async def beginning_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[TopicPartition, int]:
        """Return the first offsets of partitions. Raises `KafkaError`."""
        return await self._ends(partitions, EARLIEST)

    @checks_arguments
    async def end_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[TopicPartition, int]:
        """Return the end offsets of partitions at the isolation level of this consumer. Raises `KafkaError`."""
        return await self._ends(partitions, LATEST)

    async def _ends(self, partitions: Iterable[tuple[str, int]], which: int) -> dict[TopicPartition, int]:
        found = await self._lookup.find({TopicPartition(*place): which for place in partitions})
        return {place: each.offset for place, each in found.items()}

    @checks_arguments
    async def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return offset and timestamp of the first record at or after a time in each partition, or None.

        Raises `KafkaError`.
        """
        found = await self._lookup.find({TopicPartition(*place): each for place, each in times_ms.items()})
        return {place: each if each.offset >= 0 else None for place, each in found.items()}

    # --- commits

    @checks_arguments
    async def commit(self, offsets: OffsetsLike | None = None) -> None:
        """Commit these offsets, or the positions of all assigned partitions. Raises `KafkaError`."""
        self._commits.require_group_id()
        if offsets is None:
            wanted = {
                place: OffsetAndMetadata(state.position)
                for place, state in self._states.items()
                if state.position is not None
            }
        else:
            wanted = {
                TopicPartition(*place): each if isinstance(each, OffsetAndMetadata) else OffsetAndMetadata(each)
                for place, each in offsets.items()
            }
        await self._commits.commit(wanted)

    @checks_arguments
    async def committed(self, partitions: Iterable[tuple[str, int]]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets of partitions, None where there is none. Raises `KafkaError`."""
        return await self._commits.committed(partitions)

    def cluster_state(self) -> ClusterState:
        """Return the metadata of the cluster that the client has now."""
        return self._cluster.state


@checks_arguments
def _names(topics: Iterable[str]) -> Iterable[str]:
    return topics
