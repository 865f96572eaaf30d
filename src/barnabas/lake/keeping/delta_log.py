"""The Delta log of a table: which Parquet files below a directory are its rows, version by version. Knows no lake.

    _delta_log/00000000000000000007.json                 the files that version 7 adds and removes
    _delta_log/00000000000000000032.checkpoint.parquet   all files of version 32, so that older versions need not be read
    _delta_log/_last_checkpoint                          the newest checkpoint

Its one rule: a version is written once, by creating a file that did not exist. It is not flushed: a log that a power failure
damaged is written anew by whoever knows the table (`publishing`). The format is the first version of Delta's protocol, which
every reader knows: https://github.com/delta-io/delta/blob/master/PROTOCOL.md. Times are microseconds, all fields nullable.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from barnabas.lake.declared_column import Nested, parse_type

LOG: Final = "_delta_log"
APP_ID: Final = "barnabas"
"""The name under which a version states the commit of the lake that it belongs to (the action `txn`)."""

_PROTOCOL: Final = {"minReaderVersion": 1, "minWriterVersion": 2}
_LAST_CHECKPOINT: Final = "_last_checkpoint"
_CHECKPOINT: Final = ".checkpoint.parquet"
_VERSION: Final = ".json"
_SAFE_IN_PATHS: Final = "/=-_."
_TYPES: Final = {"bigint": "long", "int": "integer", "smallint": "short", "tinyint": "byte"}
"""Delta's names of types that Spark's DDL calls otherwise."""


class DataFile(NamedTuple):
    """A Parquet file of a table."""

    path: str
    """Relative to the directory of the table."""
    size: int
    modified_ms: int
    rows: int


class Declared(NamedTuple):
    """What a table is, apart from its rows."""

    id: str
    created_ms: int
    schema: str
    """As `schema_text` returns it."""
    properties: Mapping[str, str] = {}


class Change(NamedTuple):
    """One version: the files that it adds and removes, and the declaration if it is new or has changed."""

    version: int
    commit: int
    """The commit of the lake."""
    time_ms: int
    added: tuple[DataFile, ...] = ()
    removed: tuple[str, ...] = ()
    declared: Declared | None = None


class Found(NamedTuple):
    """What a log says about its newest version."""

    version: int
    schema: str
    files: frozenset[str]
    commit: int


class DamagedError(Exception):
    """A log that cannot be read, or has gaps."""


def schema_text(columns: Mapping[str, str]) -> str:
    """Return the schema of columns, whose types are those of Spark's DDL, as Delta writes it."""
    return json.dumps(_struct(columns.items()), separators=(",", ":"))


def _struct(fields: Iterable[tuple[str, str | Nested]]) -> dict[str, Any]:
    members = [{"name": name, "type": _type(kind), "nullable": True, "metadata": {}} for name, kind in fields]
    return {"type": "struct", "fields": members}


def _type(kind: str | Nested) -> Any:
    found = parse_type(kind) if isinstance(kind, str) else kind
    if isinstance(found, str):
        return _TYPES.get(found, found)
    inner = found.members
    if found.name == "array":
        return {"type": "array", "elementType": _type(inner[0][1]), "containsNull": True}
    if found.name == "map":
        keys, values = (_type(member) for _, member in inner)
        return {"type": "map", "keyType": keys, "valueType": values, "valueContainsNull": True}
    return _struct(inner)


# --- writing ---------------------------------------------------------------------------------------------------------


def write_version(table: Path, change: Change) -> None:
    """Write one version. Raises FileExistsError if it is there already."""
    log = table / LOG
    log.mkdir(parents=True, exist_ok=True)
    temporary = log / f".{change.version:020d}.tmp"
    temporary.write_text("".join(f"{json.dumps(action, separators=(',', ':'))}\n" for action in _actions(change)))
    path = log / f"{change.version:020d}{_VERSION}"
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if path.exists():
            raise FileExistsError(str(path)) from None
        temporary.rename(path)
        return
    finally:
        temporary.unlink(missing_ok=True)


def _actions(change: Change) -> Iterator[dict[str, Any]]:
    yield {
        "commitInfo": {
            "timestamp": change.time_ms,
            "operation": "WRITE",
            "operationParameters": {"mode": "Append"},
            "engineInfo": APP_ID,
            "userMetadata": f"commit {change.commit} of the lake",
        }
    }
    if change.version == 0:
        yield {"protocol": _PROTOCOL}
    if change.declared is not None:
        yield {"metaData": _metadata(change.declared)}
    yield {"txn": {"appId": APP_ID, "version": change.commit, "lastUpdated": change.time_ms}}
    for path in change.removed:
        yield {"remove": {"path": _quoted(path), "deletionTimestamp": change.time_ms, "dataChange": True}}
    for file in change.added:
        yield {"add": _added(file, is_change=True)}


def _metadata(declared: Declared) -> dict[str, Any]:
    return {
        "id": declared.id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": declared.schema,
        "partitionColumns": [],
        "configuration": dict(declared.properties),
        "createdTime": declared.created_ms,
    }


def _added(file: DataFile, *, is_change: bool) -> dict[str, Any]:
    return {
        "path": _quoted(file.path),
        "partitionValues": {},
        "size": file.size,
        "modificationTime": file.modified_ms,
        "dataChange": is_change,
        "stats": json.dumps({"numRecords": file.rows}),
    }


def _quoted(path: str) -> str:
    return quote(path, safe=_SAFE_IN_PATHS)


def write_checkpoint(table: Path, change: Change) -> None:
    """Write a version with all of its files as a checkpoint: `change` adds them all. Readers then start here."""
    import pyarrow as pa
    from pyarrow import parquet

    assert change.declared is not None
    rows = [
        {"protocol": _PROTOCOL},
        {"metaData": _metadata(change.declared)},
        {"txn": {"appId": APP_ID, "version": change.commit, "lastUpdated": change.time_ms}},
        *({"add": _added(file, is_change=False)} for file in change.added),
    ]
    path = table / LOG / f"{change.version:020d}{_CHECKPOINT}"
    temporary = path.with_name(f".{path.name}.tmp")
    parquet.write_table(pa.Table.from_pylist(rows, _checkpoint_schema()), temporary)
    os.utime(temporary, (change.time_ms / 1000, change.time_ms / 1000))
    temporary.replace(path)
    pointer = table / LOG / f".{_LAST_CHECKPOINT}.tmp"
    pointer.write_text(json.dumps({"version": change.version, "size": len(rows)}))
    pointer.replace(table / LOG / _LAST_CHECKPOINT)


def _checkpoint_schema() -> Any:
    import pyarrow as pa

    texts = pa.map_(pa.string(), pa.string())
    return pa.schema(
        {
            "txn": pa.struct({"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()}),
            "add": pa.struct(
                {
                    "path": pa.string(),
                    "partitionValues": texts,
                    "size": pa.int64(),
                    "modificationTime": pa.int64(),
                    "dataChange": pa.bool_(),
                    "stats": pa.string(),
                }
            ),
            "metaData": pa.struct(
                {
                    "id": pa.string(),
                    "format": pa.struct({"provider": pa.string(), "options": texts}),
                    "schemaString": pa.string(),
                    "partitionColumns": pa.list_(pa.string()),
                    "configuration": texts,
                    "createdTime": pa.int64(),
                }
            ),
            "protocol": pa.struct({"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()}),
        }
    )


# --- reading ---------------------------------------------------------------------------------------------------------


def read_log(table: Path) -> Found | None:
    """Return the newest version of a table; None if it has no log. Raises DamagedError."""
    versions, checkpoints = _listed(table)
    if not versions and not checkpoints:
        return None
    start = checkpoints[-1] if checkpoints else -1
    wanted = [version for version in versions if version > start]
    if wanted != list(range(start + 1, start + 1 + len(wanted))):
        raise DamagedError(f"{table / LOG} lacks a version after {start}")
    files: set[str] = set()
    schema, commit = "", -1
    try:
        for action in _read_actions(table / LOG, start, wanted):
            if added := action.get("add"):
                files.add(unquote(added["path"]))
            elif removed := action.get("remove"):
                files.discard(unquote(removed["path"]))
            elif metadata := action.get("metaData"):
                schema = metadata["schemaString"]
            elif (txn := action.get("txn")) and txn["appId"] == APP_ID:
                commit = txn["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"{table / LOG} cannot be read: {error}") from None
    return Found(wanted[-1] if wanted else start, schema, frozenset(files), commit)


def _read_actions(log: Path, checkpoint: int, versions: Iterable[int]) -> Iterator[dict[str, Any]]:
    if checkpoint >= 0:
        from pyarrow import parquet

        yield from parquet.read_table(log / f"{checkpoint:020d}{_CHECKPOINT}").to_pylist()
    for version in versions:
        for line in (log / f"{version:020d}{_VERSION}").read_text().splitlines():
            yield json.loads(line)


def _listed(table: Path) -> tuple[list[int], list[int]]:
    """Return the versions, and those with a checkpoint, in order."""
    log = table / LOG
    names = [entry.name for entry in log.iterdir()] if log.is_dir() else []
    found = []
    for ending in (_VERSION, _CHECKPOINT):
        numbers = (name.removesuffix(ending) for name in names if name.endswith(ending))
        found.append(sorted(int(number) for number in numbers if number.isdecimal()))
    return found[0], found[1]


def since_checkpoint(table: Path) -> int:
    """Return how many versions a reader has to read one by one."""
    versions, checkpoints = _listed(table)
    start = checkpoints[-1] if checkpoints else -1
    return sum(version > start for version in versions)


def trim(table: Path, expired_ms: int) -> None:
    """Remove what no reader needs that started after this time: all before the newest checkpoint that is older."""
    versions, checkpoints = _listed(table)
    log = table / LOG
    old = [each for each in checkpoints if (log / f"{each:020d}{_CHECKPOINT}").stat().st_mtime * 1000 <= expired_ms]
    if not old:
        return
    for endings, numbers in ((_VERSION, versions), (_CHECKPOINT, checkpoints)):
        for number in (number for number in numbers if number < old[-1]):
            (log / f"{number:020d}{endings}").unlink()
