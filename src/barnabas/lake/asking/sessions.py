"""A lake opened for reading, with a Spark session whose output is in the lake's log."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.lake.asking.opened import OpenLake
from barnabas.lake.keeping.folders import Folder, folder_at, log_directory
from barnabas.lake.keeping.store import Lake
from barnabas.lake.spark.quiet import start_quietly
from barnabas.lake.spark.session import for_rows
from barnabas.lake.spark.stores import check_reachable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def opened(place: Path | str | Folder, conf: Mapping[str, str]) -> Iterator[OpenLake]:
    """Open a lake for reading, with a Spark session and settings of Spark."""
    found = Lake(place)
    with lake_session(found.folder, conf) as spark:
        tables = OpenLake(spark, found)
        rows = sum(stream.rows for stream in tables.manifest.streams.values())
        with for_rows(spark, rows, conf):
            yield tables


@contextmanager
def lake_session(place: Path | str | Folder, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield a Spark session. A session of this process is reused and left running; a new one is stopped at the end."""
    from pyspark import SparkContext

    from barnabas.lake import register

    os.environ["TZ"] = "UTC"  # Spark returns times in the local zone
    time.tzset()
    is_ours = SparkContext._active_spark_context is None  # the active session is one of the calling thread only
    folder = folder_at(place)
    spark = start_quietly(log_directory(folder), conf)
    try:
        register(spark)
        if not folder.is_local:
            check_reachable(spark, folder.url)
        yield spark
    finally:
        if is_ours:
            spark.stop()
