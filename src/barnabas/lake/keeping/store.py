"""A lake: a folder of Parquet parts, and manifests that name the parts of its tables.

    lake.json             format, the data folder, and the sources of the lake
    lock, or writers/     held by the one process that writes
    data-1/commits/       a manifest for each commit; the newest is the lake
    data-1/<layer>/...    tables, each a folder of parts with a Delta log; data-1/state/...: open facts by stream
    log/                  Spark's log, if the lake is on a disk

Its one rule: a part is written first, and named by a manifest afterwards, in one atomic step. So a reader sees all tables as of
one commit. The Delta logs follow (`publishing`). No manifest names what a killed writer left, and the next writer sweeps it.
Parts and manifests that were replaced stay for a while for current readers. The lock keeps a second writer away. Should it
fail, as it may on a network file system, creating the next manifest decides: the writer that comes second fails, and has
changed nothing. A writer that follows one that may only be paused commits at once, so that nothing of the other can be
committed any more. This module knows neither Spark nor any table.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Final, Self

from barnabas import __version__
from barnabas.lake.keeping import delta_log, parquet_times, publishing
from barnabas.lake.keeping import manifest as manifests
from barnabas.lake.keeping.folders import Folder, LakeError, folder_at, nothing
from barnabas.lake.keeping.local_folder import LocalFolder
from barnabas.lake.keeping.locks import LEASE_S, LOCK_FILE, WRITERS, FileLock, LakeLockedError, Lease, Lock
from barnabas.lake.keeping.manifest import BatchDone, IncompatibleError, Made, Manifest, Parts

FORMAT: Final = 2
WITH_INT96: Final = 1
"""The format without Delta logs, and with times as INT96, which a rebuild can take observations from."""
SETTINGS_FILE: Final = "lake.json"
COMMITS: Final = "commits"
GRACE_S: Final = 900.0
"""How long replaced parts and manifests are kept for readers, in seconds."""
REBUILD: Final = "barnabas lake rebuild"

_DATA = "data-"
_MANIFEST = ".json"


class OvertakenError(LakeError):
    """Another process has made the commit that was to be made."""


class LakeFormatError(LakeError):
    """The lake was written by another version, in a format that this one cannot continue."""


# --- lake.json -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settings:
    data: str = f"{_DATA}1"
    sources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """For each cluster the `paths` and `options` of its sources."""
    replaced: Mapping[str, int] = field(default_factory=dict)
    """Data directories that a rebuild has replaced, with the time (ms)."""
    format: int = FORMAT


def read_settings(place: Path | str | Folder) -> Settings:
    """Read lake.json of any format. Raises LakeError."""
    folder = folder_at(place)
    try:
        document = json.loads(folder.read(SETTINGS_FILE))
        return Settings(
            str(document["data"]), document.get("sources", {}), document.get("replaced", {}), int(document["format"])
        )
    except FileNotFoundError:
        folder.folders()  # raises a better error if it cannot be reached at all
        raise LakeError(f"{folder} is not a lake: it has no {SETTINGS_FILE}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LakeFormatError(f"{folder}/{SETTINGS_FILE} cannot be read ({error}); {REBUILD} writes it anew") from None


def _write_settings(folder: Folder, settings: Settings) -> None:
    document = {
        "format": settings.format,
        "data": settings.data,
        "sources": dict(settings.sources),
        "replaced": dict(settings.replaced),
    }
    folder.replace(SETTINGS_FILE, json.dumps(document, indent=1).encode())


# --- reading ---------------------------------------------------------------------------------------------------------


class Lake:
    """A lake open for reading, by any number of processes."""

    def __init__(self, place: Path | str | Folder) -> None:
        self.folder = folder_at(place)
        self.settings = read_settings(self.folder)
        if self.settings.format != FORMAT:
            raise LakeFormatError(_unknown_format(self.folder, self.settings.format))
        self.data = self.folder / self.settings.data

    def manifest(self) -> Manifest:
        """Return the manifest of the last commit."""
        return newest(self.data)


def _unknown_format(folder: Folder, found: int) -> str:
    return f"{folder} has format {found}, this version needs {FORMAT}; {REBUILD} writes the lake anew"


def newest(data: Folder) -> Manifest:
    """Return the last manifest of a data folder. Raises LakeError."""
    while versions := _versions(data):
        try:
            return _read_manifest(data, versions[-1])
        except FileNotFoundError:
            continue  # replaced and swept since it was listed
    return manifests.EMPTY


def _versions(data: Folder) -> list[int]:
    names = (file.name.removeprefix(f"{COMMITS}/").removesuffix(_MANIFEST) for file in data.files(COMMITS))
    return sorted(int(name) for name in names if name.isdecimal())


def _manifest_name(version: int) -> str:
    return f"{COMMITS}/{version:012d}{_MANIFEST}"


def _read_manifest(data: Folder, version: int) -> Manifest:
    name = _manifest_name(version)
    try:
        return manifests.from_text(data.read(name).decode())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LakeFormatError(f"{data}/{name} cannot be read ({error}); {REBUILD} writes the lake anew") from None


# --- writing ---------------------------------------------------------------------------------------------------------


class Writer:
    """The one writer of a lake; a context manager. Threads may stage and commit at the same time.

    `on_step` is called with the name of each step, just after it was done: tests kill the process there.
    """

    def __init__(
        self,
        place: Path | str | Folder,
        *,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        on_step: Callable[[str], None] = nothing,
        grace_s: float = GRACE_S,
        lease_s: float = LEASE_S,
        tell: Callable[[str], None] = nothing,
    ) -> None:
        """`tell` is told why it takes a while. Raises LakeLockedError, LakeError."""
        self.folder = folder_at(place)
        self._clock_ms, self.on_step, self._grace_ms = clock_ms, on_step, int(grace_s * 1000)
        self._mutex = threading.RLock()
        self._staged: set[str] = set()
        self._data: Folder | None = None
        self.manifest = manifests.EMPTY
        self._is_new, self._had_directory = False, False
        if isinstance(self.folder, LocalFolder):
            self._had_directory = self.folder.path.is_dir()
            self._lock: Lock = FileLock(self.folder.path)
        else:
            self._lock = Lease(self.folder, lease_s, tell)
        try:
            self._begin()
        except BaseException:
            self._lock.release()
            raise

    def _begin(self) -> None:
        there = {file.name for file in self.folder.files_here()} | set(self.folder.folders())
        if SETTINGS_FILE not in there:
            mine = {LOCK_FILE, WRITERS, "log"}
            strange = sorted(name for name in there - mine if not name.startswith(f".{SETTINGS_FILE}."))
            if strange:
                raise LakeError(f"{self.folder} is not a lake, and not empty: it has {', '.join(strange[:3])}")
            _write_settings(self.folder, Settings())
            self._is_new = True
        self.settings = read_settings(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, LakeLockedError):
            pass  # it is another's now
        elif error is not None and self._is_new and (self._data is None or not _versions(self._data)):
            self._remove()
        self._lock.release()

    def _remove(self) -> None:
        """Remove a lake that this writer has made, and in which it has failed to commit anything. Spark's log stays."""
        self.folder.remove([SETTINGS_FILE])
        for data in self._data_folders():
            self.folder.remove_all(data)
        if isinstance(self.folder, LocalFolder):
            self.folder.remove([LOCK_FILE])
            if not self._had_directory:
                self.folder.remove_empty()  # unless it has Spark's log

    def _data_folders(self) -> list[str]:
        return [name for name in self.folder.folders() if name.startswith(_DATA)]

    def open(self) -> Self:
        """Continue with the existing data, and sweep what killed writers and long-gone readers left."""
        self._open(Lake(self.folder).data)
        if self._lock.is_taken_over:
            self._fence()
        for _ in publishing.reconcile(self.data, self.manifest, self._grace_ms / 1000):
            self.on_step("log reconciled")
        old = []
        for name in self._data_folders():
            at_ms = self.settings.replaced.get(name)
            if name != self.settings.data and (at_ms is None or self._clock_ms() - at_ms >= self._grace_ms):
                old.append(name)
        self._lock.check()
        for name in old:
            self.folder.remove_all(name)
        self.sweep()
        return self

    def _fence(self) -> None:
        """Commit the lake as it is, so that the commit which another writer may have begun cannot be the next one."""
        while True:
            try:
                self._commit(replace(self.manifest, version=self.manifest.version + 1, time_ms=self._clock_ms()))
            except OvertakenError:
                self.manifest = newest(self.data)  # the other has completed it
            else:
                return

    def open_anew(self) -> Self:
        """Start new data beside the existing data, which stays the lake until `swap`."""
        taken = [int(name) for old in self._data_folders() if (name := old.removeprefix(_DATA)).isdecimal()]
        self._new_data = f"{_DATA}{max(taken, default=0) + 1}"
        self._open(self.folder / self._new_data)
        return self

    def take_along(self, tables: Iterable[str], streams: Callable[[str], bool]) -> None:
        """Copy tables that cannot be computed anew from the existing lake, with the progress of their streams.

        Raises LakeFormatError if they cannot be read.
        """
        if self.settings.format not in (FORMAT, WITH_INT96):
            raise LakeFormatError(_unknown_format(self.folder, self.settings.format))
        old = self.folder / self.settings.data
        before = newest(old)
        taken = {table: before.tables[table] for table in tables if table in before.tables}
        if not taken:
            return
        states = {name: state for name, state in before.streams.items() if streams(name)}
        for part in (part for table in taken.values() for part in table.parts):
            for file in old.files(part):
                self.data.write(file.name, old.read(file.name))
        if self.settings.format == WITH_INT96:
            for file in publishing.files_of(self.data, (part for table in taken.values() for part in table.parts)):
                parquet_times.to_microseconds(self.data, file.name)
        with self._mutex:
            self._commit(manifests.with_others(self.manifest, taken, states, self._clock_ms()))

    def swap(self) -> None:
        """Make the new data the lake, in one atomic step."""
        replaced = {**self.settings.replaced, self.settings.data: self._clock_ms()}
        known = set(self._data_folders())
        there = {name: at_ms for name, at_ms in replaced.items() if name in known}
        self.settings = Settings(self._new_data, self.settings.sources, there)
        self._lock.check()
        _write_settings(self.folder, self.settings)
        self.on_step("swapped")

    def _open(self, data: Folder) -> None:
        self._data = data
        self.manifest = newest(data)

    @property
    def data(self) -> Folder:
        if self._data is None:
            raise LakeError(f"{self.folder} is locked, but not opened")
        return self._data

    def remember(self, cluster_id: str, source: Mapping[str, Any]) -> None:
        """Store the sources of a cluster, for a rebuild and for a run without sources."""
        if self.settings.sources.get(cluster_id) != source:
            self.settings = replace(self.settings, sources={**self.settings.sources, cluster_id: source})
            self._lock.check()
            _write_settings(self.folder, self.settings)

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
            self.data.remove_all(part)

    def commit(self, batch: BatchDone) -> Manifest:
        """Commit a batch. Raises LakeFormatError if its columns do not fit, and LakeError."""
        with self._mutex:
            try:
                after = manifests.after(self.manifest, batch, self._clock_ms())
            except IncompatibleError as error:
                raise LakeFormatError(f"{self.folder}: {error}; {REBUILD} writes the lake anew") from None
            return self._commit(after)

    def commit_compaction(self, table: str, merged: Parts, into: Parts) -> Manifest:
        with self._mutex:
            return self._commit(manifests.after_compaction(self.manifest, table, merged, into, self._clock_ms()))

    def commit_gold(self, made: Mapping[str, Made]) -> Manifest:
        """Commit gold tables, all at once."""
        with self._mutex:
            return self._commit(manifests.after_gold(self.manifest, made, __version__, self._clock_ms()))

    def _commit(self, after: Manifest) -> Manifest:
        before = set(self.manifest.parts())
        added = [part for part in after.parts() if part not in before]
        self.data.flush(added)
        self.on_step("parts synced")
        self._lock.check()
        self.on_step("lock checked")
        name, content = _manifest_name(after.version), manifests.to_text(after).encode()
        try:
            self.data.create(name, content, lambda step: self.on_step(f"manifest {step}"))
        except FileExistsError:
            # It may be this one: a store may have created it although its answer got lost.
            if self.folder.is_local or self.data.read(name) != content:
                raise OvertakenError(
                    f"{self.data}/{name} already exists: another process has written to this lake"
                ) from None
        before_commit, self.manifest = self.manifest, after
        self._publish(before_commit)
        self._staged.difference_update([part for part in self._staged if any(_is_in(name, part) for name in added)])
        return after

    def _publish(self, before: Manifest) -> None:
        try:
            for _ in publishing.publish(self.data, before, self.manifest, self._grace_ms / 1000):
                self.on_step("log written")
        except FileExistsError as error:
            self._lock.check()  # it may be the writer that has taken this one's place
            raise LakeError(f"{error}: another program has written to this table, which is only for reading") from None

    def sweep(self) -> None:
        """Remove manifests replaced long ago, and parts that no manifest names and that are not being written."""
        with self._mutex:
            versions = _versions(self.data)
            kept = [_read_manifest(self.data, version) for version in versions]
            expired = self._clock_ms() - self._grace_ms
            gone = []
            while len(kept) > 1 and kept[1].time_ms <= expired:
                kept.pop(0)
                gone.append(_manifest_name(versions.pop(0)))
            temporary = [file.name for file in self.data.files(COMMITS) if file.name.endswith(".tmp")]
            tables = (table for manifest in kept for table in manifest.tables.values())
            named = (
                {part for table in tables for part in table.parts}
                | set(kept[-1].parts() if kept else ())
                | self._staged
            )
            logs = {f"{table}/{delta_log.LOG}" for manifest in kept[-1:] for table in manifest.tables}
            above = {str(parent) for part in named | logs for parent in PurePosixPath(part).parents}
            unnamed = list(_unnamed(self.data, "", named | logs, above))
            # What was found while this writer is still the only one is not another's, however late it is removed.
            self._lock.check()
            for manifest in gone:
                self.data.remove([manifest])
                self.on_step("old manifest removed")
            self.data.remove(temporary)
            for part in unnamed:
                self.data.remove_all(part)
                self.on_step("part removed")
            publishing.checkpoint_and_trim(self.data, self.manifest, self._grace_ms / 1000, expired)


def _unnamed(data: Folder, below: str, named: set[str], above: set[str]) -> Iterator[str]:
    """Yield the topmost folders that contain no named part."""
    for name in data.folders(below):
        path = f"{below}/{name}" if below else name
        if path == COMMITS or path in named:
            continue
        if path in above:
            yield from _unnamed(data, path, named, above)
        else:
            yield path


def _is_in(part: str, staged: str) -> bool:
    return part == staged or part.startswith(f"{staged}/")
