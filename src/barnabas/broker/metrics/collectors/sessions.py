"""What clients leave at the node: fetch sessions and pushed metrics."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.metrics.exposition import Exposition, counter, gauge
from barnabas.broker.metrics.observed import Observed
from barnabas.slices import Slices

SESSIONS = gauge("kafka_server_fetchsessioncache_numincrementalfetchsessions", "Fetch sessions.")
PARTITIONS = gauge(
    "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached", "Partitions of all fetch sessions."
)
EVICTIONS = counter(
    "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total", "Fetch sessions that made room for others."
)
INSTANCES = gauge("kafka_server_client_metrics_instance_count", "Clients that have asked which metrics to push.")
PUSHES = counter("barnabas_telemetry_pushes_total", "Pushes of client metrics that were accepted.")
PUSHED_BYTES = counter("barnabas_telemetry_pushed_bytes_total", "Bytes of client metrics that were accepted.")
METRICS = (SESSIONS, PARTITIONS, EVICTIONS, INSTANCES, PUSHES, PUSHED_BYTES)


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    sessions, telemetry = node.services.fetch_sessions, node.services.client_metrics
    out.add(SESSIONS, len(sessions))
    out.add(PARTITIONS, sessions.partition_count)
    out.add(EVICTIONS, sessions.evictions)
    out.add(INSTANCES, len(telemetry))
    out.add(PUSHES, telemetry.pushes)
    out.add(PUSHED_BYTES, telemetry.pushed_bytes)
    yield
