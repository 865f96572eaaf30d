"""Requests by API and version, errors by code, and latency by API."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.counters import LATENCY_BOUNDS_NS
from barnabas.broker.metrics.exposition import Exposition, counter, histogram, labels
from barnabas.broker.metrics.histogram import Histogram
from barnabas.broker.metrics.observed import Observed
from barnabas.slices import Slices
from barnabas.wire import ErrorCode

NS_PER_MS = 1_000_000

REQUESTS = counter("kafka_network_requestmetrics_requests_total", "Requests that were received.", "request", "version")
ERRORS = counter(
    "kafka_network_requestmetrics_errors_total",
    "Error codes in responses, one for each row that has one.",
    *("request", "error"),
)
LATENCY = histogram(
    "kafka_network_requestmetrics_totaltimems",
    "Milliseconds from a request's arrival until its response was ready to be sent, waiting included.",
    "request",
)
BYTES = counter("barnabas_request_bytes_total", "Bytes of requests, without the size of their frames.", "request")
METRICS = (REQUESTS, ERRORS, LATENCY, BYTES)


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    latencies: dict[str, Histogram] = {}
    errors: dict[str, Counter[int]] = {}
    request_bytes: Counter[str] = Counter()
    for found in list(node.services.requests.values()):
        name = found.request
        out.add(REQUESTS, found.requests, labels(request=name, version=found.version))
        latencies.setdefault(name, Histogram(LATENCY_BOUNDS_NS)).add(found.latency_ns)
        errors.setdefault(name, Counter()).update(found.errors)
        request_bytes[name] += found.request_bytes
        yield
    for name, latency in latencies.items():
        text = labels(request=name)
        out.add_histogram(LATENCY, latency, text, unit=NS_PER_MS)
        out.add(BYTES, request_bytes[name], text)
        for code, count in errors[name].items():
            out.add(ERRORS, count, labels(request=name, error=_name(code)))
        yield


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
