"""Lines of the log that clients cause: limited, counted, and those of others are not held back."""

from __future__ import annotations

import asyncio
import logging
import socket

import pytest

from barnabas.broker import client_lines
from barnabas.broker.client_lines import MAX_LINES_PER_S, ClientLines
from barnabas.testing import Broker

_LOGGER = logging.getLogger("barnabas.broker.connection")
_NO_REQUEST = bytes.fromhex("00000008 7fff0000 00000001")  # an API that does not exist


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_so_many_lines_are_written_and_the_others_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        lines = ClientLines()
        for number in range(MAX_LINES_PER_S + 7):
            lines.log(_LOGGER, logging.WARNING, "client %d", number)
        lines.end_second()
        lines.log(_LOGGER, logging.WARNING, "a second later")
        lines.end_second()

    asyncio.run(main())
    written = [f"client {number}" for number in range(MAX_LINES_PER_S)]
    assert lines_of(caplog) == [
        *written,
        "7 more lines about clients were left out in the last second",
        "a second later",
    ]


def test_lines_below_the_level_of_the_log_do_not_count(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        lines = ClientLines()
        for _ in range(MAX_LINES_PER_S * 2):
            lines.log(_LOGGER, logging.DEBUG, "not shown")
        lines.log(_LOGGER, logging.WARNING, "shown")
        lines.end_second()

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    assert lines_of(caplog) == ["shown"]


def test_clients_that_are_refused_do_not_fill_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_lines, "MAX_LINES_PER_S", 1)
    refused = 200
    with Broker() as broker:
        host, port = broker.bootstrap_servers.split(":")
        for _ in range(refused):
            with socket.create_connection((host, int(port))) as client:
                client.sendall(_NO_REQUEST)
                assert client.recv(1) == b""
    closing = [line for line in lines_of(caplog) if line.startswith("closing the connection from 127.0.0.1")]
    left_out = [int(line.split()[0]) for line in lines_of(caplog) if "were left out" in line]
    assert len(closing) + sum(left_out) == refused
    assert left_out
