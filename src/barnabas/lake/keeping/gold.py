"""Kept gold tables: those that a run computes anew after its last batch, so that answers can be read without Spark.

Its one rule: a stored gold table states the versions of the tables that it was computed from. It is current while they have
not changed, and nobody reads it otherwise. So a run that is killed before this step leaves nothing wrong. A table that grows
is computed from the rows of later offsets alone. One that does not grow is computed anew only if what it uses of its inputs
has changed (`Uses`): a replica that falls out of sync changes `partitions`, but no number of leaders.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from barnabas import __version__
from barnabas.lake.keeping.digests import digest_of
from barnabas.lake.keeping.manifest import Made, Manifest, TableState, is_current, versions_of
from barnabas.lake.keeping.table_reading import column_types, read_parts, read_table
from barnabas.lake.tables.declaration import Table, Uses

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from barnabas.lake.keeping.store import Writer

Known = Mapping[str, Table]
"""All tables by name."""

_THREADS = 4


class Computed(NamedTuple):
    """A gold table that was computed, for progress reports."""

    table: str
    done: int
    total: int
    seconds: float


def read_by(known: Known, name: str) -> frozenset[str]:
    """Return the paths of the tables on disk that a table is computed from; of one that is not gold, its own."""
    table = known[name]
    if table.layer != "gold":
        return frozenset((table.path,))
    return frozenset().union(*(read_by(known, each) for each in table.inputs))


def uses_of(known: Known, name: str) -> dict[str, Uses]:
    """Return what a table uses of tables on disk, by their paths. Of those that are not named it uses everything."""
    table = known[name]
    found = {known[each].path: uses for each, uses in table.uses.items()}
    for path in read_by(known, name) - found.keys():
        readers = [each for each in table.inputs if path in read_by(known, each)]
        used = [uses_of(known, each).get(path) for each in readers if known[each].layer == "gold"]
        if len(used) == len(readers) and len(set(used)) == 1 and used[0] is not None:
            found[path] = used[0]
    return found


def outdated(known: Known, manifest: Manifest) -> list[Table]:
    """Return the kept tables that are not current. Those of which the lake has no input at all are left out."""
    return [
        table
        for table in known.values()
        if table.is_kept
        and not is_current(manifest, table.path, __version__)
        and any(path in manifest.tables for path in read_by(known, table.name))
    ]


def ignore(computed: Computed) -> None:
    """Ignore progress reports."""


def keep_gold(
    spark: SparkSession, writer: Writer, known: Known, watch: Callable[[Computed], None], is_stopped: Callable[[], bool]
) -> list[str]:
    """Compute all kept tables that are not current, and commit them. Return their paths."""
    source = _Source(spark, writer, known, writer.manifest)
    behind = outdated(known, source.manifest)
    began, made = time.monotonic(), dict[str, Made]()
    tables = []
    for table in behind:
        if (unchanged := source.unchanged(table)) is not None:
            made[table.path] = unchanged
        else:
            tables.append(table)
    computed = list[str]()
    if tables:
        watch(Computed("", 0, len(tables), 0.0))

    def compute(table: Table) -> tuple[Table, Made | None]:
        return table, None if is_stopped() else source.compute(table)

    with ThreadPoolExecutor(_THREADS) as pool:
        for table, gold in pool.map(compute, tables):
            if gold is None:
                return []
            made[table.path] = gold
            computed.append(table.path)
            watch(Computed(table.name, len(computed), len(tables), time.monotonic() - began))
    if made:
        writer.on_step("gold written")
        writer.commit_gold(made)
    return computed


class _Source(NamedTuple):
    """One commit of a lake, which tables are computed from."""

    spark: SparkSession
    writer: Writer
    known: Known
    manifest: Manifest

    def unchanged(self, table: Table) -> Made | None:
        """Return the table as it is, if what it uses of its inputs is what it was computed from; otherwise None."""
        columns, state = column_types(table), self.manifest.tables.get(table.path)
        made_of = versions_of(self.manifest, sorted(read_by(self.known, table.name)))
        if table.needs and self.known[table.needs].path not in self.manifest.tables:
            return Made(columns, (), made_of)
        if state is None or state.made_by != __version__ or state.columns != columns or not state.made_of:
            return None
        changed = {path for path, version in made_of.items() if state.made_of.get(path) != version}
        if not changed <= state.digests.keys():
            return None
        digests = self._digests(table)
        is_same = all(digests.get(path) == state.digests[path] for path in changed)
        return Made(columns, state.parts, made_of, digests=digests) if is_same else None

    def _digests(self, table: Table) -> dict[str, str]:
        """Return digests of the inputs of which the table does not use everything."""
        found = {}
        for path, uses in uses_of(self.known, table.name).items():
            digest = digest_of(self.writer.data, self.manifest.tables.get(path) or TableState({}), uses)
            if digest is not None:
                found[path] = digest
        return found

    def compute(self, table: Table) -> Made:
        columns, state = column_types(table), self.manifest.tables.get(table.path)
        made_of = versions_of(self.manifest, sorted(read_by(self.known, table.name)))
        if table.grows_by and state is not None and state.made_by == __version__ and state.columns == columns:
            # All rows of a batch have later offsets than those of the batches before it.
            last = read_parts(self.spark, self.writer.data, state.parts, columns)
            # Of each cluster one row: as numbers in the query, Spark skips the files that have nothing later.
            ends = dict(map(tuple, last.groupBy("cluster_id").agg({table.grows_by: "max"}).collect()))
            inputs = [
                self.read(name) if name in table.whole else _later(self.read(name), ends) for name in table.inputs
            ]
            rows, is_whole = _after(table.build(*inputs), table.grows_by, ends), False
        else:
            rows, is_whole = table.build(*map(self.read, table.inputs)), True
        part = self.writer.stage(table.path)
        rows.select(*columns).write.parquet((self.writer.data / part).url)
        return Made(columns, (part,), made_of, is_whole, self._digests(table))

    def read(self, name: str) -> DataFrame:
        table = self.known[name]
        if table.layer != "gold":
            return read_table(self.spark, self.writer.data, self.manifest, table)
        made: DataFrame = table.build(*map(self.read, table.inputs))
        return made


def _later(history: DataFrame, ends: Mapping[str, int]) -> DataFrame:
    """Return the rows of a history that began or ended after the end of their cluster."""
    return history.where(_is_after(ends, "valid_from_offset", "valid_to_offset"))


def _after(rows: DataFrame, column: str, ends: Mapping[str, int]) -> DataFrame:
    return rows.where(_is_after(ends, column))


def _is_after(ends: Mapping[str, int], *columns: str) -> Column:
    """Return whether one of these offsets is after the end of its cluster; every one is, of a cluster without an end."""
    from pyspark.sql import functions as f

    cluster = f.col("cluster_id")
    found = ~cluster.isin(list(ends))
    for cluster_id, end in ends.items():
        for column in columns:
            found = found | ((cluster == cluster_id) & (f.col(column) > end))
    return found
