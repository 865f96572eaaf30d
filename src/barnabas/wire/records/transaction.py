"""Records of the group transaction.

Generated from schema/records.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["TransactionLogKey", "TransactionLogValue"]


class TransactionLogKey(Message):
    """Record type 0, versions 0, flexible none."""

    __slots__ = ("transactional_id",)

    transactional_id: str

    def __init__(
        self,
        *,
        transactional_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.unknown_tagged_fields = None

    SCHEMA = """
TransactionLogKey record group=transaction key=0 versions=0 flexible=none
  transactional_id string 0
"""


class TransactionLogValue(Message):
    """Record type 0, versions 0-1, flexible 1+."""

    __slots__ = ("producer_id", "previous_producer_id", "next_producer_id", "producer_epoch", "next_producer_epoch", "transaction_timeout_ms", "transaction_status", "transaction_partitions", "transaction_last_update_timestamp_ms", "transaction_start_timestamp_ms", "client_transaction_version")

    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    next_producer_epoch: int
    transaction_timeout_ms: int
    transaction_status: int
    transaction_partitions: list[TransactionLogValue.PartitionsSchema] | None
    transaction_last_update_timestamp_ms: int
    transaction_start_timestamp_ms: int
    client_transaction_version: int

    def __init__(
        self,
        *,
        producer_id: int = 0,
        previous_producer_id: int = -1,
        next_producer_id: int = -1,
        producer_epoch: int = 0,
        next_producer_epoch: int = -1,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: list[TransactionLogValue.PartitionsSchema] | None = EMPTY,
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.previous_producer_id = previous_producer_id
        self.next_producer_id = next_producer_id
        self.producer_epoch = producer_epoch
        self.next_producer_epoch = next_producer_epoch
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_status = transaction_status
        self.transaction_partitions = [] if transaction_partitions is EMPTY else transaction_partitions
        self.transaction_last_update_timestamp_ms = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms = transaction_start_timestamp_ms
        self.client_transaction_version = client_transaction_version
        self.unknown_tagged_fields = None

    SCHEMA = """
TransactionLogValue record group=transaction key=0 versions=0-1 flexible=1+
  producer_id int64
  previous_producer_id int64 1+ tag=0 default=-1
  next_producer_id int64 1+ tag=1 default=-1
  producer_epoch int16
  next_producer_epoch int16 1+ tag=3 default=-1
  transaction_timeout_ms int32
  transaction_status int8
  transaction_partitions []PartitionsSchema nullable
    topic string
    partition_ids []int32
  transaction_last_update_timestamp_ms int64
  transaction_start_timestamp_ms int64
  client_transaction_version int16 1+ tag=2
"""

    class PartitionsSchema(Struct):
        __slots__ = ("topic", "partition_ids")

        topic: str
        partition_ids: list[int]

        def __init__(
            self,
            *,
            topic: str = "",
            partition_ids: list[int] = EMPTY,
        ) -> None:
            self.topic = topic
            self.partition_ids = [] if partition_ids is EMPTY else partition_ids
            self.unknown_tagged_fields = None
