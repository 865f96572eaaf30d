"""The JSON of many records at once, compiled by numba: the simple cases of `decoding.compiled`, without an object per record.

Its one rule: cases that are not simple are left to that module. A record that does not match its schema, a text that needs an
escape, an unknown tag: such a row is only marked. A type with structs, doubles or bytes has no plan at all.

A plan has a row for each field, in the order of the text: its type, and the text before it. The kernel first finds the fields
of a record, since tagged fields are last in the bytes and anywhere in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numba
import numpy as np
from numba import int32, int64, uint8, void
from numba.extending import intrinsic

from barnabas.lake.reading.kernels import DATA, INTS, LONGS, OUT, Array, alone, byte_at, compiled, copy_bytes
from barnabas.wire.message import Message
from barnabas.wire.schema import FIXED_FORMATS, FIXED_SIZES, FieldSchema, is_tagged

NUMBER, BOOLEAN, UUID, STRING, NUMBERS, UUIDS = range(6)
_KIND, _SIZE, _UNSIGNED, _NULLABLE, _TAG, _LITERAL, _LITERAL_SIZE, _KEY = range(8)
MAX_FIELDS: Final = 32
ABSENT: Final = -2
NULL: Final = -1
_NO_DEFAULT: Final = -(1 << 62)
_NULL_DEFAULT: Final = _NO_DEFAULT + 1
_EMPTY_DEFAULT: Final = _NO_DEFAULT + 2
_BASE64: Final = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", dtype=np.uint8)
_WORDS: Final = b"nulltruefalse"


class KernelPlan(NamedTuple):
    """How to write the records of one (type, version): a row of numbers for each field, in the order of the text."""

    fields: Array
    defaults: Array
    literals: bytes


def plan(cls: type[Message], version: int, keys: Sequence[str]) -> KernelPlan | None:
    """Return the plan of a type, or None if it is not flat. Results also have position or number of the fields `keys`."""
    schema = cls.schema()
    fields = [field for field in schema.root.fields if version in field.versions]
    if version not in schema.flexible or len(fields) > MAX_FIELDS:
        return None
    rows, defaults, literals = [], [], b""
    for field in fields:
        tagged = is_tagged(field, version)
        kind = _kind(field, tagged)
        if kind is None or field.flexible is not None:
            return None
        literal = f',"{field.json_name}":'.encode()
        fmt = FIXED_FORMATS.get(field.type, "B")
        key = keys.index(field.name) if field.name in keys else -1
        tag = field.tag if tagged and field.tag is not None else -1
        row = (kind, FIXED_SIZES[fmt], fmt in "HI?", version in field.nullable, tag, len(literals), len(literal), key)
        rows.append(row)
        literals += literal
        defaults.append(_default(field) if tagged else _NO_DEFAULT)
    return KernelPlan(np.array(rows, dtype=np.int32).reshape(-1, 8), np.array(defaults, dtype=np.int64), literals)


def _kind(field: FieldSchema, tagged: bool) -> int | None:
    if field.is_struct or field.type in ("bytes", "records", "float64"):
        return None
    if field.is_array:
        return {"string": None, "bool": None, "uuid": UUIDS}.get(field.type, NUMBERS)
    if field.type in ("uuid", "string", "bool"):
        return None if tagged else {"uuid": UUID, "string": STRING, "bool": BOOLEAN}[field.type]
    return NUMBER


def _default(field: FieldSchema) -> int:
    if field.default is None:
        return _NULL_DEFAULT
    return _EMPTY_DEFAULT if field.is_array else int(field.default)


_inlined: Callable[[Any], Any] = numba.njit(cache=True, nogil=True, boundscheck=False, inline="always")
"""Inlined, since a call costs more than most of these functions do."""
_intrinsic: Callable[[Any], Any] = intrinsic


@_intrinsic
def _put(context: Any, out: Any, at: Any, value: Any) -> Any:
    """Write a byte at an index that is in range."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte = builder.trunc(arguments[2], context.get_value_type(uint8))
        builder.store(byte, builder.gep(to, [arguments[1]]))
        return context.get_dummy_value()

    return void(out, int64, int64), generate


with alone("json_kernels.write_texts"):

    @_inlined
    def _number(data: Array, at: int, size: int, unsigned: int) -> int:
        value: int = byte_at(data, at)
        if unsigned == 0 and value >= 128:
            value -= 256
        for place in range(1, size):
            value = (value << 8) | byte_at(data, at + place)
        return value

    @_inlined
    def _write_number(out: Array, at: int, value: int) -> int:
        rest = np.uint64(value)
        if value < 0:
            _put(out, at, 45)
            at += 1
            rest = np.uint64(0) - rest
        if rest < np.uint64(10):
            _put(out, at, np.int64(np.uint64(48) + rest))
            return at + 1
        digits = 1
        limit = np.uint64(10)
        while digits < 19 and rest >= limit:
            digits += 1
            limit *= np.uint64(10)
        for place in range(at + digits - 1, at - 1, -1):
            quotient = rest // np.uint64(10)
            _put(out, place, np.int64(np.uint64(48) + (rest - quotient * np.uint64(10))))
            rest = quotient
        return at + digits

    @_inlined
    def _write_uuid(out: Array, at: int, data: Array, source: int) -> int:
        for _ in range(5):
            bits = (byte_at(data, source) << 16) | (byte_at(data, source + 1) << 8) | byte_at(data, source + 2)
            _put(out, at, np.int64(_BASE64[bits >> 18]))
            _put(out, at + 1, np.int64(_BASE64[(bits >> 12) & 63]))
            _put(out, at + 2, np.int64(_BASE64[(bits >> 6) & 63]))
            _put(out, at + 3, np.int64(_BASE64[bits & 63]))
            source += 3
            at += 4
        bits = byte_at(data, source) << 4
        _put(out, at, np.int64(_BASE64[bits >> 6]))
        _put(out, at + 1, np.int64(_BASE64[bits & 63]))
        return at + 2

    @_inlined
    def _unsigned_varint(data: Array, at: int, end: int) -> tuple[int, int]:
        if at < end:
            value = byte_at(data, at)
            if value < 128:
                return value, at + 1
        value = 0
        for shift in range(0, 28, 7):  # longer numbers are not simple
            if at >= end:
                return 0, -1
            part = byte_at(data, at)
            at += 1
            value |= (part & 127) << shift
            if part < 128:
                return value, at
        return 0, -1

    @_inlined
    def _find_field(
        data: Array, at: int, end: int, fields: Array, field: int, places: Array, sizes: Array, slot: int
    ) -> Any:
        """Return the end of the field; -1 if it is not simple."""
        kind, size = fields[field, _KIND], np.int64(fields[field, _SIZE])
        if kind <= UUID:  # of a fixed size
            places[slot], sizes[slot] = at, 0
            return at + size if at + size <= end else -1
        count, at = _unsigned_varint(data, at, end)
        if at < 0:
            return -1
        places[slot], sizes[slot] = at, count - 1
        if count == 0:
            return at if fields[field, _NULLABLE] else -1
        stop = at + (count - 1) * size
        return stop if stop <= end else -1

    @_inlined
    def _find_fields(
        data: Array, at: int, end: int, fields: Array, first: int, stop: int, places: Array, sizes: Array
    ) -> bool:
        """Return whether the record is simple, and fill in the positions of its fields."""
        for field in range(first, stop):
            sizes[field - first] = ABSENT
            if fields[field, _TAG] < 0:
                at = _find_field(data, at, end, fields, field, places, sizes, field - first)
                if at < 0:
                    return False
        tags, at = _unsigned_varint(data, at, end)
        if at < 0:
            return False
        for _ in range(tags):
            tag, at = _unsigned_varint(data, at, end)
            size, at = _unsigned_varint(data, at, end) if at >= 0 else (0, -1)
            if at < 0 or at + size > end:
                return False
            field = first
            while field < stop and fields[field, _TAG] != tag:
                field += 1
            if field == stop or sizes[field - first] != ABSENT:
                return False
            if _find_field(data, at, at + size, fields, field, places, sizes, field - first) != at + size:
                return False
            at += size
        return at == end

    @_inlined
    def _is_default(data: Array, fields: Array, defaults: Array, field: int, place: int, size: int) -> Any:
        if fields[field, _TAG] < 0:
            return False
        if fields[field, _KIND] == NUMBER:
            return _number(data, place, fields[field, _SIZE], fields[field, _UNSIGNED]) == defaults[field]
        return (size == NULL and defaults[field] == _NULL_DEFAULT) or (size == 0 and defaults[field] == _EMPTY_DEFAULT)

    @_inlined
    def _write_string(out: Array, at: int, data: Array, place: int, size: int) -> int:
        _put(out, at, 34)
        at += 1
        for index in range(place, place + size):
            letter = byte_at(data, index)
            if letter < 32 or letter > 126 or letter in (34, 92):
                return -1
            _put(out, at, letter)
            at += 1
        _put(out, at, 34)
        return at + 1

    @_inlined
    def _write_array(out: Array, at: int, data: Array, place: int, count: int, fields: Array, field: int) -> int:
        _put(out, at, 91)
        at += 1
        for index in range(count):
            if index:
                _put(out, at, 44)
                at += 1
            if fields[field, _KIND] == UUIDS:
                _put(out, at, 34)
                at = _write_uuid(out, at + 1, data, place + index * 16)
                _put(out, at, 34)
                at += 1
            else:
                size = np.int64(fields[field, _SIZE])
                at = _write_number(out, at, _number(data, place + index * size, size, fields[field, _UNSIGNED]))
        _put(out, at, 93)
        return at + 1

    @compiled(
        int64(
            *(DATA, LONGS, LONGS, INTS, INTS, int32[:, ::1], LONGS, DATA, int64, int64),
            *(OUT, LONGS, INTS, int64[:, ::1], int32[:, ::1], LONGS, LONGS),
        )
    )
    def write_texts(
        data: Array,
        starts: Array,
        ends: Array,
        plan_of: Array,
        plan_starts: Array,
        fields: Array,
        defaults: Array,
        literals: Array,
        row: int,
        at: int,
        out: Array,
        text_start: Array,
        text_size: Array,
        key_start: Array,
        key_size: Array,
        places: Array,
        sizes: Array,
    ) -> int:
        """Write the texts of rows from `row` on to `out` from `at` on. Return the first row without room, or their number.

        A text of size -1 is not simple. If a key is a number, it is stored instead of a start.
        """
        while row < len(starts):
            text_size[row] = -1
            plan = plan_of[row]
            if plan < 0:
                row += 1
                continue
            first, stop = plan_starts[plan], plan_starts[plan + 1]
            if at + 5 * (ends[row] - starts[row]) + 64 * (stop - first) + 64 > len(out):
                return row
            if not _find_fields(data, starts[row], ends[row], fields, first, stop, places, sizes):
                row += 1
                continue
            text_start[row] = at
            position = at
            _put(out, position, 123)
            position += 1
            for field in range(first, stop):
                place, size, kind = places[field - first], sizes[field - first], fields[field, _KIND]
                if size == ABSENT or _is_default(data, fields, defaults, field, place, size):
                    continue
                skipped = 1 if position == at + 1 else 0
                literal_size = int(fields[field, _LITERAL_SIZE]) - skipped
                copy_bytes(out, position, literals, np.int64(fields[field, _LITERAL]) + skipped, literal_size)
                position += literal_size
                key, begin, value = fields[field, _KEY], position, np.int64(0)
                if size == NULL:
                    copy_bytes(out, position, literals, np.int64(0), 4)
                    position += 4
                elif kind == NUMBER:
                    value = _number(data, place, fields[field, _SIZE], fields[field, _UNSIGNED])
                    position = _write_number(out, position, value)
                elif kind == BOOLEAN:
                    word = np.int64(4) if byte_at(data, place) else np.int64(8)
                    copy_bytes(out, position, literals, word, np.int64(4) if word == 4 else 5)
                    position += 4 if word == 4 else 5
                elif kind == UUID:
                    _put(out, position, 34)
                    position = _write_uuid(out, position + 1, data, place)
                    _put(out, position, 34)
                    position += 1
                elif kind == STRING:
                    position = _write_string(out, position, data, place, size)
                else:
                    position = _write_array(out, position, data, place, size, fields, field)
                if position < 0:
                    break
                if key >= 0 and size != NULL:
                    is_number = kind == NUMBER
                    key_start[key, row] = value if is_number else begin + 1
                    key_size[key, row] = 0 if is_number else position - begin - 2
            if position >= 0:
                _put(out, position, 125)
                text_size[row] = position + 1 - at
                at = position + 1
            row += 1
        return row


class Texts(NamedTuple):
    """`out` has the texts; a size of -1 marks a row that is not simple. If a key is a number, it is in place of its start."""

    out: Array
    end: int
    start: Array
    size: Array
    key_start: Array
    key_size: Array


def write(data: Array, starts: Array, ends: Array, plan_of: Array, plans: Sequence[KernelPlan], keys: int) -> Texts:
    """Write the JSON of rows. `plan_of` is the number of each row's plan, or -1. A missing key has the size -1."""
    count = len(starts)
    literals, moved, at = _WORDS, [], len(_WORDS)
    for each in plans:
        fields = each.fields.copy()
        fields[:, _LITERAL] += at
        moved.append(fields)
        literals += each.literals
        at += len(each.literals)
    plan_starts = np.cumsum([0, *(len(each.fields) for each in plans)], dtype=np.int32)
    fields = np.concatenate(moved) if moved else np.empty((0, 8), dtype=np.int32)
    defaults = np.concatenate([each.defaults for each in plans]) if plans else np.empty(0, dtype=np.int64)
    start, size = np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int32)
    key_start, key_size = np.zeros((keys, count), dtype=np.int64), np.full((keys, count), -1, dtype=np.int32)
    scratch = (np.empty(MAX_FIELDS, dtype=np.int64), np.empty(MAX_FIELDS, dtype=np.int64))
    out = np.empty(4096 + 4 * int((ends - starts).sum()) + 64 * count, dtype=np.uint8)
    row = end = 0
    while True:
        arrays = (data, starts, ends, plan_of, plan_starts, fields, defaults, np.frombuffer(literals, dtype=np.uint8))
        row = write_texts(*arrays, row, end, out, start, size, key_start, key_size, *scratch)
        good = np.flatnonzero(size[:row] >= 0)
        end = int(start[good[-1]] + size[good[-1]]) if len(good) else 0
        if row == count:
            return Texts(out, end, start, size, key_start, key_size)
        out = np.concatenate([out, np.empty(len(out), dtype=np.uint8)])
