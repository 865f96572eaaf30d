"""A lake to read: its tables as DataFrames by name, all of one moment, even while a run goes on.

    tables = barnabas.lake.open("lake")
    tables["changes"].where("kind = 'configs'").show()
    tables.as_of("2026-01-31T12:00Z")["configs"].show()

Tables of bronze and silver are read; those of gold are made of them when asked for, and kept for this object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from barnabas.lake import as_of as moments
from barnabas.lake.reading import read_table
from barnabas.lake.tables.all import STREAMS, TABLES
from barnabas.lake.tables.declaration import Mode
from barnabas.raft.offline_metadata import AsOf, parse_as_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from barnabas.lake.store import Lake

_STREAM_OF = {table.name: stream for stream in STREAMS for table in stream.tables}
METADATA = STREAMS[0]


class OpenLake(Mapping[str, "DataFrame"]):
    """The tables of a lake by name."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self.spark, self._data, self.manifest = spark, lake.data, lake.manifest()
        self._made: dict[str, DataFrame] = {}

    def __getitem__(self, name: str) -> DataFrame:
        if name not in self._made:
            table = TABLES[name]
            if table.layer == "gold":
                self._made[name] = table.build(*(self[each] for each in table.inputs))
            else:
                self._made[name] = read_table(self.spark, self._data, self.manifest, table)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in TABLES

    def __iter__(self) -> Iterator[str]:
        return iter(TABLES)

    def __len__(self) -> int:
        return len(TABLES)

    def sql(self, query: str) -> DataFrame:
        """The tables, which are views by their names, asked in Spark's SQL."""
        for name in [name for name in self if name in query.lower()] or self:
            self[name].createOrReplaceTempView(name)
        return self.spark.sql(query)

    def as_of(self, moment: AsOf | str | datetime, cluster_id: str | None = None) -> LakeAsOf:
        """The tables of silver as they were after an offset of the metadata log, or at a time. Raises ValueError."""
        if isinstance(moment, datetime):
            aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
            moment = AsOf(timestamp_ms=int(aware.timestamp() * 1000))
        return LakeAsOf(self, parse_as_of(moment) if isinstance(moment, str) else moment, cluster_id)


class LakeAsOf(Mapping[str, "DataFrame"]):
    """The tables of silver at one moment: of each only the rows that were true then."""

    def __init__(self, lake: OpenLake, moment: AsOf, cluster_id: str | None) -> None:
        self._lake, self.moment, self._cluster_id = lake, moment, cluster_id
        self._places: dict[str, list[tuple[str, str, int]]] = {}

    def places(self, name: str = "topics") -> list[tuple[str, str, int]]:
        """Where the moment is in the logs that a table is made from: cluster id, log, and the last offset that counts."""
        stream = _STREAM_OF[name]
        if stream.source not in self._places:
            records = self._of_cluster(self._lake[stream.records.name])
            if stream is METADATA:
                ends = moments.metadata_batch_ends(records)
            elif self.moment.offset is not None:
                raise ValueError(f"{name} comes from several logs, each with offsets of its own: give a time")
            else:
                ends = moments.coordinator_batch_ends(records, stream.topic)
            if self.moment.timestamp_ms is not None:
                found = moments.at_time(ends, datetime.fromtimestamp(self.moment.timestamp_ms / 1000, UTC))
            elif self.moment.offset is not None:
                found = moments.at_offset(ends, self.moment.offset)
            else:
                found = moments.at_end(ends)
            self._places[stream.source] = [(row[0], row[1], row[2]) for row in found.collect()]
        return self._places[stream.source]

    def is_of_metadata(self, name: str) -> bool:
        """Whether a table is made from the metadata log, whose offsets are those of the whole cluster."""
        return _STREAM_OF[name] is METADATA

    def __getitem__(self, name: str) -> DataFrame:
        if name not in _STREAM_OF or TABLES[name].mode is not Mode.HISTORY:
            raise KeyError(name)
        rows = self._of_cluster(self._lake[name])
        places = self._lake.spark.createDataFrame(self.places(name), "cluster_id string, log string, offset long")
        return moments.state(rows, places)

    def __contains__(self, name: object) -> bool:
        return name in _STREAM_OF

    def __iter__(self) -> Iterator[str]:
        return iter(_STREAM_OF)

    def __len__(self) -> int:
        return len(_STREAM_OF)

    def _of_cluster(self, frame: DataFrame) -> DataFrame:
        return frame if self._cluster_id is None else frame.where(frame["cluster_id"] == self._cluster_id)
