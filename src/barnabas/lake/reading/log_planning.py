"""From log directories and options to what is to be read: partitions, and pieces of their segments of about one size.

Its one rule: a piece is a range of offsets. Its file, inode and bytes say where that range was when it was planned; who reads
it finds it again by its offsets if the log has changed since (see log_reading). Planning reads names, checkpoints, indexes and
a few headers, never records, but for the one batch in which a timestamp is looked for. Everything here pickles small.
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

logger = logging.getLogger(__name__)

OPEN_COST_BYTES = 4 << 20
"""What opening a piece is worth, when small ones are put together for one task."""


class Place(NamedTuple):
    """A copy of a partition: whose it is, and where."""

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

    place: Place
    segments: tuple[SegmentPlace, ...]
    start_offset: int
    """The first offset that the files may have."""
    log_start_offset: int
    """The first that a consumer gets: what DeleteRecords deleted may still be in the files."""
    end_offset: int
    """Behind the last whole batch."""
    end_position: int
    """Where that batch ends, or where the damage behind it does, in the last segment."""
    epochs: tuple[EpochEntry, ...]

    @property
    def directory(self) -> Path:
        return Path(self.place.directory)

    def epoch_before(self, offset: int) -> int | None:
        """The leader epoch in which the record before an offset was written, where that is known."""
        following = bisect_right(self.epochs, offset - 1, key=lambda entry: entry.start_offset)
        return self.epochs[following - 1].epoch if following else None

    def end_of_epoch(self, epoch: int) -> int:
        """Where the log goes on with a later epoch than this one."""
        return next((entry.start_offset for entry in self.epochs if entry.epoch > epoch), self.end_offset)


class Piece(NamedTuple):
    """Offsets from `start_offset` to before `end_offset`, and the bytes of a segment that had them when planned."""

    segment: SegmentPlace
    position: int
    end_position: int
    start_offset: int
    end_offset: int
    is_active: bool = False
    """It was the last segment, which may grow."""

    @property
    def size(self) -> int:
        return self.end_position - self.position


class Share(NamedTuple):
    """What one task reads of one partition: pieces in the order of offsets, and the transactions aborted in them."""

    place: Place
    pieces: tuple[Piece, ...]
    aborted: tuple[AbortedTxn, ...] = ()

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What filters leave of all partitions; None does not bound. Ends are excluded, times are in milliseconds."""

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


# Which partitions there are


def find_partitions(options: LogOptions, bounds: Bounds = EVERYTHING) -> list[LogPartition]:
    """The partitions that are asked for, in order; of several copies the best one, or all if that is asked for."""
    found = []
    for path in options.paths:
        for place in find_places(path, options):
            if options.takes(place.topic, place.partition) and bounds.takes(place.topic, place.partition):
                partition = read_partition(place)
                if partition is not None:
                    found.append(partition)
    return sorted(found, key=_order) if options.all_copies else best_copies(found)


def find_places(path: Path, options: LogOptions) -> Iterator[Place]:
    """The copies in a log dir, or the one that a partition's own directory is.

    The log of the metadata is left out where a whole log dir is read: it has secrets, and `kafka_metadata` for it.
    """
    if not path.is_dir():
        raise OptionError(f"{path} is no directory" if path.exists() else f"the path {path} does not exist")
    name = parse_directory_name(path.name)
    if name is not None and not (path / META_PROPERTIES).exists() and list_segments(path):
        if name[0] == CLUSTER_METADATA and not options.include_secrets:
            raise OptionError(
                f"{path} is the log of the metadata: read it with kafka_metadata, which masks its secrets"
            )
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


def _place(path: Path, partition: TopicPartition, cluster_id: str | None, node_id: int | None) -> Place:
    topic_id = read_topic_id(path)
    return Place(cluster_id, node_id, *partition, None if topic_id is None else str(topic_id), str(path))


def read_partition(place: Place) -> LogPartition | None:
    """A copy as it is now; None if it was deleted meanwhile, or never had a segment."""
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
    """Offset and position behind the last whole batch; the position behind damage, where that is more than a torn tail."""
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
    """The place of the last entry with which the log agrees."""
    for slot in range(len(entries.offset) - 1, -1, -1):
        header = file.header(int(entries.position[slot]))
        if header is not None and header.last_offset == entries.offset[slot]:
            return int(entries.position[slot])
    return 0


def best_copies(partitions: Iterable[LogPartition]) -> list[LogPartition]:
    """Of the copies of each partition the one with the latest leader epoch, and of those the longest.

    Where copies of two topics of one name are left, that of the topic whose directory was made last counts.
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
        logger.warning("%s and %s are of two topics", partition.directory, other.directory)
        made = (partition.directory / PARTITION_METADATA).stat().st_mtime_ns
    epoch = partition.epoch_before(partition.end_offset)
    return made, -1 if epoch is None else epoch, partition.end_offset


def _order(partition: LogPartition) -> tuple[str, str, int, int, str]:
    place = partition.place
    return place.cluster_id or "", place.topic, place.partition, place.node_id or 0, place.directory


# Which offsets are read


def offset_range(
    partition: LogPartition, options: LogOptions, bounds: Bounds = EVERYTHING, end_offset: int | None = None
) -> tuple[int, int]:
    """First offset and end of what options and filters ask for; `end_offset` is where the log ends for the reader."""
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
    """The first offset, from `start_offset` on, whose record is not earlier than a time; None if there is none."""
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
    """An offset of a segment before which everything is earlier than a time, by its index; None if all of it is."""
    entries = time_entries(partition.directory, segment)
    earlier = int(np.searchsorted(entries.timestamp, timestamp, side="left"))
    # Of a segment that is not written to any more the last entry has the largest timestamp, wherever that is.
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
    """Where to begin to look for an offset: the place that an index names, if the log agrees, and otherwise the beginning."""
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
    """The pieces of a range of offsets, in order, each of about so many bytes; of what is not all before a time."""
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
        if behind < len(entries.offset):  # the batch of that entry has the end, or is behind it
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
    """Shares for one task each: small pieces, of whatever partitions, are put together up to so many bytes."""
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
    """A share with those of the aborted transactions that reach into it."""
    start, end = share.pieces[0].start_offset, share.pieces[-1].end_offset
    return share._replace(aborted=tuple(txn for txn in aborted if txn.last_offset >= start and txn.first_offset < end))


# All of it


def plan(options: LogOptions, bounds: Bounds = EVERYTHING) -> list[tuple[Share, ...]]:
    """What each task of a batch reads."""
    from barnabas.lake.reading.log_stable import stable_end  # only those who ask for transactions pay for it

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
    """A range of a partition, as one share per piece."""
    pieces = split(partition, start_offset, end_offset, options.max_partition_bytes, start_timestamp)
    return [with_aborted(Share(partition.place, (piece,)), aborted) for piece in pieces]
