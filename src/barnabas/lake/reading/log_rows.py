"""Records of a log as rows of `kafka_log`: Arrow batches with only the columns of the schema.

Its one rule: a fault is a row too, if the schema has the column `error`: with its position and the reason, and null in all
other columns. Otherwise it is logged and skipped. With FAILFAST it raises LogReadError.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.batches import Compression, TimestampType
from barnabas.batches.format import COMPRESSION_MASK, CONTROL_BIT, MAX_INT32, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from barnabas.lake.reading.batch_arrays import Array, Bad, Records
from barnabas.lake.reading.log_planning import EVERYTHING, Bounds, PieceStart, Share
from barnabas.lake.reading.log_reading import Read, Removed, read_share

_log = logging.getLogger(__name__)

MAX_ROWS = 1 << 14
"""Rows of one Arrow batch: few enough for a processor's cache."""
MAX_BYTES = 16 << 20
ERROR = "error"

_MAX_TIMESTAMP_MS = np.iinfo(np.int64).max // 1000
_COMPRESSIONS = [codec.name.lower() for codec in Compression]


class LogReadError(RuntimeError):
    """Data that cannot be read, in mode FAILFAST."""


def read_rows(
    shares: Iterable[Share],
    schema: pa.Schema,
    *,
    isolation: str | None = None,
    fail_fast: bool = False,
    bounds: Bounds = EVERYTHING,
    plain: bool | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some shares, without records whose timestamps are outside of `bounds`."""
    for share in shares:
        for read in read_share(share, isolation=isolation, plain=plain):
            if isinstance(read.item, Records):
                yield from _batches_of(read.item, share.place, read.segment, schema, bounds)
            else:
                yield from _report(read, share.place, schema, fail_fast)


def _report(read: Read, place: PieceStart, schema: pa.Schema, fail_fast: bool) -> Iterator[pa.RecordBatch]:
    error, is_data_bad = describe(read, place)
    if fail_fast and is_data_bad:
        raise LogReadError(error)
    if ERROR in schema.names:
        yield error_row(read, place, schema, error)
    else:
        _log.warning("%s", error)


def describe(read: Read, place: PieceStart) -> tuple[str, bool]:
    """Describe a fault, and return whether it is in the data: deletion after planning is not."""
    match read.item:
        case Bad(position, base_offset, reason):
            batch = f", batch with offset {base_offset}" if base_offset is not None else ""
            return f"{read.segment} at position {position}{batch}: {reason}", True
        case Removed(start, end, reason):
            return f"removed after planning: offsets {start} to {end - 1} of {place} ({end - start}): {reason}", False
    raise TypeError(read.item)


def error_row(read: Read, place: PieceStart, schema: pa.Schema, error: str) -> pa.RecordBatch:
    """Return one row with the position of a fault."""
    known: dict[str, Any] = {**place._asdict(), "segment": read.segment, ERROR: error}
    match read.item:
        case Bad(position, base_offset, _):
            known |= {"position": position, "offset": base_offset}
        case Removed(start, _, _):
            known["offset"] = start
    arrays = [pa.array([known.get(field.name)], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _batches_of(
    records: Records, place: PieceStart, segment: str, schema: pa.Schema, bounds: Bounds
) -> Iterator[pa.RecordBatch]:
    if bounds.start_timestamp is not None or bounds.end_timestamp is not None:
        records = records.choose(_in_time(records.timestamp, bounds))
    for part in _parts(records):
        arrays = [_COLUMNS[field.name](part, place, segment, field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _in_time(timestamp: Array, bounds: Bounds) -> Array:
    inside = np.ones(len(timestamp), dtype=np.bool_)
    if bounds.start_timestamp is not None:
        inside &= timestamp >= bounds.start_timestamp
    if bounds.end_timestamp is not None:
        inside &= timestamp < bounds.end_timestamp
    return inside


def _parts(records: Records) -> Iterator[Records]:
    """Split records, so that neither rows nor bytes are too many."""
    rows = min(MAX_ROWS, max(1, len(records) * MAX_BYTES // max(records.size_in_bytes, 1)))
    if len(records) <= rows:
        if len(records):
            yield records
        return
    for start in range(0, len(records), rows):
        yield records.choose(slice(start, start + rows))


# A column of records


def _timestamps(records: Records) -> Array:
    return np.clip(records.timestamp, -_MAX_TIMESTAMP_MS, _MAX_TIMESTAMP_MS) * 1000


def _sequences(records: Records) -> Array:
    base = records.of_batch("base_sequence", np.int64)
    delta = records.offset - records.of_batch("base_offset")
    return np.where(base < 0, base, (base + delta) & MAX_INT32)


def _has_bit(bit: int) -> Callable[[Records], Array]:
    return lambda records: (records.of_batch("attributes") & bit) != 0


def _compressions(records: Records, kind: pa.DataType) -> pa.Array:
    codecs = records.batches.field("attributes") & COMPRESSION_MASK
    names = pa.array([_COMPRESSIONS[codec] for codec in codecs.tolist()], kind)
    return names.take(pa.array(records.batch_of))


def _numbers(make: Callable[[Records], Array]) -> Callable[[Records, PieceStart, str, pa.DataType], pa.Array]:
    def column(records: Records, place: PieceStart, segment: str, kind: pa.DataType) -> pa.Array:
        values = make(records)
        if pa.types.is_timestamp(kind):
            return pa.array(values, pa.int64()).view(kind)
        return pa.array(values).cast(kind)

    return column


def _field(name: str) -> Callable[[Records, PieceStart, str, pa.DataType], pa.Array]:
    return _numbers(lambda records: records.of_batch(name))


def _place(name: str) -> Callable[[Records, PieceStart, str, pa.DataType], pa.Array]:
    def column(records: Records, place: PieceStart, segment: str, kind: pa.DataType) -> pa.Array:
        return repeat(getattr(place, name), len(records), kind)

    return column


def repeat(value: Any, count: int, kind: pa.DataType) -> pa.Array:
    """Return a column with the same value in all rows."""
    return pa.nulls(count, kind) if value is None else pa.repeat(pa.scalar(value, kind), count)


_COLUMNS: dict[str, Callable[[Records, PieceStart, str, pa.DataType], pa.Array]] = {
    "key": lambda records, place, segment, kind: records.keys(),
    "value": lambda records, place, segment, kind: records.values(),
    "topic": _place("topic"),
    "partition": _place("partition"),
    "offset": _numbers(lambda records: records.offset),
    "timestamp": _numbers(_timestamps),
    "timestampType": _numbers(
        lambda records: np.where(
            records.of_batch("attributes") & TIMESTAMP_TYPE_BIT,
            TimestampType.LOG_APPEND_TIME,
            TimestampType.CREATE_TIME,
        )
    ),
    "headers": lambda records, place, segment, kind: records.headers().cast(kind),
    "topic_id": _place("topic_id"),
    "leader_epoch": _field("partition_leader_epoch"),
    "producer_id": _field("producer_id"),
    "producer_epoch": _field("producer_epoch"),
    "sequence": _numbers(_sequences),
    "is_transactional": _numbers(_has_bit(TRANSACTIONAL_BIT)),
    "is_control": _numbers(_has_bit(CONTROL_BIT)),
    "compression": lambda records, place, segment, kind: _compressions(records, kind),
    "segment": lambda records, place, segment, kind: repeat(segment, len(records), kind),
    "position": _numbers(lambda records: records.batches.positions[records.batch_of]),
    "size": _numbers(lambda records: records.sizes()),
    "cluster_id": _place("cluster_id"),
    "node_id": _place("node_id"),
    ERROR: lambda records, place, segment, kind: pa.nulls(len(records), kind),
}
