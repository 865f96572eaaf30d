"""Files and directories, unbuffered: what `write` returned from has reached the system, what `fsync` returned from the disk.

Its one rule: descriptors of logs and indexes are opened, lent and closed here alone. A descriptor is opened on first use and
may be let go at any time; it is closed only when nobody is using it, so a number never comes to mean another file while a
reader in another thread still has it. Whole small files are replaced, never changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from errno import EOPNOTSUPP
from pathlib import Path
from threading import Lock

from barnabas.batches.format import Buffer
from barnabas.storage.errors import StorageError, disk_errors

FILE_MODE = 0o644
_CLOSED = -1
_MOST_BUFFERS = 1024  # in one call of the system
_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)  # which not every system has


class File:
    """One file, read and written by position."""

    __slots__ = ("_descriptor", "_flags", "_letting_go", "_lock", "_users", "path")

    def __init__(self, path: Path, *, writable: bool = True) -> None:
        self.path = path
        self._flags = (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC
        self._lock = Lock()
        self._descriptor = _CLOSED
        self._users = 0
        self._letting_go = False

    @classmethod
    def create(cls, path: Path) -> File:
        """A new and empty file; what had its name is gone."""
        with disk_errors("creating", path):
            path.unlink(missing_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE))
        return cls(path)

    def read(self, size: int, position: int) -> bytes:
        """The bytes from `position` on: fewer than asked for only at the end of the file."""
        descriptor = self._borrow()
        try:
            data = os.pread(descriptor, size, position)
            while 0 < len(data) < size:
                more = os.pread(descriptor, size - len(data), position + len(data))
                if not more:
                    break
                data += more
            return data
        except OSError as error:
            raise StorageError(f"reading {self.path} failed: {error.strerror}") from error
        finally:
            self._give_back()

    def read_cached(self, size: int, position: int) -> bytes | bytearray | None:
        """The bytes from `position` on, if the system has them all in memory; where that cannot be asked, as `read`."""
        if _NOWAIT is None:
            return self.read(size, position)
        descriptor = self._borrow()
        try:
            data = bytearray(size)
            return data if os.preadv(descriptor, (data,), position, _NOWAIT) == size else None
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno == EOPNOTSUPP:  # a file system that does not know
                return self.read(size, position)
            raise StorageError(f"reading {self.path} failed: {error.strerror}") from error
        finally:
            self._give_back()

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        """All of these bytes, one buffer after the other, from `position` on."""
        descriptor = self._borrow()
        try:
            for first in range(0, len(buffers), _MOST_BUFFERS):
                some = buffers[first : first + _MOST_BUFFERS]
                size = sum(map(len, some))
                written = os.pwritev(descriptor, some, position)
                if written < size:
                    _write_all(descriptor, memoryview(b"".join(some))[written:], position + written)
                position += size
        except OSError as error:
            raise StorageError(f"writing {self.path} failed: {error.strerror}") from error
        finally:
            self._give_back()

    def size(self) -> int:
        with disk_errors("reading", self.path):
            return self.path.stat().st_size

    def modified_ms(self) -> int:
        """When it was last written to."""
        with disk_errors("reading", self.path):
            return self.path.stat().st_mtime_ns // 1_000_000

    def set_modified_ms(self, modified_ms: int) -> None:
        with disk_errors("writing", self.path):
            os.utime(self.path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def truncate(self, size: int) -> None:
        self._call("truncating", os.ftruncate, size)

    def fsync(self) -> None:
        self._call("flushing", os.fsync)

    def rename(self, path: Path) -> None:
        """Another name, under which the descriptor goes on; a file that is gone has nothing to rename."""
        with disk_errors("renaming", self.path), self._lock:
            with suppress(FileNotFoundError):
                self.path.rename(path)
            self.path = path

    def unlink(self) -> None:
        self.let_go()
        with disk_errors("deleting", self.path):
            self.path.unlink(missing_ok=True)

    def let_go(self) -> None:
        """Closes the descriptor as soon as it is not in use; the next use opens it again."""
        with self._lock:
            self._letting_go = self._users > 0
            if not self._letting_go:
                self._close()

    def _call(self, doing: str, function: Callable[..., None], *arguments: int) -> None:
        descriptor = self._borrow()
        try:
            function(descriptor, *arguments)
        except OSError as error:
            raise StorageError(f"{doing} {self.path} failed: {error.strerror}") from error
        finally:
            self._give_back()

    def _borrow(self) -> int:
        with self._lock:
            if self._descriptor == _CLOSED:
                try:
                    self._descriptor = os.open(self.path, self._flags)
                except OSError as error:
                    raise StorageError(f"opening {self.path} failed: {error.strerror}") from error
            self._users += 1
            return self._descriptor

    def _give_back(self) -> None:
        with self._lock:
            self._users -= 1
            if self._letting_go and self._users == 0:
                self._letting_go = False
                self._close()

    def _close(self) -> None:
        if self._descriptor != _CLOSED:
            os.close(self._descriptor)
            self._descriptor = _CLOSED


def write_atomically(path: Path, data: bytes, mode: int = FILE_MODE) -> None:
    """Replaces a file: after a kill it has the old or the new content, after the return the new one for good."""
    temporary = path.with_name(path.name + ".tmp")
    with disk_errors("writing", path):
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
            try:
                _write_all(descriptor, memoryview(data), 0)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise
        fsync_directory(path.parent)


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file that may be found torn after a kill, and may be lost until `fsync_file`."""
    with disk_errors("writing", path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
        try:
            _write_all(descriptor, memoryview(data), 0)
        finally:
            os.close(descriptor)


def fsync_file(path: Path) -> None:
    """Makes a file durable; one that is gone has nothing to lose."""
    with disk_errors("flushing", path), suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_whole(path: Path) -> bytes | None:
    """The content of a small file, or None if there is none."""
    with disk_errors("reading", path):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None


def fsync_directory(path: Path) -> None:
    """Makes the names in a directory durable: creations, renames, deletions."""
    with disk_errors("flushing", path):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def file_names(directory: Path) -> list[str]:
    """The files of a directory, in order."""
    with disk_errors("reading", directory), os.scandir(directory) as entries:
        return sorted(entry.name for entry in entries if entry.is_file())


def create_directory(path: Path) -> None:
    """A directory that is there after a crash too; its parents have to exist."""
    with disk_errors("creating", path):
        if not path.is_dir():
            path.mkdir()
            fsync_directory(path.parent)


def _write_all(descriptor: int, data: memoryview, position: int) -> None:
    while data:
        written = os.pwrite(descriptor, data, position)
        data = data[written:]
        position += written
