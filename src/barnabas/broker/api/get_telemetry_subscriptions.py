"""GetTelemetrySubscriptions (71), version 0.

Tells a client which metrics to push how often, from all client metrics subscriptions that fit it, and gives it an id if it
has none. Who asks again before the interval is over is THROTTLING_QUOTA_EXCEEDED, unless subscriptions changed or the last
push failed for not knowing them. ApiVersions shows this API only where barnabas.telemetry.receiver is set.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

_ACCEPTED_COMPRESSION_TYPES = (4, 3, 1, 2)  # zstd, lz4, gzip, snappy, the best first


def handle(context: Context, request: GetTelemetrySubscriptionsRequest) -> GetTelemetrySubscriptionsResponse:
    client_metrics = context.services.client_metrics
    instance_id, instance = client_metrics.get(context, request.client_instance_id)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=list(_ACCEPTED_COMPRESSION_TYPES),
        push_interval_ms=instance.push_interval_ms,
        telemetry_max_bytes=client_metrics.max_bytes,
        delta_temporality=True,
        requested_metrics=instance.metrics,
    )
