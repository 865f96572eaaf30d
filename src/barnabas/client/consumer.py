"""A consumer: records of partitions, in order, alone or as a member of a group.

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

`getmany` is the fast way: records by partition, whole batches at once. Where partitions are read, and what of an answer is for
the reader, is in `consuming.partition`; membership in `consuming.classic` and `consuming.heartbeats`. Rebalances happen in the
background: what was handed out before the last poll counts as done, and that is what is committed when partitions go.
APIs: Fetch, ListOffsets, OffsetFetch, OffsetCommit, and those of groups.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import random
import re
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from barnabas.batches import BatchError, Record, TimestampType
from barnabas.client import settings as client_settings
from barnabas.client.cluster import Cluster
from barnabas.client.consuming import offsets as requests
from barnabas.client.consuming.fetching import Fetcher
from barnabas.client.consuming.membership import Membership
from barnabas.client.consuming.partition import PartitionState
from barnabas.client.consuming.settings import READ_COMMITTED, ConsumerSettings, consumer_settings, definitions
from barnabas.client.coordinated import coordinator_versions
from barnabas.client.errors import ClosedError
from barnabas.client.records import (
    ConsumerRecord,
    GroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    TopicPartition,
)
from barnabas.client.routing import coordinator, node
from barnabas.client.settings import ClientSettings
from barnabas.client.shared import begin, end
from barnabas.client.state import NO_LEADER, ClusterState
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

log = logging.getLogger(__name__)

_new = tuple.__new__
_AGAIN = frozenset({ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.STALE_MEMBER_EPOCH})
_NO_OFFSETS: Mapping[TopicPartition, int | OffsetAndMetadata] = {}


class Consumer:
    """`async with Consumer({"bootstrap.servers": ..., "group.id": ...}, topics=["orders"]) as consumer`; or
    `Consumer(cluster, {"isolation.level": "read_committed"})` on a client that is there already, and stays.

    For one event loop; one task reads. A `listener` may have `on_partitions_revoked`, `on_partitions_assigned` and
    `on_partitions_lost`, each called with a list of `TopicPartition`, plain or asynchronous.
    """

    def __init__(
        self,
        config: Cluster | ClientSettings | Mapping[str, object],
        more: Mapping[str, object] | None = None,
        *,
        topics: Iterable[str] = (),
        random: Callable[[], float] = random.random,
    ) -> None:
        """Settings by the names of Kafka's consumer. Raises `ConfigError`, which names the setting."""
        given: dict[str, object] = {**(config if isinstance(config, Mapping) else {}), **(more or {})}
        base = config.settings if isinstance(config, Cluster) else None if isinstance(config, Mapping) else config
        loaded = client_settings.load_over(base, given, definitions())
        self.settings: ConsumerSettings = consumer_settings(loaded, given)
        self._owns_cluster = not isinstance(config, Cluster)
        self._cluster = config if isinstance(config, Cluster) else Cluster(loaded)
        self._random = random
        self._states: dict[TopicPartition, PartitionState] = {}
        self._order: list[PartitionState] = []
        self._touched: set[PartitionState] = set()
        self._at = 0
        self._topics: tuple[str, ...] = tuple(topics)
        self._pattern: re.Pattern[str] | None = None
        self._listener: Any = None
        self._membership: Membership | None = None
        self._membership_task: asyncio.Task[None] | None = None
        self._positioning: asyncio.Task[None] | None = None
        self._news = asyncio.Event()  # records, an error, an assignment
        self._errors: list[Exception] = []
        self._fetcher = Fetcher(self._cluster, self.settings, self._states, self._news, self._fetch_failed)
        self._polled_at_s = 0.0
        self._committed_at_s = 0.0
        self._is_started = False
        self._is_closed = False

    # --- life

    async def start(self) -> Self:
        """Reach the cluster, and join the group if topics were given. Raises as `Cluster.start`."""
        if self._owns_cluster:
            await self._cluster.start()
        self._is_started = True
        self._polled_at_s = self._committed_at_s = asyncio.get_running_loop().time()
        if self._topics:
            await self.subscribe(self._topics)
        return self

    async def close(self) -> None:
        """Commit if that happens by itself, leave the group, hang up."""
        if self._is_closed:
            return
        self._is_closed = True
        await end([self._membership_task, self._positioning])
        await self._fetcher.close()
        if self._is_started:
            if self.settings.enable_auto_commit:
                self._mark_processed()
                await self._commit_quietly(self._states)
            if self._membership is not None:
                await self._membership.leave()
        self._news.set()
        if self._owns_cluster:
            await self._cluster.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- what is read

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read these partitions, without a group's say; what they were read at before is kept."""
        self._check_open()
        if self._membership is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "assign and subscribe exclude each other: unsubscribe first")
        wanted = [TopicPartition(*place) for place in partitions]
        for place in set(self._states) - set(wanted):
            del self._states[place]
        for place in wanted:
            if place not in self._states:
                self._states[place] = PartitionState(place)
        self._reassigned()

    async def subscribe(self, topics: Iterable[str] | re.Pattern[str], listener: Any = None) -> None:
        """Read these topics, or all that match a pattern, together with the other members of the group."""
        self._check_open()
        if self.settings.group_id is None:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "a group.id is needed to subscribe to topics")
        if self._states and self._membership is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "assign and subscribe exclude each other: unsubscribe first")
        self._listener = listener if listener is not None else self._listener
        self._pattern = topics if isinstance(topics, re.Pattern) else None
        self._topics = () if isinstance(topics, re.Pattern) else tuple(dict.fromkeys(topics))
        if self._pattern is not None:
            self._cluster.follow_all()
            await self._cluster.refresh()
        else:
            if self.settings.allow_auto_create_topics:
                await self._cluster.metadata(self._topics, allow_auto_topic_creation=True)
            await self._cluster.refresh(self._topics)
        if self._membership is None:
            self._membership = self._new_membership()
            self._membership_task = begin(self._membership.run())
        else:
            self._membership.subscription_changed()

    def _new_membership(self) -> Membership:
        if self.settings.group_protocol == "consumer":
            from barnabas.client.consuming.heartbeats import HeartbeatMembership  # noqa: PLC0415

            membership: Membership = HeartbeatMembership(self._cluster, self.settings, _Reader(self), self._random)
        else:
            from barnabas.client.consuming.classic import ClassicMembership  # noqa: PLC0415

            membership = ClassicMembership(self._cluster, self.settings, _Reader(self), self._random)
        membership.on_error = self._news.set
        return membership

    async def unsubscribe(self) -> None:
        """Leave the group, and read nothing."""
        membership, self._membership = self._membership, None
        await end([self._membership_task])
        self._membership_task = None
        if membership is not None:
            if self._states:
                await _Reader(self).take_away(list(self._states))
            await membership.leave()
        self._topics, self._pattern = (), None
        self._states.clear()
        self._reassigned()

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read now."""
        return frozenset(self._states)

    def subscription(self) -> tuple[str, ...]:
        """The topics that are subscribed to now."""
        if self._pattern is None:
            return self._topics
        return tuple(
            sorted(
                name
                for name, topic in self._cluster.state.topics.items()
                if not topic.is_internal and self._pattern.fullmatch(name)
            )
        )

    def group_metadata(self) -> GroupMetadata:
        """Who commits, for `Producer.send_offsets_to_transaction`."""
        if self._membership is not None:
            return self._membership.metadata()
        return GroupMetadata(self._group_id())

    def pause(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Hand out nothing of these until `resume`; they stay assigned."""
        for place in partitions:
            self._state(place).is_paused = True

    def resume(self, partitions: Iterable[tuple[str, int]]) -> None:
        for place in partitions:
            self._state(place).is_paused = False
        self._fetcher.wake()
        self._news.set()

    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(place for place, state in self._states.items() if state.is_paused)

    # --- records

    async def getmany(
        self, *, timeout_ms: float = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[Record]]:
        """The next records by partition, as soon as there are some, or none when the time is over; no more than
        `max_records` (`max.poll.records`). Raises what went wrong in the background, once."""
        await self._begin_poll()
        limit = self.settings.max_poll_records if max_records is None else max_records
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_ms / 1000
        while True:
            self._news.clear()
            found = self._collect(limit)
            if found:
                return found
            self._raise_errors()
            left_s = deadline_s - loop.time()
            if left_s <= 0:
                return found
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._news.wait()
            self._check_open()

    async def poll(self, timeout_ms: float = 0, *, max_records: int | None = None) -> list[ConsumerRecord]:
        """As `getmany`, in one list, each record with where it was."""
        found = await self.getmany(timeout_ms=timeout_ms, max_records=max_records)
        return [
            _new(ConsumerRecord, (topic, partition, *record))
            for (topic, partition), records in found.items()
            for record in records
        ]

    async def getone(self) -> ConsumerRecord:
        """The next record, however long it takes."""
        await self._begin_poll()
        while True:
            self._news.clear()
            for _ in range(len(self._order)):
                state = self._order[self._at % len(self._order)]
                if not state.is_paused and state.position is not None and (record := self._take_one(state)) is not None:
                    self._touched.add(state)
                    return _new(ConsumerRecord, (*state.place, *record))
                self._at += 1
            self._raise_errors()
            await self._news.wait()
            self._check_open()

    def has_buffered(self) -> bool:
        """Whether the next record can be had without waiting, unless it is one that is passed over."""
        return any(state.has_buffered and not state.is_paused for state in self._order)

    def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        return self

    async def __anext__(self) -> ConsumerRecord:
        return await self.getone()

    def _take_one(self, state: PartitionState) -> Record | None:
        settings = self.settings
        had_room = state.has_room
        try:
            record = state.take_one(
                check_crcs=settings.check_crcs, committed_only=settings.isolation_level == READ_COMMITTED
            )
        except BatchError as error:
            raise KafkaError(error.code, f"{state.place} at {state.position}: {error}") from error
        if state.has_room and not had_room:
            self._fetcher.wake()
        return record

    def _collect(self, limit: int) -> dict[TopicPartition, list[Record]]:
        settings, found = self.settings, dict[TopicPartition, list[Record]]()
        committed_only = settings.isolation_level == READ_COMMITTED
        is_drained = False
        count = len(self._order)
        for _ in range(count):
            state = self._order[self._at % count]
            taken: list[Record] = []
            while limit > 0 and not state.is_paused and state.position is not None and state.has_buffered:
                had_room = state.has_room
                try:
                    some = state.take(limit, check_crcs=settings.check_crcs, committed_only=committed_only)
                except BatchError as error:
                    if found or taken:
                        break  # it is raised by the next poll
                    raise KafkaError(error.code, f"{state.place} at {state.position}: {error}") from error
                is_drained = is_drained or (state.has_room and not had_room)
                if not some:
                    self._touched.add(state)  # only markers: the position has moved
                    break
                limit -= len(some)
                if taken:
                    taken += some
                else:
                    taken = some  # it is ours: the partition has let go of it
            if taken:
                found[state.place] = taken
                self._touched.add(state)
            if limit <= 0:
                break
            self._at += 1
        if is_drained:
            self._fetcher.wake()
        return found

    async def _begin_poll(self) -> None:
        self._check_open()
        now_s = self._polled_at_s = asyncio.get_running_loop().time()
        if self._touched:
            self._mark_processed()
        if self.settings.enable_auto_commit:
            due_s = self._committed_at_s + self.settings.auto_commit_interval_ms / 1000
            if now_s >= due_s and self._states:
                self._committed_at_s = now_s
                await self._commit_quietly(self._states)

    def _mark_processed(self) -> None:
        for state in self._touched:
            state.processed = state.position
        self._touched.clear()

    def _raise_errors(self) -> None:
        if self._membership is not None and self._membership.error is not None:
            raise self._membership.error
        if self._errors:
            raise self._errors.pop(0)

    def _fetch_failed(self, state: PartitionState, code: ErrorCode) -> None:
        """An answer that says no for one partition: out of range is healed, what nothing heals is raised by the next poll."""
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if self.settings.auto_offset_reset == "none":
                text = f"{state.place}: offset {state.fetch_offset} is not there, and auto.offset.reset=none"
                self._errors.append(KafkaError(code, text))
                self._news.set()
                state.reset_to = "none"
                state.position = None
                return
            log.info("%s: offset %d is not there: %s", state.place, state.fetch_offset, self.settings.auto_offset_reset)
            state.reset(self._reset_strategy())
            self._position_soon()
            return
        error = KafkaError(code, f"{state.place}: {code.message}")
        if str(error) not in map(str, self._errors):
            self._errors.append(error)
        self._news.set()

    # --- positions

    def seek(self, partition: tuple[str, int], offset: int) -> None:
        """Read on at this offset."""
        self._state(partition).seek(offset)
        self._fetcher.interrupt()

    def seek_to_beginning(self, *partitions: tuple[str, int]) -> None:
        """Read on at the first record there is; of all that is assigned, if none are given."""
        self._seek_to("earliest", partitions)

    def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        """Read on after the last record there is."""
        self._seek_to("latest", partitions)

    def _seek_to(self, where: str, partitions: Collection[tuple[str, int]]) -> None:
        for place in partitions or self._states:
            self._state(place).reset(where)
        self._position_soon()

    async def position(self, partition: tuple[str, int]) -> int:
        """The offset of the next record that will be handed out. Raises `KafkaError` when there is none to begin with."""
        while (position := self._state(partition).position) is None:
            self._position_soon()
            assert self._positioning is not None
            await asyncio.wait([self._positioning])
            self._raise_errors()
            self._check_open()
        return position

    def high_watermark(self, partition: tuple[str, int]) -> int:
        """Where the partition ended when it was read last, -1 if it was not."""
        return self._state(partition).high_watermark

    def timestamp_type(self, partition: tuple[str, int]) -> TimestampType:
        """Whose clock the timestamp of the record is of that was handed out last."""
        return self._state(partition).timestamp_type

    async def beginning_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[TopicPartition, int]:
        """Raises `KafkaError`."""
        return await self._ends(partitions, requests.EARLIEST)

    async def end_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[TopicPartition, int]:
        """Where partitions end, for this isolation level. Raises `KafkaError`."""
        return await self._ends(partitions, requests.LATEST)

    async def _ends(self, partitions: Iterable[tuple[str, int]], which: int) -> dict[TopicPartition, int]:
        found = await self._list_offsets({TopicPartition(*place): which for place in partitions})
        return {place: each.offset for place, each in found.items()}

    async def offsets_for_times(
        self, times_ms: Mapping[tuple[str, int], int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition at or after a time, or None. Raises `KafkaError`."""
        found = await self._list_offsets({TopicPartition(*place): each for place, each in times_ms.items()})
        return {place: each if each.offset >= 0 else None for place, each in found.items()}

    async def _list_offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Asked at the leaders, again where they have moved."""
        found: dict[TopicPartition, OffsetAndTimestamp] = {}
        timeout_ms = self._cluster.settings.get_int("default.api.timeout.ms")
        last: Exception | None = None
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                for attempt in range(1 << 30):
                    missing = {place: each for place, each in times.items() if place not in found}
                    results = await asyncio.gather(*await self._asked_at_leaders(missing))
                    for place, each in ((place, each) for result in results for place, each in result.items()):
                        if not isinstance(each, KafkaError):
                            found[place] = each
                        elif each.code.retriable:
                            last = each
                        else:
                            raise each
                    if len(found) == len(times):
                        return {place: found[place] for place in times}
                    await asyncio.sleep(self._cluster.settings.retry_backoff.delay_ms(attempt, self._random()) / 1000)
                    await self._cluster.refresh({place.topic for place in missing})
        except TimeoutError:
            if last is None:
                raise
        assert last is not None
        raise last

    async def _asked_at_leaders(self, times: Mapping[TopicPartition, int]) -> list[Any]:
        state = self._cluster.state
        if any(state.partition(*place) is None for place in times):
            state = await self._cluster.refresh({place.topic for place in times})
        by_node: dict[int, dict[TopicPartition, int]] = {}
        for place, each in times.items():
            known = state.partition(*place)
            if known is None:
                code = state.errors.get(place.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                raise KafkaError(code, f"{place}: {code.message}")
            if known.leader_id != NO_LEADER:
                by_node.setdefault(known.leader_id, {})[place] = each
        return [self._ask_leader(node_id, rows) for node_id, rows in by_node.items()]

    async def _ask_leader(
        self, node_id: int, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | KafkaError]:
        request = requests.list_offsets(times, self.settings.isolation_level, self.settings.request_timeout_ms)
        try:
            return requests.listed(await self._cluster.send(request, node(node_id)))
        except OSError as error:
            return {place: KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)) for place in times}

    def _reset_strategy(self) -> str:
        return self.settings.auto_offset_reset

    def _position_soon(self) -> None:
        """Find out where to read what has no position."""
        if self._positioning is None or self._positioning.done():
            self._positioning = begin(self._find_positions())

    async def _find_positions(self) -> None:
        failures = 0
        while True:
            lost = [state for state in self._states.values() if state.position is None and state.reset_to != "none"]
            if not lost:
                return
            try:
                await self._find_committed([state for state in lost if state.reset_to is None])
                await self._find_resets([state for state in lost if state.reset_to is not None])
            except KafkaError as error:
                if not error.code.retriable and error.code not in _AGAIN:
                    self._errors.append(error)
                    self._news.set()
                    return
                failures += 1
                await asyncio.sleep(self._cluster.settings.retry_backoff.delay_ms(failures, self._random()) / 1000)
            except OSError as error:
                log.info("positions cannot be found: %s", error)
                failures += 1
                await asyncio.sleep(self._cluster.settings.retry_backoff.delay_ms(failures, self._random()) / 1000)
            self._fetcher.interrupt()
            self._news.set()

    async def _find_committed(self, states: list[PartitionState]) -> None:
        if not states:
            return
        generations = {state: state.generation for state in states}
        known: Mapping[TopicPartition, OffsetAndMetadata | None] = {}
        if self.settings.group_id is not None:
            known = await self._fetch_committed([state.place for state in states])
        for state in states:
            if state.generation != generations[state] or state.position is not None or state.reset_to is not None:
                continue
            committed = known.get(state.place)
            if committed is not None:
                state.seek(committed.offset)
            elif self.settings.auto_offset_reset == "none":
                state.reset_to = "none"
                text = f"{state.place}: no offset was committed, and auto.offset.reset=none"
                self._errors.append(KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, text))
                self._news.set()
            else:
                state.reset(self._reset_strategy())

    async def _find_resets(self, states: list[PartitionState]) -> None:
        times = {}
        for state in states:
            to = state.reset_to
            if to is not None and to.startswith("by_duration"):
                times[state.place] = int(time.time() * 1000) - (self.settings.reset_duration_ms or 0)
            elif to is not None:
                times[state.place] = requests.EARLIEST if to == "earliest" else requests.LATEST
        if not times:
            return
        generations = {state: state.generation for state in states}
        found = await self._list_offsets(times)
        after = [place for place, each in found.items() if each.offset < 0]
        ends = await self._list_offsets(dict.fromkeys(after, requests.LATEST)) if after else {}
        for state in states:
            if state.generation == generations[state] and state.place in found:
                state.seek({**found, **ends}[state.place].offset)

    # --- commits

    async def commit(self, offsets: Mapping[Any, int | OffsetAndMetadata] | None = None) -> None:
        """Keep in the group what was handed out so far, or these offsets. Raises `KafkaError`."""
        self._group_id()
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
        await self._commit(wanted)

    async def _commit(self, wanted: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        if not wanted:
            return
        group_id = self._group_id()
        deadline_s = asyncio.get_running_loop().time() + self._cluster.settings.get_int("default.api.timeout.ms") / 1000
        for attempt in range(1 << 30):
            versions = await coordinator_versions(self._cluster, group_id)
            version = min(versions.best("OffsetCommit") or 0, requests.NAMES_MOST_COMMIT)
            request = requests.commit_request(self.group_metadata(), wanted, version)
            errors = requests.commit_errors(await self._cluster.call(request, coordinator(group_id), version=version))
            if not errors:
                return
            place, code = next(iter(errors.items()))
            late = asyncio.get_running_loop().time() > deadline_s
            if late or not (code.retriable or code in _AGAIN) or code is ErrorCode.REBALANCE_IN_PROGRESS:
                raise KafkaError(code, f"group {group_id}, {place}: {code.message}")
            await asyncio.sleep(self._cluster.settings.retry_backoff.delay_ms(attempt, self._random()) / 1000)

    async def _commit_quietly(self, places: Iterable[TopicPartition]) -> None:
        """What was done, of these; a failure is for the log, for the next commit says the same."""
        wanted = {
            place: OffsetAndMetadata(state.processed)
            for place in places
            if (state := self._states.get(place)) is not None and state.processed is not None
        }
        try:
            await self._commit(wanted)
        except (KafkaError, OSError, ClosedError) as error:
            log.warning("group %s: what was read could not be committed: %s", self.settings.group_id, error)

    async def committed(self, partitions: Iterable[tuple[str, int]]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed of these, None where nothing. Raises `KafkaError`."""
        deadline_s = asyncio.get_running_loop().time() + self._cluster.settings.get_int("default.api.timeout.ms") / 1000
        for attempt in range(1 << 30):
            try:
                return await self._fetch_committed([TopicPartition(*place) for place in partitions])
            except KafkaError as error:
                late = asyncio.get_running_loop().time() > deadline_s
                if late or not (error.code.retriable or error.code in _AGAIN):
                    raise
            await asyncio.sleep(self._cluster.settings.retry_backoff.delay_ms(attempt, self._random()) / 1000)
        raise AssertionError("the time is never over")

    async def _fetch_committed(self, places: list[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        to = coordinator(self._group_id())
        versions = await coordinator_versions(self._cluster, self._group_id())
        version = min(versions.best("OffsetFetch") or 0, requests.NAMES_MOST_FETCH)
        member = self.group_metadata()
        if self.settings.group_protocol != "consumer":
            member = GroupMetadata(member.group_id)
        request = requests.fetch_request(member, places, version, require_stable=True)
        response = await self._cluster.call(request, to, version=version)
        return requests.fetched_offsets(response)

    # --- inside

    def _group_id(self) -> str:
        if self.settings.group_id is None:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "a group.id is needed to keep offsets")
        return self.settings.group_id

    def _check_open(self) -> None:
        if self._is_closed or not self._is_started:
            raise ClosedError("the consumer is closed" if self._is_closed else "the consumer was not started")

    def _state(self, partition: tuple[str, int]) -> PartitionState:
        found = self._states.get(TopicPartition(*partition))
        if found is None:
            text = f"{TopicPartition(*partition)} is not assigned to this consumer"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        return found

    def _reassigned(self) -> None:
        self._order = list(self._states.values())
        self._touched &= set(self._order)
        self._at = 0
        self._cluster.follow({place.topic for place in self._states})
        self._position_soon()
        self._fetcher.interrupt()
        self._news.set()

    def cluster_state(self) -> ClusterState:
        """What is known of the cluster now."""
        return self._cluster.state


class _Reader:
    """The consumer, as its membership in a group sees it (`consuming.membership.Reader`)."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def subscribed_topics(self) -> tuple[str, ...]:
        return tuple(sorted(self._consumer.subscription()))

    def owned(self) -> tuple[TopicPartition, ...]:
        return tuple(sorted(self._consumer._states))

    def last_poll_s(self) -> float:
        return self._consumer._polled_at_s

    async def take_away(self, partitions: Collection[TopicPartition]) -> None:
        consumer = self._consumer
        if consumer.settings.enable_auto_commit:
            await consumer._commit_quietly(partitions)
        await self._tell("on_partitions_revoked", partitions)
        self._drop(partitions)

    async def give(self, partitions: Collection[TopicPartition]) -> None:
        consumer = self._consumer
        for place in partitions:
            consumer._states.setdefault(place, PartitionState(place))
        consumer._reassigned()
        await self._tell("on_partitions_assigned", partitions)

    async def lose_all(self) -> None:
        places = list(self._consumer._states)
        if not places:
            return
        self._drop(places)
        listener = self._consumer._listener
        await self._tell(
            "on_partitions_lost" if hasattr(listener, "on_partitions_lost") else "on_partitions_revoked", places
        )

    def _drop(self, partitions: Collection[TopicPartition]) -> None:
        for place in partitions:
            state = self._consumer._states.pop(place, None)
            if state is not None:
                state.drop()
        self._consumer._reassigned()

    async def _tell(self, what: str, partitions: Collection[TopicPartition]) -> None:
        call = getattr(self._consumer._listener, what, None)
        if call is None:
            return
        try:
            answer = call(sorted(partitions))
            if inspect.isawaitable(answer):
                await answer
        except Exception:
            log.exception("%s of a listener failed", what)
