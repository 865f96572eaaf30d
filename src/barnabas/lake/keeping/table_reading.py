"""Tables of a lake as DataFrames. All are read from one manifest, so that they are of the same commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.lake.declared_column import schema_of
from barnabas.lake.keeping.folders import Folder
from barnabas.lake.keeping.manifest import Manifest
from barnabas.lake.tables.declaration import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def column_types(table: Table) -> dict[str, str]:
    return {column.name: column.type for column in table.columns}


def read_parts(
    spark: SparkSession, data: Folder, parts: Iterable[str], columns: Mapping[str, str], base: str | None = None
) -> DataFrame:
    """Return the rows of these parts. A column that an older part lacks is null there.

    `base` is a parent directory, if names of directories between it and the parts are values of columns.
    """
    paths = [(data / part).url for part in parts]
    schema = schema_of(columns)
    if not paths:
        return spark.createDataFrame([], schema)
    reader = spark.read.schema(schema)
    if base is not None:
        reader = reader.option("basePath", (data / base).url)
    return reader.parquet(*paths).select(*columns)


def read_table(spark: SparkSession, data: Folder, manifest: Manifest, table: Table) -> DataFrame:
    """Return a table with all of its rows."""
    state = manifest.tables.get(table.path)
    columns = column_types(table)
    if state is None:
        return spark.createDataFrame([], schema_of(columns))
    return read_parts(spark, data, state.parts, {**state.columns, **columns})
