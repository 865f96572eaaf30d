"""The data source `kafka_transaction_state`: every record of `__transaction_state`, decoded, in batch and as a stream.

    spark.read.format("kafka_transaction_state").load("/var/lib/kafka/data")

Its one rule: it is light. What reads is imported when something is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from barnabas.lake.column import Column, ddl
from barnabas.lake.sources.consumer_offsets import CONTENT_COLUMNS, ERROR, PLACE_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["COLUMNS", "ERROR", "TOPIC", "KafkaTransactionState"]

TOPIC = "__transaction_state"

COLUMNS = (
    *PLACE_COLUMNS,
    Column("transactional_id", "string", "the transactional id that it is about"),
    Column("its_producer_id", "bigint", "the producer id that it has now"),
    Column("its_producer_epoch", "smallint", "the epoch of that producer id"),
    Column("state", "string", "Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit or CompleteAbort"),
    *CONTENT_COLUMNS,
)


class KafkaTransactionState(DataSource):
    @classmethod
    def name(cls) -> str:
        return "kafka_transaction_state"

    def schema(self) -> str:
        return ddl(COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        from barnabas.lake.sources.coordinator_reading import CoordinatorReader  # noqa: PLC0415

        return CoordinatorReader(self.name(), TOPIC, self.options, schema, (*COLUMNS, ERROR))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  (Spark's name)
        from barnabas.lake.sources.coordinator_reading import stream_reader  # noqa: PLC0415

        return stream_reader(self.name(), TOPIC, self.options, schema, (*COLUMNS, ERROR))
