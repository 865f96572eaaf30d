"""PushTelemetryRequest and PushTelemetryResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import Message
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["PushTelemetryRequest", "PushTelemetryResponse"]


class PushTelemetryRequest(Message):
    """PushTelemetry request, API key 72, versions 0, flexible 0+."""

    __slots__ = ("client_instance_id", "subscription_id", "terminating", "compression_type", "metrics")

    client_instance_id: Uuid
    subscription_id: int
    terminating: bool
    compression_type: int
    metrics: bytes

    def __init__(
        self,
        *,
        client_instance_id: Uuid = ZERO_UUID,
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: bytes = b"",
    ) -> None:
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.terminating = terminating
        self.compression_type = compression_type
        self.metrics = metrics
        self.unknown_tagged_fields = None

    SCHEMA = """
PushTelemetryRequest request key=72 versions=0 flexible=0+ listeners=broker
  client_instance_id uuid
  subscription_id int32
  terminating bool
  compression_type int8
  metrics bytes
"""


class PushTelemetryResponse(Message):
    """PushTelemetry response, API key 72, versions 0, flexible 0+."""

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
PushTelemetryResponse response key=72 versions=0 flexible=0+
  throttle_time_ms int32
  error_code int16
"""
