"""The lock of a lake, which keeps a second writer away.

On a disk, the operating system holds it: it ends with the process. At an address, it is a lease: a log of entries with rising
numbers, each of which is created only if there is none, so that the store decides who gets a number.

    writers/000000000007.json    who holds the lease since this entry, or that nobody does

Its one rule: who wrote the entry with the highest number holds the lease. The holder adds an entry every few seconds. If none
was added for `LEASE_S`, as another process sees it on its own clock, that process adds the next one, and is the holder. So a
killed writer is followed after that time, and nobody compares clocks. One that was only paused finds a higher number than its
own when it looks, and it looks before each step that others could see (`check`).
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

from barnabas.lake.keeping.folders import Folder, LakeError, nothing

LOCK_FILE: Final = "lock"
WRITERS: Final = "writers"
LEASE_S: Final = 30.0
"""How long a writer at an address may be silent before another one takes its place, in seconds."""

_BEATS: Final = 6
"""The holder of a lease adds so many entries in that time."""
_ENTRY: Final = ".json"


class LakeLockedError(LakeError):
    """Another process is writing."""


class Lock(Protocol):
    @property
    def is_taken_over(self) -> bool:
        """Whether the holder before has not ended by itself, and may still act."""

    def check(self) -> None:
        """Raises LakeLockedError if another process has the lock now."""

    def release(self) -> None: ...


def _holder() -> str:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return f"pid {os.getpid()} on {socket.gethostname()} since {since}"


class FileLock:
    """The lock of a lake in a directory."""

    is_taken_over: Final = False

    def __init__(self, directory: Path) -> None:
        """Raises LakeLockedError."""
        directory.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._descriptor, 1000).decode(errors="replace").strip() or "another process"
            os.close(self._descriptor)
            raise LakeLockedError(
                f"{directory} is being written by {holder}; a lake has one writer at a time"
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{_holder()}\n".encode(), 0)

    def check(self) -> None:
        """The operating system does not give the lock to another process before this one ends."""

    def release(self) -> None:
        os.close(self._descriptor)


class Lease:
    """The lock of a lake at an address."""

    def __init__(self, folder: Folder, lease_s: float = LEASE_S, tell: Callable[[str], None] = nothing) -> None:
        """Take the lease, and keep it until `release`. Raises LakeLockedError. `tell` is told why this takes a while."""
        self._folder, self._lease_s, self._tell = folder, lease_s, tell
        self._token, self._holder = uuid.uuid4().hex, _holder()
        self._mutex, self._is_ended = threading.Lock(), threading.Event()
        self.is_taken_over = self._is_lost = False
        self._number = 0
        self._take()
        self._thread = threading.Thread(target=self._keep, name="lease of the lake", daemon=True)
        self._thread.start()

    def _take(self) -> None:
        while True:
            number, entry = self._newest()
            if entry is not None and not entry["is_released"]:
                self._wait_for_silence(number, entry["holder"])
                self.is_taken_over = True
            with suppress(FileExistsError):
                if self._add(number + 1) == number + 1:
                    return
            # Another process was faster: see who.

    def _wait_for_silence(self, number: int, holder: str) -> None:
        """Return when the holder has given the lease back, or was silent. Raises LakeLockedError if it adds an entry."""
        began, is_told = time.monotonic(), False
        while time.monotonic() - began < self._lease_s:
            time.sleep(self._lease_s / _BEATS / 4)
            if self._highest() != number:
                entry = self._newest()[1]
                if entry is None or not entry["is_released"]:
                    raise self._taken(entry["holder"] if entry else holder)
                return
            if not is_told:
                self._tell(
                    f"waiting for up to {self._lease_s:.0f} s: {holder} has not ended its writing to {self._folder}"
                )
                is_told = True

    def _taken(self, holder: str) -> LakeLockedError:
        return LakeLockedError(f"{self._folder} is being written by {holder}; a lake has one writer at a time")

    def check(self) -> None:
        with self._mutex:
            try:
                highest = self._add(self._number + 1)
            except FileExistsError:
                raise self._lost() from None
            if highest != self._number:  # older entries are removed, so their numbers are free
                raise self._lost()

    def _lost(self) -> LakeLockedError:
        self._is_lost = True
        self._is_ended.set()
        entry = self._newest()[1]
        holder = entry["holder"] if entry and entry["token"] != self._token else "another process"
        return LakeLockedError(
            f"{self._folder} was taken over by {holder}, since this process was silent for {self._lease_s:.0f} s; "
            "it has committed nothing since then"
        )

    def release(self) -> None:
        self._is_ended.set()
        self._thread.join()
        if not self._is_lost:
            with suppress(LakeError, FileExistsError), self._mutex:
                self._add(self._number + 1, is_released=True)

    def _keep(self) -> None:
        while not self._is_ended.wait(self._lease_s / _BEATS):
            # The store may be there again soon, and the writer's next step finds out about a lost lease as well.
            with suppress(LakeError):
                self.check()

    # --- entries

    def _add(self, number: int, *, is_released: bool = False) -> int:
        """Add an entry, and remove older ones. Return the highest number that there is.

        Raises FileExistsError if another process has added an entry with this number.
        """
        entry = {"holder": self._holder, "token": self._token, "is_released": is_released}
        try:
            self._folder.create(_name(number), json.dumps(entry).encode())
        except FileExistsError:
            if (self._read(number) or entry)["token"] != self._token:
                raise
            # This process has created it: the store did so, and its answer got lost.
        self._number, there = number, self._numbers()
        self._folder.remove(_name(each) for each in there if each < number)
        return max(there, default=0)

    def _newest(self) -> tuple[int, dict[str, Any] | None]:
        while number := self._highest():
            if (entry := self._read(number)) is not None:
                return number, entry
        return 0, None

    def _read(self, number: int) -> dict[str, Any] | None:
        try:
            return dict(json.loads(self._folder.read(_name(number))))
        except FileNotFoundError:
            return None  # a newer one has replaced it

    def _highest(self) -> int:
        return max(self._numbers(), default=0)

    def _numbers(self) -> list[int]:
        names = (file.name.rpartition("/")[2].removesuffix(_ENTRY) for file in self._folder.files(WRITERS))
        return [int(name) for name in names if name.isdecimal()]


def _name(number: int) -> str:
    return f"{WRITERS}/{number:012d}{_ENTRY}"
