"""A producer: records in, written once each and in order, in batches, to the leaders of their partitions.

>>> import asyncio
>>> from barnabas.testing import Broker
>>> async def main() -> None:
...     async with Broker({"orders": 3}) as broker:
...         async with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
...             written = await producer.send_and_wait("orders", b"two apples", key=b"alice")
...             print(written.topic, written.partition, written.offset)
...             deliveries = [await producer.send("orders", b"%d" % number) for number in range(100)]
...             await producer.flush()
...             print((await deliveries[99]).offset > 0)
>>> asyncio.run(main())
orders 0 0
True

`send` waits for room in the buffer, and returns a `Delivery`, to be awaited for where the record was written. What is gathered
is in `producing.batch`, who the producer is in `producing.identity`, and what it asks of the coordinator of its transactions
in `producing.transactions`; here is what waits. APIs: Produce, InitProducerId.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from barnabas.batches import Headers, Record
from barnabas.client import settings as client_settings
from barnabas.client.cluster import Cluster
from barnabas.client.errors import CallTimeoutError, ClosedError, error_code
from barnabas.client.producing.batch import Batch, Delivery, PartitionQueue, record_size
from barnabas.client.producing.identity import FATAL, FATAL_TO_BATCHES, NOBODY, Identity, State
from barnabas.client.producing.partitioner import StickyPartitioner, partition_of
from barnabas.client.producing.settings import definitions, producer_settings
from barnabas.client.records import GroupMetadata, HeadersLike, OffsetAndMetadata, RecordMetadata, TopicPartition
from barnabas.client.retry import maybe_done
from barnabas.client.routing import any_broker, node
from barnabas.client.settings import ClientSettings
from barnabas.client.shared import begin, end
from barnabas.client.state import NO_LEADER, ClusterState, Node, Topic
from barnabas.config.values import ConfigError
from barnabas.wire import ZERO_UUID, ErrorCode, KafkaError, UnsupportedVersionError
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse

if TYPE_CHECKING:
    from barnabas.client.producing.transactions import Transactions

__all__ = ["Delivery", "GroupMetadata", "OffsetAndMetadata", "Producer", "RecordMetadata", "TopicPartition"]

log = logging.getLogger(__name__)

LANE = "produce"
FIRST_WITH_TOPIC_IDS = 13
LAST_WITHOUT_TRANSACTION_V2 = 11
_REFRESH_EVERY_S = 0.1
_NO_HEADERS: Headers = ()


class Producer:
    """`async with Producer({"bootstrap.servers": ...}) as producer`; or `Producer(cluster, {"linger.ms": 0})` on a client that
    is there already, and stays. For one event loop; many tasks may use it, but a transaction is one for all of them."""

    def __init__(
        self,
        config: Cluster | ClientSettings | Mapping[str, object],
        more: Mapping[str, object] | None = None,
        *,
        random: Callable[[], float] = random.random,
    ) -> None:
        """Settings by the names of Kafka's producer. Raises `ConfigError`, which names the setting."""
        given: dict[str, object] = {**(config if isinstance(config, Mapping) else {}), **(more or {})}
        base = config.settings if isinstance(config, Cluster) else None if isinstance(config, Mapping) else config
        loaded = client_settings.load_over(base, given, definitions())
        self.settings = producer_settings(loaded, given)
        self._owns_cluster = not isinstance(config, Cluster)
        self._cluster = config if isinstance(config, Cluster) else Cluster(loaded)
        self._random = random
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._active: dict[TopicPartition, PartitionQueue] = {}
        self._sticky: dict[str, StickyPartitioner] = {}
        self._targets: dict[str, _Targets] = {}
        self._buffered = 0
        self._waiting_for_room: deque[asyncio.Future[None]] = deque()
        self._identity = Identity(self.settings.transactional_id)
        self._coordinator: Transactions | None = None
        self._in_flight: dict[int, int] = {}
        self._turns: dict[int, asyncio.Lock] = {}
        self._requests: set[asyncio.Task[None]] = set()
        self._side_tasks: dict[str, asyncio.Task[None]] = {}
        self._refresh_after_s = 0.0
        self._wake = asyncio.Event()
        self._incomplete: set[Batch] = set()
        self._to_rewrite: set[PartitionQueue] = set()
        self._flushing = 0
        self._is_closed = False
        self._sender: asyncio.Task[None] | None = None
        self._backoff = loaded.retry_backoff

    # --- life

    async def start(self) -> Self:
        """Reach the cluster. Raises as `Cluster.start`."""
        if self._owns_cluster:
            await self._cluster.start()
        self._sender = begin(self._run())
        return self

    async def close(self, timeout_ms: float | None = None) -> None:
        """Write what waits, for as long as it may take, or `timeout_ms`; then what is left fails with `ClosedError`."""
        if self._is_closed:
            return
        if self._identity.state in (State.OPEN, State.FAILED):
            with contextlib.suppress(Exception):
                await self.abort_transaction()
        self._is_closed = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await self.flush()
        await end([self._sender, *self._requests, *self._side_tasks.values()])
        for batch in self._incomplete:
            batch.fail(ClosedError("the producer was closed before the record was written"))
        for waiting in self._waiting_for_room:
            if not waiting.done():
                waiting.set_exception(ClosedError("the producer is closed"))
        if self._owns_cluster:
            await self._cluster.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(timeout_ms=None if kind is None else 0)

    # --- records

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        headers: HeadersLike = _NO_HEADERS,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Take a record; waits for room and for the topic, no longer than `max.block.ms`. What is returned can be awaited
        for its `RecordMetadata`, now or later or never.

        Raises `KafkaError` for what cannot be sent: a topic that is not there, a record that is too large, no transaction.
        """
        delivery = self._take(topic, value, key, partition, headers, timestamp_ms)
        while delivery is None:
            await self._wait_ready(topic)
            delivery = self._take(topic, value, key, partition, headers, timestamp_ms)
        if self._wake.is_set():
            await asyncio.sleep(0)  # a batch may go out: let it
        return delivery

    async def send_and_wait(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        headers: HeadersLike = _NO_HEADERS,
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """As `send`, and wait until the record is written."""
        return await (
            await self.send(topic, value, key, partition=partition, headers=headers, timestamp_ms=timestamp_ms)
        )

    async def flush(self) -> None:
        """Returns when everything that was sent before is written, or has failed."""
        self._flushing += 1
        self._wake.set()
        try:
            for batch in list(self._incomplete):
                await batch.settled()
        finally:
            self._flushing -= 1

    async def partitions_for(self, topic: str) -> Topic:
        """What is known of a topic; it is created if brokers do that. Raises `KafkaError`."""
        found = self._cluster.state.topics.get(topic)
        if found is None:
            await self._wait_topic(topic)
            found = self._cluster.state.topics[topic]
        return found

    def _take(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        headers: HeadersLike,
        timestamp_ms: int | None,
    ) -> Delivery | None:
        """The record in a batch, or None when something must be waited for."""
        if self._is_closed or self._sender is None:
            raise ClosedError("the producer is closed" if self._is_closed else "the producer was not started")
        known = self._cluster.state.topics.get(topic)
        if known is None:
            return None
        if type(value) is not bytes and value is not None:
            value = bytes(value)
        if type(key) is not bytes and key is not None:
            key = bytes(key)
        rows: Headers = tuple(headers.items() if isinstance(headers, dict) else headers) if headers else _NO_HEADERS
        size = record_size(key, value, rows)
        if size > self.settings.max_request_size:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE, f"the record has {size} bytes, more than max.request.size allows"
            )
        if self._buffered + size > self.settings.buffer_memory and self._buffered:
            return None
        if partition is None:
            partition = self._partition(topic, known, key, size)
        elif partition not in known.partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic} has no partition {partition}")
        place = TopicPartition(topic, partition)
        if self._identity.transactional_id is not None:
            self._identity.touch(place)
        queue = self._active.get(place)
        if queue is None:
            queue = self._queues.get(place)
            if queue is None:
                queue = self._queues[place] = PartitionQueue(place)
            self._active[place] = queue
        if timestamp_ms is None:
            timestamp_ms = int(time.time() * 1000)
        now_s = 0.0 if queue.open is not None else asyncio.get_running_loop().time()
        last, batch_size = queue.open, self.settings.batch_size
        if last is not None and last.size + size > batch_size:
            now_s = asyncio.get_running_loop().time()
        record = Record(-1, timestamp_ms, key, value, rows)
        delivery = queue.append(record, size, batch_size, now_s)
        self._buffered += size
        if queue.open is not last and queue.open is not None:
            self._incomplete.add(queue.open)
            self._wake.set()
        return delivery

    def _partition(self, topic: str, known: Topic, key: bytes | None, size: int) -> int:
        if key is not None and not self.settings.ignore_keys:
            return partition_of(key, len(known.partitions))
        targets = self._targets.get(topic)
        if targets is None or targets.topic is not known:
            targets = self._targets[topic] = _Targets(known)
        sticky = self._sticky.get(topic)
        if sticky is None:
            sticky = self._sticky[topic] = StickyPartitioner(max(self.settings.batch_size, 1), self._random)
        return sticky.partition(size, targets.available)

    async def _wait_ready(self, topic: str) -> None:
        """Until the topic is known and there is room."""
        timeout_ms = self.settings.max_block_ms
        if topic not in self._cluster.state.topics:
            await self._wait_topic(topic)
            return
        room = asyncio.get_running_loop().create_future()
        self._waiting_for_room.append(room)
        self._wake.set()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await room
        except TimeoutError:
            text = f"no room within max.block.ms={timeout_ms}: {self._buffered} bytes wait to be written"
            raise CallTimeoutError(text) from None

    async def _wait_topic(self, topic: str) -> None:
        """Ask for a topic, which creates it where brokers do that, until it is there. Raises `KafkaError`."""
        timeout_ms = self.settings.max_block_ms
        last: KafkaError | None = None
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                for attempt in range(1 << 30):
                    state = await self._cluster.metadata([topic], allow_auto_topic_creation=True, timeout_ms=timeout_ms)
                    code = state.errors.get(topic)
                    if code is None and topic in (await self._cluster.refresh([topic])).topics:
                        return
                    code = code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    last = KafkaError(code, f"topic {topic}: {code.message}")
                    if not code.retriable:
                        raise last
                    await asyncio.sleep(self._backoff.delay_ms(attempt, self._random()) / 1000)
        except (TimeoutError, CallTimeoutError) as error:
            raise last or error from None

    # --- the sender

    async def _run(self) -> None:
        """Send what is ready, wait until more is."""
        while True:
            self._wake.clear()
            try:
                wait_s = self._dispatch(asyncio.get_running_loop().time())
            except Exception:
                log.exception("the sender of a producer failed")
                wait_s = 1.0
            self._give_room()
            if self._wake.is_set():
                await asyncio.sleep(0)
                continue
            if wait_s is None:
                await self._wake.wait()
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._wake.wait()

    def _give_room(self) -> None:
        if self._buffered < self.settings.buffer_memory:
            for waiting in self._waiting_for_room:
                if not waiting.done():
                    waiting.set_result(None)
            self._waiting_for_room.clear()

    def _dispatch(self, now_s: float) -> float | None:
        """Start requests for all that is ready; how long until more is, if time alone makes it so."""
        wait_s: float | None = None
        wants_id = self.settings.enable_idempotence and not self._identity.is_transactional
        if wants_id and self._identity.producer == NOBODY and self._active:
            self._side("id", self._ask_producer_id)
        if self._identity.new_partitions:
            self._side("partitions", self._add_partitions)
        while True:
            by_node, wait_s = self._ready(now_s)
            if not by_node:
                return wait_s
            for node_id, queues in by_node.items():
                self._start_request(node_id, queues)

    def _ready(self, now_s: float) -> tuple[dict[int, list[PartitionQueue]], float | None]:
        """Queues whose first batch may be sent now, by the node that leads; and how long until others may."""
        settings, state = self.settings, self._cluster.state
        producer = self._identity.producer if settings.enable_idempotence else None
        is_flushing = bool(self._flushing or self._waiting_for_room)
        by_node: dict[int, list[PartitionQueue]] = {}
        wait_s: float | None = None
        for place, queue in list(self._active.items()):
            if queue.waiting:
                self._expire(queue, now_s)
            ready_s = queue.ready_in_s(now_s, settings.linger_ms / 1000, settings.batch_size, is_flushing=is_flushing)
            if ready_s is None:
                if not queue.on_the_wire:
                    del self._active[place]
                continue
            if ready_s > 0:
                wait_s = ready_s if wait_s is None else min(wait_s, ready_s)
                continue
            expires_s = max(0.001, queue.waiting[0].created_s + settings.delivery_timeout_ms / 1000 - now_s)
            wait_s = expires_s if wait_s is None else min(wait_s, expires_s)
            if producer is not None and (producer == NOBODY or not queue.may_drain(producer)):
                continue
            if self._identity.is_transactional and place not in self._identity.partitions:
                continue
            leader_id = self._leader(state, place)
            if leader_id is None:
                wait_s = min(wait_s, max(self._refresh_after_s - now_s, 0.01))
                self._refresh(now_s)
            elif queue.on_the_wire and queue.node_id != leader_id:
                continue  # the new leader must not see what comes later first
            elif self._in_flight.get(leader_id, 0) < settings.max_in_flight:
                by_node.setdefault(leader_id, []).append(queue)
        return by_node, wait_s

    @staticmethod
    def _leader(state: ClusterState, place: TopicPartition) -> int | None:
        found = state.partition(*place)
        if found is None or found.leader_id == NO_LEADER or found.leader_id not in state.nodes:
            return None
        return found.leader_id

    def _refresh(self, now_s: float) -> None:
        if now_s >= self._refresh_after_s:
            self._refresh_after_s = now_s + _REFRESH_EVERY_S
            self._side("refresh", self._refresh_state)

    async def _refresh_state(self) -> None:
        with contextlib.suppress(KafkaError, OSError):
            await self._cluster.refresh({place.topic for place in self._active})

    def _side(self, name: str, work: Callable[[], Any]) -> None:
        """Something that the sender waits for, once at a time."""
        if name in self._side_tasks:
            return

        def done(task: asyncio.Task[None]) -> None:
            self._side_tasks.pop(name, None)
            self._wake.set()

        self._side_tasks[name] = task = begin(work())
        task.add_done_callback(done)

    def _expire(self, queue: PartitionQueue, now_s: float) -> None:
        """Batches that were not written in `delivery.timeout.ms` fail."""
        limit_s = now_s - self.settings.delivery_timeout_ms / 1000
        while queue.waiting and queue.waiting[0].created_s <= limit_s and queue.waiting[0] is not queue.open:
            self._give_up(queue, queue.waiting.popleft())
        if queue.waiting and queue.waiting[0] is queue.open and queue.waiting[0].created_s <= limit_s:
            queue.open = None
            self._give_up(queue, queue.waiting.popleft())

    def _give_up(self, queue: PartitionQueue, batch: Batch) -> None:
        timeout_ms = self.settings.delivery_timeout_ms
        last = batch.last_error
        why = f"; the last error: {last}" if last is not None else ""
        text = f"{batch.count} records for {queue.partition}: not written within delivery.timeout.ms={timeout_ms}{why}"
        self._failed(queue, batch, CallTimeoutError(text, last, maybe_done=batch.maybe_written))

    # --- requests

    def _start_request(self, node_id: int, queues: list[PartitionQueue]) -> None:
        settings, identity = self.settings, self._identity
        producer = identity.producer if settings.enable_idempotence else None
        batches: list[tuple[PartitionQueue, Batch]] = []
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

    async def _produce(self, node_id: int, batches: list[tuple[PartitionQueue, Batch]]) -> None:
        settings, identity = self.settings, self._identity
        by_topic: dict[str, list[ProduceRequest.PartitionProduceData]] = {}
        for queue, batch in batches:
            topic, partition = queue.partition
            assert batch.data is not None
            row = ProduceRequest.PartitionProduceData(index=partition, records=bytes(batch.data))
            by_topic.setdefault(topic, []).append(row)
        topics = self._cluster.state.topics
        ids = {name: topics[name].id if name in topics else ZERO_UUID for name in by_topic}
        self._cluster.follow(by_topic)
        request = ProduceRequest(
            transactional_id=identity.transactional_id,
            acks=settings.acks,
            timeout_ms=settings.request_timeout_ms,
            topic_data=[
                ProduceRequest.TopicProduceData(name=name, topic_id=ids[name], partition_data=rows)
                for name, rows in by_topic.items()
            ],
        )
        turn = _Turn(self._turns.setdefault(node_id, asyncio.Lock()))
        try:
            await turn.begin()
            version = await self._produce_version(node_id, ids.values())
            if settings.acks == 0:
                await self._cluster.post(request, node(node_id), version=version, lane=LANE)
                for queue, batch in batches:
                    queue.on_the_wire -= 1
                    self._written(queue, batch, -1, -1)
                return
            response: ProduceResponse = await self._cluster.send(
                request,
                node(node_id),
                version=version,
                timeout_ms=settings.request_timeout_ms,
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

    async def _produce_version(self, node_id: int, ids: Iterable[bytes]) -> int:
        versions = await self._cluster.versions(node(node_id))
        best = versions.best("Produce")
        if best is None:
            raise UnsupportedVersionError(f"node {node_id} serves no version of Produce that is known")
        if best >= FIRST_WITH_TOPIC_IDS and ZERO_UUID in ids:
            best = FIRST_WITH_TOPIC_IDS - 1
        if self._identity.is_transactional and not self._identity.is_v2:
            best = min(best, LAST_WITHOUT_TRANSACTION_V2)
        return best

    def _lost(self, batches: list[tuple[PartitionQueue, Batch]], error: Exception) -> None:
        """No answer came."""
        passes = isinstance(error, OSError) or (
            isinstance(error, KafkaError) and (error.code.retriable or error.code is ErrorCode.BROKER_NOT_AVAILABLE)
        )
        now_s = asyncio.get_running_loop().time()
        for queue, batch in batches:
            queue.on_the_wire -= 1
            if passes and not isinstance(error, ConfigError):
                self._retry(queue, batch, error, now_s, maybe_written=maybe_done(error))
            else:
                self._failed(queue, batch, error)
        self._refresh_after_s = 0.0
        self._refresh(now_s)

    def _answered(
        self, batches: list[tuple[PartitionQueue, Batch]], response: ProduceResponse, names: Mapping[bytes, str]
    ) -> None:
        now_s = asyncio.get_running_loop().time()
        rows = {
            (topic.name or names.get(topic.topic_id, ""), row.index): row
            for topic in response.responses
            for row in topic.partition_responses
        }
        stale, moved = False, list[tuple[str, int, int, int]]()
        for queue, batch in batches:
            row = rows.get(queue.partition)
            queue.on_the_wire -= 1
            if row is None:
                self._retry(queue, batch, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "no answer"), now_s)
                continue
            code = error_code(row.error_code)
            if code is ErrorCode.NONE or code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                self._written(queue, batch, row.base_offset, row.log_append_time_ms)
                continue
            error = KafkaError(code, f"{queue.partition}: {row.error_message or code.message}")
            stale = stale or code.refresh_metadata
            if row.current_leader.leader_id >= 0:
                moved.append((*queue.partition, row.current_leader.leader_id, row.current_leader.leader_epoch))
            if code is ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
                halves = batch.split()
                queue.replace(batch, halves)
                self._incomplete.discard(batch)
                self._incomplete.update(halves)
                self._active[queue.partition] = queue
            elif self._may_retry(queue, batch, code, row.log_start_offset):
                self._retry(queue, batch, error, now_s, maybe_written=code in _MAYBE_WRITTEN)
            else:
                self._failed(queue, batch, error)
        if moved:
            nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
            self._cluster.learn_leaders(moved, nodes)
        if stale:
            self._refresh_after_s = 0.0
            self._refresh(now_s)

    # --- what became of a batch

    def _written(self, queue: PartitionQueue, batch: Batch, base_offset: int, log_append_time_ms: int) -> None:
        queue.acked(batch, base_offset)
        batch.succeed(base_offset, log_append_time_ms)
        self._release(batch)
        self._resolve(queue)

    def _may_retry(self, queue: PartitionQueue, batch: Batch, code: ErrorCode, log_start_offset: int) -> bool:
        """Whether a batch is sent again; what is needed for that is done: a new epoch, a new beginning."""
        identity = self._identity
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self.settings.enable_idempotence:
            if batch.was_rewritten or not queue.is_first(batch):
                return True  # one before it was not written yet
            if not identity.is_transactional:
                self._begin_anew(queue)
                return True
            return False
        if code is ErrorCode.UNKNOWN_PRODUCER_ID and self.settings.enable_idempotence:
            if log_start_offset == -1 or batch.was_rewritten:
                return True
            if not identity.is_transactional:
                self._begin_anew(queue)
                return True
            if queue.last_acked_offset < log_start_offset:  # all it wrote was deleted, and the producer with it
                queue.begin_anew(identity.producer)
                return True
            return False
        return code.retriable

    def _begin_anew(self, queue: PartitionQueue) -> None:
        self._identity.bump()
        if self._identity.producer == NOBODY:
            self._to_rewrite.add(queue)  # epochs are used up: it begins again when there is a new id
            return
        queue.begin_anew(self._identity.producer)

    def _retry(
        self, queue: PartitionQueue, batch: Batch, error: Exception, now_s: float, *, maybe_written: bool = False
    ) -> None:
        batch.last_error = error
        batch.maybe_written = batch.maybe_written or maybe_written
        if batch.attempts >= self.settings.retries or self._identity.state is State.ABORTING:
            self._failed(queue, batch, error)
            return
        if now_s >= batch.created_s + self.settings.delivery_timeout_ms / 1000:
            self._give_up(queue, batch)
            return
        batch.not_before_s = now_s + self._backoff.delay_ms(batch.attempts, self._random()) / 1000
        batch.attempts += 1
        queue.put_back(batch)
        self._active[queue.partition] = queue

    def _failed(self, queue: PartitionQueue, batch: Batch, error: Exception) -> None:
        """A batch that will not be sent again."""
        identity = self._identity
        queue.given_up(batch)
        batch.fail(error)
        self._release(batch)
        if identity.is_transactional:
            code = error.code if isinstance(error, KafkaError) else None
            identity.needs_bump = identity.needs_bump or batch.has_sequence
            identity.fail(error, is_fatal=code in FATAL_TO_BATCHES or isinstance(error, UnsupportedVersionError))
        elif self.settings.enable_idempotence and batch.has_sequence:
            if batch.maybe_written:
                queue.is_unresolved = True
            else:
                self._begin_anew(queue)
        self._resolve(queue)

    def _resolve(self, queue: PartitionQueue) -> None:
        """When all others are answered for, what may have been written no longer matters: the next begins anew."""
        if queue.is_unresolved and not queue.in_flight:
            self._begin_anew(queue)
            queue.is_unresolved = False

    def _release(self, batch: Batch) -> None:
        self._incomplete.discard(batch)
        self._buffered -= batch.payload_size
        self._wake.set()

    # --- who the producer is

    async def _ask_producer_id(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_MAX_INT32)
        try:
            answer = await self._cluster.call(request, any_broker(), timeout_ms=self.settings.delivery_timeout_ms)
        except (KafkaError, OSError, UnsupportedVersionError) as error:
            for queue in list(self._active.values()):
                queue.open = None
                while queue.waiting:
                    self._failed(queue, queue.waiting.popleft(), error)
            await asyncio.sleep(self._backoff.first_ms / 1000)
            return
        self._identity.known(answer.producer_id, answer.producer_epoch)
        for queue in self._to_rewrite:
            queue.begin_anew(self._identity.producer)
        self._to_rewrite.clear()

    # --- transactions

    async def init_transactions(self) -> None:
        """Make the transactional id this producer's: what another one left open is aborted, and it is fenced."""
        await self._transactions().init()

    def begin_transaction(self) -> None:
        """What is sent from now on is seen together or not at all, by consumers that read what is committed."""
        self._transactions()
        if self._identity.state is State.NEW:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "init_transactions comes first")
        self._identity.begin()

    async def commit_transaction(self) -> None:
        """Write what waits, then commit. Raises what went wrong: then only `abort_transaction` is left, unless no answer
        came; then it may be committed, and this may be called again."""
        transactions, identity = self._transactions(), self._identity
        identity.check_usable()
        if identity.state not in (State.OPEN, State.COMMITTING):
            text = f"there is nothing to commit: the producer is {identity.state.value}"
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, text)
        await self.flush()
        identity.check_usable()
        identity.go(State.COMMITTING)
        await transactions.finish(committed=True)

    async def abort_transaction(self) -> None:
        """Drop what waits, and undo what was written."""
        transactions, identity = self._transactions(), self._identity
        if identity.state is State.FENCED:
            identity.check_usable()
        if identity.state not in (State.OPEN, State.FAILED, State.ABORTING):
            text = f"there is nothing to abort: the producer is {identity.state.value}"
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, text)
        identity.go(State.ABORTING)
        error = KafkaError(ErrorCode.INVALID_TXN_STATE, "the transaction was aborted before the record was written")
        for queue in self._queues.values():
            self._drop(queue, error)
        identity.new_partitions.clear()
        await self.flush()
        await transactions.finish(committed=False)

    async def send_offsets_to_transaction(
        self, offsets: Mapping[tuple[str, int], int | OffsetAndMetadata], group: str | GroupMetadata
    ) -> None:
        """Commit what a group has read together with what this transaction writes."""
        transactions, identity = self._transactions(), self._identity
        identity.check_usable()
        if identity.state is not State.OPEN:
            text = f"offsets need a transaction; the producer is {identity.state.value}"
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, text)
        if offsets:
            await transactions.send_offsets(
                offsets, group if isinstance(group, GroupMetadata) else GroupMetadata(group)
            )

    async def _add_partitions(self) -> None:
        """Before the first record of the transaction goes to a partition; what cannot be added fails, with its records."""
        error = await self._transactions().add_partitions()
        if error is None:
            return
        identity = self._identity
        identity.fail(error, is_fatal=isinstance(error, KafkaError) and error.code in FATAL)
        identity.new_partitions.clear()
        for queue in self._queues.values():
            if queue.partition not in identity.partitions:
                self._drop(queue, error)

    def _drop(self, queue: PartitionQueue, error: Exception) -> None:
        """Fail what waits for a partition."""
        queue.open = None
        while queue.waiting:
            batch = queue.waiting.popleft()
            self._identity.needs_bump = self._identity.needs_bump or batch.has_sequence
            queue.given_up(batch)
            batch.fail(error)
            self._release(batch)

    def _transactions(self) -> Transactions:
        if self._identity.transactional_id is None:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "transactions need a transactional.id")
        if self._coordinator is None:
            from barnabas.client.producing.transactions import Transactions  # noqa: PLC0415  (few producers have any)

            self._coordinator = Transactions(self._cluster, self.settings, self._identity, self._random)
        return self._coordinator


class _Turn:
    """Requests to a node are written in the order in which they were begun; a lock wakes those who wait in that order."""

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


class _Targets:
    """The partitions of a topic that can be written to, remembered as long as nothing changes."""

    __slots__ = ("available", "topic")

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        led = tuple(index for index, each in topic.partitions.items() if each.leader_id != NO_LEADER)
        self.available = led or tuple(topic.partitions)


_MAX_INT32 = 2**31 - 1
_MAYBE_WRITTEN = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
