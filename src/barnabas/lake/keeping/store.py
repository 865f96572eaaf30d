"""A lake on disk: a directory of Parquet parts, and manifests that name the parts of its tables.

    lake.json             format, the data directory, and the sources of the lake
    lock                  held by the one process that writes
    data-1/commits/       a manifest for each commit; the newest is the lake
    data-1/<layer>/...    tables, each a directory of parts with a Delta log; data-1/state/...: open facts by stream
    data-1/checkpoints/   Spark's checkpoints
    log/                  Spark's log

Its one rule: a part is written first, and named by a manifest afterwards, in one atomic step. So a reader sees all tables as of
one commit. The Delta logs follow (`publishing`). No manifest names what a killed writer left, and the next writer sweeps it.
Parts and manifests that were replaced stay for a while for current readers. The lock keeps a second writer away. Should it
fail, as it may on a network file system, creating the next manifest decides: the writer that comes second fails, and has
changed nothing. This module knows neither Spark nor any table.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from barnabas.lake.keeping import delta_log, parquet_times, publishing
from barnabas.lake.keeping import manifest as manifests
from barnabas.lake.keeping.manifest import BatchDone, IncompatibleError, Manifest, Parts

FORMAT: Final = 2
WITH_INT96: Final = 1
"""The format without Delta logs, and with times as INT96, which a rebuild can take observations from."""
SETTINGS_FILE: Final = "lake.json"
LOCK_FILE: Final = "lock"
COMMITS: Final = "commits"
CHECKPOINTS: Final = "checkpoints"
GRACE_S: Final = 900.0
"""How long replaced parts and manifests are kept for readers, in seconds."""
REBUILD: Final = "barnabas lake rebuild"

_DATA = "data-"
_MANIFEST = ".json"
_NOT_TABLES = (COMMITS, CHECKPOINTS)


class LakeError(Exception):
    """A lake that cannot be used as it is. The text says why, and what helps."""


class LakeLockedError(LakeError):
    """Another process is writing."""


class LakeFormatError(LakeError):
    """The lake was written by another version, in a format that this one cannot continue."""


def nothing(step: str) -> None:
    """Ignore steps."""


# --- lake.json -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settings:
    data: str = f"{_DATA}1"
    sources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """For each cluster the `paths` and `options` of its sources."""
    replaced: Mapping[str, int] = field(default_factory=dict)
    """Data directories that a rebuild has replaced, with the time (ms)."""
    format: int = FORMAT


def read_settings(path: Path) -> Settings:
    """Read lake.json of any format. Raises LakeError."""
    try:
        document = json.loads((path / SETTINGS_FILE).read_text())
        return Settings(
            str(document["data"]), document.get("sources", {}), document.get("replaced", {}), int(document["format"])
        )
    except FileNotFoundError:
        raise LakeError(f"{path} is not a lake: it has no {SETTINGS_FILE}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LakeFormatError(f"{path / SETTINGS_FILE} cannot be read ({error}); {REBUILD} writes it anew") from None


def _write_settings(path: Path, settings: Settings) -> None:
    document = {
        "format": settings.format,
        "data": settings.data,
        "sources": dict(settings.sources),
        "replaced": dict(settings.replaced),
    }
    _write_durably(path / f"{SETTINGS_FILE}.tmp", json.dumps(document, indent=1))
    (path / f"{SETTINGS_FILE}.tmp").replace(path / SETTINGS_FILE)
    _sync_directory(path)


# --- reading ---------------------------------------------------------------------------------------------------------


class Lake:
    """A lake open for reading, by any number of processes."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.settings = read_settings(self.path)
        if self.settings.format != FORMAT:
            raise LakeFormatError(_unknown_format(path, self.settings.format))
        self.data = self.path / self.settings.data

    def manifest(self) -> Manifest:
        """Return the manifest of the last commit."""
        return newest(self.data / COMMITS)


def _unknown_format(path: Path, found: int) -> str:
    return f"{path} has format {found}, this version needs {FORMAT}; {REBUILD} writes the lake anew"


def newest(commits: Path) -> Manifest:
    """Return the last manifest of a directory. Raises LakeError."""
    while versions := _versions(commits):
        try:
            return _read_manifest(commits, versions[-1])
        except FileNotFoundError:
            continue  # replaced and swept since it was listed
    return manifests.EMPTY


def _versions(commits: Path) -> list[int]:
    if not commits.is_dir():
        return []
    names = (entry.name for entry in commits.iterdir())
    return sorted(int(name.removesuffix(_MANIFEST)) for name in names if name.removesuffix(_MANIFEST).isdecimal())


def _manifest_path(commits: Path, version: int) -> Path:
    return commits / f"{version:012d}{_MANIFEST}"


def _read_manifest(commits: Path, version: int) -> Manifest:
    path = _manifest_path(commits, version)
    try:
        return manifests.from_text(path.read_text())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LakeFormatError(f"{path} cannot be read ({error}); {REBUILD} writes the lake anew") from None


# --- writing ---------------------------------------------------------------------------------------------------------


class Writer:
    """The one writer of a lake; a context manager. Threads may stage and commit at the same time.

    `on_step` is called with the name of each step, just after it was done: tests kill the process there.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        on_step: Callable[[str], None] = nothing,
        grace_s: float = GRACE_S,
    ) -> None:
        self.path = path.absolute()
        self._clock_ms, self.on_step, self._grace_ms = clock_ms, on_step, int(grace_s * 1000)
        self._mutex = threading.RLock()
        self._staged: set[str] = set()
        self._data: Path | None = None
        self._is_new, self._had_directory = False, self.path.is_dir()
        self._lock = _lock(self.path)
        try:
            self._begin()
        except BaseException:
            os.close(self._lock)
            raise

    def _begin(self) -> None:
        if not (self.path / SETTINGS_FILE).exists():
            strange = sorted({entry.name for entry in self.path.iterdir()} - {LOCK_FILE, "log", f"{SETTINGS_FILE}.tmp"})
            if strange:
                raise LakeError(f"{self.path} is not a lake, and not empty: it has {', '.join(strange[:3])}")
            _write_settings(self.path, Settings())
            self._is_new = True
        self.settings = read_settings(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self._is_new and (self._data is None or not _versions(self._data / COMMITS)):
            self._remove()
        os.close(self._lock)

    def _remove(self) -> None:
        """Remove a lake that this writer has made, and in which it has failed to commit anything. Spark's log stays."""
        (self.path / SETTINGS_FILE).unlink(missing_ok=True)
        for data in self.path.glob(f"{_DATA}*"):
            shutil.rmtree(data, ignore_errors=True)
        (self.path / LOCK_FILE).unlink(missing_ok=True)
        if not self._had_directory:
            with suppress(OSError):  # it has Spark's log
                self.path.rmdir()

    def open(self) -> Self:
        """Continue with the existing data, and sweep what killed writers and long-gone readers left."""
        self._open(Lake(self.path).data)
        for _ in publishing.reconcile(self.data, self.manifest, self._grace_ms / 1000):
            self.on_step("log reconciled")
        for old in self.path.glob(f"{_DATA}*"):
            at_ms = self.settings.replaced.get(old.name)
            if old != self.data and (at_ms is None or self._clock_ms() - at_ms >= self._grace_ms):
                shutil.rmtree(old, ignore_errors=True)
        self.sweep()
        return self

    def open_anew(self) -> Self:
        """Start new data beside the existing data, which stays the lake until `swap`."""
        taken = [int(name) for old in self.path.glob(f"{_DATA}*") if (name := old.name.removeprefix(_DATA)).isdecimal()]
        self._open(self.path / f"{_DATA}{max(taken, default=0) + 1}")
        return self

    def take_along(self, tables: Iterable[str], streams: Callable[[str], bool]) -> None:
        """Copy tables that cannot be computed anew from the existing lake, with the progress of their streams.

        Raises LakeFormatError if they cannot be read.
        """
        if self.settings.format not in (FORMAT, WITH_INT96):
            raise LakeFormatError(_unknown_format(self.path, self.settings.format))
        old = self.path / self.settings.data
        before = newest(old / COMMITS)
        taken = {table: before.tables[table] for table in tables if table in before.tables}
        if not taken:
            return
        states = {name: state for name, state in before.streams.items() if streams(name)}
        checkpoints = [f"{CHECKPOINTS}/{manifests.stream_path(name)}" for name in states]
        for part in [*(part for table in taken.values() for part in table.parts), *checkpoints]:
            shutil.copytree(old / part, self.data / part, dirs_exist_ok=True)
        if self.settings.format == WITH_INT96:
            for file in publishing.files_of(self.data, (part for table in taken.values() for part in table.parts)):
                parquet_times.to_microseconds(file)
        for path in checkpoints:
            _sync_tree(self.data / path, until=self.data)
        with self._mutex:
            self._commit(manifests.with_others(self.manifest, taken, states, self._clock_ms()))

    def swap(self) -> None:
        """Make the new data the lake, in one atomic step."""
        replaced = {**self.settings.replaced, self.settings.data: self._clock_ms()}
        there = {name: at_ms for name, at_ms in replaced.items() if (self.path / name).is_dir()}
        self.settings = Settings(self.data.name, self.settings.sources, there)
        _write_settings(self.path, self.settings)
        self.on_step("swapped")

    def _open(self, data: Path) -> None:
        self._data = data
        (data / COMMITS).mkdir(parents=True, exist_ok=True)
        self.manifest = newest(data / COMMITS)

    @property
    def data(self) -> Path:
        if self._data is None:
            raise LakeError(f"{self.path} is locked, but not opened")
        return self._data

    def remember(self, cluster_id: str, source: Mapping[str, Any]) -> None:
        """Store the sources of a cluster, for a rebuild and for a run without sources."""
        if self.settings.sources.get(cluster_id) != source:
            self.settings = replace(self.settings, sources={**self.settings.sources, cluster_id: source})
            _write_settings(self.path, self.settings)

    def stage(self, table: str) -> str:
        """Return the name of a new part of this table. Readers do not see it before it is committed."""
        with self._mutex:
            part = f"{table}/{self.manifest.version + 1:012d}-{uuid.uuid4().hex[:12]}"
            self._staged.add(part)
            return part

    def discard(self, parts: Iterable[str]) -> None:
        """Remove parts that only the writer has read, and that it does not need any more."""
        with self._mutex:
            self._staged.difference_update(parts)
        for part in parts:
            shutil.rmtree(self.data / part, ignore_errors=True)

    def commit(self, batch: BatchDone, relied_on: Iterable[Path] = ()) -> Manifest:
        """Commit a batch. `relied_on` are other files that the commit depends on: they are flushed before it.

        Raises LakeFormatError if its columns do not fit, and LakeError.
        """
        with self._mutex:
            for path in relied_on:
                _sync_tree(path, until=self.data)
            try:
                after = manifests.after(self.manifest, batch, self._clock_ms())
            except IncompatibleError as error:
                raise LakeFormatError(f"{self.path}: {error}; {REBUILD} writes the lake anew") from None
            return self._commit(after)

    def commit_compaction(self, table: str, merged: Parts, into: Parts) -> Manifest:
        with self._mutex:
            return self._commit(manifests.after_compaction(self.manifest, table, merged, into, self._clock_ms()))

    def _commit(self, after: Manifest) -> Manifest:
        before = set(self.manifest.parts())
        added = [part for part in after.parts() if part not in before]
        for part in added:
            _sync_tree(self.data / part, until=self.data)
        self.on_step("parts synced")
        commits = self.data / COMMITS
        temporary = commits / f".{after.version:012d}.tmp"
        _write_durably(temporary, manifests.to_text(after), self.on_step)
        _link(temporary, _manifest_path(commits, after.version))
        self.on_step("manifest named")
        _sync_directory(commits)
        self.on_step("commits synced")
        before_commit, self.manifest = self.manifest, after
        self._publish(before_commit)
        self._staged.difference_update([part for part in self._staged if any(_is_in(name, part) for name in added)])
        return after

    def _publish(self, before: Manifest) -> None:
        try:
            for _ in publishing.publish(self.data, before, self.manifest, self._grace_ms / 1000):
                self.on_step("log written")
        except FileExistsError as error:
            raise LakeError(
                f"{error.filename} already exists: another program has written to this table, which is only for reading"
            ) from None

    def sweep(self) -> None:
        """Remove manifests replaced long ago, and parts that no manifest names and that are not being written."""
        with self._mutex:
            commits = self.data / COMMITS
            versions = _versions(commits)
            kept = [_read_manifest(commits, version) for version in versions]
            expired = self._clock_ms() - self._grace_ms
            while len(kept) > 1 and kept[1].time_ms <= expired:
                kept.pop(0)
                _manifest_path(commits, versions.pop(0)).unlink()
                self.on_step("old manifest removed")
            for temporary in commits.glob(".*.tmp"):
                temporary.unlink()
            tables = (table for manifest in kept for table in manifest.tables.values())
            named = (
                {part for table in tables for part in table.parts}
                | set(kept[-1].parts() if kept else ())
                | self._staged
            )
            logs = {f"{table}/{delta_log.LOG}" for manifest in kept[-1:] for table in manifest.tables}
            above = {str(parent) for part in named | logs for parent in Path(part).parents}
            for part in _unnamed(self.data, "", named | logs, above):
                shutil.rmtree(self.data / part, ignore_errors=True)
                self.on_step("part removed")
            publishing.checkpoint_and_trim(self.data, self.manifest, self._grace_ms / 1000, expired)


def _unnamed(data: Path, below: str, named: set[str], above: set[str]) -> Iterator[str]:
    """Yield the topmost directories that contain no named part."""
    with os.scandir(data / below) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    for name in names:
        path = f"{below}/{name}" if below else name
        if path in _NOT_TABLES or path in named:
            continue
        if path in above:
            yield from _unnamed(data, path, named, above)
        else:
            yield path


def _is_in(part: str, staged: str) -> bool:
    return part == staged or part.startswith(f"{staged}/")


def _lock(path: Path) -> int:
    """Return a descriptor that holds the lock until it is closed. Raises LakeLockedError."""
    path.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(descriptor, 1000).decode(errors="replace").strip() or "another process"
        os.close(descriptor)
        raise LakeLockedError(f"{path} is being written by {holder}; a lake has one writer at a time") from None
    since = datetime.now(UTC).isoformat(timespec="seconds")
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"pid {os.getpid()} on {socket.gethostname()} since {since}\n".encode(), 0)
    return descriptor


def _write_durably(path: Path, text: str, on_step: Callable[[str], None] = nothing) -> None:
    with path.open("w") as file:
        file.write(text)
        file.flush()
        on_step("manifest written")
        os.fsync(file.fileno())
    on_step("manifest synced")


def _link(temporary: Path, path: Path) -> None:
    """Rename a file without replacing another one. Raises LakeError."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise LakeError(f"{path} already exists: another process has written to this lake") from None
    except OSError:  # a file system without hard links
        temporary.rename(path)
        return
    temporary.unlink()


def _sync_tree(path: Path, until: Path) -> None:
    """Flush files, and the entries of all directories from here up to `until`."""
    if path.is_file():
        _sync(path)
    for folder, _, names in os.walk(path):
        for name in names:
            _sync(Path(folder) / name)
        _sync_directory(Path(folder))
    for parent in path.parents:
        _sync_directory(parent)
        if parent == until:
            break


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_sync_directory = _sync
