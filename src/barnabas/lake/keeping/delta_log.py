"""The Delta log of a table: which Parquet files below a directory are its rows, version by version. Knows no lake.

    _delta_log/00000000000000000007.json                 the files that version 7 adds and removes
    _delta_log/00000000000000000032.checkpoint.parquet   all files of version 32, so that older versions need not be read
    _delta_log/_last_checkpoint                          the newest checkpoint

Its one rule: a version is written once, by creating a file that did not exist. It is not flushed: a log that a power failure
damaged is written anew by whoever knows the table (`publishing`). The format is the first version of Delta's protocol, which
every reader knows: https://github.com/delta-io/delta/blob/master/PROTOCOL.md. Times are microseconds, all fields nullable.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from barnabas.lake.declared_column import Nested, parse_type
from barnabas.lake.keeping.folders import Folder, read_table

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


def write_version(table: Folder, change: Change) -> None:
    """Write one version. Raises FileExistsError if it is there already."""
    content = "".join(f"{json.dumps(action, separators=(',', ':'))}\n" for action in _actions(change))
    table.create(_version_name(change.version), content.encode(), lasts=False)


def _version_name(version: int) -> str:
    return f"{LOG}/{version:020d}{_VERSION}"


def _checkpoint_name(version: int) -> str:
    return f"{LOG}/{version:020d}{_CHECKPOINT}"


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


def write_checkpoint(table: Folder, change: Change) -> None:
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
    content = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows, _checkpoint_schema()), content)
    table.replace(_checkpoint_name(change.version), content.getvalue())
    pointer = {"version": change.version, "size": len(rows)}
    table.replace(f"{LOG}/{_LAST_CHECKPOINT}", json.dumps(pointer).encode())


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


def read_log(table: Folder) -> Found | None:
    """Return the newest version of a table; None if it has no log. Raises DamagedError."""
    versions, checkpoints = _listed(table)
    if not versions and not checkpoints:
        return None
    start = checkpoints[-1] if checkpoints else -1
    wanted = [version for version in versions if version > start]
    if wanted != list(range(start + 1, start + 1 + len(wanted))):
        raise DamagedError(f"{table}/{LOG} lacks a version after {start}")
    files: set[str] = set()
    schema, commit = "", -1
    try:
        for action in _read_actions(table, start, wanted):
            if added := action.get("add"):
                files.add(unquote(added["path"]))
            elif removed := action.get("remove"):
                files.discard(unquote(removed["path"]))
            elif metadata := action.get("metaData"):
                schema = metadata["schemaString"]
            elif (txn := action.get("txn")) and txn["appId"] == APP_ID:
                commit = txn["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"{table}/{LOG} cannot be read: {error}") from None
    return Found(wanted[-1] if wanted else start, schema, frozenset(files), commit)


def _read_actions(table: Folder, checkpoint: int, versions: Iterable[int]) -> Iterator[dict[str, Any]]:
    if checkpoint >= 0:
        yield from read_table(table, _checkpoint_name(checkpoint)).to_pylist()
    for version in versions:
        yield from _actions_of(table, version)


def _actions_of(table: Folder, version: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in table.read(_version_name(version)).decode().splitlines()]


def _listed(table: Folder) -> tuple[list[int], list[int]]:
    """Return the versions, and those with a checkpoint, in order."""
    names = [file.name.removeprefix(f"{LOG}/") for file in table.files(LOG)]
    found = []
    for ending in (_VERSION, _CHECKPOINT):
        numbers = (name.removesuffix(ending) for name in names if name.endswith(ending))
        found.append(sorted(int(number) for number in numbers if number.isdecimal()))
    return found[0], found[1]


def since_checkpoint(table: Folder) -> int:
    """Return how many versions a reader has to read one by one."""
    versions, checkpoints = _listed(table)
    start = checkpoints[-1] if checkpoints else -1
    return sum(version > start for version in versions)


def trim(table: Folder, expired_ms: int) -> None:
    """Remove what no reader needs that started after this time: all before the newest checkpoint that is older."""
    table.remove(file.name for file in table.files(LOG) if file.name.endswith(".tmp"))  # of a killed writer
    versions, checkpoints = _listed(table)
    first = min([*versions, *checkpoints], default=0)
    for last in (each for each in reversed(checkpoints) if each > first):
        if _time_of(table, last) <= expired_ms:
            table.remove(_version_name(each) for each in versions if each < last)
            table.remove(_checkpoint_name(each) for each in checkpoints if each < last)
            return


def _time_of(table: Folder, version: int) -> int:
    """Return when a version was written, which it says itself: not every place of a lake lets times of files be chosen."""
    return int(
        next(action["commitInfo"]["timestamp"] for action in _actions_of(table, version) if "commitInfo" in action)
    )
