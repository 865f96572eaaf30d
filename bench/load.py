"""A load client of its own process: ApiVersions 3 on some connections, one request in flight on each.

`python -m bench.load HOST PORT CONNECTIONS COUNT` prints latencies and throughput as JSON. Plain sockets and epoll, no
decoding beyond size, correlation id and error code, so that the server is what is measured.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tools.apache_kafka import api_versions_request

CORRELATION_ID = 7
REQUEST = api_versions_request(3, CORRELATION_ID)
HEAD = struct.Struct(">iih")  # size, correlation id, error code
TIMEOUT_S = 30


@dataclass(frozen=True)
class Load:
    """What one run saw."""

    p50_us: float
    p99_us: float
    requests_per_s: float


def run(address: tuple[str, int], connections: int, count: int) -> Load:
    """Run the client in a process of its own and wait for its answer."""
    command = [sys.executable, "-m", "bench.load", address[0], str(address[1]), str(connections), str(count)]
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=TIMEOUT_S * 4, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the load client failed:\n{done.stderr}")
    return Load(**json.loads(done.stdout))


def check(answer: bytes) -> None:
    size, correlation_id, error_code = HEAD.unpack_from(answer)
    if size + 4 != len(answer) or correlation_id != CORRELATION_ID or error_code != 0:
        raise RuntimeError(f"not the answer to the request: {answer[:32].hex()}")


def connect(address: tuple[str, int]) -> socket.socket:
    client = socket.create_connection(address, timeout=TIMEOUT_S)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def on_one_connection(address: tuple[str, int], count: int) -> list[int]:
    """Latencies in ns, with plain blocking calls: nothing is faster for one connection."""
    latencies: list[int] = []
    now = time.perf_counter_ns
    with connect(address) as client:
        send, receive = client.sendall, client.recv
        for _ in range(count):
            started = now()
            send(REQUEST)
            answer = receive(65536)
            while len(answer) < 4 or len(answer) < int.from_bytes(answer[:4]) + 4:
                answer += receive(65536) or closed()
            latencies.append(now() - started)
            check(answer)
    return latencies


def on_many_connections(address: tuple[str, int], connections: int, count: int) -> list[int]:
    """Latencies in ns; every connection sends its next request as soon as its answer is whole."""
    clients = {client.fileno(): client for client in (connect(address) for _ in range(connections))}
    started: dict[int, int] = {}
    partial: dict[int, bytes] = {}
    latencies: list[int] = []
    now = time.perf_counter_ns
    with select.epoll() as poll:
        for number, client in clients.items():
            client.setblocking(False)
            poll.register(number, select.EPOLLIN)
            started[number] = now()
            client.send(REQUEST)
        unsent = count - connections
        while len(latencies) < count:
            ready = poll.poll(TIMEOUT_S) or closed()
            for number, _ in ready:
                client = clients[number]
                answer = partial.pop(number, b"") + (client.recv(65536) or closed())
                if len(answer) < 4 or len(answer) < int.from_bytes(answer[:4]) + 4:
                    partial[number] = answer
                    continue
                moment = now()
                latencies.append(moment - started[number])
                if unsent > 0:
                    unsent -= 1
                    started[number] = moment
                    client.send(REQUEST)
                check(answer)
    for client in clients.values():
        client.close()
    return latencies


def closed() -> NoReturn:
    raise RuntimeError("the server closed a connection or stopped answering")


def main() -> None:
    host, port, connections, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    begin = time.perf_counter()
    if connections == 1:
        latencies = on_one_connection((host, port), count)
    else:
        latencies = on_many_connections((host, port), connections, count)
    seconds = time.perf_counter() - begin
    latencies.sort()
    p50, p99 = (latencies[int(len(latencies) * part)] / 1000 for part in (0.50, 0.99))
    print(json.dumps({"p50_us": p50, "p99_us": p99, "requests_per_s": len(latencies) / seconds}))


if __name__ == "__main__":
    main()
