"""Unbuffered files and directories: `write` passes data to the operating system, `fsync` to the disk.

Its one rule: only this module opens, lends and closes the descriptors of logs and indexes. A descriptor is opened on
first use and may be released at any time. It is closed only when no call is using it, so its number cannot come to mean
another file while a reader in another thread still has it. The number of open files is limited: the least recently used
ones are closed. Small files are replaced as a whole, never changed.

Whatever a node does with its log dirs goes through this module, and from here through `system`.
"""

from __future__ import annotations

import os
import resource
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from errno import EMFILE, ENFILE, EOPNOTSUPP
from itertools import count
from pathlib import Path
from stat import S_ISDIR
from threading import Lock
from typing import Any, NamedTuple, Self

from barnabas.batches.format import Buffer
from barnabas.storage.errors import FileGoneError, StorageError, disk_errors

system: Any = os  # has the calls on files; a simulation puts a disk of its own here

FILE_MODE = 0o644
MAX_OPEN_FILES = 2000
MIN_OPEN_FILES = 16
_CLOSED = -1
_MAX_BUFFERS = 1024  # in one system call
_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)  # not available on every system
_READ_BYTES = 64 * 1024
_READ = os.O_RDONLY | os.O_CLOEXEC
_READ_WRITE = os.O_RDWR | os.O_CLOEXEC
_CREATE = os.O_RDWR | os.O_CREAT
_REPLACE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


class OpenFiles:
    """The open files in order of last use, and the lock that protects them."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lock = Lock()
        self.files: OrderedDict[File, None] = OrderedDict()

    def open(self, file: File, flags: int) -> int:
        """Open a file and return its descriptor, closing another one if needed. Call with the lock held."""
        if len(self.files) >= self.limit:
            self.close_unused(1)
        try:
            descriptor: int = system.open(file.name, flags)
        except OSError as error:
            if not self.makes_room(error):
                raise
            descriptor = system.open(file.name, flags)
        self.files[file] = None
        return descriptor

    def makes_room(self, error: OSError) -> bool:
        """Close half of the unused files if the error is "too many open files". Call with the lock held.

        Return whether the failed call is worth a retry. The rest of the process used up the descriptors and needs some
        too.
        """
        return error.errno in (EMFILE, ENFILE) and self.close_unused(1 + len(self.files) // 2) > 0

    def close_unused(self, count: int) -> int:
        """Close the `count` least recently used files that are idle, and return how many were closed.

        Call with the lock held.
        """
        chosen = []
        for file in self.files:
            if not file.users:
                chosen.append(file)
                if len(chosen) == count:
                    break
        for file in chosen:
            file.close()
        return len(chosen)


def default_limit() -> int:
    """Return a quarter of the process's limit, within bounds: most descriptors are for connections."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_OPEN_FILES if soft == resource.RLIM_INFINITY else max(MIN_OPEN_FILES, min(MAX_OPEN_FILES, soft // 4))


open_files = OpenFiles(default_limit())
_moments = count()
flushed_directories: dict[Path, int] = {}  # directories, and the start of the last completed flush of their entries


def _open(path: Path | str, flags: int, mode: int = FILE_MODE) -> int:
    """Return a descriptor for temporary use."""
    try:
        descriptor: int = system.open(path, flags | os.O_CLOEXEC, mode)
    except OSError as error:
        with open_files.lock:
            if not open_files.makes_room(error):
                raise
        descriptor = system.open(path, flags | os.O_CLOEXEC, mode)
    return descriptor


class File:
    """A file that is read and written by position.

    `name` is its path; `users` counts calls that use the descriptor now.
    """

    __slots__ = ("_descriptor", "_flags", "_is_deleted", "_letting_go", "name", "users")

    def __init__(self, path: Path | str, *, writable: bool = True) -> None:
        self.name = os.fspath(path)
        self.users = 0
        self._flags = _READ_WRITE if writable else _READ
        self._descriptor = _CLOSED
        self._letting_go = False
        self._is_deleted = False

    @classmethod
    def create(cls, path: Path | str) -> Self:
        """Create an empty file, replacing any file of that name."""
        file = cls(path)
        with disk_errors("creating", path):
            try:
                system.close(_open(file.name, _CREATE | os.O_EXCL))
            except FileExistsError:
                system.unlink(file.name)
                system.close(_open(file.name, _CREATE | os.O_EXCL))
        return file

    @property
    def path(self) -> Path:
        return Path(self.name)

    @property
    def descriptor(self) -> int:
        """The descriptor, negative if the file is not open."""
        return self._descriptor

    def exists(self) -> bool:
        return self.find_size() is not None

    def make(self) -> None:
        """Create the file if it does not exist."""
        with disk_errors("creating", self.name):
            system.close(_open(self.name, _CREATE))

    def read(self, size: int, position: int) -> bytes:
        """Return the bytes from `position` on. Fewer than `size` only at the end of the file."""
        descriptor = self._borrow()
        try:
            data: bytes = system.pread(descriptor, size, position)
            while 0 < len(data) < size:
                more = system.pread(descriptor, size - len(data), position + len(data))
                if not more:
                    break
                data += more
            return data
        except OSError as error:
            raise StorageError(f"reading {self.name} failed: {error.strerror}") from error
        finally:
            self._give_back()

    def read_cached(self, size: int, position: int) -> bytes | bytearray | None:
        """Like `read`, but return None if the bytes are not all in the page cache.

        Where that is unsupported, same as `read`.
        """
        if _NOWAIT is None:
            return self.read(size, position)
        descriptor = self._borrow()
        try:
            data = bytearray(size)
            return data if system.preadv(descriptor, (data,), position, _NOWAIT) == size else None
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno == EOPNOTSUPP:  # not supported by this file system
                return self.read(size, position)
            raise StorageError(f"reading {self.name} failed: {error.strerror}") from error
        finally:
            self._give_back()

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write these buffers one after the other from `position` on."""
        descriptor = self._borrow()
        try:
            for first in range(0, len(buffers), _MAX_BUFFERS):
                some = buffers if len(buffers) <= _MAX_BUFFERS else buffers[first : first + _MAX_BUFFERS]
                size = sum(map(len, some))
                written = system.pwritev(descriptor, some, position)
                if written < size:
                    _write_all(descriptor, memoryview(b"".join(some))[written:], position + written)
                position += size
        except OSError as error:
            raise StorageError(f"writing {self.name} failed: {error.strerror}") from error
        finally:
            self._give_back()

    def find_size(self) -> int | None:
        """Return the size, or None if the file does not exist."""
        try:
            return int(system.stat(self.name).st_size)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"reading {self.name} failed: {error.strerror}") from error

    def size(self) -> int:
        size = self.find_size()
        if size is None:
            raise StorageError(f"reading {self.name} failed: the file does not exist")
        return size

    def modified_ms(self) -> int:
        """Return the time of the last write in milliseconds."""
        with disk_errors("reading", self.name):
            return int(system.stat(self.name).st_mtime_ns // 1_000_000)

    def set_modified_ms(self, modified_ms: int) -> None:
        with disk_errors("writing", self.name):
            system.utime(self.name, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def truncate(self, size: int) -> None:
        self._call("truncating", system.ftruncate, size)

    def fsync(self) -> None:
        self._call("flushing", system.fsync)

    def rename(self, path: Path) -> None:
        """Rename the file and keep its descriptor. Do nothing on disk if it no longer exists."""
        with disk_errors("renaming", self.name), open_files.lock:
            with suppress(FileNotFoundError):
                system.rename(self.name, path)
            self.name = os.fspath(path)

    def unlink(self) -> None:
        self._is_deleted = True
        self.let_go()
        delete_file(self.name)

    def let_go(self) -> None:
        """Close the descriptor once it is idle. The next use opens it again."""
        with open_files.lock:
            self._letting_go = self.users > 0
            if not self._letting_go:
                self.close()

    def close(self) -> None:
        """Close the descriptor at once. The caller holds the lock of the open files, and no call uses this one."""
        descriptor, self._descriptor = self._descriptor, _CLOSED
        if descriptor != _CLOSED:
            del open_files.files[self]
            system.close(descriptor)

    def _call(self, doing: str, function: Callable[..., None], *arguments: int) -> None:
        descriptor = self._borrow()
        try:
            function(descriptor, *arguments)
        except OSError as error:
            raise StorageError(f"{doing} {self.name} failed: {error.strerror}") from error
        finally:
            self._give_back()

    def _borrow(self) -> int:
        with open_files.lock:
            if self._descriptor == _CLOSED:
                try:
                    self._descriptor = open_files.open(self, self._flags)
                except OSError as error:
                    kind = FileGoneError if self._is_deleted else StorageError
                    raise kind(f"opening {self.name} failed: {error.strerror}") from error
            else:
                open_files.files.move_to_end(self)
            self.users += 1
            return self._descriptor

    def _give_back(self) -> None:
        with open_files.lock:
            self.users -= 1
            if self._letting_go and self.users == 0:
                self._letting_go = False
                self.close()


class ReadOnlyFile(File):
    """A file that must not be changed: writes and truncations are visible only through this object."""

    __slots__ = ("_content", "_limit")

    def __init__(self, path: Path | str, *, writable: bool = False) -> None:
        super().__init__(path, writable=False)
        self._content: bytearray | None = None  # set after the first write
        self._limit: int | None = None  # set after a truncation

    @classmethod
    def create(cls, path: Path | str) -> Self:
        file = cls(path)
        file._content = bytearray()
        return file

    def find_size(self) -> int | None:
        if self._content is not None:
            return len(self._content)
        return super().find_size() if self._limit is None else self._limit

    def make(self) -> None:
        if not self.exists():
            self._content = bytearray()

    def read(self, size: int, position: int) -> bytes:
        if self._content is not None:
            return bytes(self._content[position : position + size])
        if self._limit is not None:
            size = max(0, min(size, self._limit - position))
        return super().read(size, position)

    def read_cached(self, size: int, position: int) -> bytes | bytearray | None:
        return super().read_cached(size, position) if self._content is None else self.read(size, position)

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        if self._content is None:
            self._content = bytearray(self.read(self.size(), 0)) if self.exists() else bytearray()
        for buffer in buffers:
            self._content[position : position + len(buffer)] = buffer
            position += len(buffer)

    def modified_ms(self) -> int:
        return super().modified_ms() if super().find_size() is not None else 0

    def set_modified_ms(self, modified_ms: int) -> None:
        pass

    def truncate(self, size: int) -> None:
        if self._content is not None:
            del self._content[size:]
        else:
            self._limit = size

    def fsync(self) -> None:
        pass

    def rename(self, path: Path) -> None:
        pass

    def unlink(self) -> None:
        self.let_go()


def rename_directory(directory: Path, to: Path, files: Iterable[File]) -> None:
    """Rename a directory and update the paths of its files before any of them can be opened."""
    with disk_errors("renaming", directory), open_files.lock:
        system.rename(directory, to)
        for file in files:
            file.name = os.fspath(to / file.path.name)
    fsync_directory(to.parent)


def write_atomically(path: Path | str, data: bytes, mode: int = FILE_MODE) -> None:
    """Replace a file durably. A crash leaves either the old or the new content."""
    path = Path(path)
    temporary = path.with_name(path.name + ".tmp")
    with disk_errors("writing", path):
        try:
            descriptor = _open(temporary, _REPLACE, mode)
            try:
                _write_all(descriptor, memoryview(data), 0)
                system.fsync(descriptor)
            finally:
                system.close(descriptor)
            system.replace(temporary, path)
        except OSError:
            with suppress(OSError):
                system.unlink(temporary)
            raise
        fsync_directory(path.parent)


def write_whole(path: Path | str, data: bytes) -> None:
    """Write a file without durability: a crash may leave it partly written or missing until `fsync_file`."""
    with disk_errors("writing", path):
        descriptor = _open(path, _REPLACE)
        try:
            _write_all(descriptor, memoryview(data), 0)
        finally:
            system.close(descriptor)


def fsync_file(path: Path) -> None:
    """Make a file durable. Do nothing if it does not exist."""
    with disk_errors("flushing", path), suppress(FileNotFoundError):
        descriptor = _open(path, os.O_RDONLY)
        try:
            system.fsync(descriptor)
        finally:
            system.close(descriptor)


def read_whole(path: Path) -> bytes | None:
    """Return the content of a small file, or None if it does not exist."""
    with disk_errors("reading", path):
        try:
            descriptor = _open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            content = b""
            while more := system.read(descriptor, _READ_BYTES):
                content += more
            return content
        finally:
            system.close(descriptor)


def fsync_directory(path: Path) -> None:
    """Make the entries of a directory durable: creations, renames, deletions."""
    with disk_errors("flushing", path):
        descriptor = _open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            system.fsync(descriptor)
        finally:
            system.close(descriptor)


def fsync_name(directory: Path, made: int) -> None:
    """Make the name of a directory durable, unless a flush of its parent since `made` has already done so."""
    parent = directory.parent
    if flushed_directories.get(parent, -1) < made:
        moment = next_moment()
        fsync_directory(parent)
        flushed_directories[parent] = moment


def next_moment() -> int:
    """Return the next value of a counter that orders events within this process."""
    return next(_moments)


def file_names(directory: Path) -> list[str]:
    """Return the sorted names of the files in a directory."""
    with disk_errors("reading", directory), system.scandir(directory) as entries:
        return sorted(entry.name for entry in entries if entry.is_file())


def create_directory(path: Path, *, durable: bool = True) -> bool:
    """Create a directory, durably by default, and return False if it already exists. Its parent must exist."""
    with disk_errors("creating", path):
        try:
            system.mkdir(path)
        except FileExistsError:
            if not is_directory(path):
                raise
            return False
    if durable:
        fsync_directory(path.parent)
    return True


def create_directories(path: Path) -> None:
    """Create a directory and those above it that do not exist, without durability."""
    if not is_directory(path):
        create_directories(path.parent)
        create_directory(path, durable=False)


def create_empty(path: Path, mode: int) -> None:
    """Create an empty file with these permissions, or empty the one that exists."""
    with disk_errors("creating", path):
        system.close(_open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, mode))


def change_mode(path: Path, mode: int) -> None:
    """Change the permissions of a file."""
    with disk_errors("changing", path):
        system.chmod(path, mode)


def exists(path: Path) -> bool:
    with disk_errors("reading", path):
        return _stat(path) is not None


def is_directory(path: Path) -> bool:
    with disk_errors("reading", path):
        found = _stat(path)
        return found is not None and S_ISDIR(found.st_mode)


def rename(path: Path, to: Path) -> None:
    """Rename a file or a directory that nobody has open. A file of the new name is replaced."""
    with disk_errors("renaming", path):
        system.replace(path, to)


def delete_file(path: Path | str) -> None:
    """Delete a file if it exists."""
    with disk_errors("deleting", path), suppress(FileNotFoundError):
        system.unlink(path)


def delete_directory(path: Path) -> None:
    """Delete a directory with all that is in it, if it exists."""
    with disk_errors("deleting", path):
        try:
            with system.scandir(path) as entries:
                found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        except FileNotFoundError:
            return
        for name, is_folder in found:
            (delete_directory if is_folder else delete_file)(path / name)
        with suppress(FileNotFoundError):
            system.rmdir(path)


class Entry(NamedTuple):
    """A file or directory in a directory."""

    name: str
    is_directory: bool


def entries_of(directory: Path) -> list[Entry]:
    """Return the entries of a directory, sorted by name."""
    with disk_errors("reading", directory), system.scandir(directory) as entries:
        return sorted(Entry(entry.name, entry.is_dir()) for entry in entries)


class Space(NamedTuple):
    """The size of a file system and the bytes that can still be written."""

    total_bytes: int
    usable_bytes: int


def space_of(directory: Path | str) -> Space:
    with disk_errors("reading", directory):
        found = system.statvfs(directory)
    return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


def lock_file(path: Path) -> int | None:
    """Lock a file against other processes, and return its descriptor, or None if another process has the lock."""
    with disk_errors("opening", path):
        descriptor: int = _open(path, _CREATE)
    try:
        system.lockf(descriptor, os.F_TLOCK, 0)
    except OSError:
        system.close(descriptor)
        return None
    return descriptor


def unlock_file(descriptor: int) -> None:
    system.close(descriptor)


def _stat(path: Path) -> Any:
    try:
        return system.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _write_all(descriptor: int, data: memoryview, position: int) -> None:
    while data:
        written = system.pwrite(descriptor, data, position)
        data = data[written:]
        position += written
