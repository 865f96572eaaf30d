"""Clients above their quotas."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.metrics.exposition import Exposition, counter, gauge, labels
from barnabas.broker.metrics.observed import Observed
from barnabas.quotas import bounds
from barnabas.slices import Slices

THROTTLED = counter("barnabas_quota_throttled_requests_total", "Requests that were throttled.", "quota")
THROTTLED_MS = counter("barnabas_quota_throttle_milliseconds_total", "Throttle times of requests.", "quota")
CLIENTS = gauge("barnabas_quota_clients", "Clients whose rate is measured, or was in the last hour.", "quota")
METRICS = (THROTTLED, THROTTLED_MS, CLIENTS)


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    quotas = node.services.quotas
    for key, quota in (
        (bounds.PRODUCER_BYTE_RATE, quotas.produce),
        (bounds.CONSUMER_BYTE_RATE, quotas.fetch),
        (bounds.REQUEST_PERCENTAGE, quotas.request),
        (bounds.CONTROLLER_MUTATION_RATE, quotas.mutations),
    ):
        text = labels(quota=key)
        out.add(THROTTLED, quota.throttled, text)
        out.add(THROTTLED_MS, quota.throttled_ms, text)
        out.add(CLIENTS, len(quota), text)
    yield
