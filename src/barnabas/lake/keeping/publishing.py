"""The Delta logs of a lake's tables, which follow from its manifests, so that other programs can read each table in place.

Its one rule: the manifest is the truth, and is written first. It states the version of each table; a Delta log is then made to
say the same, and can be written anew at any time. So readers of Delta never see a batch that is not committed, and a writer
that was killed in between, or whose place another has taken, leaves nothing wrong: the next writer completes the logs.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import Final

from barnabas.lake.keeping import delta_log
from barnabas.lake.keeping.delta_log import Change, DamagedError, DataFile, Declared
from barnabas.lake.keeping.folders import File, Folder, rows_in
from barnabas.lake.keeping.manifest import Manifest, TableState

CHECKPOINT_VERSIONS: Final = 32
"""A log with more versions than this after its last checkpoint gets another one."""

_IDS: Final = uuid.UUID("0b8f2a5e-9f0c-4c0e-8a61-6f1f6d3f3c55")


def files_of(data: Folder, parts: Iterable[str]) -> Iterator[File]:
    """Yield the Parquet files of parts."""
    for part in parts:
        yield from (file for file in data.files(part) if file.name.endswith(".parquet"))


def publish(data: Folder, before: Manifest, after: Manifest, kept_s: float) -> Iterator[str]:
    """Write the new versions of all tables that a commit has changed. Yield the name of each. Raises FileExistsError."""
    for path, table in after.tables.items():
        old = before.tables.get(path)
        if old is not None and old.version == table.version:
            continue
        here, gone = set(table.parts), set(old.parts if old else ())
        is_new = old is None or old.columns != table.columns
        delta_log.write_version(
            data / path,
            Change(
                table.version,
                after.version,
                after.time_ms,
                tuple(_data_files(data, path, [part for part in table.parts if part not in gone])),
                tuple(_names(data, path, [part for part in (old.parts if old else ()) if part not in here])),
                _declared(path, table, kept_s) if is_new else None,
            ),
        )
        yield path


def reconcile(data: Folder, manifest: Manifest, kept_s: float) -> Iterator[str]:
    """Make all logs equal to the manifest. Yield the names of the tables whose log was not."""
    for path, table in manifest.tables.items():
        try:
            found = delta_log.read_log(data / path)
        except DamagedError:
            found = None
        wanted = set(_names(data, path, table.parts))
        is_same_schema = found is not None and found.schema == delta_log.schema_text(table.columns)
        if found is not None and found.version == table.version and found.files == wanted and is_same_schema:
            continue
        yield path
        if found is not None and found.version == table.version - 1:
            missing = (file for file in _data_files(data, path, table.parts) if file.path not in found.files)
            declared = None if is_same_schema else _declared(path, table, kept_s)
            gone = tuple(sorted(found.files - wanted))
            change = Change(table.version, manifest.version, manifest.time_ms, tuple(missing), gone, declared)
            delta_log.write_version(data / path, change)
        else:
            _write_anew(data, path, manifest, kept_s)


def _write_anew(data: Folder, path: str, manifest: Manifest, kept_s: float) -> None:
    """Replace a log by one that begins with a checkpoint of the present version."""
    (data / path).remove_all(delta_log.LOG)
    whole = _whole(data, path, manifest, kept_s)
    delta_log.write_version(data / path, whole)
    if whole.version > 0:
        delta_log.write_checkpoint(data / path, whole)


def checkpoint_and_trim(data: Folder, manifest: Manifest, kept_s: float, expired_ms: int) -> None:
    """Keep all logs short."""
    for path in manifest.tables:
        if delta_log.since_checkpoint(data / path) > CHECKPOINT_VERSIONS:
            delta_log.write_checkpoint(data / path, _whole(data, path, manifest, kept_s))
        delta_log.trim(data / path, expired_ms)


def _whole(data: Folder, path: str, manifest: Manifest, kept_s: float) -> Change:
    table = manifest.tables[path]
    files = tuple(_data_files(data, path, table.parts))
    return Change(table.version, manifest.version, manifest.time_ms, files, (), _declared(path, table, kept_s))


def _declared(path: str, table: TableState, kept_s: float) -> Declared:
    properties = {
        "delta.deletedFileRetentionDuration": f"interval {round(kept_s)} seconds",
        "delta.logRetentionDuration": f"interval {round(kept_s)} seconds",
    }
    identity = str(uuid.uuid5(_IDS, f"{path} {table.created_ms}"))
    return Declared(identity, table.created_ms, delta_log.schema_text(table.columns), properties)


def _names(data: Folder, path: str, parts: Iterable[str]) -> Iterator[str]:
    for file in files_of(data, parts):
        yield file.name.removeprefix(f"{path}/")


def _data_files(data: Folder, path: str, parts: Iterable[str]) -> Iterator[DataFile]:
    for file in files_of(data, parts):
        yield DataFile(file.name.removeprefix(f"{path}/"), file.size, file.modified_ms, rows_in(data, file.name))
