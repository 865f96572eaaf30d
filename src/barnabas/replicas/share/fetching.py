"""A share fetch: finds records that its member may have, waits until there are enough, and acquires them.

Its one rule: batches are located in their files, and only their headers are read, before records are acquired; the records
themselves are read while the response is sent. One fetch at a time reads a share partition; others have their turn after
it, in the order in which they came. Who has disconnected meanwhile acquires nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.batches.format import BatchHeader
from barnabas.batches.reader import iterate_batches
from barnabas.replicas.reading import StoredRecords
from barnabas.replicas.share.led import LedSharePartition
from barnabas.replicas.share.sessions import PartitionKey
from barnabas.replicas.share.share_partition import Acquired, Asked, LogBatch
from barnabas.slices import Breather
from barnabas.storage import FileRange, StorageError
from barnabas.storage.aborted import AbortedTxn
from barnabas.storage.batch_file import walk_headers
from barnabas.storage.errors import OffsetOutOfRangeError
from barnabas.wire import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.replicas.replicas import Replicas

WALKED_AT_ONCE_BYTES: Final = 1 << 16  # a larger range of the log is walked in a thread


class ShareFetch(NamedTuple):
    """What a member wants. `is_gone` says whether it has disconnected or closed its session."""

    member_id: str
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    is_record_limit: bool
    is_committed: bool
    is_gone: Callable[[], bool]


class Fetched(NamedTuple):
    """The answer for one partition."""

    error: KafkaError | None = None
    records: StoredRecords | None = None
    acquired: Sequence[Acquired] = ()


NOTHING: Final = Fetched()


class _Walked(NamedTuple):
    """A batch of the log: where it is, and its header."""

    position: int
    header: BatchHeader


class _Found(NamedTuple):
    """What can be read of a share partition now."""

    led: LedSharePartition
    offset: int
    batches: FileRange | None = None
    is_followed: bool = False  # by another segment
    error: ErrorCode = ErrorCode.NONE


class Fetching:
    """One share fetch. `run` returns the answers of the partitions that have one."""

    def __init__(self, replicas: Replicas, asked: ShareFetch, partitions: Iterable[LedSharePartition]) -> None:
        self._replicas = replicas
        self._asked = asked
        self._partitions = list(partitions)
        self._failed: dict[PartitionKey, KafkaError] = {}
        self._woken: asyncio.Future[None] | None = None
        self._is_woken = False

    def wake(self) -> None:
        self._is_woken = True
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    # The two events of a partition that end a wait; how many bytes came is found out anew.

    def advanced(self, appended_bytes: int) -> None:
        self.wake()

    def disturbed(self) -> None:
        self.wake()

    is_follower = False

    async def run(self) -> dict[PartitionKey, Fetched]:
        clock = asyncio.get_running_loop().time
        until = clock() + self._asked.max_wait_ms / 1000
        for led in self._partitions:
            led.wait(self)
            led.replica.wait(self)
            led.load()
        try:
            while True:
                self._is_woken = False
                is_last = clock() >= until
                answers = await self._try(is_last=is_last)
                if answers is not None or is_last:
                    return self._with_failures(answers or {})
                if not self._is_woken:
                    await self._wait(until - clock())
        finally:
            for led in self._partitions:
                led.replica.stop_waiting(self)
                led.stop_waiting(self)

    async def _wait(self, wait_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._woken = loop.create_future()
        handle = loop.call_later(max(wait_s, 0), self.wake)
        try:
            await self._woken
        finally:
            handle.cancel()
            self._woken = None

    def _with_failures(self, answers: dict[PartitionKey, Fetched]) -> dict[PartitionKey, Fetched]:
        for led in self._partitions:
            if led.failure is not None:
                self._failed.setdefault(led.key.of_topic, led.failure)
        return answers | {key: Fetched(error) for key, error in self._failed.items()}

    async def _try(self, *, is_last: bool) -> dict[PartitionKey, Fetched] | None:
        """Acquire what there is, and return the answers, or None to wait for more."""
        if self._asked.is_gone():
            return {}
        has_moved = False
        taken: list[LedSharePartition] = []
        others_first = Breather()
        try:
            for led in self._partitions:
                await others_first()
                if not led.leads or (led.is_ended and led.failure is None):
                    self._failed[led.key.of_topic] = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                    has_moved = True
                elif led.is_active and led.take(self):
                    taken.append(led)
                    assert led.state is not None
                    if not led.state.can_acquire(led.limits):
                        taken.remove(led)
                        led.give_back()
            if has_moved and not taken:
                return {}
            found = await self._find(taken)
            if not is_last and not has_moved and not (taken and self._is_enough(found)):
                return None
            return await self._acquire(found)
        finally:
            for led in taken:
                led.give_back()

    # --- finding

    async def _find(self, taken: list[LedSharePartition]) -> list[_Found]:
        found: list[_Found] = []
        others_first = Breather()
        is_empty = True
        for number, led in enumerate(taken):
            await others_first()
            share, rest = divmod(self._asked.max_bytes, len(taken))
            max_bytes = share + (rest if number == 0 else 0)
            await led.replica.open()
            one = self._find_one(led, max_bytes, is_empty)
            is_empty = is_empty and one.batches is None
            found.append(one)
        return found

    def _find_one(self, led: LedSharePartition, max_bytes: int, is_empty: bool) -> _Found:
        assert led.state is not None
        offset = led.state.next_fetch_offset()
        replica = led.replica
        try:
            replica.require_leader()
            log = replica.log
            end = replica.last_stable_offset if self._asked.is_committed else replica.high_watermark
            batches = None
            if offset != end:
                batches = log.find_range(offset, max_bytes, end, min_one_batch=is_empty)
            is_followed = batches is not None and batches.file is not log.segments[-1].log
            return _Found(led, offset, batches, is_followed)
        except OffsetOutOfRangeError:
            return _Found(led, offset, error=ErrorCode.OFFSET_OUT_OF_RANGE)
        except StorageError as error:
            return _Found(led, offset, error=replica.read_failed(error))
        except KafkaError as error:
            return _Found(led, offset, error=error.code)

    def _is_enough(self, found: list[_Found]) -> bool:
        if any(each.error or each.is_followed for each in found):
            return True
        size = sum(each.batches.size for each in found if each.batches is not None)
        return size >= self._asked.min_bytes

    # --- acquiring

    async def _acquire(self, found: list[_Found]) -> dict[PartitionKey, Fetched]:
        answers: dict[PartitionKey, Fetched] = {}
        count = 0
        for each in found:
            one = await self._acquire_one(each, self._asked.max_records - count)
            answers[each.led.key.of_topic] = one
            count += sum(acquired.size for acquired in one.acquired)
        return answers

    async def _acquire_one(self, found: _Found, max_records: int) -> Fetched:
        led = found.led
        assert led.state is not None
        if found.error:
            return self._failed_read(found)
        if found.batches is None or max_records <= 0:
            return NOTHING
        try:
            walked = await self._walk(found, max_records)
            aborted = self._aborted(found)
        except StorageError as error:
            return Fetched(KafkaError(led.replica.read_failed(error)))
        if not led.is_active or self._asked.is_gone():
            return NOTHING
        acquired = self._acquired(found, [each.header for each in walked], aborted, max_records)
        if not acquired:
            return NOTHING
        first, last = acquired[0].first_offset, acquired[-1].last_offset
        sent = [each for each in walked if each.header.last_offset >= first and each.header.base_offset <= last]
        if not sent:
            return Fetched(acquired=acquired)
        position = sent[0].position
        size = sent[-1].position + sent[-1].header.size_in_bytes - position
        batches = found.batches._replace(position=position, size=size)
        return Fetched(records=StoredRecords(led.replica, batches), acquired=acquired)

    def _failed_read(self, found: _Found) -> Fetched:
        led = found.led
        if found.error is not ErrorCode.OFFSET_OUT_OF_RANGE:
            return Fetched(KafkaError(found.error))
        assert led.state is not None
        try:
            led.state.log_start_moved(led.replica.log_start_offset)
        except KafkaError as error:
            return Fetched(error)
        return NOTHING

    def _acquired(
        self, found: _Found, headers: list[BatchHeader], aborted: list[AbortedTxn], max_records: int
    ) -> Sequence[Acquired]:
        led, wanted = found.led, self._asked
        assert led.state is not None
        limits, now_ms = led.limits, led.monotonic_ms()
        asked = Asked(wanted.member_id, found.offset, max_records, wanted.batch_size, wanted.is_record_limit)
        log = [LogBatch(header.base_offset, header.last_offset) for header in headers]
        acquired: Sequence[Acquired] = led.state.acquire(asked, log, limits, now_ms)
        if not acquired:
            return ()
        led.expire_at(now_ms + limits.lock_duration_ms)
        if aborted:
            acquired = led.state.archive_aborted(_batches_of(aborted, headers), acquired)
        return acquired

    async def _walk(self, found: _Found, max_records: int) -> list[_Walked]:
        """Return the batches whose records may be acquired: no more than that many records can be."""
        led, batches = found.led, found.batches
        assert batches is not None and led.state is not None
        until = max(found.offset, led.state.end_offset) + min(max_records, led.limits.max_in_flight)
        if batches.size <= WALKED_AT_ONCE_BYTES and (data := batches.read_cached()) is not None:
            return [_Walked(batches.position + at, header) for at, header in _until(iterate_batches(data), until)]
        end = batches.position + batches.size
        walk = walk_headers(batches.file, batches.position, end)
        return await asyncio.to_thread(lambda: [_Walked(at, header) for at, header in _until(walk, until)])

    def _aborted(self, found: _Found) -> list[AbortedTxn]:
        """Return the aborted transactions that have records among the batches, for groups that skip these."""
        if not self._asked.is_committed or found.batches is None:
            return []
        log = found.led.replica.log
        return log.aborted_transactions(found.offset, log.upper_bound_offset(found.batches))


def _until(batches: Iterable[tuple[int, BatchHeader]], offset: int) -> Iterator[tuple[int, BatchHeader]]:
    for position, header in batches:
        yield position, header
        if header.last_offset > offset:
            return


def _batches_of(aborted: list[AbortedTxn], headers: list[BatchHeader]) -> Iterator[LogBatch]:
    """Yield the batches with records of aborted transactions. Their markers are not among them."""
    for header in headers:
        if header.has_producer_id and not header.is_control:
            for each in aborted:
                if (
                    each.producer_id == header.producer_id
                    and each.first_offset <= header.base_offset < each.last_offset
                ):
                    yield LogBatch(header.base_offset, header.last_offset)
                    break
