"""Connections, bytes and throttling by listener."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.metrics.exposition import Exposition, counter, gauge, labels
from barnabas.broker.metrics.observed import Observed
from barnabas.slices import Slices

COUNT = gauge("kafka_server_socket_server_metrics_connection_count", "Open connections.", "listener")
CREATED = counter(
    "kafka_server_socket_server_metrics_connection_creation_total", "Connections that were accepted.", "listener"
)
CLOSED = counter(
    "kafka_server_socket_server_metrics_connection_close_total",
    "Connections that were closed, by what closed them: client, error, idle, limit, rate or stop.",
    *("listener", "reason"),
)
INCOMING = counter("kafka_server_socket_server_metrics_incoming_byte_total", "Bytes received from clients.", "listener")
OUTGOING = counter("kafka_server_socket_server_metrics_outgoing_byte_total", "Bytes sent to clients.", "listener")
MUTES = counter(
    "barnabas_connection_mutes_total", "Times that a connection was muted because its client was throttled.", "listener"
)
MUTED_MS = counter(
    "barnabas_connection_muted_milliseconds_total", "Throttle times for which connections were muted.", "listener"
)
ACCEPT_WAITS = counter(
    "barnabas_connection_accept_waits_total",
    "Times that a listener waited before the next connection because of max.connection.creation.rate.",
    "listener",
)
ACCEPT_WAIT_MS = counter(
    "barnabas_connection_accept_wait_milliseconds_total", "Times for which listeners waited that way.", "listener"
)
_SOCKETS = "kafka_server_socket_server_metrics_"
LOGINS = counter(
    f"{_SOCKETS}successful_authentication_total",
    "Connections that have logged in, or have done a TLS handshake.",
    "listener",
)
FAILED_LOGINS = counter(
    f"{_SOCKETS}failed_authentication_total", "Logins and TLS handshakes that have failed.", "listener"
)
RENEWALS = counter(
    f"{_SOCKETS}successful_reauthentication_total", "Sessions that were continued by another login.", "listener"
)
FAILED_RENEWALS = counter(
    f"{_SOCKETS}failed_reauthentication_total", "Sessions that were ended by another login, which failed.", "listener"
)
EXPIRED = counter(
    f"{_SOCKETS}expired_connections_killed_total",
    "Connections that were closed because their session had ended, and their client did not log in again.",
    "listener",
)
METRICS = (
    *(COUNT, CREATED, CLOSED, INCOMING, OUTGOING, LOGINS, FAILED_LOGINS, RENEWALS, FAILED_RENEWALS, EXPIRED),
    *(MUTES, MUTED_MS, ACCEPT_WAITS, ACCEPT_WAIT_MS),
)
REASONS = ("client", "error", "idle", "limit", "rate", "stop")


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    for endpoint in list(node.server.endpoints):
        name, counters = endpoint.listener.name, endpoint.counters
        text = labels(listener=name)
        out.add(COUNT, counters.open, text)
        out.add(CREATED, counters.accepted, text)
        for reason in dict.fromkeys((*REASONS, *counters.closed)):
            out.add(CLOSED, counters.closed[reason], labels(listener=name, reason=reason))
        out.add(INCOMING, counters.incoming_bytes, text)
        out.add(OUTGOING, counters.outgoing_bytes, text)
        out.add(LOGINS, counters.successful_logins, text)
        out.add(FAILED_LOGINS, counters.failed_logins, text)
        out.add(RENEWALS, counters.successful_renewals, text)
        out.add(FAILED_RENEWALS, counters.failed_renewals, text)
        out.add(EXPIRED, counters.expired_sessions, text)
        out.add(MUTES, counters.mutes, text)
        out.add(MUTED_MS, counters.muted_ms, text)
        out.add(ACCEPT_WAITS, counters.accept_waits, text)
        out.add(ACCEPT_WAIT_MS, counters.accept_waited_ms, text)
        yield
