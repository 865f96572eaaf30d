"""A share partition on the broker that leads its partition: loads its state, stores changes of it, and releases expired locks.

Its one rule: a change that a member asked for is made, and answered, only after it was stored. Changes are stored one after
another; those that come meanwhile are stored together in the next write. A leader that is fenced, or no longer leads, changes
nothing more: the next one loads what was stored.

What members may do is decided by `SharePartition`, which knows no clock; who is served next by `fetching`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from barnabas.config.validators import duration_ms
from barnabas.replicas.share.in_flight import RecordState, StateBatch, Write
from barnabas.replicas.share.sessions import PartitionKey
from barnabas.replicas.share.share_partition import Acknowledged, Limits, SharePartition
from barnabas.share_state.settings import ShareSettings
from barnabas.slices import in_slices
from barnabas.steps import Slices
from barnabas.storage import StorageError
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from barnabas.wire.messages.write_share_group_state import WriteShareGroupStateRequest

if TYPE_CHECKING:
    from barnabas.replicas.partition import Partition
    from barnabas.replicated.scheduler import Handle
    from barnabas.share_state.persister import Persister

_log = logging.getLogger(__name__)

UNKNOWN_OFFSET: Final = -1
SERVER_ERROR: Final = "Unable to complete operation due to server error."

# What Kafka tells members about an error of the share coordinator.
_COORDINATOR_MOVES: Final = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
_FENCED: Final = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH})
_AS_THEY_ARE: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
_OF_THIS_NODE: Final = frozenset({ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_VERSION})

# After these, the state on this broker is not the current one.
ENDS_LEADING: Final = frozenset(
    {
        *(ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_STATE_EPOCH),
        *(ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    }
)


def error_of_coordinator(code: ErrorCode, message: str | None) -> KafkaError:
    """Return what a member is told about an error of the share coordinator."""
    if code in _COORDINATOR_MOVES:
        return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
    if code in _FENCED:
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, message)
    if code in _AS_THEY_ARE:
        return KafkaError(code, message)
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, SERVER_ERROR if code in _OF_THIS_NODE else message)


class ShareKey(NamedTuple):
    """A share partition: a partition of a topic, and the group that shares it."""

    group_id: str
    topic_id: Any
    partition: int

    @property
    def of_topic(self) -> PartitionKey:
        return PartitionKey(self.topic_id, self.partition)


class Waiter(Protocol):
    """A fetch that waits."""

    def wake(self) -> None: ...


class Counters:
    """Counters of all share partitions of a broker."""

    __slots__ = ("acknowledged", "expired_locks", "failed_loads", "failed_writes", "given_up", "loads", "writes")

    def __init__(self) -> None:
        self.loads = self.failed_loads = self.writes = self.failed_writes = self.expired_locks = self.given_up = 0
        self.acknowledged: dict[int, int] = {}  # records by type


class Shell(NamedTuple):
    """What all share partitions of a broker need. `call_later` takes milliseconds; `now_ms` is the time of day."""

    persister: Persister
    settings: Callable[[str], ShareSettings]
    monotonic_ms: Callable[[], int]
    now_ms: Callable[[], int]
    call_later: Callable[[int, Callable[[], None]], Handle]
    ended: Callable[[LedSharePartition], None]
    counters: Counters


class _Round:
    """Changes that are stored together."""

    __slots__ = ("batches", "stored", "writes")

    def __init__(self) -> None:
        self.batches: list[StateBatch] = []
        self.writes: list[Write] = []
        self.stored: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()


class LedSharePartition:
    """A share partition that this broker leads. `state` is None until it is loaded.

    `failure` says why that was impossible. One fetch at a time reads it: `take` and `give_back`.
    """

    def __init__(self, key: ShareKey, replica: Partition, shell: Shell) -> None:
        self.key = key
        self.replica = replica
        self.leader_epoch = replica.leader_epoch
        self.state: SharePartition | None = None
        self.failure: KafkaError | None = None
        self.is_ended = False
        self._shell = shell
        self._is_taken = False
        self._waiting: dict[Waiter, None] = {}  # in the order in which they came
        self._in_turn: dict[Waiter, None] = {}  # those that found it taken
        self._loading: asyncio.Task[None] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._next: _Round | None = None
        self._timer: Handle | None = None
        self._due_ms = 0

    def __str__(self) -> str:
        return f"{self.key.group_id}:{self.replica}"

    @property
    def is_active(self) -> bool:
        return self.state is not None and not self.is_ended

    @property
    def leads(self) -> bool:
        """Whether the replica is still that of the leader."""
        return self.replica.is_leader and not self.replica.is_offline

    @property
    def is_busy(self) -> bool:
        """Whether it is read, or something is being stored."""
        return self._is_taken or self._writing is not None

    @property
    def limits(self) -> Limits:
        settings = self._shell.settings(self.key.group_id)
        return Limits(
            settings.delivery_count_limit,
            settings.partition_max_record_locks,
            settings.record_lock_duration_ms,
            settings.renew_acknowledge_enable,
        )

    def monotonic_ms(self) -> int:
        return self._shell.monotonic_ms()

    # --- loading

    def load(self) -> None:
        """Begin to load the state, if that has not begun."""
        if self._loading is None:
            self._loading = asyncio.get_running_loop().create_task(self._load())

    async def _load(self) -> None:
        self._shell.counters.loads += 1
        try:
            state = await self._loaded()
        except KafkaError as error:
            self.failure = error
        except StorageError as error:
            self.failure = KafkaError(error.code, str(error))
        except ValueError as error:
            _log.error("the stored state of the share partition %s is not possible: %s", self, error)
            self.failure = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Failed to load the share partition {self}")
        else:
            if not self.is_ended:
                self.state = state
        if self.failure is not None:
            self._shell.counters.failed_loads += 1
            _log.debug("the state of the share partition %s was not loaded: %s", self, self.failure)
            self.end()
        self.wake()

    async def _loaded(self) -> SharePartition:
        kind, key = ReadShareGroupStateRequest, self.key
        asked = kind.PartitionData(partition=key.partition, leader_epoch=self.leader_epoch)
        topics = [kind.ReadStateData(topic_id=key.topic_id, partitions=[asked])]
        response = await self._shell.persister.read(kind(group_id=key.group_id, topics=topics))
        row = response.results[0].partitions[0]
        if row.error_code:
            raise error_of_coordinator(ErrorCode(row.error_code), row.error_message)
        start_offset = row.start_offset
        if start_offset == UNKNOWN_OFFSET:
            start_offset = await self._first_offset()
        stored = [
            StateBatch(each.first_offset, each.last_offset, RecordState(each.delivery_state), each.delivery_count)
            for each in row.state_batches
        ]
        return SharePartition(start_offset, row.state_epoch, stored)

    async def _first_offset(self) -> int:
        """Return where a group begins that has consumed nothing. Raises KafkaError."""
        await self.replica.open()
        self.replica.require_leader()
        log = self.replica.log
        reset = self._shell.settings(self.key.group_id).auto_offset_reset
        if reset == "earliest":
            return log.log_start_offset
        if reset == "latest":
            return self.replica.high_watermark
        duration = duration_ms(reset.removeprefix("by_duration:").upper())
        assert duration is not None
        timestamp = self._shell.now_ms() - duration
        found = await asyncio.to_thread(log.offset_for_timestamp, timestamp)
        if found is None or found.offset >= self.replica.high_watermark:
            name = f"{self.key.topic_id}:{self.replica}"
            text = f"Offset for timestamp {timestamp} not found for topic partition: {name}"
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, text)
        return found.offset

    def end(self) -> None:
        """Change nothing more, because another broker leads the partition now, or nobody uses it."""
        if not self.is_ended:
            self.is_ended = True
            if self._timer is not None:
                self._timer.cancel()
            self._shell.ended(self)
            self.wake()

    # --- members

    async def acknowledge(self, member_id: str, acknowledged: Sequence[Acknowledged]) -> None:
        """Change the states of records of a member, and store that. Raises KafkaError."""
        if self.state is None:
            raise KafkaError(
                ErrorCode.INVALID_RECORD_STATE,
                "Batch record not found. The request batch offsets are not found in the cache.",
            )
        limits = self.limits
        acknowledging = self.state.acknowledge(member_id, acknowledged, limits, self._shell.monotonic_ms())
        await self._stored(await in_slices(acknowledging))

    async def release(self, member_id: str) -> None:
        """Make all records of a member available again, and store that. Raises KafkaError."""
        if self.state is not None and not self.is_ended:
            await self._stored(self.state.release(member_id, self.limits))

    async def _stored(self, write: Write | None) -> None:
        if write is None:
            return
        error = await asyncio.shield(self._store(write.batches, write))
        if error is not None:
            raise error

    # --- storing

    def _store(self, batches: Iterable[StateBatch], write: Write | None = None) -> asyncio.Future[KafkaError | None]:
        if self._next is None:
            self._next = _Round()
        made = self._next
        made.batches += batches
        if write is not None:
            made.writes.append(write)
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write_all())
        return made.stored

    async def _write_all(self) -> None:
        try:
            while (made := self._next) is not None:
                self._next = None
                error: KafkaError | None = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
                try:
                    error = await self._write(made.batches)
                finally:
                    await self._written(made, error)
        finally:
            self._writing = None

    async def _write(self, batches: list[StateBatch]) -> KafkaError | None:
        assert self.state is not None
        kind, key, state = WriteShareGroupStateRequest, self.key, self.state
        self._shell.counters.writes += 1
        rows = await in_slices(_rows(sorted(batches)))
        asked = kind.PartitionData(
            partition=key.partition,
            state_epoch=state.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
            state_batches=rows,
        )
        topics = [kind.WriteStateData(topic_id=key.topic_id, partitions=[asked])]
        response = await self._shell.persister.write(kind(group_id=key.group_id, topics=topics))
        row = response.results[0].partitions[0]
        return None if not row.error_code else error_of_coordinator(ErrorCode(row.error_code), row.error_message)

    async def _written(self, made: _Round, error: KafkaError | None) -> None:
        assert self.state is not None
        for write in made.writes:
            if error is None:
                self._given_up(write.given_up)
                await in_slices(self.state.commit(write))
            else:
                await in_slices(self.state.roll_back(write))
        self.state.advance()
        if not made.stored.done():
            made.stored.set_result(error)
        if error is not None:
            self._shell.counters.failed_writes += 1
            _log.info("a change of the share partition %s was not stored: %s", self, error)
            if error.code in ENDS_LEADING:
                self.end()
            else:
                self.expire_at(self._shell.monotonic_ms())  # a lock may have expired meanwhile
        self.wake()

    # --- locks

    def expire_at(self, due_ms: int) -> None:
        """Look for expired locks at this time, or earlier."""
        if self.is_ended or (self._timer is not None and self._due_ms <= due_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due_ms = due_ms
        self._timer = self._shell.call_later(max(0, due_ms - self._shell.monotonic_ms()), self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self.state is None or self.is_ended:
            return
        released = self.state.expire(self.limits, self._shell.monotonic_ms())
        if released:
            self._shell.counters.expired_locks += _count(released)
            start_offset = self.state.start_offset
            self._given_up([each for each in released if each.state.is_terminal and each.last_offset >= start_offset])
            self._store(released)
            self.wake()
        deadline_ms = self.state.next_deadline_ms
        if deadline_ms is not None:
            self.expire_at(deadline_ms)

    def _given_up(self, rows: Sequence[StateBatch]) -> None:
        """Tell of records that were delivered as often as the group allows, and that nobody accepted or rejected."""
        if rows:
            count = _count(rows)
            self._shell.counters.given_up += count
            _log.info(
                "share group %s gives up %d record%s of %s, the first one at offset %d: delivered %d times",
                self.key.group_id,
                count,
                "" if count == 1 else "s",
                self.replica,
                rows[0].first_offset,
                rows[0].delivery_count,
            )

    # --- turns

    def wait(self, waiter: Waiter) -> None:
        """Wake a fetch whenever there may be records for it."""
        self._waiting[waiter] = None

    def stop_waiting(self, waiter: Waiter) -> None:
        self._waiting.pop(waiter, None)
        if self._in_turn.pop(waiter, self) is None and not self._is_taken:
            self._wake_next()

    def wake(self) -> None:
        for waiter in tuple(self._waiting):
            waiter.wake()

    def take(self, waiter: Waiter) -> bool:
        """Let a fetch read, unless another one does. Then it is woken in its turn."""
        if self._is_taken:
            self._in_turn.setdefault(waiter)
            return False
        self._in_turn.pop(waiter, None)
        self._is_taken = True
        return True

    def give_back(self) -> None:
        self._is_taken = False
        self._wake_next()

    def _wake_next(self) -> None:
        for waiter in self._in_turn:
            waiter.wake()
            return


def _count(batches: Iterable[StateBatch]) -> int:
    return sum(each.last_offset - each.first_offset + 1 for each in batches)


def _rows(batches: list[StateBatch]) -> Slices[list[WriteShareGroupStateRequest.StateBatch]]:
    """Return sorted batches as rows; those that follow each other with the same state are one row."""
    rows: list[WriteShareGroupStateRequest.StateBatch] = []
    for first, last, state, count in batches:
        before = rows[-1] if rows else None
        if (
            before is not None
            and before.last_offset + 1 == first
            and before.delivery_state == state
            and before.delivery_count == count
        ):
            before.last_offset = last
        else:
            rows.append(
                WriteShareGroupStateRequest.StateBatch(
                    first_offset=first, last_offset=last, delivery_state=int(state), delivery_count=count
                )
            )
        yield
    return rows
