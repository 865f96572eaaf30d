"""One controller with many brokers and partitions that exist only in its log and as requests: barnabas and Apache Kafka.

Measured at each size: the time from spawn until the first heartbeat is answered (the log is read, then a second time from a
snapshot, if the node has written one), memory, heartbeats each second, and how long it takes to fence a broker that leads
many partitions. `BENCH_CONTROL_PLANE_SIZES=10000,100000,1000000` chooses the numbers of partitions; there is a broker for each
thousand. Apache Kafka is left out above BENCH_CONTROL_PLANE_PEER partitions (100,000).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.apache_kafka import HOST, KAFKA_JVM, VERSION, ApacheKafka, Barnabas, Node

from barnabas.client.connection import Connection
from barnabas.metadata.versions import LATEST_VERSION
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.records.metadata import PartitionRecord, TopicRecord
from bench import big_cluster
from bench.big_cluster import Versioned
from bench.table import Row

SECTION = "control-plane"
PEER = f"Apache Kafka {VERSION}"
SIZES = tuple(map(int, os.environ.get("BENCH_CONTROL_PLANE_SIZES", "10000,100000,1000000").split(",")))
MAX_PEER_PARTITIONS = int(os.environ.get("BENCH_CONTROL_PLANE_PEER", "100000"))
PARTITIONS_OF_A_BROKER = 1000
FENCED_LEADS = 10_000
FIRST_BROKER = 1000
PARTITIONS_PER_TOPIC = 100
TOPICS_PER_BATCH = 20
CONNECTIONS = 20
BEATS_S = 8.0
HEARTBEAT_VERSION = 1
READY_S = 900.0
SETTINGS = {
    "process.roles": "controller",
    "broker.session.timeout.ms": "86400000",  # the simulated brokers are silent most of the time
    "metadata.log.max.record.bytes.between.snapshots": "1000000",
}


class Seen(NamedTuple):
    """What was seen of one node. Seconds, MB, heartbeats each second, microseconds of processor time."""

    load_s: float
    reload_s: float
    memory_mb: float
    beats: float
    beat_cpu_us: float
    fence_s: float


def run() -> list[Row]:
    rows: list[Row] = []
    for partitions in SIZES:
        ours = measure(partitions, is_ours=True)
        theirs = measure(partitions, is_ours=False) if partitions <= MAX_PEER_PARTITIONS else None
        rows += _rows(partitions, ours, theirs)
    return rows


def _rows(partitions: int, ours: Seen, theirs: Seen | None) -> Iterator[Row]:
    size = f"{partitions:,} partitions, {_brokers(partitions):,} brokers"
    names = {
        "load_s": ("start until the first heartbeat is answered", "s", False),
        "reload_s": ("the same once more, with a snapshot", "s", False),
        "memory_mb": ("resident memory", "MB", False),
        "beats": ("heartbeats", "each s", True),
        "beat_cpu_us": ("processor time of a heartbeat", "us", False),
        "fence_s": (f"fence a broker that leads {min(FENCED_LEADS, partitions // 2):,}", "s", False),
    }
    for name, (what, unit, more) in names.items():
        our_value = getattr(ours, name)
        their_value = None if theirs is None else getattr(theirs, name)
        ratio = None
        if their_value is not None:
            ratio = our_value / their_value if more else their_value / our_value
        yield Row(SECTION, f"{size}: {what}", our_value, PEER, their_value, unit, ratio, None, None, None)


def measure(partitions: int, *, is_ours: bool) -> Seen:
    with _written(partitions, is_ours=is_ours) as node:
        load_s = _start(node)
        time.sleep(2)
        memory_mb = node.rss_bytes() / 1e6
        before = node.cpu_s()
        count = asyncio.run(_beat(node, _brokers(partitions)))
        cpu_us = (node.cpu_s() - before) / count * 1e6
        fence_s = asyncio.run(_fence(node))
        _wait_snapshot(node)
        node.kill()
        reload_s = _start(node)
        return Seen(load_s, reload_s, memory_mb, count / BEATS_S, cpu_us, fence_s)


def _brokers(partitions: int) -> int:
    return max(partitions // PARTITIONS_OF_A_BROKER, 4)


@contextlib.contextmanager
def _written(partitions: int, *, is_ours: bool) -> Iterator[Node]:
    with tempfile.TemporaryDirectory(prefix="bench-control-plane-") as folder:
        node: Barnabas | ApacheKafka
        if is_ours:
            node = Barnabas(_ours(SETTINGS), directory=Path(folder))
            host, port = node.controller.split(":")
            node.command = [
                each.replace(node.properties["listeners"], f"CONTROLLER://{node.controller}") for each in node.command
            ]
            node.command += ["--override", f"controller.quorum.bootstrap.servers={node.controller}"]
            node.address = (host, int(port))
        else:
            jvm = [each if not each.startswith("-Xmx") else "-Xmx4G" for each in KAFKA_JVM]
            node = ApacheKafka(SETTINGS, directory=Path(folder), jvm=jvm)
        write(Path(folder) / "data", node.controller, partitions)
        try:
            yield node
        finally:
            node.kill()


def _ours(settings: dict[str, str]) -> dict[str, str]:
    return {**settings, "node.id": "1", "controller.listener.names": "CONTROLLER"}


def write(log_dir: Path, controller: str, partitions: int) -> None:
    """Write a metadata log with brokers that are alive, and topics on them. The first broker leads many partitions."""
    source = random.Random(partitions)
    log = big_cluster.begin(log_dir, controller, source, _now_ms)
    ids = [FIRST_BROKER + number for number in range(_brokers(partitions))]
    directories = {each: big_cluster.uuid(source) for each in ids}
    for each in ids:
        epoch = log.end_offset
        big_cluster.append(
            log, [big_cluster.broker(each, directories[each], big_cluster.uuid(source), epoch)], _now_ms()
        )
    rest = min(FENCED_LEADS, partitions // 2)
    made = 0
    while made < partitions:
        records: list[Versioned] = []
        for _ in range(TOPICS_PER_BATCH):
            topic_id = big_cluster.uuid(source)
            name = f"topic-{made // PARTITIONS_PER_TOPIC:06d}"
            records.append((TopicRecord(name=name, topic_id=topic_id), 0))
            for index in range(PARTITIONS_PER_TOPIC):
                first = 0 if rest > 0 else source.randrange(1, len(ids))
                rest -= 1
                replicas = [ids[(first + step) % len(ids)] for step in range(3)]
                record = PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=replicas,
                    isr=replicas,
                    leader=replicas[0],
                    leader_epoch=source.randrange(big_cluster.EPOCHS),
                    partition_epoch=source.randrange(big_cluster.EPOCHS),
                    directories=[directories[replica] for replica in replicas],
                )
                records.append((record, LATEST_VERSION.partition_record_version))
            made += PARTITIONS_PER_TOPIC
            if made >= partitions:
                break
        big_cluster.append(log, records, _now_ms())
    log.flush()
    log.close()


def _start(node: Node) -> float:
    """Start, and return the seconds until the first heartbeat of a simulated broker is answered."""
    started = time.perf_counter()
    node.start(READY_S)
    asyncio.run(_wait_ready(node))
    return time.perf_counter() - started


async def _wait_ready(node: Node) -> None:
    async with asyncio.timeout(READY_S):
        while True:
            with contextlib.suppress(OSError, TimeoutError):
                connection = await Connection.open(HOST, node.address[1], "bench")
                try:
                    if (await connection.call(_heartbeat(_LAST), HEARTBEAT_VERSION)).error_code == 0:
                        return
                finally:
                    connection.close()
            await asyncio.sleep(0.02)


_LAST = 3


def _heartbeat(number: int, *, want_fence: bool = False) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(
        broker_id=FIRST_BROKER + number,
        broker_epoch=_epoch_of(number),
        current_metadata_offset=1 << 40,
        want_fence=want_fence,
    )


def _epoch_of(number: int) -> int:
    """The offset of its registration: those of brokers follow each other, behind the features."""
    return len(big_cluster.features()) + number


async def _beat(node: Node, brokers: int) -> int:
    """Send heartbeats over some connections, each with one under way; the number of those that were answered."""
    end_s = time.monotonic() + BEATS_S

    async def beat(first: int) -> int:
        connection = await Connection.open(HOST, node.address[1], "bench")
        count, number = 0, first
        while time.monotonic() < end_s:
            answer = await connection.call(_heartbeat(number), HEARTBEAT_VERSION)
            if answer.error_code:
                raise RuntimeError(f"a heartbeat was answered with {answer.error_code}")
            count, number = count + 1, (number + CONNECTIONS) % brokers
        connection.close()
        return count

    return sum(await asyncio.gather(*(beat(each % brokers) for each in range(CONNECTIONS))))


async def _fence(node: Node) -> float:
    """Seconds until the first broker, which asks to be fenced, is."""
    connection = await Connection.open(HOST, node.address[1], "bench")
    started = time.perf_counter()
    answer = await connection.call(_heartbeat(0, want_fence=True), HEARTBEAT_VERSION, timeout_ms=READY_S * 1000)
    seconds = time.perf_counter() - started
    connection.close()
    if answer.error_code or not answer.is_fenced:
        raise RuntimeError(f"the broker was not fenced: {answer}")
    return seconds


def _wait_snapshot(node: Node) -> None:
    """Wait for a snapshot, which follows what was written since; without one, the log is read again."""
    assert isinstance(node, Barnabas | ApacheKafka)
    folder = node.directory / "data" / "__cluster_metadata-0"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not list(folder.glob("*.checkpoint")):
        time.sleep(0.2)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
