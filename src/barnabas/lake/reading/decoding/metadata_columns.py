"""Records of the metadata log as Arrow columns: written by compiled code where possible, otherwise by `metadata_records`.

Its one rule: both write the same rows. A process that has not loaded numba (see batch_arrays) uses only `metadata_records`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from barnabas.lake.reading import batch_arrays
from barnabas.lake.reading.batch_arrays import binary
from barnabas.lake.reading.decoding import metadata_records
from barnabas.lake.reading.decoding.metadata_records import KEY_COLUMNS, TYPES, Array, Decoded, Values, decode
from barnabas.metadata.masking import SECRET_TYPES
from barnabas.wire import message_class
from barnabas.wire.errors import UnsupportedVersionError

if TYPE_CHECKING:
    from barnabas.lake.reading.json_kernels import KernelPlan, Texts

_NUMBERS = frozenset({"partition", "broker_id"})
_FIELD = re.compile(r"UUID\[(\w+)\]\[1:-1\]|TEXT\[(\w+)\]|ACL_TYPES\.get\((\w+)\)|(\w+)")
"""Expressions of keys that are just a field."""
_FRAME = 3
"""Bytes of a value before its fields."""


def warm(size: int) -> None:
    """Compile the code that reads this many bytes, so that processes started afterwards find it in the cache."""
    batch_arrays.warm(size)
    if size > batch_arrays.PLAIN_BYTES:
        from barnabas.lake.reading import json_kernels  # noqa: F401


class Columns(NamedTuple):
    """Columns with a row for each record. `masked` has the values that replace those of the log."""

    payload: pa.Array
    keys: dict[str, pa.Array]
    masked: dict[int, bytes | None]


def decode_columns(
    values: Values, types: Array, versions: Array, columns: Collection[str], *, include_secrets: bool
) -> Columns:
    """Return the result of `decode`, as Arrow."""
    wanted = "payload" in columns or any(name in columns for name in KEY_COLUMNS)
    if "barnabas.lake.reading.kernels" not in sys.modules or not wanted or len(types) == 0:
        decoded = decode(values, types, versions, columns, include_secrets=include_secrets)
        payload = pa.array(decoded.payload, pa.string(), from_pandas=False)
        keys = {name: pa.array(column, _type(name), from_pandas=False) for name, column in decoded.keys.items()}
        return Columns(payload, keys, decoded.masked)
    texts = _texts(values, types, versions)
    rows = np.flatnonzero(texts.size < 0)
    others = decode(values.take(rows), types[rows], versions[rows], columns, include_secrets=include_secrets)
    return _merged(texts, rows, others)


def raw(values: Values, masked: dict[int, bytes | None]) -> pa.Array:
    """Return the values with secrets masked: masked ones are appended to the buffer after the others."""
    shown = [value or b"" for value in masked.values()]
    starts, sizes = values.value_start.copy(), values.value_size.astype(np.int32)
    end = len(values.data)
    for row, value in masked.items():
        starts[row], sizes[row] = end, -1 if value is None else len(value)
        end += len(value or b"")
    data = b"".join([values.data, *shown]) if shown else values.data
    if "barnabas.lake.reading.kernels" in sys.modules:
        return binary(np.frombuffer(data, dtype=np.uint8), starts, sizes)
    spans = zip(starts.tolist(), sizes.tolist(), strict=True)
    return pa.array([None if size < 0 else data[start : start + size] for start, size in spans], pa.binary())


def _type(name: str) -> pa.DataType:
    return pa.int32() if name in _NUMBERS else pa.string()


def _texts(values: Values, types: Array, versions: Array) -> Texts:
    from barnabas.lake.reading.json_kernels import write  # numba

    groups, group_of = np.unique(types * (1 << 20) + np.maximum(versions, 0), return_inverse=True)
    plans: list[KernelPlan] = []
    numbers = np.full(len(groups), -1, dtype=np.int32)
    for at, group in enumerate(groups.tolist()):
        plan = _plan_of(group >> 20, group & ((1 << 20) - 1))
        if plan is not None:
            numbers[at] = len(plans)
            plans.append(plan)
    starts = values.value_start.astype(np.int64)
    data = np.frombuffer(values.data, dtype=np.uint8)
    return write(data, starts + _FRAME, starts + values.value_size, numbers[group_of], plans, len(KEY_COLUMNS))


@cache
def _plan_of(kind: int, version: int) -> KernelPlan | None:
    """Return the plan of a type without secrets that compiled code can write; otherwise None."""
    from barnabas.lake.reading.json_kernels import plan

    name = TYPES.get(kind)
    if name is None or name in SECRET_TYPES:
        return None
    fields = [""] * len(KEY_COLUMNS)
    for column, expression in metadata_records.KEYS.get(name, {}).items():
        found = _FIELD.fullmatch(expression)
        if found is None:
            return None
        fields[KEY_COLUMNS.index(column)] = next(field for field in found.groups() if field)
    try:
        return plan(message_class(name), version, fields)
    except UnsupportedVersionError:
        return None


def _merged(texts: Texts, rows: Array, others: Decoded) -> Columns:
    """Append the rows of `metadata_records` to those of compiled code."""
    pieces: list[bytes] = []
    end = texts.end

    def add(column: list[str | None]) -> tuple[list[int], list[int]]:
        nonlocal end
        encoded = [None if text is None else text.encode() for text in column]
        sizes = [-1 if text is None else len(text) for text in encoded]
        pieces.extend(text for text in encoded if text)
        starts = (end + np.cumsum([0, *(max(size, 0) for size in sizes)])).tolist()
        end = starts.pop()
        return starts, sizes

    texts.start[rows], texts.size[rows] = add(others.payload.tolist())
    spans, numbers = {"payload": (texts.start, texts.size)}, {}
    for name, column in others.keys.items():
        at = KEY_COLUMNS.index(name)
        start, size = texts.key_start[at], texts.key_size[at]
        if name in _NUMBERS:
            start[rows] = [number or 0 for number in column]
            size[rows] = [-1 if number is None else 0 for number in column]
            numbers[name] = pa.array(start.astype(np.int32), mask=size < 0)
            continue
        if name == "resource_type":  # in an ACL entry it is a number
            for number in np.unique(start[size == 0]).tolist():
                places, sizes = add([metadata_records.ACL_TYPES.get(number)])
                which = (size == 0) & (start == number)
                start[which], size[which] = places[0], sizes[0]
        start[rows], size[rows] = add(column.tolist())
        spans[name] = start, size
    data = np.concatenate([texts.out[: texts.end], np.frombuffer(b"".join(pieces), dtype=np.uint8)])
    made = {name: binary(data, *each, pa.string()) for name, each in spans.items()}
    masked = {int(rows[row]): value for row, value in others.masked.items()}
    return Columns(made.pop("payload"), {**made, **numbers}, masked)
