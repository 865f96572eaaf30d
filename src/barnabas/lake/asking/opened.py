"""An open lake: its tables by name, as DataFrames, all of one commit, even while a run adds more.

    tables = barnabas.lake.open("lake")
    tables["changes"].where("kind = 'configs'").show()
    tables.as_of("2026-01-31T12:00Z")["access"].show()
    tables.drift("cluster.yaml").show()

Bronze and silver tables are read from disk, and so are gold tables that a run has kept up to date. Other gold tables are
computed on first use, and cached in this object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas import __version__
from barnabas.lake.asking import moments
from barnabas.lake.keeping.manifest import is_current, stored_names
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
"""An offset of the metadata log or a time, as `parse_as_of` accepts them; None is the end of the log."""


class NoMomentError(KeyError):
    """This table has no state as of a moment."""

    def __str__(self) -> str:
        return str(self.args[0])


def _as_made(table: Table, made: DataFrame) -> DataFrame:
    return made


class OpenLake(Mapping[str, "DataFrame"]):
    """The tables of a lake by name."""

    def __init__(self, spark: SparkSession, lake: Lake, *, computes_all: bool = False) -> None:
        """With `computes_all`, gold tables are computed even if the lake has them."""
        self.spark, self._data, self.manifest = spark, lake.data, lake.manifest()
        self._computes_all, self._folder = computes_all, lake.folder
        self._made: dict[str, DataFrame] = {}
        self._keep: Callable[[Table, DataFrame], DataFrame] = _as_made

    def keeping(self, keep: Callable[[Table, DataFrame], DataFrame]) -> OpenLake:
        """Return the same tables, each replaced by `keep(table, frame)`, also where other tables are computed from it."""
        other = copy(self)
        other._made, other._keep = {}, keep
        return other

    def __getitem__(self, name: str) -> DataFrame:
        if name not in self._made:
            table = TABLES[name]
            if table.layer == "gold" and not self.is_stored(name):
                made = table.build(*(self[each] for each in table.inputs))
            else:
                made = read_table(self.spark, self._data, self.manifest, table)
            self._made[name] = self._keep(table, made)
        return self._made[name]

    def is_stored(self, name: str) -> bool:
        """Return whether the table is read as it is stored, not computed."""
        table = TABLES[name]
        is_made = table.layer == "gold"
        return not is_made or (not self._computes_all and is_current(self.manifest, table.path, __version__))

    def __contains__(self, name: object) -> bool:
        return name in TABLES

    def __iter__(self) -> Iterator[str]:
        return iter(TABLES)

    def __len__(self) -> int:
        return len(TABLES)

    def register(self, database: str = "barnabas") -> list[str]:
        """Put the stored tables into the catalog of the session, and return their names: spark.table("barnabas.topics")."""
        from barnabas.lake.asking.table_source import register_tables

        names = stored_names(self.manifest, __version__)
        register_tables(self.spark, self._folder, database, names)
        return names

    def sql(self, query: str) -> DataFrame:
        """Run a query of Spark SQL. Tables are views with their names."""
        for name in [name for name in self if name in query.lower()] or self:
            self[name].createOrReplaceTempView(name)
        return self.spark.sql(query)

    def cluster_id(self, wanted: str | None = None) -> str:
        """Return the id of the wanted cluster, or of the only one. Raises ValueError."""
        ids = self[METADATA.records.name].select("cluster_id").distinct().orderBy("cluster_id")
        known = [row[0] for row in ids.collect()]
        if wanted is not None and wanted not in known:
            raise ValueError(f"cluster {wanted} is not in the lake; it has {', '.join(known) or 'none'}")
        if wanted is None and len(known) != 1:
            raise ValueError(f"the lake has {len(known)} clusters: {', '.join(known)}")
        return wanted or known[0]

    def as_of(self, moment: Moment, cluster_id: str | None = None) -> LakeAsOf:
        """Return the tables as they were after an offset of the metadata log, or at a time. Raises ValueError."""
        if isinstance(moment, datetime):
            aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
            moment = AsOf(timestamp_ms=int(aware.timestamp() * 1000))
        elif isinstance(moment, int | str):
            moment = parse_as_of(str(moment))
        return LakeAsOf(self, moment or EVERYTHING, cluster_id)

    def drift(
        self, file: Path | str, as_of: Moment = None, cluster_id: str | None = None, *, prune: bool = False
    ) -> DataFrame:
        """Return how a cluster differs, or differed, from a `cluster.yaml`: action, kind, name, field, before, after.

        With `prune`, resources that exist but are not in the sections of the file are drift too. Raises ValueError, also for
        a file whose declarations contradict the cluster.
        """
        from barnabas.declared.document import load_document

        found = self.as_of(as_of, self.cluster_id(cluster_id)).plan(load_document(Path(file)), prune=prune)
        if found.problems:
            raise ValueError("\n".join(map(str, found.problems)))
        rows = [tuple(None if row[name] is None else str(row[name]) for name in _DRIFT) for row in found.rows()]
        return self.spark.createDataFrame(rows, ", ".join(f"{name} string" for name in _DRIFT))


class LakeAsOf(Mapping[str, "DataFrame"]):
    """The tables of a lake at one moment: silver rows that were valid then, and gold tables computed from data up to then.

    Its one rule: gold is computed from histories up to the moment, in which rows that ended later are still open. An offset
    is one of the metadata log; other logs are read up to the time at which its batch was appended.
    """

    def __init__(self, lake: OpenLake, moment: AsOf, cluster_id: str | None) -> None:
        self._lake, self.moment, self._cluster_id = lake, moment, cluster_id
        self._places: dict[str, list[tuple[str, str, int, int]]] = {}
        self._made: dict[str, DataFrame] = {}

    def __getitem__(self, name: str) -> DataFrame:
        check_has_moments(name)
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
        """Return the moment's place in the logs of a silver table: cluster id, log, and last offset that counts. For a gold
        table, its place in the metadata log."""
        return [(cluster_id, log, offset) for cluster_id, log, offset, _ in self._found(self._checked(name))]

    def is_of_metadata(self, name: str) -> bool:
        """Return whether a table's places are offsets of the metadata log, which hold for the whole cluster."""
        return _STREAM_OF.get(name, METADATA) is METADATA

    def rows(self, names: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
        """Return the rows of tables as dicts. Raises ValueError if the lake has nothing before the moment."""
        if not self.places():
            raise ValueError("the lake has no records from before this moment")
        return {name: [row.asDict(recursive=True) for row in self[name].collect()] for name in names}

    def plan(self, document: Document, *, prune: bool = False) -> Plan:
        """Return what `barnabas plan` would have printed at the moment; for a lake of one cluster. Raises ValueError."""
        from barnabas.declared.difference import difference
        from barnabas.lake.asking.declaring import TABLES as NEEDED
        from barnabas.lake.asking.declaring import observed

        return difference(document, observed(self.rows(NEEDED)), prune=prune)

    # --- places of the moment

    def _checked(self, name: str) -> Stream:
        stream = _STREAM_OF.get(name, METADATA)
        if stream is not METADATA and self.moment.offset is not None:
            raise ValueError(f"{name} is made from several logs, each with its own offsets: give a time instead")
        return stream

    def _found(self, stream: Stream) -> list[tuple[str, str, int, int]]:
        if stream.source not in self._places:
            records = self._of_cluster(self._lake[stream.records.name])
            if stream is not METADATA:
                found = moments.at_end(self._by_then(moments.coordinator_batch_ends(records, stream.topic), "time"))
            elif self.moment.offset is not None:
                found = moments.at_offset(records, self.moment.offset)
            else:
                found = moments.at_end(self._by_then(moments.metadata_batch_ends(records), "time"))
            # Times as numbers: Python would read them as local times.
            found = found.selectExpr("cluster_id", "log", "offset", "unix_micros(time)")
            self._places[stream.source] = [(row[0], row[1], row[2], row[3]) for row in found.collect()]
        return self._places[stream.source]

    def _frame(self, stream: Stream) -> DataFrame:
        places = self._lake.spark.createDataFrame(self._found(stream), _PLACES)
        return places.selectExpr("cluster_id", "log", "offset", "timestamp_micros(micros) as time")

    def _by_then(self, rows: DataFrame, column: str) -> DataFrame:
        """Return the rows whose time in this column is not after the moment."""
        if self.moment.offset is not None:
            return moments.until_places(rows, column, self._frame(METADATA))
        if self.moment.timestamp_ms is None:
            return rows
        return moments.until_time(rows, column, datetime.fromtimestamp(self.moment.timestamp_ms / 1000, UTC))

    # --- tables at the moment

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
    """Return whether a table has states: histories, the metadata log, and tables computed only from these."""
    table = TABLES[name]
    if table.layer == "gold":
        return bool(table.since) or all(map(_has_moments, table.inputs))
    return name == METADATA.records.name or table.mode is Mode.HISTORY


@cache
def _of_a_moment() -> tuple[str, ...]:
    """Return the names of tables that have states as of a moment, silver first."""
    return (*_STREAM_OF, *(name for name in TABLES if TABLES[name].layer == "gold" and _has_moments(name)))


def check_has_moments(name: str) -> None:
    """Raise NoMomentError if there is no such table, or if it has no state as of a moment."""
    if name not in _of_a_moment():
        raise NoMomentError(_why_not(name))


def _why_not(name: str) -> str:
    there = f"tables that have states are {', '.join(_of_a_moment())}"
    if name not in TABLES or TABLES[name].layer != "gold":
        return f"{name} has no state as of a moment; {there}"
    parts = ", ".join(each for each in TABLES[name].inputs if not _has_moments(each))
    return f"{name} is made of {parts}, which have no state as of a moment; {there}"
