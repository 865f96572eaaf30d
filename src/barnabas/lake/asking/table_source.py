"""The data source `barnabas_lake`: a stored table of a lake, as of its last commit, for catalogs and sessions of your own.

    spark.read.format("barnabas_lake").option("lake", "/data/lake").option("table", "topics").load()

Its one rule: each query reads the files that one manifest names, so a table in a catalog never has to be refreshed. Importing
it is cheap: Spark does so in each session. It needs no jar; with Delta's, the tables can be read by that as well.

In a catalog, a name of the lake is a view. Spark does not pass the options of a table in a catalog to a source in Python, but
those that a query gives with its table; so the view gives them, to a table that has only columns (`_files_NAME`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from barnabas.lake.keeping.folders import Folder

SOURCE = "barnabas_lake"
_FILES = "_files_"
"""The prefix of tables in a catalog that have only columns."""
_BATCH_ROWS = 16_384


class _Stored(NamedTuple):
    columns: Mapping[str, str]
    data: str
    files: list[str]


class LakeTable(DataSource):
    """Spark creates one instance for each DataFrame."""

    @classmethod
    def name(cls) -> str:
        return SOURCE

    def schema(self) -> str:
        from barnabas.lake.declared_column import schema_of

        return schema_of(self._stored().columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        return LakeTableReader(self._stored(), schema.fieldNames())

    def _stored(self) -> _Stored:
        from barnabas import __version__
        from barnabas.lake.keeping.manifest import stored
        from barnabas.lake.keeping.publishing import files_of
        from barnabas.lake.keeping.store import Lake

        for name in ("lake", "table"):
            if name not in self.options:
                raise ValueError(f"{SOURCE} needs the option {name}; in a catalog, read the name without {_FILES}")
        lake = Lake(self.options["lake"])
        state = stored(lake.manifest(), self.options["table"], __version__)
        return _Stored(dict(state.columns), str(lake.data), [file.name for file in files_of(lake.data, state.parts)])


class _File(InputPartition):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class LakeTableReader(DataSourceReader):
    """Reads one Parquet file in each task."""

    def __init__(self, stored: _Stored, names: list[str]) -> None:
        self._data, self._files = stored.data, stored.files
        self._columns = {name: stored.columns[name] for name in names}

    def partitions(self) -> list[InputPartition]:
        return [_File(name) for name in self._files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyarrow import parquet

        from barnabas.lake.facts.schema import arrow_type
        from barnabas.lake.keeping.folders import folder_at

        assert isinstance(partition, _File)
        file = parquet.ParquetFile(folder_at(self._data).source(partition.name))
        here = set(file.schema_arrow.names)
        schema = pa.schema([(name, arrow_type(kind)) for name, kind in self._columns.items()])
        for batch in file.iter_batches(_BATCH_ROWS, columns=[name for name in self._columns if name in here]):
            columns = [
                batch.column(field.name).cast(field.type)
                if field.name in here
                else pa.nulls(batch.num_rows, field.type)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def register_tables(spark: SparkSession, folder: Folder, database: str, tables: list[str]) -> None:
    """Register stored tables with the catalog of a session, in place of those of the same name that it has."""
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {_name(database)}")
    for table in tables:
        files = f"{_name(database)}.{_name(_FILES + table)}"
        options = {"lake": _text(str(folder)), "table": _text(table)}
        spark.sql(f"DROP TABLE IF EXISTS {files}")
        declared = ", ".join(f"{name} {value}" for name, value in options.items())
        spark.sql(f"CREATE TABLE {files} USING {SOURCE} OPTIONS ({declared})")
        given = ", ".join(f"`{name}` = {value}" for name, value in options.items())
        view = f"{_name(database)}.{_name(table)}"
        spark.sql(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM {files} WITH ({given})")


def _name(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
