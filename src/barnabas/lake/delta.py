"""Export of a lake's tables to Delta, for other tools to read.

    from barnabas.lake import delta, session
    spark = session(**delta.SETTINGS, **{"spark.jars": "delta-spark.jar,delta-storage.jar"})
    delta.export(spark, Path("lake"), "/tables")

Its one rule: the lake is not changed, and Delta gets a copy. All tables are of the same commit of the lake; its number is in
the history of each Delta table. Each export overwrites the tables. Delta is a separate jar for one version of Spark: the
newest, 4.4.0, is for Spark 4.2 (io.delta:delta-spark_4.2_2.13). There is none for Spark 4.3 yet.
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
"""Settings that a session needs besides the jars."""


class DeltaMissingError(RuntimeError):
    """The session cannot write Delta tables."""


def check(spark: SparkSession) -> None:
    """Raise DeltaMissingError, which says what to set, if the session cannot write Delta tables."""
    missing = [name for name, value in SETTINGS.items() if value not in (spark.conf.get(name, "") or "").split(",")]
    if missing:
        raise DeltaMissingError(
            f"this session cannot write Delta tables: set {' and '.join(missing)}, and add the jars of Delta for Spark "
            f"{spark.version} to spark.jars or spark.jars.packages"
        )


def export(
    spark: SparkSession, lake: Path, directory: str | Path, names: Iterable[str] | None = None
) -> dict[str, str]:
    """Write tables of the lake (all of them by default) to `directory`/layer/name. Return the path of each by name."""
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
        raise ValueError(f"unknown table {', '.join(unknown)}; known tables are {', '.join(TABLES)}")
    places = {name: f"{directory}/{TABLES[name].path}" for name in wanted}
    for name, place in places.items():
        writer = tables[name].write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer.option("userMetadata", f"commit {manifest.version} of the lake").save(place)
    return places
