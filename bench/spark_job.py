"""A session of Spark as a process of its own, which answers questions one after the other, each a line of JSON.

Run by a Python that has pyspark, whichever it is: `spark_job.py SETTINGS`. Its first line says who it is. A question names a
source and where its rows go (`count`, or the path of a Parquet folder), or a log dir and the lake that is to be made of it, or
a lake and a table of gold, or where its report goes; the answer is how long that took and how many rows it was. The session
has started before the first question.
"""

# mypy: ignore-errors
from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def main(settings: dict[str, str]) -> None:
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    java = spark.sparkContext._jvm.System.getProperty("java.version")
    say({"spark": pyspark.__version__, "java": java, "cores": spark.sparkContext.defaultParallelism})
    for line in sys.stdin:
        question = json.loads(line)
        if "lake" in question:
            lake = question.pop("lake")
            does = next(does for key, does in OF_A_LAKE.items() if key in question)
            say(does(spark, lake, **question))
            continue
        frame = rows_of(spark, question)
        started = time.perf_counter()
        if question["to"] == "count":
            rows = frame.count()
            seconds = time.perf_counter() - started
        else:
            frame.write.mode("overwrite").parquet(question["to"])
            seconds = time.perf_counter() - started
            rows = spark.read.parquet(question["to"]).count()
        say({"seconds": seconds, "rows": rows})
    spark.stop()


def grow(spark, directory, log_dir, keeps_gold=False):
    """What `barnabas lake run` does once it has a session."""
    from barnabas.lake.keeping.feeds import find_feeds  # only one of the two Pythons has it
    from barnabas.lake.keeping.runner import Runner
    from barnabas.lake.keeping.store import Writer
    from barnabas.lake.tables.all import STREAMS, TABLES

    batches = []
    started = time.perf_counter()
    with Writer(Path(directory)) as writer:
        writer.open()
        runner = Runner(spark, writer, watch=batches.append, known=TABLES if keeps_gold else None)
        runner.run(find_feeds([Path(log_dir)], STREAMS, {}))
    seconds = time.perf_counter() - started
    tables = {}
    for batch in batches:
        for table, rows in batch.table_rows.items():
            tables[table] = tables.get(table, 0) + rows
    rows = sum(batch.rows for batch in batches)
    return {"seconds": seconds, "rows": rows, "batches": [batch.seconds for batch in batches], "tables": tables}


@contextmanager
def opened(spark, directory):
    """A lake, as the commands of `barnabas lake` open it."""
    from barnabas.lake.asking.opened import OpenLake
    from barnabas.lake.keeping.store import Lake
    from barnabas.lake.spark.session import for_rows

    tables = OpenLake(spark, Lake(Path(directory)))
    with for_rows(spark, sum(stream.rows for stream in tables.manifest.streams.values())):
        yield tables


def answer(spark, directory, table):
    """All rows of a table of gold, with all of its columns, which nobody takes."""
    started = time.perf_counter()
    with opened(spark, directory) as tables:
        tables[table].write.format("noop").mode("overwrite").save()
    return {"seconds": time.perf_counter() - started}


def report(spark, directory, out):
    """What `barnabas lake report` does once it has a session."""
    from barnabas.lake.report.asking import ask, make, write_rows
    from barnabas.lake.report.page import render

    folder, times = Path(out), [time.perf_counter()]
    with opened(spark, directory) as tables:
        made = make(tables)
        times.append(time.perf_counter())
        content = ask(tables, made, "rows")
        times.append(time.perf_counter())
        write_rows(made, folder / "rows")
        times.append(time.perf_counter())
    (folder / "index.html").write_text(render(content), encoding="utf-8")
    times.append(time.perf_counter())
    totals = {name: rows.total for cluster in content.clusters for name, rows in cluster.tables.items()}
    inventory = [dict(row) for cluster in content.clusters for row in cluster.answers["inventory"]]
    steps = dict(
        zip(("making", "asking", "files", "page"), (until - since for since, until in pairwise(times)), strict=True)
    )
    return {"seconds": times[-1] - times[0], "steps": steps, "rows": totals, "inventory": inventory}


OF_A_LAKE = {"log_dir": grow, "table": answer, "out": report}


def rows_of(spark, question):
    if question["format"] == "range":
        return like_records(spark, question["rows"], question["value_size"], question["tasks"])
    reader = spark.read.format(question["format"]).options(**question["options"])
    return (reader.schema(question["schema"]) if question["schema"] else reader).load()


def like_records(spark, rows, value_size, tasks):
    """Rows of the shape that the sources give, made by Spark alone; no two values are alike, and they hardly compress."""
    letters = f.sha2(f.col("id").cast("string"), 512).substr(1, value_size)
    return spark.range(0, rows, 1, tasks).select(
        f.lit(None).cast("binary").alias("key"),
        letters.cast("binary").alias("value"),
        f.lit("records").alias("topic"),
        (f.col("id") % tasks).cast("int").alias("partition"),
        f.col("id").alias("offset"),
        f.timestamp_millis(f.lit(1_700_000_000_000) + f.col("id")).alias("timestamp"),
        f.lit(0).alias("timestampType"),
    )


def say(answer: dict[str, object]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
