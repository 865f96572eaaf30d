"""Disks that are full or slow: stands between `storage.files` and the operating system while there is such a disk.

A full disk refuses what needs room: new files and directories, and writes beyond the end of a file. A slow one takes longer
to flush and to read. As on a real one, writes go to the page cache and are not slow by themselves.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from barnabas.broker.faults.rules import RuleError
from barnabas.storage import files

MAX_SLOW_MS: Final = 60_000


class Condition(NamedTuple):
    """What is wrong with the disk below a directory."""

    is_full: bool = False
    slow_ms: int = 0


class FaultyDisks:
    """Has the calls of the module `os` that `storage.files` uses. There is one in a process: `disks`."""

    def __init__(self) -> None:
        self._real: Any = os
        self._conditions: dict[str, Condition] = {}
        self._paths: dict[int, str] = {}  # of open descriptors

    # --- conditions

    def set(self, directories: Iterable[Path | str], *, is_full: bool = False, slow_ms: int = 0) -> None:
        """Make the disk below these directories full or slow, or heal it. Raises RuleError."""
        if not isinstance(slow_ms, int) or isinstance(slow_ms, bool) or not 0 <= slow_ms <= MAX_SLOW_MS:
            raise RuleError(f"a slow disk takes between 0 and {MAX_SLOW_MS} whole milliseconds longer, not {slow_ms!r}")
        with files.open_files.lock:
            for each in directories:
                path = str(Path(each).absolute())
                if is_full or slow_ms:
                    self._conditions[path] = Condition(is_full, slow_ms)
                else:
                    self._conditions.pop(path, None)
            if self._conditions and files.system is not self:
                self._real, files.system = files.system, self
                self._paths = {file.descriptor: file.name for file in files.open_files.files}
            elif not self._conditions and files.system is self:
                files.system = self._real
                self._paths = {}

    def condition(self, directory: Path | str) -> Condition:
        return self._conditions.get(str(Path(directory).absolute()), _FINE)

    def _of(self, path: Any) -> Condition:
        """Return the condition of the disk that has this path."""
        if isinstance(path, int):
            path = self._paths.get(path, "")
        name = str(Path(path).absolute()) if path else ""
        return next(
            (each for top, each in self._conditions.items() if name == top or name.startswith(top + os.sep)), _FINE
        )

    def _need_room(self, path: Any) -> None:
        if self._of(path).is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _take_long(self, path: Any) -> None:
        if (slow_ms := self._of(path).slow_ms) and _is_in_thread():
            threading.Event().wait(slow_ms / 1000)

    # --- calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def open(self, path: Any, flags: int, *mode: int) -> int:
        if flags & os.O_CREAT and not os.path.exists(path):  # noqa: PTH110
            self._need_room(path)
        descriptor: int = self._real.open(path, flags, *mode)
        self._paths[descriptor] = os.fspath(path)
        return descriptor

    def close(self, descriptor: int) -> None:
        self._paths.pop(descriptor, None)
        self._real.close(descriptor)

    def mkdir(self, path: Any, *more: Any) -> None:
        self._need_room(path)
        self._real.mkdir(path, *more)

    def pwritev(self, descriptor: int, buffers: Any, position: int, *more: Any) -> int:
        if position + sum(map(len, buffers)) > self._real.fstat(descriptor).st_size:
            self._need_room(descriptor)
        return int(self._real.pwritev(descriptor, buffers, position, *more))

    def pwrite(self, descriptor: int, data: Any, position: int) -> int:
        if position + len(data) > self._real.fstat(descriptor).st_size:
            self._need_room(descriptor)
        return int(self._real.pwrite(descriptor, data, position))

    def fsync(self, descriptor: int) -> None:
        self._take_long(descriptor)
        self._real.fsync(descriptor)

    def pread(self, descriptor: int, size: int, position: int) -> bytes:
        self._take_long(descriptor)
        data: bytes = self._real.pread(descriptor, size, position)
        return data

    def preadv(self, descriptor: int, buffers: Any, position: int, *more: Any) -> int:
        """A slow disk has nothing in the page cache, so that what may wait for it does so in a thread."""
        if self._of(descriptor).slow_ms:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return int(self._real.preadv(descriptor, buffers, position, *more))


def _is_in_thread() -> bool:
    """Return False in the thread of an event loop, which reads only what is in the page cache."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return False


_FINE: Final = Condition()

disks: Final = FaultyDisks()
