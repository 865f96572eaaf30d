"""Formatting of a long file's rows by several processes, with the output in order.

Its one rule: every process iterates over the same chunks and formats every n-th of them, so that only text passes between
processes. The other processes are forks of this one, and share what was decided before, such as column widths. Do not call
this where threads or an event loop run: a fork does not copy them.
"""

from __future__ import annotations

import marshal
import os
import struct
from collections.abc import Callable, Iterator
from typing import IO, NoReturn, TypeVar

Chunk = TypeVar("Chunk")

_SIZE = struct.Struct(">q")
_MAX_PROCESSES = 4


def processes() -> int:
    """Return the number of processes that can run at once."""
    if not hasattr(os, "fork") or not hasattr(os, "sched_getaffinity"):
        return 1
    return min(len(os.sched_getaffinity(0)), _MAX_PROCESSES)


Made = tuple[str, int] | None
"""The text of a chunk, and its number of rows."""


def in_order(
    chunks: Iterator[Chunk],
    make: Callable[[Chunk], Made],
    count: int,
) -> Iterator[tuple[Chunk, Made]]:
    """Yield every chunk with the result of `make`. If that is None, the caller has to format the chunk itself."""
    helpers: list[tuple[int, IO[bytes]]] = []
    try:
        helpers.extend(_begin(chunks, make, number, count) for number in range(1, count))
        for index, chunk in enumerate(chunks):
            owner = index % count
            if owner == 0:
                yield chunk, make(chunk)
            else:
                yield chunk, _receive(helpers[owner - 1][1])
    finally:
        for _, pipe in helpers:
            pipe.close()  # ends a process that still writes
        for pid, _ in helpers:
            os.waitpid(pid, 0)


def _begin(chunks: Iterator[Chunk], make: Callable[[Chunk], Made], number: int, count: int) -> tuple[int, IO[bytes]]:
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        _help(chunks, make, number, count, writing)
    os.close(writing)
    return pid, os.fdopen(reading, "rb")


def _help(chunks: Iterator[Chunk], make: Callable[[Chunk], Made], number: int, count: int, writing: int) -> NoReturn:
    try:
        with os.fdopen(writing, "wb") as pipe:
            for index, chunk in enumerate(chunks):
                if index % count == number:
                    data = marshal.dumps(make(chunk))
                    pipe.write(_SIZE.pack(len(data)))
                    pipe.write(data)
                    pipe.flush()
    except BaseException:  # the first process sees the end of the pipe, and formats the rest itself
        os._exit(1)
    os._exit(0)


def _receive(pipe: IO[bytes]) -> Made:
    head = pipe.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    data = pipe.read(_SIZE.unpack(head)[0])
    found: Made = marshal.loads(data)
    return found
