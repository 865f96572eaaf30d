"""Connections that are given up in the very turn in which they are set up."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from barnabas.broker.connection import Connection
from barnabas.broker.context import Listener
from barnabas.broker.listener_security import NO_SECURITY, ListenerSecurity
from barnabas.broker.server import Limits, Server
from barnabas.testing import Security
from tests.broker.clients import Services

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]
LISTENER = Listener("BROKER", is_controller=False)


class DroppedServer(Server):
    """A server that is dropped when it has made a connection, before those who set it up have heard of it."""

    dropping: asyncio.Task[None] | None = None

    def opened(self, connection: Connection) -> None:
        super().opened(connection)
        self.dropping = asyncio.create_task(self.drop())


def contexts(directory: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the TLS contexts of a node and of its clients."""
    security = Security("SSL")
    certificate = security.authority.issue("node", ("127.0.0.1",))
    path = directory / "node.pem"
    path.write_text(certificate.chain + certificate.key)
    of_node = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    of_node.load_cert_chain(path)
    of_clients = ssl.create_default_context(cadata=security.authority.pem)
    return of_node, of_clients


@pytest.mark.parametrize("is_protected", [False, True])
@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_connection_that_is_given_up_while_it_is_set_up_does_not_keep_the_server(
    new_loop: Callable[[], asyncio.AbstractEventLoop], is_protected: bool, tmp_path: Path
) -> None:
    """uvloop never tells such a connection that it is lost."""
    of_node, of_clients = contexts(tmp_path) if is_protected else (None, None)

    async def scenario() -> None:
        server = DroppedServer(Services(), Limits())
        security = NO_SECURITY if of_node is None else ListenerSecurity(of_node)
        address = server.bind(LISTENER, "127.0.0.1", 0, security)
        server.start()
        reader, writer = await asyncio.open_connection(*address, ssl=of_clients)
        assert await reader.read() == b""
        writer.close()
        async with asyncio.timeout(20):
            while server.dropping is None:
                await asyncio.sleep(0)
            await server.dropping
        (endpoint,) = server.endpoints
        assert not server.connections
        assert not server.by_host
        assert (endpoint.counters.open, endpoint.counters.closed.total()) == (0, 1)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(scenario())
