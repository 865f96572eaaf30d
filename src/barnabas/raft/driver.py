"""The asyncio shell around the core: performs disk and network I/O, and passes committed batches to listeners.

Its one rule: the core is called on the event loop, and one task executes its Ready values one at a time: first save the
quorum state, then write the log, then send requests and responses. A flush runs in a thread. Meanwhile the loop
continues and proposals accumulate, so that many of them share one write and one flush.

Committed batches are delivered by a separate task, in slices, so that a long replay does not make a leader time out. A
listener that raises stops the driver, because a wrong image is worse than none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from heapq import heappop, heappush
from itertools import takewhile
from random import Random
from typing import Any, NamedTuple, Protocol

from barnabas import wire
from barnabas.batches import BatchHeader, Record, iterate_batches, walk_records
from barnabas.raft import messages, requests
from barnabas.raft import records as raft_records
from barnabas.raft.core import RaftCore
from barnabas.raft.disk import Disk
from barnabas.raft.log import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch, RaftLog, SnapshotReader
from barnabas.raft.quorum_state import QuorumStateStore
from barnabas.raft.ready import DiskWork, Leadership, NotLeaderError, RaftConfig, Ready, Request, Response, Send
from barnabas.raft.voters import Node, VoterHistory, VoterSet
from barnabas.slices import Breather, in_slices
from barnabas.steps import Slices, stepwise
from barnabas.storage.errors import StorageError
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.records.control import VotersRecord

_log = logging.getLogger(__name__)

DELIVERY_BYTES = 1 << 20
MAX_KEPT_RECORDS = 100_000
MAX_SLEEP_S = 60.0
CLOCK_SLACK_MS = 1000
_LASTING_ERRORS = (ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


class Transport(Protocol):
    """Sends requests to other nodes, in the newest version that both sides support."""

    async def send(self, destination: Node, request: Message) -> Message:
        """Return the response. Raises OSError or KafkaError if there is none.

        If the other side supports no version that can carry the request, the response has the error
        UNSUPPORTED_VERSION.
        """
        ...


class CommittedBatch(NamedTuple):
    """Committed records with their offsets. A control batch has offsets but no records."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    records: Sequence[Message]


class Snapshot:
    """A snapshot to load. `records` decodes one batch at a time."""

    def __init__(self, reader: SnapshotReader) -> None:
        self._reader = reader
        self.snapshot_id = reader.snapshot_id
        _, first = next(raft_records.snapshot_batches(reader))
        self.last_contained_log_timestamp = raft_records.last_contained_log_timestamp(first)

    def records(self) -> Iterator[Message]:
        for header, found in raft_records.snapshot_batches(self._reader):
            if not header.is_control:
                yield from map(_message, found)


class Listener(Protocol):
    """A subscriber to the log. Its methods are called in order on the event loop, and must not block for long."""

    async def load_snapshot(self, snapshot: Snapshot) -> None:
        """Drop all state and load this snapshot; the log continues after it. May yield to the loop at any time."""
        ...

    def committed(self, batch: CommittedBatch) -> None: ...
    async def follow(self) -> None:
        """Do what takes longer with the batches that were passed to `committed`. May yield to the loop at any time.

        Meanwhile nothing is passed, and leadership is not gained; it may be lost.
        """
        ...

    def leadership_gained(self, epoch: int, end_offset: int) -> None:
        """This node leads, and everything before `end_offset` was passed to `committed`."""
        ...

    def leadership_lost(self, epoch: int) -> None:
        """This node no longer leads `epoch`; `leadership_gained` may not have been called.

        Its last records may be uncommitted.
        """
        ...

    def leader_changed(self, leader_id: int | None, epoch: int) -> None: ...


class Clock:
    """Wall clock time in milliseconds that never goes backwards, and keeps running if the wall clock is set back."""

    def __init__(self, wall_ms: Callable[[], int], monotonic_ms: Callable[[], int]) -> None:
        self._wall_ms = wall_ms
        self._monotonic_ms = monotonic_ms
        self._now_ms = wall_ms()
        self._last_ms = monotonic_ms()

    def __call__(self) -> int:
        monotonic_ms = self._monotonic_ms()
        self._now_ms += monotonic_ms - self._last_ms
        self._last_ms = monotonic_ms
        wall_ms = self._wall_ms()
        if wall_ms > self._now_ms + CLOCK_SLACK_MS:  # the machine slept, or the clock was set forward
            self._now_ms = wall_ms
        return self._now_ms


class _Waiter(NamedTuple):
    offset: int
    order: int
    future: asyncio.Future[None]


class _Subscription:
    __slots__ = ("leader_epoch", "listener", "news", "next_offset", "task", "told")

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.next_offset = -1
        self.leader_epoch = -1  # epoch for which leadership_gained was called
        self.told: Leadership | None = None
        self.news = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class RaftDriver:
    """A running replica of the metadata log."""

    def __init__(
        self,
        config: RaftConfig,
        log: RaftLog,
        store: QuorumStateStore,
        transport: Transport,
        *,
        clock: Callable[[], int],
        random: Random,
        static_voters: VoterSet | None = None,
        check_voters: Callable[[VoterHistory], None] = lambda voters: None,
    ) -> None:
        """`check_voters` is called in `start` with the voters in the log, before anything is written. It may raise."""
        self.config = config
        self._log = log
        self._store = store
        self._transport = transport
        self._static_voters = VoterSet() if static_voters is None else static_voters
        self._check_voters = check_voters
        self._clock = clock
        self._random = random
        self._disk = Disk(log, self._static_voters)
        self._executor = ThreadPoolExecutor(2, "raft-disk")  # one thread to flush the log, one to save votes
        self._wake = asyncio.Event()
        self._tasks: dict[asyncio.Task[None], None] = {}  # in order
        self._run_task: asyncio.Task[None] | None = None
        self._flush_task: asyncio.Task[None] | None = None
        self._trims: list[OffsetAndEpoch] = []
        self._answers: dict[int, asyncio.Future[Message]] = {}
        self._next_request_id = 0
        self._waiting: list[_Waiter] = []  # a heap
        self._waiters = 0
        self._subscriptions: list[_Subscription] = []
        self._kept: dict[int, CommittedBatch] = {}
        self._kept_records = 0
        self._high_watermark = 0
        self._leadership = Leadership(None, 0)
        self._failure: BaseException | None = None
        self._is_stopped = False
        self._refusing: set[tuple[str, int]] = set()  # nodes whose lasting error was logged
        self._closed: asyncio.Future[None] | None = None
        self._core: RaftCore | None = None

    # --- start and stop ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Load the log and join the quorum. A single voter is the leader when this returns."""
        self._closed = asyncio.get_running_loop().create_future()
        self._closed.add_done_callback(_look_at)
        view, voters = raft_records.load(self._log, self._static_voters)
        self._check_voters(voters)
        now_ms = self._clock()
        self._core = RaftCore(self.config, view, voters, self._store.load(), now_ms, self._random)
        self._high_watermark = self._core.high_watermark
        await self._carry_out()
        self._run_task = asyncio.create_task(self._run(), name="raft")
        for subscription in self._subscriptions:
            self._follow(subscription)

    async def stop(self, timeout_ms: int = 5000) -> None:
        """Stop. A leader with other voters resigns first and waits until another one leads. The log is flushed."""
        if self._core is None or self._is_stopped:
            return
        if self._run_task is not None and not self._run_task.done():
            self._core.shutdown(self._clock(), timeout_ms)
            self._wake.set()
            await asyncio.wait([self._run_task])
        self._is_stopped = True
        if self._flush_task is not None:
            await asyncio.wait([self._flush_task])
        await self._cancel_all()
        try:
            if self._failure is None:
                await asyncio.get_running_loop().run_in_executor(self._executor, self._log.flush)
        finally:
            self._disk.close()
            self._executor.shutdown()
            if self._closed is not None and not self._closed.done():
                self._closed.set_result(None)

    async def drop(self) -> None:
        """Stop at once: nothing more is written, sent or answered, as if the process had died."""
        if self._core is None or self._is_stopped:
            return
        self._is_stopped = True
        for task in (self._run_task, self._flush_task):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        await self._cancel_all()
        self._disk.close()
        self._executor.shutdown()
        if self._closed is not None and not self._closed.done():
            self._closed.set_result(None)

    async def wait_closed(self) -> None:
        """Wait until the driver is stopped. Raises the error that ended it, if any."""
        assert self._closed is not None, "the driver was not started"
        await asyncio.shield(self._closed)

    def _fail(self, error: BaseException) -> None:
        """Stop after a fatal error of this node: nothing more is written, sent or answered."""
        if self._failure is not None:
            return
        self._failure = error
        _log.critical("stopping raft: %s", error, exc_info=None if isinstance(error, StorageError) else error)
        if self._closed is not None and not self._closed.done():
            self._closed.set_exception(error)
        self._fail_waiting(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the metadata log of this node failed: {error}"))
        self._wake.set()

    def _fail_waiting(self, error: KafkaError) -> None:
        futures: list[asyncio.Future[Any]] = [*self._answers.values(), *(waiter.future for waiter in self._waiting)]
        self._waiting.clear()
        self._answers.clear()
        for future in futures:
            if not future.done():
                future.set_exception(error)
                _look_at(future)

    async def _cancel_all(self) -> None:
        gone = KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "the node is stopping")
        self._fail_waiting(gone)
        tasks = [*self._tasks, *(each.task for each in self._subscriptions if each.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _check_running(self) -> RaftCore:
        if self._core is None or self._is_stopped or self._failure is not None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "the metadata log of this node is not running")
        return self._core

    # --- state -------------------------------------------------------------------------------------------------------

    @property
    def is_started(self) -> bool:
        return self._core is not None

    @property
    def core(self) -> RaftCore:
        assert self._core is not None, "the driver was not started"
        return self._core

    @property
    def is_leader(self) -> bool:
        return self._core is not None and self._failure is None and self._core.is_leader

    @property
    def epoch(self) -> int:
        return self.core.epoch

    @property
    def leader_id(self) -> int | None:
        return self.core.leadership.leader_id

    @property
    def high_watermark(self) -> int:
        """The end offset (exclusive) of committed records."""
        return self._high_watermark

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self.core.next_offset

    def voters_at(self, end_offset: int) -> tuple[int, VotersRecord | None]:
        """Return the kraft.version and the voters that a snapshot ending at `end_offset` must contain."""
        version, voters = self.core.voters.at(end_offset)
        return version, None if voters is None or version == 0 else voters.to_record()

    # --- leader ------------------------------------------------------------------------------------------------------

    def append(self, epoch: int, records: Sequence[tuple[Message, int]]) -> Slices[int]:
        """Append records, each with its version, in one batch, and return the offset of the last one.

        They are encoded in slices, and then appended in one step.

        Raises NotLeaderError unless this node leads `epoch`. They are committed once `wait_committed` returns.
        """
        self._check_running()
        values: list[bytes] = []
        for some in stepwise(records):
            values += [wire.encode_record(record, version) for record, version in some]
            if len(values) < len(records):
                yield
        core = self._check_running()
        now_ms = self._clock()
        last_offset = core.propose(now_ms, epoch, values)
        self._keep(CommittedBatch(last_offset - len(records) + 1, last_offset, epoch, now_ms, [r for r, _ in records]))
        self._wake.set()
        return last_offset

    def raise_kraft_version(self, epoch: int) -> None:
        """Upgrade to kraft.version 1 by appending the voter set.

        Raises NotLeaderError, or KafkaError if it is not possible.
        """
        self._check_running().raise_kraft_version(self._clock(), epoch)
        self._wake.set()

    def _keep(self, batch: CommittedBatch) -> None:
        """Cache records that this node appended, up to a limit, so that they need not be read and decoded again."""
        if not self._subscriptions:
            return
        if self._kept_records + len(batch.records) > MAX_KEPT_RECORDS:
            self._forget_kept()
        else:
            self._kept[batch.base_offset] = batch
            self._kept_records += len(batch.records)

    def _forget_kept(self, end_offset: int | None = None) -> None:
        """Drop all cached batches, or those before an offset."""
        if end_offset is None:
            self._kept.clear()
            self._kept_records = 0
            return
        for batch in list(takewhile(lambda kept: kept.last_offset < end_offset, self._kept.values())):
            del self._kept[batch.base_offset]
            self._kept_records -= len(batch.records)

    async def wait_committed(self, offset: int) -> None:
        """Wait until the record at this offset is committed and was delivered to all listeners.

        Raises NotLeaderError if this node loses leadership first. Whether the record will be committed is then unknown.
        """
        core = self._check_running()
        if offset < self._delivered_offset():
            return
        if not core.is_leader:
            raise NotLeaderError(f"node {self.config.node_id} is not the leader")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters += 1
        heappush(self._waiting, _Waiter(offset, self._waiters, future))
        await future

    def resign(self, epoch: int) -> None:
        """Give up leadership of this epoch."""
        self._check_running().resign(self._clock(), epoch)
        self._wake.set()

    def snapshot_created(self, snapshot_id: OffsetAndEpoch) -> None:
        """Register a new snapshot of committed state in the directory of the log."""
        self._check_running().on_snapshot_created(snapshot_id)

    def trim(self, snapshot_id: OffsetAndEpoch) -> None:
        """Delete the log before the end of this snapshot, as soon as no flush is in progress."""
        self._check_running()
        self._trims.append(snapshot_id)
        self._wake.set()

    # --- any replica -------------------------------------------------------------------------------------------------

    async def handle(self, message: Message, version: int, listener_name: str) -> Message:
        """Handle a request of the quorum protocol and return the response.

        These are Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch of the metadata log (which may wait up to its max wait
        time), FetchSnapshot, DescribeQuorum, AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter.
        """
        core = self._check_running()
        if not requests.is_answered(message):
            raise ValueError(f"{type(message).__name__} is not a request of the quorum protocol")
        self._next_request_id += 1
        request_id = self._next_request_id
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._answers[request_id] = future
        try:
            self._step(Request(request_id, message, version, listener_name))
            return await future
        finally:
            if self._answers.pop(request_id, None) is not None:
                core.cancel(request_id)  # the caller was cancelled

    def subscribe(self, listener: Listener) -> None:
        """Deliver everything committed to this listener, starting with the latest snapshot or the start of the log."""
        subscription = _Subscription(listener)
        self._subscriptions.append(subscription)
        if self._run_task is not None:
            self._follow(subscription)

    # --- event loop --------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        core = self.core
        try:
            while self._failure is None:
                await self._carry_out()
                if core.is_shut_down(self._clock()):
                    return
                await self._sleep()
                core.tick(self._clock())
        except Exception as error:
            self._fail(error)
        finally:
            self._tell_leadership(Leadership(None, core.epoch))

    async def _sleep(self) -> None:
        """Wait until there is something to do, or until the deadline of the core."""
        delay_s = min(max(self.core.deadline_ms() - self._clock(), 0) / 1000, MAX_SLEEP_S)
        timer = asyncio.get_running_loop().call_later(delay_s, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()
            self._wake.clear()

    async def _carry_out(self) -> None:
        """Execute the actions of the core until there are none."""
        core = self.core
        while self._failure is None:
            # Answers that are ready read the log as it was when they were decided.
            if self._trims and self._flush_task is None and not core.has_answers:
                self._trim()
            ready = core.ready()
            if ready.quorum_state is not None:
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(self._executor, self._store.save, ready.quorum_state)
            if ready.disk is not None:
                self._write(ready.disk)
            for send in ready.sends:
                self._spawn(self._exchange(send))
            self._answer(ready)
            if ready.leadership is not None:
                self._tell_leadership(ready.leadership)
            if ready.high_watermark is not None:
                self._high_watermark = ready.high_watermark
                self._tell_progress()
            if ready.quorum_state is None and ready.disk is None and not ready.sends and not ready.answers:
                return

    def _write(self, work: DiskWork) -> None:
        core = self.core
        voters = self._disk.write(work)
        if voters is not None:
            assert work.chunk is not None
            core.on_snapshot_installed(self._clock(), work.chunk.snapshot_id, voters)
            return
        core.on_appended(self._clock())
        self._flush_task = asyncio.create_task(self._flush(), name="raft-flush")

    async def _flush(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._executor, self._log.flush)
            self._flush_task = None
            self.core.on_flushed(self._clock())
            self._wake.set()
        except Exception as error:
            self._flush_task = None
            self._fail(error)

    def _trim(self) -> None:
        for snapshot_id in self._trims:
            self._log.trim(snapshot_id)
            self.core.on_trimmed(snapshot_id)
        self._trims.clear()

    def _answer(self, ready: Ready) -> None:
        for answer in ready.answers:
            future = self._answers.pop(answer.request_id, None)
            if future is not None and not future.done():
                future.set_result(self._disk.fill(answer))

    async def _exchange(self, send: Send) -> None:
        response: Message | None = None
        try:
            async with asyncio.timeout(self.config.request_timeout_ms / 1000):
                response = await self._transport.send(send.destination, send.message)
        except (OSError, TimeoutError, KafkaError, wire.MalformedError, wire.UnsupportedVersionError) as error:
            _log.debug("no response of %s to %s: %s", send.destination, type(send.message).__name__, error)
        except Exception:
            _log.exception("sending %s to %s failed unexpectedly", type(send.message).__name__, send.destination)
        self._warn_of_other_cluster(send, response)
        if self._failure is None:
            self._step(Response(send.correlation_id, response))

    def _warn_of_other_cluster(self, send: Send, response: Message | None) -> None:
        """Log an error that a retry will not mend, once for each node."""
        code = getattr(response, "error_code", 0)
        address = send.destination.host, send.destination.port
        if code in _LASTING_ERRORS and address not in self._refusing:
            self._refusing.add(address)
            why = "its settings or log dirs are those of another cluster"
            if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                why = "add the principal of this node to super.users there: ACLs are not known before there is a leader"
            text = "node %d at %s:%d refuses %s of this node: %s; %s"
            _log.error(text, *send.destination, type(send.message).__name__, ErrorCode(code).name, why)
        elif response is not None and not code and not self._names_twin(send, response):
            self._refusing.discard(address)

    def _names_twin(self, send: Send, response: Message) -> bool:
        """Return whether the response names a leader with this node's id that is not this node, and log it once."""
        partition = messages.fetched_partition(response) if isinstance(response, FetchResponse) else None
        if partition is None or partition.current_leader.leader_id != self.config.node_id:
            return False
        epoch = partition.current_leader.leader_epoch
        address = send.destination.host, send.destination.port
        if epoch > self.core.epoch and address not in self._refusing:
            self._refusing.add(address)
            text = (
                "another node with the id %d of this node leads the metadata quorum in epoch %d: node.id must be unique"
            )
            _log.error(text, self.config.node_id, epoch)
        return epoch > self.core.epoch

    def _step(self, message: Request | Response) -> None:
        """Pass a message to the core. An exception there is fatal."""
        try:
            self.core.step(self._clock(), message)
        except Exception as error:
            self._fail(error)
        self._wake.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    # --- delivery to listeners ---------------------------------------------------------------------------------------

    def _tell_leadership(self, leadership: Leadership) -> None:
        """Report a loss of leadership at once, and a gain once the listener has received everything before it."""
        before, self._leadership = self._leadership, leadership
        if leadership != before:
            _log.info("the leader of epoch %d is %s", leadership.epoch, leadership.leader_id)
        if before.start_offset is not None and leadership != before:
            self._forget_kept()
            waiting, self._waiting = self._waiting, []
            for waiter in waiting:
                if not waiter.future.done():
                    waiter.future.set_exception(NotLeaderError(f"node {self.config.node_id} is no longer the leader"))
                    _look_at(waiter.future)
            for subscription in self._subscriptions:
                subscription.leader_epoch = -1
                self._call(subscription.listener.leadership_lost, before.epoch)
        self._tell_progress()

    def _tell_progress(self) -> None:
        for subscription in self._subscriptions:
            subscription.news.set()
        self._resolve_waiting()

    def _delivered_offset(self) -> int:
        return min((each.next_offset for each in self._subscriptions), default=self._high_watermark)

    def _resolve_waiting(self) -> None:
        delivered_offset = self._delivered_offset()
        while self._waiting and self._waiting[0].offset < delivered_offset:
            future = heappop(self._waiting).future
            if not future.done():
                future.set_result(None)

    def _call(self, callback: Callable[..., None], *arguments: Any) -> None:
        try:
            callback(*arguments)
        except Exception as error:
            self._fail(error)

    def _follow(self, subscription: _Subscription) -> None:
        subscription.task = asyncio.create_task(self._deliver(subscription), name="raft-listener")

    async def _deliver(self, subscription: _Subscription) -> None:
        try:
            while self._failure is None:
                await self._catch_up(subscription)
                self._tell_leader(subscription)
                await subscription.news.wait()
                subscription.news.clear()
        except Exception as error:
            self._fail(error)

    async def _catch_up(self, subscription: _Subscription) -> None:
        others_first = Breather()
        while subscription.next_offset < self._high_watermark and self._failure is None:
            if subscription.next_offset < max(self._log.start_offset, 0):
                await self._load_snapshot(subscription)
                continue
            kept = self._kept.get(subscription.next_offset)
            if kept is not None and kept.last_offset < self._high_watermark:
                self._hand(subscription, kept)
                await subscription.listener.follow()
            else:
                for decoding in self._read(subscription.next_offset):
                    self._hand(subscription, await in_slices(decoding))
                    await others_first()
                await subscription.listener.follow()
            await others_first()

    async def _load_snapshot(self, subscription: _Subscription) -> None:
        """Load the latest snapshot, at the start and whenever the log no longer reaches back far enough."""
        snapshot_ids = [each for each in self._log.snapshot_ids() if each.offset <= self._high_watermark]
        if not snapshot_ids or snapshot_ids[-1] == BOOTSTRAP_SNAPSHOT_ID:
            subscription.next_offset = self._log.start_offset
            return
        reader = self._log.open_snapshot(snapshot_ids[-1])
        assert reader is not None
        await subscription.listener.load_snapshot(Snapshot(reader))
        subscription.next_offset = reader.snapshot_id.offset
        self._resolve_waiting()

    def _hand(self, subscription: _Subscription, batch: CommittedBatch) -> None:
        subscription.listener.committed(batch)
        subscription.next_offset = batch.last_offset + 1
        self._forget_kept(self._delivered_offset())
        self._resolve_waiting()

    def _read(self, offset: int) -> Iterator[Slices[CommittedBatch]]:
        """Read the next committed batches from disk, up to the first cached one. The caller decodes them."""
        first_kept = min(next(iter(self._kept), self._high_watermark), self._high_watermark)
        data = self._log.read(offset, DELIVERY_BYTES, first_kept) if first_kept > offset else b""
        data = data or self._log.read(offset, DELIVERY_BYTES, self._high_watermark)
        if not data:
            raise RuntimeError(
                f"the log has no batch at offset {offset}, but is committed up to {self._high_watermark}"
            )
        return (_committed(data, position, header, offset) for position, header in iterate_batches(data))

    def _tell_leader(self, subscription: _Subscription) -> None:
        leadership = self._leadership
        if leadership != subscription.told:
            subscription.told = leadership
            subscription.listener.leader_changed(leadership.leader_id, leadership.epoch)
        start_offset = leadership.start_offset
        if (
            start_offset is not None
            and subscription.leader_epoch != leadership.epoch
            and subscription.next_offset > start_offset
        ):
            subscription.leader_epoch = leadership.epoch
            subscription.listener.leadership_gained(leadership.epoch, subscription.next_offset)


def _committed(data: bytes, position: int, header: BatchHeader, from_offset: int) -> Slices[CommittedBatch]:
    """Convert a batch for listeners, without records before `from_offset`."""
    messages: list[Message] = []
    for record in () if header.is_control else walk_records(data, position, header):
        if record.offset >= from_offset:
            messages.append(_message(record))
            yield
    return CommittedBatch(
        max(header.base_offset, from_offset),
        header.last_offset,
        header.partition_leader_epoch,
        header.max_timestamp,
        messages,
    )


def _message(record: Record) -> Message:
    message: Message = wire.decode_record(record.value or b"").record
    return message


def _look_at(future: asyncio.Future[Any]) -> None:
    """Retrieve the exception of a future, so that asyncio does not warn about it."""
    if future.done() and not future.cancelled():
        future.exception()
