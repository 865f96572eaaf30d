"""Folding logs into facts with Spark: records and open facts are routed to shards, and each shard is one ordered pass.

Its one rule: a shard gets the facts that were open before, and then, in the order of the log, all records that its facts depend
on. So its state is a plain dict, nothing is grouped by key, and memory is that of the open facts. The family of logs routes
records; this module only moves rows.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from barnabas.lake.declared_column import Column, ddl
from barnabas.lake.facts import metadata, metadata_kinds, schema
from barnabas.lake.facts.schema import Fact, FactWriter
from barnabas.lake.facts.sharding import shard_column

if TYPE_CHECKING:
    from pyspark.sql import Column as Column_
    from pyspark.sql import DataFrame

PACKED: Final = (
    Column("shard", "int", "The shard that the row goes to."),
    Column("cluster_id", "string", "The cluster."),
    Column("log", "string", "The partition that is folded."),
    Column("packed", "binary", "Open facts of one kind, as an Arrow stream; null in rows that are records."),
)
_PACKED_SCHEMA: Final = pa.schema([(column.name, schema.arrow_type(column.type)) for column in PACKED])
_FACTS_IN_PACK: Final = 2048


class Fold(Protocol):
    """The state of one log in one shard. Ended facts go to the writer at once, open ones at the end."""

    def restore(self, kind: str, facts: list[Fact]) -> None:
        """Restore open facts. All of them come before the first record, the kinds in any order."""

    def feed(self, records: pa.RecordBatch) -> None:
        """Apply more records, in order, with the family's columns."""

    def finish(self) -> Iterator[tuple[str, Fact]]:
        """Yield all open facts, also internal ones, each with its kind."""


@dataclass(frozen=True, slots=True)
class Family:
    """Logs that are folded in the same way. Its functions are sent to executors by name, so they belong to modules."""

    log_prefix: str
    """The prefix of its logs' names: open facts of other logs are ignored."""
    columns: tuple[str, ...]
    """The columns of a record that a fold gets."""
    order: tuple[str, ...]
    """The columns by which records are sorted; the first is never null."""
    make: Callable[[FactWriter, int, int], Fold]
    """Creates an empty fold for (writer, shard, number of shards)."""
    destinations: Callable[[str, pa.RecordBatch, int], Sequence[Sequence[int]]]
    """Returns, for (kind, open facts of it, number of shards), the shards that need each fact."""
    kinds: tuple[str, ...] = ()
    """The kinds that it makes, if known: then the result has no columns of other kinds, which would cost time to write."""


def fold(routed: DataFrame, open_facts: DataFrame, family: Family, *, shards: int) -> DataFrame:
    """Return the facts that end with these records, and all that are open after them.

    `routed` are the records with `shard` (from 0; a record that several shards need is there several times), `cluster_id`,
    `log`, and the columns of the family. Records and open facts may be of several clusters.
    """
    needed = list(dict.fromkeys(["shard", "cluster_id", "log", *family.order, *family.columns]))
    others = [kind for kind in schema.kinds() if kind not in family.kinds] if family.kinds else []
    packed = open_facts.where(open_facts["log"].startswith(family.log_prefix) & open_facts["valid_to_offset"].isNull())
    packed = packed.drop(*others).mapInArrow(_packer(family, shards), ddl(PACKED))
    rows = routed.select(*needed).unionByName(packed, allowMissingColumns=True)
    # Nulls sort first: open facts, which have no offset, come before all records.
    rows = rows.repartitionById(shards, rows["shard"]).sortWithinPartitions(*family.order)
    facts = rows.mapInArrow(_runner(family, shards), ddl(schema.columns()))
    # Not `drop`: Spark Connect would analyse its input at once, which a pipeline does not have yet.
    return facts.select(*(column.name for column in schema.columns() if column.name not in others))


METADATA: Final = Family(
    metadata.LOG,
    ("at", "time", "epoch", "is_snapshot", "record_type", "raw"),
    # A snapshot comes before the record at its end offset; copies of a snapshot one after the other.
    ("at", "is_log", "snapshot_file", "position", "batch_index"),
    metadata.MetadataFold,
    metadata.fact_destinations,
    tuple(kind.name for kind in metadata_kinds.KINDS),
)


def fold_metadata(records: DataFrame, open_facts: DataFrame, *, shards: int, strict: bool = True) -> DataFrame:
    """Return the facts that end with these rows of `kafka_metadata`, and all that are open after them.

    The rows are committed records of one copy of the log, without errors; a snapshot is complete or absent. Records that do not
    fit the state fail the pass or, if not `strict` (as after a gap), are skipped with a warning.
    """
    family = replace(METADATA, make=partial(metadata.MetadataFold, strict=strict))
    return fold(route_metadata(records, shards), open_facts, family, shards=shards)


def route_metadata(records: DataFrame, shards: int) -> DataFrame:
    """Return records with their shards: `facts.metadata.destinations` as Spark columns."""
    from pyspark.sql import functions as f

    kind = f.col("record_type")

    def shard_of(name: str) -> Column_:
        return shard_column(f.col(name), shards)

    def routed(route: str) -> Column_:
        return kind.isin([name for name, its_route in metadata.ROUTES.items() if its_route == route])

    by_topic_id, by_name = shard_of("topic_id"), shard_of("topic_name")
    family: Column_ = f.coalesce(
        *(f.when(kind == name, f.lit(family)) for name, family in metadata.SAME_SHARD.items()), kind
    )
    destinations = (
        f.when(routed(metadata.BY_TOPIC_ID), f.array(by_topic_id))
        .when(routed(metadata.BY_RESOURCE_NAME), f.array(shard_of("resource_name")))
        .when(routed(metadata.BY_TOPIC_ID_AND_NAME), f.array_distinct(f.array(by_topic_id, by_name)))
        .when(routed(metadata.TO_ALL), f.array(*map(f.lit, range(shards))))
        .otherwise(f.array(shard_column(family, shards)))
    )
    return records.where(~kind.isin(list(metadata.WITHOUT_EFFECT))).select(
        f.explode(destinations).alias("shard"),
        "cluster_id",
        f.lit(metadata.LOG).alias("log"),
        f.coalesce("offset", "snapshot_end_offset").alias("at"),
        (~f.col("is_snapshot")).alias("is_log"),
        f.when(f.col("is_snapshot"), f.col("source_file")).alias("snapshot_file"),
        "position",
        "batch_index",
        f.col("append_time").alias("time"),
        f.when(f.col("is_snapshot"), f.col("snapshot_epoch")).otherwise(f.col("leader_epoch")).alias("epoch"),
        "is_snapshot",
        "record_type",
        "raw",
    )


Pass = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _packer(family: Family, shards: int) -> Pass:
    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from pack_facts(batch, family, shards)

    return pack


def pack_facts(batch: pa.RecordBatch, family: Family, shards: int) -> Iterator[pa.RecordBatch]:
    """Yield open facts packed for the shards: as single rows they would carry the columns of all kinds."""
    for (cluster_id, log, kind), part in _parts(batch, ("cluster_id", "log", "kind")):
        narrow = [*(column.name for column in (*schema.PLACE, *schema.VALIDITY)), "state" if kind[0] == "_" else kind]
        facts = part.select(narrow)
        rows_of: defaultdict[int, list[int]] = defaultdict(list)
        for index, found in enumerate(family.destinations(kind, facts, shards)):
            for shard in found:
                rows_of[shard].append(index)
        for shard, rows in rows_of.items():
            for start in range(0, len(rows), _FACTS_IN_PACK):
                taken = facts.take(pa.array(rows[start : start + _FACTS_IN_PACK]))
                row = [shard], [cluster_id], [log], [_to_bytes(taken)]
                yield pa.RecordBatch.from_arrays(list(map(pa.array, row)), schema=_PACKED_SCHEMA)


def _runner(family: Family, shards: int) -> Pass:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gc.disable()  # no cycles are created here, and searching them among all open facts costs a third of the time
        try:
            yield from run_shard(batches, family, shards)
        finally:
            gc.enable()

    return run


def run_shard(batches: Iterable[pa.RecordBatch], family: Family, shards: int) -> Iterator[pa.RecordBatch]:
    """Run the one pass over all rows of a shard, in order. Facts are yielded as soon as there are enough for a batch."""
    folds: dict[tuple[str, str], tuple[FactWriter, Fold]] = {}
    for batch in batches:
        for (shard, cluster_id, log), part in _parts(batch, ("shard", "cluster_id", "log")):
            if (cluster_id, log) not in folds:
                writer = FactWriter(cluster_id, log)
                folds[cluster_id, log] = writer, family.make(writer, shard, shards)
            writer, state = folds[cluster_id, log]
            for is_packed, rows in _runs(part, part.column("packed").is_valid().to_pylist()):
                if not is_packed:
                    state.feed(rows.select(family.columns))
                    continue
                for value in rows.column("packed").to_pylist():
                    for _, _, kind, facts in schema.facts_of(_from_bytes(value)):
                        state.restore(kind, facts)
            yield from writer.drain(schema.ROWS_IN_BATCH // 2)
    for writer, state in folds.values():
        for count, (kind, fact) in enumerate(state.finish(), 1):
            writer.of(kind).append(fact)
            if count % schema.ROWS_IN_BATCH == 0:
                yield from writer.drain()
        yield from writer.drain()


def _parts(batch: pa.RecordBatch, names: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
    """Group rows with the same values of these columns; mostly that is the whole batch."""
    columns = [batch.column(name).dictionary_encode() for name in names]
    if batch.num_rows and all(len(column.dictionary) == 1 and not column.null_count for column in columns):
        yield tuple(column.dictionary[0].as_py() for column in columns), batch
        return
    places: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for index, values in enumerate(zip(*(column.to_pylist() for column in columns), strict=True)):
        places[values].append(index)
    for values, indexes in places.items():
        yield values, batch.take(pa.array(indexes))


def _runs(batch: pa.RecordBatch, marks: Sequence[bool]) -> Iterator[tuple[bool, pa.RecordBatch]]:
    """Yield runs of rows with the same mark, in order."""
    start = 0
    for mark, run in groupby(marks):
        length = sum(1 for _ in run)
        yield mark, batch.slice(start, length)
        start += length


def _to_bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def _from_bytes(data: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(data) as stream:
        return stream.read_next_batch()
