"""One fetcher: it copies the partitions that it follows from one leader, with one request at a time.

Its one rule: a partition is changed here only while it follows the leader epoch of the request. Batches are appended as
received, after a check of their checksums and offsets. A fetch tells the leader what this broker has, so what
`flush.messages` wants on the disk is flushed before it. Where a log has diverged, the leader says so in its response,
and the log is truncated before the next fetch. A partition that fails waits up to `replica.fetch.backoff.ms`, or for a
new leader epoch if only that can help. APIs: Fetch, ListOffsets.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple

from barnabas.batches import BatchError
from barnabas.client.connection import Connection
from barnabas.client.consuming.fetch_session import FetchSession, SessionRequest, Wanted
from barnabas.client.errors import error_code
from barnabas.client.records import TopicPartition
from barnabas.config.server_config import ServerConfig
from barnabas.metadata.versions import LATEST_VERSION, MetadataVersion
from barnabas.replicas.following.followed import Followed
from barnabas.replicas.following.truncation import truncation_offset
from barnabas.replicas.partition import Partition
from barnabas.replicas.throttle import Throttle, is_throttled
from barnabas.slices import Breather
from barnabas.storage import Log
from barnabas.storage.epochs import EpochEndOffset
from barnabas.storage.errors import UnexpectedOffsetError
from barnabas.wire import ErrorCode, KafkaError, MalformedError, Message, Uuid
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

_log = logging.getLogger(__name__)

LATEST, EARLIEST = -1, -2  # of ListOffsets
_FIRST_WITH_REPLICA_STATE = 15

Row = FetchResponse.PartitionData
# The metadata of this broker or of the leader is behind. A new leader epoch ends the first.
_WAITS_FOR_METADATA = frozenset({ErrorCode.FENCED_LEADER_EPOCH})


class Surroundings(NamedTuple):
    """What all fetchers of a broker share.

    `connect` opens a connection to a broker, with this client id. `truncate` changes a log in a thread, and `flush` flushes
    one: it raises KAFKA_STORAGE_ERROR if its log dir has failed.
    """

    node_id: int
    config: Callable[[], ServerConfig]
    broker_epoch: Callable[[], int]
    metadata_version: Callable[[], MetadataVersion | None]
    connect: Callable[[int, str], Awaitable[Connection]]
    truncate: Callable[[Partition, Callable[[Log], object]], Awaitable[None]]
    flush: Callable[[Partition], Awaitable[None]]
    throttle: Callable[[], Throttle]


class Fetcher:
    """The partitions of one leader that one connection copies. `run` ends when it is cancelled."""

    def __init__(self, leader_id: int, number: int, surroundings: Surroundings) -> None:
        self.leader_id = leader_id
        self._name = f"broker-{surroundings.node_id}-fetcher-{number}"
        self._surroundings = surroundings
        self._followed: dict[tuple[Uuid, int], Followed] = {}
        self._session = FetchSession()
        self._connection: Connection | None = None
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._followed)

    def follow(self, partition: Partition) -> None:
        """Start to follow a partition in its current leader epoch."""
        followed = Followed(partition)
        self._followed[followed.key] = followed
        self._news.set()

    def leave(self, partition: Partition) -> None:
        self._followed.pop((partition.topic_id, partition.partition_id), None)

    async def run(self) -> None:
        """Fetch until cancelled."""
        try:
            while True:
                try:
                    await self._fetch()
                except (OSError, KafkaError, TimeoutError, MalformedError) as error:
                    _log.info("%s: fetching from broker %d failed: %s", self._name, self.leader_id, error)
                    self._disconnect()
                    self._delay(self._followed.values())
                except Exception:
                    _log.exception("%s: fetching from broker %d failed", self._name, self.leader_id)
                    self._disconnect()
                    self._delay(self._followed.values())
        finally:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _delay(self, some: Iterable[Followed]) -> None:
        max_backoff_s = self._surroundings.config().get_int("replica.fetch.backoff.ms") / 1000
        for followed in some:
            followed.delay(_now_s(), max_backoff_s)

    # --- one request

    async def _fetch(self) -> None:
        self._news.clear()
        others_first = Breather()
        for followed in list(self._followed.values()):
            if followed.offset is None and not followed.is_failed and followed.after_s <= _now_s():
                await others_first()
                await self._begin(followed)
        asked = {each.key: (each, each.offset) for each in self._followed.values() if self._is_due(each)}
        if not asked:
            await self._wait()
            return
        places = {TopicPartition(each.partition.topic, each.partition.partition_id): each for each, _ in asked.values()}
        wanted = {
            place: Wanted(
                each.offset or 0,
                each.leader_epoch,
                each.partition.topic_id,
                each.last_epoch,
                _log_start_offset(each.partition),
            )
            for place, each in places.items()
        }
        part = self._session.request(wanted, uses_ids=True)
        config = self._surroundings.config()
        response: FetchResponse = await self._call(
            self._request(part, config), self._metadata_version.fetch_request_version, views=True
        )
        code = error_code(response.error_code)
        self._session.answered(code, response.session_id)
        if code is not ErrorCode.NONE:
            _log.info("%s: broker %d refused a fetch: %s", self._name, self.leader_id, code.name)
            if part.is_full:
                self._delay(self._followed.values())
            return
        taken = []
        for topic in response.responses:
            for row in topic.partitions:
                await others_first()
                found, offset = asked.get((topic.topic_id, row.partition_index), (None, None))
                if found is not None and self._is_followed(found) and found.offset == offset:
                    await self._take(found, row)
                    if row.records:
                        taken.append(found.partition)
        await self._flush(taken)

    async def _flush(self, partitions: Iterable[Partition]) -> None:
        """Flush what has to be on the disk before the leader counts on it. A log dir that fails goes offline."""
        due = [each for each in partitions if each.opened_log is not None and each.is_flush_due]
        await asyncio.gather(*(self._surroundings.flush(each) for each in due), return_exceptions=True)

    async def _wait(self) -> None:
        """Wait for another partition, or until a delayed one is due."""
        due = [each.after_s for each in self._followed.values() if not each.is_failed]
        try:
            async with asyncio.timeout(max(0.001, min(due) - _now_s()) if due else None):
                await self._news.wait()
        except TimeoutError:
            pass

    def _is_due(self, followed: Followed) -> bool:
        if followed.offset is None or followed.is_failed or followed.after_s > _now_s():
            return False
        throttle = self._surroundings.throttle()
        if followed.lag != 0 and self._is_throttled(followed) and throttle.is_exceeded:
            followed.after_s = _now_s() + throttle.window_s
            return False
        return True

    def _is_throttled(self, followed: Followed) -> bool:
        partition = followed.partition
        named = partition.settings.follower_throttled_replicas
        return bool(named) and is_throttled(named, partition.partition_id, self._surroundings.node_id)

    def _is_followed(self, followed: Followed) -> bool:
        return self._followed.get(followed.key) is followed and followed.is_current

    @property
    def _metadata_version(self) -> MetadataVersion:
        return self._surroundings.metadata_version() or LATEST_VERSION

    async def _call(self, request: Message, version: int, *, views: bool = False) -> Any:
        if self._connection is None or not self._connection.is_open:
            self._connection = await self._surroundings.connect(self.leader_id, self._name)
        timeout_ms = self._surroundings.config().get_int("replica.socket.timeout.ms")
        return await self._connection.call(request, version, timeout_ms=timeout_ms, views=views)

    def _request(self, part: SessionRequest, config: ServerConfig) -> FetchRequest:
        version = self._metadata_version.fetch_request_version
        topics: dict[Uuid, FetchRequest.FetchTopic] = {}
        for place, wanted in part.listed.items():
            topic = topics.setdefault(wanted.topic_id, FetchRequest.FetchTopic(topic_id=wanted.topic_id))
            topic.partitions.append(
                FetchRequest.FetchPartition(
                    partition=place.partition,
                    current_leader_epoch=wanted.leader_epoch,
                    fetch_offset=wanted.fetch_offset,
                    last_fetched_epoch=wanted.last_fetched_epoch,
                    log_start_offset=wanted.log_start_offset,
                    partition_max_bytes=config.get_int("replica.fetch.max.bytes"),
                )
            )
        forgotten: dict[Uuid, FetchRequest.ForgottenTopic] = {}
        for place, topic_id in part.forgotten:
            forgotten.setdefault(topic_id, FetchRequest.ForgottenTopic(topic_id=topic_id)).partitions.append(
                place.partition
            )
        request = FetchRequest(
            max_wait_ms=config.get_int("replica.fetch.wait.max.ms"),
            min_bytes=config.get_int("replica.fetch.min.bytes"),
            max_bytes=config.get_int("replica.fetch.response.max.bytes"),
            session_id=part.session_id,
            session_epoch=part.epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(forgotten.values()),
        )
        node_id = self._surroundings.node_id
        if version < _FIRST_WITH_REPLICA_STATE:
            request.replica_id = node_id
        else:
            epoch = self._surroundings.broker_epoch()
            request.replica_state = FetchRequest.ReplicaState(replica_id=node_id, replica_epoch=epoch)
        return request

    # --- one partition

    async def _begin(self, followed: Followed) -> None:
        """Open the log and find the position to fetch from. A log without epochs begins at its high watermark."""
        partition = followed.partition
        await partition.open()
        await self._flush((partition,))
        log = partition.opened_log
        if log is None or not self._is_followed(followed):
            self._delay((followed,))
            return
        if log.epochs.latest_epoch is None and partition.high_watermark < log.log_end_offset:
            await self._truncate(followed, partition.high_watermark)
        else:
            followed.place(log)

    async def _take(self, followed: Followed, row: Row) -> None:
        """Do what a row of the response says. Errors affect this partition only."""
        partition = followed.partition
        code = error_code(row.error_code)
        try:
            if code is ErrorCode.NONE and row.diverging_epoch.end_offset >= 0:
                await self._cut(followed, EpochEndOffset(row.diverging_epoch.epoch, row.diverging_epoch.end_offset))
            elif code is ErrorCode.NONE:
                self._append(followed, row)
            elif code is ErrorCode.OFFSET_OUT_OF_RANGE:
                await self._return_into_range(followed)
            else:
                _log.info("%s: broker %d answered %s", partition, self.leader_id, code.name)
                followed.is_failed = code in _WAITS_FOR_METADATA
                self._delay((followed,))
        except BatchError as error:
            _log.error("%s: broker %d sent a damaged batch: %s", partition, self.leader_id, error)
            self._delay((followed,))
        except UnexpectedOffsetError as error:
            _log.error("%s: cannot follow broker %d: %s", partition, self.leader_id, error)
            followed.is_failed = True
        except KafkaError as error:
            _log.info("%s: cannot follow broker %d now: %s", partition, self.leader_id, error)
            self._delay((followed,))

    def _append(self, followed: Followed, row: Row) -> None:
        partition = followed.partition
        if row.records:
            info = partition.append_fetched(row.records, followed.leader_epoch)
            if self._is_throttled(followed):
                self._surroundings.throttle().record(len(row.records))
            if info is None and partition.log.log_end_offset == followed.offset:
                self._delay((followed,))  # only batches of a later epoch, or a part of one batch
            else:
                followed.failures = 0
        else:
            followed.failures = 0
        partition.follow(row.high_watermark, row.log_start_offset)
        followed.place(partition.log)
        followed.lag = max(0, row.high_watermark - partition.log.log_end_offset)

    async def _cut(self, followed: Followed, diverging: EpochEndOffset) -> None:
        partition = followed.partition
        log = partition.log
        own = log.end_offset_for_epoch(diverging.leader_epoch)
        offset = truncation_offset(diverging, own, log.log_end_offset, partition.high_watermark)
        await self._truncate(followed, offset)

    async def _truncate(self, followed: Followed, offset: int) -> None:
        partition = followed.partition
        end = partition.log.log_end_offset
        what = "%s: truncating the log from %d to %d, where it diverges from broker %d in epoch %d"
        _log.info(what, partition, end, offset, self.leader_id, followed.leader_epoch)
        if offset < partition.high_watermark:
            _log.warning("%s: %d is below the high watermark %d", partition, offset, partition.high_watermark)
        await self._surroundings.truncate(partition, lambda log: log.truncate_to(offset))
        self._continue(followed)

    def _continue(self, followed: Followed) -> None:
        log = followed.partition.opened_log
        if log is not None and self._is_followed(followed):
            followed.place(log)

    async def _return_into_range(self, followed: Followed) -> None:
        """Continue where the leader's log begins or ends, because this log ends outside of it."""
        partition = followed.partition
        leader_end = await self._leader_offset(followed, LATEST)
        if not self._is_followed(followed):
            return
        end = partition.log.log_end_offset
        if leader_end < end:
            await self._truncate(followed, leader_end)
            return
        leader_start = await self._leader_offset(followed, EARLIEST)
        if not self._is_followed(followed):
            return
        if leader_start > end:
            _log.warning("%s: the log ends at %d, and that of the leader begins at %d", partition, end, leader_start)
            await self._surroundings.truncate(partition, lambda log: log.truncate_fully_and_start_at(leader_start))
            self._continue(followed)
        else:
            followed.place(partition.log)
            self._delay((followed,))

    async def _leader_offset(self, followed: Followed, timestamp: int) -> int:
        partition = followed.partition
        asked = ListOffsetsRequest.ListOffsetsPartition(
            partition_index=partition.partition_id, current_leader_epoch=followed.leader_epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=self._surroundings.node_id,
            topics=[ListOffsetsRequest.ListOffsetsTopic(name=partition.topic, partitions=[asked])],
        )
        version = self._metadata_version.list_offsets_request_version
        response: ListOffsetsResponse = await self._call(request, version)
        row = response.topics[0].partitions[0]
        if row.error_code:
            raise KafkaError(error_code(row.error_code))
        return row.offset


def _log_start_offset(partition: Partition) -> int:
    log = partition.opened_log
    return -1 if log is None else log.log_start_offset


def _now_s() -> float:
    return asyncio.get_running_loop().time()
