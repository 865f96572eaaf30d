"""The stream reader of all sources over logs: it finds the next offsets, and notices logs that have changed.

Its one rule: an offset of the stream has, for each partition, the cluster, the topic id, the next offset and the leader epoch
of the record before it. A log that does not match was re-created or truncated: that is data loss. It raises DataLossError,
which says what was lost; with failOnDataLoss=false it logs a warning, and reading continues with the log as it is. The
function `read` that a source passes in makes rows of the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from barnabas.lake.reading.log_progress import (
    Ahead,
    DataLossError,
    Progress,
    admit,
    from_json,
    is_other,
    key_of,
    progress_at,
    resume,
    rows_of,
    size_of,
    to_json,
)
from barnabas.lake.reading.options import LogOptions, OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.lake.reading.log_planning import LogPartition, Share

_log = logging.getLogger(__name__)

RECOVERY = "`barnabas lake rebuild` reads everything anew; failOnDataLoss=false continues with the log as it is"


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream over logs. `read` makes rows of the shares of a task. It and the options are pickled."""

    def __init__(self, options: LogOptions, read: Callable[[tuple[Share, ...]], Iterator[pa.RecordBatch]]) -> None:
        self._options = options
        self._read = read
        self._targets: dict[str, int] | None = None

    # Methods that Spark calls

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
                ends = admit(ahead, most, size_of)
            case ReadMaxRows(max_rows=most):
                ends = admit(ahead, most, rows_of)
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

    # Partitions and their ends

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

    def _ahead(self, before: dict[str, Progress], until: dict[str, Progress] | None = None) -> Iterator[Ahead]:
        """Yield what follows each partition's progress, up to the end of the log or to `until`."""
        found = {key_of(partition): partition for partition in self._partitions()}
        for key in sorted(before.keys() - found.keys()):
            if until is None or (key in until and until[key].offset > before[key].offset):
                self._lose(f"{key} does not exist any more; it was read up to offset {before[key].offset}")
        for key, partition in found.items():
            if until is not None and key not in until:
                continue  # created after the batch was planned
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
            yield Ahead(key, partition, start, max(start, end))

    def _planned_end(self, key: str, partition: LogPartition, until: Progress, start: int) -> int:
        if is_other(until, partition):
            self._lose(
                f"{key}: its topic was re-created; {until.topic_id} was planned to be read up to offset {until.offset}"
            )
            return start
        if until.offset > partition.end_offset:
            self._lose(f"{key} ends at offset {partition.end_offset}, but was planned to be read up to {until.offset}")
        return min(partition.end_offset, until.offset)

    def _lose(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLossError(f"data was lost: {what}. {RECOVERY}")
        _log.warning("data was lost: %s", what)
