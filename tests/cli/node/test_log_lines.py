"""What clients send cannot look like other lines of a node's log."""

from __future__ import annotations

import logging
import socket
import struct
from pathlib import Path

from tools.apache_kafka import free_ports

from barnabas import wire
from barnabas.cli.node.log_lines import MAX_CHARS, LogLines
from barnabas.config import properties
from barnabas.operations.security.node_settings import listener_settings
from barnabas.wire import ApiKey
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.command_line import Process

LINES = LogLines("%(levelname)s %(name)s: %(message)s")
FORGED = "PLAIN\n2026-01-01 00:00:00,000 ERROR barnabas: the disk is full\x1b[31m\r"


def formatted(message: str, *args: object, error: BaseException | None = None) -> str:
    found = None if error is None else (type(error), error, error.__traceback__)
    return LINES.format(logging.LogRecord("barnabas", logging.INFO, "", 0, message, args, found))


def test_a_message_is_one_line() -> None:
    for text in (FORGED, "a\u2028b", "\x9b31m", "\ud800"):
        line = formatted("no group %s", text)
        assert line.isprintable() and line.startswith("INFO barnabas: no group "), line
    assert formatted("größer als %d Öre", 3) == "INFO barnabas: größer als 3 Öre"


def test_a_long_message_is_cut() -> None:
    line = formatted("%s", "x" * 500_000)
    assert len(line) < MAX_CHARS + 100 and line.endswith(f"... and {500_000 - MAX_CHARS} more characters")


def test_the_text_of_an_error_begins_no_line() -> None:
    try:
        raise ValueError(FORGED)
    except ValueError as error:
        first, traceback, *rest = formatted("it failed", error=error).splitlines()
    assert (first, traceback) == ("INFO barnabas: it failed", "Traceback (most recent call last):")
    assert rest and all(line.startswith("  ") and line.isprintable() for line in rest), rest


def test_a_client_without_a_login_forges_no_line(tmp_path: Path) -> None:
    file, (port, controller_port) = tmp_path / "server.properties", free_ports(2)
    given = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "log.dirs": str(tmp_path / "data"),
        **listener_settings("SASL_PLAINTEXT", ("PLAIN",), {}, "secret"),
    }
    file.write_text(properties.dumps(given))
    header = RequestHeader(
        request_api_key=ApiKey.SASL_HANDSHAKE, request_api_version=1, correlation_id=1, client_id=FORGED
    )
    frame = wire.encode(header, 1) + wire.encode(SaslHandshakeRequest(mechanism=FORGED), 1)
    with Process("serve", file, merged=True) as node:
        node.until("reach it with")
        with socket.create_connection(("127.0.0.1", port), 10) as sock:
            sock.sendall(struct.pack(">i", len(frame)) + frame)
            while sock.recv(1000):
                pass
        line = node.until("failed authentication")
    assert "WARNING barnabas.broker.connection" in line and "PLAIN\\u000a2026" in line
