"""Files beside the page: every row, as the csv module reads it."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.lake.report.asking import write_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ["orders", ' a "b", c ', "two\nlines", "=1+1", "back\\slash", "", None, "\u202eñ"]


def test_every_value_is_read_back_from_the_files(spark: SparkSession, tmp_path: Path) -> None:
    time = datetime(2026, 11, 16, 8, 0, 0, 250_000, tzinfo=UTC)
    rows: list[tuple[Any, ...]] = [(name, n, n / 4, [n, 7], time, n % 2 == 0) for n, name in enumerate(NAMES)]
    schema = "name string, n bigint, share double, replicas array<int>, time timestamp, is_over boolean"
    tables = {"changes": spark.createDataFrame(rows, schema), "acl_grants": spark.createDataFrame([], schema)}
    write_rows(tables, tmp_path / "rows")
    with (tmp_path / "rows" / "changes.csv").open(newline="", encoding="utf-8") as file:
        found = sorted(csv.DictReader(file), key=lambda row: int(row["n"]))
    assert [row["name"] for row in found] == [name or "" for name in NAMES]
    assert [float(row["share"]) for row in found] == [n / 4 for n in range(len(NAMES))]
    assert [json.loads(row["replicas"]) for row in found] == [[n, 7] for n in range(len(NAMES))]
    assert {datetime.fromisoformat(row["time"]) for row in found} == {time}
    assert [row["is_over"] for row in found[:2]] == ["true", "false"]
    assert (tmp_path / "rows" / "acl_grants.csv").read_text() == "name,n,share,replicas,time,is_over\n"
