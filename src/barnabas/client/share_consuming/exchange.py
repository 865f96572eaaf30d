"""Fetches records of share groups, and sends acknowledgements: at most one request in flight to each broker.

Its one rule: a session's requests are sent one after the other, and acknowledgements go to the session that delivered the
records. When a session is lost, the broker has released its records, so their acknowledgements fail.

Records are fetched only while a poll waits for them, because their locks run from the moment they are acquired.
Acknowledgements travel with the next fetch, or alone. APIs: ShareFetch, ShareAcknowledge.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any, Protocol, TypeAlias

from barnabas.batches import TimestampType
from barnabas.client.cluster import Cluster
from barnabas.client.consuming.refreshing import Refreshing
from barnabas.client.errors import PERMANENT, ClosedError, UnsupportedByNodeError, error_code
from barnabas.client.records import TopicPartition
from barnabas.client.routing import node
from barnabas.client.share_consuming.acknowledgements import Acknowledgements, batches
from barnabas.client.share_consuming.acquired import Acquired, ReadResult, read_acquired
from barnabas.client.share_consuming.in_flight import Decided, Delivery, Origin
from barnabas.client.share_consuming.session import FINAL_EPOCH, LOST, SessionPart, ShareSession
from barnabas.client.share_consuming.settings import AcquireMode, ShareConsumerSettings
from barnabas.client.shared import begin, end
from barnabas.client.state import Node
from barnabas.wire import ZERO_UUID, ErrorCode, KafkaError, MalformedError, Uuid
from barnabas.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from barnabas.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

_log = logging.getLogger(__name__)

_LANE = "share"
_FIRST_WITH_MODES = 2  # version of ShareFetch and ShareAcknowledge with acquire modes and renewals
_MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors of a partition that a refresh of the metadata solves, and after which acknowledgements have failed for good."""

_LeaderRow: TypeAlias = ShareFetchResponse.PartitionData | ShareAcknowledgeResponse.PartitionData


class Member(Protocol):
    """The share consumer, as the exchange sees it."""

    def member_id(self) -> str | None:
        """Return the member id, or None if there is no membership."""

    def assigned(self) -> Collection[TopicPartition]:
        """Return the assigned partitions."""

    def delivered(self, delivery: Delivery) -> list[Decided]:
        """Buffer records. Returns acknowledgements for those that are not wanted any more."""

    def session_lost(self, origin: Origin) -> None:
        """Drop buffered records of a session that ended."""

    def answered(self, decided: Decided, error: KafkaError | None) -> None:
        """Note the outcome of acknowledgements."""

    def failed(self, error: Exception) -> None:
        """Note an error that the next poll raises."""


class _Broker:
    """What the exchange knows of one broker."""

    def __init__(self) -> None:
        self.session = ShareSession()
        self.number = 0  # of the session
        self.pending: list[Acknowledgements] = []
        self.task: asyncio.Task[None] | None = None


class Exchange:
    """Requests of one member to all brokers."""

    def __init__(self, cluster: Cluster, settings: ShareConsumerSettings, member: Member) -> None:
        self.lock_timeout_ms: int | None = None  # as the last response said
        self.timestamp_types: dict[TopicPartition, TimestampType] = {}  # in the last responses
        self._cluster = cluster
        self._settings = settings
        self._member = member
        self._brokers: dict[int, _Broker] = {}
        self._open: dict[Acknowledgements, Decided] = {}  # not answered yet
        self._is_wanted = False  # a poll waits for records
        self._limit = settings.max_poll_records  # of the last poll
        self._refreshing = Refreshing(cluster, lambda: {place.topic for place in member.assigned()}, self.wake)
        self._is_closed = False

    # --- what the consumer wants

    def want(self, limit: int) -> None:
        """Fetch until there are records, at most `limit` at a time if brokers can limit them."""
        self._is_wanted, self._limit = True, limit
        self.wake()

    def rest(self) -> None:
        """Fetch no more, apart from what is in flight."""
        self._is_wanted = False

    def send(self, decided: Iterable[Decided]) -> list[Acknowledgements]:
        """Send acknowledgements soon, with retries until `default.api.timeout.ms`."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._cluster.settings.get_int("default.api.timeout.ms") / 1000
        sent = []
        for each in decided:
            acknowledgements = Acknowledgements(each.place, each.topic_id, each.spans, loop.create_future())
            acknowledgements.deadline_s = deadline_s
            sent.append(acknowledgements)
            self._open[acknowledgements] = each
            broker = self._brokers.get(each.origin.node_id)
            if broker is None or broker.number != each.origin.session or self._is_closed:
                self._end(acknowledgements, _lost())
            else:
                broker.pending.append(acknowledgements)
        if sent:
            self.wake()
        return sent

    def unanswered(self) -> list[Acknowledgements]:
        """Return all acknowledgements whose outcome is not known yet."""
        return list(self._open)

    def _end(self, acknowledgements: Acknowledgements, error: KafkaError | None) -> None:
        decided = self._open.pop(acknowledgements, None)
        if decided is not None:
            acknowledgements.outcome.set_result(error)
            self._member.answered(decided, error)

    # --- requests

    def wake(self) -> None:
        """Start a request to each broker that has none in flight and is needed."""
        if self._is_closed:
            return
        wanted = self._wanted() if self._is_wanted else {}
        for node_id in wanted.keys() | {node_id for node_id, broker in self._brokers.items() if broker.pending}:
            broker = self._brokers.setdefault(node_id, _Broker())
            if broker.task is None:
                broker.task = begin(self._exchange(node_id, broker, wanted.get(node_id, {})))
                broker.task.add_done_callback(partial(self._done, broker))

    def _done(self, broker: _Broker, task: asyncio.Task[None]) -> None:
        broker.task = None
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            if not isinstance(error, (KafkaError, OSError, *PERMANENT)):
                _log.error("an exchange with a broker failed", exc_info=error)
            self._is_wanted = False  # until the next poll
            self._member.failed(error if isinstance(error, Exception) else RuntimeError(str(error)))
        self.wake()

    def _wanted(self) -> dict[int, dict[TopicPartition, Uuid]]:
        """Return the assigned partitions with the ids of their topics, by leader."""
        state = self._cluster.state
        found: dict[int, dict[TopicPartition, Uuid]] = {}
        is_stale = False
        for place in self._member.assigned():
            leader, topic = state.leader(*place), state.topics.get(place.topic)
            if leader is None or topic is None or topic.id == ZERO_UUID:
                is_stale = True
            else:
                found.setdefault(leader.id, {})[place] = topic.id
        if is_stale:
            self._refreshing.soon()
        return found

    async def _exchange(self, node_id: int, broker: _Broker, wanted: Mapping[TopicPartition, Uuid]) -> None:
        """Send one request, and follow its response."""
        member_id = self._member.member_id()
        if not broker.session.is_open:
            self._fail(broker, _lost())
        if member_id is None or not (wanted or broker.pending):
            return
        sent, broker.pending = broker.pending, []
        renews = any(each.renews for each in sent)
        try:
            versions = await self._cluster.versions(node(node_id))
            if not versions.serves("ShareFetch", _FIRST_WITH_MODES):
                if self._settings.acquire_mode is not AcquireMode.BATCH_OPTIMIZED:
                    raise UnsupportedByNodeError(f"node {node_id} is too old for share.acquire.mode=record_limit")
                if renews:
                    text = f"node {node_id} is too old to renew locks"
                    self._end_all(sent, KafkaError(ErrorCode.UNSUPPORTED_VERSION, text))
                    return
            if wanted and not renews:
                await self._fetch(node_id, broker, member_id, wanted, sent)
            else:
                await self._acknowledge(node_id, broker, member_id, sent, renews=renews)
        except (OSError, MalformedError) as error:
            _log.info("share session with node %d is lost: %s", node_id, error)
            self._end_all(sent, KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)))
            self._lose(node_id, broker)
            self._refreshing.soon()
            await self._back_off(0)
        except BaseException as error:
            if isinstance(error, Exception):
                code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
                self._end_all(sent, KafkaError(code, str(error)))
            if isinstance(error, KafkaError) and error.code.retriable:  # the node is not known any more
                self._lose(node_id, broker)
                self._refreshing.soon()
                await self._back_off(0)
                return
            raise

    async def _fetch(
        self,
        node_id: int,
        broker: _Broker,
        member_id: str,
        wanted: Mapping[TopicPartition, Uuid],
        sent: list[Acknowledgements],
    ) -> None:
        settings = self._settings
        names = {topic_id: place.topic for place, topic_id in wanted.items()}
        request = self._fetch_request(member_id, broker.session.fetch(wanted), sent)
        response: ShareFetchResponse = await self._cluster.send(
            request, node(node_id), timeout_ms=settings.request_timeout_ms + settings.fetch_max_wait_ms, lane=_LANE
        )
        if not await self._followed(node_id, broker, sent, response):
            return
        self.lock_timeout_ms = response.acquisition_lock_timeout_ms or self.lock_timeout_ms
        self._learn_leaders(names, response)
        results: dict[tuple[Uuid, int], KafkaError | None] = {}
        must_wait = False
        for topic in response.responses:
            for row in topic.partitions:
                results[topic.topic_id, row.partition_index] = _error(
                    row.acknowledge_error_code, row.acknowledge_error_message
                )
                place = TopicPartition(names.get(topic.topic_id, ""), row.partition_index)
                must_wait = self._partition_failed(place, row.error_code, row.error_message) or must_wait
                if row.acquired_records and place.topic:
                    self._deliver(Origin(node_id, broker.number), place, topic.topic_id, row)
        self._finish(broker, sent, results)
        if must_wait:
            await self._back_off(0)

    def _fetch_request(self, member_id: str, part: SessionPart, sent: list[Acknowledgements]) -> ShareFetchRequest:
        settings = self._settings
        rows: dict[tuple[Uuid, int], ShareFetchRequest.FetchPartition] = {}
        for place, topic_id in part.added.items():
            rows[topic_id, place.partition] = ShareFetchRequest.FetchPartition(partition_index=place.partition)
        for (topic_id, index), found in _batches(sent).items():
            row = rows.setdefault((topic_id, index), ShareFetchRequest.FetchPartition(partition_index=index))
            row.acknowledgement_batches = [
                ShareFetchRequest.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
                for first, last, types in found
            ]
        topics: dict[Uuid, list[ShareFetchRequest.FetchPartition]] = {}
        for (topic_id, _), row in rows.items():
            topics.setdefault(topic_id, []).append(row)
        forgotten: dict[Uuid, list[int]] = {}
        for place, topic_id in part.forgotten.items():
            forgotten.setdefault(topic_id, []).append(place.partition)
        limit = max(self._limit, 1)
        return ShareFetchRequest(
            group_id=settings.group_id,
            member_id=member_id,
            share_session_epoch=part.epoch,
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            max_records=limit,
            batch_size=limit,
            share_acquire_mode=settings.acquire_mode.value,
            topics=[ShareFetchRequest.FetchTopic(topic_id=each, partitions=some) for each, some in topics.items()],
            forgotten_topics_data=[
                ShareFetchRequest.ForgottenTopic(topic_id=each, partitions=some) for each, some in forgotten.items()
            ],
        )

    def _deliver(
        self, origin: Origin, place: TopicPartition, topic_id: Uuid, row: ShareFetchResponse.PartitionData
    ) -> None:
        """Hand the acquired records of a partition over, and acknowledge offsets that have none."""
        acquired = [Acquired(each.first_offset, each.last_offset, each.delivery_count) for each in row.acquired_records]
        found: ReadResult = read_acquired(*place, row.records or b"", acquired, check_crcs=self._settings.check_crcs)
        if found.spans:
            self.send([Decided(origin, place, topic_id, found.spans)])
        error = None if found.error is None else KafkaError(found.error.code, f"{place}: {found.error}")
        if found.records or error is not None:
            lock_s = (self.lock_timeout_ms or 0) / 1000 or float("inf")
            expires_s = asyncio.get_running_loop().time() + lock_s
            self.rest()
            self.timestamp_types[place] = found.timestamp_type
            self.send(self._member.delivered(Delivery(origin, place, topic_id, found.records, expires_s, error)))

    async def _acknowledge(
        self,
        node_id: int,
        broker: _Broker,
        member_id: str,
        sent: list[Acknowledgements],
        *,
        renews: bool = False,
        is_last: bool = False,
    ) -> None:
        request = self._acknowledge_request(member_id, FINAL_EPOCH if is_last else broker.session.epoch, sent, renews)
        response: ShareAcknowledgeResponse = await self._cluster.send(
            request, node(node_id), timeout_ms=self._settings.request_timeout_ms, lane=_LANE
        )
        if not await self._followed(node_id, broker, sent, response):
            return
        self.lock_timeout_ms = response.acquisition_lock_timeout_ms or self.lock_timeout_ms
        self._learn_leaders({each.topic_id: each.place.topic for each in sent}, response)
        results = {
            (topic.topic_id, row.partition_index): _error(row.error_code, row.error_message)
            for topic in response.responses
            for row in topic.partitions
        }
        self._finish(broker, sent, results)
        if any(each is not None and each.code in _MOVED for each in results.values()):
            self._refreshing.soon()

    def _acknowledge_request(
        self, member_id: str, epoch: int, sent: list[Acknowledgements], renews: bool
    ) -> ShareAcknowledgeRequest:
        topics: dict[Uuid, list[ShareAcknowledgeRequest.AcknowledgePartition]] = {}
        for (topic_id, index), found in _batches(sent).items():
            rows = [
                ShareAcknowledgeRequest.AcknowledgementBatch(
                    first_offset=first, last_offset=last, acknowledge_types=types
                )
                for first, last, types in found
            ]
            topics.setdefault(topic_id, []).append(
                ShareAcknowledgeRequest.AcknowledgePartition(partition_index=index, acknowledgement_batches=rows)
            )
        return ShareAcknowledgeRequest(
            group_id=self._settings.group_id,
            member_id=member_id,
            share_session_epoch=epoch,
            is_renew_ack=renews,
            topics=[
                ShareAcknowledgeRequest.AcknowledgeTopic(topic_id=each, partitions=rows)
                for each, rows in topics.items()
            ],
        )

    # --- responses

    async def _followed(self, node_id: int, broker: _Broker, sent: list[Acknowledgements], response: Any) -> bool:
        """Follow the error of a whole response. Returns whether there is none."""
        code = error_code(response.error_code)
        if code is ErrorCode.NONE:
            broker.session.answered(code)
            return True
        error = KafkaError(code, response.error_message)
        _log.info("a share request was refused by node %d: %s", node_id, error)
        self._end_all(sent, error)
        if code in LOST:
            self._lose(node_id, broker)
        else:
            broker.session.answered(code)
            if not code.retriable and code is not ErrorCode.UNKNOWN_MEMBER_ID:  # heartbeats deal with that one
                raise error
        await self._back_off(0)
        return False

    def _partition_failed(self, place: TopicPartition, number: int, message: str | None) -> bool:
        """Follow the error of a partition. Returns whether to wait before the next fetch."""
        if not number:
            return False
        code = error_code(number)
        _log.info("%s cannot be fetched: %s", place, code.name)
        if code in _MOVED:
            self._refreshing.soon()
        elif not code.retriable and code is not ErrorCode.UNKNOWN_SERVER_ERROR:
            self._member.failed(KafkaError(code, f"{place}: {message or code.message}"))
        return True

    def _finish(
        self,
        broker: _Broker,
        sent: list[Acknowledgements],
        results: Mapping[tuple[Uuid, int], KafkaError | None],
    ) -> None:
        """End acknowledgements with the result of their partition, or send them once more."""
        silent = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the response has no row for the partition")
        now_s = asyncio.get_running_loop().time()
        for each in sent:
            error = results.get((each.topic_id, each.place.partition), silent)
            if error is not None and error.code.retriable and error.code not in _MOVED and now_s < each.deadline_s:
                each.attempts += 1
                delay_s = self._cluster.settings.retry_backoff.delay_ms(each.attempts, 0.5) / 1000
                asyncio.get_running_loop().call_later(delay_s, self._again, broker, broker.number, each)
            else:
                self._end(each, error)

    def _again(self, broker: _Broker, number: int, acknowledgements: Acknowledgements) -> None:
        if broker.number != number or self._is_closed:
            self._end(acknowledgements, _lost())
            return
        broker.pending.append(acknowledgements)
        self.wake()

    def _learn_leaders(
        self, names: Mapping[Uuid, str], response: ShareFetchResponse | ShareAcknowledgeResponse
    ) -> None:
        rows: list[tuple[Uuid, _LeaderRow]] = []
        for topic in response.responses:
            rows += [(topic.topic_id, row) for row in topic.partitions]
        moved = [
            (names[topic_id], row.partition_index, row.current_leader.leader_id, row.current_leader.leader_epoch)
            for topic_id, row in rows
            if row.error_code and row.current_leader.leader_id >= 0 and topic_id in names
        ]
        if moved:
            nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
            self._cluster.learn_leaders(moved, nodes)

    def _lose(self, node_id: int, broker: _Broker) -> None:
        """Begin a new session with a broker: what the old one had acquired is released."""
        self._member.session_lost(Origin(node_id, broker.number))
        broker.session.lost()
        broker.number += 1
        self._fail(broker, _lost())

    def _fail(self, broker: _Broker, error: KafkaError) -> None:
        pending, broker.pending = broker.pending, []
        self._end_all(pending, error)

    def _end_all(self, some: Iterable[Acknowledgements], error: KafkaError | None) -> None:
        for each in some:
            self._end(each, error)

    async def _back_off(self, attempts: int) -> None:
        await asyncio.sleep(self._cluster.settings.retry_backoff.delay_ms(attempts, 0.5) / 1000)

    # --- end

    async def close(self, timeout_s: float) -> None:
        """Send what is left, and end all sessions, which releases all other records. Errors are outcomes of the rest."""
        self._is_wanted, self._is_closed = False, True
        await self._refreshing.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await asyncio.gather(*(self._end_session(node_id, each) for node_id, each in self._brokers.items()))
        await end(broker.task for broker in self._brokers.values())
        self._end_all(self.unanswered(), _lost())

    async def _end_session(self, node_id: int, broker: _Broker) -> None:
        if broker.task is not None:
            await asyncio.wait([broker.task])
        member_id = self._member.member_id()
        if member_id is None or not broker.session.is_open:
            return
        sent, broker.pending = broker.pending, []
        try:
            renews = any(each.renews for each in sent)
            await self._acknowledge(node_id, broker, member_id, sent, renews=renews, is_last=True)
        except (OSError, KafkaError, MalformedError, ClosedError, *PERMANENT) as error:
            self._end_all(sent, KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)))


def _batches(sent: Iterable[Acknowledgements]) -> dict[tuple[Uuid, int], Any]:
    """Return the batches of a request by topic id and partition."""
    spans: dict[tuple[Uuid, int], list[Any]] = {}
    for each in sent:
        spans.setdefault((each.topic_id, each.place.partition), []).extend(each.spans)
    return {key: batches(some) for key, some in spans.items()}


def _error(number: int, message: str | None) -> KafkaError | None:
    return None if not number else KafkaError(error_code(number), message)


def _lost() -> KafkaError:
    text = "the session that delivered the records is lost, and the broker has released them"
    return KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND, text)
