"""The cluster as its metadata shows it: topics, partitions, leaders, brokers."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.metrics.exposition import Exposition, Metric, gauge
from barnabas.broker.metrics.observed import Observed
from barnabas.metadata import topics
from barnabas.slices import Slices

PAUSE_EVERY = 256  # partitions


def _controller(name: str, help: str) -> Metric:
    return gauge(f"kafka_controller_kafkacontroller_{name}", help)


ACTIVE = _controller("activecontrollercount", "1 if this node is the active controller, otherwise 0.")
OFFLINE = _controller("offlinepartitionscount", "Partitions of the cluster without a leader.")
TOPICS = _controller("globaltopiccount", "Topics of the cluster.")
PARTITIONS = _controller("globalpartitioncount", "Partitions of the cluster.")
IMBALANCE = _controller("preferredreplicaimbalancecount", "Partitions whose leader is not the preferred one.")
BROKERS = _controller("activebrokercount", "Brokers that are registered and not fenced.")
FENCED = _controller("fencedbrokercount", "Brokers that are registered and fenced.")
APPLIED = _controller("lastappliedrecordoffset", "Offset of the last metadata record that this node has applied.")
APPLIED_MS = _controller("lastappliedrecordtimestamp", "Time of that record, in milliseconds since 1970.")
METRICS = (ACTIVE, OFFLINE, TOPICS, PARTITIONS, IMBALANCE, BROKERS, FENCED, APPLIED, APPLIED_MS)


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    image = node.image
    if image is None or node.quorum is None:
        return
    counts = image.topics.counts
    fenced = sum(broker.fenced for broker in image.brokers.values())
    out.add(ACTIVE, int(node.quorum.driver.is_leader))
    out.add(OFFLINE, counts.get(topics.NO_LEADER, 0))
    out.add(TOPICS, len(image.topics.by_id))
    out.add(PARTITIONS, sum(count for leader, count in counts.items() if leader != topics.REASSIGNING))
    out.add(BROKERS, len(image.brokers) - fenced)
    out.add(FENCED, fenced)
    out.add(APPLIED, image.offset)
    out.add(APPLIED_MS, image.provenance.last_contained_timestamp_ms)
    imbalance = 0
    for topic in image.topics.by_id.values():
        for number, partition in enumerate(topic.partitions):
            imbalance += partition.leader != partition.preferred_leader
            if number % PAUSE_EVERY == PAUSE_EVERY - 1:
                yield
        yield
    out.add(IMBALANCE, imbalance)
