"""Members of share groups on this broker: their sessions, and what is in flight of each share partition."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.metrics.exposition import Exposition, counter, gauge, labels
from barnabas.broker.metrics.observed import Observed
from barnabas.replicas.share.in_flight import AcknowledgeType
from barnabas.slices import Slices

SESSIONS = gauge("kafka_server_sharesessioncache_sharesessionscount", "Share sessions.")
PARTITIONS = gauge("kafka_server_sharesessioncache_sharepartitionscount", "Partitions of all share sessions.")
EVICTIONS = counter(
    "kafka_server_sharesessioncache_sharesessionevictions_total",
    "Share sessions that ended because a client disconnected.",
)
ACKNOWLEDGED = counter(
    "kafka_server_sharegroupmetrics_recordacknowledgements_total", "Records acknowledged by members.", "ack_type"
)
LOADED = gauge("barnabas_share_partitions", "Share partitions that this broker has loaded.")
LOADS = counter("barnabas_share_partition_loads_total", "Loads of the state of a share partition.")
FAILED_LOADS = counter(
    "barnabas_share_partition_failed_loads_total", "Loads of the state of a share partition that failed."
)
WRITES = counter("barnabas_share_state_writes_total", "Writes of changes of share partitions.")
FAILED_WRITES = counter(
    "barnabas_share_state_failed_writes_total", "Writes of changes of share partitions that failed."
)
EXPIRED = counter(
    "kafka_server_sharepartitionmetrics_acquisitionlocktimeouts_total", "Records released because their lock expired."
)
GIVEN_UP = counter(
    "barnabas_share_records_given_up_total", "Records delivered as often as their group allows, and never accepted."
)
IN_FLIGHT = gauge(
    "kafka_server_sharepartitionmetrics_inflightmessagecount",
    "Records in flight of a share partition.",
    "group",
    "topic",
    "partition",
)
METRICS = (
    *(SESSIONS, PARTITIONS, EVICTIONS, ACKNOWLEDGED),
    *(LOADED, LOADS, FAILED_LOADS, WRITES, FAILED_WRITES, EXPIRED, GIVEN_UP, IN_FLIGHT),
)


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    if node.coordinators is None:
        return
    shares = node.coordinators.share_partitions
    counters = shares.counters
    out.add(SESSIONS, len(shares.sessions))
    out.add(PARTITIONS, shares.sessions.partition_count)
    out.add(EVICTIONS, shares.sessions.ended_by_disconnect)
    for kind in AcknowledgeType:
        out.add(ACKNOWLEDGED, counters.acknowledged.get(kind, 0), labels(ack_type=kind.name.lower()))
    out.add(LOADED, len(shares))
    out.add(LOADS, counters.loads)
    out.add(FAILED_LOADS, counters.failed_loads)
    out.add(WRITES, counters.writes)
    out.add(FAILED_WRITES, counters.failed_writes)
    out.add(EXPIRED, counters.expired_locks)
    out.add(GIVEN_UP, counters.given_up)
    yield
    left = node.max_rows("partitions")
    for led in shares.all():
        if led.state is not None and left > 0:
            left -= 1
            name = labels(group=led.key.group_id, topic=led.replica.topic, partition=str(led.key.partition))
            out.add(IN_FLIGHT, led.state.in_flight_count, name)
        elif led.state is not None:
            left_out["partitions"] += 1
        yield
