"""`kafka_metadata` as a stream: each committed offset once, from files or live.

Its one rule: an offset of the stream names its log (cluster, topic id) and the leader epoch of the record before it. So a log
that was re-created, or that diverges from some offset on, is detected. That is data loss: it raises DataLossError, or, if
failOnDataLoss is false, logs a warning, and the stream continues from the last place that both have in common.

A start before the earliest offset of the log is no data loss: a snapshot replaces the deleted records, and its rows come first.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from barnabas.lake.reading.log_progress import DataLossError
from barnabas.lake.reading.metadata_following import Limits, Log, StreamPosition, log_of
from barnabas.lake.reading.metadata_options import MetadataOptions
from barnabas.lake.reading.metadata_parts import wanted_of
from barnabas.lake.reading.options import EARLIEST, LATEST
from barnabas.lake.sources.metadata_reading import read_task, row_format, tasks_of

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"

_log = logging.getLogger(__name__)


class MetadataStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: MetadataOptions, schema: StructType) -> None:
        self._options = options
        self._format = row_format(schema, options)
        self._log: Log = log_of(options)
        self._target: StreamPosition | None = None
        """The end of the log for a query with the trigger available-now."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  (Spark's name)
        if self._options.start == LATEST:
            return self._offset(self._log.end())
        return self._offset(StreamPosition(0 if self._options.start == EARLIEST else self._options.start, -1))

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
            return tasks_of(self._log.parts(place.offset, int(end["offset"]), wanted_of(self._options)))
        except DataLossError as error:
            self._lost(str(error))
            until = min(int(end["offset"]), self._log.end().offset)
            return tasks_of(self._log.parts(place.offset, until, wanted_of(self._options)))

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        return read_task(partition, self._options, self._format)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the log, which tasks do not need."""
        return {**self.__dict__, "_log": None}

    def _offset(self, place: StreamPosition) -> dict[str, Any]:
        return {
            "cluster_id": self._log.cluster_id,
            "topic_id": TOPIC_ID,
            "offset": place.offset,
            "leader_epoch": place.epoch,
        }

    def _check(self, start: dict[str, Any]) -> StreamPosition | None:
        """Return the place to continue from: that of the stream, if the log still has what the stream has read."""
        place = _place(start)
        cluster_id = start.get("cluster_id")
        if cluster_id != self._log.cluster_id and cluster_id is not None and self._log.cluster_id is not None:
            self._lost(f"the log was that of the cluster {cluster_id} and is that of {self._log.cluster_id} now")
            return StreamPosition(0, -1)
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
        _log.warning("%s; continuing", text)


def _place(offset: dict[str, Any]) -> StreamPosition:
    return StreamPosition(int(offset["offset"]), int(offset["leader_epoch"]))
