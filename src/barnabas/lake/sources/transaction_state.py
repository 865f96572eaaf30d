"""The data source `kafka_transaction_state`: every record of `__transaction_state`, decoded, in batch and as a stream.

    spark.read.format("kafka_transaction_state").load("/var/lib/kafka/data")

Its one rule: importing it is cheap. The code that reads is imported when something is read.
"""

from __future__ import annotations

from barnabas.config.internal_topics import TRANSACTION_STATE_TOPIC as TOPIC
from barnabas.lake.declared_column import Column
from barnabas.lake.sources.coordinator_log import CONTENT_COLUMNS, ERROR, PLACE_COLUMNS, CoordinatorLog

__all__ = ["COLUMNS", "ERROR", "TOPIC", "KafkaTransactionState"]

COLUMNS = (
    *PLACE_COLUMNS,
    Column("transactional_id", "string", "the transactional id that the record is about"),
    Column("its_producer_id", "bigint", "the producer id that it has from now on"),
    Column("its_producer_epoch", "smallint", "the epoch of that producer id"),
    Column("state", "string", "Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit or CompleteAbort"),
    *CONTENT_COLUMNS,
)


class KafkaTransactionState(CoordinatorLog):
    NAME = "kafka_transaction_state"
    TOPIC = TOPIC
    COLUMNS = COLUMNS
