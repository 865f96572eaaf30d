"""Compaction: keeps the last record of each key, and removes records of aborted transactions.

Its one rule: readers lose nothing that they may still need. The last record of each key stays at its offset. A
tombstone stays until the delete horizon of its batch, set when it is first cleaned, has passed; so does the marker of a
transaction with no other records left. The last batch of a producer stays for its sequence, if necessary without
records. The log is unchanged until the swap of segments, which is one step and safe against a crash at any point.

`Compaction.steps` works in slices of a few milliseconds, so that an event loop can drive it. Close the generator to
abort. It ends by itself if segments are truncated or deleted meanwhile. `cleanable` decides which log is cleaned and
how far.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import TypeAlias, TypeVar

from barnabas.batches import (
    BatchError,
    BatchHeader,
    ControlType,
    check_crc,
    decode_control_key,
    decode_header,
    decode_payload,
)
from barnabas.batches.compression import most_decompressed_bytes
from barnabas.batches.format import HEADER_SIZE, MAX_INT64, Buffer
from barnabas.batches.spans import RecordSpan, Retained, empty_batch, walk_spans
from barnabas.storage.aborted import AbortedTxn, TransactionIndex
from barnabas.storage.batch_file import WholeBatch, walk_whole
from barnabas.storage.cleanable import DirtyLog, group_segments, segments_between
from barnabas.storage.errors import CorruptLogError, StorageError
from barnabas.storage.log import Log
from barnabas.storage.producers import ProducerState
from barnabas.storage.segment import CLEANED_SUFFIX, Segment, Written

R = TypeVar("R")
# A blocking function to call in a thread before the next step, or None to continue at any time.
Step: TypeAlias = Callable[[], object] | None

DEFAULT_DEDUPE_BUFFER_SIZE = 128 * 1024 * 1024
DEFAULT_LOAD_FACTOR = 0.9

_BYTES_PER_ENTRY = 160  # per entry of a dict of short bytes to ints, as measured
_MAX_KEY_BYTES = 32
_DIGEST_BYTES = 33  # longer than any key that is stored as it is
# Records per slice. Decompressing a batch and copying bytes count as some records.
_SLICE_RECORDS = 2000
_MAX_SPANS = 16_384  # some 200 bytes each; in a batch with more records, those to keep are chosen twice
_BATCH_COST = 20
_BYTES_COST = 256
_WRITE_BYTES = 256 * 1024
_SMALL_BYTES = 256 * 1024  # of a payload; a larger one is decompressed and compressed in a thread
_READ_AHEAD_BYTES = 4 * 1024 * 1024


@dataclass(slots=True)
class CleanerStats:
    """Counters of one cleaning."""

    mapped_records: int = 0
    mapped_bytes: int = 0
    map_entries: int = 0
    records_read: int = 0
    bytes_read: int = 0
    records_written: int = 0
    bytes_written: int = 0
    records_without_key: int = 0

    def add(self, other: CleanerStats) -> None:
        for name in CleanerStats.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class CleanedTransactions:
    """The open transactions during a pass over a log, which decide whether their markers are kept."""

    def __init__(self) -> None:
        # Receives the aborted transactions that still have records.
        self.index: TransactionIndex | None = None
        self._committed: set[int] = set()
        self._aborted: dict[int, AbortedTxn] = {}
        self._observed: set[int] = set()
        self._expected: list[tuple[int, AbortedTxn]] = []

    def expect(self, aborted: Iterable[AbortedTxn]) -> None:
        """Add the aborted transactions of the segment that is read next."""
        for transaction in aborted:
            heapq.heappush(self._expected, (transaction.first_offset, transaction))

    def pass_batch(self, header: BatchHeader) -> bool:
        """Process a data batch. Return whether it belongs to an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._observed.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def pass_control_batch(self, header: BatchHeader, type: ControlType | None) -> bool:
        """Process a marker. Return whether its transaction has no records left.

        A type of None is a batch that was emptied before.
        """
        self._begin_up_to(header.last_offset)
        producer_id = header.producer_id
        match type:
            case ControlType.ABORT:
                transaction = self._aborted.pop(producer_id, None)
                if transaction is None or producer_id not in self._observed:
                    return True
                self._observed.discard(producer_id)
                if self.index is not None:
                    self.index.append(transaction)
                return False
            case ControlType.COMMIT:
                is_left = producer_id in self._committed
                self._committed.discard(producer_id)
                return not is_left
            case _:
                return type is None

    def _begin_up_to(self, offset: int) -> None:
        while self._expected and self._expected[0][0] <= offset:
            _, transaction = heapq.heappop(self._expected)
            self._aborted.setdefault(transaction.producer_id, transaction)


class Compaction:
    """One cleaning of one log, up to the first uncleanable offset or until the map of keys is full."""

    def __init__(
        self,
        log: Log,
        dirty: DirtyLog,
        *,
        now_ms: int,
        dedupe_buffer_size: int = DEFAULT_DEDUPE_BUFFER_SIZE,
        load_factor: float = DEFAULT_LOAD_FACTOR,
    ) -> None:
        self.stats = CleanerStats()
        # The offset up to which the log is clean, and so its next first dirty offset.
        self.end_offset = dirty.first_dirty_offset
        self.is_done = False
        self._log = log
        self._dirty = dirty
        self._now_ms = now_ms
        self._max_entries = max(1, int(dedupe_buffer_size // _BYTES_PER_ENTRY * load_factor))
        self._offsets: dict[bytes, int] = {}
        self._latest_offset = dirty.first_dirty_offset - 1
        self._directory = log.directory
        self._truncations = log.truncations
        self._sources: Sequence[Segment] = ()
        self._in_slice = 0

    def steps(self) -> Generator[Step, None, None]:
        """Run the cleaning. If a step yields a function, it must be called before the next step.

        Raises CorruptLogError for damage in the log and StorageError for disk errors. Both leave the log unchanged or
        partly cleaned, which is still valid. `is_done` is false afterwards if the log changed meanwhile.
        """
        try:
            yield from self._build_map()
            end_offset = self._latest_offset + 1
            transactions = CleanedTransactions()
            end = min(end_offset, self._dirty.first_uncleanable_offset)
            segments = [segment for segment in self._log.segments if segment.base_offset < end]
            for group in group_segments(segments, self._log.config, self._dirty.first_uncleanable_offset):
                yield from self._clean_group(group, transactions)
        except _AbortedError:
            return
        finally:
            self._offsets = {}
        self.end_offset = end_offset
        self.is_done = True

    # Pass 1: the last offset of each key

    def _build_map(self) -> Generator[Step, None, None]:
        first_dirty, end = self._dirty.first_dirty_offset, self._dirty.first_uncleanable_offset
        self._sources = sources = segments_between(self._log.segments, first_dirty, end)
        transactions = CleanedTransactions()
        transactions.expect(self._log.aborted_transactions(first_dirty, end))
        for segment, following in zip(sources, [*(source.base_offset for source in sources[1:]), end], strict=True):
            is_full = yield from self._map_segment(segment, transactions)
            if is_full:
                break
            self._latest_offset = following - 1
        self.stats.map_entries = len(self._offsets)

    def _map_segment(self, segment: Segment, transactions: CleanedTransactions) -> Generator[Step, None, bool]:
        """Return whether the map became full before all keys of the segment were added."""
        first_dirty = self._dirty.first_dirty_offset
        begin = segment.find(first_dirty) if first_dirty > segment.base_offset else None
        position = 0 if begin is None else begin.position
        ahead = yield from self._read_ahead(segment, position)
        for batch in walk_whole(segment.log, position, segment.size):
            header = batch.header
            if batch.position >= ahead:
                ahead = yield from self._read_ahead(segment, batch.position)
            self._in_slice += _BATCH_COST + header.size_in_bytes // _BYTES_COST
            if header.is_control:
                transactions.pass_control_batch(header, _control_type(segment, batch))
            elif not transactions.pass_batch(header):
                is_full = yield from self._map_records(segment, batch)
                if is_full:
                    return True
            if header.last_offset >= first_dirty:
                self._latest_offset = header.last_offset
            self.stats.mapped_bytes += header.size_in_bytes
            if self._in_slice >= _SLICE_RECORDS:
                yield from self._pause()
        return False

    def _map_records(self, segment: Segment, batch: WholeBatch) -> Generator[Step, None, bool]:
        base_offset, first_dirty = batch.header.base_offset, self._dirty.first_dirty_offset
        offsets, max_entries = self._offsets, self._max_entries
        payload = yield from self._open(segment, batch)
        for spans in _slices(segment, batch, payload):
            for _, _, _, _, delta, key, _ in spans:
                offset = base_offset + delta
                if key is not None and offset >= first_dirty:
                    if len(offsets) >= max_entries:
                        return True
                    offsets[key if len(key) <= _MAX_KEY_BYTES else _digest(key)] = offset
                    self._latest_offset = offset
            self.stats.mapped_records += len(spans)
            yield from self._count_records(spans)
        return False

    # Pass 2: copy several segments to one

    def _clean_group(self, group: Sequence[Segment], transactions: CleanedTransactions) -> Generator[Step, None, None]:
        log = self._log
        self._sources = group
        target = Segment.create(log.directory, group[0].base_offset, log.config, self._now_ms, CLEANED_SUFFIX)
        transactions.index = target.txn_index
        is_decided = False
        try:
            writer = _Writer(target, self.stats)
            last_records = {state.producer_id: state for state in log.producers.states}
            for number, segment in enumerate(group):
                end = group[number + 1].base_offset if number + 1 < len(group) else segment.next_offset()
                transactions.expect(log.aborted_transactions(segment.base_offset, end))
                yield from self._clean_segment(segment, writer, transactions, last_records)
            writer.flush()
            target.seal()
            yield partial(target.flush, indexes=True)
            target.set_modified_ms(group[-1].log.modified_ms())
            self._check_unchanged()
            yield partial(log.prepare_replacement, target)
            self._check_unchanged()
            is_decided = True
            log.replace_segments(target, group)
        finally:
            transactions.index = None
            if not is_decided:
                with suppress(StorageError):
                    target.delete()
        yield self._flush_names

    def _clean_segment(
        self,
        segment: Segment,
        writer: _Writer,
        transactions: CleanedTransactions,
        last_records: dict[int, ProducerState],
    ) -> Generator[Step, None, None]:
        stats = self.stats
        ahead = yield from self._read_ahead(segment, 0)
        for batch in walk_whole(segment.log, 0, segment.size):
            header = batch.header
            if batch.position >= ahead:
                ahead = yield from self._read_ahead(segment, batch.position)
            self._in_slice += _BATCH_COST + header.size_in_bytes // _BYTES_COST
            stats.bytes_read += header.size_in_bytes
            if header.is_control:
                is_empty_txn = transactions.pass_control_batch(header, _control_type(segment, batch))
                horizon = header.delete_horizon_ms
                is_discarded = is_empty_txn and horizon is not None and horizon <= self._now_ms
            else:
                is_empty_txn = False
                is_discarded = transactions.pass_batch(header)
            kept: Buffer | None = None
            if not is_discarded and header.records_count:
                kept = yield from self._retain(segment, batch, is_empty_txn)
            if kept is None and (
                header.next_offset == self._dirty.first_uncleanable_offset or _is_last_record(header, last_records)
            ):
                kept = empty_batch(header)
            if kept is not None:
                writer.append(kept)
            if self._in_slice >= _SLICE_RECORDS:
                yield from self._pause()

    def _retain(self, segment: Segment, batch: WholeBatch, is_empty_txn: bool) -> Generator[Step, None, Buffer | None]:
        """Return what remains of a batch: the same bytes, a smaller batch, or None."""
        header = batch.header
        payload = yield from self._open(segment, batch)
        retained = Retained(header)
        kept: list[list[RecordSpan]] = []
        for spans in _slices(segment, batch, payload):
            some = self._kept(header, spans)
            retained.count_in(some)
            if header.records_count <= _MAX_SPANS:
                kept.append(some)
            yield from self._count_records(spans)
        self.stats.records_read += header.records_count
        self.stats.records_written += retained.count
        if not retained.count:
            return None
        horizon: int | None = None
        if header.delete_horizon_ms is None and (is_empty_txn or retained.has_tombstones):
            horizon = self._now_ms + self._log.config.delete_retention_ms
            horizon = horizon if horizon <= MAX_INT64 else None
        if horizon is None and retained.count == header.records_count:
            return memoryview(batch.data)[batch.start : batch.start + header.size_in_bytes]
        retained.begin(horizon)
        if kept:
            for some in kept:
                retained.add(payload, some)
        else:  # too many to have kept their spans: choose again
            without_key = self.stats.records_without_key
            for spans in _slices(segment, batch, payload):
                retained.add(payload, self._kept(header, spans))
                yield from self._count_records(spans)
            self.stats.records_without_key = without_key  # counted before
        return (yield from self._in_thread(retained.encode, len(retained.payload)))

    def _kept(self, header: BatchHeader, spans: list[RecordSpan]) -> list[RecordSpan]:
        return spans if header.is_control else self._last_of_keys(header, spans)

    def _count_records(self, spans: Sequence[RecordSpan]) -> Generator[Step, None, None]:
        self._in_slice += len(spans)
        if self._in_slice >= _SLICE_RECORDS:
            yield from self._pause()

    def _last_of_keys(self, header: BatchHeader, spans: Sequence[RecordSpan]) -> list[RecordSpan]:
        base_offset, latest_offset = header.base_offset, self._latest_offset
        horizon = header.delete_horizon_ms
        keeps_tombstones = horizon is None or self._now_ms < horizon
        last_offset = self._offsets.get
        kept = []
        for span in spans:
            _, _, _, _, delta, key, has_value = span
            offset = base_offset + delta
            if offset > latest_offset:
                kept.append(span)
            elif key is None:
                self.stats.records_without_key += 1
            elif (has_value or keeps_tombstones) and offset >= last_offset(
                key if len(key) <= _MAX_KEY_BYTES else _digest(key), -1
            ):
                kept.append(span)
        return kept

    # Both passes

    def _flush_names(self) -> None:
        if self._log.is_open:
            self._log.flush_names()

    def _read_ahead(self, segment: Segment, position: int) -> Generator[Step, None, int]:
        """Read the next bytes in a thread, so that they are in the page cache.

        Return the position up to which that was done.
        """
        yield partial(segment.log.read, _READ_AHEAD_BYTES, position)
        self._check_unchanged()
        return position + _READ_AHEAD_BYTES // 2

    def _open(self, segment: Segment, batch: WholeBatch) -> Generator[Step, None, bytes]:
        """Return the payload of a batch. It is decompressed in a thread if it may be large."""
        start = batch.start + HEADER_SIZE
        compressed = memoryview(batch.data)[start : batch.start + batch.header.size_in_bytes]
        try:
            size = most_decompressed_bytes(batch.header.compression, compressed)
        except BatchError:
            size = 0  # `_payload` raises it again, with the position
        return (yield from self._in_thread(partial(_payload, segment, batch), size))

    def _in_thread(self, do: Callable[[], R], size: int) -> Generator[Step, None, R]:
        """Return the result of a function that works on so many bytes: called here if they are few."""
        if size <= _SMALL_BYTES:
            return do()
        results: list[R] = []
        yield lambda: results.append(do())
        self._in_slice = 0
        self._check_unchanged()
        return results[0]

    def _pause(self) -> Generator[Step, None, None]:
        self._in_slice = 0
        yield None
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        log = self._log
        is_same = log.is_open and log.directory == self._directory and log.truncations == self._truncations
        if not is_same or any(segment.is_deleted for segment in self._sources):
            raise _AbortedError


class _AbortedError(Exception):
    """The log was closed, moved, truncated or lost a segment during the cleaning."""


class _Writer:
    """A buffer of batches that are written to a segment."""

    def __init__(self, target: Segment, stats: CleanerStats) -> None:
        self._target = target
        self._stats = stats
        self._buffers: list[Buffer] = []
        self._batches: list[Written] = []
        self._size = 0

    def append(self, batch: Buffer) -> None:
        header = decode_header(batch)
        self._buffers.append(batch)
        self._batches.append(Written(header.base_offset, header.last_offset, header.max_timestamp, len(batch)))
        self._size += len(batch)
        self._stats.bytes_written += len(batch)
        if self._size >= _WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._buffers:
            self._target.append(self._buffers, self._batches)
            self._buffers, self._batches, self._size = [], [], 0


def _is_last_record(header: BatchHeader, last_records: dict[int, ProducerState]) -> bool:
    """Whether the batch has the last sequence of its producer, or is the marker with its last epoch."""
    state = last_records.get(header.producer_id)
    if state is None:
        return False
    if state.batches:
        return header.last_offset == state.last_data_offset
    return header.is_control and header.producer_epoch == state.producer_epoch


def _payload(segment: Segment, batch: WholeBatch) -> bytes:
    """Check the checksum of a batch and return its payload, because a rewritten batch gets a new, valid checksum."""
    try:
        check_crc(batch.header, batch.data, batch.start)
        limit = segment.config.max_decompressed_bytes
        return decode_payload(batch.data, batch.start, batch.header, max_decompressed_bytes=limit)
    except BatchError as error:
        raise CorruptLogError(segment.log.path, batch.position, str(error)) from error


def _slices(segment: Segment, batch: WholeBatch, payload: bytes) -> Iterator[list[RecordSpan]]:
    """Yield the records of a batch, at most one slice at a time."""
    position, left = 0, batch.header.records_count
    try:
        while left > 0:
            spans = walk_spans(payload, position, min(left, _SLICE_RECORDS))
            position = spans[-1].end
            left -= len(spans)
            if not left and position != len(payload):
                raise BatchError(f"{batch.header.records_count} records do not fill {len(payload)} bytes")
            yield spans
    except BatchError as error:
        raise CorruptLogError(segment.log.path, batch.position, str(error)) from error


def _control_type(segment: Segment, batch: WholeBatch) -> ControlType | None:
    """Return the type of a control batch's first record, or None if it has no records left."""
    if not batch.header.records_count:
        return None
    payload = _payload(segment, batch)
    try:
        return decode_control_key(walk_spans(payload, 0, 1)[0].key)
    except BatchError as error:
        raise CorruptLogError(segment.log.path, batch.position, str(error)) from error


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=_DIGEST_BYTES).digest()
