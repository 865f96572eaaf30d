"""The fold of `__transaction_state`: facts about transactional ids.

Its one rule: a record has the complete state of its id; the next one, or a tombstone, ends it. Producer ids, epochs and states
are as the coordinator wrote them; pending state that it holds only in memory is not included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from barnabas.config.internal_topics import TRANSACTION_STATE_TOPIC
from barnabas.lake.declared_column import Column
from barnabas.lake.facts.coordinator_logs import fold_logs
from barnabas.lake.facts.log_facts import FoldWithoutMarkers, LogPosition, known, time_us
from barnabas.lake.facts.schema import Kind, key_text
from barnabas.lake.reading.decoding.coordinator_records import TRANSACTIONS, decode_key, decode_value, state_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOPIC: Final = TRANSACTION_STATE_TOPIC
_KIND: Final = "transactions"

KINDS: Final = (
    Kind(
        _KIND,
        "Which producer id and epoch did each transactional id have, and in which state was its transaction?",
        keys=(Column("transactional_id", "string", "The transactional id."),),
        values=(
            Column("producer_id", "bigint", "The producer id that it has."),
            Column("producer_epoch", "smallint", "The epoch of that producer id."),
            Column("state", "string", "Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit or CompleteAbort."),
            Column("timeout_ms", "int", "The timeout of its transactions."),
            Column(
                "partitions",
                "array<struct<topic: string, partition: int>>",
                "The partitions of the transaction, in order; empty when it has ended.",
            ),
            Column("start_time", "timestamp", "When the transaction started; null before the first one."),
            Column("last_update_time", "timestamp", "When the coordinator last changed it."),
            Column("previous_producer_id", "bigint", "The previous producer id; null if not given."),
            Column("next_producer_id", "bigint", "The producer id of its next transaction, when epochs are exhausted."),
            Column("next_producer_epoch", "smallint", "The epoch of its next transaction, if given."),
            Column("client_transaction_version", "smallint", "The version of transactions that its client uses."),
        ),
    ),
)


class TransactionsFold(FoldWithoutMarkers):
    """Folds one log: its records, in order."""

    def __init__(self) -> None:
        super().__init__((_KIND,))

    def apply(self, key: bytes | None, value: bytes | None, place: LogPosition, producer_id: int | None = None) -> None:
        """Apply a record that is not a control record. An unknown type or version has no effect."""
        self.facts.reach(place.offset)
        decoded = decode_key(key, TRANSACTIONS)
        transactional_id = decoded.transactional_id
        if transactional_id is None:
            return
        if value is None:
            self.facts.close(_KIND, key_text(transactional_id), place)
            return
        message = decode_value(decoded.record_type, value, with_json=False).message
        if message is not None:
            self.facts.set(_KIND, key_text(transactional_id), _values(transactional_id, message), place)


def _values(transactional_id: str, value: Any) -> tuple[Any, ...]:
    """Return the values in the order of the columns."""
    partitions = sorted(
        (topic.topic, partition) for topic in value.transaction_partitions or () for partition in topic.partition_ids
    )
    return (
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        state_name(value.transaction_status),
        value.transaction_timeout_ms,
        tuple({"topic": topic, "partition": partition} for topic, partition in partitions),
        time_us(value.transaction_start_timestamp_ms),
        time_us(value.transaction_last_update_timestamp_ms),
        known(value.previous_producer_id),
        known(value.next_producer_id),
        known(value.next_producer_epoch),
        value.client_transaction_version,
    )


def fold_transactions(records: DataFrame, open_facts: DataFrame, *, shards: int) -> DataFrame:
    """Return the facts of transactions that end with these rows of `kafka_transaction_state`, and all open after them."""
    return fold_logs(TOPIC, TransactionsFold, records, open_facts, shards=shards)
