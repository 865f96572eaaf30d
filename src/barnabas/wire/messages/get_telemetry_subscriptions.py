"""GetTelemetrySubscriptionsRequest and GetTelemetrySubscriptionsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["GetTelemetrySubscriptionsRequest", "GetTelemetrySubscriptionsResponse"]


class GetTelemetrySubscriptionsRequest(Message):
    """GetTelemetrySubscriptions request, API key 71, versions 0, flexible 0+."""

    __slots__ = ("client_instance_id",)

    client_instance_id: Uuid

    def __init__(
        self,
        *,
        client_instance_id: Uuid = ZERO_UUID,
    ) -> None:
        self.client_instance_id = client_instance_id
        self.unknown_tagged_fields = None

    SCHEMA = """
GetTelemetrySubscriptionsRequest request key=71 versions=0 flexible=0+ listeners=broker
  client_instance_id uuid
"""


class GetTelemetrySubscriptionsResponse(Message):
    """GetTelemetrySubscriptions response, API key 71, versions 0, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "client_instance_id", "subscription_id", "accepted_compression_types", "push_interval_ms", "telemetry_max_bytes", "delta_temporality", "requested_metrics")

    throttle_time_ms: int
    error_code: int
    client_instance_id: Uuid
    subscription_id: int
    accepted_compression_types: list[int]
    push_interval_ms: int
    telemetry_max_bytes: int
    delta_temporality: bool
    requested_metrics: list[str]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: Uuid = ZERO_UUID,
        subscription_id: int = 0,
        accepted_compression_types: list[int] = EMPTY,
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: list[str] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.accepted_compression_types = [] if accepted_compression_types is EMPTY else accepted_compression_types
        self.push_interval_ms = push_interval_ms
        self.telemetry_max_bytes = telemetry_max_bytes
        self.delta_temporality = delta_temporality
        self.requested_metrics = [] if requested_metrics is EMPTY else requested_metrics
        self.unknown_tagged_fields = None

    SCHEMA = """
GetTelemetrySubscriptionsResponse response key=71 versions=0 flexible=0+
  throttle_time_ms int32
  error_code int16
  client_instance_id uuid
  subscription_id int32
  accepted_compression_types []int8
  push_interval_ms int32
  telemetry_max_bytes int32
  delta_temporality bool
  requested_metrics []string
"""
