"""Nodes with listeners for TLS and logins beside the plain one, and the client side of both.

Certificates are new for each run, with keys of P-256, and are trusted by the clients here alone.
"""

from __future__ import annotations

import datetime
import itertools
import socket
import ssl
import struct
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tools.apache_kafka import HOST, KAFKA_JVM, ApacheKafka, Barnabas

from barnabas import wire
from barnabas.client.admin.users import ScramMechanism, ScramUpsertion
from barnabas.client.sync import Admin
from barnabas.operations.security.certificates import Authority
from barnabas.operations.security.node_settings import jaas_line
from barnabas.security.sasl import ClientMechanism
from barnabas.security.sasl.plain import PlainClient
from barnabas.security.sasl.scram import ScramClient
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from bench import load
from bench.connection import frame

PROTOCOLS = ("SSL", "SASL_SSL")
PLAIN, SCRAM = "PLAIN", "SCRAM-SHA-256"
USER, PASSWORD = "alice", "alices-secret"
HANDSHAKE_VERSION, AUTHENTICATE_VERSION = 1, 2

SecuredNode = ApacheKafka | Barnabas
_NONCES = map("{:024d}".format, itertools.count())


class Files(NamedTuple):
    """The certificates of a run."""

    node: Path
    authority: Path

    def settings(self) -> dict[str, str]:
        """The settings of a node with these listeners."""
        own = (USER, PASSWORD)
        names = ("PLAINTEXT", *PROTOCOLS)
        return {
            "listener.security.protocol.map": ",".join(["CONTROLLER:PLAINTEXT", *(f"{each}:{each}" for each in names)]),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.node),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "sasl.enabled.mechanisms": f"{PLAIN},{SCRAM}",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": jaas_line(PLAIN, own, {}),
            "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": jaas_line(SCRAM, own, {}),
        }

    def context(self) -> ssl.SSLContext:
        """What a client trusts. Each connection needs a whole handshake: nothing resumes an earlier session."""
        context = ssl.create_default_context(cafile=self.authority)
        context.options |= ssl.OP_NO_TICKET
        return context

    def librdkafka(self, node: SecuredNode, protocol: str = "SSL") -> dict[str, str]:
        host, port = node.addresses[protocol]
        return {
            "bootstrap.servers": f"{host}:{port}",
            "security.protocol": protocol.lower(),
            "ssl.ca.location": str(self.authority),
        }


@contextmanager
def files() -> Iterator[Files]:
    with tempfile.TemporaryDirectory(prefix="bench-security-") as name:
        folder = Path(name)
        authority = Authority("bench", datetime.datetime.now(datetime.UTC))
        certificate = authority.issue("node", [HOST, "localhost"])
        (folder / "node.pem").write_text(certificate.key + certificate.chain)
        (folder / "authority.pem").write_text(authority.pem)
        yield Files(folder / "node.pem", folder / "authority.pem")


def kafka(found: Files, settings: Mapping[str, str]) -> ApacheKafka:
    return ApacheKafka({**settings, **found.settings()}, jvm=KAFKA_JVM, more_listeners=PROTOCOLS)


def barnabas(found: Files, settings: Mapping[str, str]) -> Barnabas:
    return Barnabas({**settings, **found.settings()}, more_listeners=PROTOCOLS)


def create_scram_user(node: SecuredNode) -> None:
    with Admin({"bootstrap.servers": node.bootstrap}) as admin:
        made = admin.alter_user_scram_credentials([ScramUpsertion(USER, ScramMechanism.SCRAM_SHA_256, PASSWORD)])
        if any(made.values()):
            raise RuntimeError(f"the user was not created: {made}")


def connect(node: SecuredNode, protocol: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    """A connection whose handshake is complete."""
    return context.wrap_socket(load.connect(node.addresses[protocol]), server_hostname=HOST)


def log_in(connection: socket.socket, mechanism: str) -> None:
    client: ClientMechanism = PlainClient(USER, PASSWORD)
    if mechanism != PLAIN:
        client = ScramClient(mechanism, USER, PASSWORD, nonce=next(_NONCES))
    ask(connection, frame(SaslHandshakeRequest(mechanism=mechanism), HANDSHAKE_VERSION))
    token: bytes | None = client.first()
    while token is not None:
        answer = ask(connection, frame(SaslAuthenticateRequest(auth_bytes=token), AUTHENTICATE_VERSION))
        response = wire.decode("SaslAuthenticateResponse", AUTHENTICATE_VERSION, answer[5:])
        if response.error_code:
            raise RuntimeError(f"the login failed: {response.error_message}")
        token = client.answer(response.auth_bytes)


def ask(connection: socket.socket, request: bytes) -> bytes:
    """The answer to a request, without its size."""
    connection.sendall(request)
    (size,) = struct.unpack(">i", _received(connection, 4))
    return _received(connection, size)


def _received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data)) or load.closed()
    return data


def close(connections: Sequence[socket.socket]) -> None:
    for each in connections:
        each.close()
