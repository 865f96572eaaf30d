"""AddOffsetsToTxnRequest and AddOffsetsToTxnResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import Message

__all__ = ["AddOffsetsToTxnRequest", "AddOffsetsToTxnResponse"]


class AddOffsetsToTxnRequest(Message):
    """AddOffsetsToTxn request, API key 25, versions 0-4, flexible 3+."""

    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "group_id")

    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id
        self.unknown_tagged_fields = None

    SCHEMA = """
AddOffsetsToTxnRequest request key=25 versions=0-4 flexible=3+ listeners=broker
  transactional_id string
  producer_id int64
  producer_epoch int16
  group_id string
"""


class AddOffsetsToTxnResponse(Message):
    """AddOffsetsToTxn response, API key 25, versions 0-4, flexible 3+."""

    __slots__ = ("throttle_time_ms", "error_code")

    throttle_time_ms: int
    error_code: int

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_tagged_fields = None

    SCHEMA = """
AddOffsetsToTxnResponse response key=25 versions=0-4 flexible=3+
  throttle_time_ms int32
  error_code int16
"""
