"""Times in Parquet files: microseconds, as Delta demands, and not INT96, which Spark writes unless it is told otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Final

SETTING: Final = ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
"""The setting of Spark with which it writes microseconds."""


def to_microseconds(file: Path) -> None:
    """Write a file of Spark again, with its times as microseconds in UTC."""
    import pyarrow as pa
    from pyarrow import parquet

    found = parquet.ParquetFile(file, coerce_int96_timestamp_unit="us").read()
    times = pa.timestamp("us", tz="UTC")
    kinds = (field.with_type(times) if pa.types.is_timestamp(field.type) else field for field in found.schema)
    parquet.write_table(found.cast(pa.schema(list(kinds))), file)
    # Spark compares a file with the checksum beside it.
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
