"""A lake opened for reading, with a Spark session whose output is in the lake's log."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.lake.asking.opened import OpenLake
from barnabas.lake.keeping.store import Lake
from barnabas.lake.spark.quiet import start_quietly
from barnabas.lake.spark.session import for_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def opened(directory: Path, conf: Mapping[str, str]) -> Iterator[OpenLake]:
    """Open a lake for reading, with a Spark session and settings of Spark."""
    found = Lake(directory)
    with lake_session(directory, conf) as spark:
        tables = OpenLake(spark, found)
        rows = sum(stream.rows for stream in tables.manifest.streams.values())
        with for_rows(spark, rows, conf):
            yield tables


@contextmanager
def lake_session(directory: Path, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield a Spark session. An active session is reused and left running; a new one is stopped at the end."""
    from pyspark.sql import SparkSession

    from barnabas.lake import register

    os.environ["TZ"] = "UTC"  # Spark returns times in the local zone
    time.tzset()
    is_ours = SparkSession.getActiveSession() is None
    spark = start_quietly(directory, conf)
    try:
        register(spark)
        yield spark
    finally:
        if is_ours:
            spark.stop()
