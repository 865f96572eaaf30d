"""What the page needs, asked of a lake: top rows, totals and small answers; and all rows of each table as files beside it.

Its one rule: what comes to the driver is small, whatever the lake's size: top rows of tables, and answers that are cut.
The files are written row by row.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.lake.report.content import RANGE_SQL, SHOWN, ReportContent, Rows, assemble, top_sql, totals_sql
from barnabas.lake.report.queries import QUERIES
from barnabas.lake.tables.all import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from barnabas.lake.opened import OpenLake


@contextmanager
def kept(lake: OpenLake) -> Iterator[list[str]]:
    """The names of the page's tables, whose rows are kept meanwhile: each is asked for its top, its number, and all of it."""
    names = [name for name in SHOWN if name in TABLES]
    for name in names:
        lake[name].cache()
    try:
        yield names
    finally:
        for name in names:
            lake[name].unpersist()


def ask(
    lake: OpenLake, names: Iterable[str], folder: str, watch: Callable[[int], None] = lambda done: None
) -> ReportContent:
    """The content of the page; `folder` is where the files of all rows are, seen from the page."""
    tables = {}
    for done, name in enumerate(names, 1):
        watch(done)
        table = TABLES[name]
        tables[name] = Rows(table.columns, _rows(lake.sql(top_sql(name))), 0, f"{folder}/{name}.csv", table.question)
    answers = {
        name: _rows(lake.sql(query.sql))
        for name, query in QUERIES.items()
        if all(each in TABLES for each in query.tables)
    }
    return assemble(_rows(lake.sql(RANGE_SQL)), tables, _rows(lake.sql(totals_sql(tables))), answers)


def write_rows(lake: OpenLake, names: Iterable[str], folder: Path) -> None:
    """All rows of these tables, each as a file of comma-separated values; lists and structs are JSON in them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        frame = lake[name]
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(frame.columns)
            for row in frame.toLocalIterator():
                writer.writerow([_text(value) for value in row])


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows


def _text(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return json.dumps(value, default=str) if isinstance(value, list | dict | tuple) else value
