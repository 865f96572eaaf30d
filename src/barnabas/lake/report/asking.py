"""What the page needs, asked of a lake: top rows, totals and small answers; and all rows of each table as files beside it.

Its one rule: what comes to the driver is small, whatever the lake's size: top rows of tables, and answers that are cut.
Rows of the files are made into lines, and written, by Spark.
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
from barnabas.lake.report.section import top_sql
from barnabas.lake.tables.all import TABLES
from barnabas.lake.tables.declaration import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from barnabas.lake.asking.opened import OpenLake


def drift_of(lake: OpenLake, file: Path, cluster_id: str) -> DataFrame:
    """How a cluster differs from what a file declares, with `DRIFT_COLUMNS`. Raises ValueError for a wrong file."""
    from pyspark.sql import functions as f

    return lake.drift(file, cluster_id=cluster_id).withColumn("cluster_id", f.lit(cluster_id))


def make(
    lake: OpenLake, drift: DataFrame | None = None, watch: Callable[[int], None] = lambda done: None
) -> dict[str, DataFrame]:
    """The tables of gold that the page and its queries want, by name. `drift`, where there is one, has `DRIFT_COLUMNS`.

    Each is made once, whoever asks for it, and its rows are kept by Spark without how they were made: plans of gold are
    large, and what is asked of them after that is not.
    """
    from pyspark import StorageLevel

    wanted = {*SECTIONS, *(table for query in QUERIES.values() for table in query.tables)}.intersection(TABLES)
    made: dict[str, DataFrame] = {}

    def keep(table: Table, frame: DataFrame) -> DataFrame:
        if table.layer != "gold" or table.name not in wanted:
            return frame
        made[table.name] = frame.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
        watch(len(made))
        return made[table.name]

    kept = lake.keeping(keep)
    for name in sorted(wanted):
        kept[name]
    if drift is not None:
        made["drift"] = drift.select(*(column.name for column in DRIFT_COLUMNS))
    return made


def ask(lake: OpenLake, made: Mapping[str, DataFrame], folder: str) -> ReportContent:
    """The content of the page; `folder` is where the files of all rows are, seen from the page.

    How many rows there are is asked first: of tables without any, nothing more is.
    """
    for name in {*made, *(table for query in QUERIES.values() for table in query.tables), RANGE_TABLE}:
        (made[name] if name in made else lake[name]).createOrReplaceTempView(name)
    shown = [name for name in SECTIONS if name in made]
    totals = _rows(lake, totals_sql(shown))
    empty = set(shown).difference(row["name"] for row in totals)
    tables = {}
    for name in shown:
        columns, question = (TABLES[name].columns, TABLES[name].question) if name in TABLES else (DRIFT_COLUMNS, "")
        rows = [] if name in empty else _rows(lake, top_sql(SECTIONS[name]))
        tables[name] = Rows(columns, rows, 0, f"{folder}/{name}.csv", question)
    answers = {
        name: [] if empty.issuperset(query.tables) else _rows(lake, query.sql) for name, query in QUERIES.items()
    }
    return assemble(_rows(lake, RANGE_SQL), tables, totals, answers)


_CSV = {
    "escape": '"',
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
}
"""As the csv modules of most languages read it."""


def write_rows(made: Mapping[str, DataFrame], folder: Path) -> None:
    """All rows of the page's tables, each as a file of comma-separated values; lists and structs are JSON in them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in ((name, made[name]) for name in SECTIONS if name in made):
        with (folder / f"{name}.csv").open("wb") as file:
            file.write((",".join(frame.columns) + "\n").encode())
            if str(frame.sparkSession.sparkContext.master).startswith("local"):
                _copy_parts(_lines(frame), folder / f".{name}", file)
            else:  # executors on other machines may not have this folder
                file.writelines(f"{line}\n".encode() for (line,) in _lines(frame).toLocalIterator())


def _copy_parts(lines: DataFrame, parts: Path, file: BinaryIO) -> None:
    """Through files that Spark writes, all of its tasks at once: nothing comes to the driver, whose memory is small."""
    lines.write.mode("overwrite").option("compression", "none").text(parts.absolute().as_uri())
    for part in sorted(parts.glob("part-*")):
        with part.open("rb") as source:
            shutil.copyfileobj(source, file, 1 << 20)
    shutil.rmtree(parts)


def _lines(frame: DataFrame) -> DataFrame:
    """Each row as a line, in one column: Spark makes them faster than Python, and they are less to hand over."""
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
