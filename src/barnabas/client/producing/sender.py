"""Sends the batches of a producer: when each may go, in which requests, and in order.

Its one rule: requests to a node are written in the order in which they were started, and a partition that moves waits
until the old leader has answered. The outcome of each batch is decided in `completion`. APIs: Produce, InitProducerId.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from barnabas.client.backoff import Backoff
from barnabas.client.cluster import Cluster
from barnabas.client.producing.accumulator import Accumulator
from barnabas.client.producing.batch import Batch, PartitionQueue
from barnabas.client.producing.completion import Completion
from barnabas.client.producing.identity import FATAL, NOBODY, Identity
from barnabas.client.producing.settings import ProducerSettings
from barnabas.client.records import TopicPartition
from barnabas.client.routing import any_broker, node
from barnabas.client.shared import begin, end
from barnabas.client.state import NO_LEADER, ClusterState, Node
from barnabas.wire import ZERO_UUID, KafkaError, UnsupportedVersionError, Uuid
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse

if TYPE_CHECKING:
    from barnabas.client.producing.transactions import Transactions

_log = logging.getLogger(__name__)

LANE = "produce"
FIRST_WITH_TOPIC_IDS = 13
LAST_WITHOUT_TRANSACTION_V2 = 11
_REFRESH_EVERY_S = 0.1
_MAX_INT32 = 2**31 - 1

Batches = list[tuple[PartitionQueue, Batch]]


class Sender:
    """The task of a producer that sends batches as they become ready, and the requests in flight."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ProducerSettings,
        identity: Identity,
        accumulator: Accumulator,
        completion: Completion,
        transactions: Callable[[], Transactions],
        backoff: Backoff,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._identity = identity
        self._accumulator = accumulator
        self._completion = completion
        self._transactions = transactions
        self._backoff = backoff
        self._wake = accumulator.wake
        self._task: asyncio.Task[None] | None = None
        self._requests: set[asyncio.Task[None]] = set()
        self._side_tasks: dict[str, asyncio.Task[None]] = {}
        self._in_flight: dict[int, int] = {}  # requests by node
        self._turns: dict[int, asyncio.Lock] = {}  # by node
        self._refresh_after_s = 0.0

    def start(self) -> None:
        self._task = begin(self._run())

    async def close(self) -> None:
        """End all tasks, also those that wait for a response."""
        await end([self._task, *self._requests, *self._side_tasks.values()])

    # --- readiness

    async def _run(self) -> None:
        """Send batches as they become ready."""
        while True:
            self._wake.clear()
            try:
                wait_s = self._dispatch(asyncio.get_running_loop().time())
            except Exception:
                _log.exception("the sender of a producer failed")
                wait_s = 1.0
            self._accumulator.offer_room()
            if self._wake.is_set():
                await asyncio.sleep(0)
                continue
            if wait_s is None:
                await self._wake.wait()
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._wake.wait()

    def _dispatch(self, now_s: float) -> float | None:
        """Start requests for all that is ready.

        Returns the seconds until more is, or None if only an event can tell.
        """
        wants_id = self._settings.enable_idempotence and not self._identity.is_transactional
        if wants_id and self._identity.producer == NOBODY and self._accumulator.active:
            self._start_side_task("id", self._request_producer_id)
        if self._identity.new_partitions:
            self._start_side_task("partitions", self._add_partitions)
        while True:
            by_node, wait_s = self._ready(now_s)
            if not by_node:
                return wait_s
            for node_id, queues in by_node.items():
                self._start_request(node_id, queues)

    def _ready(self, now_s: float) -> tuple[dict[int, list[PartitionQueue]], float | None]:
        """Return the queues whose first batch may be sent now, by leader, and the seconds until others may."""
        settings, identity, state = self._settings, self._identity, self._cluster.state
        producer = identity.producer if settings.enable_idempotence else None
        is_flushing = self._accumulator.is_flushing
        active = self._accumulator.active
        by_node: dict[int, list[PartitionQueue]] = {}
        wait_s: float | None = None
        for place, queue in list(active.items()):
            if queue.waiting:
                self._completion.expire(queue, now_s)
            ready_s = queue.ready_in_s(now_s, settings.linger_ms / 1000, settings.batch_size, is_flushing=is_flushing)
            if ready_s is None:
                if not queue.on_the_wire:
                    del active[place]
                continue
            if ready_s > 0:
                wait_s = ready_s if wait_s is None else min(wait_s, ready_s)
                continue
            expires_s = max(0.001, queue.waiting[0].created_s + settings.delivery_timeout_ms / 1000 - now_s)
            wait_s = expires_s if wait_s is None else min(wait_s, expires_s)
            if producer is not None and (producer == NOBODY or not queue.may_drain(producer)):
                continue
            if identity.is_transactional and place not in identity.partitions:
                continue
            leader_id = _leader(state, place)
            if leader_id is None:
                wait_s = min(wait_s, max(self._refresh_after_s - now_s, 0.01))
                self._refresh(now_s)
            elif queue.on_the_wire and queue.node_id != leader_id:
                continue  # later records must not reach the new leader before earlier ones
            elif self._in_flight.get(leader_id, 0) < settings.max_in_flight:
                by_node.setdefault(leader_id, []).append(queue)
        return by_node, wait_s

    # --- side tasks that sending waits for

    def _start_side_task(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task unless one of this name runs. The sender wakes up when it ends."""
        if name in self._side_tasks:
            return

        def done(task: asyncio.Task[None]) -> None:
            self._side_tasks.pop(name, None)
            self._wake.set()

        self._side_tasks[name] = task = begin(work())
        task.add_done_callback(done)

    def _refresh(self, now_s: float) -> None:
        """Refresh the metadata, unless that was done just now."""
        if now_s >= self._refresh_after_s:
            self._refresh_after_s = now_s + _REFRESH_EVERY_S
            self._start_side_task("refresh", self._refresh_state)

    async def _refresh_state(self) -> None:
        with contextlib.suppress(KafkaError, OSError):
            await self._cluster.refresh({place.topic for place in self._accumulator.active})

    async def _request_producer_id(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_MAX_INT32)
        try:
            answer = await self._cluster.call(request, any_broker(), timeout_ms=self._settings.delivery_timeout_ms)
        except (KafkaError, OSError, UnsupportedVersionError) as error:
            self._completion.fail_waiting(error)
            await asyncio.sleep(self._backoff.first_ms / 1000)
            return
        self._identity.known(answer.producer_id, answer.producer_epoch)
        self._completion.got_producer_id()

    async def _add_partitions(self) -> None:
        """Add new partitions to the transaction before records go there. Records of those that are refused fail."""
        error = await self._transactions().add_partitions()
        if error is None:
            return
        identity = self._identity
        identity.fail(error, is_fatal=isinstance(error, KafkaError) and error.code in FATAL)
        identity.new_partitions.clear()
        for queue in self._accumulator.queues.values():
            if queue.partition not in identity.partitions:
                self._completion.drop(queue, error)

    # --- requests

    def _start_request(self, node_id: int, queues: list[PartitionQueue]) -> None:
        """Start one request with the first batch of each queue, as many as `max.request.size` allows."""
        settings, identity = self._settings, self._identity
        producer = identity.producer if settings.enable_idempotence else None
        batches: Batches = []
        size = 0
        for queue in queues:
            first = queue.waiting[0]
            if batches and size + first.size > settings.max_request_size:
                break
            size += first.size
            batch, queue.node_id = queue.drain(producer), node_id
            batch.was_rewritten = False
            batch.encode(
                settings.compression, settings.compression_level, is_transactional=identity.transactional_id is not None
            )
            if producer is not None:
                batch.stamp(batch.producer, batch.base_sequence)
            batches.append((queue, batch))
        self._in_flight[node_id] = self._in_flight.get(node_id, 0) + 1
        task = begin(self._produce(node_id, batches))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)
        task.add_done_callback(lambda _: self._wake.set())

    async def _produce(self, node_id: int, batches: Batches) -> None:
        topics = self._cluster.state.topics
        names = dict.fromkeys(queue.partition.topic for queue, _ in batches)
        ids = {name: topics[name].id if name in topics else ZERO_UUID for name in names}
        self._cluster.follow(names)
        request = self._request(batches, ids)
        turn = _Turn(self._turns.setdefault(node_id, asyncio.Lock()))
        try:
            await turn.begin()
            version = await self._version(node_id, ids.values())
            if self._settings.acks == 0:
                await self._cluster.post(request, node(node_id), version=version, lane=LANE)
                for queue, batch in batches:
                    self._completion.sent_without_acks(queue, batch)
                return
            response: ProduceResponse = await self._cluster.send(
                request,
                node(node_id),
                version=version,
                timeout_ms=self._settings.request_timeout_ms,
                lane=LANE,
                on_sent=turn.end,
            )
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._lost(batches, error)
        else:
            self._answered(batches, response, {each: name for name, each in ids.items()})
        finally:
            turn.end()
            self._in_flight[node_id] -= 1

    def _request(self, batches: Batches, ids: Mapping[str, Uuid]) -> ProduceRequest:
        by_topic: dict[str, list[ProduceRequest.PartitionProduceData]] = {}
        for queue, batch in batches:
            topic, partition = queue.partition
            assert batch.data is not None
            row = ProduceRequest.PartitionProduceData(index=partition, records=bytes(batch.data))
            by_topic.setdefault(topic, []).append(row)
        return ProduceRequest(
            transactional_id=self._identity.transactional_id,
            acks=self._settings.acks,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=[
                ProduceRequest.TopicProduceData(name=name, topic_id=ids[name], partition_data=rows)
                for name, rows in by_topic.items()
            ],
        )

    async def _version(self, node_id: int, ids: Iterable[Uuid]) -> int:
        versions = await self._cluster.versions(node(node_id))
        best = versions.best("Produce")
        if best is None:
            raise UnsupportedVersionError(f"node {node_id} supports no version of Produce that this client supports")
        if best >= FIRST_WITH_TOPIC_IDS and ZERO_UUID in ids:
            best = FIRST_WITH_TOPIC_IDS - 1
        if self._identity.is_transactional and not self._identity.is_v2:
            best = min(best, LAST_WITHOUT_TRANSACTION_V2)
        return best

    def _lost(self, batches: Batches, error: Exception) -> None:
        """Handle a request without a response."""
        now_s = asyncio.get_running_loop().time()
        for queue, batch in batches:
            self._completion.lost(queue, batch, error, now_s)
        self._refresh_now(now_s)

    def _answered(self, batches: Batches, response: ProduceResponse, names: Mapping[Uuid, str]) -> None:
        now_s = asyncio.get_running_loop().time()
        rows = {
            (topic.name or names.get(topic.topic_id, ""), row.index): row
            for topic in response.responses
            for row in topic.partition_responses
        }
        stale, moved = False, list[tuple[str, int, int, int]]()
        for queue, batch in batches:
            row = rows.get(queue.partition)
            code = self._completion.answered(queue, batch, row, now_s)
            if row is None or code is None:
                continue
            stale = stale or code.refresh_metadata
            if row.current_leader.leader_id >= 0:
                moved.append((*queue.partition, row.current_leader.leader_id, row.current_leader.leader_epoch))
        if moved:
            nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
            self._cluster.learn_leaders(moved, nodes)
        if stale:
            self._refresh_now(now_s)

    def _refresh_now(self, now_s: float) -> None:
        self._refresh_after_s = 0.0
        self._refresh(now_s)


def _leader(state: ClusterState, place: TopicPartition) -> int | None:
    found = state.partition(*place)
    if found is None or found.leader_id == NO_LEADER or found.leader_id not in state.nodes:
        return None
    return found.leader_id


class _Turn:
    """A turn to write a request to a node. The lock wakes those that wait in the order in which they came."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock = lock
        self._has_it = False

    async def begin(self) -> None:
        await self._lock.acquire()
        self._has_it = True

    def end(self) -> None:
        if self._has_it:
            self._has_it = False
            self._lock.release()
