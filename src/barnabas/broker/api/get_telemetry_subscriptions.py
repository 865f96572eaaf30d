"""GetTelemetrySubscriptions (71), version 0.

Returns the metrics that a client must push and the interval, from all client metrics subscriptions that match it, and
an id if it has none. A request before the interval has passed is THROTTLING_QUOTA_EXCEEDED, unless subscriptions have
changed or the last push failed with UNKNOWN_SUBSCRIPTION_ID or UNSUPPORTED_COMPRESSION_TYPE. ApiVersions lists this API
only if barnabas.telemetry.receiver is set.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.steps import Slices
from barnabas.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

_ACCEPTED_COMPRESSION_TYPES = (4, 3, 1, 2)  # zstd, lz4, gzip, snappy, best first


def handle(context: Context, request: GetTelemetrySubscriptionsRequest) -> Slices[GetTelemetrySubscriptionsResponse]:
    client_metrics = context.services.client_metrics
    instance_id, instance = yield from client_metrics.get(context, request.client_instance_id)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=list(_ACCEPTED_COMPRESSION_TYPES),
        push_interval_ms=instance.push_interval_ms,
        telemetry_max_bytes=client_metrics.max_bytes,
        delta_temporality=True,
        requested_metrics=instance.metrics,
    )
