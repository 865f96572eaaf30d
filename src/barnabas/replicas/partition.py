"""One partition on this broker: its log, its leadership and its high watermark.

Its one rule: records below the high watermark are on every in-sync replica and are never truncated; consumers read only
those. The log is opened on first use, because most partitions of a freshly started node are idle: in a thread by
`Replicas.opening`, which requests wait for, or at once by `log`. A disk error raises KAFKA_STORAGE_ERROR here;
`Replicas` takes the whole log dir offline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.batches import BatchHeader, InvalidBatch, ValidBatch, validate_in_slices
from barnabas.batches.format import Buffer
from barnabas.replicas.copying import append_copy
from barnabas.replicas.large_payloads import LargePayloads
from barnabas.replicas.leading import BrokerOf, Decided, Leading, Proposal
from barnabas.replicas.topic_settings import TopicSettings, jittered
from barnabas.replicas.traffic import TopicTraffic
from barnabas.replicated.decision import Producer
from barnabas.replicated.loop import Marker
from barnabas.slices import Slices
from barnabas.storage import AppendInfo, Log, LogConfig, StorageError, TopicPartition
from barnabas.storage.errors import UnexpectedOffsetError
from barnabas.storage.producers import AppendOrigin
from barnabas.wire import ErrorCode, KafkaError, Uuid

if TYPE_CHECKING:
    from barnabas.metadata.topics import Partition as PartitionState
    from barnabas.replicas.waiting import Waiting

Watcher = Callable[[int], None]


class Replication(NamedTuple):
    """What all partitions of a broker need for the replicas on other brokers.

    `propose` sends a change of the ISR to the controller. `broker_epoch` returns this broker's own.
    """

    broker_of: BrokerOf = lambda broker_id: None
    broker_epoch: Callable[[], int] = lambda: -1
    propose: Callable[[Partition, Proposal], None] = lambda partition, proposal: None
    max_lag_ms: Callable[[], int] = lambda: 30_000


ALONE = Replication()


class Partition:
    """A replica. `state` is its state in the metadata image: leader, epoch, replicas and in-sync replicas."""

    __slots__ = (
        "_began_leading",
        "_conditions",
        "_failed",
        "_jitter",
        "_leading",
        "_log",
        "_node_id",
        "_now_ms",
        "_open",
        "_opening",
        "_payloads",
        "_replication",
        "_rolled",
        "_settings",
        "_waiting",
        "_waiting_followers",
        "_watchers",
        "high_watermark",
        "is_leader",
        "is_offline",
        "is_opening",
        "leader_epoch",
        "log_dir",
        "partition_id",
        "state",
        "topic",
        "topic_id",
        "traffic",
    )

    def __init__(
        self,
        topic: str,
        partition_id: int,
        topic_id: Uuid,
        state: PartitionState,
        *,
        log_dir: str,
        node_id: int,
        settings: Callable[[str], TopicSettings],
        open_log: Callable[[Partition], Log],
        opening: Callable[[Partition], Awaitable[None] | None],
        failed: Callable[[Partition, StorageError], None],
        payloads: LargePayloads,
        rolled: Callable[[Partition, int], None],
        began_leading: Callable[[Partition], None],
        now_ms: Callable[[], int],
        replication: Replication = ALONE,
        jitter: float = 0.0,
        traffic: TopicTraffic | None = None,
    ) -> None:
        self.topic = topic
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.log_dir = log_dir
        self.traffic = TopicTraffic() if traffic is None else traffic  # of the whole topic
        self.high_watermark = 0
        self.is_offline = False
        self.is_opening = False  # a thread has its files
        self._node_id = node_id
        self._settings = settings
        self._open = open_log
        self._opening = opening
        self._failed = failed
        self._payloads = payloads
        self._rolled = rolled
        self._began_leading = began_leading
        self._now_ms = now_ms
        self._jitter = jitter
        self._log: Log | None = None
        self._watchers: tuple[Watcher, ...] = ()
        # Dicts from the first wait on, because most partitions are idle; they keep the order of the waits.
        self._waiting: dict[Waiting, None] | tuple[()] = ()
        self._waiting_followers: dict[Waiting, None] | tuple[()] = ()
        self._conditions: dict[asyncio.Future[None], Callable[[], bool]] | None = None  # who waits for what
        self._replication = replication
        self.state = state
        self.is_leader = state.leader == node_id
        self.leader_epoch = state.leader_epoch
        self._leading: Leading | None = None  # only for a leader with followers
        self._follow_state()

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition_id}"

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition_id)

    # --- the log

    @property
    def log(self) -> Log:
        """The log, opened on first use.

        Raises KAFKA_STORAGE_ERROR if its log dir is offline, and NOT_LEADER_OR_FOLLOWER while a thread opens it.
        """
        if self._log is None:
            self._open_log()
            assert self._log is not None
        return self._log

    @property
    def opened_log(self) -> Log | None:
        """The log, or None if it has not been opened."""
        return self._log

    def opening(self) -> Awaitable[None] | None:
        """Open the log in a thread. Return what to wait for, or None if it is open already or its log dir is offline."""
        return None if self._log is not None or self.is_offline else self._opening(self)

    async def open(self) -> None:
        """Open the log in a thread. If that fails, `log` raises afterwards."""
        opening = self.opening()
        if opening is not None:
            await opening

    @property
    def settings(self) -> TopicSettings:
        return self._settings(self.topic)

    @property
    def log_config(self) -> LogConfig:
        return jittered(self.settings, self._jitter)

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """The end (exclusive) of what read_committed consumers see."""
        return self.log.last_stable_offset(self.high_watermark)

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches from `offset` on, up to the end of the log."""
        return self.log.read(offset, max_bytes)

    async def load(self, offset: int, max_bytes: int) -> bytes:
        """Do the same as `read`, in a thread. A disk error takes the log dir offline and is raised."""
        try:
            return await asyncio.to_thread(self.log.read, offset, max_bytes)
        except StorageError as error:
            self.read_failed(error)
            raise

    def read_failed(self, error: StorageError) -> ErrorCode:
        """Handle an error of reading, and return its code.

        A corrupt log affects this partition alone and a deleted segment none. Any other error takes the log dir offline.
        """
        if error.is_of_dir and not self.is_offline:  # offline if it was deleted meanwhile
            self._failed(self, error)
        return error.code

    # --- appending as the leader

    def require_leader(self, current_leader_epoch: int = -1) -> None:
        """Raise Kafka's error for a request meant for the leader, in that epoch if one is passed, unless this is it."""
        if self.is_offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        if current_leader_epoch >= 0 and current_leader_epoch != self.leader_epoch:
            is_old = current_leader_epoch < self.leader_epoch
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH)
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def validate(self, data: Buffer, header: BatchHeader) -> Slices[ValidBatch | InvalidBatch]:
        """Check a client's batch by the rules of the topic, and return it as it is to be appended."""
        rules, now_ms = self.settings.rules, self._now_ms()
        name = str(self)
        ticket = self._payloads.ticket(data, header, rules, now_ms)
        if ticket is None:
            return (yield from validate_in_slices(data, rules, partition=name, now_ms=now_ms, header=header))
        try:
            yield ticket.open()
            return (
                yield from validate_in_slices(
                    data, rules, partition=name, now_ms=now_ms, header=header, payload=ticket.payload
                )
            )
        finally:
            ticket.leave()

    def append(self, valid: ValidBatch, guard: int | None = None) -> AppendInfo:
        """Append a client's batch that `validate` accepted. Raises KafkaError.

        The first batch of a transaction needs the guard that `start_verification` returned.
        """
        header, batch, _ = valid
        epoch = self.leader_epoch
        return self._append(lambda: self.log.append_as_leader(batch, epoch, header=header, verification_guard=guard))

    def append_records(self, batch: bytes, leader_epoch: int, guard: int | None = None) -> AppendInfo:
        """Append a coordinator's batch.

        Raises KafkaError unless this broker leads `leader_epoch`, in which it was decided.
        """
        self.require_leader(leader_epoch)
        self.require_in_sync()
        limit = self.settings.rules.max_message_bytes
        if len(batch) > limit:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE, f"a batch of {len(batch)} bytes exceeds max.message.bytes={limit}"
            )
        origin = AppendOrigin.COORDINATOR
        info = self._append(
            lambda: self.log.append_as_leader(batch, leader_epoch, origin=origin, verification_guard=guard)
        )
        self._flush_if_due()
        return info

    def append_marker(
        self, producer: Producer, marker: Marker, leader_epoch: int, transaction_version: int
    ) -> AppendInfo:
        """Write the marker that ends a producer's transaction in this partition."""
        self.require_leader(leader_epoch)
        self.require_in_sync()
        info = self._append(
            lambda: self.log.append_marker(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                commit=marker.is_commit,
                coordinator_epoch=marker.coordinator_epoch,
                leader_epoch=leader_epoch,
                now_ms=self._now_ms(),
                transaction_version=transaction_version,
                timestamp_type=self.settings.rules.timestamp_type,
            )
        )
        self._flush_if_due()
        return info

    def start_verification(self, producer: Producer, sequence: int, *, supports_epoch_bump: bool) -> int | None:
        """Return the guard to append with once the coordinator agrees, or None if the transaction is ongoing here."""
        self.require_leader()
        return self.log.maybe_start_transaction_verification(
            producer.producer_id, sequence, producer.producer_epoch, supports_epoch_bump
        )

    def _append(self, write: Callable[[], AppendInfo]) -> AppendInfo:
        try:
            info = write()
        except StorageError as error:
            self._failed(self, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from error
        if info.rolled is not None:
            self._rolled(self, info.rolled)
        if not info.is_duplicate:
            traffic = self.traffic
            traffic.messages_in += info.last_offset - info.base_offset + 1
            traffic.bytes_in += info.size_in_bytes
        self._advance(info.size_in_bytes)
        if self._waiting_followers:
            for waiting in tuple(self._waiting_followers):
                waiting.advanced(info.size_in_bytes)
        return info

    @property
    def is_flush_due(self) -> bool:
        """Whether `flush.messages` requires a flush now. Until it is done, the last records are not committed."""
        log = self.log
        return log.log_end_offset - log.recovery_point >= log.config.flush_messages

    def flushed(self) -> None:
        """Advance the high watermark over what was waiting for a flush."""
        if self._log is not None and self.is_leader:
            self._advance(0)

    def _flush_if_due(self) -> None:
        if self.is_flush_due:
            self._rolled(self, self.log.log_end_offset)

    @property
    def leading(self) -> Leading | None:
        """The followers of this partition, or None if this broker does not lead it or has the only replica."""
        return self._leading

    @property
    def isr(self) -> tuple[int, ...]:
        """The in-sync replicas, as the controller last decided."""
        return self.state.isr if self._leading is None else self._leading.isr

    def require_in_sync(self) -> None:
        """Raise NOT_ENOUGH_REPLICAS if fewer replicas are in sync than `min.insync.replicas`."""
        in_sync, least = len(self.isr), self._settings(self.topic).min_insync_replicas
        if in_sync < min(least, len(self.state.replicas)):
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, f"{self} has {in_sync} in-sync replicas and needs {least}")

    # --- appending as a follower

    def append_fetched(self, data: Buffer, leader_epoch: int) -> AppendInfo | None:
        """Append batches that were fetched from the leader in this epoch, as they are, and return None if there are none.

        The caller flushes them if `is_flush_due`, before it tells the leader that this replica has them.

        Raises BatchError, UnexpectedOffsetError, and KAFKA_STORAGE_ERROR after a disk error.
        """
        try:
            info = append_copy(self.log, data, max_leader_epoch=leader_epoch)
        except UnexpectedOffsetError:
            raise
        except StorageError as error:
            self._failed(self, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from error
        if info is not None:
            self.traffic.replication_bytes_in += info.size_in_bytes
            if info.rolled is not None:
                self._rolled(self, info.rolled)
        return info

    def follow(self, high_watermark: int, log_start_offset: int) -> None:
        """Follow the leader's high watermark and log start offset, as far as this log goes. Raises KafkaError."""
        log = self.log
        end = min(high_watermark, log.log_end_offset)
        if end > self.high_watermark:
            self._committed(log, end)
            if self._waiting:
                self.wake(0)
        if log.log_start_offset < log_start_offset <= self.high_watermark:
            try:
                log.advance_log_start_offset(log_start_offset)
            except StorageError as error:
                self._failed(self, error)
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from error

    # --- high watermark

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` with each new high watermark, until the returned function is called."""
        self._watchers = (*self._watchers, watcher)

        def stop() -> None:
            self._watchers = tuple(each for each in self._watchers if each is not watcher)

        return stop

    async def wait_committed(self, offset: int) -> None:
        """Wait until the high watermark is above `offset`. The caller sets the timeout.

        Raises NOT_LEADER_OR_FOLLOWER as soon as this broker no longer leads the partition, KAFKA_STORAGE_ERROR if its log
        dir fails, and NOT_ENOUGH_REPLICAS_AFTER_APPEND if it is committed but too few replicas are in sync by then.
        """
        await self._wait_until(lambda: self.high_watermark > offset)
        if self._leading is not None:
            least = min(self.settings.min_insync_replicas, self._leading.replica_count)
            if len(self._leading.maximal_isr) < least:
                raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def delete_records(self, offset: int) -> int:
        """Delete the records before the offset, and return it; -1 is the high watermark.

        Raises OFFSET_OUT_OF_RANGE if it is not committed, and POLICY_VIOLATION if records are only compacted.
        """
        log = self.log
        if log.config.compact and not log.config.delete:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        if offset == -1:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        log.advance_log_start_offset(offset)
        return offset

    async def wait_deleted(self, offset: int) -> None:
        """Wait until all replicas on live brokers begin at `offset` or later. The caller sets the timeout.

        Raises NOT_LEADER_OR_FOLLOWER and KAFKA_STORAGE_ERROR like `wait_committed`.
        """
        await self._wait_until(lambda: self.low_watermark >= offset)

    async def _wait_until(self, is_done: Callable[[], bool]) -> None:
        if is_done():
            return
        if not self.is_leader or self.is_offline:
            raise self._not_committed()
        done = asyncio.get_running_loop().create_future()
        if self._conditions is None:
            self._conditions = {}
        self._conditions[done] = is_done
        try:
            await done
        finally:
            self._conditions.pop(done, None)

    def _check_conditions(self) -> None:
        if self._conditions:
            for done, is_done in list(self._conditions.items()):
                if not done.done() and is_done():
                    done.set_result(None)

    def _not_committed(self) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR if self.is_offline else ErrorCode.NOT_LEADER_OR_FOLLOWER)

    @property
    def waiting_count(self) -> int:
        """The number of fetches that wait for this partition."""
        return len(self._waiting) + len(self._waiting_followers)

    def wait(self, waiting: Waiting) -> None:
        """Wake this fetch when more can be read: for a follower whatever is appended, for others what is committed."""
        if waiting.is_follower:
            if not isinstance(self._waiting_followers, dict):
                self._waiting_followers = {}
            self._waiting_followers[waiting] = None
        else:
            if not isinstance(self._waiting, dict):
                self._waiting = {}
            self._waiting[waiting] = None

    def stop_waiting(self, waiting: Waiting) -> None:
        for each in (self._waiting, self._waiting_followers):
            if isinstance(each, dict):
                each.pop(waiting, None)

    def fetched(self, replica_id: int, offset: int, log_start_offset: int = -1, broker_epoch: int = -1) -> None:
        """Record that a follower fetches from `offset`, and so has everything before it. Raises NOT_LEADER_OR_FOLLOWER.

        If that makes it ready for the ISR, it is proposed.
        """
        leading, log = self._leading, self._log
        if leading is None or log is None:
            return
        leading.fetched(replica_id, offset, log_start_offset, broker_epoch, log.log_end_offset, self._now_ms())
        if replica_id not in leading.isr:
            epoch_start = log.epochs.entries[-1].start_offset if log.epochs.entries else 0
            self._propose(
                leading.expand(replica_id, self.high_watermark, epoch_start, self._replication.broker_epoch())
            )
        self._advance(0)
        self._check_conditions()

    def shrink_isr(self) -> None:
        """Propose to remove followers from the ISR that were not caught up for `replica.lag.time.max.ms`."""
        leading, log = self._leading, self._log
        if leading is not None and log is not None and not self.is_offline:
            self._propose(leading.shrink(log.log_end_offset, self._now_ms(), self._replication.broker_epoch()))
            self._advance(0)  # a replica that is no longer caught up may have held it back

    def altered(self, proposal: Proposal, answer: Decided | ErrorCode) -> bool:
        """Follow the controller's answer to a proposal. Return whether to send it again."""
        if self._leading is None or self._log is None:
            return False
        is_again = self._leading.answered(proposal, answer)
        self._advance(0)
        return is_again

    def _propose(self, proposal: Proposal | None) -> None:
        if proposal is not None:
            self._replication.propose(self, proposal)

    @property
    def low_watermark(self) -> int:
        """The lowest log start offset among the replicas on live brokers."""
        own = self.log.log_start_offset
        return own if self._leading is None else self._leading.low_watermark(own)

    def _advance(self, appended_bytes: int) -> None:
        """Advance the high watermark to the lowest end offset among the in-sync replicas."""
        assert self._log is not None
        log = self._log
        end = min(log.log_end_offset, log.recovery_point + log.config.flush_messages - 1)
        leading = self._leading
        if leading is not None:
            if len(leading.isr) < min(self.settings.min_insync_replicas, leading.replica_count):
                return
            end = leading.high_watermark(end, self._now_ms())
        if end > self.high_watermark:
            self._committed(self._log, end)
            if self._waiting:
                self.wake(appended_bytes)

    def _committed(self, log: Log, high_watermark: int) -> None:
        self.high_watermark = high_watermark
        log.last_stable_offset(high_watermark)  # also drops ended transactions that are replicated everywhere
        for watcher in self._watchers:
            watcher(high_watermark)
        self._check_conditions()

    def wake(self, appended_bytes: int) -> None:
        """Wake the consumers' fetches that wait here, because more can be read."""
        for waiting in tuple(self._waiting):
            waiting.advanced(appended_bytes)

    # --- changes of the metadata

    def decided(self, state: PartitionState) -> None:
        """Apply a new state from the metadata: leader, epoch, replicas or in-sync replicas."""
        was_leader, old_epoch = self.is_leader, self.leader_epoch
        self.state = state
        self.is_leader = state.leader == self._node_id
        self.leader_epoch = state.leader_epoch
        if not was_leader:
            self._leading = None
        self._follow_state()
        if self._log is not None and self.is_leader and not self.is_offline:
            if self.leader_epoch != old_epoch or not was_leader:
                self._begin_leading(self._log)
                self._flush_if_due()  # of what it copied as a follower
            self._advance(0)
            self._check_conditions()
        if self.leader_epoch != old_epoch or self.is_leader != was_leader:
            self.wake_all()

    def _follow_state(self) -> None:
        if not self.is_leader or len(self.state.replicas) == 1:
            self._leading = None
        elif self._leading is not None:
            self._leading.decided(self.state, self._now_ms())
        else:
            replication = self._replication
            self._leading = Leading(
                self._node_id, self.state, replication.broker_of, replication.max_lag_ms(), self._now_ms()
            )

    def wake_all(self) -> None:
        """Wake everyone who waits, because the leader, the log or its log dir has changed."""
        for waiting in (*self._waiting, *self._waiting_followers):
            waiting.disturbed()
        if self._conditions and (self.is_offline or not self.is_leader):
            for done in list(self._conditions):
                if not done.done():
                    done.set_exception(self._not_committed())

    def fail(self) -> None:
        """Take the replica offline, because its log dir failed or it was removed."""
        self.is_offline = True
        if self._log is not None:
            self._log.abandon()
        self.wake_all()

    def swap_log(self, log: Log | None, log_dir: str) -> Log | None:
        """Replace the log and its log dir, and return the old log."""
        old, self._log, self.log_dir = self._log, log, log_dir
        return old

    def configure(self) -> None:
        """Apply changed topic settings to the open log."""
        if self._log is not None:
            self._log.configure(self.log_config)

    def _open_log(self) -> None:
        if self.is_offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        if self.is_opening:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"the log of {self} is being opened")
        try:
            self.use(self._open(self))
        except StorageError as error:
            self._failed(self, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from error

    def use(self, log: Log) -> None:
        """Use a log that was just opened. Raises StorageError."""
        self._log = log
        self.high_watermark = min(max(self.high_watermark, log.log_start_offset), log.log_end_offset)
        if self.is_leader:
            self._begin_leading(log)
            self._advance(0)
            self._flush_if_due()

    def _begin_leading(self, log: Log) -> None:
        if log.epochs.latest_epoch != self.leader_epoch:
            log.assign_epoch(self.leader_epoch, log.log_end_offset, later=True)
            self._began_leading(self)
