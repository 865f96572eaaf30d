"""A node of barnabas against a node of Apache Kafka: time to the first answer, idle memory, ApiVersions round trips.

Both run at the same time and are loaded in turns; Kafka has the JVM settings of its own scripts and is warmed up first.
Formatting Kafka's directory is not counted. The client takes one of the machine's cores from both alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from tools.apache_kafka import KAFKA_JVM, VERSION, ApacheKafka, Barnabas, Node

from bench import load
from bench.table import Row, from_rounds
from bench.timing import alternating

SECTION = "server"
PEER = f"Apache Kafka {VERSION}"
STARTS = 5
IDLE_S = 5.0
ROUNDS = 9
WARM_UP = ((64, 40_000), (1, 5_000))
LOADS = {1: 3_000, 64: 15_000}  # connections: requests a round

START_TARGET = 10.0
MEMORY_TARGET = 5.0
LOAD_TARGET = 1.0


class Round(NamedTuple):
    """One load of one node; processor time is what the neighbours on a busy machine disturb least."""

    load: load.Load
    cpu_us: float


def kafka() -> Node:
    return ApacheKafka(jvm=KAFKA_JVM)


def run(ours: Callable[[], Node] = Barnabas, theirs: Callable[[], Node] = kafka) -> list[Row]:
    """All questions of this section; another pair of nodes can be given to see how much is noise."""
    rows = [start_to_first_answer(ours, theirs)]
    with ours() as our_node, theirs() as their_node:
        rows.append(idle_memory(our_node, their_node))
        for connections, count in WARM_UP:
            for node in (our_node, their_node):
                load.run(node.address, connections, count)
        for connections, count in LOADS.items():
            rows += round_trips(our_node, their_node, connections, count)
    return rows


def start_to_first_answer(ours: Callable[[], Node], theirs: Callable[[], Node]) -> Row:
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(STARTS):
        for make, seen in alternating([(ours, times[0]), (theirs, times[1])], number):
            with make() as node:
                seen.append(node.started_s)
                node.kill()
    return from_rounds(SECTION, "spawn to first answer", times[0], PEER, times[1], "s", START_TARGET)


def idle_memory(our_node: Node, their_node: Node) -> Row:
    time.sleep(IDLE_S)
    our_mb, their_mb = ([node.rss_bytes() / 1e6] for node in (our_node, their_node))
    return from_rounds(SECTION, "resident memory, idle", our_mb, PEER, their_mb, "MB", MEMORY_TARGET)


def round_trips(our_node: Node, their_node: Node, connections: int, count: int) -> list[Row]:
    ours: list[Round] = []
    theirs: list[Round] = []
    for number in range(ROUNDS):
        for node, seen in alternating([(our_node, ours), (their_node, theirs)], number):
            before = node.cpu_s()
            loaded = load.run(node.address, connections, count)
            seen.append(Round(loaded, (node.cpu_s() - before) / count * 1e6))
    what = f"ApiVersions v3, {connections} connection{'s' if connections > 1 else ''}"

    def row(name: str, unit: str, of: Callable[[Round], float], target: float | None, more: bool = False) -> Row:
        our_values, their_values = ([of(each) for each in seen] for seen in (ours, theirs))
        return from_rounds(SECTION, f"{what}, {name}", our_values, PEER, their_values, unit, target, more)

    return [
        row("p50", "us", lambda each: each.load.p50_us, LOAD_TARGET),
        row("p99", "us", lambda each: each.load.p99_us, LOAD_TARGET),
        row("throughput", "requests/s", lambda each: each.load.requests_per_s, LOAD_TARGET, more=True),
        row("server CPU per request", "us", lambda each: each.cpu_us, None),
    ]
