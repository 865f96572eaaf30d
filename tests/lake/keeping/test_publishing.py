"""Tables of a lake as other programs read them: the Delta logs that follow from the manifests."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow import parquet

from barnabas.lake.keeping import delta_log, publishing
from barnabas.lake.keeping.folders import Folder, LakeError, write_table
from barnabas.lake.keeping.manifest import BatchDone, StreamState, TableChange
from barnabas.lake.keeping.store import Lake, Writer
from tests.lake.keeping.lake_writer import COLUMNS, STREAM, compact, directory_of, rows, write_batch, write_part

TABLE = "bronze/added"
NESTED = {
    "name": "string",
    "at": "timestamp",
    "replicas": "array<int>",
    "settings": "map<string, array<string>>",
    "endpoints": "array<struct<name: string, host: string, port: int>>",
    "raw": "binary",
    "level": "smallint",
    "share": "double",
    "fenced": "boolean",
}
ROWS: list[dict[str, Any]] = [
    {
        "name": "a",
        "at": datetime(2026, 1, 31, 12, 0, 0, 123_456, UTC),
        "replicas": [1, 2],
        "settings": {"k": ["v"]},
        "endpoints": [{"name": "P", "host": "h", "port": 1}],
        "raw": b"\x00\xff",
        "level": 3,
        "share": 0.5,
        "fenced": True,
    },
    dict.fromkeys(NESTED),
]


def versions(writer: Writer) -> dict[str, int]:
    return {path: table.version for path, table in writer.manifest.tables.items()}


def log_of(writer: Writer) -> list[str]:
    return sorted(file.name for file in (writer.data / TABLE / delta_log.LOG).files())


def newest(data: Folder) -> list[int]:
    return sorted(DeltaTable(str(data / TABLE)).to_pyarrow_table().column("number").to_pylist())


def commit(writer: Writer, batch_id: int, columns: dict[str, str], table: pa.Table) -> None:
    part = writer.stage("silver/things")
    write_table(writer.data, f"{part}/part-0.parquet", table)
    change = TableChange(columns, (part,))
    writer.commit(BatchDone(STREAM, StreamState(batch_id, "query", 1), {"silver/things": change}))


def test_every_type_is_read_by_other_programs(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("name", pa.string()),
            ("at", pa.timestamp("us", "UTC")),
            ("replicas", pa.list_(pa.int32())),
            ("settings", pa.map_(pa.string(), pa.list_(pa.string()))),
            ("endpoints", pa.list_(pa.struct({"name": pa.string(), "host": pa.string(), "port": pa.int32()}))),
            ("raw", pa.binary()),
            ("level", pa.int16()),
            ("share", pa.float64()),
            ("fenced", pa.bool_()),
        ]
    )
    with Writer(tmp_path) as writer:
        writer.open()
        commit(writer, 0, NESTED, pa.Table.from_pylist(ROWS, schema))
    table = DeltaTable(str(writer.data / "silver/things"))
    assert all(field.nullable for field in table.schema().fields)
    assert [field.name for field in table.schema().fields] == list(NESTED)
    found = pa.table(table.to_pyarrow_table()).to_pylist()
    assert [{**row, "settings": dict(row["settings"] or ()) or None} for row in found] == ROWS
    frame = polars.read_delta(str(writer.data / "silver/things")).select("name", "at", "replicas", "endpoints", "raw")
    assert frame.to_dicts() == [{name: row[name] for name in frame.columns} for row in ROWS]
    columns = 'name, epoch_us("at"), replicas, settings'
    listed = duckdb.connect().execute(f"select {columns} from read_parquet({table.file_uris()})").fetchall()
    assert listed == [("a", 1_769_860_800_123_456, [1, 2], {"k": ["v"]}), (None, None, None, None)]


def test_a_version_is_that_of_one_commit_and_an_unchanged_table_has_no_new_one(tmp_path: Path) -> None:
    with Writer(tmp_path) as writer:
        writer.open()
        write_batch(writer, 0)
        assert versions(writer) == {TABLE: 0, "silver/present": 0}
        write_batch(writer, 1)
        first = writer.manifest
        write_batch(writer, 2)
        compact(writer)
        assert versions(writer) == {TABLE: 3, "silver/present": 2}
        lake = Lake(tmp_path)
        history = DeltaTable(str(lake.data / TABLE)).history()
        assert [each["userMetadata"] for each in history] == [f"commit {number} of the lake" for number in (4, 3, 2, 1)]
        # Removed files stay for the stated time, so an older version can still be read to its end.
        assert DeltaTable(str(lake.data / TABLE), version=first.tables[TABLE].version).to_pyarrow_table().num_rows == 2
        kept = DeltaTable(str(lake.data / TABLE)).metadata().configuration["delta.deletedFileRetentionDuration"]
        assert kept == "interval 900 seconds"
        assert DeltaTable(str(lake.data / TABLE)).transaction_version(delta_log.APP_ID) == 4


def test_an_added_column_is_null_in_older_rows(tmp_path: Path) -> None:
    with Writer(tmp_path) as writer:
        writer.open()
        commit(writer, 0, COLUMNS, pa.table({"number": pa.array([1], pa.int64())}))
        wider = {**COLUMNS, "word": "string"}
        commit(writer, 1, wider, pa.table({"number": pa.array([2], pa.int64()), "word": ["two"]}))
        found = polars.read_delta(str(writer.data / "silver/things")).sort("number").to_dicts()
    assert found == [{"number": 1, "word": None}, {"number": 2, "word": "two"}]


def test_a_long_log_gets_checkpoints_and_loses_what_is_older_than_the_grace(tmp_path: Path) -> None:
    now_ms = 1_000_000_000
    count = publishing.CHECKPOINT_VERSIONS + 2
    with Writer(tmp_path, clock_ms=lambda: now_ms, grace_s=10) as writer:
        writer.open()
        for batch_id in range(count):
            write_batch(writer, batch_id)
        writer.sweep()
        assert "_last_checkpoint" in log_of(writer)
        assert len([name for name in log_of(writer) if name.endswith(".json")]) == count, "within the grace all stay"
        now_ms += 10_000
        write_batch(writer, count)
        writer.sweep()
        assert [name for name in log_of(writer) if name.endswith(".json")] == [
            f"{count - 1:020d}.json",
            f"{count:020d}.json",
        ]
        assert newest(writer.data) == [*range(count + 1)]
    with Writer(tmp_path, clock_ms=lambda: now_ms, grace_s=10) as writer:
        before = log_of(writer.open())
        assert delta_log.read_log(writer.data / TABLE) == delta_log.Found(
            count,
            delta_log.schema_text(COLUMNS),
            frozenset(
                f"{part.removeprefix(TABLE)[1:]}/numbers.parquet" for part in writer.manifest.tables[TABLE].parts
            ),
            count + 1,
        )
        assert log_of(writer) == before, "a log that is whole is left alone"


@pytest.mark.parametrize("damage", ["missing", "torn", "behind", "foreign"])
def test_a_log_that_is_not_the_manifests_is_written_anew(tmp_path: Path, damage: str) -> None:
    with Writer(tmp_path) as writer:
        writer.open()
        for batch_id in range(4):
            write_batch(writer, batch_id)
    log = directory_of(writer.data) / TABLE / delta_log.LOG
    last = log / f"{3:020d}.json"
    if damage == "missing":
        for file in log.iterdir():
            file.unlink()
    elif damage == "torn":
        last.write_text(last.read_text()[:100])
    elif damage == "behind":
        last.unlink()
        (log / f"{2:020d}.json").unlink()
    else:
        (log / f"{4:020d}.json").write_text('{"remove":{"path":"x","dataChange":true}}\n')
    with Writer(tmp_path) as writer:
        writer.open()
        assert newest(writer.data) == [0, 1, 2, 3]
        assert DeltaTable(str(writer.data / TABLE)).version() == 3
        write_batch(writer, 4)
        assert newest(writer.data) == [0, 1, 2, 3, 4]
    assert rows(lake := Lake(tmp_path), lake.manifest())[TABLE] == [0, 1, 2, 3, 4]


def test_a_program_that_writes_to_a_table_is_noticed_and_its_rows_go(tmp_path: Path) -> None:
    with Writer(tmp_path) as writer:
        writer.open()
        write_batch(writer, 0)
        strange = directory_of(writer.data) / TABLE / delta_log.LOG / f"{1:020d}.json"
        strange.write_text(json.dumps({"commitInfo": {"operation": "WRITE"}}))
        with pytest.raises(LakeError, match="another program has written to this table"):
            write_batch(writer, 1)
    with Writer(tmp_path) as writer:
        writer.open()
        assert newest(writer.data) == [0, 1], "the batch was committed, and the log follows"


def test_of_two_writers_the_second_to_commit_fails_and_changes_nothing(tmp_path: Path) -> None:
    """A lock that is lost, as on a network file system: here its file is removed."""
    with Writer(tmp_path) as stale:
        stale.open()
        write_batch(stale, 0)
        (tmp_path / "lock").unlink()
        with Writer(tmp_path) as writer:
            writer.open()
            write_batch(writer, 1)
            with pytest.raises(LakeError, match="another process has written to this lake"):
                write_batch(stale, 1)
            write_batch(writer, 2)
            assert newest(writer.data) == [0, 1, 2]
            lake = Lake(tmp_path)
            assert rows(lake, lake.manifest())[TABLE] == [0, 1, 2]


def test_a_lake_without_delta_logs_is_rebuilt_and_keeps_its_observations(tmp_path: Path) -> None:
    at = datetime(2026, 1, 31, 12, 0, 0, 123_456, UTC)
    columns = {"number": "bigint", "observed_at": "timestamp"}
    with Writer(tmp_path) as writer:
        writer.open()
        part = write_part(writer, "bronze/seen", [7]).rpartition("/")[0]
        (file,) = publishing.files_of(writer.data, (part,))
        old = directory_of(writer.data) / file.name
        observed = pa.table({"number": [7], "observed_at": pa.array([at], pa.timestamp("us", "UTC"))})
        parquet.write_table(observed, old, use_deprecated_int96_timestamps=True)
        old.with_name(f".{old.name}.crc").write_text("of Spark")
        change = {"bronze/seen": TableChange(columns, (part,))}
        writer.commit(BatchDone("cluster/seen", StreamState(0, "query", 1), change))
    settings = json.loads((tmp_path / "lake.json").read_text())
    (tmp_path / "lake.json").write_text(json.dumps({**settings, "format": 1}))
    with pytest.raises(LakeError, match="has format 1, this version needs 2; barnabas lake rebuild"):
        Lake(tmp_path)
    with Writer(tmp_path) as writer:
        writer.open_anew()
        writer.take_along(["bronze/seen"], lambda stream: True)
        writer.swap()
    lake = Lake(tmp_path)
    found = polars.read_delta(str(lake.data / "bronze/seen"))
    assert found.to_dicts() == [{"number": 7, "observed_at": at}]
    (file,) = publishing.files_of(lake.data, lake.manifest().tables["bronze/seen"].parts)
    new = directory_of(lake.data) / file.name
    assert "INT96" not in str(parquet.ParquetFile(new).schema)
    assert not new.with_name(f".{new.name}.crc").exists()


def test_a_type_that_is_none_is_refused() -> None:
    for kind in ("map<string>", "list<int>", "array<int", "array<int, int>"):
        with pytest.raises(ValueError, match="not a type of Spark"):
            delta_log.schema_text({"column": kind})
