"""Record batches turned into arrays: numbers as numpy arrays, keys and values as Arrow binary. Pure.

Its one rule: a batch counts as a whole or not at all. If its checksum is wrong, if it cannot be decompressed, or if its records
contradict its header, it yields no record, but a `Bad` with its position and the reason; reading continues after it. There is
no Python object per record: a batch is decompressed, and `kernels` finds the records of many batches at once. For few bytes,
loading numba would take longer than it saves: they are read by `batches.decode_records`, with the same result.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import cramjam
import numpy as np
import pyarrow as pa

from barnabas.batches import (
    HEADER_SIZE,
    BatchError,
    BatchHeader,
    Compression,
    Record,
    TruncatedBatchError,
    batch_crc,
    decode_payload,
    decode_records_of_payload,
    decode_whole_header,
)
from barnabas.batches.format import COMPRESSION_MASK, LENGTH_OVERHEAD, MAGIC, TIMESTAMP_TYPE_BIT

Array = np.ndarray[Any, Any]

CHUNK_BYTES = 1 << 20
"""Size of decompressed records that are processed together, unless one batch is larger: fits into a processor's cache."""
PLAIN_BYTES = 4 << 20
"""Up to this size, a process that has not loaded numba reads without it."""

HEADERS_TYPE = pa.list_(pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])))

_HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("batch_length", ">i4"),
        ("partition_leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("records_count", ">i4"),
    ]
)
_PLACES = np.arange(HEADER_SIZE)
_REASONS = (
    "",
    "the records end before their count is reached",
    "a record has a negative length",
    "the records do not fill the batch, or a record not its length",
)
_SHORT = _REASONS[1]
_UNPACK = {Compression.LZ4: cramjam.lz4.decompress_into, Compression.ZSTD: cramjam.zstd.decompress_into}
"""Functions that decompress a batch into a given buffer, which also limits its size."""


def warm(size: int) -> None:
    """Compile the code that reads this many bytes, so that processes started afterwards find it in the cache."""
    if size > PLAIN_BYTES:
        from barnabas.lake.reading import kernels  # noqa: F401


class Bad(NamedTuple):
    """A batch that cannot be read, or bytes that are not a batch."""

    position: int
    base_offset: int | None
    reason: str


class Batch(NamedTuple):
    """A batch, and its position in the file."""

    position: int
    header: BatchHeader


class Batches:
    """Batches as arrays, one for each field of their headers."""

    __slots__ = ("_headers", "positions")

    def __init__(self, headers: Array, positions: Array) -> None:
        self._headers = headers
        self.positions = positions

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, number: int) -> Batch:
        fields = cast(tuple[int, ...], self._headers[number].item())
        return Batch(int(self.positions[number]), BatchHeader._make(fields))

    def field(self, name: str) -> Array:
        """Return a field of BatchHeader, in the byte order of this machine."""
        values = self._headers[name]
        return values.astype(values.dtype.newbyteorder("="))

    def choose(self, which: Array, shift: int = 0) -> Batches:
        """Return some of the batches, with `shift` added to their positions."""
        return Batches(self._headers[which], self.positions[which] + shift)


class Records(ABC):
    """Records of some batches; `batch_of` is the index of each record's batch."""

    batches: Batches
    offset: Array
    timestamp: Array
    batch_of: Array

    def __len__(self) -> int:
        return len(self.offset)

    def of_batch(self, values: Sequence[Any] | Array | str, dtype: Any = None) -> Array:
        """Return, for each record, the value of its batch: from `values`, or from the header field of that name."""
        given = self.batches.field(values) if isinstance(values, str) else np.asarray(values, dtype=dtype)
        of_records = given[self.batch_of]
        return of_records if dtype is None else of_records.astype(dtype, copy=False)

    @property
    def size_in_bytes(self) -> int:
        """Total size of keys and values."""
        return int(self.sizes().sum())

    @abstractmethod
    def sizes(self) -> Array:
        """Return the size of key and value of each record, in bytes."""

    @abstractmethod
    def keys(self) -> pa.Array: ...

    @abstractmethod
    def values(self) -> pa.Array: ...

    @abstractmethod
    def headers(self) -> pa.Array:
        """Return the headers: null for records without any, as in Spark's own source. Invalid UTF-8 in keys is replaced."""

    @abstractmethod
    def choose(self, which: Array | slice) -> Records:
        """Return some of the records, given a mask or a range."""


class SpanRecords(Records):
    """Records as positions in a buffer; a size of -1 is null."""

    __slots__ = ("_data", "_spans", "batch_of", "batches", "offset", "timestamp")

    def __init__(
        self, batches: Batches, data: Array, offset: Array, timestamp: Array, batch_of: Array, spans: tuple[Array, ...]
    ) -> None:
        self.batches = batches
        self.offset = offset
        self.timestamp = timestamp
        self.batch_of = batch_of
        self._data = data
        self._spans = spans  # starts and sizes of keys, of values, starts and counts of headers

    def sizes(self) -> Array:
        return np.maximum(self._spans[1], 0).astype(np.int64) + np.maximum(self._spans[3], 0)

    def keys(self) -> pa.Array:
        return binary(self._data, *self._spans[0:2])

    def values(self) -> pa.Array:
        return binary(self._data, *self._spans[2:4])

    def headers(self) -> pa.Array:
        return _headers(self._data, *self._spans[4:6])

    def choose(self, which: Array | slice) -> Records:
        spans = tuple(span[which] for span in self._spans)
        columns = self.offset[which], self.timestamp[which], self.batch_of[which]
        return SpanRecords(self.batches, self._data, *columns, spans)


class PlainRecords(Records):
    """Records as decoded by `batches.decode_records`."""

    __slots__ = ("_records", "batch_of", "batches", "offset", "timestamp")

    def __init__(self, batches: Batches, records: Sequence[Record], batch_of: Array) -> None:
        self.batches = batches
        self._records = records
        self.batch_of = batch_of
        self.offset = np.fromiter((record.offset for record in records), np.int64, len(records))
        self.timestamp = np.fromiter((_int64(record.timestamp) for record in records), np.int64, len(records))

    def sizes(self) -> Array:
        sizes = (len(record.key or b"") + len(record.value or b"") for record in self._records)
        return np.fromiter(sizes, np.int64, len(self._records))

    def keys(self) -> pa.Array:
        return pa.array([record.key for record in self._records], pa.binary())

    def values(self) -> pa.Array:
        return pa.array([record.value for record in self._records], pa.binary())

    def headers(self) -> pa.Array:
        rows = [
            [(_mended(key.encode("utf-8", "surrogateescape")), value) for key, value in record.headers] or None
            for record in self._records
        ]
        return pa.array(rows, HEADERS_TYPE)

    def choose(self, which: Array | slice) -> Records:
        numbers = np.arange(len(self._records))[which]
        return PlainRecords(self.batches, [self._records[number] for number in numbers], self.batch_of[which])


class Walk(NamedTuple):
    """Consecutive batches in a buffer: the start of each, the end of the last, and the fault found there.

    A batch that is cut off by the end of the buffer ends the walk, and is not a fault.
    """

    positions: list[int]
    end: int
    fault: str | None


def walk(data: memoryview, position: int = 0) -> Walk:
    positions: list[int] = []
    size = len(data)
    while size - position >= HEADER_SIZE:
        length = int.from_bytes(data[position + 8 : position + 12], "big", signed=True)
        if data[position + 16] != MAGIC or length < HEADER_SIZE - LENGTH_OVERHEAD:
            break
        end = position + length + LENGTH_OVERHEAD
        if end > size:
            return Walk(positions, position, None)
        positions.append(position)
        position = end
    if position == size:
        return Walk(positions, position, None)
    try:
        decode_whole_header(data, position)
    except TruncatedBatchError:
        return Walk(positions, position, None)
    except BatchError as error:
        return Walk(positions, position, str(error).replace(f" at {position} ", " "))
    raise AssertionError("a complete batch does not end the walk")


def batches_at(data: memoryview, positions: Sequence[int]) -> Batches:
    """Return the headers of the batches at these positions."""
    places = np.asarray(positions, dtype=np.int64)
    found = np.frombuffer(data, dtype=np.uint8)[places[:, None] + _PLACES]
    return Batches(found.view(_HEADER)[:, 0], places)


def read_batches(
    data: memoryview,
    position: int = 0,
    *,
    start: int = 0,
    end: int | None = None,
    check_crcs: bool = True,
    plain: bool | None = None,
) -> Iterator[Records | Bad]:
    """Yield the records of the batches in `data` with offsets from `start` to before `end`, and a `Bad` for each fault.

    `position` is that of `data` in its file. A batch is yielded as a whole, also with offsets outside of the range. A batch
    that is cut off at the end is ignored: a growing log has a torn tail. `plain` decides whether to read without numba; by
    default the size decides.
    """
    walked = walk(data)
    if walked.positions:
        batches = batches_at(data, walked.positions)
        base_offset = batches.field("base_offset")
        wanted = base_offset + batches.field("last_offset_delta") >= start
        if end is not None:
            wanted &= base_offset < end
        chosen = batches if wanted.all() else batches.choose(wanted)
        yield from open_batches(data, position, chosen, check_crcs=check_crcs, plain=plain)
    if walked.fault is not None:
        yield Bad(position + walked.end, None, walked.fault)


class _Group:
    """Decompressed batches whose records are to be found: the position of each batch's payload in `source`."""

    __slots__ = ("ends", "numbers", "size", "source", "starts")

    def __init__(self, source: Array) -> None:
        self.source = source
        self.numbers: list[int] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.size = 0

    def add(self, number: int, start: int, end: int) -> None:
        self.numbers.append(number)
        self.starts.append(start)
        self.ends.append(end)
        self.size += end - start


def open_batches(
    data: memoryview, position: int, batches: Batches, *, check_crcs: bool = True, plain: bool | None = None
) -> Iterator[Records | Bad]:
    """Yield the records of some batches of `data`, which is at `position` of its file."""
    if plain is None:
        plain = "barnabas.lake.reading.kernels" not in sys.modules and len(data) <= PLAIN_BYTES
    find = _find_plainly if plain else _find
    bytes_of = np.frombuffer(data.toreadonly(), dtype=np.uint8)
    codecs = (batches.field("attributes") & COMPRESSION_MASK).tolist()
    is_packed = any(codecs)
    crcs = batches.field("crc").tolist()
    sizes = (batches.field("batch_length") + LENGTH_OVERHEAD).tolist()
    counts = batches.field("records_count").tolist()
    group = _Group(_room() if is_packed else bytes_of)
    for number, at in enumerate(batches.positions.tolist()):
        end = at + sizes[number]
        try:
            if check_crcs and batch_crc(data, sizes[number], at) != crcs[number]:
                raise BatchError(f"wrong checksum, not {crcs[number]}")
            if not is_packed:
                span = at + HEADER_SIZE, end
            elif (unpacked := _unpack_into(group, codecs[number], data[at + HEADER_SIZE : end])) is not None:
                span = unpacked
            else:
                payload = decode_payload(data, at, batches[number].header)
                yield from find(batches, group, position)
                group = _Group(np.frombuffer(payload, dtype=np.uint8))
                span = 0, len(payload)
            if not 0 <= counts[number] * 7 <= span[1] - span[0]:
                raise BatchError(_SHORT)
            group.add(number, *span)
        except BatchError as error:
            yield Bad(position + at, batches[number].header.base_offset, str(error))
        if group.size >= CHUNK_BYTES or (is_packed and len(group.source) != 2 * CHUNK_BYTES):
            yield from find(batches, group, position)
            group = _Group(_room() if is_packed else bytes_of)
    yield from find(batches, group, position)


def _room() -> Array:
    return np.empty(2 * CHUNK_BYTES, dtype=np.uint8)


def _unpack_into(group: _Group, codec: int, packed: memoryview) -> tuple[int, int] | None:
    """Decompress a batch into the buffer of a group and return its range; None if it must be decompressed separately."""
    start = group.ends[-1] if group.ends else 0
    room = memoryview(cast(Any, group.source))[start:]
    size = len(packed)
    if codec == Compression.NONE or not packed:
        if size > len(room):
            return None
        room[:size] = packed
    elif codec in _UNPACK:
        try:
            size = _UNPACK[Compression(codec)](packed, room)
        except cramjam.DecompressionError:
            return None  # too large for the buffer, or damaged
    else:
        return None
    return start, start + size


def _find(batches: Batches, group: _Group, position: int) -> Iterator[Records | Bad]:
    if not group.numbers:
        return
    from barnabas.lake.reading import kernels  # loading numba and compiled code takes a second

    chosen = batches.choose(np.array(group.numbers), position)
    source = group.source
    source.flags.writeable = False
    counts = chosen.field("records_count").astype(np.int64)
    total = int(counts.sum())
    offset, timestamp, key_start, value_start, headers_start = (np.empty(total, dtype=np.int64) for _ in range(5))
    key_size, value_size, headers_count, batch_of = (np.empty(total, dtype=np.int32) for _ in range(4))
    spans: tuple[Array, ...] = (key_start, key_size, value_start, value_size, headers_start, headers_count)
    errors = np.zeros(len(chosen), dtype=np.int32)
    found = kernels.find_records(
        source,
        np.array(group.starts, dtype=np.int64),
        np.array(group.ends, dtype=np.int64),
        counts,
        chosen.field("base_offset"),
        chosen.field("base_timestamp"),
        chosen.field("max_timestamp"),
        chosen.field("attributes") & TIMESTAMP_TYPE_BIT != 0,
        offset,
        timestamp,
        *spans,
        batch_of,
        errors,
    )
    for at in np.flatnonzero(errors).tolist():
        yield Bad(chosen[at].position, chosen[at].header.base_offset, _REASONS[int(errors[at])])
    if found < total:
        offset, timestamp, batch_of = offset[:found], timestamp[:found], batch_of[:found]
        spans = tuple(span[:found] for span in spans)
    if found:
        yield SpanRecords(chosen, source, offset, timestamp, batch_of, spans)


def _find_plainly(batches: Batches, group: _Group, position: int) -> Iterator[Records | Bad]:
    if not group.numbers:
        return
    chosen = batches.choose(np.array(group.numbers), position)
    found: list[Record] = []
    counts = np.zeros(len(chosen), dtype=np.int64)
    for number, (start, end) in enumerate(zip(group.starts, group.ends, strict=True)):
        batch = chosen[number]
        try:
            records = decode_records_of_payload(group.source[start:end].tobytes(), batch.header)
        except BatchError as error:
            yield Bad(batch.position, batch.header.base_offset, str(error))
            continue
        found += records
        counts[number] = len(records)
    if found:
        yield PlainRecords(chosen, found, np.repeat(np.arange(len(chosen), dtype=np.int32), counts))


def binary(data: Array, starts: Array, sizes: Array, kind: pa.DataType | None = None) -> pa.Array:
    """Return spans as Arrow binary with 32-bit offsets, as Spark expects."""
    from barnabas.lake.reading import kernels

    count = len(starts)
    is_null = sizes < 0
    nulls = int(np.count_nonzero(is_null))
    if nulls == count:
        return pa.nulls(count, kind or pa.binary())
    total = int(sizes.sum(dtype=np.int64)) + nulls
    if total > np.iinfo(np.int32).max:
        raise BatchError(f"{total} bytes exceed the limit for one column of a batch")
    out = np.empty(total, dtype=np.uint8)
    offsets = np.empty(count + 1, dtype=np.int32)
    kernels.gather(data, starts, sizes, offsets, out)
    valid = pa.py_buffer(np.packbits(~is_null, bitorder="little")) if nulls else None
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.Array.from_buffers(kind or pa.binary(), count, buffers, null_count=nulls)


def _headers(data: Array, starts: Array, counts: Array) -> pa.Array:
    from barnabas.lake.reading import kernels

    total = int(counts.sum(dtype=np.int64))
    if not total:
        return pa.nulls(len(starts), HEADERS_TYPE)
    key_start, value_start = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    key_size, value_size = np.empty(total, dtype=np.int32), np.empty(total, dtype=np.int32)
    kernels.find_headers(data, starts, counts, key_start, key_size, value_start, value_size)
    raw_keys = binary(data, key_start, key_size)
    try:
        keys = raw_keys.cast(pa.string())
    except pa.ArrowInvalid:
        keys = pa.array([_mended(key) for key in raw_keys.to_pylist()], pa.string())
    values = binary(data, value_start, value_size)
    offsets = np.zeros(len(starts) + 1, dtype=np.int32)
    np.cumsum(counts, out=offsets[1:])
    structs = pa.StructArray.from_arrays([keys, values], fields=list(HEADERS_TYPE.value_type))
    valid = np.packbits(counts > 0, bitorder="little")
    buffers = [pa.py_buffer(valid), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(HEADERS_TYPE, len(starts), buffers, children=[structs])


def _mended(key: bytes) -> str:
    return key.decode("utf-8", "replace")


def _int64(value: int) -> int:
    """Wrap a number around as 64-bit arithmetic does."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
