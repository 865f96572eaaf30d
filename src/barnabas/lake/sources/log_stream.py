"""Following logs as a stream: which offsets come next, and whether the logs are still those that were read before.

Its one rule: an offset of the stream says of each partition the cluster, the topic's id, the next offset and the leader epoch
of the record before it. A log that does not fit that is another one, or was cut off: that is a loss of data, which is an error
that says what was lost, or, with failOnDataLoss=false, a warning, and reading goes on with what is there. What becomes of the
pieces of a log is for the function that the reader is given: every source over logs has its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from barnabas.lake.reading.options import LogOptions, OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.lake.reading.log_planning import LogPartition, Share

logger = logging.getLogger(__name__)

RECOVERY = "`barnabas lake rebuild` reads everything anew; failOnDataLoss=false goes on with what is there"


class DataLossError(RuntimeError):
    """What a stream has read, or was to read, is not in the logs any more."""


class Progress(NamedTuple):
    """How far a partition is read."""

    cluster_id: str | None
    topic_id: str | None
    offset: int
    leader_epoch: int | None
    """Of the record before the offset, where it is known."""


class _Ahead(NamedTuple):
    """A partition, and what of it was not read yet."""

    key: str
    partition: LogPartition
    start: int
    end: int


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream over logs; `read` makes rows of the shares of a task. Both it and the options are pickled."""

    def __init__(self, options: LogOptions, read: Callable[[tuple[Share, ...]], Iterator[pa.RecordBatch]]) -> None:
        self._options = options
        self._read = read
        self._targets: dict[str, int] | None = None

    # What Spark calls, under the names that it has for it

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        from barnabas.lake.reading.log_planning import offset_range

        found = {}
        for partition in self._partitions():
            start, _ = offset_range(partition, self._options, end_offset=self._end(partition))
            if start > partition.end_offset:
                raise OptionError(
                    f"startingOffsets is {start} for {partition.place}, which ends at {partition.end_offset}"
                )
            found[key_of(partition)] = progress_at(partition, start)
        return to_json(found)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        before = from_json(start)
        ahead = list(self._ahead(before))
        match limit:
            case ReadMaxBytes(max_bytes=most):
                ends = admit(ahead, most, _size)
            case ReadMaxRows(max_rows=most):
                ends = admit(ahead, most, _rows)
            case _:
                ends = {each.key: each.end for each in ahead}
        after = dict(before)
        for each in ahead:
            after[each.key] = progress_at(each.partition, ends[each.key])
        return to_json(after)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if self._options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        if self._options.max_rows_per_trigger is not None:
            return ReadMaxRows(self._options.max_rows_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._targets = {key_of(partition): self._end(partition) for partition in self._partitions()}

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return to_json({key_of(each): progress_at(each, self._end(each)) for each in self._partitions()})

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        from barnabas.lake.reading.batch_arrays import warm
        from barnabas.lake.reading.log_planning import pack, share_out
        from barnabas.lake.reading.log_stable import stable_end

        before, after = from_json(start), from_json(end)
        shares: list[Share] = []
        for each in self._ahead(before, after):
            _, aborted = stable_end(each.partition, self._options.isolation)
            shares += share_out(each.partition, each.start, each.end, self._options, aborted)
        tasks = pack(shares, self._options.max_partition_bytes)
        warm(max((sum(share.size for share in task) for task in tasks), default=0))
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from self._read(partition.value or ())

    # What there is

    def _partitions(self) -> list[LogPartition]:
        from barnabas.lake.reading.log_planning import find_partitions

        return find_partitions(self._options)

    def _end(self, partition: LogPartition) -> int:
        from barnabas.lake.reading.log_planning import offset_range
        from barnabas.lake.reading.log_stable import stable_end

        end, _ = stable_end(partition, self._options.isolation)
        return offset_range(partition, self._options, end_offset=end)[1]

    def _first(self, partition: LogPartition) -> int:
        return partition.start_offset if self._options.isolation is None else partition.log_start_offset

    def _ahead(self, before: dict[str, Progress], until: dict[str, Progress] | None = None) -> Iterator[_Ahead]:
        """What follows each partition's progress, up to the end of the log, or until so far."""
        found = {key_of(partition): partition for partition in self._partitions()}
        for key in sorted(before.keys() - found.keys()):
            if until is None or (key in until and until[key].offset > before[key].offset):
                self._lose(f"{key} is gone, which was read up to offset {before[key].offset}")
        for key, partition in found.items():
            if until is not None and key not in until:
                continue  # it came after the batch was planned
            start = self._first(partition)
            if key in before:
                start, lost = resume(before[key], partition, start)
                if lost is not None:
                    self._lose(f"{key}: {lost}")
            if until is not None:
                end = self._planned_end(key, partition, until[key], start)
            elif self._targets is not None:
                end = min(self._end(partition), self._targets.get(key, start))
            else:
                end = self._end(partition)
            yield _Ahead(key, partition, start, max(start, end))

    def _planned_end(self, key: str, partition: LogPartition, until: Progress, start: int) -> int:
        if _is_other(until, partition):
            self._lose(
                f"{key}: its topic was created again; {until.topic_id} was to be read up to offset {until.offset}"
            )
            return start
        if until.offset > partition.end_offset:
            self._lose(f"{key} ends at offset {partition.end_offset}, and was to be read up to {until.offset}")
        return min(partition.end_offset, until.offset)

    def _lose(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLossError(f"data was lost: {what}. {RECOVERY}")
        logger.warning("data was lost: %s", what)


# Offsets of the stream


def key_of(partition: LogPartition) -> str:
    place = partition.place
    return f"{place.cluster_id or ''}/{place.topic}-{place.partition}"


def progress_at(partition: LogPartition, offset: int) -> Progress:
    epoch = partition.epoch_before(offset)
    return Progress(partition.place.cluster_id, partition.place.topic_id, offset, epoch)


def to_json(progress: dict[str, Progress]) -> dict[str, Any]:
    return {
        key: {name: value for name, value in each._asdict().items() if value is not None}
        for key, each in progress.items()
    }


def from_json(offsets: dict[str, Any]) -> dict[str, Progress]:
    return {
        key: Progress(each.get("cluster_id"), each.get("topic_id"), each["offset"], each.get("leader_epoch"))
        for key, each in offsets.items()
    }


def resume(before: Progress, partition: LogPartition, first: int) -> tuple[int, str | None]:
    """Where reading goes on, and what was lost, if something was; `first` is the first offset that there is to read."""
    if _is_other(before, partition):
        reason = f"its topic was created again: it had the id {before.topic_id} and has {partition.place.topic_id}"
        return first, f"{reason}; it was read up to offset {before.offset}"
    if before.offset > partition.end_offset:
        start = partition.end_offset
        if before.leader_epoch is not None:
            start = min(start, partition.end_of_epoch(before.leader_epoch))
        return max(start, first), f"it was read up to offset {before.offset}, and now ends at {partition.end_offset}"
    if before.offset < first:
        return first, f"offsets {before.offset} to {first - 1} were deleted before they were read"
    epoch = partition.epoch_before(before.offset)
    if None not in (epoch, before.leader_epoch) and epoch != before.leader_epoch:
        start = min(before.offset, partition.end_of_epoch(before.leader_epoch or 0))
        reason = f"the record before offset {before.offset} is of leader epoch {epoch}, not {before.leader_epoch}"
        return max(start, first), f"{reason}: the log was truncated and written again from offset {start}"
    return before.offset, None


def _is_other(before: Progress, partition: LogPartition) -> bool:
    return None not in (before.topic_id, partition.place.topic_id) and before.topic_id != partition.place.topic_id


# How much is read at once


def _size(position: int, end_position: int, base_offset: int, end_offset: int) -> int:
    return end_position - position


def _rows(position: int, end_position: int, base_offset: int, end_offset: int) -> int:
    return end_offset - base_offset


def admit(ahead: list[_Ahead], most: int, weigh: Callable[[int, int, int, int], int]) -> dict[str, int]:
    """Up to where each partition is read, so that all together weigh no more than `most`, but at least one batch.

    Each gets a part in proportion to what it has, in whole batches.
    """
    weights = {each.key: _weight(each, weigh) for each in ahead}
    total = sum(weights.values())
    if total <= most:
        return {each.key: each.end for each in ahead}
    ends = {each.key: advance(each, most * weights[each.key] // total, weigh) for each in ahead}
    if all(ends[each.key] == each.start for each in ahead):
        largest = max(ahead, key=lambda each: weights[each.key])
        ends[largest.key] = advance(largest, most, weigh, at_least_one=True)
    return ends


def _weight(ahead: _Ahead, weigh: Callable[[int, int, int, int], int]) -> int:
    from barnabas.lake.reading.log_planning import split

    pieces = split(ahead.partition, ahead.start, ahead.end, 1 << 62)
    return sum(weigh(piece.position, piece.end_position, piece.start_offset, piece.end_offset) for piece in pieces)


def advance(ahead: _Ahead, most: int, weigh: Callable[[int, int, int, int], int], *, at_least_one: bool = False) -> int:
    """The end of the last batch up to which no more than `most` is read of a partition."""
    from barnabas.lake.reading.log_files import OpenSegment
    from barnabas.lake.reading.log_planning import split
    from barnabas.storage import CorruptLogError

    reached, weight = ahead.start, 0
    for piece in split(ahead.partition, ahead.start, ahead.end, 1 << 62):
        try:
            with OpenSegment.open(ahead.partition.directory / piece.segment.name) as file:
                for position, header in file.headers(piece.position, piece.end_position):
                    if header.last_offset < ahead.start:
                        continue
                    start = max(header.base_offset, ahead.start)
                    weight += weigh(position, position + header.size_in_bytes, start, header.next_offset)
                    if weight > most and not (at_least_one and reached == ahead.start):
                        return reached
                    reached = min(header.next_offset, ahead.end)
        except (FileNotFoundError, CorruptLogError):
            reached = piece.end_offset  # what can be read of it is for its reader to say
    return ahead.end
