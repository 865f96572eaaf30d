"""Metrics that clients push to brokers (KIP-714): GetTelemetrySubscriptions (71), PushTelemetry (72).

What is subscribed to are settings of CLIENT_METRICS resources, which `Configs` shows and changes.
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
    """Which metrics a broker wants of a client, how often, and how much. `requested_metrics` are prefixes: `("",)` is all of
    them, and none at all is an empty tuple."""

    client_instance_id: Uuid
    subscription_id: int
    accepted_compression_types: tuple[int, ...]
    push_interval_ms: int
    telemetry_max_bytes: int
    delta_temporality: bool
    requested_metrics: tuple[str, ...]


class Telemetry(Part):
    """What clients tell brokers of themselves."""

    async def get_telemetry_subscriptions(
        self, client_instance_id: Uuid = ZERO_UUID, *, timeout_ms: float | None = None
    ) -> TelemetrySubscription:
        """What is wanted of a client; one that asks without an id is given one."""
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
        """Send metrics, as OpenTelemetry encodes them; `metrics` are compressed already, in the way that is named.

        Raises `KafkaError`, as UNKNOWN_SUBSCRIPTION_ID after the subscription changed: ask for it again.
        """
        request = PushTelemetryRequest(
            client_instance_id=subscription.client_instance_id,
            subscription_id=subscription.subscription_id,
            terminating=terminating,
            compression_type=compression,
            metrics=metrics,
        )
        await self.cluster.call(request, any_broker(), feature="pushing telemetry", timeout_ms=timeout_ms)
