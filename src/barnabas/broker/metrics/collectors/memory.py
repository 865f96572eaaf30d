"""The memory of requests and unread responses, and what happens when it is short."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.metrics.exposition import Exposition, counter, gauge
from barnabas.broker.metrics.observed import Observed
from barnabas.slices import Slices

REQUESTS = gauge("barnabas_request_memory_bytes", "Bytes of requests that are being received or worked on.")
PEAK = gauge("barnabas_request_memory_max_bytes", "The most of these bytes since the start.")
LIMIT = gauge("barnabas_request_memory_limit_bytes", "Limit on these bytes.")
EXHAUSTED = counter("barnabas_request_memory_exhausted_total", "Times that reading was limited because of it.")
WAITING = gauge("barnabas_request_memory_waiting_connections", "Connections that are not read because of it.")
STALLED = counter(
    "barnabas_request_memory_stalled_total", "Connections closed because their request made no progress meanwhile."
)
UNREAD = gauge("barnabas_response_memory_bytes", "Bytes of responses that clients have not read yet.")
UNREAD_LIMIT = gauge("barnabas_response_memory_limit_bytes", "Limit on these bytes.")
UNREAD_CLOSED = counter(
    "barnabas_response_memory_closed_total", "Connections closed because of responses that they did not read."
)
METRICS = (REQUESTS, PEAK, LIMIT, EXHAUSTED, WAITING, STALLED, UNREAD, UNREAD_LIMIT, UNREAD_CLOSED)


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    memory = node.server.memory
    out.add(REQUESTS, memory.requests.held_bytes)
    out.add(PEAK, memory.requests.most_held_bytes)
    out.add(LIMIT, memory.requests.limit_bytes)
    out.add(EXHAUSTED, memory.requests.exhausted_total)
    out.add(WAITING, memory.requests.waiting_count)
    out.add(STALLED, memory.stalled_total)
    out.add(UNREAD, memory.unread_bytes)
    out.add(UNREAD_LIMIT, memory.response_limit_bytes)
    out.add(UNREAD_CLOSED, memory.unread_closed_total)
    yield
