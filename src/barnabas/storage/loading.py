"""Opening a log: cleans up its directory after an unclean shutdown, and rebuilds missing files.

Its one rule: a log keeps every intact batch up to the first that is not. After a clean shutdown the files are trusted;
otherwise segments from the recovery point on are checked batch by batch, as in Kafka. Missing or invalid indexes are
always rebuilt, and so are leader epochs and producer state. Renames of a compaction are completed or undone. A
directory opened read-only is not changed: the same happens in memory, and indexes are verified against the log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from math import inf
from pathlib import Path
from typing import NamedTuple

from barnabas.batches import BatchHeader
from barnabas.storage.aborted import follow
from barnabas.storage.batch_file import WholeBatch, walk_places
from barnabas.storage.checkpoints import LEADER_EPOCH_CHECKPOINT, DamagedCheckpointError
from barnabas.storage.epochs import UNDEFINED_EPOCH, LeaderEpochs
from barnabas.storage.errors import CorruptLogError, StorageError
from barnabas.storage.files import File, ReadOnlyFile, delete_file, file_names, fsync_directory, rename
from barnabas.storage.log_config import LogConfig
from barnabas.storage.producer_snapshots import ProducerSnapshots
from barnabas.storage.producers import Producers, producer_batch
from barnabas.storage.segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    Recovery,
    Segment,
)

_SNAPSHOT_DELETED_SUFFIX = ".checkpoint" + DELETED_SUFFIX
_SEGMENT_FILE = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex)(\.cleaned|\.swap|)")


class Loaded(NamedTuple):
    """A loaded log and its recoveries."""

    segments: list[Segment]
    epochs: LeaderEpochs
    producers: Producers
    producer_snapshots: ProducerSnapshots
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    recoveries: tuple[Recovery, ...]
    began: bool  # there was no segment
    faults: tuple[str, ...] = ()  # damaged files that were rebuilt


def load(
    directory: Path,
    config: LogConfig,
    now_ms: int,
    *,
    clean_shutdown: bool,
    recovery_point: int,
    log_start_offset: int,
    read_only: bool = False,
) -> Loaded:
    """Load the log of a directory, which may be empty.

    With `read_only` nothing in the directory changes: recovery happens in memory.
    """
    names = file_names(directory)
    files = ReadOnlyFile if read_only else File
    segments = _open_segments(directory, names, config, now_ms, files)
    epochs, fault = _read_epochs(directory, names, strict=config.metadata)
    with_epochs = epochs is not None
    if epochs is None:
        epochs = LeaderEpochs(directory / LEADER_EPOCH_CHECKPOINT, is_new=True)
    epochs.hold()
    snapshots = ProducerSnapshots(directory, names, read_only=read_only)
    producers = _ProducersOfSegments(snapshots, config, now_ms, log_start_offset)
    recoveries, log_end_offset = _recover(
        segments,
        config,
        _EpochsOfBatches(epochs).visit,
        producers,
        with_epochs,
        None if clean_shutdown else recovery_point,
        distrust=read_only,
    )
    if segments and log_end_offset < log_start_offset:
        # This only happens if files were removed: the checkpoint does not refer to what is left.
        if read_only:
            log_start_offset = 0
        else:
            _delete(segments)
            segments = []
            epochs.clear()
    began = not segments
    if began:
        segments = [Segment.create(directory, log_start_offset, config, now_ms, files=files)]
        if config.metadata:
            fsync_directory(directory)
        log_end_offset = log_start_offset
    log_start_offset = max(log_start_offset, segments[0].base_offset)
    epochs.truncate_from_end(log_end_offset)
    epochs.truncate_from_start(log_start_offset)
    if not read_only:
        epochs.save(durable=config.metadata or log_end_offset > 0)
    flushed = log_end_offset if clean_shutdown and not recoveries else min(recovery_point, log_end_offset)
    return Loaded(
        segments,
        epochs,
        producers.at_end(segments, log_start_offset, log_end_offset),
        snapshots,
        log_start_offset,
        log_end_offset,
        flushed,
        tuple(recoveries),
        began,
        (() if fault is None else (fault,)) + snapshots.faults,
    )


def begin(directory: Path, config: LogConfig, now_ms: int, log_start_offset: int) -> Loaded:
    """Start a log in a directory that was just created."""
    segment = Segment.create(directory, log_start_offset, config, now_ms)
    if config.metadata:
        fsync_directory(directory)
    epochs = LeaderEpochs(f"{directory}/{LEADER_EPOCH_CHECKPOINT}", is_new=True)
    ends = (log_start_offset,) * 3
    return Loaded([segment], epochs, Producers(), ProducerSnapshots(directory, ()), *ends, recoveries=(), began=True)


def segment_offsets(directory: Path) -> list[int]:
    """Return the base offsets of the segments in a directory, in order."""
    found = map(_SEGMENT_FILE.fullmatch, file_names(directory))
    return [int(match[1]) for match in found if match and match[2] == LOG_SUFFIX and not match[3]]


def _open_segments(
    directory: Path, names: Sequence[str], config: LogConfig, now_ms: int, files: type[File]
) -> list[Segment]:
    leftovers = _find_leftovers(directory, names)
    suffixes = {int(name[:20]): SWAP_SUFFIX for name in leftovers.swapped if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)}
    if files is File:
        leftovers.clear(directory)
        suffixes = dict.fromkeys(suffixes, "")
    dropped = set(leftovers.dropped)
    found = (_SEGMENT_FILE.fullmatch(name) for name in names if name not in dropped)
    suffixes |= {int(match[1]): "" for match in found if match and match[2] == LOG_SUFFIX and not match[3]}
    return [Segment.open(directory, offset, config, now_ms, suffixes[offset], files) for offset in sorted(suffixes)]


class _Leftovers(NamedTuple):
    """Files that an interrupted operation left: those to delete, and `.swap` files that replace others."""

    dropped: list[str]
    swapped: list[str]

    def clear(self, directory: Path) -> None:
        for name in self.dropped:
            delete_file(directory / name)
        for name in self.swapped:
            rename(directory / name, directory / name.removesuffix(SWAP_SUFFIX))
        if self.swapped:
            fsync_directory(directory)


def _find_leftovers(directory: Path, names: Sequence[str]) -> _Leftovers:
    """Find the files to delete, and the replacements to complete.

    New segments are written as `.cleaned`, renamed to `.swap` from the last to the first, and, when the old ones are
    gone, to their final names. So a `.swap` after a `.cleaned` belongs to a replacement that did not take effect yet.
    """
    dropped = [name for name in names if name.endswith(DELETED_SUFFIX) and not name.endswith(_SNAPSHOT_DELETED_SUFFIX)]
    matches = [match for name in names if (match := _SEGMENT_FILE.fullmatch(name))]
    undecided = min((int(match[1]) for match in matches if match[3] == CLEANED_SUFFIX), default=2**63)
    swaps = [match for match in matches if match[3] == SWAP_SUFFIX and int(match[1]) < undecided]
    replaced = _replaced(directory, swaps)
    logs = {int(match[1]) for match in swaps if match[2] == LOG_SUFFIX}
    own = [match for match in matches if not match[3] and int(match[1]) not in replaced]
    logs |= {int(match[1]) for match in own if match[2] == LOG_SUFFIX}
    # An interrupted deletion leaves indexes without a log.
    kept = {match[0] for match in (*own, *swaps) if int(match[1]) in logs}
    dropped += [match[0] for match in matches if match[0] not in kept]
    return _Leftovers(dropped, [match[0] for match in swaps if match[0] in kept])


def _replaced(directory: Path, swaps: Iterable[re.Match[str]]) -> range:
    """Return the offsets of the segments that are replaced by these `.swap` files."""
    start, end = 2**63, -1
    for match in swaps:
        if match[2] == LOG_SUFFIX:
            file = File(directory / match[0], writable=False)
            end = max(end, int(match[1]) + 1)  # the segment of the same name is replaced even if no batch is left
            for place in walk_places(file, 0, file.size()):
                end = max(end, place.last_offset + 1)
            file.let_go()
            start = min(start, int(match[1]))
    return range(start, end)


def _read_epochs(directory: Path, names: Sequence[str], *, strict: bool) -> tuple[LeaderEpochs | None, str | None]:
    """Read the leader epoch checkpoint. Returns None if it is missing, or if it is invalid and not `strict`.

    The second value describes the fault of an invalid one.
    """
    if LEADER_EPOCH_CHECKPOINT not in names:
        return None, None
    try:
        return LeaderEpochs(directory / LEADER_EPOCH_CHECKPOINT), None
    except StorageError as error:
        if strict:
            raise
        fault = error.fault if isinstance(error, DamagedCheckpointError) else str(error)
        return None, f"{fault}: leader epochs are rebuilt from the log"


def _recover(
    segments: list[Segment],
    config: LogConfig,
    visit: Callable[[BatchHeader], None],
    producers: _ProducersOfSegments,
    with_epochs: bool,
    recovery_point: int | None,
    *,
    distrust: bool,
) -> tuple[list[Recovery], int]:
    """Recover the segments that need it, delete those after damage, and return the recoveries and the end of the log.

    With `distrust` indexes are checked against the log, which takes longer.
    """
    recoveries: list[Recovery] = []
    next_offset = 0
    # Kafka scans whole segments. A metadata log need not, because its flushed part is never truncated.
    flushed_offset = recovery_point if recovery_point is not None and config.metadata and with_epochs else 0
    for number, segment in enumerate(segments):
        following = segments[number + 1 :]
        unflushed = recovery_point is not None and (not following or following[0].base_offset > recovery_point)
        if config.metadata and recoveries and segment.base_offset != next_offset:
            raise CorruptLogError(segment.log.path, 0, f"the segment before it ends at offset {next_offset}")
        if not unflushed and segment.index_fault() is None and not (distrust and segment.index_misfit()):
            if not with_epochs:
                for _, header in segment.headers():
                    visit(header)
            try:
                next_offset = following[0].base_offset if following else segment.next_offset()
                continue
            except CorruptLogError:
                unflushed = True  # the shutdown was not clean after all
        producers.begin(segments[:number], segment)

        def visit_whole(batch: WholeBatch, segment: Segment = segment) -> None:
            visit(batch.header)
            producers.visit(batch, segment)

        recovery = segment.recover(
            visit_whole, flushed_offset=flushed_offset, batches_follow=any(other.size for other in following)
        )
        recoveries.append(recovery)
        next_offset = recovery.next_offset
        producers.end(segment, next_offset)
        if recovery.truncated_bytes and unflushed:
            _delete(following)
            del segments[number + 1 :]
            break
        if following:
            segment.seal()
    return recoveries, next_offset


def _delete(segments: list[Segment]) -> None:
    for segment in reversed(segments):
        segment.mark_deleted()
        segment.delete()


class _EpochsOfBatches:
    """Corrects the leader epochs of a log by its batches, which are authoritative."""

    def __init__(self, epochs: LeaderEpochs) -> None:
        self._epochs = epochs
        self._end: int | None = None
        # The epoch that was looked up last, and the offset up to which it is valid.
        self._epoch = UNDEFINED_EPOCH
        self._until: float = 0

    def visit(self, header: BatchHeader) -> None:
        epoch, base_offset = header.partition_leader_epoch, header.base_offset
        if epoch >= 0 and (epoch != self._epoch or base_offset >= self._until):
            self._agree(epoch, base_offset)
        self._end = header.next_offset

    def _agree(self, epoch: int, base_offset: int) -> None:
        epochs = self._epochs
        if epochs.epoch_for_offset(base_offset) != epoch:
            # The entries agree up to the end of the previous batch.
            epochs.truncate_from_end(base_offset if self._end is None else min(self._end, base_offset))
            if epochs.epoch_for_offset(base_offset) != epoch:
                epochs.assign(epoch, base_offset)
        self._epoch = epoch
        self._until = min((entry.start_offset for entry in epochs.entries if entry.epoch > epoch), default=inf)


class _ProducersOfSegments:
    """Tracks the producers of a log through its recovered segments, and rebuilds their transaction indexes."""

    def __init__(self, snapshots: ProducerSnapshots, config: LogConfig, now_ms: int, log_start_offset: int) -> None:
        self.snapshots = snapshots
        self._config = config
        self._now_ms = now_ms
        self._log_start_offset = log_start_offset
        self._producers = Producers()
        self._recovered: Segment | None = None
        self._offset = -1

    def begin(self, before: list[Segment], segment: Segment) -> None:
        """Bring the producer state to the start of a segment. Snapshots at later offsets are not trusted."""
        if self._config.metadata:
            return
        if before and before[-1] is self._recovered:
            self.snapshots.take(self._producers, segment.base_offset, self._log_start_offset)
        else:
            self._load(before, self._log_start_offset, segment.base_offset)

    def visit(self, batch: WholeBatch, segment: Segment) -> None:
        header = batch.header
        if header.has_producer_id and not self._config.metadata:
            produced = producer_batch(header, header.base_offset, batch.data, batch.start)
            follow(self._producers, produced, segment.txn_index)
            self._producers.keep_at_most(self._config.max_producer_ids)

    def end(self, segment: Segment, offset: int) -> None:
        self._recovered = segment
        self._offset = offset
        if not self._config.metadata:
            self.snapshots.take(self._producers, offset, self._log_start_offset)

    def at_end(self, segments: list[Segment], log_start_offset: int, log_end_offset: int) -> Producers:
        """Return the producer state at the end of the log, after its segments are recovered."""
        if self._config.metadata:
            return self._producers
        self.snapshots.delete_strays([segment.base_offset for segment in segments])
        if self._offset == log_end_offset > log_start_offset:
            # State read from the log has the last five batches of each producer, state from a snapshot only one.
            self.snapshots.delete_outside(log_start_offset, log_end_offset)
            self._producers.remove_expired(self._now_ms, self._config.producer_id_expiration_ms)
        else:
            self._load(segments, log_start_offset, log_end_offset)
        return self._producers

    def _load(self, segments: list[Segment], log_start_offset: int, end_offset: int) -> None:
        self._producers = self.snapshots.load(
            segments,
            log_start_offset,
            end_offset,
            now_ms=self._now_ms,
            expiration_ms=self._config.producer_id_expiration_ms,
        )
