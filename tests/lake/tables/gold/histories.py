"""Small histories, written by hand: rows of silver's tables with the columns that matter, all else filled in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from barnabas.lake.declared_column import Column, ddl
from barnabas.lake.facts.schema import VALIDITY, kinds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BEGIN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CLUSTER = "c"


def at(minute: float) -> datetime:
    return BEGIN + timedelta(minutes=minute)


class Histories:
    """`table(name, row, ...)`: each row says when it began, and when it ended, in offsets; a minute is ten offsets."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def table(self, name: str, *rows: dict[str, Any]) -> DataFrame:
        columns = (Column("cluster_id", "string", ""), *kinds()[name].columns, *VALIDITY)
        return self.spark.createDataFrame([self._row(columns, dict(row)) for row in rows], ddl(columns))

    def _row(self, columns: tuple[Column, ...], row: dict[str, Any]) -> tuple[Any, ...]:
        begin, end = row.pop("begin"), row.pop("end", None)
        filled = {
            "cluster_id": CLUSTER,
            "valid_from_offset": begin,
            "valid_from_time": at(begin / 10),
            "valid_from_epoch": 7,
            "valid_to_offset": end,
            "valid_to_time": None if end is None else at(end / 10),
            "exact": True,
            **{column.name: [] for column in columns if column.type.startswith("array")},
            **row,
        }
        assert filled.keys() <= {column.name for column in columns}, "no such column"
        return tuple(filled.get(column.name) for column in columns)

    def log_until(self, offset: int) -> DataFrame:
        rows = [(CLUSTER, 0, at(0)), (CLUSTER, offset, at(offset / 10))]
        return self.spark.createDataFrame(rows, "cluster_id string, offset long, append_time timestamp")

    def partition(self, begin: int, end: int | None = None, **row: Any) -> dict[str, Any]:
        fields = {
            "topic_id": "T",
            "topic_name": "orders",
            "partition": 0,
            "leader": 1,
            "leader_epoch": 0,
            "partition_epoch": 0,
        }
        lists = {"replicas": [1, 2], "isr": [1, 2], "leader_recovery_state": "RECOVERED"}
        return {"begin": begin, "end": end, **fields, **lists, **row}
