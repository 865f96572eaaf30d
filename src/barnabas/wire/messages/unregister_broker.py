"""UnregisterBrokerRequest and UnregisterBrokerResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import Message

__all__ = ["UnregisterBrokerRequest", "UnregisterBrokerResponse"]


class UnregisterBrokerRequest(Message):
    """UnregisterBroker request, API key 64, versions 0, flexible 0+."""

    __slots__ = ("broker_id",)

    broker_id: int

    def __init__(
        self,
        *,
        broker_id: int = 0,
    ) -> None:
        self.broker_id = broker_id
        self.unknown_tagged_fields = None

    SCHEMA = """
UnregisterBrokerRequest request key=64 versions=0 flexible=0+ listeners=broker,controller
  broker_id int32
"""


class UnregisterBrokerResponse(Message):
    """UnregisterBroker response, API key 64, versions 0, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message")

    throttle_time_ms: int
    error_code: int
    error_message: str | None

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tagged_fields = None

    SCHEMA = """
UnregisterBrokerResponse response key=64 versions=0 flexible=0+
  throttle_time_ms int32
  error_code int16
  error_message string nullable
"""
