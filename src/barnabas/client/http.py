"""One HTTP request at a time, for the services of OAuth: tokens and the keys that verify them.

Its one rule: nothing is followed and nothing is endless. A redirection is an answer like any other, an answer has at most
`MAX_BYTES`, and every wait has a timeout. The functions block; callers run them in threads.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from http.client import HTTPConnection

MAX_BYTES: Final = 512 * 1024
DEFAULT_TIMEOUT_S: Final = 20.0

R = TypeVar("R")


class HttpError(Exception):
    """No usable answer. `is_final` if asking again would not help."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final


class Answer(NamedTuple):
    status: int
    body: bytes

    def __repr__(self) -> str:
        return f"Answer({self.status}, {len(self.body)} bytes)"


class Timeouts(NamedTuple):
    """Of connecting, and of each wait for data."""

    connect_s: float = DEFAULT_TIMEOUT_S
    read_s: float = DEFAULT_TIMEOUT_S


def ask(
    url: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeouts: Timeouts = Timeouts(),  # noqa: B008 - a value
    tls: ssl.SSLContext | None = None,
) -> Answer:
    """Send GET, or POST if there is a body, and return the answer. Raises `HttpError`."""
    import http.client  # noqa: PLC0415 - slow to import, and few clients need it

    parts = urlsplit(url)
    host = parts.hostname or ""
    connection: HTTPConnection
    try:
        if parts.scheme.lower() == "https":
            context = tls or ssl.create_default_context()
            connection = http.client.HTTPSConnection(host, parts.port, timeout=timeouts.connect_s, context=context)
        else:
            connection = http.client.HTTPConnection(host, parts.port, timeout=timeouts.connect_s)
        try:
            connection.connect()
            connection.sock.settimeout(timeouts.read_s)
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("GET" if body is None else "POST", path, body, dict(headers or {}))
            response = connection.getresponse()
            data = response.read(MAX_BYTES + 1)
        finally:
            connection.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise HttpError(f"{_shown(url)} cannot be reached: {error or type(error).__name__}") from None
    if len(data) > MAX_BYTES:
        raise HttpError(f"{_shown(url)} answered with more than {MAX_BYTES} bytes", is_final=True)
    return Answer(response.status, data)


def with_retries(attempt: Callable[[], R], backoff_ms: int, backoff_max_ms: int) -> R:
    """Return what `attempt` returns, again and again with doubled pauses for `backoff_max_ms` in all. Raises `HttpError`.

    As in Kafka, the first error is the one that is raised.
    """
    end_s = time.monotonic() + backoff_max_ms / 1000
    first: HttpError | None = None
    pause_s = backoff_ms / 1000
    while True:
        try:
            return attempt()
        except HttpError as error:
            first = first or error
            pause_s = min(pause_s, end_s - time.monotonic())
            if error.is_final or pause_s <= 0:
                raise first from None
        time.sleep(pause_s)
        pause_s *= 2


def _shown(url: str) -> str:
    """Return a URL for messages, without a query or a user, which may have secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
