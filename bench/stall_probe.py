"""The client that waits while others keep a node busy: a process of its own with one connection.

`python -m bench.stall_probe HOST PORT PID` sends ApiVersions and a Produce of one record in turns, one request at a time,
with pauses of two milliseconds. It writes a line when it is warm, counts from then until its input ends, and prints the
longest wait as JSON. The kernel's count of what the node's main thread computed meanwhile tells how much of a wait is
due to a busy machine. If the node goes away it connects again, and does not count the first answer after that: the node
was starting.
"""

from __future__ import annotations

import gc
import json
import select
import socket
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tools.apache_kafka import Node

from barnabas.batches import Record, build_batch
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.produce import ProduceRequest
from bench import load
from bench.connection import frame

TOPIC = "probe"
PAUSE_S = 0.002
WARM_UP = 300
TIMEOUT_S = 180.0
PRODUCE_VERSION, VERSIONS_VERSION = 12, 3


class Waits(NamedTuple):
    """What the client saw."""

    longest_ms: float
    worked_ms: (
        float  # the most that the node's main thread, which is barnabas's event loop, computed during one request
    )
    requests: int


class Probe:
    """The process, from when it is warm until `waits` ends it."""

    def __init__(self, node: Node) -> None:
        command = [sys.executable, "-m", "bench.stall_probe", node.address[0], str(node.address[1]), str(node.pid)]
        root = Path(__file__).resolve().parent.parent
        self._process = subprocess.Popen(
            command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"the client that measures waits failed:\n{self._process.communicate()[1]}")

    def waits(self) -> Waits:
        out, errors = self._process.communicate(timeout=TIMEOUT_S)
        if self._process.returncode != 0:
            raise RuntimeError(f"the client that measures waits failed:\n{errors}")
        return Waits(**json.loads(out))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


def requests() -> list[bytes]:
    batch = build_batch([Record(0, 0, None, b"probe")])
    partition = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topic = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[partition])
    produce = ProduceRequest(acks=1, timeout_ms=round(TIMEOUT_S * 1000), topic_data=[topic])
    versions = ApiVersionsRequest(client_software_name="bench", client_software_version="1")
    return [frame(versions, VERSIONS_VERSION), frame(produce, PRODUCE_VERSION)]


def connected(address: tuple[str, int]) -> socket.socket:
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            client = load.connect(address)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            client.settimeout(TIMEOUT_S)
            return client


def ask(client: socket.socket, request: bytes) -> float:
    """Seconds until the whole answer is there. Raises OSError if the node closes the connection."""
    started = time.perf_counter()
    client.sendall(request)
    answer = b""
    while len(answer) < 4 or len(answer) < int.from_bytes(answer[:4]) + 4:
        more = client.recv(65536)
        if not more:
            raise ConnectionResetError("closed by the node")
        answer += more
    return time.perf_counter() - started


def computed_ns(file: Path) -> int:
    """Processor time of a thread so far; 0 if it ended, because the node was started again."""
    try:
        return int(file.read_bytes().split()[0])
    except OSError:
        return 0


def main() -> None:
    address = sys.argv[1], int(sys.argv[2])
    asked = requests()
    client = connected(address)
    for number in range(WARM_UP):
        ask(client, asked[number % len(asked)])
    gc.disable()
    print("ready", flush=True)
    longest, seen, worked = 0.0, 0, 0
    computed = Path(f"/proc/{sys.argv[3]}/task/{sys.argv[3]}/schedstat")
    is_fresh = False
    for number in count():
        if select.select([sys.stdin], [], [], PAUSE_S)[0]:
            break
        try:
            before = computed_ns(computed)
            waited = ask(client, asked[number % len(asked)])
            after = computed_ns(computed)
        except OSError:
            client.close()
            client = connected(address)
            is_fresh = True
            continue
        if not is_fresh:
            longest, worked, seen = max(longest, waited), max(worked, after - before), seen + 1
        is_fresh = False
    print(json.dumps({"longest_ms": longest * 1000, "worked_ms": worked / 1e6, "requests": seen}))


if __name__ == "__main__":
    main()
