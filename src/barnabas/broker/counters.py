"""Counters of requests and connections: integers that are added to where things happen, and read by `broker.metrics`.

Its one rule: counting allocates nothing. A route holds the counters of its API and version, an endpoint those of its
listener, and each node has its own. The error codes of a response are found by a function that is compiled for its
class, as its writer is, in two forms: one at once for small responses, and one with pauses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from barnabas.broker.metrics.histogram import Histogram
from barnabas.slices import Slices
from barnabas.wire import Message
from barnabas.wire.schema import MessageSchema, StructSchema

ROWS_AT_ONCE: Final = 1024  # of a large response, looked at for errors before other work gets its turn
SMALL_BYTES: Final = 1 << 15  # a response that is not larger is looked at at once

_CODE: Final = "error_code"
_NOT_COUNTED: Final = "topic_config_error_code"  # of a topic that was created; Kafka does not count it either

_US: Final = 1000
_MS: Final = 1000 * _US
LATENCY_BOUNDS_NS: Final = (
    *(50 * _US, 100 * _US, 250 * _US, 500 * _US),
    *(_MS, 2 * _MS, 5 * _MS, 10 * _MS, 25 * _MS, 50 * _MS, 100 * _MS, 250 * _MS, 500 * _MS),
    *(1000 * _MS, 2500 * _MS, 5000 * _MS, 10_000 * _MS, 30_000 * _MS),
)


class RequestCounters:
    """Requests of one API in one version, the errors in their responses by code, and their latency in nanoseconds.

    A request ends when its response is ready to be written, so the latency has no time in which the client reads it.
    """

    __slots__ = ("errors", "latency_ns", "request", "request_bytes", "requests", "version")

    def __init__(self, request: str, version: int) -> None:
        self.request = request
        self.version = version
        self.requests = 0
        self.request_bytes = 0
        self.errors: Counter[int] = Counter()
        self.latency_ns = Histogram(LATENCY_BOUNDS_NS)

    def count_errors(self, response: Message) -> None:
        """Count the error codes of a small response, of its rows too."""
        count_errors(response, self.errors)

    def count_errors_in_slices(self, response: Message) -> Slices[None]:
        """Do the same for a response of any size, with pauses."""
        yield from count_errors_in_slices(response, self.errors)


class ListenerCounters:
    """Connections of one listener, and the bytes that they carried."""

    __slots__ = (
        "accept_waited_ms",
        "accept_waits",
        "accepted",
        "closed",
        "expired_sessions",
        "failed_logins",
        "failed_renewals",
        "incoming_bytes",
        "muted_ms",
        "mutes",
        "open",
        "outgoing_bytes",
        "successful_logins",
        "successful_renewals",
    )

    def __init__(self) -> None:
        self.open = 0
        self.accepted = 0
        self.accept_waits = 0  # because of max.connection.creation.rate
        self.accept_waited_ms = 0
        self.closed: Counter[str] = Counter()  # by reason
        self.incoming_bytes = 0
        self.outgoing_bytes = 0
        # Whether who has connected is known: by TLS alone, or by a login; and again by a login on the same connection.
        self.successful_logins = 0
        self.failed_logins = 0
        self.successful_renewals = 0
        self.failed_renewals = 0
        self.expired_sessions = 0
        self.mutes = 0
        self.muted_ms = 0


_COUNTERS: dict[type[Message], Callable[[Message, Counter[int]], None]] = {}
_SLICED_COUNTERS: dict[type[Message], Callable[[Message, Counter[int]], Slices[None]]] = {}


def has_error(response: Message, code: int) -> Slices[bool]:
    """Return True if the response has this error, as a whole or in any row."""
    errors: Counter[int] = Counter()
    yield from count_errors_in_slices(response, errors)
    return code in errors


def count_errors(response: Message, errors: Counter[int]) -> None:
    """Add the error codes of a response to `errors`."""
    count = _COUNTERS.get(type(response))
    if count is None:
        count = _COUNTERS[type(response)] = _compile(type(response), pauses=False)
    count(response, errors)


def count_errors_in_slices(response: Message, errors: Counter[int]) -> Slices[None]:
    """Do the same, with pauses."""
    count = _SLICED_COUNTERS.get(type(response))
    if count is None:
        count = _SLICED_COUNTERS[type(response)] = _compile(type(response), pauses=True)
    yield from count(response, errors)


def _compile(of: type[Message], *, pauses: bool) -> Any:
    schema = of.schema()
    lines = ["def count(row0, errors):", "    rows = 0", *_lines(schema, schema.root, 0, pauses)]
    if pauses:
        lines.append("    yield")
    names: dict[str, Any] = {}
    exec("\n".join(lines), names)  # the source is generated from this project's own schema
    return names["count"]


def _lines(schema: MessageSchema, struct: StructSchema, depth: int, pauses: bool) -> Iterator[str]:
    """Yield the lines that count the error codes of `row<depth>`: in its own fields, and in the rows of its arrays."""
    indent = "    " * (depth + 1)
    for field in struct.fields:
        if field.type == "int16" and field.name.endswith(_CODE) and field.name != _NOT_COUNTED and not field.is_array:
            yield f"{indent}if row{depth}.{field.name}: errors[row{depth}.{field.name}] += 1"
        elif field.is_struct and field.is_array:
            inner = list(_lines(schema, schema.structs[field.type], depth + 1, pauses))
            if inner:
                yield f"{indent}for row{depth + 1} in row{depth}.{field.name} or ():"
                yield from inner
                if pauses:
                    yield f"{indent}    rows += 1"
                    yield f"{indent}    if not rows % {ROWS_AT_ONCE}: yield"
