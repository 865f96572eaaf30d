"""A lake to read: its tables as DataFrames by name, all of one moment, even while a run goes on.

    tables = barnabas.lake.open("lake")
    tables["changes"].where("kind = 'configs'").show()
    tables.as_of("2026-01-31T12:00Z")["access"].show()
    tables.drift("cluster.yaml").show()

Tables of bronze and silver are read; those of gold are made of them when asked for, and kept for this object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.lake.asking import as_of as moments
from barnabas.lake.keeping.table_reading import read_table
from barnabas.lake.tables.all import STREAMS, TABLES
from barnabas.lake.tables.declaration import Mode, Table
from barnabas.lake.tables.streams import Stream
from barnabas.metadata.as_of import EVERYTHING, AsOf, parse_as_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from barnabas.declared.difference import Plan
    from barnabas.declared.document import Document
    from barnabas.lake.keeping.store import Lake

_STREAM_OF = {table.name: stream for stream in STREAMS for table in stream.tables}
METADATA = STREAMS[0]
_PLACES = "cluster_id string, log string, offset long, micros long"
_DRIFT = ("action", "kind", "name", "field", "before", "after")

Moment = AsOf | int | str | datetime | None
"""An offset of the metadata log or a time, as `parse_as_of` reads them; None is the end."""


class NoMomentError(KeyError):
    """This table cannot be asked as of a moment."""

    def __str__(self) -> str:
        return str(self.args[0])


def _as_made(table: Table, made: DataFrame) -> DataFrame:
    return made


class OpenLake(Mapping[str, "DataFrame"]):
    """The tables of a lake by name."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self.spark, self._data, self.manifest = spark, lake.data, lake.manifest()
        self._made: dict[str, DataFrame] = {}
        self._keep: Callable[[Table, DataFrame], DataFrame] = _as_made

    def keeping(self, keep: Callable[[Table, DataFrame], DataFrame]) -> OpenLake:
        """The same tables, of each of which `keep` gives what is used in its place: also where others are made of it."""
        other = copy(self)
        other._made, other._keep = {}, keep
        return other

    def __getitem__(self, name: str) -> DataFrame:
        if name not in self._made:
            table = TABLES[name]
            if table.layer == "gold":
                made = table.build(*(self[each] for each in table.inputs))
            else:
                made = read_table(self.spark, self._data, self.manifest, table)
            self._made[name] = self._keep(table, made)
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

    def cluster_id(self, wanted: str | None = None) -> str:
        """The cluster of this id, or the only one that there is. Raises ValueError."""
        ids = self[METADATA.records.name].select("cluster_id").distinct().orderBy("cluster_id")
        known = [row[0] for row in ids.collect()]
        if wanted is not None and wanted not in known:
            raise ValueError(f"{wanted} is not in the lake; it has {', '.join(known) or 'none'}")
        if wanted is None and len(known) != 1:
            raise ValueError(f"the lake has {len(known)} clusters: {', '.join(known)}")
        return wanted or known[0]

    def as_of(self, moment: Moment, cluster_id: str | None = None) -> LakeAsOf:
        """The tables as they were after an offset of the metadata log, or at a time. Raises ValueError."""
        if isinstance(moment, datetime):
            aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
            moment = AsOf(timestamp_ms=int(aware.timestamp() * 1000))
        elif isinstance(moment, int | str):
            moment = parse_as_of(str(moment))
        return LakeAsOf(self, moment or EVERYTHING, cluster_id)

    def drift(
        self, file: Path | str, as_of: Moment = None, cluster_id: str | None = None, *, prune: bool = False
    ) -> DataFrame:
        """How a cluster differs, or differed, from what a `cluster.yaml` declares: action, kind, name, field, before, after.

        With `prune`, what is there and not in the sections of the file is drift too. Raises ValueError, also for a file that
        cannot be met.
        """
        from barnabas.declared.document import load_document

        found = self.as_of(as_of, self.cluster_id(cluster_id)).plan(load_document(Path(file)), prune=prune)
        if found.problems:
            raise ValueError("\n".join(map(str, found.problems)))
        rows = [tuple(None if row[name] is None else str(row[name]) for name in _DRIFT) for row in found.rows()]
        return self.spark.createDataFrame(rows, ", ".join(f"{name} string" for name in _DRIFT))


class LakeAsOf(Mapping[str, "DataFrame"]):
    """The tables of a lake at one moment: of silver the rows that were true then; of gold what they would have been then.

    Its one rule: gold is made of histories up to the moment, in which what ended later has not ended. An offset is one of the
    metadata log: of other logs, what they had when its batch was appended.
    """

    def __init__(self, lake: OpenLake, moment: AsOf, cluster_id: str | None) -> None:
        self._lake, self.moment, self._cluster_id = lake, moment, cluster_id
        self._places: dict[str, list[tuple[str, str, int, int]]] = {}
        self._made: dict[str, DataFrame] = {}

    def __getitem__(self, name: str) -> DataFrame:
        if name not in self:
            raise NoMomentError(_why_not(name))
        if name in _STREAM_OF:
            return moments.state(self._of_cluster(self._lake[name]), self._frame(self._checked(name)))
        return self._up_to(name)

    def __contains__(self, name: object) -> bool:
        return name in _of_a_moment()

    def __iter__(self) -> Iterator[str]:
        return iter(_of_a_moment())

    def __len__(self) -> int:
        return len(_of_a_moment())

    def places(self, name: str = "topics") -> list[tuple[str, str, int]]:
        """Where the moment is in the logs that a table of silver is made from: cluster id, log, and the last offset that
        counts; for one of gold, in the metadata log."""
        return [(cluster_id, log, offset) for cluster_id, log, offset, _ in self._found(self._checked(name))]

    def is_of_metadata(self, name: str) -> bool:
        """Whether the places of a table are in the metadata log, whose offsets are those of the whole cluster."""
        return _STREAM_OF.get(name, METADATA) is METADATA

    def rows(self, names: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
        """The rows of tables, as values. Raises ValueError if there is nothing that was before the moment."""
        if not self.places():
            raise ValueError("the lake knows of nothing that was before this")
        return {name: [row.asDict(recursive=True) for row in self[name].collect()] for name in names}

    def plan(self, document: Document, *, prune: bool = False) -> Plan:
        """What `barnabas plan` would have said of a declared cluster; for tables of one cluster. Raises ValueError."""
        from barnabas.declared.difference import difference
        from barnabas.lake.asking.declaring import TABLES as NEEDED
        from barnabas.lake.asking.declaring import observed

        return difference(document, observed(self.rows(NEEDED)), prune=prune)

    # --- where the moment is

    def _checked(self, name: str) -> Stream:
        stream = _STREAM_OF.get(name, METADATA)
        if stream is not METADATA and self.moment.offset is not None:
            raise ValueError(f"{name} comes from several logs, each with offsets of its own: give a time")
        return stream

    def _found(self, stream: Stream) -> list[tuple[str, str, int, int]]:
        if stream.source not in self._places:
            records = self._of_cluster(self._lake[stream.records.name])
            if stream is not METADATA:
                found = moments.at_end(self._by_then(moments.coordinator_batch_ends(records, stream.topic), "time"))
            elif self.moment.offset is not None:
                found = moments.at_offset(moments.metadata_batch_ends(records), self.moment.offset)
            else:
                found = moments.at_end(self._by_then(moments.metadata_batch_ends(records), "time"))
            # Times as numbers: Python would take them for local ones.
            found = found.selectExpr("cluster_id", "log", "offset", "unix_micros(time)")
            self._places[stream.source] = [(row[0], row[1], row[2], row[3]) for row in found.collect()]
        return self._places[stream.source]

    def _frame(self, stream: Stream) -> DataFrame:
        places = self._lake.spark.createDataFrame(self._found(stream), _PLACES)
        return places.selectExpr("cluster_id", "log", "offset", "timestamp_micros(micros) as time")

    def _by_then(self, rows: DataFrame, column: str) -> DataFrame:
        """The rows whose time in this column is not after the moment."""
        if self.moment.offset is not None:
            return moments.until_places(rows, column, self._frame(METADATA))
        if self.moment.timestamp_ms is None:
            return rows
        return moments.until_time(rows, column, datetime.fromtimestamp(self.moment.timestamp_ms / 1000, UTC))

    # --- tables as they were

    def _up_to(self, name: str) -> DataFrame:
        if name not in self._made:
            self._made[name] = self._made_up_to(name)
        return self._made[name]

    def _made_up_to(self, name: str) -> DataFrame:
        table = TABLES[name]
        if name in _STREAM_OF:
            return moments.history(self._of_cluster(self._lake[name]), self._frame(_STREAM_OF[name]))
        if name == METADATA.records.name:
            return moments.records_until(self._of_cluster(self._lake[name]), self._frame(METADATA))
        if table.since:
            return self._by_then(self._of_cluster(self._lake[name]), table.since)
        made: DataFrame = table.build(*(self._up_to(each) for each in table.inputs))
        return made

    def _of_cluster(self, frame: DataFrame) -> DataFrame:
        return frame if self._cluster_id is None else frame.where(frame["cluster_id"] == self._cluster_id)


def _has_moments(name: str) -> bool:
    """Whether it is known what a table was at any moment: of histories, the metadata log, and what is made of them."""
    table = TABLES[name]
    if table.layer == "gold":
        return bool(table.since) or all(map(_has_moments, table.inputs))
    return name == METADATA.records.name or table.mode is Mode.HISTORY


@cache
def _of_a_moment() -> tuple[str, ...]:
    """The tables that can be asked as of a moment, silver first."""
    return (*_STREAM_OF, *(name for name in TABLES if TABLES[name].layer == "gold" and _has_moments(name)))


def _why_not(name: str) -> str:
    there = f"there are {', '.join(_of_a_moment())}"
    if name not in TABLES or TABLES[name].layer != "gold":
        return f"{name} is no table of what was true; {there}"
    parts = ", ".join(each for each in TABLES[name].inputs if not _has_moments(each))
    return f"{name} is made of {parts}, which cannot be cut at a moment; {there}"
