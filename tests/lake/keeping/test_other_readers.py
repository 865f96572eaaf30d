"""Every table of a lake of real clusters, read in place by other programs: the same rows as Spark reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars
from deltalake import DeltaTable

from barnabas.lake.keeping.store import Lake
from barnabas.lake.keeping.table_reading import read_table
from barnabas.lake.tables.all import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def plain(value: Any) -> Any:
    """What all of them mean by a value: a time in microseconds, and maps and structs as sorted pairs."""
    if isinstance(value, datetime):
        return (value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)).isoformat()
    if isinstance(value, Mapping):
        return sorted((str(name), plain(member)) for name, member in value.items())
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    return [plain(member) for member in value] if isinstance(value, list | tuple) else value


def rows(found: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(str([(name, plain(row[name])) for name in sorted(row)]) for row in found)


def test_other_programs_read_the_same_rows(spark: SparkSession, lake: Path) -> None:
    opened = Lake(lake)
    manifest = opened.manifest()
    seen = 0
    for table in (table for table in TABLES.values() if table.path in manifest.tables):
        place = str(opened.data / table.path)
        ours = [row.asDict(recursive=True) for row in read_table(spark, opened.data, manifest, table).collect()]
        expected = rows(ours)
        pinned = DeltaTable(place, version=manifest.tables[table.path].version)
        assert rows(polars.read_delta(pinned).to_dicts()) == expected, table.name
        assert pinned.to_pyarrow_table().num_rows == len(ours), table.name
        if files := pinned.file_uris():
            names = ", ".join(f'"{field.name}"' for field in pinned.schema().fields)
            read = f"read_parquet({files}, union_by_name = true, hive_partitioning = false)"
            found = duckdb.sql(f"select {names} from {read}")
            assert found is not None
            assert rows(found.to_arrow_table().to_pylist(maps_as_pydicts="strict")) == expected, table.name
        seen += len(ours)
    assert seen > 5_000
