"""A manifest: the content of a lake at one commit, as the parts of each table and the progress of each stream. Pure.

Its one rule: a manifest is an immutable value with all there is to know; `after` returns the next one. A part is a directory of
Parquet files, named by its path below the lake's data. Parts never change: a commit only changes which parts are named. A table
has a version of its own, that of its Delta log, which a commit raises if it changes the table: so a manifest states which
versions belong together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from urllib.parse import quote

Parts = tuple[str, ...]

_LAYERS = ("bronze", "silver", "gold")


class NotStoredError(Exception):
    """Only Spark can answer this. The text says why."""


class IncompatibleError(Exception):
    """A table of the lake has columns that its declaration lacks, or that have another type there."""


@dataclass(frozen=True, slots=True)
class TableState:
    columns: Mapping[str, str]
    """The type of each column that a part may have, in order."""
    lasting: Parts = ()
    """Parts whose rows stay: appended ones, and those of facts that have ended."""
    present: Mapping[str, Parts] = field(default_factory=dict)
    """For each stream, the parts that its next batch replaces: open facts, or all rows of a table in mode FULL."""
    version: int = 0
    """The version of its Delta log."""
    created_ms: int = 0
    made_of: Mapping[str, int] = field(default_factory=dict)
    """Of a gold table: the versions of the tables that it was computed from."""
    made_by: str = ""
    """Of a gold table: the version of barnabas that computed it."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """Of a gold table: digests of what it uses of tables of which it does not use everything."""

    @property
    def parts(self) -> Parts:
        return self.lasting + tuple(part for parts in self.present.values() for part in parts)


@dataclass(frozen=True, slots=True)
class StreamState:
    batch_id: int
    """The last batch that is in the tables."""
    query_id: str
    """The Spark query whose checkpoint counts these batches."""
    rows: int
    """Number of records read so far."""
    facts: Parts = ()
    """All facts that were open after that batch: the next one continues from them."""
    offsets: str = ""
    """The source's offsets after it, as the source writes them."""


@dataclass(frozen=True, slots=True)
class Manifest:
    version: int
    time_ms: int
    tables: Mapping[str, TableState] = field(default_factory=dict)
    streams: Mapping[str, StreamState] = field(default_factory=dict)

    def parts(self) -> Iterator[str]:
        for table in self.tables.values():
            yield from table.parts
        for stream in self.streams.values():
            yield from stream.facts


EMPTY = Manifest(0, 0)


class TableChange(NamedTuple):
    """The changes that one batch makes to one table."""

    columns: Mapping[str, str]
    added: Parts = ()
    present: Parts | None = None
    """The new open parts of this stream; None leaves the old ones."""


class BatchDone(NamedTuple):
    """One batch of a stream, ready to be committed."""

    stream: str
    state: StreamState
    tables: Mapping[str, TableChange]


def after(manifest: Manifest, batch: BatchDone, time_ms: int) -> Manifest:
    """Return the manifest with one more batch. Raises IncompatibleError."""
    tables = dict(manifest.tables)
    for path, change in batch.tables.items():
        before = tables.get(path) or TableState({}, version=-1, created_ms=time_ms)
        present = dict(before.present)
        if change.present is not None:
            present[batch.stream] = change.present
        columns = merged_columns(path, before.columns, change.columns)
        tables[path] = _next(
            before, replace(before, columns=columns, lasting=before.lasting + change.added, present=present)
        )
    streams = {**manifest.streams, batch.stream: batch.state}
    return Manifest(manifest.version + 1, time_ms, tables, streams)


def _next(before: TableState, after: TableState) -> TableState:
    """Return the table with the next version if it is new, or has other columns or parts than before."""
    is_same = before.version >= 0 and (before.columns, before.parts) == (after.columns, after.parts)
    return after if is_same else replace(after, version=before.version + 1)


class Made(NamedTuple):
    """A gold table that was computed, or the rows to add to it."""

    columns: Mapping[str, str]
    parts: Parts
    made_of: Mapping[str, int]
    is_whole: bool = True
    """Whether the parts replace those that it has."""
    digests: Mapping[str, str] = {}


def after_gold(manifest: Manifest, made: Mapping[str, Made], made_by: str, time_ms: int) -> Manifest:
    """Return the manifest with gold tables computed anew."""
    tables = dict(manifest.tables)
    for path, gold in made.items():
        before = tables.get(path) or TableState({}, version=-1, created_ms=time_ms)
        parts = gold.parts if gold.is_whole else before.lasting + gold.parts
        tables[path] = _next(
            before,
            replace(
                before,
                columns=dict(gold.columns),
                lasting=parts,
                made_of=dict(gold.made_of),
                made_by=made_by,
                digests=dict(gold.digests),
            ),
        )
    return Manifest(manifest.version + 1, time_ms, tables, manifest.streams)


def versions_of(manifest: Manifest, paths: Iterable[str]) -> dict[str, int]:
    """Return the versions of tables; -1 for those that the lake does not have."""
    return {path: state.version if (state := manifest.tables.get(path)) else -1 for path in paths}


def is_current(manifest: Manifest, path: str, made_by: str) -> bool:
    """Return whether a gold table is stored, and was computed from the tables as they are, by this version."""
    state = manifest.tables.get(path)
    if state is None or not state.made_of or state.made_by != made_by:
        return False
    return versions_of(manifest, state.made_of) == state.made_of


def stored(manifest: Manifest, name: str, made_by: str) -> TableState:
    """Return the table of this name. Raises NotStoredError if it is not stored, or is gold that is not current."""
    for layer in _LAYERS:
        path = f"{layer}/{name}"
        if (state := manifest.tables.get(path)) is None:
            continue
        if layer == "gold" and not is_current(manifest, path, made_by):
            raise NotStoredError(f"records were added since {name} was last computed")
        return state
    raise NotStoredError(f"{name} is not stored in the lake")


def stored_names(manifest: Manifest, made_by: str) -> list[str]:
    """Return the names of all tables that can be read as they are stored."""
    return [
        path.partition("/")[2]
        for path in manifest.tables
        if not path.startswith("gold/") or is_current(manifest, path, made_by)
    ]


def after_compaction(manifest: Manifest, table: str, merged: Parts, into: Parts, time_ms: int) -> Manifest:
    """Return the manifest with the parts `into` in place of `merged`, which have the same rows."""
    state = manifest.tables[table]
    gone, first = set(merged), state.lasting.index(merged[0])
    kept = [part for part in state.lasting if part not in gone]
    lasting = (*kept[:first], *into, *kept[first:])
    after = _next(state, replace(state, lasting=lasting))
    # Gold tables that were computed from it are as current as before: its rows are the same.
    tables = {
        path: replace(gold, made_of={**gold.made_of, table: after.version})
        if gold.made_of.get(table) == state.version
        else gold
        for path, gold in manifest.tables.items()
    }
    tables[table] = after
    return replace(manifest, version=manifest.version + 1, time_ms=time_ms, tables=tables)


def with_others(
    manifest: Manifest, tables: Mapping[str, TableState], streams: Mapping[str, StreamState], time_ms: int
) -> Manifest:
    """Return the manifest with tables and streams of another lake added. The tables begin with their first version."""
    added = {path: replace(table, version=0, created_ms=time_ms) for path, table in tables.items()}
    return Manifest(manifest.version + 1, time_ms, {**manifest.tables, **added}, {**manifest.streams, **streams})


def stream_path(stream: str) -> str:
    """Return the relative path for the files of a stream (`cluster/source`)."""
    cluster_id, _, name = stream.partition("/")
    return f"{quote(cluster_id, safe='')}/{name}"


def merged_columns(table: str, there: Mapping[str, str], declared: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of a table after declared ones were added. Raises IncompatibleError for any other difference."""
    for name, kind in there.items():
        if name not in declared:
            raise IncompatibleError(f"table {table} has a column {name} that this version does not declare")
        if declared[name] != kind:
            raise IncompatibleError(
                f"column {name} of table {table} is {kind} in the lake, but declared as {declared[name]}"
            )
    return {**there, **declared}


def to_text(manifest: Manifest) -> str:
    document = {
        "version": manifest.version,
        "time_ms": manifest.time_ms,
        "tables": {
            path: {
                "columns": dict(table.columns),
                "lasting": table.lasting,
                "present": dict(table.present),
                "version": table.version,
                "created_ms": table.created_ms,
                **({"made_of": dict(table.made_of), "made_by": table.made_by} if table.made_of else {}),
                **({"digests": dict(table.digests)} if table.digests else {}),
            }
            for path, table in manifest.tables.items()
        },
        "streams": {
            name: {
                "batch_id": state.batch_id,
                "query_id": state.query_id,
                "rows": state.rows,
                "facts": state.facts,
                "offsets": state.offsets,
            }
            for name, state in manifest.streams.items()
        },
    }
    return json.dumps(document, indent=1)


def from_text(text: str) -> Manifest:
    """Parse a manifest, also one without versions of tables, of the first format. Raises ValueError or KeyError."""
    document: dict[str, Any] = json.loads(text)
    tables = {
        path: TableState(
            table["columns"],
            tuple(table["lasting"]),
            {stream: tuple(parts) for stream, parts in table["present"].items()},
            table.get("version", 0),
            table.get("created_ms", 0),
            table.get("made_of", {}),
            table.get("made_by", ""),
            table.get("digests", {}),
        )
        for path, table in document["tables"].items()
    }
    streams = {
        name: StreamState(state["batch_id"], state["query_id"], state["rows"], tuple(state["facts"]), state["offsets"])
        for name, state in document["streams"].items()
    }
    return Manifest(document["version"], document["time_ms"], tables, streams)
