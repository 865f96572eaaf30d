"""PushTelemetry (72), version 0.

Takes the metrics of a client and hands them to the receiver of barnabas.telemetry.receiver, if there is one. An unknown or
old subscription is UNKNOWN_SUBSCRIPTION_ID, a push before its time THROTTLING_QUOTA_EXCEEDED (but for the last one), more than
telemetry.max.bytes TELEMETRY_TOO_LARGE, an unknown codec UNSUPPORTED_COMPRESSION_TYPE, and a push after the last one, or
without an id, INVALID_REQUEST. ApiVersions shows this API only where a receiver is set. Metrics are not looked into.
"""

from __future__ import annotations

from barnabas.broker.client_metrics import Push
from barnabas.broker.context import Context
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


def handle(context: Context, request: PushTelemetryRequest) -> PushTelemetryResponse:
    push = Push(
        request.client_instance_id,
        request.subscription_id,
        request.terminating,
        request.compression_type,
        request.metrics,
    )
    context.services.client_metrics.push(context, push)
    return PushTelemetryResponse()
