"""Very many TLS handshakes and logins at once."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.apache_kafka import ApacheKafka, Barnabas, Node

from bench import secured
from bench.stall_causes import cause

COUNT = 600
AT_ONCE = 32


def _context(node: secured.SecuredNode) -> ssl.SSLContext:
    authority = Path(node.properties["ssl.truststore.location"])
    return secured.Files(authority, authority).context()


def _storm(node: Node, protocol: str, mechanism: str | None) -> None:
    assert isinstance(node, ApacheKafka | Barnabas)
    context = _context(node)

    def once(_: int) -> None:
        with secured.connect(node, protocol, context) as connection:
            if mechanism is not None:
                secured.log_in(connection, mechanism)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(once, range(COUNT)))


@cause(f"{COUNT:,} TLS handshakes, {AT_ONCE} at a time", is_secured=True)
def handshakes(node: Node) -> Iterator[None]:
    yield
    _storm(node, "SSL", None)


@cause(f"{COUNT:,} logins with PLAIN over TLS, {AT_ONCE} at a time", is_secured=True)
def logins(node: Node) -> Iterator[None]:
    yield
    _storm(node, "SASL_SSL", secured.PLAIN)
