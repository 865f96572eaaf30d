"""EndTxnRequest and EndTxnResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import Message

__all__ = ["EndTxnRequest", "EndTxnResponse"]


class EndTxnRequest(Message):
    """EndTxn request, API key 26, versions 0-5, flexible 3+."""

    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "committed")

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed
        self.unknown_tagged_fields = None

    SCHEMA = """
EndTxnRequest request key=26 versions=0-5 flexible=3+ listeners=broker
  transactional_id string
  producer_id int64
  producer_epoch int16
  committed bool
"""


class EndTxnResponse(Message):
    """EndTxn response, API key 26, versions 0-5, flexible 3+."""

    __slots__ = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch")

    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.unknown_tagged_fields = None

    SCHEMA = """
EndTxnResponse response key=26 versions=0-5 flexible=3+
  throttle_time_ms int32
  error_code int16
  producer_id int64 5+ default=-1 ignorable
  producer_epoch int16 5+ default=-1 ignorable
"""
