"""Disks in memory, with the calls of the module `os`: what was not flushed may be lost or torn when the power fails.

Its one rule: only what `fsync` was called for is safe. A write that was not flushed may survive in whole, in its first
sectors, or in any of its sectors, because a system writes them back in any order. The entries of a directory need a flush of
their own, and survive in the order in which they were made. The end of a process loses nothing. Each machine has a disk below
`/<machine>`; a plan can make it full, slow, or let it fail.
"""

from __future__ import annotations

import errno
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

SECTOR = 512
FIRST_DESCRIPTOR = 1 << 20
BLOCK = 4096
BLOCKS = 1 << 28

Path = os.PathLike[str] | str


def _error(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)


class Inode:
    """A file. `data` is what the system shows, `durable` what is on the disk, `pending` what was done in between."""

    def __init__(self, now_ns: int) -> None:
        self.data = bytearray()
        self.durable = bytearray()
        self.pending: list[tuple[int, bytes | None]] = []  # position and bytes, or a size and None
        self.modified_ns = now_ns
        self.mode = 0o644

    def write(self, data: bytes, position: int) -> None:
        _apply(self.data, (position, data))
        self.pending.append((position, data))

    def truncate(self, size: int) -> None:
        _apply(self.data, (size, None))
        self.pending.append((size, None))

    def flush(self) -> None:
        for change in self.pending:
            _apply(self.durable, change)
        self.pending.clear()

    def lose_power(self, random: Random) -> None:
        kept = random.randint(0, len(self.pending))
        if random.random() < 0.3:
            kept = 0
        for change in self.pending[:kept]:
            _apply(self.durable, change)
        rest = self.pending[kept:]
        in_order = random.random() < 0.5 or any(data is None for _, data in rest)
        for position, data in rest[:1] if in_order else rest:
            if data is not None:
                self._tear(position, data, random, in_order=in_order)
        self.pending.clear()
        self.data = bytearray(self.durable)

    def _tear(self, position: int, data: bytes, random: Random, *, in_order: bool) -> None:
        """Keep the first sectors of a write, or any."""
        begin = 0
        while begin < len(data):
            end = min((position + begin) // SECTOR * SECTOR + SECTOR - position, len(data))
            if random.random() < 0.5:
                _apply(self.durable, (position + begin, data[begin:end]))
            elif in_order:
                return
            begin = end


def _apply(content: bytearray, change: tuple[int, bytes | None]) -> None:
    position, data = change
    if len(content) < position:
        content.extend(bytes(position - len(content)))
    if data is None:
        del content[position:]
    else:
        content[position : position + len(data)] = data


class Directory:
    """The entries that the system shows, those on the disk, and the changes in between."""

    def __init__(self, now_ns: int) -> None:
        self.entries: dict[str, Inode | Directory] = {}
        self.durable: dict[str, Inode | Directory] = {}
        self.pending: list[dict[str, Inode | Directory | None]] = []
        self.modified_ns = now_ns

    def change(self, change: dict[str, Inode | Directory | None]) -> None:
        """Set or delete some entries as one step, such as a rename."""
        _enter(self.entries, change)
        self.pending.append(change)

    def flush(self) -> None:
        for change in self.pending:
            _enter(self.durable, change)
        self.pending.clear()

    def lose_power(self, random: Random) -> None:
        for change in self.pending[: random.randint(0, len(self.pending))]:
            _enter(self.durable, change)
        self.pending.clear()
        self.entries = dict(self.durable)
        for name in sorted(self.entries):
            self.entries[name].lose_power(random)


def _enter(entries: dict[str, Inode | Directory], change: dict[str, Inode | Directory | None]) -> None:
    for name, node in change.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


@dataclass
class Condition:
    """What is wrong with the disk of a machine."""

    is_full: bool = False
    failing_flushes: int = 0  # so many of the next flushes fail
    failing_reads: int = 0
    slowness: float = 1.0  # by which the time of work in threads is multiplied
    has_failed: bool = False  # in this life of the program


class Entry:
    """Stands in for `os.DirEntry`."""

    def __init__(self, name: str, node: Inode | Directory) -> None:
        self.name = name
        self._node = node

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return isinstance(self._node, Directory)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return isinstance(self._node, Inode)


class Entries(list[Entry]):
    """Stands in for the iterator of `os.scandir`."""

    def __enter__(self) -> Iterator[Entry]:
        return iter(self)

    def __exit__(self, *error: object) -> None:
        pass


class Disks:
    """The disks of all machines, to be used as `barnabas.storage.files.system`. `note` takes what happens."""

    def __init__(self, now_ns: Callable[[], int], note: Callable[..., None]) -> None:
        self._now_ns = now_ns
        self._note = note
        self._root = Directory(0)
        self._open: dict[int, tuple[Inode | Directory, str]] = {}
        self._positions: dict[int, int] = {}
        self._next = FIRST_DESCRIPTOR
        self.conditions: dict[str, Condition] = {}

    def add(self, machine: str) -> None:
        self._root.change({machine: Directory(self._now_ns())})
        self._root.flush()
        self.conditions[machine] = Condition()

    def lose_power(self, machine: str, random: Random) -> None:
        self._root.entries[machine].lose_power(random)

    def process_ended(self, machine: str) -> None:
        """Close the descriptors that a process left open."""
        for descriptor, (_, path) in list(self._open.items()):
            if _machine(path) == machine:
                self.close(descriptor)

    # --- paths

    def _find(self, path: str) -> Inode | Directory:
        node: Inode | Directory | None = self._root
        for part in _parts(path):
            if not isinstance(node, Directory):
                raise _error(errno.ENOTDIR, path)
            node = node.entries.get(part)
            if node is None:
                raise _error(errno.ENOENT, path)
        assert node is not None
        return node

    def _parent(self, path: str) -> tuple[Directory, str]:
        *above, name = _parts(path)
        parent = self._find("/" + "/".join(above))
        if not isinstance(parent, Directory):
            raise _error(errno.ENOTDIR, path)
        return parent, name

    def _condition(self, path: str) -> Condition:
        return self.conditions[_machine(path)]

    def _check_room(self, path: str) -> None:
        condition = self._condition(path)
        if condition.is_full:
            condition.has_failed = True
            raise _error(errno.ENOSPC, path)

    # --- calls of `os`

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        path = os.fspath(path)
        try:
            node = self._find(path)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            self._check_room(path)
            parent, name = self._parent(path)
            node = Inode(self._now_ns())
            parent.change({name: node})
            self._note("create", path)
        else:
            if flags & os.O_CREAT and flags & os.O_EXCL:
                raise _error(errno.EEXIST, path)
            if flags & os.O_DIRECTORY and isinstance(node, Inode):
                raise _error(errno.ENOTDIR, path)
            if flags & os.O_TRUNC and isinstance(node, Inode) and node.data:
                node.truncate(0)
        self._next += 1
        self._open[self._next] = node, path
        return self._next

    def close(self, descriptor: int) -> None:
        self._open.pop(descriptor, None)
        self._positions.pop(descriptor, None)

    def _file(self, descriptor: int) -> tuple[Inode, str]:
        node, path = self._open[descriptor]
        if isinstance(node, Directory):
            raise _error(errno.EISDIR, path)
        return node, path

    def _readable(self, descriptor: int) -> Inode:
        node, path = self._file(descriptor)
        condition = self._condition(path)
        if condition.failing_reads:
            condition.failing_reads -= 1
            condition.has_failed = True
            self._note("read error", path)
            raise _error(errno.EIO, path)
        return node

    def read(self, descriptor: int, size: int) -> bytes:
        position = self._positions.get(descriptor, 0)
        data = self.pread(descriptor, size, position)
        self._positions[descriptor] = position + len(data)
        return data

    def pread(self, descriptor: int, size: int, position: int) -> bytes:
        return bytes(self._readable(descriptor).data[position : position + size])

    def preadv(self, descriptor: int, buffers: Any, position: int, flags: int = 0) -> int:
        node, total = self._readable(descriptor), 0
        for buffer in buffers:
            part = node.data[position + total : position + total + len(buffer)]
            memoryview(buffer)[: len(part)] = part
            total += len(part)
        return total

    def pwrite(self, descriptor: int, data: Any, position: int) -> int:
        node, path = self._file(descriptor)
        self._check_room(path)
        content = bytes(data)
        node.write(content, position)
        node.modified_ns = self._now_ns()
        self._note("write", path, position, len(content), zlib.crc32(content))
        return len(content)

    def pwritev(self, descriptor: int, buffers: Any, position: int) -> int:
        return self.pwrite(descriptor, b"".join(buffers), position)

    def ftruncate(self, descriptor: int, size: int) -> None:
        node, path = self._file(descriptor)
        node.truncate(size)
        self._note("truncate", path, size)

    def fsync(self, descriptor: int) -> None:
        node, path = self._open[descriptor]
        condition = self._condition(path)
        if condition.failing_flushes:
            condition.failing_flushes -= 1
            condition.has_failed = True
            self._note("flush error", path)
            raise _error(errno.EIO, path)
        node.flush()
        self._note("flush", path)

    def lockf(self, descriptor: int, command: int, length: int) -> None:
        pass  # no two processes run on one machine

    def stat(self, path: Path) -> os.stat_result:
        node = self._find(os.fspath(path))
        is_file = isinstance(node, Inode)
        mode = stat.S_IFREG | node.mode if isinstance(node, Inode) else stat.S_IFDIR | 0o755
        seconds = node.modified_ns // 1_000_000_000
        fields = (mode, 0, 0, 1, 0, 0, len(node.data) if isinstance(node, Inode) and is_file else 0, *[seconds] * 3)
        return os.stat_result(fields, {"st_mtime_ns": node.modified_ns})

    def utime(self, path: Path, *, ns: tuple[int, int]) -> None:
        self._find(os.fspath(path)).modified_ns = ns[1]

    def chmod(self, path: Path, mode: int) -> None:
        node = self._find(os.fspath(path))
        if isinstance(node, Inode):
            node.mode = mode

    def mkdir(self, path: Path) -> None:
        path = os.fspath(path)
        parent, name = self._parent(path)
        if name in parent.entries:
            raise _error(errno.EEXIST, path)
        self._check_room(path)
        parent.change({name: Directory(self._now_ns())})
        self._note("mkdir", path)

    def rmdir(self, path: Path) -> None:
        path = os.fspath(path)
        parent, name = self._parent(path)
        node = self._find(path)
        if not isinstance(node, Directory) or node.entries:
            raise _error(errno.ENOTEMPTY, path)
        parent.change({name: None})

    def rename(self, path: Path, to: Path) -> None:
        path, to = os.fspath(path), os.fspath(to)
        node = self._find(path)
        parent, name = self._parent(path)
        target, new_name = self._parent(to)
        there = target.entries.get(new_name)
        if isinstance(there, Directory) and there.entries:
            raise _error(errno.ENOTEMPTY, to)
        if parent is target:
            parent.change({name: None, new_name: node})
        else:
            target.change({new_name: node})
            parent.change({name: None})
        self._note("rename", path, to)

    replace = rename

    def unlink(self, path: Path) -> None:
        path = os.fspath(path)
        parent, name = self._parent(path)
        if isinstance(self._find(path), Directory):
            raise _error(errno.EISDIR, path)
        parent.change({name: None})
        self._note("unlink", path)

    def scandir(self, path: Path) -> Entries:
        node = self._find(os.fspath(path))
        if not isinstance(node, Directory):
            raise _error(errno.ENOTDIR, os.fspath(path))
        return Entries(Entry(name, each) for name, each in node.entries.items())

    def statvfs(self, path: Path) -> os.statvfs_result:
        self._find(os.fspath(path))
        free = 0 if self._condition(os.fspath(path)).is_full else BLOCKS // 2
        return os.statvfs_result((BLOCK, BLOCK, BLOCKS, free, free, 1 << 20, 1 << 19, 1 << 19, 0, 255))


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part and part != "."]


def _machine(path: str) -> str:
    return _parts(path)[0]
