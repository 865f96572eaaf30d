"""Records, bytes and requests by topic. The row without a topic is the sum over all topics, as in Kafka."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.metrics.exposition import Exposition, Metric, counter, labels
from barnabas.broker.metrics.observed import Observed
from barnabas.replicas.traffic import TopicTraffic
from barnabas.slices import Slices


def _metric(name: str, help: str) -> Metric:
    return counter(f"kafka_server_brokertopicmetrics_{name}_total", help, "topic")


BY_FIELD = {
    "messages_in": _metric("messagesin", "Records appended to partitions that this broker leads."),
    "bytes_in": _metric("bytesin", "Bytes of batches appended to partitions that this broker leads."),
    "bytes_out": _metric("bytesout", "Bytes of batches sent to consumers."),
    "bytes_rejected": _metric("bytesrejected", "Bytes of batches that were refused."),
    "replication_bytes_in": _metric("replicationbytesin", "Bytes of batches fetched from leaders."),
    "replication_bytes_out": _metric("replicationbytesout", "Bytes of batches sent to followers."),
    "produce_requests": _metric("totalproducerequests", "Produce requests, one for each of their partitions."),
    "fetch_requests": _metric("totalfetchrequests", "Partitions in Fetch responses."),
    "failed_produce_requests": _metric("failedproducerequests", "Partitions of Produce requests that failed."),
    "failed_fetch_requests": _metric("failedfetchrequests", "Partitions of Fetch requests that failed."),
    "share_fetch_requests": _metric("totalsharefetchrequests", "ShareFetch requests, one for each of their topics."),
    "failed_share_fetch_requests": _metric("failedsharefetchrequests", "Topics of ShareFetch requests that failed."),
    "share_acknowledge_requests": _metric(
        "totalshareacknowledgementrequests", "Requests with acknowledgements, one for each of their topics."
    ),
    "failed_share_acknowledge_requests": _metric(
        "failedshareacknowledgementrequests", "Topics of requests with acknowledgements that failed."
    ),
}
METRICS = tuple(BY_FIELD.values())


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    if node.replicas is None:
        return
    traffic = node.replicas.traffic
    total = TopicTraffic()
    total.add(traffic.others)
    left = node.max_rows("topics")
    for topic, found in traffic:
        total.add(found)
        if left > 0:
            left -= 1
            _add(out, found, labels(topic=topic))
        else:
            left_out["topics"] += 1
        yield
    _add(out, total, "")


def _add(out: Exposition, found: TopicTraffic, text: str) -> None:
    for field, metric in BY_FIELD.items():
        out.add(metric, getattr(found, field), text)
