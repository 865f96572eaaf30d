"""Settings of Spark for a handful of rows."""

from __future__ import annotations

from barnabas.lake.spark.session import FOR_FEW_ROWS

FEW_ROWS = {**FOR_FEW_ROWS, "spark.sql.shuffle.partitions": "2"}
