"""Runs the console over HTTP or HTTPS, and says where it is."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import uvicorn

from barnabas.config.endpoints import address_text
from barnabas.console.app import build
from barnabas.console.security.hosts import is_loopback
from barnabas.console.settings import ConsoleError, ConsoleSettings

_BACKLOG = 100
_MAX_CONNECTIONS = 1_000
_STOP_S = 1


class _Server(uvicorn.Server):
    """Leaves signals to the command that runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def address_of(settings: ConsoleSettings) -> str:
    """Return the address to open, without a token."""
    host = "localhost" if settings.host in ("0.0.0.0", "::", "") else settings.host
    return f"{settings.scheme}://{address_text(host, settings.port)}/"


def lines_of(settings: ConsoleSettings) -> Iterator[str]:
    """Yield what to print when the console answers: its address, with the start token if one is needed."""
    address = address_of(settings)
    if not all(each.requires_login for each in settings.clusters):
        address += f"?token={settings.token}"
    what = "changes are allowed" if settings.allow_changes else "read-only"
    yield f"console: {address} ({what})"
    if not is_loopback(settings.host):
        yield f"warning: the console listens on {settings.host}: other machines can reach it"
        if not settings.has_tls:
            yield "warning: without --certificate and --key, logins and the token are accepted from this machine only"


@contextlib.asynccontextmanager
async def running(settings: ConsoleSettings) -> AsyncIterator[ConsoleSettings]:
    """Run a console. Yields its settings with the port that it has. Raises ConsoleError."""
    listening = _bind(settings.host, settings.port)
    settings = replace(settings, port=listening.getsockname()[1])
    try:
        app = build(settings)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            lifespan="on",
            ws="none",
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_graceful_shutdown=_STOP_S,
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.key,
        )
        config.load()
    except OSError as error:
        listening.close()
        raise ConsoleError(f"the certificate or the key cannot be used: {error}") from error
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    server = _Server(config)
    serving = asyncio.create_task(server.serve([listening]))
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(0.005)
        if serving.done():
            serving.result()
            raise ConsoleError("the console could not be started: see its log")
        yield settings
    finally:
        app.state.console.begin_closing()
        server.should_exit = True
        await serving
        listening.close()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise ConsoleError(f"cannot listen on {address_text(host, port)}: {error.strerror or error}") from error
    return listening
