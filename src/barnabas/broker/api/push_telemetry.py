"""PushTelemetry (72), version 0.

Passes a client's metrics to the receiver set in barnabas.telemetry.receiver, if any, without decoding them. An unknown
or old subscription is UNKNOWN_SUBSCRIPTION_ID. A push before the interval has passed is THROTTLING_QUOTA_EXCEEDED,
except for the last one. More than telemetry.max.bytes is TELEMETRY_TOO_LARGE, an unknown codec
UNSUPPORTED_COMPRESSION_TYPE. A push after the last one, or without an id, is INVALID_REQUEST. ApiVersions lists this
API only if a receiver is set.
"""

from __future__ import annotations

from barnabas.broker.client_metrics import Push
from barnabas.broker.context import Context
from barnabas.steps import Slices
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


def handle(context: Context, request: PushTelemetryRequest) -> Slices[PushTelemetryResponse]:
    push = Push(
        request.client_instance_id,
        request.subscription_id,
        request.terminating,
        request.compression_type,
        request.metrics,
    )
    yield from context.services.client_metrics.push(context, push)
    return PushTelemetryResponse()
