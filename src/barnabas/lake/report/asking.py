"""The content of the page, queried from a lake: top rows, totals and small answers; and files with all rows of each table.

Its one rule: only little data comes to the driver, whatever the size of the lake: top rows of tables, and answers of limited
size. Spark formats and writes the rows of the files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from barnabas.lake.report.chapters import QUERIES, SECTIONS
from barnabas.lake.report.chapters.changes import DRIFT_COLUMNS
from barnabas.lake.report.content import ReportContent, Rows, assemble
from barnabas.lake.report.queries import RANGE_SQL, RANGE_TABLE, totals_sql
from barnabas.lake.report.section import ALIKE, top_sql
from barnabas.lake.tables.all import TABLES
from barnabas.lake.tables.declaration import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from barnabas.lake.asking.opened import OpenLake


def drift_of(lake: OpenLake, file: Path, cluster_id: str) -> DataFrame:
    """Return how a cluster differs from a declaration file, with `DRIFT_COLUMNS`. Raises ValueError for an invalid file."""
    from pyspark.sql import functions as f

    return lake.drift(file, cluster_id=cluster_id).withColumn("cluster_id", f.lit(cluster_id))


Watch = Callable[[str, int, int, str], None]
"""Called with a stage, how much of it is done, of how much, and of what."""


def ignore(stage: str, done: int, total: int, unit: str) -> None:
    """Ignore progress reports."""


def make(lake: OpenLake, drift: DataFrame | None = None, watch: Watch = ignore) -> dict[str, DataFrame]:
    """Compute the gold tables that the page and its queries need, by name. `drift`, if given, has `DRIFT_COLUMNS`.

    Each is computed once, and Spark stores its rows without their plan: plans of gold tables are large, and later queries
    would repeat them. Tables that the lake has stored need nothing of that.
    """
    from pyspark import StorageLevel

    wanted = {*SECTIONS, *(table for query in QUERIES.values() for table in query.tables)}.intersection(TABLES)
    made: dict[str, DataFrame] = {}

    def keep(table: Table, frame: DataFrame) -> DataFrame:
        if table.layer != "gold" or table.name not in wanted:
            return frame
        made[table.name] = (
            frame if lake.is_stored(table.name) else frame.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
        )
        watch("computing tables", len(made), len(wanted), "tables")
        return made[table.name]

    kept = lake.keeping(keep)
    for name in sorted(wanted):
        kept[name]
    if drift is not None:
        made["drift"] = drift.select(*(column.name for column in DRIFT_COLUMNS))
    return made


def ask(lake: OpenLake, made: Mapping[str, DataFrame], folder: str, watch: Watch = ignore) -> ReportContent:
    """Return the content of the page; `folder` is the path of the files with all rows, relative to the page.

    Totals are queried first: tables without rows are not queried further.
    """
    for name in {*made, *(table for query in QUERIES.values() for table in query.tables), RANGE_TABLE}:
        (made[name] if name in made else lake[name]).createOrReplaceTempView(name)
    shown = [name for name in SECTIONS if name in made]
    totals = _rows(lake, totals_sql(shown))
    empty = set(shown).difference(row["name"] for row in totals)
    tables, asked = {}, len(shown) + len(QUERIES)
    for done, name in enumerate(shown):
        watch("asking", done, asked, "questions")
        columns, question = (TABLES[name].columns, TABLES[name].question) if name in TABLES else (DRIFT_COLUMNS, "")
        columns += (ALIKE,) if SECTIONS[name].alike else ()
        rows = [] if name in empty else _rows(lake, top_sql(SECTIONS[name]))
        tables[name] = Rows(columns, rows, 0, f"{folder}/{name}.csv", question)
    answers = {}
    for done, (name, query) in enumerate(QUERIES.items(), len(shown)):
        watch("asking", done, asked, "questions")
        answers[name] = [] if empty.issuperset(query.tables) else _rows(lake, query.sql)
    return assemble(_rows(lake, RANGE_SQL), tables, totals, answers)


_CSV = {
    "escape": '"',
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
}
"""Options for CSV that the csv modules of most languages can read."""


def write_rows(made: Mapping[str, DataFrame], folder: Path, watch: Watch = ignore) -> None:
    """Write all rows of the page's tables, each to a CSV file. Lists and structs are JSON in it."""
    folder.mkdir(parents=True, exist_ok=True)
    for done, (name, frame) in enumerate((name, made[name]) for name in SECTIONS if name in made):
        watch("writing files", done, len(made), "tables")
        with (folder / f"{name}.csv").open("wb") as file:
            file.write((",".join(frame.columns) + "\n").encode())
            if str(frame.sparkSession.sparkContext.master).startswith("local"):
                _copy_parts(_lines(frame), folder / f".{name}", file)
            else:  # executors on other machines may not have this folder
                file.writelines(f"{line}\n".encode() for (line,) in _lines(frame).toLocalIterator())


def _copy_parts(lines: DataFrame, parts: Path, file: BinaryIO) -> None:
    """Copy files that Spark writes in parallel: no rows come to the driver, whose memory is small."""
    lines.write.mode("overwrite").option("compression", "none").text(parts.absolute().as_uri())
    for part in sorted(parts.glob("part-*")):
        with part.open("rb") as source:
            shutil.copyfileobj(source, file, 1 << 20)
    shutil.rmtree(parts)


def _lines(frame: DataFrame) -> DataFrame:
    """Return each row as a line, in one column: Spark formats them faster than Python."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType, MapType, StructType

    texts = (
        f.to_json(field.name).alias(field.name)
        if isinstance(field.dataType, ArrayType | MapType | StructType)
        else f.col(f"`{field.name}`")
        for field in frame.schema
    )
    return frame.select(f.to_csv(f.struct(*texts), _CSV).alias("line"))


def _rows(lake: OpenLake, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = lake.spark.sql(sql).toArrow().to_pylist()
    return rows
