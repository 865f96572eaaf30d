"""Tables of a lake as DataFrames. Always of one manifest, so that all of them are of the same moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.lake.declared_column import schema_of
from barnabas.lake.keeping.manifest import Manifest
from barnabas.lake.tables.declaration import Table

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def column_types(table: Table) -> dict[str, str]:
    return {column.name: column.type for column in table.columns}


def read_parts(
    spark: SparkSession, data: Path, parts: Iterable[str], columns: Mapping[str, str], base: str | None = None
) -> DataFrame:
    """The rows of these parts; a column that an older part does not have is null there.

    `base` is the directory above, if names of directories between it and the parts are values of columns.
    """
    # Named as files: Spark may have another file system as its default.
    paths = [f"file:{data / part}" for part in parts]
    schema = schema_of(columns)
    if not paths:
        return spark.createDataFrame([], schema)
    reader = spark.read.schema(schema)
    if base is not None:
        reader = reader.option("basePath", f"file:{data / base}")
    return reader.parquet(*paths).select(*columns)


def read_table(spark: SparkSession, data: Path, manifest: Manifest, table: Table) -> DataFrame:
    """A table with all of its rows."""
    state = manifest.tables.get(table.path)
    columns = column_types(table)
    if state is None:
        return spark.createDataFrame([], schema_of(columns))
    return read_parts(spark, data, state.parts, {**state.columns, **columns})
