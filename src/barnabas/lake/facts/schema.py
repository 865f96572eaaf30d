"""A fact: something that was true of a cluster from one offset of a log to another; as rows, and as Arrow.

Its one rule: a row of any kind has the same columns, so that one pass over a log gives all kinds: where, since when and
until when it was true, and one struct for each kind, null in rows of other kinds. What is true, and when, is found out by the
folds (metadata, groups, transactions), which also name their kinds: `KINDS` in each of `MODULES`.

Internal kinds begin with an underscore, have no table, and keep what they need in `state`.
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

from barnabas.lake.declared_column import Column

MODULES: Final = (
    "barnabas.lake.facts.metadata_kinds",
    "barnabas.lake.facts.groups",
    "barnabas.lake.facts.transactions",
)
"""Where kinds are declared: each has `KINDS`, a tuple. They are imported when first asked for."""

PLACE: Final = (
    Column("cluster_id", "string", "The cluster."),
    Column("kind", "string", "The kind of fact; that of an internal one begins with an underscore."),
    Column("log", "string", "The partition whose records say so, as topic-partition."),
    Column("key", "string", "What it is about, as one text: the values of the kind's key as a JSON array."),
)
VALIDITY: Final = (
    Column("valid_from_offset", "bigint", "The offset of the record from which on it was true."),
    Column("valid_from_time", "timestamp", "When the batch of that record was appended. May go backwards."),
    Column("valid_from_epoch", "int", "The leader epoch of that batch."),
    Column("valid_to_offset", "bigint", "The offset of the record that ended it; null while it is true."),
    Column("valid_to_time", "timestamp", "When the batch of that record was appended."),
    Column("exact", "boolean", "False: found or ended at a snapshot, so that the true place is before."),
)
STATE: Final = Column("state", "binary", "What an internal fact keeps.")

Fact = tuple[str, int, int | None, int | None, int | None, int | None, bool, Any]
"""key, valid_from_offset, _time, _epoch, valid_to_offset, _time, exact, value: times in microseconds, the value a tuple in the
order of the kind's columns (its times in microseconds too), or bytes for an internal kind."""

ROWS_IN_BATCH: Final = 16_384


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fact, and the silver table of its name."""

    name: str
    question: str
    """What the table answers, in a sentence."""
    keys: tuple[Column, ...]
    """What it is about: at any offset, no two rows have the same values of these."""
    values: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.keys + self.values

    @property
    def struct(self) -> str:
        return f"struct<{', '.join(f'{column.name}: {column.type}' for column in self.columns)}>"


@cache
def kinds() -> dict[str, Kind]:
    """All kinds by name, in the order of the columns."""
    found = [kind for module in MODULES for kind in import_module(module).KINDS]
    return {kind.name: kind for kind in found}


@cache
def columns() -> tuple[Column, ...]:
    """The columns of a fact."""
    structs = [Column(kind.name, kind.struct, f"In rows of the kind {kind.name}.") for kind in kinds().values()]
    return (*PLACE, *VALIDITY, STATE, *structs)


@cache
def arrow_schema() -> pa.Schema:
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns()])


def is_internal(kind: str) -> bool:
    return kind.startswith("_")


def key_text(*parts: str | int | None) -> str:
    """The canonical text of a key."""
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
    """The Arrow type that Spark has for a type of its DDL; of the nested ones, arrays and structs."""
    text = text.strip()
    if text in _SIMPLE:
        return _SIMPLE[text]
    name, _, rest = text.partition("<")
    if name == "array" and rest.endswith(">"):
        return pa.list_(pa.field("element", arrow_type(rest[:-1])))
    if name == "struct" and rest.endswith(">"):
        fields = [part.partition(":") for part in _split(rest[:-1])]
        return pa.struct([pa.field(field.strip(), arrow_type(inner)) for field, _, inner in fields])
    raise ValueError(f"{text!r} is not a type that facts can have")


def _split(text: str) -> Iterator[str]:
    """At the commas that are not inside of angle brackets."""
    depth = start = 0
    for position, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if letter == "," and depth == 0:
            yield text[start:position]
            start = position + 1
    yield text[start:]


def fact_batch(cluster_id: str, log: str, kind: str, facts: Sequence[Fact]) -> pa.RecordBatch:
    """Facts of one kind as rows."""
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
    """Lists and texts are often the same over and over: each different one is converted once."""
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
    """Rows as facts again: (cluster id, log, kind, facts), in no order."""
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
    """Times as microseconds."""
    values: list[Any] = (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
    return values


class FactWriter:
    """Collects the facts of one log by kind, and gives them as batches: `of(kind).append(fact)`, then `drain`."""

    __slots__ = ("_facts", "cluster_id", "log")

    def __init__(self, cluster_id: str, log: str) -> None:
        self.cluster_id, self.log = cluster_id, log
        self._facts: defaultdict[str, list[Fact]] = defaultdict(list)

    def of(self, kind: str) -> list[Fact]:
        """The list to append facts of a kind to; it stays the same one."""
        return self._facts[kind]

    def drain(self, least: int = 1) -> Iterator[pa.RecordBatch]:
        """Batches of the kinds that have collected so many facts, which are then forgotten here."""
        for kind, facts in self._facts.items():
            if len(facts) >= least:
                for start in range(0, len(facts), ROWS_IN_BATCH):
                    yield fact_batch(self.cluster_id, self.log, kind, facts[start : start + ROWS_IN_BATCH])
                facts.clear()
