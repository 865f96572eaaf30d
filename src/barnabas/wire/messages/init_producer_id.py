"""InitProducerIdRequest and InitProducerIdResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import Message

__all__ = ["InitProducerIdRequest", "InitProducerIdResponse"]


class InitProducerIdRequest(Message):
    """InitProducerId request, API key 22, versions 0-6, flexible 2+."""

    __slots__ = ("transactional_id", "transaction_timeout_ms", "producer_id", "producer_epoch", "enable2_pc", "keep_prepared_txn")

    transactional_id: str | None
    transaction_timeout_ms: int
    producer_id: int
    producer_epoch: int
    enable2_pc: bool
    keep_prepared_txn: bool

    def __init__(
        self,
        *,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        enable2_pc: bool = False,
        keep_prepared_txn: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.enable2_pc = enable2_pc
        self.keep_prepared_txn = keep_prepared_txn
        self.unknown_tagged_fields = None

    SCHEMA = """
InitProducerIdRequest request key=22 versions=0-6 flexible=2+ listeners=broker unstable
  transactional_id string nullable
  transaction_timeout_ms int32
  producer_id int64 3+ default=-1
  producer_epoch int16 3+ default=-1
  enable2_pc bool 6+
  keep_prepared_txn bool 6+
"""


class InitProducerIdResponse(Message):
    """InitProducerId response, API key 22, versions 0-6, flexible 2+."""

    __slots__ = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch", "ongoing_txn_producer_id", "ongoing_txn_producer_epoch")

    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int
    ongoing_txn_producer_id: int
    ongoing_txn_producer_epoch: int

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1,
        ongoing_txn_producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.ongoing_txn_producer_id = ongoing_txn_producer_id
        self.ongoing_txn_producer_epoch = ongoing_txn_producer_epoch
        self.unknown_tagged_fields = None

    SCHEMA = """
InitProducerIdResponse response key=22 versions=0-6 flexible=2+
  throttle_time_ms int32 ignorable
  error_code int16
  producer_id int64 default=-1
  producer_epoch int16
  ongoing_txn_producer_id int64 6+ default=-1
  ongoing_txn_producer_epoch int16 6+ default=-1
"""
