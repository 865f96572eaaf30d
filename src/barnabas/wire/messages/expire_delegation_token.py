"""ExpireDelegationTokenRequest and ExpireDelegationTokenResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import Message

__all__ = ["ExpireDelegationTokenRequest", "ExpireDelegationTokenResponse"]


class ExpireDelegationTokenRequest(Message):
    """ExpireDelegationToken request, API key 40, versions 0-2, flexible 2+."""

    __slots__ = ("hmac", "expiry_time_period_ms")

    hmac: bytes
    expiry_time_period_ms: int

    def __init__(
        self,
        *,
        hmac: bytes = b"",
        expiry_time_period_ms: int = 0,
    ) -> None:
        self.hmac = hmac
        self.expiry_time_period_ms = expiry_time_period_ms
        self.unknown_tagged_fields = None

    SCHEMA = """
ExpireDelegationTokenRequest request key=40 versions=0-2 kafka=1-2 flexible=2+ listeners=broker,controller
  hmac bytes
  expiry_time_period_ms int64
"""


class ExpireDelegationTokenResponse(Message):
    """ExpireDelegationToken response, API key 40, versions 0-2, flexible 2+."""

    __slots__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms")

    error_code: int
    expiry_timestamp_ms: int
    throttle_time_ms: int

    def __init__(
        self,
        *,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.throttle_time_ms = throttle_time_ms
        self.unknown_tagged_fields = None

    SCHEMA = """
ExpireDelegationTokenResponse response key=40 versions=0-2 kafka=1-2 flexible=2+
  error_code int16
  expiry_timestamp_ms int64
  throttle_time_ms int32
"""
