"""What every version of Spark has to do with the lake: read, push filters, stream, run; and read it with Delta's reader.

Arguments: a log dir, a directory to write to, and the jars of Delta or nothing. The last line is what was found, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

SOURCE, OUT, JARS = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"


DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def session() -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.databricks.delta.snapshotPartitions", "1")
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "2")
    for name, value in ({**DELTA, "spark.jars": JARS} if JARS else {}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def records(spark: SparkSession) -> DataFrame:
    return spark.read.format("kafka_log").option("topics", "orders").load(str(SOURCE))


def read_and_push_down(spark: SparkSession) -> dict[str, Any]:
    """No source is registered here: Spark finds them."""
    found: dict[str, Any] = {"version": spark.version, "push-down by default": spark.conf.get(PUSH_DOWN)}
    for setting in ("false", "true"):
        spark.conf.set(PUSH_DOWN, setting)
        found[f"records {setting}"] = records(spark).count()
        found[f"of one partition {setting}"] = records(spark).where("partition = 1 and offset >= 1").count()
    metadata = spark.read.format("kafka_metadata").load(str(SOURCE))
    found["topics"] = metadata.where("record_type = 'TopicRecord'").select("topic_name").distinct().count()
    return found


def stream_twice(spark: SparkSession) -> list[int]:
    """The rows that each of two runs has brought."""
    counts = []
    for _ in range(2):
        rows = spark.readStream.format("kafka_log").option("topics", "orders").load(str(SOURCE))
        writer = rows.writeStream.option("checkpointLocation", str(OUT / "checkpoint")).trigger(availableNow=True)
        query = writer.format("parquet").start(str(OUT / "records"))
        query.awaitTermination()
        counts.append(spark.read.parquet(str(OUT / "records")).count())
    return counts


def run_lake(spark: SparkSession) -> dict[str, list[Any]]:
    """Three runs, one for each moment of the log dir: the first batch by Spark, later ones without it.

    After the second, the Delta logs are checkpoints alone, and files that only older versions have are gone.
    """
    from barnabas.lake.keeping import publishing
    from barnabas.lake.keeping.feeds import find_feeds
    from barnabas.lake.keeping.runner import Runner
    from barnabas.lake.keeping.small_batches import MAX_RECORDS
    from barnabas.lake.keeping.store import Lake, Writer
    from barnabas.lake.keeping.table_reading import read_table
    from barnabas.lake.tables.all import STREAMS, TABLES

    vars(publishing)["CHECKPOINT_VERSIONS"] = 0
    for number, small_records in enumerate((0, MAX_RECORDS, MAX_RECORDS)):
        moment = SOURCE if number == 2 else SOURCE.with_name(f"{SOURCE.name}-{number}")
        with Writer(OUT / "lake", grace_s=0) as writer:
            writer.open()
            Runner(spark, writer, known=TABLES, small_records=small_records).run(find_feeds([moment], STREAMS, {}))
            if number == 1:
                writer.sweep()
    lake = Lake(OUT / "lake")
    topics = read_table(spark, lake.data, lake.manifest(), TABLES["topics"])
    return {"lake topics": sorted(row["name"] for row in topics.collect())}


def read_delta(spark: SparkSession) -> dict[str, Any]:
    """Compare all tables, read in place by Delta's own reader, with ours: the newest versions, and those of the manifest."""
    from barnabas.lake.keeping.store import Lake
    from barnabas.lake.keeping.table_reading import read_table
    from barnabas.lake.tables.all import TABLES

    lake = Lake(OUT / "lake")
    manifest = lake.manifest()
    different = []
    stored = [table for table in TABLES.values() if table.path in manifest.tables]
    for table in stored:
        mine = read_table(spark, lake.data, manifest, table)
        rows = sorted(map(str, mine.collect()))
        for options in ({}, {"versionAsOf": str(manifest.tables[table.path].version)}):
            theirs = spark.read.format("delta").options(**options).load(str(lake.data / table.path))
            if sorted(map(str, theirs.select(mine.columns).collect())) != rows or theirs.schema != mine.schema:
                different.append(table.name)
    versions = {table.name: manifest.tables[table.path].version for table in stored}
    place = lake.data / TABLES["configs"].path
    history = spark.sql(f"describe history delta.`{place}`").collect()
    return {
        "delta": different,
        "tables": len(stored),
        "with several versions": sum(version > 0 for version in versions.values()),
        "checkpoints": len(list(Path(str(place)).glob("_delta_log/*.checkpoint.parquet"))),
        "newest first": [row["version"] for row in history][:1] == [versions["configs"]],
        "states its commit": all(row["userMetadata"].startswith("commit ") for row in history),
    }


def main() -> None:
    spark = session()
    found = read_and_push_down(spark)
    found["streamed"] = stream_twice(spark)
    found |= run_lake(spark)
    if JARS:
        found |= read_delta(spark)
    spark.stop()
    print(json.dumps(found))


main()
