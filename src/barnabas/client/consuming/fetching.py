"""Fetches records: one request at a time to each broker of assigned partitions, while their buffers have room.

A partition is fetched from its leader, or from a follower that the leader prefers (`read_replica`).

A request is sent only when all partitions of the broker have room, so that every request asks for all of them. When
positions change, the request that waits at the broker is abandoned, and the next one uses another connection, because
responses come in order. Each broker has a fetch session (`fetch_session`). API: Fetch.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from barnabas.client.cluster import Cluster
from barnabas.client.consuming.fetch_session import (
    FIRST_WITH_SESSIONS,
    FIRST_WITH_TOPIC_IDS,
    SESSION_ERRORS,
    FetchSession,
    SessionRequest,
    Wanted,
)
from barnabas.client.consuming.partition import PartitionState
from barnabas.client.consuming.read_replica import NO_PREFERENCE, PreferredReplica, is_usable, read_replica
from barnabas.client.consuming.refreshing import Refreshing
from barnabas.client.consuming.settings import ConsumerSettings
from barnabas.client.errors import ClosedError, error_code
from barnabas.client.records import TopicPartition
from barnabas.client.routing import node
from barnabas.client.shared import begin, end
from barnabas.client.state import Node
from barnabas.wire import ZERO_UUID, ErrorCode, KafkaError, MalformedError, UnsupportedVersionError, Uuid
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse

_log = logging.getLogger(__name__)

_LATER_S = 0.1
_CLOSE_TIMEOUT_S = 1.0
_PASSES = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)


class Fetcher:
    """Fills the buffers of partitions.

    `failed` is called with errors of a partition that a refresh of metadata does not solve.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        states: Mapping[TopicPartition, PartitionState],
        news: asyncio.Event,
        failed: Callable[[PartitionState, ErrorCode], None],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._states = states
        self._news = news
        self._failed = failed
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._lanes: dict[int, int] = {}
        self._sessions: dict[int, FetchSession] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._refreshing = Refreshing(cluster, lambda: {place.topic for place in self._states}, self.wake)
        self._is_closed = False

    def wake(self) -> None:
        """Start a request to each broker that has none in flight and whose partitions have room."""
        if self._is_closed:
            return
        by_node: dict[int, list[PartitionState]] = {}
        cluster_state, now_s = self._cluster.state, asyncio.get_running_loop().time()
        is_stale = False
        for place, state in self._states.items():
            if state.position is None or state.is_paused or state.error is not None:
                continue
            node_id = read_replica(state.preferred, cluster_state.partition(*place), cluster_state.nodes, now_s)
            if node_id is None:
                is_stale = True
                continue
            if state.preferred is not None and state.preferred.node_id != node_id:
                state.preferred = None
            by_node.setdefault(node_id, []).append(state)
        for node_id, states in by_node.items():
            if node_id not in self._tasks and all(state.has_room for state in states):
                task = begin(self._fetch(node_id, states))
                self._tasks[node_id] = task
                task.add_done_callback(partial(self._done, node_id))
        if is_stale:
            self._refreshing.soon()

    def interrupt(self) -> None:
        """Abandon the requests in flight, because positions have changed, and start new ones."""
        for node_id, task in list(self._tasks.items()):
            self._lanes[node_id] = self._lanes.get(node_id, 0) ^ 1
            del self._tasks[node_id]
            task.cancel()
        self.wake()

    async def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        await self._refreshing.close()
        await end(self._tasks.values())
        await asyncio.gather(*map(self._close_session, self._sessions))

    def _done(self, node_id: int, task: asyncio.Task[None]) -> None:
        if self._tasks.get(node_id) is task:
            del self._tasks[node_id]
            if not task.cancelled():
                if task.exception() is not None:
                    _log.error("a fetch failed", exc_info=task.exception())
                    self._later()
                else:
                    self.wake()

    def _later(self, seconds: float = _LATER_S) -> None:
        if self._timer is None and not self._is_closed:

            def due() -> None:
                self._timer = None
                self.wake()

            self._timer = asyncio.get_running_loop().call_later(seconds, due)

    # --- one request

    async def _fetch(self, node_id: int, states: list[PartitionState]) -> None:
        asked = {state.place: (state, state.generation, state.fetch_offset) for state in states}
        topics = self._cluster.state.topics
        ids = {place.topic: topics[place.topic].id if place.topic in topics else ZERO_UUID for place in asked}
        wait_ms = self._settings.fetch_max_wait_ms
        try:
            version = (await self._cluster.versions(node(node_id))).best("Fetch")
            if version is not None and version >= FIRST_WITH_TOPIC_IDS and ZERO_UUID in ids.values():
                version = FIRST_WITH_TOPIC_IDS - 1
            self._cluster.follow(ids)
            session, part = self._next_in_session(node_id, asked, ids, version or 0)
            response: FetchResponse = await self._cluster.send(
                self._request(part),
                node(node_id),
                version=version,
                timeout_ms=self._settings.request_timeout_ms + wait_ms,
                lane=f"fetch-{self._lanes.get(node_id, 0)}",
                views=True,
            )
        except (OSError, KafkaError, MalformedError) as error:
            _log.info("fetch from node %d failed: %s", node_id, error)
            _return_to_leaders(states, node_id)
            self._refreshing.soon()
            await self._back_off()
            return
        except UnsupportedVersionError as error:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from error
        code = error_code(response.error_code)
        session.answered(code, response.session_id)
        if code is not ErrorCode.NONE:
            _log.info("fetch from node %d was refused: %s", node_id, code.name)
            if part.is_full or code not in SESSION_ERRORS:
                await self._back_off()
            if code not in SESSION_ERRORS or code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR:
                _return_to_leaders(states, node_id)
                self._refreshing.soon()
            return
        if not self._answered(node_id, response, asked, {each: name for name, each in ids.items()}):
            await self._back_off()

    async def _back_off(self) -> None:
        await asyncio.sleep(self._cluster.settings.retry_backoff.first_ms / 1000)

    def _next_in_session(
        self,
        node_id: int,
        asked: Mapping[TopicPartition, tuple[PartitionState, int, int]],
        ids: Mapping[str, Uuid],
        version: int,
    ) -> tuple[FetchSession, SessionRequest]:
        """Return the session with a broker and its next request. Old brokers have no sessions."""
        session = self._sessions.get(node_id) if version >= FIRST_WITH_SESSIONS else None
        if session is None:
            session = self._sessions[node_id] = FetchSession()
        cluster_state = self._cluster.state
        wanted: dict[TopicPartition, Wanted] = {}
        for place, (_, _, offset) in asked.items():
            known = cluster_state.partition(*place)
            wanted[place] = Wanted(offset, -1 if known is None else known.leader_epoch, ids[place.topic])
        return session, session.request(wanted, uses_ids=version >= FIRST_WITH_TOPIC_IDS)

    def _request(self, part: SessionRequest) -> FetchRequest:
        settings = self._settings
        rows: dict[tuple[str, Uuid], list[FetchRequest.FetchPartition]] = {}
        for place, wanted in part.listed.items():
            rows.setdefault((place.topic, wanted.topic_id), []).append(
                FetchRequest.FetchPartition(
                    partition=place.partition,
                    current_leader_epoch=wanted.leader_epoch,
                    fetch_offset=wanted.fetch_offset,
                    partition_max_bytes=settings.max_partition_fetch_bytes,
                )
            )
        forgotten: dict[tuple[str, Uuid], list[int]] = {}
        for place, topic_id in part.forgotten:
            forgotten.setdefault((place.topic, topic_id), []).append(place.partition)
        return FetchRequest(
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=settings.isolation_level,
            session_id=part.session_id,
            session_epoch=part.epoch,
            rack_id=settings.client_rack,
            topics=[
                FetchRequest.FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions)
                for (topic, topic_id), partitions in rows.items()
            ],
            forgotten_topics_data=[
                FetchRequest.ForgottenTopic(topic=topic, topic_id=topic_id, partitions=partitions)
                for (topic, topic_id), partitions in forgotten.items()
            ],
        )

    async def _close_session(self, node_id: int) -> None:
        """Close the session with a broker, so that it has room for another one. Errors are ignored."""
        part = self._sessions[node_id].close()
        if part is None:
            return
        request = self._request(part)
        request.max_wait_ms = 0
        with contextlib.suppress(OSError, KafkaError, MalformedError, UnsupportedVersionError, ClosedError):
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await self._cluster.send(request, node(node_id))

    def _answered(
        self,
        node_id: int,
        response: FetchResponse,
        asked: Mapping[TopicPartition, tuple[PartitionState, int, int]],
        names: Mapping[Uuid, str],
    ) -> bool:
        """Buffer the records of a response. Returns True if the next request may be sent at once."""
        moved: list[tuple[str, int, int, int]] = []
        is_stale = has_records = has_failed = False
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for row in topic.partitions:
                place = TopicPartition(name, row.partition_index)
                state, generation, offset = asked.get(place, (None, 0, 0))
                if state is None or state.generation != generation or self._states.get(place) is not state:
                    continue
                if state.fetch_offset != offset:
                    continue  # another replica has returned these records meanwhile
                if row.error_code:
                    code = error_code(row.error_code)
                    if self._is_of_follower(state, node_id, code):
                        _log.info("%s: %s at follower %d, back to the leader", place, code.name, node_id)
                        has_failed = True
                        continue
                    if row.current_leader.leader_id >= 0:
                        moved.append((*place, row.current_leader.leader_id, row.current_leader.leader_epoch))
                    if code in _PASSES:
                        is_stale = True
                    else:
                        self._failed(state, code)
                        has_failed = True
                    continue
                state.high_watermark = row.high_watermark
                state.last_stable_offset = row.last_stable_offset
                state.log_start_offset = row.log_start_offset
                if row.preferred_read_replica != NO_PREFERENCE and not self._prefer(state, row.preferred_read_replica):
                    is_stale = True
                has_records = self._keep(state, row) or has_records
        if moved:
            nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
            self._cluster.learn_leaders(moved, nodes)
        if is_stale:
            self._refreshing.soon()
        if has_records:
            self._news.set()
        return not (is_stale or has_failed) or bool(moved)

    def _prefer(self, state: PartitionState, node_id: int) -> bool:
        """Fetch from another replica. Returns False if it is not known to be online: the metadata is out of date."""
        now_s = asyncio.get_running_loop().time()
        preferred = PreferredReplica(node_id, now_s + self._cluster.settings.get_int("metadata.max.age.ms") / 1000)
        cluster_state = self._cluster.state
        known = cluster_state.partition(*state.place)
        if known is not None and node_id == known.leader_id:
            state.preferred = None
            return True
        if known is None or not is_usable(preferred, known, cluster_state.nodes, now_s):
            return False
        state.preferred = preferred
        return True

    def _is_of_follower(self, state: PartitionState, node_id: int, code: ErrorCode) -> bool:
        """Return to the leader after an error at a follower. Returns whether that is all that there is to do.

        A follower may not have the newest or the oldest records yet, so only the leader knows that an offset is out of
        range.
        """
        if state.preferred is None or state.preferred.node_id != node_id:
            return False
        state.preferred = None
        return code is ErrorCode.OFFSET_OUT_OF_RANGE

    def _keep(self, state: PartitionState, row: FetchResponse.PartitionData) -> bool:
        """Buffer the records of a partition. Returns False if there are none."""
        if not row.records:
            return False
        aborted = [(each.producer_id, each.first_offset) for each in row.aborted_transactions or ()]
        if not state.fetched(row.records, aborted):
            _log.warning("%s: the batch at offset %d is larger than the response", state.place, state.fetch_offset)
            return False
        return True


def _return_to_leaders(states: Iterable[PartitionState], node_id: int) -> None:
    """Stop preferring a follower."""
    for state in states:
        if state.preferred is not None and state.preferred.node_id == node_id:
            state.preferred = None
