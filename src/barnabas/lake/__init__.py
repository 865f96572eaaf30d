"""The lake: Kafka's logs as Spark tables.

    from barnabas import lake

    spark = lake.session()                                     # a session with settings that suit the data sources
    lake.register(other_spark)                                 # or only the data sources, for a session of your own
    spark.read.format("kafka_metadata").load("/var/lib/kafka/__cluster_metadata-0")

Needs the extra `lake` (`pip install 'barnabas[lake]'`) and Java 17. Neither the broker nor the client imports it.
Each package uses only those after it: report and pipeline; asking (read a lake), keeping (write one), tables (their
declarations), facts (what was true when) and sources (Spark's data sources), reading (bytes to Arrow), spark (sessions).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.lake.sources import SOURCES

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from barnabas.lake.asking.opened import OpenLake

_OF_TABLES = "barnabas.lake.asking.table_source:LakeTable"


def register(spark: SparkSession) -> None:
    """Register the data sources with a session."""
    from importlib import import_module

    for place in (*SOURCES.values(), _OF_TABLES):
        module, name = place.split(":")
        spark.dataSource.register(getattr(import_module(module), name))


def session(**settings: str) -> SparkSession:
    """Start a local session with settings that suit the data sources. `settings` (Spark's names) override ours."""
    from barnabas.lake.spark.session import start

    return start(settings)


def open(path: Path | str, spark: SparkSession | None = None) -> OpenLake:  # noqa: A001
    """Open a lake: its tables by name, as DataFrames of this session or of a new one."""
    from barnabas.lake.asking.opened import OpenLake
    from barnabas.lake.keeping.store import Lake

    found = Lake(path)
    return OpenLake(spark or session(), found)
