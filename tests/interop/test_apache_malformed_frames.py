"""Frames that no client should send: barnabas answers, closes or waits where Apache Kafka does."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from typing import NamedTuple

import pytest
from tools.apache_kafka import ApacheKafka, Barnabas, api_versions_request

pytestmark = pytest.mark.interop

SILENCE_S = 1.0  # how long a node is given to answer or close before it counts as waiting


class Outcome(NamedTuple):
    answers: int
    connection: str


def frame(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">i", len(body)) + body


def header(key: int, version: int, client_id: bytes = b"\x00\x04test") -> bytes:
    return struct.pack(">hhi", key, version, 7) + client_id


def outcome(address: tuple[str, int], sent: bytes, end: bool = False) -> Outcome:
    """How many whole answers came, and whether the connection was closed by then."""
    received = b""
    connection = "open"
    with socket.create_connection(address, timeout=SILENCE_S) as client:
        deadline = time.monotonic() + SILENCE_S
        with contextlib.suppress(BrokenPipeError):
            client.sendall(sent)
            if end:
                client.shutdown(socket.SHUT_WR)
        while (left := deadline - time.monotonic()) > 0:
            client.settimeout(left)
            try:
                part = client.recv(65536)
            except TimeoutError:
                break
            except ConnectionResetError:
                part = b""
            if not part:
                connection = "closed"
                break
            received += part
    return Outcome(count_frames(received), connection)


def count_frames(data: bytes) -> int:
    count = 0
    while data:
        size = struct.unpack(">i", data[:4])[0]
        assert len(data) >= 4 + size, "an answer was cut"
        data = data[4 + size :]
        count += 1
    return count


CLOSED = Outcome(0, "closed")
WAITS = Outcome(0, "open")
ANSWERED = Outcome(1, "open")

CASES = {
    "a truncated body": (frame(header(3, 5), b"\x00\x00\x00\x05\x00\x06exi"), CLOSED),
    "an unknown api key": (frame(header(999, 0)), CLOSED),
    "a negative api key": (frame(header(-1, 0)), CLOSED),
    "a version of Metadata that does not exist": (frame(header(3, 99), b"\x00\x01"), CLOSED),
    "a negative version": (frame(header(3, -1), b"\x00\x01"), CLOSED),
    "a very negative length": (b"\x80\x00\x00\x00" + b"x" * 10, CLOSED),
    "a length of zero": (b"\x00\x00\x00\x00", CLOSED),
    "a length of three": (b"\x00\x00\x00\x03abc", CLOSED),
    "a length one above the limit": (struct.pack(">i", 104857601) + header(18, 0), CLOSED),
    "a length at the limit and then silence": (struct.pack(">i", 104857600) + header(18, 0), WAITS),
    "half a frame and then silence": (b"\x00\x00\x00\x14\x00\x03\x00\x09\x00", WAITS),
    "half a size and then silence": (b"\x00\x00", WAITS),
    "a garbage header": (frame(b"\xde\xad\xbe\xef" * 6), CLOSED),
    "a TLS hello": (b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03" + b"\x01" * 200, CLOSED),
    "an HTTP request": (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", CLOSED),
    "a client id longer than the frame": (frame(header(18, 0, b"\x01\xf4abc")), CLOSED),
    "a client id length of -2": (frame(header(18, 0, b"\xff\xfe")), ANSWERED),
    "bytes after the body": (frame(header(18, 0), b"trailing"), ANSWERED),
    "an array length far too large": (frame(header(3, 5), b"\x7f\xff\xff\xff"), CLOSED),
    "a varint without an end": (frame(header(3, 9), b"\x00" + b"\xff" * 7), CLOSED),
    "a request that only controllers serve": (frame(header(52, 0), b"\x00\x01\x01\x00"), CLOSED),
    "an ApiVersions of version 99 under the old header": (frame(header(18, 99)), CLOSED),
    "two requests in one write": (api_versions_request(0) + api_versions_request(3), Outcome(2, "open")),
    "a good request before a bad one": (api_versions_request(0) + frame(header(999, 0)), Outcome(1, "closed")),
}


@pytest.mark.parametrize("case", CASES)
def test_a_frame_has_the_same_outcome_on_both(kafka: ApacheKafka, barnabas_node: Barnabas, case: str) -> None:
    sent, expected = CASES[case]
    assert outcome(kafka.address, sent) == expected
    assert outcome(barnabas_node.address, sent) == expected


@pytest.mark.parametrize(
    "sent", [b"", b"\x00\x00", b"\x00\x00\x00\x14\x00\x03"], ids=["nothing", "half a size", "half a frame"]
)
def test_a_client_that_ends_early_is_closed_without_an_answer(
    kafka: ApacheKafka, barnabas_node: Barnabas, sent: bytes
) -> None:
    assert outcome(kafka.address, sent, end=True) == CLOSED
    assert outcome(barnabas_node.address, sent, end=True) == CLOSED


def test_the_answers_of_one_connection_come_in_the_order_of_its_requests(
    kafka: ApacheKafka, barnabas_node: Barnabas
) -> None:
    for node in (kafka, barnabas_node):
        with socket.create_connection(node.address, timeout=5) as client, client.makefile("rb") as stream:
            client.sendall(b"".join(api_versions_request(number % 5, number) for number in range(100)))
            seen = []
            for _ in range(100):
                size, correlation_id = struct.unpack(">ii", stream.read(8))
                stream.read(size - 4)
                seen.append(correlation_id)
        assert seen == list(range(100))
