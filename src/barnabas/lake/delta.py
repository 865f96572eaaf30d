"""The tables of a lake as tables of Delta, for those who want to read them with something else.

    from barnabas.lake import delta, session
    spark = session(**delta.SETTINGS, **{"spark.jars": "delta-spark.jar,delta-storage.jar"})
    delta.export(spark, Path("lake"), "/tables")

Its one rule: the lake stays what it is, and Delta gets a copy: each table as of the same commit of the lake, whose number is in
the history of each Delta table. It is written anew each time. Delta is a jar of its own, for one version of Spark: the newest
there is, 4.4.0, is for 4.2 (io.delta:delta-spark_4.2_2.13), and none is for 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""What a session needs beside the jars."""


class DeltaMissingError(RuntimeError):
    """The session cannot write tables of Delta."""


def check(spark: SparkSession) -> None:
    """Raises `DeltaMissingError`, with what to do, where writing would fail with less."""
    missing = [name for name, value in SETTINGS.items() if value not in (spark.conf.get(name, "") or "").split(",")]
    if missing:
        raise DeltaMissingError(
            f"this session knows no Delta: {' and '.join(missing)} have to be set, with the jars of Delta for Spark "
            f"{spark.version} in spark.jars or spark.jars.packages"
        )


def export(
    spark: SparkSession, lake: Path, directory: str | Path, names: Iterable[str] | None = None
) -> dict[str, str]:
    """Writes the tables of the lake, or these, each to `directory`/layer/name; where each of them is."""
    from barnabas.lake.asking.opened import OpenLake
    from barnabas.lake.keeping.store import Lake
    from barnabas.lake.tables.all import TABLES

    check(spark)
    tables = OpenLake(spark, Lake(lake))
    manifest = tables.manifest
    wanted = (
        list(names) if names is not None else [each.name for each in TABLES.values() if each.path in manifest.tables]
    )
    unknown = [name for name in wanted if name not in TABLES]
    if unknown:
        raise ValueError(f"there is no table {', '.join(unknown)}; there are {', '.join(TABLES)}")
    places = {name: f"{directory}/{TABLES[name].path}" for name in wanted}
    for name, place in places.items():
        writer = tables[name].write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer.option("userMetadata", f"commit {manifest.version} of the lake").save(place)
    return places
