"""What clients leave at the node: fetch sessions, pushed metrics, and what quotas count."""

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
TELEMETRY_BYTES = gauge("barnabas_telemetry_memory_bytes", "Memory of the clients that push metrics, estimated.")
TELEMETRY_FORGOTTEN = counter(
    "barnabas_telemetry_forgotten_total", "Clients that push metrics and were forgotten to make room for others."
)
QUOTA_BYTES = gauge("barnabas_quota_memory_bytes", "Memory of clients with a mutation quota, estimated.")
QUOTA_FORGOTTEN = counter("barnabas_quota_forgotten_total", "Clients with a quota that were forgotten to make room.")
METRICS = (
    *(SESSIONS, PARTITIONS, EVICTIONS),
    *(INSTANCES, PUSHES, PUSHED_BYTES, TELEMETRY_BYTES, TELEMETRY_FORGOTTEN),
    *(QUOTA_BYTES, QUOTA_FORGOTTEN),
)


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    sessions, telemetry = node.services.fetch_sessions, node.services.client_metrics
    out.add(SESSIONS, len(sessions))
    out.add(PARTITIONS, sessions.partition_count)
    out.add(EVICTIONS, sessions.evictions)
    out.add(INSTANCES, len(telemetry))
    out.add(PUSHES, telemetry.pushes)
    out.add(PUSHED_BYTES, telemetry.pushed_bytes)
    out.add(TELEMETRY_BYTES, telemetry.instances.held_bytes)
    out.add(TELEMETRY_FORGOTTEN, telemetry.instances.forgotten_total)
    buckets = node.services.quotas.mutations.buckets
    out.add(QUOTA_BYTES, buckets.held_bytes)
    out.add(QUOTA_FORGOTTEN, buckets.forgotten_total)
    yield
