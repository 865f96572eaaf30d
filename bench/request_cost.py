"""`python -m bench.request_cost [SRC ...]`: what one small request costs a node, without sockets and without a peer.

A node runs in a process, and the same frame goes to `dispatch` again and again. The CPU time of a request is the least of
many short repeats, so that other work on the machine changes little; the number of Python functions called for it is
exact. To compare revisions, name the folder `src` of each: a round asks all of them in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

from tools.apache_kafka import ROOT, free_ports

from barnabas.batches import Record, build_batch
from barnabas.broker.context import Listener, Peer
from barnabas.broker.dispatch import dispatch
from barnabas.broker.node import Node
from barnabas.config import server
from barnabas.security.principal import ANONYMOUS
from barnabas.wire import Message
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from bench.connection import frame

ROUNDS, REPEATS, CALLS = 5, 60, 25
TOPIC, PARTITIONS = "cost", 20
MAX_BYTES = 1 << 20
SIZE_BYTES = 4


def produce(partitions: int) -> Message:
    batch = build_batch([Record(0, 1_700_000_000_000, b"key", b"v" * 100)])
    data = [ProduceRequest.PartitionProduceData(index=index, records=batch) for index in range(partitions)]
    topic = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=data)
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])


def fetch(partitions: int) -> Message:
    asked = [
        FetchRequest.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=200)
        for index in range(partitions)
    ]
    topic = FetchRequest.FetchTopic(topic=TOPIC, partitions=asked)
    return FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=MAX_BYTES, session_epoch=-1, topics=[topic])


def requests() -> dict[str, bytes]:
    """Frames by what is asked, without their sizes. One Produce comes first, so that there is something to fetch."""
    one = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=TOPIC)])
    asked: dict[str, tuple[Message, int]] = {
        "Produce of one record": (produce(1), 12),
        f"Produce of one record to {PARTITIONS} partitions": (produce(PARTITIONS), 12),
        "Fetch of one partition": (fetch(1), 12),
        f"Fetch of {PARTITIONS} partitions": (fetch(PARTITIONS), 12),
        "Metadata of one topic": (one, 12),
        "ApiVersions": (ApiVersionsRequest(client_software_name="bench", client_software_version="1"), 3),
    }
    return {name: frame(*each)[SIZE_BYTES:] for name, each in asked.items()}


async def measured(directory: Path) -> dict[str, tuple[float, int]]:
    """The microseconds of CPU and the called functions of each request."""
    broker, controller = free_ports(2)
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
        "log.dirs": str(directory / "data"),
        "log.retention.ms": "-1",  # a fetch needs records, however long all this takes
    }
    node = Node(server.load(None, settings))
    await node.start()
    peer = Peer("127.0.0.1", ANONYMOUS, Listener("PLAINTEXT", False))

    async def ask(request: bytes) -> None:
        answer = dispatch(request, node, peer)
        if inspect.isawaitable(answer):
            await answer

    try:
        new = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
        await ask(frame(CreateTopicsRequest(topics=[new], timeout_ms=10_000), 5)[SIZE_BYTES:])
        found = {}
        for name, request in requests().items():
            for _ in range(3):  # readers are compiled, logs are opened
                await ask(request)
                await asyncio.sleep(0.1)
            calls = await _calls(ask, request)
            found[name] = (await _microseconds(ask, request), calls)
        return found
    finally:
        await node.stop()


async def _microseconds(ask: Callable[[bytes], Awaitable[None]], request: bytes) -> float:
    best = float("inf")
    gc.collect()
    gc.disable()
    try:
        for _ in range(REPEATS):
            started = time.thread_time_ns()
            for _ in range(CALLS):
                await ask(request)
            best = min(best, (time.thread_time_ns() - started) / CALLS / 1000)
            await asyncio.sleep(0)
    finally:
        gc.enable()
    return best


async def _calls(ask: Callable[[bytes], Awaitable[None]], request: bytes) -> int:
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        await ask(request)
    finally:
        sys.setprofile(None)
    return calls


def _once() -> None:
    with tempfile.TemporaryDirectory() as directory:
        print(json.dumps(asyncio.run(measured(Path(directory)))))


def _in_process(source: Path) -> dict[str, tuple[float, int]]:
    command = [sys.executable, "-m", "bench.request_cost", "--once"]
    environment = {**os.environ, "PYTHONPATH": f"{source.absolute()}:{ROOT}"}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, tuple[float, int]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.request_cost", description=__doc__)
    parser.add_argument("sources", nargs="*", type=Path, default=[ROOT / "src"], metavar="SRC")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        _once()
        return
    best: list[dict[str, tuple[float, int]]] = [{} for _ in arguments.sources]
    for _ in range(arguments.rounds):
        for source, found in zip(arguments.sources, best, strict=True):
            for name, (microseconds, calls) in _in_process(source).items():
                found[name] = (min(microseconds, found.get(name, (microseconds, 0))[0]), calls)
    print("| request |" + "".join(f" {source} |" for source in arguments.sources))
    print("|---|" + "---|" * len(best))
    for name in best[0]:
        print(f"| {name} |" + "".join(f" {found[name][0]:.1f} us, {found[name][1]} calls |" for found in best))


if __name__ == "__main__":
    main()
