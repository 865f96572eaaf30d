"""Metrics that clients push to brokers (KIP-714): GetTelemetrySubscriptions (71), PushTelemetry (72).

Subscriptions are configs of CLIENT_METRICS resources, which `Configs` describes and alters.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.batches.format import Compression
from barnabas.client.admin.part import Part
from barnabas.client.routing import any_broker
from barnabas.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest
from barnabas.wire.primitives import ZERO_UUID, Uuid


@dataclass(frozen=True, slots=True)
class TelemetrySubscription:
    """The metrics that a broker wants from a client, the interval and the maximal size. `requested_metrics` are prefixes:
    `("",)` means all metrics, an empty tuple none."""

    client_instance_id: Uuid
    subscription_id: int
    accepted_compression_types: tuple[int, ...]
    push_interval_ms: int
    telemetry_max_bytes: int
    delta_temporality: bool
    requested_metrics: tuple[str, ...]


class Telemetry(Part):
    """Client telemetry."""

    async def get_telemetry_subscriptions(
        self, client_instance_id: Uuid = ZERO_UUID, *, timeout_ms: float | None = None
    ) -> TelemetrySubscription:
        """Return the subscription of a client. Without an id, the broker assigns one."""
        response: GetTelemetrySubscriptionsResponse = await self.cluster.call(
            GetTelemetrySubscriptionsRequest(client_instance_id=client_instance_id),
            any_broker(),
            feature="asking for telemetry subscriptions",
            timeout_ms=timeout_ms,
        )
        given = response.client_instance_id
        return TelemetrySubscription(
            client_instance_id=client_instance_id if given == ZERO_UUID else given,
            subscription_id=response.subscription_id,
            accepted_compression_types=tuple(response.accepted_compression_types),
            push_interval_ms=response.push_interval_ms,
            telemetry_max_bytes=response.telemetry_max_bytes,
            delta_temporality=response.delta_temporality,
            requested_metrics=tuple(response.requested_metrics),
        )

    async def push_telemetry(
        self,
        subscription: TelemetrySubscription,
        metrics: bytes,
        *,
        compression: Compression = Compression.NONE,
        terminating: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Send metrics in the OpenTelemetry encoding, already compressed with `compression`.

        Raises `KafkaError`, such as UNKNOWN_SUBSCRIPTION_ID if the subscription changed: then get it again.
        """
        request = PushTelemetryRequest(
            client_instance_id=subscription.client_instance_id,
            subscription_id=subscription.subscription_id,
            terminating=terminating,
            compression_type=compression,
            metrics=metrics,
        )
        await self.cluster.call(request, any_broker(), feature="pushing telemetry", timeout_ms=timeout_ms)
