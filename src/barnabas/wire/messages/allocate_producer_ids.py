"""AllocateProducerIdsRequest and AllocateProducerIdsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import Message

__all__ = ["AllocateProducerIdsRequest", "AllocateProducerIdsResponse"]


class AllocateProducerIdsRequest(Message):
    """AllocateProducerIds request, API key 67, versions 0, flexible 0+."""

    __slots__ = ("broker_id", "broker_epoch")

    broker_id: int
    broker_epoch: int

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.unknown_tagged_fields = None

    SCHEMA = """
AllocateProducerIdsRequest request key=67 versions=0 flexible=0+ listeners=controller
  broker_id int32
  broker_epoch int64 default=-1
"""


class AllocateProducerIdsResponse(Message):
    """AllocateProducerIds response, API key 67, versions 0, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "producer_id_start", "producer_id_len")

    throttle_time_ms: int
    error_code: int
    producer_id_start: int
    producer_id_len: int

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id_start: int = 0,
        producer_id_len: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id_start = producer_id_start
        self.producer_id_len = producer_id_len
        self.unknown_tagged_fields = None

    SCHEMA = """
AllocateProducerIdsResponse response key=67 versions=0 flexible=0+
  throttle_time_ms int32
  error_code int16
  producer_id_start int64
  producer_id_len int32
"""
