"""One connection to a node, with the requests and answers of Kafka's protocol, and nothing else that costs time."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from typing import Any, Self

from tools.apache_kafka import Node

from barnabas import wire
from barnabas.wire import APIS, Message
from barnabas.wire.messages.header import RequestHeader
from bench import load


class Client:
    """One connection; `ask` gives the whole answer to one request as bytes, and the seconds it took."""

    def __init__(self, node: Node, timeout_s: float = load.TIMEOUT_S) -> None:
        self.node = node
        self._socket = load.connect(node.address)
        self._socket.settimeout(timeout_s)

    def ask(self, request: Message, version: int) -> tuple[bytes, float]:
        asked = frame(request, version)
        started = time.perf_counter()
        self.send(asked)
        return self.receive(), time.perf_counter() - started

    def call(self, request: Message, version: int) -> tuple[Any, float]:
        """The answer decoded, which is not in the time."""
        answer, seconds = self.ask(request, version)
        api = APIS[request.schema().key or 0]
        return wire.decode(api.response, version, answer[4 + api.response_header_version(version) :]), seconds

    def send(self, frames: bytes) -> None:
        """Send frames that were made beforehand."""
        self._socket.sendall(frames)

    def receive(self) -> bytes:
        """The next answer, without its size."""
        return bytes(self._receive(struct.unpack(">i", self._receive(4))[0]))

    def _receive(self, size: int) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            count = self._socket.recv_into(view)
            if not count:
                raise ConnectionError("the node closed the connection")
            view = view[count:]
        return data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def frame(request: Message, version: int) -> bytes:
    """A request with size and header."""
    key = request.schema().key or 0
    api = APIS[key]
    header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=1, client_id="bench")
    body = wire.encode(header, api.request_header_version(version)) + wire.encode(request, version)
    return struct.pack(">i", len(body)) + body
