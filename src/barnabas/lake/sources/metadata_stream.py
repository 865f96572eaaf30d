"""`kafka_metadata` as a stream: each committed offset once, from files or live.

Its one rule: an offset of the stream says of which log it is (cluster, topic id) and what was before it (leader epoch),
so that a log that is another one, or another one from some place on, is found out. That is data loss: an exception, or,
if failOnDataLoss is false, a warning, and the stream goes on from the last place that both have in common.

A start before the earliest offset of the log is none: a snapshot stands for what is gone, and its rows come first.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from barnabas.lake.reading.copies import Plan, epoch_of, merge
from barnabas.lake.reading.metadata_files import heads
from barnabas.lake.reading.metadata_rows import RowFormat, Wanted
from barnabas.lake.reading.options import EARLIEST, LATEST, OptionError
from barnabas.lake.sources.metadata import MetadataOptions
from barnabas.lake.sources.metadata_reading import Observed, merged_pieces, observe, parts_of, read_part, wanted_of

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"

_logger = logging.getLogger(__name__)


class DataLossError(RuntimeError):
    """What the stream has read is not what the log has."""


class Place(NamedTuple):
    """Where a stream is: what comes next, and the epoch of what was before it, -1 if nothing was."""

    offset: int
    epoch: int


class Limits(NamedTuple):
    """Of one micro-batch; None is no limit."""

    rows: int | None
    bytes: int | None

    def allows(self, rows: int, size: int) -> bool:
        return (self.rows is None or rows <= self.rows) and (self.bytes is None or size <= self.bytes)


class Log(Protocol):
    """A log that a stream follows."""

    cluster_id: str | None

    def look(self) -> None:
        """See what is new."""

    def end(self) -> Place:
        """Where the committed part ends, as of the last look."""

    def resume(self, place: Place) -> Place | None:
        """The same place if the log has what was before it; another, if that is all in common; None: ask later."""

    def cut(self, start: int, end: Place, limits: Limits) -> Place:
        """The end of the last batch that is within the limits, or of the first batch of all."""

    def parts(self, start: int, end: int, wanted: Wanted) -> Sequence[InputPartition]: ...


class FileLog:
    """A log by its copies in directories."""

    def __init__(self, options: MetadataOptions) -> None:
        found = observe(options)
        if len(found) > 1:
            clusters = ", ".join(str(each.cluster_id) for each in found)
            raise OptionError(f"kafka_metadata: a stream is of one cluster, and the paths are of {clusters}")
        self._observed: Observed = found[0]
        self._options = options
        self.cluster_id = self._observed.cluster_id

    def look(self) -> None:
        self._observed.look()

    def _plan(self, start: int) -> Plan:
        observed = self._observed
        return merge(observed.copies, observed.verdicts, start, uncommitted=self._options.include_uncommitted)

    def end(self) -> Place:
        plan = self._plan(0)
        return Place(plan.end, plan.epoch)

    def resume(self, place: Place) -> Place | None:
        observed = self._observed
        if place.offset == 0 or place.epoch < 0:
            return place
        committed = epoch_of(observed.copies, observed.verdicts, place.offset - 1)
        if committed == place.epoch:
            return place
        if committed is None:
            seen = [copy.epoch_at(place.offset - 1) for copy in observed.copies]
            begins = min((copy.log_start for copy in observed.copies), default=0)
            if place.epoch in seen or place.offset <= begins:  # not known as committed just now, or before all logs
                return place
            if self.end().offset >= place.offset:
                return place
        return self._common(place)

    def _common(self, place: Place) -> Place:
        """The end of the latest epoch that the log has and that is not later than the one that was read."""
        spans = [
            (min(span.end, self._observed.verdicts[copy.name].true_end), span.epoch)
            for copy in self._observed.copies
            for span in copy.spans()
            if span.epoch <= place.epoch and span.start < self._observed.verdicts[copy.name].true_end
        ]
        offset, epoch = max(spans, default=(0, -1))
        return Place(min(offset, place.offset), epoch)

    def cut(self, start: int, end: Place, limits: Limits) -> Place:
        rows = size = 0
        place = Place(start, -1)
        for read in self._plan(start).reads:
            if read.snapshot is not None:
                return Place(*read.snapshot)
            for head in heads(self._observed.logs[read.name], read.start, min(read.end, end.offset)):
                rows += head.end_offset - max(head.base_offset, start)
                size += head.size
                if place.offset > start and not limits.allows(rows, size):
                    return place
                place = Place(head.end_offset, head.epoch)
        return place if place.offset > start else end

    def parts(self, start: int, end: int, wanted: Wanted) -> Sequence[InputPartition]:
        plan = self._plan(start)
        if plan.end < end:
            raise DataLossError(f"offsets {max(plan.end, start)} to {end - 1} are not in the directories any more")
        return parts_of(merged_pieces(self._observed, start, end, wanted), wanted)


class MetadataStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: MetadataOptions, schema: StructType) -> None:
        self._options = options
        self._format = RowFormat.of(schema, include_secrets=options.include_secrets, fail_fast=options.fail_fast)
        self._log: Log = _log_of(options)
        self._target: Place | None = None
        """What is the end while a query runs that takes what is available now."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  (Spark's name)
        if self._options.start == LATEST:
            return self._offset(self._log.end())
        return self._offset(Place(0 if self._options.start == EARLIEST else self._options.start, -1))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        options = self._options
        if options.max_rows_per_trigger is not None:
            return ReadMaxRows(options.max_rows_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._log.look()
        self._target = self._log.end()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        self._log.look()
        place = self._check(start)
        end = self._log.end()
        if self._target is not None and self._target.offset < end.offset:
            end = self._target
        if place is None or end.offset <= place.offset:
            return start if place is None or place == _place(start) else self._offset(place)
        limits = self._limits(limit)
        if limits != Limits(None, None):
            end = self._log.cut(place.offset, end, limits)
        return self._offset(end)

    def _limits(self, limit: ReadLimit) -> Limits:
        if isinstance(limit, ReadAllAvailable):
            return Limits(None, None)
        rows, size = self._options.max_rows_per_trigger, self._options.max_bytes_per_trigger
        if isinstance(limit, ReadMaxRows):
            rows = limit.max_rows
        if isinstance(limit, ReadMaxBytes):
            size = limit.max_bytes
        return Limits(rows, size)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return self._offset(self._log.end())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        place = self._check(start) or _place(start)
        try:
            return self._log.parts(place.offset, int(end["offset"]), wanted_of(self._options))
        except DataLossError as error:
            self._lost(str(error))
            return self._log.parts(
                place.offset, min(int(end["offset"]), self._log.end().offset), wanted_of(self._options)
            )

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        return read_part(partition, self._options, self._format)

    def __getstate__(self) -> dict[str, Any]:
        """Tasks need no log."""
        return {**self.__dict__, "_log": None}

    def _offset(self, place: Place) -> dict[str, Any]:
        return {
            "cluster_id": self._log.cluster_id,
            "topic_id": TOPIC_ID,
            "offset": place.offset,
            "leader_epoch": place.epoch,
        }

    def _check(self, start: dict[str, Any]) -> Place | None:
        """Where to go on: where the stream was, if the log has what it has read."""
        place = _place(start)
        cluster_id = start.get("cluster_id")
        if cluster_id != self._log.cluster_id and cluster_id is not None and self._log.cluster_id is not None:
            self._lost(f"the log was that of the cluster {cluster_id} and is that of {self._log.cluster_id} now")
            return Place(0, -1)
        resumed = self._log.resume(place)
        if resumed is None or resumed == place:
            return resumed
        self._lost(
            f"the stream has read up to offset {place.offset} (epoch {place.epoch}), "
            f"and the log has only what is before offset {resumed.offset} (epoch {resumed.epoch}) in common with that"
        )
        return resumed

    def _lost(self, what: str) -> None:
        text = f"kafka_metadata: the metadata log was re-created, truncated or has diverged: {what}"
        if self._options.fail_on_data_loss:
            raise DataLossError(f"{text}. Run `barnabas lake rebuild`, or go on with the option failOnDataLoss=false")
        _logger.warning("%s; going on", text)


def _place(offset: dict[str, Any]) -> Place:
    return Place(int(offset["offset"]), int(offset["leader_epoch"]))


def _log_of(options: MetadataOptions) -> Log:
    if not options.is_live:
        return FileLog(options)
    from barnabas.lake.sources.metadata_live import LiveLog

    return LiveLog(options)
