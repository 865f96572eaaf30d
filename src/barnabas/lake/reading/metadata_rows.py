"""Records of a metadata log as rows of `kafka_metadata`, in Arrow.

Its one rule: only what is wanted is computed: the columns of the schema, and records of types that filters pass. `batch_arrays`
finds the records in batches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from barnabas.batches import BatchHeader, Record, end_of_whole_batches
from barnabas.batches.format import CONTROL_BIT
from barnabas.lake.reading import batch_arrays
from barnabas.lake.reading.decoding.metadata_columns import decode_columns, raw
from barnabas.lake.reading.decoding.metadata_records import Array, Values, classify, type_name
from barnabas.lake.reading.log_files import OpenSegment

if TYPE_CHECKING:
    from barnabas.lake.reading.metadata_files import Piece

WINDOW_BYTES = 32 << 20
MAX_ROWS = 32768

_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "variant": pa.struct(
        [
            pa.field("value", pa.binary(), nullable=False),
            pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
        ]
    ),
}
_log = logging.getLogger(__name__)


class BadDataError(RuntimeError):
    """A batch that cannot be read, in mode FAILFAST."""


@dataclass(frozen=True)
class Wanted:
    """The wanted rows: by options, and by pushed-down filters of a query. None is no limit."""

    start: int = 0
    end: int | None = None
    snapshots: bool | None = None
    node_ids: frozenset[int] | None = None
    types: frozenset[str] | None = None
    time_start_ms: int | None = None
    time_end_ms: int | None = None


class Bad(NamedTuple):
    """A batch that cannot be read, or offsets that were removed."""

    position: int | None
    base_offset: int | None
    reason: str


class Chunk(NamedTuple):
    """Records of some batches: the fields of each batch, and for each record the index of its batch and its position."""

    position: Array | None
    base_offset: Array
    last_offset: Array
    epoch: Array
    append_time: Array
    batch_of: Array
    offset: Array
    values: Values


@dataclass(frozen=True)
class RowFormat:
    """The columns of the schema, by name, with their Arrow types, and how to fill them."""

    schema: pa.Schema
    include_secrets: bool
    fail_fast: bool
    to_variant: Callable[[str], dict[str, bytes]]
    """Converts JSON to the two fields of a value of type variant."""

    @classmethod
    def of(
        cls,
        columns: Iterable[tuple[str, str, bool]],
        *,
        include_secrets: bool,
        fail_fast: bool,
        to_variant: Callable[[str], dict[str, bytes]],
    ) -> RowFormat:
        """Create it from columns: name, Spark's name of the type, and whether it may be null. Raises ValueError."""
        fields = []
        for name, spark_type, nullable in columns:
            kind = _TYPES.get(spark_type)
            if kind is None:
                raise ValueError(f"kafka_metadata: {name} cannot have the type {spark_type}")
            fields.append(pa.field(name, kind, nullable=nullable))
        return cls(pa.schema(fields), include_secrets, fail_fast, to_variant)


# Bytes to chunks


def read_piece(piece: Piece) -> Iterator[Chunk | Bad]:
    """Yield the records of a piece, and a `Bad` for each fault and for offsets removed after planning."""
    if not piece.is_damaged:
        yield from _read(piece)
        return
    faults = [item for item in _read(piece) if isinstance(item, Bad)]
    last = "the end" if piece.end_offset is None else piece.end_offset - 1
    yield from faults or [
        Bad(piece.position, piece.start_offset, f"no batch has the offsets from {piece.start_offset} to {last}")
    ]


def _read(piece: Piece) -> Iterator[Chunk | Bad]:
    try:
        file = OpenSegment.open(Path(piece.path))
    except FileNotFoundError:
        yield Bad(None, piece.start_offset, f"removed after planning: {_what(piece)}")
        return
    seen = piece.start_offset
    with file:
        position = piece.position
        while position < piece.end_position:
            data = _window(file, position, piece.end_position)
            if not data:
                break
            view = memoryview(data)
            for item in batch_arrays.read_batches(view, position, start=piece.start_offset, end=piece.end_offset):
                if isinstance(item, batch_arrays.Records):
                    seen = max(seen, int(item.offset[-1]) + 1)
                    yield _chunk(item)
                    continue
                yield Bad(*item)
                if item.base_offset is None:  # no batch can be found after it
                    return
            position += len(data)
    if (
        piece.snapshot is None
        and piece.end_offset is not None
        and position < piece.end_position
        and seen < piece.end_offset
    ):
        yield Bad(None, seen, f"removed after planning: offsets {seen} to {piece.end_offset - 1} of {piece.path}")


def _what(piece: Piece) -> str:
    if piece.snapshot is not None:
        return f"the snapshot {piece.path}"
    last = "the end" if piece.end_offset is None else str(piece.end_offset - 1)
    return f"offsets {piece.start_offset} to {last} of {piece.path}"


def _window(file: OpenSegment, position: int, end: int) -> bytes:
    """Return complete batches from a position on. A torn one is included at the end, to be detected."""
    size = WINDOW_BYTES
    while True:
        data = file.read(min(size, end - position), position)
        if position + len(data) >= end or len(data) < size:
            return data
        whole = end_of_whole_batches(data)
        if whole:
            return data[:whole]
        size *= 2


def _chunk(records: batch_arrays.Records) -> Chunk:
    fields = records.batches.field
    base_offset = fields("base_offset")
    return Chunk(
        position=records.batches.positions,
        base_offset=base_offset,
        last_offset=base_offset + fields("last_offset_delta"),
        epoch=fields("partition_leader_epoch"),
        append_time=fields("max_timestamp"),
        batch_of=records.batch_of,
        offset=records.offset,
        values=_values(records.keys, records.values(), records.of_batch(fields("attributes") & CONTROL_BIT) != 0),
    )


def chunk_of(batches: Sequence[tuple[BatchHeader, Sequence[Record]]]) -> Chunk:
    """Return a chunk of records that were decoded one by one, from batches that are in no file."""
    headers = [header for header, _ in batches]
    records = [record for _, each in batches for record in each]
    batch_of = np.repeat(np.arange(len(batches)), [len(each) for _, each in batches])
    is_control = np.array([header.is_control for header in headers], dtype=bool)[batch_of]
    values = pa.array([record.value for record in records], pa.binary())
    return Chunk(
        position=None,
        base_offset=np.array([header.base_offset for header in headers], dtype=np.int64),
        last_offset=np.array([header.last_offset for header in headers], dtype=np.int64),
        epoch=np.array([header.partition_leader_epoch for header in headers], dtype=np.int64),
        append_time=np.array([header.max_timestamp for header in headers], dtype=np.int64),
        batch_of=batch_of,
        offset=np.array([record.offset for record in records], dtype=np.int64),
        values=_values(lambda: pa.array([record.key for record in records], pa.binary()), values, is_control),
    )


def _values(keys: Callable[[], pa.Array], values: pa.Array, is_control: Array) -> Values:
    """Return positions of keys and values; only control records have keys."""
    data, start, size = _spans(values)
    if not is_control.any():
        return Values(data, np.zeros_like(start), np.full_like(size, -1), start, size, is_control)
    key_data, key_start, key_size = _spans(keys())
    return Values(data + key_data, key_start + len(data), key_size, start, size, is_control)


def _spans(array: pa.Array) -> tuple[bytes, Array, Array]:
    """Return the buffer of an Arrow array of binary, and the position of each value in it; a size of -1 is null."""
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    sizes = np.diff(ends)
    if array.null_count:
        sizes[array.is_null().to_numpy(zero_copy_only=False)] = -1
    return b"" if data is None else data.to_pybytes(), ends[:-1], sizes


# Chunks to rows


def rows_of(items: Iterable[Chunk | Bad], piece: Piece, wanted: Wanted, form: RowFormat) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a piece, in batches of limited size. A fault is a row if the schema has `error`, or it raises."""
    for item in items:
        if isinstance(item, Bad):
            place = f"{piece.path}, position {item.position}" if item.position is not None else piece.path
            if form.fail_fast:
                raise BadDataError(f"{place}: {item.reason}")
            if "error" in form.schema.names:
                yield _error_row(item, piece, form)
            else:
                _log.warning("skipped: %s: %s", place, item.reason)
            continue
        rows = _choose(item, piece, wanted)
        types, versions = classify(item.values)
        if wanted.types is not None and len(rows):
            kinds = [kind for kind in np.unique(types[rows]).tolist() if type_name(kind) in wanted.types]
            rows = rows[np.isin(types[rows], kinds)]
        for at in range(0, len(rows), MAX_ROWS):
            yield _batch(item, rows[at : at + MAX_ROWS], types, versions, piece, form)


def _choose(chunk: Chunk, piece: Piece, wanted: Wanted) -> Array:
    """Return the records that belong to the piece and are wanted."""
    keep = np.ones(len(chunk.offset), dtype=bool)
    if piece.snapshot is None:
        keep &= chunk.offset >= max(piece.start_offset, wanted.start)
        for end in (piece.end_offset, wanted.end):
            if end is not None:
                keep &= chunk.offset < end
    if wanted.time_start_ms is not None or wanted.time_end_ms is not None:
        times = chunk.append_time[chunk.batch_of]
        if wanted.time_start_ms is not None:
            keep &= times >= wanted.time_start_ms
        if wanted.time_end_ms is not None:
            keep &= times < wanted.time_end_ms
    return np.flatnonzero(keep)


def _batch(chunk: Chunk, rows: Array, types: Array, versions: Array, piece: Piece, form: RowFormat) -> pa.RecordBatch:
    part = chunk._replace(offset=chunk.offset[rows], batch_of=chunk.batch_of[rows], values=chunk.values.take(rows))
    first = np.searchsorted(chunk.batch_of, np.arange(len(chunk.base_offset)))
    index = rows - first[part.batch_of]
    kinds, number_of = np.unique(types[rows], return_inverse=True)
    decoded = decode_columns(
        part.values,
        types[rows],
        versions[rows],
        form.schema.names,
        include_secrets=form.include_secrets,
    )
    names = pa.array([type_name(kind) for kind in kinds.tolist()], pa.string())
    arrays = []
    for column in form.schema:
        name = column.name
        if name == "record_type":
            array: Any = names.take(pa.array(number_of))
        elif name == "record_version":
            array = pa.array(versions[rows], pa.int32(), mask=versions[rows] < 0)
        elif name == "batch_index":
            array = pa.array(index, pa.int32())
        elif name == "payload":
            array = _payload(decoded.payload, column.type, form)
        elif name == "raw":
            array = raw(part.values, decoded.masked)
        elif name in decoded.keys:
            array = decoded.keys[name]
        else:
            array = _place(name, part, piece, column.type)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=form.schema)


def _place(name: str, part: Chunk, piece: Piece, kind: pa.DataType) -> pa.Array:
    """Return a column that locates a record."""
    count = len(part.offset)
    snapshot = piece.snapshot
    match name:
        case "position" if part.position is not None:
            return pa.array(part.position[part.batch_of], kind)
        case "offset" if snapshot is None:
            return pa.array(part.offset, kind)
        case "base_offset" if snapshot is None:
            return pa.array(part.base_offset[part.batch_of], kind)
        case "last_offset" if snapshot is None:
            return pa.array(part.last_offset[part.batch_of], kind)
        case "leader_epoch":
            return pa.array(part.epoch[part.batch_of], kind)
        case "append_time":
            return pa.array(part.append_time[part.batch_of] * 1000, pa.int64()).cast(kind)
        case "is_control":
            return pa.array(part.values.is_control, kind)
        case "committed" if snapshot is None:
            true = part.offset < piece.verdict.true_end
            false_start = piece.verdict.false_start
            known = true if false_start is None else true | (part.offset >= false_start)
            return pa.array(true, kind, mask=~known)
    return _constant(piece, name, count, kind)


def _constant(piece: Piece, name: str, count: int, kind: pa.DataType) -> pa.Array:
    constants = {
        "cluster_id": piece.cluster_id,
        "node_id": piece.node_id,
        "source_file": piece.path,
        "is_snapshot": piece.snapshot is not None,
        "snapshot_end_offset": piece.snapshot and piece.snapshot[0],
        "snapshot_epoch": piece.snapshot and piece.snapshot[1],
        "committed": True if piece.snapshot is not None else None,
    }
    value = constants.get(name)
    return pa.nulls(count, kind) if value is None else pa.repeat(pa.scalar(value, kind), count)


def _payload(texts: pa.Array, kind: pa.DataType, form: RowFormat) -> pa.Array:
    if not pa.types.is_struct(kind):
        return texts
    return pa.array([None if text is None else form.to_variant(text) for text in texts.to_pylist()], kind)


def _error_row(bad: Bad, piece: Piece, form: RowFormat) -> pa.RecordBatch:
    known = {"position": bad.position, "base_offset": None if piece.snapshot else bad.base_offset, "error": bad.reason}
    arrays = [
        pa.array([known[column.name]], column.type)
        if column.name in known
        else pa.nulls(1, column.type)
        if column.name == "committed"
        else _constant(piece, column.name, 1, column.type)
        for column in form.schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=form.schema)
