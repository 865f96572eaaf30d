"""Planning: from log directories and options to partitions, and to pieces of their segments of about equal size.

Its one rule: a piece is a range of offsets. File, inode and positions tell where it was when planned; the reader finds it again
by its offsets if the log has changed since (see log_reading). Planning reads file names, checkpoints, indexes and a few
headers, but no records, except for the one batch in which a timestamp is searched. All values are small when pickled.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from barnabas.batches import BatchError, decode_records
from barnabas.lake.reading.log_files import (
    OffsetEntries,
    OpenSegment,
    SegmentPlace,
    list_segments,
    offset_entries,
    time_entries,
)
from barnabas.lake.reading.options import EARLIEST, LATEST, LogOptions, OptionError
from barnabas.storage import (
    LOG_START_OFFSET_CHECKPOINT,
    AbortedTxn,
    CorruptLogError,
    EpochEntry,
    TopicPartition,
    read_offset_checkpoint,
    read_topic_id,
)
from barnabas.storage.checkpoints import LEADER_EPOCH_CHECKPOINT, read_epoch_checkpoint
from barnabas.storage.log_dirs import (
    CLUSTER_METADATA,
    META_PROPERTIES,
    DirectoryState,
    list_partitions,
    parse_directory_name,
    read_meta_properties,
)
from barnabas.storage.partition_metadata import PARTITION_METADATA

_log = logging.getLogger(__name__)

OPEN_COST_BYTES = 4 << 20
"""The cost of opening a piece, in bytes, when small pieces are combined for one task."""


class PieceStart(NamedTuple):
    """A copy of a partition: its cluster, node, topic and directory."""

    cluster_id: str | None
    node_id: int | None
    topic: str
    partition: int
    topic_id: str | None
    directory: str

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class LogPartition(NamedTuple):
    """A copy of a partition, as it is now."""

    place: PieceStart
    segments: tuple[SegmentPlace, ...]
    start_offset: int
    """The first offset that may be in the files."""
    log_start_offset: int
    """The first offset for consumers: records that DeleteRecords deleted may still be in the files."""
    end_offset: int
    """The offset after the last complete batch."""
    end_position: int
    """The end of that batch, or of the damage after it, in the last segment."""
    epochs: tuple[EpochEntry, ...]

    @property
    def directory(self) -> Path:
        return Path(self.place.directory)

    def epoch_before(self, offset: int) -> int | None:
        """Return the leader epoch of the record before an offset, if it is known."""
        following = bisect_right(self.epochs, offset - 1, key=lambda entry: entry.start_offset)
        return self.epochs[following - 1].epoch if following else None

    def end_of_epoch(self, epoch: int) -> int:
        """Return the offset at which a later epoch than this one starts."""
        return next((entry.start_offset for entry in self.epochs if entry.epoch > epoch), self.end_offset)


class Piece(NamedTuple):
    """Offsets from `start_offset` to before `end_offset`, and the bytes of the segment that had them when planned."""

    segment: SegmentPlace
    position: int
    end_position: int
    start_offset: int
    end_offset: int
    is_active: bool = False
    """Whether it was the last segment, which may grow."""

    @property
    def size(self) -> int:
        return self.end_position - self.position


class Share(NamedTuple):
    """The part of a partition that one task reads: pieces in the order of offsets, and the transactions aborted in them."""

    place: PieceStart
    pieces: tuple[Piece, ...]
    aborted: tuple[AbortedTxn, ...] = ()

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds that filters set for all partitions; None is no bound. Ends are exclusive, times are in milliseconds."""

    topics: frozenset[str] | None = None
    topic_prefix: str = ""
    partitions: frozenset[int] | None = None
    start_offset: int | None = None
    end_offset: int | None = None
    start_timestamp: int | None = None
    end_timestamp: int | None = None

    def takes(self, topic: str, partition: int) -> bool:
        return (
            (self.topics is None or topic in self.topics)
            and topic.startswith(self.topic_prefix)
            and (self.partitions is None or partition in self.partitions)
        )


EVERYTHING = Bounds()


# Partitions


def find_partitions(options: LogOptions, bounds: Bounds = EVERYTHING) -> list[LogPartition]:
    """Return the wanted partitions, in order. Of several copies, the best one, or all if the options say so."""
    found = []
    for path in options.paths:
        for place in find_places(path, options):
            if options.takes(place.topic, place.partition) and bounds.takes(place.topic, place.partition):
                partition = read_partition(place)
                if partition is not None:
                    found.append(partition)
    return sorted(found, key=_order) if options.all_copies else best_copies(found)


def find_places(path: Path, options: LogOptions) -> Iterator[PieceStart]:
    """Yield the copies in a log dir, or the one in a partition's own directory.

    The metadata log is skipped in a log dir: it has secrets, and `kafka_metadata` reads it.
    """
    if not path.is_dir():
        raise OptionError(f"{path} is not a directory" if path.exists() else f"the path {path} does not exist")
    name = parse_directory_name(path.name)
    if name is not None and not (path / META_PROPERTIES).exists() and list_segments(path):
        if name[0] == CLUSTER_METADATA and not options.include_secrets:
            raise OptionError(f"{path} is the metadata log: read it with kafka_metadata, which masks its secrets")
        yield _place(path, name[0], *_owner(path.parent, options))
        return
    owner = _owner(path, options)
    for directory in list_partitions(path).partitions:
        if directory.state is DirectoryState.CURRENT and directory.partition != CLUSTER_METADATA:
            yield _place(directory.path, directory.partition, *owner)


def _owner(log_dir: Path, options: LogOptions) -> tuple[str | None, int | None]:
    meta = read_meta_properties(log_dir)
    cluster_id = options.cluster_id if meta is None or meta.cluster_id is None else meta.cluster_id
    node_id = options.node_id if meta is None or meta.node_id is None else meta.node_id
    return cluster_id, node_id


def _place(path: Path, partition: TopicPartition, cluster_id: str | None, node_id: int | None) -> PieceStart:
    topic_id = read_topic_id(path)
    return PieceStart(cluster_id, node_id, *partition, None if topic_id is None else str(topic_id), str(path))


def read_partition(place: PieceStart) -> LogPartition | None:
    """Return a copy as it is now; None if it was deleted meanwhile, or has no segment yet."""
    directory = Path(place.directory)
    try:
        segments = list_segments(directory)
    except FileNotFoundError:
        return None
    if not segments:
        return None
    try:
        end_offset, end_position = end_of_segment(directory, segments[-1])
    except FileNotFoundError:
        return read_partition(place)
    start_offset = segments[0].base_offset
    deleted_to = read_offset_checkpoint(directory.parent / LOG_START_OFFSET_CHECKPOINT)
    log_start_offset = deleted_to.get(TopicPartition(place.topic, place.partition), 0)
    return LogPartition(
        place,
        segments,
        start_offset,
        min(max(log_start_offset, start_offset), end_offset),
        end_offset,
        end_position,
        tuple(read_epoch_checkpoint(directory / LEADER_EPOCH_CHECKPOINT)),
    )


def end_of_segment(directory: Path, segment: SegmentPlace) -> tuple[int, int]:
    """Return offset and position after the last complete batch; the position after damage, if it is not just a torn tail."""
    entries = offset_entries(directory, segment)
    with OpenSegment.open(directory / segment.name) as file:
        position = _last_position(file, entries)
        end = segment.base_offset
        try:
            for start, header in file.headers(position):
                position, end = start + header.size_in_bytes, header.next_offset
        except CorruptLogError as damage:
            if not damage.truncated and not file.is_empty_from(damage.position):
                position = file.size()
    return end, position


def _last_position(file: OpenSegment, entries: OffsetEntries) -> int:
    """Return the position of the last index entry that matches the log."""
    for slot in range(len(entries.offset) - 1, -1, -1):
        header = file.header(int(entries.position[slot]))
        if header is not None and header.last_offset == entries.offset[slot]:
            return int(entries.position[slot])
    return 0


def best_copies(partitions: Iterable[LogPartition]) -> list[LogPartition]:
    """Return, of the copies of each partition, the one with the latest leader epoch, and of those the longest.

    If copies of two topics of the same name are left, that of the topic whose directory was created last counts.
    """
    chosen: dict[tuple[str, str, int], LogPartition] = {}
    for partition in partitions:
        place = partition.place
        key = (place.cluster_id or "", place.topic, place.partition)
        other = chosen.get(key)
        if other is None or _worth(partition, other) > _worth(other, partition):
            chosen[key] = partition
    return sorted(chosen.values(), key=_order)


def _worth(partition: LogPartition, other: LogPartition) -> tuple[int, int, int]:
    made = 0
    if None not in (partition.place.topic_id, other.place.topic_id) and partition.place[4] != other.place[4]:
        _log.warning("%s and %s belong to different topics of the same name", partition.directory, other.directory)
        made = (partition.directory / PARTITION_METADATA).stat().st_mtime_ns
    epoch = partition.epoch_before(partition.end_offset)
    return made, -1 if epoch is None else epoch, partition.end_offset


def _order(partition: LogPartition) -> tuple[str, str, int, int, str]:
    place = partition.place
    return place.cluster_id or "", place.topic, place.partition, place.node_id or 0, place.directory


# Offsets


def offset_range(
    partition: LogPartition, options: LogOptions, bounds: Bounds = EVERYTHING, end_offset: int | None = None
) -> tuple[int, int]:
    """Return start and end of the offsets that options and filters leave; `end_offset` is the end of the log for the reader."""
    place = partition.place
    end = partition.end_offset if end_offset is None else end_offset
    first = partition.start_offset if options.isolation is None else partition.log_start_offset
    start = _resolve(options.starting_offsets.of(place.topic, place.partition), first, end)
    stop = _resolve(options.ending_offsets.of(place.topic, place.partition), first, end)
    if options.starting_timestamp is not None:
        found = offset_for_timestamp(partition, options.starting_timestamp, first)
        start = end if found is None else found
    if options.ending_timestamp is not None:
        found = offset_for_timestamp(partition, options.ending_timestamp, first)
        stop = end if found is None else found
    start = max(start, first, bounds.start_offset or 0)
    stop = min(stop, end, end if bounds.end_offset is None else bounds.end_offset)
    return start, max(start, stop)


def _resolve(offset: int, first: int, end: int) -> int:
    return {EARLIEST: first, LATEST: end}.get(offset, offset)


def offset_for_timestamp(partition: LogPartition, timestamp: int, start_offset: int = 0) -> int | None:
    """Return the first offset, from `start_offset` on, whose record is not earlier than a time; None if there is none."""
    for number, segment in enumerate(partition.segments):
        following = partition.segments[number + 1 : number + 2]
        if following and following[0].base_offset <= start_offset:
            continue
        after = offset_after_earlier(partition, segment, timestamp)
        if after is None:
            continue
        entries = offset_entries(partition.directory, segment)
        with OpenSegment.open(partition.directory / segment.name) as file:
            found = _first_not_earlier(file, entries, timestamp, max(after, start_offset))
        if found is not None:
            return found
    return None


def offset_after_earlier(partition: LogPartition, segment: SegmentPlace, timestamp: int) -> int | None:
    """Return an offset before which all records of a segment are earlier than a time, by its index; None if all are."""
    entries = time_entries(partition.directory, segment)
    earlier = int(np.searchsorted(entries.timestamp, timestamp, side="left"))
    # In a segment that is not written to any more, the last entry has the largest timestamp of all records.
    if earlier == len(entries.timestamp) > 0 and segment.base_offset != partition.segments[-1].base_offset:
        return None
    return int(entries.offset[earlier - 1]) + 1 if earlier else segment.base_offset


def _first_not_earlier(file: OpenSegment, entries: OffsetEntries, timestamp: int, start_offset: int) -> int | None:
    try:
        for position, header in file.headers(position_before(file, entries, start_offset)):
            if header.last_offset < start_offset or header.max_timestamp < timestamp:
                continue
            try:
                records = decode_records(file.read(header.size_in_bytes, position), 0, header)
            except BatchError:
                return max(header.base_offset, start_offset)
            for record in records:
                if record.offset >= start_offset and record.timestamp >= timestamp:
                    return record.offset
    except CorruptLogError:
        pass
    return None


def position_before(file: OpenSegment, entries: OffsetEntries, offset: int) -> int:
    """Return the position to search an offset from: that of the index, if it matches the log, or else 0."""
    slot = int(np.searchsorted(entries.offset, offset, side="left")) - 1
    if slot >= 0:
        header = file.header(int(entries.position[slot]))
        if header is not None and header.last_offset == entries.offset[slot]:
            return int(entries.position[slot])
    return 0


# Pieces


def split(
    partition: LogPartition, start_offset: int, end_offset: int, max_bytes: int, start_timestamp: int | None = None
) -> list[Piece]:
    """Return the pieces of a range of offsets, in order, of about `max_bytes` each, without segments before a time."""
    pieces: list[Piece] = []
    for number, segment in enumerate(partition.segments):
        last = number + 1 == len(partition.segments)
        first = max(segment.base_offset, start_offset)
        end = min(partition.end_offset if last else partition.segments[number + 1].base_offset, end_offset)
        if start_timestamp is not None and first < end:
            after = offset_after_earlier(partition, segment, start_timestamp)
            first = end if after is None else max(first, after)
        if first < end:
            end_position = partition.end_position if last else segment.size
            try:
                found = list(_split_segment(partition.directory, segment, first, end, end_position, max_bytes))
            except FileNotFoundError:
                found = [Piece(segment, 0, end_position, first, end)]
            pieces += [piece._replace(is_active=last) for piece in found]
    return pieces


def _split_segment(
    directory: Path, segment: SegmentPlace, start_offset: int, end_offset: int, end_position: int, max_bytes: int
) -> Iterator[Piece]:
    entries = offset_entries(directory, segment)
    with OpenSegment.open(directory / segment.name) as file:
        position = position_before(file, entries, start_offset)
        behind = int(np.searchsorted(entries.offset, end_offset, side="left"))
        if behind < len(entries.offset):  # the batch of that entry has the end, or is after it
            header = file.header(int(entries.position[behind]))
            if header is not None and header.last_offset == entries.offset[behind]:
                end_position = min(end_position, int(entries.position[behind]) + header.size_in_bytes)
        first = start_offset
        while end_position - position > max_bytes:
            slot = int(np.searchsorted(entries.position, position + max_bytes, side="right")) - 1
            if slot < 0 or entries.position[slot] <= position:
                slot += 1  # a batch, or a gap in the index, is larger than a piece may be
            if slot >= len(entries.position) or entries.position[slot] >= end_position:
                break
            cut = int(entries.position[slot])
            header = file.header(cut)
            if header is None or header.last_offset != entries.offset[slot] or header.base_offset <= first:
                break
            if header.base_offset >= end_offset:
                break
            yield Piece(segment, position, cut, first, header.base_offset)
            position, first = cut, header.base_offset
        yield Piece(segment, position, end_position, first, end_offset)


def pack(shares: Iterable[Share], max_bytes: int) -> list[tuple[Share, ...]]:
    """Return the shares of each task: small pieces, of any partitions, are combined up to `max_bytes`."""
    tasks: list[tuple[Share, ...]] = []
    task: list[Share] = []
    size = 0
    for share in shares:
        for piece in share.pieces:
            cost = piece.size + min(OPEN_COST_BYTES, max_bytes)
            if task and size + cost > max_bytes:
                tasks.append(tuple(task))
                task, size = [], 0
            if task and task[-1].place == share.place:
                aborted = tuple(dict.fromkeys((*task[-1].aborted, *share.aborted)))
                task[-1] = task[-1]._replace(pieces=(*task[-1].pieces, piece), aborted=aborted)
            else:
                task.append(share._replace(pieces=(piece,)))
            size += cost
    return [*tasks, tuple(task)] if task else tasks


def with_aborted(share: Share, aborted: Sequence[AbortedTxn]) -> Share:
    """Return a share with the aborted transactions that overlap it."""
    start, end = share.pieces[0].start_offset, share.pieces[-1].end_offset
    return share._replace(aborted=tuple(txn for txn in aborted if txn.last_offset >= start and txn.first_offset < end))


# The whole plan


def plan(options: LogOptions, bounds: Bounds = EVERYTHING) -> list[tuple[Share, ...]]:
    """Return what each task of a batch reads."""
    from barnabas.lake.reading.log_stable import stable_end  # only needed for committed records

    shares = []
    for partition in find_partitions(options, bounds):
        end, aborted = stable_end(partition, options.isolation)
        start, stop = offset_range(partition, options, bounds, end)
        shares += share_out(partition, start, stop, options, aborted, bounds.start_timestamp)
    return pack(shares, options.max_partition_bytes)


def share_out(
    partition: LogPartition,
    start_offset: int,
    end_offset: int,
    options: LogOptions,
    aborted: Sequence[AbortedTxn] = (),
    start_timestamp: int | None = None,
) -> list[Share]:
    """Return a range of a partition as one share per piece."""
    pieces = split(partition, start_offset, end_offset, options.max_partition_bytes, start_timestamp)
    return [with_aborted(Share(partition.place, (piece,)), aborted) for piece in pieces]
