"""RenewDelegationTokenRequest and RenewDelegationTokenResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import Message

__all__ = ["RenewDelegationTokenRequest", "RenewDelegationTokenResponse"]


class RenewDelegationTokenRequest(Message):
    """RenewDelegationToken request, API key 39, versions 0-2, flexible 2+."""

    __slots__ = ("hmac", "renew_period_ms")

    hmac: bytes
    renew_period_ms: int

    def __init__(
        self,
        *,
        hmac: bytes = b"",
        renew_period_ms: int = 0,
    ) -> None:
        self.hmac = hmac
        self.renew_period_ms = renew_period_ms
        self.unknown_tagged_fields = None

    SCHEMA = """
RenewDelegationTokenRequest request key=39 versions=0-2 kafka=1-2 flexible=2+ listeners=broker,controller
  hmac bytes
  renew_period_ms int64
"""


class RenewDelegationTokenResponse(Message):
    """RenewDelegationToken response, API key 39, versions 0-2, flexible 2+."""

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
RenewDelegationTokenResponse response key=39 versions=0-2 kafka=1-2 flexible=2+
  error_code int16
  expiry_timestamp_ms int64
  throttle_time_ms int32
"""
