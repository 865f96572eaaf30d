"""Times in Parquet files: microseconds, as Delta demands, and not INT96, which Spark writes unless it is told otherwise."""

from __future__ import annotations

from typing import Final

from barnabas.lake.keeping.folders import Folder, write_table

SETTING: Final = ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
"""The setting of Spark with which it writes microseconds."""


def to_microseconds(data: Folder, name: str) -> None:
    """Write a file of Spark again, with its times as microseconds in UTC."""
    import pyarrow as pa
    from pyarrow import parquet

    found = parquet.ParquetFile(data.source(name), coerce_int96_timestamp_unit="us").read()
    times = pa.timestamp("us", tz="UTC")
    kinds = (field.with_type(times) if pa.types.is_timestamp(field.type) else field for field in found.schema)
    write_table(data, name, found.cast(pa.schema(list(kinds))))
    # Spark compares a file with the checksum beside it.
    folder, _, last = name.rpartition("/")
    data.remove([f"{folder}/.{last}.crc"])
