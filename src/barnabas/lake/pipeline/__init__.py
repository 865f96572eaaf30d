"""The tables of the lake as a declarative pipeline of Spark (`spark-pipelines`, Spark 4.3).

A thin wrapper. Records are streaming tables, which grow with each run. Facts and tables are materialized views, computed anew
in each run with the functions of the lake's runner. It has only what Spark's pipelines offer: no checks, no common commit of
all tables, no continuing from open rows. docs/lake.md lists its requirements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from barnabas.lake.declared_column import Column, ddl
from barnabas.lake.keeping.feeds import Feed
from barnabas.lake.tables.streams import ERROR, Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from barnabas.lake.tables.declaration import Table

PATHS = "spark.barnabas.paths"
"""The setting with the directories to read, separated by commas."""
OPTIONS = "spark.barnabas.options."
"""The prefix of settings that are options of the data sources."""
SHARDS = "spark.barnabas.shards"


def declare(spark: Any, streams: Sequence[Stream] | None = None) -> None:
    """Declare all tables, in a file that `spark-pipelines` loads. `spark` is its session of Spark Connect."""
    from barnabas.lake.keeping.feeds import find_feeds

    if streams is None:
        from barnabas.lake.tables.all import STREAMS

        streams = STREAMS
    paths = [Path(path.strip()) for path in spark.conf.get(PATHS, "").split(",") if path.strip()]
    if not paths:
        raise ValueError(f"set {PATHS}, under `configuration` of spark-pipeline.yml, to the directories to read")
    feeds = find_feeds(paths, streams, settings_below(spark.conf.getAll, OPTIONS))
    present = [stream for stream in streams if any(feed.stream is stream for feed in feeds)]
    shards = int(spark.conf.get(SHARDS, "2"))
    for stream in present:
        declare_records(spark, stream, [feed for feed in feeds if feed.stream is stream])
        declare_facts(spark, stream, shards)
        for table in stream.tables:
            declare_table(spark, stream, table)
    declare_quarantine(spark, present)


def settings_below(settings: Mapping[str, str], prefix: str) -> dict[str, str]:
    """
    >>> settings_below({"spark.barnabas.options.mode": "FAILFAST", "spark.app.name": "lake"}, OPTIONS)
    {'mode': 'FAILFAST'}
    """
    return {name.removeprefix(prefix): value for name, value in settings.items() if name.startswith(prefix)}


def _columns(columns: Iterable[Column]) -> list[str]:
    return [column.name for column in columns]


def _as_read(stream: Stream) -> str:
    return f"{stream.records.name}_as_read"


def _facts(stream: Stream) -> str:
    return f"{stream.source}_facts"


def declare_records(spark: Any, stream: Stream, feeds: Sequence[Feed]) -> None:
    """Declare the table of all records, readable or not, which grows; and a view of the readable ones."""
    from pyspark import pipelines

    columns = (*stream.records.columns, ERROR)
    pipelines.create_streaming_table(_as_read(stream), comment=stream.records.question, schema=ddl(columns))

    def flow_of(feed: Feed) -> None:
        @pipelines.append_flow(target=_as_read(stream), name=f"{_as_read(stream)}_{_identifier(feed.cluster_id)}")
        def read() -> DataFrame:
            frame: DataFrame = (
                spark.readStream.format(stream.source).schema(ddl(columns)).options(**feed.options).load()
            )
            return frame

    for feed in feeds:
        flow_of(feed)

    @pipelines.temporary_view(name=stream.records.name)
    def good() -> DataFrame:
        from pyspark.sql import functions as f

        rows = spark.read.table(_as_read(stream)).where(f.col(ERROR.name).isNull())
        return stream.records.build(rows.select(*_columns(stream.records.columns)))


def declare_facts(spark: Any, stream: Stream, shards: int) -> None:
    """Declare the facts, folded from all records."""
    from pyspark import pipelines

    # Inside of the function Spark may not analyse anything, and mapInArrow asks for the columns of its input. So the plan is
    # made here, over an empty stand-in with the same columns; then the table takes its place.
    records = spark.createDataFrame([], ddl(stream.records.columns))
    assert stream.fold is not None
    folded = stream.fold(records, spark.createDataFrame([], ddl(stream.facts)), shards=shards)
    _ = folded.columns  # analysed now, while it is allowed, and cached
    records._plan.plan = spark.read.table(stream.records.name)._plan.plan

    @pipelines.materialized_view(name=_facts(stream))
    def facts() -> DataFrame:
        return folded


def declare_table(spark: Any, stream: Stream, table: Table) -> None:
    """Declare a table made from the facts of its kind."""
    from pyspark import pipelines

    @pipelines.materialized_view(name=table.name, comment=table.question)
    def rows() -> DataFrame:
        from pyspark.sql import functions as f

        facts = spark.read.table(_facts(stream)).where(f.col("kind") == table.name)
        return table.build(facts).select(*_columns(table.columns))


def declare_quarantine(spark: Any, streams: Sequence[Stream]) -> None:
    """Declare the table of what could not be read, from all sources."""
    from pyspark import pipelines

    from barnabas.lake.tables.quarantine import QUARANTINE, quarantined

    def of(stream: Stream) -> DataFrame:
        from pyspark.sql import functions as f

        errors = spark.read.table(_as_read(stream)).where(f.col(ERROR.name).isNotNull())
        # Reading its columns would make Spark analyse it, which is not allowed here. They are known anyway.
        known: Any = SimpleNamespace(columns=_columns((*stream.records.columns, ERROR)), select=errors.select)
        cluster_id: Any = f.col("cluster_id")
        return quarantined(known, cluster_id, stream.source, stream.topic)

    @pipelines.materialized_view(name=QUARANTINE.name, comment=QUARANTINE.question)
    def bad() -> DataFrame:
        return reduce(lambda some, more: some.unionByName(more), map(of, streams))


def _identifier(text: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in text)
