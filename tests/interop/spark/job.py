"""What a Spark user does with Kafka: batches and streams, out and in, through Spark's own connector.

Run by a Python that has pyspark: `job.py HOST:PORT DIRECTORY JAR,JAR,...`. The last line it prints is what it saw, as JSON.
The topics `in` and `out` are there before; `in` has 20 records of a committed transaction and 20 of an aborted one.
"""

# mypy: ignore-errors
from __future__ import annotations

import json
import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def main(bootstrap: str, directory: str, jars: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    seen = {}

    def of_kafka(reader, topic, **options):
        settings = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest", **options}
        return reader.format("kafka").options(**settings).load()

    def numbers(begin, end):
        header = f.array(f.struct(f.lit("origin").alias("key"), f.lit("spark").cast("binary").alias("value")))
        return spark.range(begin, end).select(
            f.concat(f.lit("key "), "id").alias("key"),
            f.concat(f.lit("value "), "id").alias("value"),
            header.alias("headers"),
        )

    def write(frame, topic):
        options = {"kafka.bootstrap.servers": bootstrap, "topic": topic, "includeHeaders": "true"}
        frame.write.format("kafka").options(**options).save()

    seen["committed"] = of_kafka(spark.read, "in", **{"kafka.isolation.level": "read_committed"}).count()
    seen["uncommitted"] = of_kafka(spark.read, "in").count()

    write(numbers(0, 1000), "in")
    batch = of_kafka(spark.read, "in", includeHeaders="true", **{"kafka.isolation.level": "read_committed"})
    mine = batch.where(f.col("key").cast("string").startswith("key "))
    seen["rows"] = mine.count()
    seen["different"] = mine.select("value").distinct().count()
    seen["partitions"] = sorted(row.partition for row in mine.select("partition").distinct().collect())
    one = mine.where(f.col("key").cast("string") == "key 7").collect()[0]
    seen["one"] = [one.value.decode(), one.headers[0].key, one.headers[0].value.decode(), one.timestampType]
    ends = json.dumps({"in": {"0": 5, "1": 5, "2": 5}})
    seen["bounded"] = of_kafka(spark.read, "in", endingOffsets=ends).count()
    later = {
        "startingTimestamp": str(int(time.time() * 1000) + 3_600_000),
        "startingOffsetsByTimestampStrategy": "latest",
    }
    seen["of the future"] = of_kafka(spark.read, "in", **later).count()

    def copied():
        """A stream until all there is now, which goes on where the last of the same checkpoint ended."""
        source = of_kafka(
            spark.readStream, "in", maxOffsetsPerTrigger="200", **{"kafka.isolation.level": "read_committed"}
        )
        upper = source.selectExpr("key", "upper(cast(value as string)) as value")
        options = {"kafka.bootstrap.servers": bootstrap, "topic": "out", "checkpointLocation": f"{directory}/copied"}
        query = upper.writeStream.format("kafka").options(**options).trigger(availableNow=True).start()
        assert query.awaitTermination(180)
        return of_kafka(spark.read, "out").count()

    seen["copied"] = copied()
    write(numbers(1000, 1500), "in")
    seen["copied more"] = copied()
    seen["copied once"] = of_kafka(spark.read, "out").select("value").distinct().count()

    stream = of_kafka(spark.readStream, "out", startingOffsets="latest")
    query = stream.writeStream.format("memory").queryName("live").trigger(processingTime="200 milliseconds").start()
    deadline, wanted = time.monotonic() + 120, 0
    while not query.lastProgress and time.monotonic() < deadline:  # it has asked where the end is
        time.sleep(0.1)
    for begin in (2000, 2100, 2200):
        write(numbers(begin, begin + 100), "out")
        wanted += 100
        while spark.sql("select * from live").count() < wanted and time.monotonic() < deadline:
            time.sleep(0.1)
    seen["live"] = spark.sql("select * from live").count()
    query.stop()
    spark.stop()
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
