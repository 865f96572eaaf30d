"""Batches of few records: folded and written here, without Spark, with the facts alone that they touch.

Its one rule: the rows are those that Spark would have written. The open rows of a table are in buckets by the hash of their key
(`_BUCKET`), each a part of its own; a batch reads and replaces the buckets that have its keys, and the others stay as they are.
So its cost follows from what changes, and hardly from what there is. Open rows that Spark wrote have no buckets: the next small
batch that touches their table puts all of them into some.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

from barnabas.lake.facts import schema
from barnabas.lake.facts.schema import arrow_type
from barnabas.lake.keeping.checks import CheckFailedError
from barnabas.lake.keeping.folders import Folder, read_table, write_table
from barnabas.lake.keeping.manifest import Parts, TableChange, stream_path
from barnabas.lake.keeping.publishing import files_of
from barnabas.lake.tables.declaration import Mode, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.lake.facts.touched import Keys, Narrowing, Touched
    from barnabas.lake.keeping.store import Writer
    from barnabas.lake.tables.streams import Stream

MAX_RECORDS: Final = 20_000
"""Spark takes batches with more records: then starting it costs less than one core."""
BUCKET_ROWS: Final = 8192
"""About as many rows a bucket has when a table is put into buckets; one that has grown to four times as many is split."""

_FILE: Final = "rows.parquet"
_BUCKET: Final = re.compile(r"/bucket-(\d+)-of-(\d+)$")
_INTERNAL: Final = re.compile(r"/kind=(_[a-z_]+)$")
_PACKED: Final = "packed"
_NAMED_ROWS: Final = 5


class Folded(NamedTuple):
    """What a small batch has written."""

    tables: dict[str, TableChange]
    facts: Parts
    """The internal facts, for the next batch."""
    rows: dict[str, int]
    """Rows that it wrote to each table: those that ended, and the open ones among those that it touched."""


class _OpenRows:
    """The open rows of a table of one stream: those that a batch touches, and what is around them."""

    def __init__(self, data: Folder, table: Table, parts: Parts, column: str | None, keys: Keys) -> None:
        self.data, self.table, self.column = data, table, column
        self.schema = _schema(table)
        found = {part: match for part in parts if (match := _BUCKET.search(part))}
        sizes = {int(match[2]) for match in found.values()}
        is_laid_out = len(found) == len(parts) and len(sizes) == 1
        self.buckets = sizes.pop() if is_laid_out else 0
        if column is None or keys is None or not is_laid_out:
            self.read, self.left = parts, Parts()
        else:
            wanted = {bucket_of(key, self.buckets) for key in keys}
            self.read = tuple(part for part in parts if int(found[part][1]) in wanted)
            self.left = tuple(part for part in parts if part not in set(self.read))
        rows = self._rows(self.read)
        if column is None or keys is None:
            self.touched, self.others = rows, rows.slice(0, 0)
        else:
            import pyarrow as pa
            from pyarrow import compute

            is_touched = compute.is_in(rows[column], pa.array(sorted(keys), pa.string()))
            self.touched, self.others = rows.filter(is_touched), rows.filter(compute.invert(is_touched))

    def _rows(self, parts: Iterable[str]) -> pa.Table:
        return _read(self.data, parts, self.schema)

    def write(self, part: str, rows: pa.Table) -> Parts:
        """Write these rows in place of the touched ones. Return all parts with open rows."""
        import pyarrow as pa

        after, left, buckets = pa.concat_tables([self.others, rows]), self.left, self.buckets
        if self.column is None:
            return (_write(self.data, f"{part}/ended=false", after),) if after.num_rows else ()
        is_crowded = after.num_rows > 4 * BUCKET_ROWS * max(1, len(self.read))
        if is_crowded and left:
            after, left = pa.concat_tables([after, self._rows(left)]), ()
        if is_crowded or not buckets:
            buckets = 1 << (after.num_rows // BUCKET_ROWS).bit_length()
        return left + tuple(
            _write(self.data, f"{part}/bucket-{bucket}-of-{buckets}", inside)
            for bucket, inside in _in_buckets(after, self.column, buckets)
        )


def bucket_of(key: str, buckets: int) -> int:
    return crc32(key.encode()) % buckets


def _in_buckets(rows: pa.Table, column: str, buckets: int) -> Iterator[tuple[int, pa.Table]]:
    import pyarrow as pa

    keys = rows[column].combine_chunks().dictionary_encode()
    of_key = [bucket_of(key, buckets) for key in keys.dictionary.to_pylist()]
    of_row = pa.array(of_key, pa.int32()).take(keys.indices)
    sorted_rows = rows.append_column(_PACKED, of_row).sort_by(_PACKED)
    counts = sorted_rows[_PACKED].value_counts()
    start = 0
    for bucket, count in zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True):
        yield bucket, sorted_rows.slice(start, count).drop_columns([_PACKED])
        start += count


def fold_small(writer: Writer, name: str, stream: Stream, before: Parts, records_part: str) -> Folded | None:
    """Fold the records of a part into the stream of this name, and write the tables. None: these need Spark.

    `before` are the internal facts of the stream. Raises CheckFailedError, and what the fold raises.
    """
    from barnabas.lake.facts.spark import run_shard

    narrowing, data = stream.narrowing, writer.data
    if narrowing is None or any(_INTERNAL.search(part) is None for part in before):
        return None
    records = _read(data, (records_part,), _schema(stream.records))
    internal = [fact for part in before for fact in _internal_facts(data, part)]
    states = [(fact["kind"], fact["log"], fact["state"]) for fact in internal]
    tables = {table.name: table for table in stream.tables if table.mode is Mode.HISTORY}
    opened: dict[str, _OpenRows] = {}

    def open_rows(kind: str, keys: Keys) -> _OpenRows:
        state = writer.manifest.tables.get(tables[kind].path)
        parts = state.present.get(name, ()) if state else ()
        return _OpenRows(data, tables[kind], parts, narrowing.columns.get(kind), keys)

    def look_up(kind: str, keys: frozenset[str], column: str) -> frozenset[str]:
        return frozenset(open_rows(kind, keys).touched[column].to_pylist())

    touched = narrowing.touched(records, states, look_up)
    if touched is None:
        return None
    _check(stream.records, records)
    opened = {kind: open_rows(kind, keys) for kind, keys in touched.items()}
    inputs = _inputs(narrowing, narrowing.route(records), internal, opened)
    made: dict[str, list[pa.RecordBatch]] = {}
    for batch in run_shard(inputs, narrowing.family, 1):
        for kind in batch.column("kind").unique().to_pylist():
            made.setdefault(kind, []).append(_of_kind(batch, kind))
    _check_kinds(made, touched)
    rows = {kind: _as_rows(tables[kind], kind, made.get(kind, ())) for kind in touched}
    for kind, found in rows.items():
        _check(tables[kind], found)
    _check_references(tables, rows, lambda kind: open_rows(kind, None).touched)
    new = [table for table in tables.values() if table.path not in writer.manifest.tables]
    return _written(writer, name, new, opened, rows, made)


def _written(
    writer: Writer,
    name: str,
    new: Iterable[Table],
    opened: Mapping[str, _OpenRows],
    rows: Mapping[str, pa.Table],
    made: Mapping[str, Sequence[pa.RecordBatch]],
) -> Folded:
    from pyarrow import compute

    tables: dict[str, TableChange] = {}
    counts: dict[str, int] = {}
    for table in new:
        tables[table.path] = TableChange(_types(table), (), ())
    for kind, there in opened.items():
        has_ended = compute.is_valid(rows[kind]["valid_to_offset"])
        ended, is_open = rows[kind].filter(has_ended), rows[kind].filter(compute.invert(has_ended))
        if not ended.num_rows and _is_same(there, is_open):
            continue
        part = writer.stage(there.table.path)
        added = (_write(writer.data, f"{part}/ended=true", ended),) if ended.num_rows else ()
        tables[there.table.path] = TableChange(_types(there.table), added, there.write(part, is_open))
        counts[there.table.path] = rows[kind].num_rows
    part = writer.stage(f"state/{stream_path(name)}")
    facts = tuple(
        _write(writer.data, f"{part}/is_open=true/kind={kind}", _table(batches).drop_columns(["kind"]))
        for kind, batches in made.items()
        if schema.is_internal(kind)
    )
    return Folded(tables, facts, counts)


def _is_same(there: _OpenRows, rows: pa.Table) -> bool:
    """Return whether a batch has left the rows that it touched as they were."""
    if rows.num_rows != there.touched.num_rows:
        return False
    keys = [(name, "ascending") for name in there.table.keys if arrow_type(_types(there.table)[name]) in _sortable()]
    return bool(rows.sort_by(keys).equals(there.touched.sort_by(keys)))


def _sortable() -> tuple[Any, ...]:
    import pyarrow as pa

    return pa.string(), pa.int32(), pa.int64(), pa.bool_()


def merge_parts(writer: Writer, path: str, parts: Iterable[str]) -> str:
    """Write the rows of parts of a table as one part."""
    import pyarrow as pa

    tables = [read_table(writer.data, file.name) for file in files_of(writer.data, parts)]
    return _write(writer.data, writer.stage(path), pa.concat_tables(tables, promote_options="default"))


# --- facts and rows --------------------------------------------------------------------------------------------------


def _inputs(
    narrowing: Narrowing, routed: pa.Table, internal: Sequence[Mapping[str, Any]], opened: Mapping[str, _OpenRows]
) -> Iterator[pa.RecordBatch]:
    """Yield open facts, and then the records, as a shard takes them."""
    import pyarrow as pa

    from barnabas.lake.facts.spark import pack_facts

    needed = ["shard", "cluster_id", "log", *narrowing.family.columns, _PACKED]
    count = routed.num_rows
    known = routed["cluster_id"].unique().to_pylist() + [fact["cluster_id"] for fact in internal]
    if not known:
        return
    cluster_id = known[0]
    rows = routed.append_column("shard", pa.repeat(pa.scalar(0, pa.int32()), count))
    rows = rows.append_column(_PACKED, pa.nulls(count, pa.binary())).select(needed)
    logs = [*routed["log"].unique().to_pylist(), *(fact["log"] for fact in internal)]
    packed: list[pa.RecordBatch] = []
    if internal:
        facts = pa.RecordBatch.from_pylist(list(internal), schema=_internal_schema())
        packed += pack_facts(facts, narrowing.family, 1)
    for kind, there in opened.items():
        for batch in _as_facts(kind, there.touched, cluster_id, logs[0]).to_batches():
            packed += pack_facts(batch, narrowing.family, 1)
    for batch in packed:
        columns = {name: batch.column(name) for name in batch.schema.names}
        arrays = [columns.get(field.name, pa.nulls(batch.num_rows, field.type)) for field in rows.schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=rows.schema)
    yield from rows.combine_chunks().to_batches()


def _as_facts(kind: str, rows: pa.Table, cluster_id: str, log: str) -> pa.Table:
    """Return rows of the table of a kind as facts. A table without logs is about the only one."""
    import pyarrow as pa

    form = schema.kinds()[kind]
    count = rows.num_rows
    logs = rows["log"] if "log" in rows.schema.names else pa.repeat(pa.scalar(log, pa.string()), count)
    fields = [pa.field(column.name, arrow_type(column.type)) for column in form.columns]
    arrays = [rows[column.name].combine_chunks() for column in form.columns]
    columns = {
        "cluster_id": pa.repeat(pa.scalar(cluster_id, pa.string()), count),
        "kind": pa.repeat(pa.scalar(kind, pa.string()), count),
        "log": logs,
        "key": pa.repeat(pa.scalar("", pa.string()), count),
        **{column.name: rows[column.name] for column in schema.VALIDITY},
        kind: pa.StructArray.from_arrays(arrays, fields=fields),
    }
    return pa.table(columns)


def _of_kind(batch: pa.RecordBatch, kind: str) -> pa.RecordBatch:
    from pyarrow import compute

    return batch.filter(compute.equal(batch.column("kind"), kind))


def _table(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return internal facts as a table of the columns that they have."""
    import pyarrow as pa

    return pa.Table.from_batches(batches).select(_internal_schema().names)


def _as_rows(table: Table, kind: str, batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return facts of a kind as rows of its table."""
    import pyarrow as pa

    found = []
    for batch in batches:
        struct = batch.column(kind)
        fields = {field.name: struct.field(index) for index, field in enumerate(struct.type)}
        arrays = [
            fields[column.name] if column.name in fields else batch.column(column.name) for column in table.columns
        ]
        found.append(pa.RecordBatch.from_arrays(arrays, schema=_schema(table)))
    return pa.Table.from_batches(found, schema=_schema(table))


def _internal_schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema(
        [(column.name, arrow_type(column.type)) for column in (*schema.PLACE, *schema.VALIDITY, schema.STATE)]
    )


def _internal_facts(data: Folder, part: str) -> list[dict[str, Any]]:
    import pyarrow as pa

    match = _INTERNAL.search(part)
    assert match is not None
    without_kind = _internal_schema().remove(_internal_schema().get_field_index("kind"))
    rows = _read(data, (part,), without_kind)
    kinds = pa.repeat(pa.scalar(match[1], pa.string()), rows.num_rows)
    return list(rows.append_column("kind", kinds).select(_internal_schema().names).to_pylist())


# --- checks ----------------------------------------------------------------------------------------------------------


def _check_kinds(made: Iterable[str], touched: Touched) -> None:
    """Raise if a fold has made facts that it was not expected to touch: its other facts were not read."""
    strange = [kind for kind in made if not schema.is_internal(kind) and kind not in touched]
    if strange:
        raise AssertionError(f"records changed {', '.join(strange)}, of which no facts were read")


def _check(table: Table, rows: pa.Table) -> None:
    """Raise CheckFailedError if a key is there twice, or a value is missing."""
    for column in table.not_null:
        if rows[column].null_count:
            bad = rows.filter(rows[column].is_null())
            _fail(table, f"has rows without {column}", table.keys, _keys(bad, table.keys))
    counts = Counter(map(json.dumps, _keys(rows, table.keys)))
    twice = [json.loads(key) for key, count in counts.items() if count > 1]
    if twice:
        _fail(table, f"has several rows with the same {', '.join(table.keys)}", table.keys, twice)


def _check_references(
    tables: Mapping[str, Table], rows: Mapping[str, pa.Table], whole: Callable[[str], pa.Table]
) -> None:
    for kind, found in rows.items():
        for reference in tables[kind].references:
            values = {json.dumps(key): key for key in _keys(found, reference.columns) if None not in key}
            if reference.table in rows:
                _drop(values, rows[reference.table], reference.its_columns)
            if values:
                _drop(values, whole(reference.table), reference.its_columns)
            if values:
                rule = f"refers by {', '.join(reference.columns)} to rows that {reference.table} does not have"
                _fail(tables[kind], rule, reference.columns, list(values.values()))


def _drop(values: dict[str, tuple[Any, ...]], rows: pa.Table, columns: Sequence[str]) -> None:
    """Remove the values that these columns of the rows have."""
    for key in _keys(rows, columns):
        values.pop(json.dumps(key), None)


def _keys(rows: pa.Table, names: Sequence[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(rows[name].to_pylist() for name in names), strict=True))


def _fail(table: Table, rule: str, names: Sequence[str], found: Sequence[Sequence[Any]]) -> None:
    shown = "; ".join(
        ", ".join(f"{name}={value}" for name, value in zip(names, key, strict=True)) for key in found[:_NAMED_ROWS]
    )
    raise CheckFailedError(f"table {table.name} {rule}: {shown}{' and more' if len(found) > _NAMED_ROWS else ''}")


# --- files -----------------------------------------------------------------------------------------------------------


def _types(table: Table) -> dict[str, str]:
    return {column.name: column.type for column in table.columns}


def _schema(table: Table) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(column.name, arrow_type(column.type)) for column in table.columns])


def _read(data: Folder, parts: Iterable[str], wanted: pa.Schema) -> pa.Table:
    """Return the rows of parts. A column that an older part lacks is null there."""
    import pyarrow as pa

    found = [wanted.empty_table()]
    for file in files_of(data, parts):
        rows = read_table(data, file.name)
        names = set(rows.schema.names)
        arrays = [
            rows[field.name].cast(field.type) if field.name in names else pa.nulls(rows.num_rows, field.type)
            for field in wanted
        ]
        found.append(pa.table(arrays, schema=wanted))
    return pa.concat_tables(found)


def _write(data: Folder, part: str, rows: pa.Table) -> str:
    write_table(data, f"{part}/{_FILE}", rows)
    return part
