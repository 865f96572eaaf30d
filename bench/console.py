"""The console with 100,000 partitions: time, CPU and bytes of each page, memory, and what it costs the cluster.

A page is measured after the first answer, as somebody sees it who comes back or has it open. The load of the cluster is the
number of requests that the console counts itself for each new answer, with one page that is open and with ten: how often a
question is asked depends on how long the cluster needs for it, and so on the machine.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.apache_kafka import Barnabas

from barnabas.client.admin.topics import NewTopic
from barnabas.client.records import TopicPartition
from barnabas.client.sync import Admin
from bench.table import Row

TOPICS, PARTITIONS = 10_000, 10
GROUPS = 20
PAGES = (
    "",
    "/topics",
    "/topics?sort=-size&page=50",
    "/topics/topic-00001",
    "/groups",
    "/group?id=group-1",
    "/brokers",
    "/brokers/1",
    "/brokers/1?tab=settings&all=1",
    "/quorum",
    "/rehearsal?do=kill:1",
    "/reassignments",
    "/reassignments?goal=rebalance",
    "/access",
    "/metadata?path=image/topics/byName",
    "/metadata?tab=log",
    "/transactions",
    "/history",
)
LIMIT_MS, LIMIT_BYTES = 100.0, 300_000
VISITS = 10
WATCHED_S = 60.0
_TOKEN = "token-of-the-benchmark"
_TICKS = os.sysconf("SC_CLK_TCK")


class _Console:
    """A `barnabas console` in a process of its own, and a session with it."""

    def __init__(self, bootstrap: str) -> None:
        words = ["-m", "barnabas", "console", "-b", bootstrap, "--listen", "127.0.0.1:0"]
        environment = {**os.environ, "BARNABAS_CONSOLE_TOKEN": _TOKEN}
        self.process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, env=environment, text=True)
        assert self.process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.process.stdout.readline())
        assert found is not None
        self.port = int(found[1])
        entered = self.request(f"/?token={_TOKEN}")
        self.cookie = entered.getheader("Set-Cookie", "").partition(";")[0]
        self.base = self.request("/").getheader("Location", "")

    cookie = ""

    def connect(self, path: str) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET", path, headers={"Cookie": self.cookie})
        return connection

    def request(self, path: str) -> http.client.HTTPResponse:
        return self.connect(path).getresponse()

    def page(self, path: str) -> str:
        return self.request(self.base + path).read().decode()

    @property
    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def memory_bytes(self) -> int:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @contextlib.contextmanager
    def open_pages(self, count: int, path: str) -> Iterator[list[int]]:
        """Keep so many pages open, which are brought up to date and read again as in browsers. Yields the answers of each."""
        keys = _keys(self.page(path))
        is_over, answers = threading.Event(), [0] * count
        streams = [self.connect(f"{self.base}/events?keys={keys}") for _ in range(count)]

        def follow(number: int, stream: http.client.HTTPConnection) -> None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                answer = stream.getresponse()
                while not is_over.is_set() and (line := answer.readline()):
                    if line.startswith(b"data: {"):
                        answers[number] += 1
                        self.page(path)

        threads = [threading.Thread(target=follow, args=each, daemon=True) for each in enumerate(streams)]
        for each in threads:
            each.start()
        try:
            yield answers
        finally:
            is_over.set()
            for stream in streams:
                if stream.sock is not None:
                    stream.sock.shutdown(socket.SHUT_RDWR)  # ends the thread that reads; closing would wait for it
            for thread in threads:
                thread.join()

    def requests_per_minute(self) -> int:
        found = re.search(r"([\d,]+) requests? to the cluster", self.page("/quorum"))
        assert found is not None
        return int(found[1].replace(",", ""))

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(30)


class _Seen(NamedTuple):
    """What one page cost after its first answer."""

    wall_ms: float
    cpu_ms: float
    bytes: int


def run() -> list[Row]:
    """Start a broker and a console, each a process of its own, and measure."""
    with Barnabas() as node:
        _fill(node.bootstrap)
        console = _Console(node.bootstrap)
        try:
            seen = {path: _measured(console, path) for path in PAGES}
            memory = console.memory_bytes / 1e6
            one, ten = (_load(console, count) for count in (1, 10))
        finally:
            console.close()
            node.kill()  # a clean stop of so many logs takes long, and nothing is measured in it
    rows = [row for path, each in seen.items() for row in _rows_of(path, each)]
    rows.append(Row("console", "memory after all pages", memory, "-", None, "MB", None, None, None, None))
    name = "requests for each new answer, ten pages"
    # Its two questions are not asked equally often in both minutes. If ten pages cost ten times as much, this would be 0.1.
    rows.append(Row("console", name, ten, "one page", one, "requests", one / ten, None, None, 0.8))
    return rows


def _fill(bootstrap: str) -> None:
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        for begin in range(0, TOPICS, 500):
            numbers = range(begin, begin + 500)
            admin.create_topics([NewTopic(f"topic-{number:05}", PARTITIONS) for number in numbers])
        for number in range(GROUPS):
            offsets = {TopicPartition(f"topic-{number:05}", each): 0 for each in range(PARTITIONS)}
            admin.alter_consumer_group_offsets(f"group-{number}", offsets)


def _measured(console: _Console, path: str) -> _Seen:
    """Visit a page until its answers are there, and then several times."""
    until_s = time.monotonic() + 40
    while "as of <time>" not in console.page(path) and time.monotonic() < until_s:
        time.sleep(0.5)
    walls, before_s, text = [], console.cpu_s, ""
    for _ in range(VISITS):
        began_s = time.perf_counter()
        text = console.page(path)
        walls.append((time.perf_counter() - began_s) * 1000)
    return _Seen(statistics.median(walls), (console.cpu_s - before_s) * 1000 / VISITS, len(text.encode()))


def _load(console: _Console, count: int) -> float:
    with console.open_pages(count, "/quorum") as answers:
        time.sleep(2)  # the first answers
        before = max(answers)
        time.sleep(WATCHED_S)
        return console.requests_per_minute() / max(max(answers) - before, 1)


def _keys(page: str) -> str:
    found = re.search(r'data-keys="([^"]+)"', page)
    assert found is not None
    return found[1]


def _rows_of(path: str, seen: _Seen) -> Iterator[Row]:
    name = path or "overview"
    ratio = LIMIT_MS / max(seen.wall_ms, 0.001)
    yield Row("console", f"{name}: time", seen.wall_ms, "limit", LIMIT_MS, "ms", ratio, None, None, 1.0)
    yield Row("console", f"{name}: CPU", seen.cpu_ms, "-", None, "ms", None, None, None, None)
    ratio = LIMIT_BYTES / seen.bytes
    yield Row("console", f"{name}: size", seen.bytes, "limit", LIMIT_BYTES, "bytes", ratio, None, None, 1.0)
