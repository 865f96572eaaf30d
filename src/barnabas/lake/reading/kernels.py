"""Loops over the bytes of record batches, compiled by numba: no Python object per record.

Their one rule: they trust no length. Each is checked against the end of what contains it, so a malformed batch yields an error
code and is never read past its end. They write arrays of numbers: the positions of keys and values, not their bytes.

They are compiled when this module is imported. That takes seconds the first time; then they come from a cache in
NUMBA_CACHE_DIR, beside this file, or in the user's cache directory. The first process compiles for all that share the cache,
and the others wait. So a process that plans work for many imports it first (see `batch_arrays.warm`). Small inputs are read
without it.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np


def _cache_dir() -> Path:
    """Return the directory for compiled code: the first of the candidates that is writable."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    beside = Path(__file__).parent / "__pycache__"
    own = Path(tempfile.gettempdir()) / f"barnabas-kernels-{os.getuid()}"
    for directory in (beside, Path(home) / "barnabas" / "kernels", own):
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(directory, os.W_OK) and directory.stat().st_uid == os.getuid():
            return directory
    return Path(tempfile.mkdtemp(prefix="barnabas-kernels-"))


CACHE: Final = _cache_dir()
if CACHE.name != "__pycache__":  # numba finds that one by itself
    os.environ.setdefault("NUMBA_CACHE_DIR", str(CACHE))

import numba  # noqa: E402
from numba import boolean, int32, int64, types, uint8, void  # noqa: E402
from numba.core import cgutils  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

GOOD: Final = 0
SHORT: Final = 1
"""The records end before the count of the batch is reached."""
NEGATIVE: Final = 2
"""A length is negative where that is not allowed."""
UNFILLED: Final = 3
"""The records do not fill the batch, or a record does not fill its length."""

Array = np.ndarray[Any, Any]
DATA: Final = types.Array(uint8, 1, "C", readonly=True)
OUT: Final = uint8[::1]
LONGS: Final = int64[::1]
INTS: Final = int32[::1]
_BOOLEANS: Final = boolean[::1]
_SPANS: Final = [LONGS, INTS] * 3


@contextmanager
def alone(last: str) -> Iterator[None]:
    """Let one process at a time compile, so that the next finds the result. Nobody waits if `last` is compiled already."""
    if any(CACHE.rglob(f"{last}-*.nbi")):
        yield
        return
    try:
        descriptor = os.open(CACHE / "barnabas-kernels.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def compiled(signature: Any) -> Callable[[Any], Any]:
    return numba.njit(signature, cache=True, nogil=True, boundscheck=False)  # type: ignore[no-any-return]


_intrinsic: Callable[[Any], Any] = intrinsic


@_intrinsic
def copy_bytes(context: Any, out: Any, out_at: Any, data: Any, data_at: Any, size: Any) -> Any:
    """memcpy; assigning a slice would cost more than ten times as much."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, out_at, data, data_at, size = arguments
        to = context.make_array(signature.args[0])(context, builder, out).data
        source = context.make_array(signature.args[2])(context, builder, data).data
        cgutils.raw_memcpy(builder, builder.gep(to, [out_at]), builder.gep(source, [data_at]), size, 1)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return void(out, int64, data, int64, int64), generate


@_intrinsic
def byte_at(context: Any, data: Any, at: Any) -> Any:
    """Return a byte at an index that was checked; negative indexes are not supported."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.zext(builder.load(builder.gep(source, [arguments[1]])), context.get_value_type(int64))

    return int64(data, int64), generate


with alone("kernels.gather"):

    @numba.njit(cache=True, nogil=True, boundscheck=False, inline="never")
    def _long_varint(data: Array, position: int, end: int, most: int) -> tuple[int, int]:
        """Return a zigzag number of up to `most` bytes, and its end; the end is -1 if it is not before `end`."""
        value = np.uint64(0)
        shift = np.uint64(0)
        for _ in range(most):
            if position >= end:
                return 0, -1
            byte = np.uint64(byte_at(data, position))
            position += 1
            value |= (byte & np.uint64(0x7F)) << shift
            if byte < np.uint64(0x80):
                if most == 5:
                    value &= np.uint64(0xFFFFFFFF)
                return int(np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1))), position
            shift += np.uint64(7)
        return 0, -1

    @numba.njit(cache=True, nogil=True, boundscheck=False)
    def _varint(data: Array, position: int, end: int, most: int) -> tuple[int, int]:
        if position < end:
            byte = byte_at(data, position)
            if byte < 0x80:
                return (byte >> 1) ^ -(byte & 1), position + 1
        return _long_varint(data, position, end, most)

    @compiled(int64(DATA, *[LONGS] * 6, _BOOLEANS, LONGS, LONGS, LONGS, INTS, LONGS, INTS, LONGS, INTS, INTS, INTS))
    def find_records(
        data: Array,
        starts: Array,
        ends: Array,
        counts: Array,
        base_offsets: Array,
        base_timestamps: Array,
        max_timestamps: Array,
        is_append_time: Array,
        offsets: Array,
        timestamps: Array,
        keys: Array,
        key_sizes: Array,
        values: Array,
        value_sizes: Array,
        headers: Array,
        header_counts: Array,
        batches: Array,
        errors: Array,
    ) -> int:
        """Find the records of batches, in order, and return their number. A bad batch yields no record, but an error code.

        A size of -1 is null. With append time, all records of a batch have its maximum timestamp.
        """
        found = 0
        for batch in range(len(starts)):
            position, end, first = starts[batch], ends[batch], found
            base_offset, base_timestamp = base_offsets[batch], base_timestamps[batch]
            error = GOOD
            for _ in range(counts[batch]):
                size, position = _varint(data, position, end, 5)
                if position < 0 or size < 0 or position + size > end:
                    error = SHORT if position < 0 or size >= 0 else NEGATIVE
                    break
                record_end = position + size
                error = UNFILLED
                position += 1  # attributes
                delta, position = _varint(data, position, record_end, 10)
                if position < 0:
                    break
                timestamps[found] = max_timestamps[batch] if is_append_time[batch] else base_timestamp + delta
                delta, position = _varint(data, position, record_end, 5)
                if position < 0 or delta < 0:
                    break
                offsets[found] = base_offset + delta
                size, position = _varint(data, position, record_end, 5)
                if position < 0 or size < -1 or position + size > record_end:
                    break
                keys[found], key_sizes[found] = position, size
                position += max(size, 0)
                size, position = _varint(data, position, record_end, 5)
                if position < 0 or size < -1 or position + size > record_end:
                    break
                values[found], value_sizes[found] = position, size
                position += max(size, 0)
                size, position = _varint(data, position, record_end, 5)
                if position < 0 or size < 0:
                    break
                headers[found], header_counts[found] = position, size
                for _ in range(size):
                    length, position = _varint(data, position, record_end, 5)
                    if position < 0 or length < 0 or position + length > record_end:
                        position = -1
                        break
                    position += length
                    length, position = _varint(data, position, record_end, 5)
                    if position < 0 or length < -1 or position + length > record_end:
                        position = -1
                        break
                    position += max(length, 0)
                if position != record_end:
                    break
                error = GOOD
                batches[found] = batch
                found += 1
            if error == GOOD and position != end:
                error = UNFILLED
            errors[batch] = error
            if error != GOOD:
                found = first
        return found

    @compiled(void(DATA, LONGS, INTS, LONGS, INTS, LONGS, INTS))
    def find_headers(
        data: Array,
        headers: Array,
        header_counts: Array,
        keys: Array,
        key_sizes: Array,
        values: Array,
        value_sizes: Array,
    ) -> None:
        """Find keys and values of the headers of good records, in order."""
        found = 0
        end = len(data)
        for record in range(len(headers)):
            position = headers[record]
            for _ in range(header_counts[record]):
                size, position = _varint(data, position, end, 5)
                keys[found], key_sizes[found] = position, size
                position += size
                size, position = _varint(data, position, end, 5)
                values[found], value_sizes[found] = position, size
                position += max(size, 0)
                found += 1

    @compiled(void(DATA, LONGS, INTS, INTS, OUT))
    def gather(data: Array, starts: Array, sizes: Array, offsets: Array, out: Array) -> None:
        """Copy spans one after the other; `offsets` has the start of each, and at last the end of all."""
        position = 0
        for at in range(len(starts)):
            offsets[at] = position
            size = int(sizes[at])
            if size > 0:
                copy_bytes(out, position, data, starts[at], size)
                position += size
        offsets[len(starts)] = position
