"""A session of Spark as a process of its own, which answers questions one after the other, each a line of JSON.

Run by a Python that has pyspark, whichever it is: `spark_job.py SETTINGS`. Its first line says who it is. A question names a
source and where its rows go (`count`, or the path of a Parquet folder), or a log dir and the lake that is to be made of it; the
answer is how long that took and how many rows it was. The session has started before the first question.
"""

# mypy: ignore-errors
from __future__ import annotations

import json
import sys
import time
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
            say(grow(spark, question["log_dir"], question["lake"]))
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


def grow(spark, log_dir, directory):
    """What `barnabas lake run` does once it has a session."""
    from barnabas.lake.feeds import find_feeds  # noqa: PLC0415  (only one of the two Pythons has it)
    from barnabas.lake.runner import Runner  # noqa: PLC0415
    from barnabas.lake.store import Writer  # noqa: PLC0415
    from barnabas.lake.tables.all import STREAMS  # noqa: PLC0415

    batches = []
    started = time.perf_counter()
    with Writer(Path(directory)) as writer:
        writer.open()
        Runner(spark, writer, watch=batches.append).run(find_feeds([Path(log_dir)], STREAMS, {}))
    seconds = time.perf_counter() - started
    tables = {}
    for batch in batches:
        for table, rows in batch.table_rows.items():
            tables[table] = tables.get(table, 0) + rows
    rows = sum(batch.rows for batch in batches)
    return {"seconds": seconds, "rows": rows, "batches": [batch.seconds for batch in batches], "tables": tables}


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
