"""A stream small enough to see through: a file of lines `key value`, what each key's value was when, in two tables.

The line `!` cannot be read. A line without a value ends its key. Offsets are the numbers of lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from barnabas.lake.declared_column import Column, ddl
from barnabas.lake.keeping.feeds import Feed
from barnabas.lake.tables.declaration import Mode, Reference, Table
from barnabas.lake.tables.streams import Stream

COLUMNS = (
    Column("cluster_id", "string", ""),
    Column("offset", "bigint", ""),
    Column("key", "string", ""),
    Column("value", "string", ""),
)
FACTS = (
    Column("cluster_id", "string", ""),
    Column("kind", "string", ""),
    Column("key", "string", ""),
    Column("value", "string", ""),
    Column("valid_from_offset", "bigint", ""),
    Column("valid_to_offset", "bigint", ""),
)


class Words(DataSource):
    @classmethod
    def name(cls) -> str:
        return "words"

    def schema(self) -> str:
        return ddl(COLUMNS)

    def streamReader(self, schema: Any) -> WordsReader:  # noqa: N802
        return WordsReader(self.options)


class Lines(InputPartition):
    def __init__(self, begin: int, end: int) -> None:
        self.begin, self.end = begin, end


class WordsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Writes down which lines were read, one file a piece, in the directory `seen` beside the words."""

    def __init__(self, options: Any) -> None:
        self.path, self.cluster_id = Path(options["path"]), options["clusterId"]
        self.rows = int(options.get("maxRowsPerTrigger", 0))
        self.last: int | None = None

    def _count(self) -> int:
        return len(self.path.read_text().splitlines())

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"line": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self.rows) if self.rows else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.last = self._count()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        last = self._count() if self.last is None else self.last
        return {"line": min(last, start["line"] + limit.max_rows) if isinstance(limit, ReadMaxRows) else last}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [Lines(start["line"], end["line"])] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, Lines)
        seen = self.path.with_name("seen")
        seen.mkdir(exist_ok=True)
        (seen / f"{partition.begin}-{partition.end}").touch()
        lines = self.path.read_text().splitlines()
        for offset in range(partition.begin, partition.end):
            key, _, value = lines[offset].partition(" ")
            if key == "!":
                yield self.cluster_id, None, None, None, f"line {offset} is broken"
            else:
                yield self.cluster_id, offset, key, value or None, None


def fold(records: DataFrame, open_facts: DataFrame, *, shards: int) -> DataFrame:
    new = records.select("cluster_id", "key", "value", f.col("offset").alias("valid_from_offset"))
    rows = new.unionByName(open_facts.where("kind = 'words'").select(*new.columns))
    order = Window.partitionBy("cluster_id", "key").orderBy("valid_from_offset")
    facts = rows.withColumn("valid_to_offset", f.lead("valid_from_offset").over(order)).where("value is not null")
    words = facts.withColumn("kind", f.lit("words"))
    letters = facts.where("length(value) = 1").withColumn("kind", f.lit("letters"))
    names = [column.name for column in FACTS]
    return words.select(*names).unionByName(letters.select(*names))


_TABLE_COLUMNS = tuple(column for column in FACTS if column.name != "kind")


def _build(facts: DataFrame) -> DataFrame:
    return facts.select(*(column.name for column in _TABLE_COLUMNS))


def _reopen(name: str, rows: DataFrame) -> DataFrame:
    return rows.withColumn("kind", f.lit(name))


def _silver(name: str, *references: Reference) -> Table:
    keys = ("cluster_id", "key", "valid_from_offset")
    return Table(
        name, "silver", "", _TABLE_COLUMNS, ("facts",), _build, Mode.HISTORY, keys, ("value",), tuple(references),
        reopen=partial(_reopen, name),
    )  # fmt: skip


RECORDS = Table(
    "lines", "bronze", "", COLUMNS, ("records",), lambda rows: rows, Mode.APPEND, ("cluster_id", "offset"), ("offset",)
)
WORDS = _silver("words")
LETTERS = _silver("letters", Reference(("cluster_id", "key"), "words", ("cluster_id", "key")))
STREAM = Stream("words", "words", RECORDS, FACTS, fold, (WORDS, LETTERS))


def feed(path: Path, cluster_id: str = "c", **options: str) -> Feed:
    return Feed(cluster_id, STREAM, {"path": str(path), "clusterId": cluster_id, **options})


def expected(lines: list[str]) -> list[tuple[str, str, int, int | None]]:
    """Rows of the table words: key, value, from, to."""
    facts: list[tuple[str, str, int, int | None]] = []
    last: dict[str, tuple[str, int]] = {}
    for offset, line in enumerate(lines):
        key, _, value = line.partition(" ")
        if key == "!":
            continue
        if key in last:
            facts.append((key, *last.pop(key), offset))
        if value:
            last[key] = (value, offset)
    return sorted(facts + [(key, *place, None) for key, place in last.items()], key=str)
