"""One partition's log: its segments in order, of which the last is active, from a start offset to an end offset.

Its one rule: data is in the operating system when `append` returns, and on disk when `flush` returns; nothing is
buffered. Batches are stored as the bytes received, with offset and epoch stamped. Reads return whole batches. After a
disk error the log is not written to again, because its files may be inconsistent.

One thread appends, truncates and deletes; others may read and flush concurrently. If an append rolled to a new segment,
the caller flushes up to its base offset (`AppendInfo.rolled`), possibly in a thread. Callers keep the high watermark
and pass it as `max_offset`. `retention` decides which segments to delete, and `compaction` makes the segments that
replace others.

The files of a new data log become durable with its first record: losing them before loses nothing. Those of a metadata
log are durable at once. A log opened read-only is never written to, not even by recovery.

A leader checks the batches of producers against `producers` before it appends them, and updates that state afterwards.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from barnabas.batches import (
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    TimestampType,
    build_end_txn_marker,
    check_crc,
    end_of_whole_batches,
    iterate_batches,
    stamp,
    stamp_max_timestamp,
)
from barnabas.batches.format import LEADER_EPOCH_POSITION, Buffer
from barnabas.storage.aborted import AbortedTxn, follow
from barnabas.storage.cleanable import DirtyLog, find_dirty
from barnabas.storage.epochs import EpochEndOffset
from barnabas.storage.errors import OffsetOutOfRangeError, StorageError, UnexpectedOffsetError
from barnabas.storage.files import (
    File,
    create_directory,
    delete_directory,
    fsync_directory,
    fsync_name,
    next_moment,
    rename_directory,
)
from barnabas.storage.loading import Loaded, begin, load
from barnabas.storage.log_config import LogConfig
from barnabas.storage.partition_metadata import flush_topic_id
from barnabas.storage.producers import (
    UNKNOWN_TRANSACTION_VERSION,
    AppendOrigin,
    ProducerBatch,
    ProducerState,
    producer_batch,
)
from barnabas.storage.retention import Expired, expired
from barnabas.storage.segment import (
    SWAP_SUFFIX,
    FoundOffset,
    Segment,
    Written,
)
from barnabas.wire.errors import ErrorCode, KafkaError

_STAMPED_BYTES = LEADER_EPOCH_POSITION + 4
_READ_BYTES = 1024 * 1024


class AppendInfo(NamedTuple):
    """The offsets of appended batches. `rolled` is the base offset of a segment that the append created, or None.

    For a duplicate nothing was written: offsets and timestamp are those of the original batch.
    """

    base_offset: int
    last_offset: int
    max_timestamp: int
    size_in_bytes: int
    rolled: int | None = None
    is_duplicate: bool = False


class FileRange(NamedTuple):
    """Whole batches as a range of bytes in the segment that starts at `base_offset`."""

    file: File
    position: int
    size: int
    base_offset: int

    def read(self) -> bytes:
        """Return the bytes. If the log was truncated meanwhile, return only the batches that are left."""
        data = self.file.read(self.size, self.position)
        return data if len(data) == self.size else data[: end_of_whole_batches(data)]

    def read_cached(self) -> bytes | bytearray | None:
        """Return the bytes if no disk access is needed, or None."""
        return self.file.read_cached(self.size, self.position)


class LogStatistics(NamedTuple):
    """Counters of a log."""

    segments: int
    size_in_bytes: int
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    unflushed_records: int
    deleted_segments: int


class _Group:
    """Batches that are written to the same segment together."""

    __slots__ = ("batches", "buffers", "max_timestamp", "produced", "size")

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self.batches: list[Written] = []
        self.produced: list[ProducerBatch] = []
        self.max_timestamp = NO_TIMESTAMP
        self.size = 0

    def add(self, buffers: Sequence[Buffer], base_offset: int, header: BatchHeader) -> None:
        size = header.size_in_bytes
        last_offset = base_offset + header.last_offset_delta
        self.buffers += buffers
        self.batches.append(Written(base_offset, last_offset, header.max_timestamp, size))
        self.max_timestamp = max(self.max_timestamp, header.max_timestamp)
        self.size += size


class Log:
    """The log in one directory. Use `open` to create one."""

    __slots__ = (
        "_clock",
        "_deleted",
        "_failure",
        "_made",
        "_names_changed",
        "_producer_snapshots",
        "_segments",
        "_truncations",
        "config",
        "directory",
        "epochs",
        "faults",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "recoveries",
        "recovery_point",
    )

    def __init__(self, directory: Path, config: LogConfig, clock: Callable[[], int], loaded: Loaded) -> None:
        self.directory = directory
        self.config = config
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.recoveries = loaded.recoveries
        self.faults = loaded.faults
        self._clock = clock
        self._producer_snapshots = loaded.producer_snapshots
        self._segments = tuple(loaded.segments)
        self._deleted: list[tuple[int, Segment]] = []
        self._truncations = 0
        self._made: int | None = None  # time of creation, while the name of a new directory is not durable yet
        self._names_changed = loaded.began and not config.metadata
        self._failure: str | None = None

    @classmethod
    def open(
        cls,
        directory: Path,
        config: LogConfig | None = None,
        *,
        clock: Callable[[], int],
        clean_shutdown: bool = False,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        read_only: bool = False,
    ) -> Log:
        """Open the log of a directory, which is created if missing. `clock` returns milliseconds.

        `recoveries` lists the recovered segments, and `faults` describes other damaged files, which were rebuilt. The result
        is durable only after the next `flush`. With `read_only`, creation and recovery happen in memory only, and every
        write raises StorageError.
        """
        config = config or LogConfig()
        is_new = not read_only and create_directory(directory, durable=config.metadata)
        if is_new:
            loaded = begin(directory, config, clock(), log_start_offset)
        else:
            loaded = load(
                directory,
                config,
                clock(),
                clean_shutdown=clean_shutdown,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
                read_only=read_only,
            )
        log = cls(directory, config, clock, loaded)
        # A process that was killed may have created names without making them durable.
        log._names_changed = log._names_changed or not (is_new or clean_shutdown)
        log._made = None if clean_shutdown or (is_new and config.metadata) else next_moment()
        log._failure = "it was opened read-only" if read_only else None
        return log

    def configure(self, config: LogConfig) -> None:
        """Use other settings from the next append on."""
        self.config = config
        for segment in self._segments:
            segment.configure(config)

    # Appending

    def append_as_leader(
        self,
        data: Buffer,
        leader_epoch: int,
        *,
        header: BatchHeader | None = None,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verification_guard: int | None = None,
        transaction_version: int = UNKNOWN_TRANSACTION_VERSION,
    ) -> AppendInfo:
        """Append validated batches at the end of the log, with the next offsets and this leader epoch.

        `header` is the decoded header if the data is a single batch; without it, the headers are decoded here. Raises
        KafkaError before anything is written if a producer's batch does not follow its last one. The first batch of a
        transaction needs a guard (see `maybe_start_transaction_verification`), and a marker its transaction version.
        """
        self._check_usable()
        view = memoryview(data)
        group = _Group()
        offset = self.log_end_offset
        batches = iterate_batches(view) if header is None else ((0, header),)
        for position, each in batches:
            if each.producer_id > NO_PRODUCER_ID:
                produced = producer_batch(each, offset, view, position)
                duplicate = self.producers.check(
                    produced,
                    origin=origin,
                    guard=verification_guard,
                    verify=self.config.transaction_partition_verification_enable,
                    transaction_version=transaction_version,
                    earlier=group.produced,
                )
                if duplicate is not None:
                    first_offset, timestamp = duplicate.first_offset, duplicate.timestamp
                    return AppendInfo(first_offset, duplicate.last_offset, timestamp, 0, is_duplicate=True)
                group.produced.append(produced)
            head = bytearray(view[position : position + _STAMPED_BYTES])
            stamp(head, offset, leader_epoch)
            rest = view[position + _STAMPED_BYTES : position + each.size_in_bytes]
            group.add((head, rest), offset, each)
            offset += each.last_offset_delta + 1
        if not group.batches:
            raise ValueError("there is nothing to append")
        if group.size > self.config.segment_bytes:
            limit = self.config.segment_bytes
            raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, f"{group.size} bytes exceed segment.bytes={limit}")
        if leader_epoch >= 0 and leader_epoch != self.epochs.latest_epoch:
            self.assign_epoch(leader_epoch, self.log_end_offset)
        return self._append([group])

    def append_as_follower(self, data: Buffer, *, max_leader_epoch: int | None = None) -> AppendInfo | None:
        """Append batches of a leader with the offsets and epochs that they have.

        An incomplete batch at the end is ignored, and so is everything from the first batch with an epoch above
        `max_leader_epoch` on. Returns None if nothing is left. Raises BatchError for a wrong checksum, and
        UnexpectedOffsetError for offsets that do not continue the log, both before anything is written.
        """
        view = memoryview(data)
        groups = [_Group()]
        epochs: list[tuple[int, int]] = []
        offset = self.log_end_offset
        for position, header in iterate_batches(view, tolerate_truncated=True):
            epoch = header.partition_leader_epoch
            if max_leader_epoch is not None and epoch > max_leader_epoch:
                break
            check_crc(header, view, position)
            if header.base_offset < offset or (self.config.metadata and header.base_offset != offset):
                message = (
                    f"offset {header.base_offset} cannot follow the end of the log at {offset} in {self.directory}"
                )
                raise UnexpectedOffsetError(message, header.base_offset, header.last_offset)
            offset = header.next_offset
            if epoch >= 0 and epoch != (epochs[-1][0] if epochs else self.epochs.latest_epoch):
                epochs.append((epoch, header.base_offset))
            size = header.size_in_bytes
            if groups[-1].size and groups[-1].size + size > self.config.segment_bytes:
                groups.append(_Group())
            groups[-1].add((view[position : position + size],), header.base_offset, header)
            if header.producer_id > NO_PRODUCER_ID:
                groups[-1].produced.append(producer_batch(header, header.base_offset, view, position))
        if not groups[0].batches:
            return None
        for epoch, start_offset in epochs:
            self.assign_epoch(epoch, start_offset)
        return self._append(groups)

    def append_marker(
        self,
        *,
        producer_id: int,
        producer_epoch: int,
        commit: bool,
        coordinator_epoch: int,
        leader_epoch: int,
        now_ms: int,
        transaction_version: int,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    ) -> AppendInfo:
        """Append the marker that ends a producer's transaction in this partition; repeating it is allowed.

        Raises KafkaError if the producer or the coordinator is fenced.
        """
        marker = bytearray(
            build_end_txn_marker(
                commit=commit,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                coordinator_epoch=coordinator_epoch,
                timestamp=now_ms,
            )
        )
        return self.append_as_leader(
            marker,
            leader_epoch,
            header=stamp_max_timestamp(marker, timestamp_type, now_ms),
            origin=AppendOrigin.COORDINATOR,
            transaction_version=transaction_version,
        )

    def assign_epoch(self, leader_epoch: int, start_offset: int, *, later: bool = False) -> None:
        """Record that an epoch starts at an offset, as a new leader does before its first record.

        With `later`, the file is written by the next `write_epochs` or `flush`.
        """
        with self._writing():
            self.epochs.assign(leader_epoch, start_offset, durable=self._is_worth_flushing, later=later)

    def write_epochs(self) -> None:
        """Write the epochs that were assigned for later."""
        with self._writing():
            self.epochs.write_changes(durable=self._is_worth_flushing)

    def roll(self, base_offset: int | None = None) -> int:
        """Start a new segment at the end of the log, or after it, and return its base offset."""
        with self._writing():
            return self._roll(self.log_end_offset if base_offset is None else base_offset).base_offset

    def skip_to(self, offset: int) -> None:
        """Continue at a later offset, as needed when copying a log whose last records were compacted away."""
        with self._writing():
            self._roll(offset)
            self.log_end_offset = max(self.log_end_offset, offset)

    def flush(self, up_to_offset: int | None = None) -> None:
        """Make everything before `up_to_offset` durable, or the whole log, and advance the recovery point."""
        truncations = self._truncations
        end = self.log_end_offset
        target = end if up_to_offset is None else min(up_to_offset, end)
        segments = self._segments
        # The segment before the recovery point may have been sealed since, with indexes that are not durable yet.
        first = max(0, _floor(segments, self.recovery_point) - 1)
        with self._writing():
            for segment in segments[first:]:
                if segment.base_offset < target and not segment.is_deleted:
                    segment.flush(indexes=segment is not segments[-1])
            self._producer_snapshots.flush()
            if self._is_worth_flushing:
                self.epochs.flush()
                self.flush_names()
        if truncations == self._truncations:
            self.recovery_point = max(self.recovery_point, target)

    def flush_names(self) -> None:
        """Make the set of files in the directory durable."""
        if self._names_changed:
            with self._writing():
                self._names_changed = False
                made, self._made = self._made, None
                if made is not None:
                    flush_topic_id(self.directory)
                fsync_directory(self.directory)
                if made is not None:
                    fsync_name(self.directory, made)

    @property
    def _is_worth_flushing(self) -> bool:
        """Whether the files contain anything that an empty directory does not."""
        return self.log_end_offset > 0 or self.config.metadata

    # Reading

    def find_range(
        self, offset: int, max_bytes: int, max_offset: int | None = None, *, min_one_batch: bool = True
    ) -> FileRange | None:
        """Return the file range that `read` would return, or None if there is no data yet."""
        end = self.log_end_offset
        if not self.log_start_offset <= offset <= end:
            message = f"offset {offset} is not between {self.log_start_offset} and {end} in {self.directory}"
            raise OffsetOutOfRangeError(message)
        limit = end if max_offset is None else min(max_offset, end)
        if offset >= limit:
            return None
        segments = self._segments
        for number in range(_floor(segments, offset), len(segments)):
            segment = segments[number]
            if segment.base_offset >= limit:
                break
            is_last = number + 1 == len(segments)
            ends_here = limit < end if is_last else limit < segments[number + 1].base_offset
            within = limit if ends_here else None
            found = segment.find_range(offset, max_bytes, within, min_one_batch=min_one_batch)
            if found is not None:
                return FileRange(segment.log, *found, segment.base_offset) if found[1] else None
        return None

    def read(self, offset: int, max_bytes: int, max_offset: int | None = None, *, min_one_batch: bool = True) -> bytes:
        """Return whole batches that end before `max_offset`, from the one that contains `offset`, or the next one, on.

        They are from one segment and at most `max_bytes` long, except that the first is returned even if it is larger.
        Returns nothing at the end of the log. Raises OffsetOutOfRangeError for an offset outside the log.
        """
        found = self.find_range(offset, max_bytes, max_offset, min_one_batch=min_one_batch)
        return b"" if found is None else found.read()

    def batches(
        self, start_offset: int | None = None, max_offset: int | None = None
    ) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Yield every batch from an offset on, with its bytes, across all segments, in reads of bounded size."""
        offset = self.log_start_offset if start_offset is None else start_offset
        while data := self.read(offset, _READ_BYTES, max_offset):
            view = memoryview(data)
            for position, header in iterate_batches(view):
                offset = header.next_offset
                yield header, view[position : position + header.size_in_bytes]

    def offset_for_timestamp(self, timestamp: int) -> FoundOffset | None:
        """Return the first record whose timestamp is not earlier than `timestamp`, or None."""
        for segment in self._segments:
            if segment.latest().timestamp >= timestamp:
                found = segment.offset_for_timestamp(timestamp, self.log_start_offset)
                if found is not None:
                    return found
        return None

    def offset_for_max_timestamp(self) -> FoundOffset | None:
        """Return the first record that has the largest timestamp, or None if there are no timestamps."""
        return max(self._segments, key=lambda segment: segment.latest().timestamp).offset_for_max_timestamp()

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEndOffset:
        """Return the largest epoch up to this one, and its end offset."""
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    # Producers and transactions

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return the offset up to which every transaction has ended and its marker is replicated.

        Call this from the appending thread whenever the high watermark moves: it drops transactions that ended before
        it.
        """
        self.producers.forget_replicated(high_watermark)
        unstable = self.producers.first_unstable_offset()
        return high_watermark if unstable is None else min(max(unstable, self.log_start_offset), high_watermark)

    def aborted_transactions(self, fetch_offset: int, upper_bound: int) -> list[AbortedTxn]:
        """Return the aborted transactions that have records between `fetch_offset` and `upper_bound` (exclusive)."""
        segments = self._segments
        transactions: list[AbortedTxn] = []
        for segment in segments[_floor(segments, fetch_offset) :]:
            found, is_complete = segment.txn_index.collect(fetch_offset, upper_bound)
            transactions += found
            if is_complete:
                break
        return transactions

    def upper_bound_offset(self, found: FileRange) -> int:
        """Return an offset after the batches of a range, as close to them as possible without reading them."""
        segments = self._segments
        number = _floor(segments, found.base_offset)
        indexed = segments[number].offset_index.upper_bound(found.position + found.size)
        if indexed is not None:
            return indexed
        return segments[number + 1].base_offset if number + 1 < len(segments) else self.log_end_offset

    def active_producers(self) -> tuple[ProducerState, ...]:
        """Return the state of every producer."""
        return self.producers.states

    def remove_expired_producers(self, now_ms: int) -> None:
        """Remove producers that have been idle for longer than `producer.id.expiration.ms`."""
        self.producers.remove_expired(now_ms, self.config.producer_id_expiration_ms)

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        return self.producers.has_ongoing_transaction(producer_id, producer_epoch)

    def maybe_start_transaction_verification(
        self, producer_id: int, sequence: int, producer_epoch: int, supports_epoch_bump: bool
    ) -> int | None:
        """Return a guard to append with once the coordinator has confirmed that the partition is in the transaction.

        Returns None if the transaction already has records here: nothing needs to be verified then. Raises KafkaError
        for an old epoch.
        """
        now_ms = self._clock()
        return self.producers.maybe_start_verification(
            producer_id, sequence, producer_epoch, supports_epoch_bump, now_ms
        )

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self._segments

    @property
    def is_open(self) -> bool:
        """Whether the log can still be written to."""
        return self._failure is None

    @property
    def truncations(self) -> int:
        """The number of truncations so far. When it changes, positions in segments may be stale."""
        return self._truncations

    @property
    def size_in_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    def statistics(self) -> LogStatistics:
        return LogStatistics(
            segments=len(self._segments),
            size_in_bytes=self.size_in_bytes,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            recovery_point=self.recovery_point,
            unflushed_records=self.log_end_offset - self.recovery_point,
            deleted_segments=len(self._deleted),
        )

    # Truncating and deleting

    def truncate_to(self, offset: int) -> int:
        """Remove everything from an offset on, and return the new end offset.

        It is `offset`, or smaller if that was in the middle of a batch, because batches are removed as a whole. An epoch
        that was to begin at `offset` or later is removed even if there are no records to remove.
        """
        if offset >= self.log_end_offset:
            with self._writing():
                self.epochs.truncate_from_end(offset)
            return self.log_end_offset
        if offset < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return offset
        with self._writing():
            self._truncations += 1
            kept = tuple(segment for segment in self._segments if segment.base_offset <= offset)
            self._discard(self._segments[len(kept) :], kept)
            end = kept[-1].truncate_to(offset, self._clock())
            self._set_end(end)
            self.log_start_offset = min(self.log_start_offset, end)
            self.epochs.truncate_from_end(end)
            self._reload_producers()
            return end

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Empty the log and continue at this offset."""
        with self._writing():
            self._truncations += 1
            self._discard(self._segments, ())
            self._begin_segment(offset)
            self._set_end(offset)
            self.log_start_offset = offset
            self.epochs.clear()
            self._reload_producers()

    def advance_log_start_offset(self, offset: int) -> bool:
        """Advance the log start offset without writing or deleting files. Return whether it changed."""
        if offset > self.log_end_offset:
            raise OffsetOutOfRangeError(f"offset {offset} is after the end {self.log_end_offset} of {self.directory}")
        if offset <= self.log_start_offset:
            return False
        with self._writing():
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset, later=True)
        self.producers.forget_replicated(offset)
        return True

    def delete_old_segments(self) -> int:
        """Remove the segments that end before the log start offset, except the last, and return how many."""
        segments = self._segments
        count = 0
        while count + 1 < len(segments) and segments[count + 1].base_offset <= self.log_start_offset:
            count += 1
        if count:
            with self._writing():
                self._discard(segments[count - 1 :: -1], segments[count:])
        return count

    def delete_by_retention(self, now_ms: int, high_watermark: int, max_segments: int | None = None) -> Expired:
        """Remove the segments that retention allows to delete, and advance the log start offset.

        If that is all of them, a new segment is created first. `delete_files` deletes their files. With `max_segments`,
        the others are left for the next call.
        """
        segments = self._segments
        found = expired(
            segments,
            self.config,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            high_watermark=high_watermark,
            now_ms=now_ms,
            max_segments=max_segments,
        )
        if found.segments:
            if found.segments == len(segments):
                self.roll()
            kept = self._segments[found.segments :]
            self.advance_log_start_offset(kept[0].base_offset)
            with self._writing():
                self._discard(segments[found.segments - 1 :: -1], kept)
        return found

    def find_dirty(self, checkpoint: int | None, high_watermark: int, now_ms: int) -> DirtyLog:
        """Return how much of the log can be compacted. `checkpoint` is the offset up to which it was, or None."""
        return find_dirty(
            self._segments,
            self.config,
            checkpoint,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            last_stable_offset=self.last_stable_offset(high_watermark),
            now_ms=now_ms,
        )

    def prepare_replacement(self, cleaned: Segment) -> None:
        """Give a durable segment that a compaction made the names with which a restart would use it. For any thread."""
        with self._writing():
            cleaned.change_suffix(SWAP_SUFFIX)
            fsync_directory(self.directory)  # before the segments that it replaces are removed

    def replace_segments(self, cleaned: Segment, replaced: Sequence[Segment]) -> None:
        """Replace segments by the one that was prepared for it.

        A crash at any point leaves either the new segment or the old ones.
        """
        segments = self._segments
        first = segments.index(replaced[0])
        behind = first + len(replaced)
        if segments[first:behind] != tuple(replaced) or behind == len(segments):
            raise ValueError(f"cannot replace the segments from {cleaned.base_offset} on in {self.directory}")
        now_ms = self._clock()
        with self._writing():
            self._segments = (*segments[:first], cleaned, *segments[behind:])
            self._names_changed = True
            for segment in replaced:
                keep_snapshot = segment.base_offset == cleaned.base_offset
                segment.mark_deleted(keep_snapshot=keep_snapshot)
                if not keep_snapshot:
                    self._producer_snapshots.forget(segment.base_offset)
                self._deleted.append((now_ms, segment))
            cleaned.change_suffix("")

    def delete_files(self, delay_ms: int = 0) -> int:
        """Delete the files of segments that were removed at least `delay_ms` ago, and return the number of segments."""
        due = self.take_deleted(delay_ms)
        for segment in due:
            segment.delete()
        return len(due)

    def take_deleted(self, delay_ms: int = 0) -> list[Segment]:
        """Return the segments that were removed at least `delay_ms` ago. The caller deletes their files, in any thread."""
        if not self._deleted:
            return []
        now_ms = self._clock()
        due = [segment for taken_ms, segment in self._deleted if taken_ms + delay_ms <= now_ms]
        self._deleted = [pair for pair in self._deleted if pair[0] + delay_ms > now_ms]
        return due

    def rename(self, directory: Path) -> None:
        """Rename the directory within the same log dir."""
        with self._writing():
            segments = (*self._segments, *(segment for _, segment in self._deleted))
            rename_directory(self.directory, directory, [file for each in segments for file in each.move(directory)])
            self.directory = directory
            self.epochs.move(directory)
            self._producer_snapshots.directory = directory

    def close(self) -> None:
        """Close the log cleanly: flush everything, and leave the files as Kafka does."""
        if self._failure is None:
            with self._writing():
                self._segments[-1].seal()
                self._take_producer_snapshot(self.log_end_offset)
                self.flush()
                self._segments[-1].flush(indexes=True)
                self.delete_files()
        self.abandon()

    def abandon(self) -> None:
        """Close the files without writing, for example after a disk failure."""
        self._failure = self._failure or "it was closed"
        for segment in (*self._segments, *(segment for _, segment in self._deleted)):
            segment.let_go()

    def delete(self) -> None:
        """Delete the log and its directory."""
        self.abandon()
        delete_directory(self.directory)
        fsync_directory(self.directory.parent)

    # Internals

    def _append(self, groups: Sequence[_Group]) -> AppendInfo:
        rolled = None
        size, max_timestamp = 0, NO_TIMESTAMP
        self._check_usable()
        try:  # as `_writing`, which would cost each batch several calls
            for group in groups:
                first, last = group.batches[0], group.batches[-1]
                size += group.size
                max_timestamp = max(max_timestamp, group.max_timestamp)
                segment = self._segments[-1]
                if segment.should_roll(group.size, group.max_timestamp, last.last_offset, self._clock()):
                    segment = self._roll(first.base_offset)
                    rolled = segment.base_offset
                segment.append(group.buffers, group.batches)
                for produced in group.produced:
                    follow(self.producers, produced, segment.txn_index)
                    self.producers.keep_at_most(self.config.max_producer_ids)
                self.log_end_offset = last.last_offset + 1
        except StorageError as error:
            self._failure = self._failure or error.message
            raise
        return AppendInfo(groups[0].batches[0].base_offset, self.log_end_offset - 1, max_timestamp, size, rolled)

    def _roll(self, base_offset: int) -> Segment:
        active = self._segments[-1]
        base_offset = max(base_offset, self.log_end_offset)
        if base_offset == active.base_offset:
            return active  # it is empty
        active.seal()
        segment = self._begin_segment(base_offset)
        self._take_producer_snapshot(base_offset)
        return segment

    def _begin_segment(self, base_offset: int) -> Segment:
        segment = Segment.create(self.directory, base_offset, self.config, self._clock())
        self._segments = (*self._segments, segment)
        self._names_changed = True
        return segment

    def _take_producer_snapshot(self, offset: int) -> None:
        taken = self._producer_snapshots.take(self.producers, offset, self.log_start_offset)
        self._names_changed = self._names_changed or taken

    def _reload_producers(self) -> None:
        """Rebuild the producer state after a truncation, because it may contain producers of removed batches."""
        self._names_changed = True
        if self.producers.is_empty:
            self._producer_snapshots.delete_outside(self.log_start_offset, self.log_end_offset)
            self._take_producer_snapshot(self.log_end_offset)
            return
        self.producers = self._producer_snapshots.load(
            self._segments,
            self.log_start_offset,
            self.log_end_offset,
            now_ms=self._clock(),
            expiration_ms=self.config.producer_id_expiration_ms,
            before=self.producers,
        )

    def _discard(self, segments: Sequence[Segment], kept: tuple[Segment, ...]) -> None:
        """Remove segments, the last one first, so that a crash leaves no gap."""
        self._segments = kept
        self._names_changed = self._names_changed or bool(segments)
        now_ms = self._clock()
        for segment in reversed(segments):
            segment.mark_deleted()
            self._producer_snapshots.forget(segment.base_offset)
            self._deleted.append((now_ms, segment))

    def _set_end(self, offset: int) -> None:
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)

    def _check_usable(self) -> None:
        if self._failure is not None:
            raise StorageError(f"the log in {self.directory} cannot be written to: {self._failure}")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Refuse all writes after a disk error.

        A retried fsync may succeed without the data that the first one lost.
        """
        self._check_usable()
        try:
            yield
        except StorageError as error:
            self._failure = self._failure or error.message
            raise


def _floor(segments: Sequence[Segment], offset: int) -> int:
    """Return the index of the segment that contains an offset, or 0."""
    return max(0, bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1)
