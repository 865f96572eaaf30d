"""A fact: a value that was true of a cluster from one offset of a log to another; as a row, and as Arrow.

Its one rule: rows of all kinds have the same columns, so that one pass over a log yields all kinds: columns for place and
validity, and one struct for each kind, which is null in rows of other kinds. The folds (metadata, groups, transactions) make
facts, and declare their kinds: `KINDS` in each of `MODULES`.

Names of internal kinds start with an underscore. They have no table, and store what they need in `state`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from json.encoder import encode_basestring as _quoted
from typing import Any, Final

import pyarrow as pa

from barnabas.lake.declared_column import Column, Nested, parse_type

MODULES: Final = (
    "barnabas.lake.facts.metadata_kinds",
    "barnabas.lake.facts.groups",
    "barnabas.lake.facts.transactions",
    "barnabas.lake.facts.share_partitions",
)
"""The modules that declare kinds, each in a tuple `KINDS`. They are imported on first use."""

PLACE: Final = (
    Column("cluster_id", "string", "The cluster."),
    Column("kind", "string", "The kind of fact; names of internal kinds start with an underscore."),
    Column("log", "string", "The partition with its records, as topic-partition."),
    Column("key", "string", "The key as text: the values of the kind's key columns as a JSON array."),
)
VALIDITY: Final = (
    Column("valid_from_offset", "bigint", "The offset of the record from which on it was true."),
    Column("valid_from_time", "timestamp", "When the batch of that record was appended. May go backwards."),
    Column("valid_from_epoch", "int", "The leader epoch of that batch."),
    Column("valid_to_offset", "bigint", "The offset of the record that ended it; null while it is true."),
    Column("valid_to_time", "timestamp", "When the batch of that record was appended."),
    Column("exact", "boolean", "False: it was found or ended in a snapshot, so it really started or ended earlier."),
)
STATE: Final = Column("state", "binary", "The content of an internal fact.")

Fact = tuple[str, int, int | None, int | None, int | None, int | None, bool, Any]
"""key, valid_from_offset, _time, _epoch, valid_to_offset, _time, exact, value: times in microseconds, the value a tuple in the
order of the kind's columns (its times in microseconds too), or bytes for an internal kind."""

ROWS_IN_BATCH: Final = 16_384


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fact, and the silver table of the same name."""

    name: str
    question: str
    """The question that the table answers."""
    keys: tuple[Column, ...]
    """The key: at any offset, no two rows have the same values of these columns."""
    values: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.keys + self.values

    @property
    def struct(self) -> str:
        return f"struct<{', '.join(f'{column.name}: {column.type}' for column in self.columns)}>"


@cache
def kinds() -> dict[str, Kind]:
    """Return all kinds by name, in the order of the columns."""
    found = [kind for module in MODULES for kind in import_module(module).KINDS]
    return {kind.name: kind for kind in found}


@cache
def columns() -> tuple[Column, ...]:
    """Return the columns of a fact."""
    structs = [Column(kind.name, kind.struct, f"The value, in rows of kind {kind.name}.") for kind in kinds().values()]
    return (*PLACE, *VALIDITY, STATE, *structs)


@cache
def arrow_schema() -> pa.Schema:
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns()])


def is_internal(kind: str) -> bool:
    return kind.startswith("_")


def key_text(*parts: str | int | None) -> str:
    """Return the canonical text of a key."""
    texts = [_quoted(part) if isinstance(part, str) else "null" if part is None else str(part) for part in parts]
    return f"[{','.join(texts)}]"


_SIMPLE: Final = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


@cache
def arrow_type(text: str) -> pa.DataType:
    """Return the Arrow type for a type of Spark's DDL."""
    return _arrow(parse_type(text))


def _arrow(kind: str | Nested) -> pa.DataType:
    if isinstance(kind, str) and kind in _SIMPLE:
        return _SIMPLE[kind]
    if isinstance(kind, Nested) and kind.name == "array":
        return pa.list_(pa.field("element", _arrow(kind.members[0][1])))
    if isinstance(kind, Nested) and kind.name == "struct":
        return pa.struct([pa.field(name, _arrow(inner)) for name, inner in kind.members])
    if isinstance(kind, Nested) and kind.name == "map":
        return pa.map_(_arrow(kind.members[0][1]), _arrow(kind.members[1][1]))
    raise ValueError(f"{kind} is not a type that tables may have")


def fact_batch(cluster_id: str, log: str, kind: str, facts: Sequence[Fact]) -> pa.RecordBatch:
    """Return facts of one kind as rows."""
    count, schema = len(facts), arrow_schema()
    made: dict[str, pa.Array] = {
        name: pa.repeat(pa.scalar(text, pa.string()), count)
        for name, text in (("cluster_id", cluster_id), ("kind", kind), ("log", log))
    }
    *common, values = zip(*facts, strict=True)
    for name, column in zip(("key", *(column.name for column in VALIDITY)), common, strict=True):
        made[name] = pa.array(column, schema.field(name).type)
    if is_internal(kind):
        made["state"] = pa.array(values, pa.binary())
    else:
        struct = schema.field(kind).type
        arrays = [_array(column, field.type) for column, field in zip(zip(*values, strict=True), struct, strict=True)]
        made[kind] = pa.StructArray.from_arrays(arrays, fields=list(struct))
    arrays = [made[field.name] if field.name in made else _nulls(field.type, count) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@cache
def _many_nulls(type: pa.DataType) -> pa.Array:
    return pa.nulls(ROWS_IN_BATCH, type)


def _nulls(type: pa.DataType, count: int) -> pa.Array:
    return _many_nulls(type).slice(0, count) if count <= ROWS_IN_BATCH else pa.nulls(count, type)


def _array(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    """Convert values, each different list and text only once, since they are often repeated."""
    if pa.types.is_primitive(type) or len(values) < 64:
        return pa.array(values, type)
    codes: dict[Any, int] = {}
    try:
        indexes = [codes.setdefault(value, len(codes)) for value in values]
    except TypeError:
        return pa.array(values, type)
    if len(codes) * 2 > len(values):
        return pa.array(values, type)
    return pa.array(list(codes), type).take(pa.array(indexes, pa.int32()))


def facts_of(batch: pa.RecordBatch) -> Iterator[tuple[str, str, str, list[Fact]]]:
    """Yield rows as facts again: (cluster id, log, kind, facts), in any order."""
    places: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    triples = zip(*(batch.column(name).to_pylist() for name in ("cluster_id", "log", "kind")), strict=True)
    for index, triple in enumerate(triples):
        places[triple].append(index)
    for (cluster_id, log, kind), indexes in places.items():
        part = batch if len(indexes) == batch.num_rows else batch.take(pa.array(indexes))
        yield cluster_id, log, kind, list(_facts_of_kind(part, kind))


def _facts_of_kind(batch: pa.RecordBatch, kind: str) -> Iterable[Fact]:
    common = [_values(batch.column(name)) for name in ("key", *(column.name for column in VALIDITY))]
    if is_internal(kind):
        return zip(*common, batch.column("state").to_pylist(), strict=True)
    struct = batch.column(kind)
    fields = [_values(struct.field(index)) for index in range(struct.type.num_fields)]
    return zip(*common, zip(*fields, strict=True), strict=True)


def _values(column: pa.Array) -> list[Any]:
    """Return the values of a column, times as microseconds."""
    values: list[Any] = (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
    return values


class FactWriter:
    """Collects the facts of one log by kind, and returns them as batches: `of(kind).append(fact)`, then `drain`."""

    __slots__ = ("_facts", "cluster_id", "log")

    def __init__(self, cluster_id: str, log: str) -> None:
        self.cluster_id, self.log = cluster_id, log
        self._facts: defaultdict[str, list[Fact]] = defaultdict(list)

    def of(self, kind: str) -> list[Fact]:
        """Return the list to append facts of a kind to. It is always the same object."""
        return self._facts[kind]

    def drain(self, least: int = 1) -> Iterator[pa.RecordBatch]:
        """Yield and remove the facts of kinds that have at least this many."""
        for kind, facts in self._facts.items():
            if len(facts) >= least:
                for start in range(0, len(facts), ROWS_IN_BATCH):
                    yield fact_batch(self.cluster_id, self.log, kind, facts[start : start + ROWS_IN_BATCH])
                facts.clear()
