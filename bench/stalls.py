"""How long one client waits while another keeps the node busy: barnabas beside Apache Kafka, for every cause of `stall_causes`.

The waiting client is `stall_probe`, a process of its own. Both nodes run at once and are loaded in turns, with Kafka's own
JVM settings, and are new for each cause. A row is the median over the rounds of the longest wait, and what is allowed is
Kafka's or 100 ms, whichever is larger; "times better" is what is allowed divided by ours. The row `nothing` shows what
the machine itself adds. This takes an hour with all causes and rounds, so `python -m bench` runs it only if it is named;
`python -m bench.stalls --rounds 1 --alone fetch` is for a look at a few.

With `--save FILE` each cause is added to a file as soon as it is measured, and left out if the file has it already, so
that a long run may be done in parts, or ended and begun again. `--show FILE` prints the table of what a file has.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.apache_kafka import KAFKA_JVM, VERSION, ApacheKafka, Barnabas, Node, NotStarted

from barnabas.wire.messages.create_topics import CreateTopicsRequest
from bench import secured
from bench.connection import Client
from bench.stall_causes import Cause, all_causes
from bench.stall_probe import TOPIC, Probe, Waits
from bench.table import Row, not_possible, render
from bench.timing import alternating

SECTION = "stalls"
PEER = f"Apache Kafka {VERSION}"
ROUNDS = 5
ALLOWED_MS = 100.0
SETTLE_S = 0.3
SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",
}


class Measured(NamedTuple):
    """The longest waits of the rounds of one cause."""

    name: str
    ours: list[float]
    worked: list[float]  # the most that our event loop computed during one wait
    theirs: list[float]
    load: float  # of the machine, when it began


def run(
    rounds: int = ROUNDS, parts: Sequence[str] = (), *, alone: bool = False, saved: Path | None = None
) -> list[Row]:
    """Measure the causes whose area or name contains one of the parts; all without any."""
    rows = []
    known = {} if saved is None else read_saved(saved)
    for cause in chosen(parts):
        if cause.name in known:
            rows.append(row_of(known[cause.name]))
            continue
        print(f"  {cause.area}: {cause.name} ...", file=sys.stderr, flush=True)
        try:
            measured = measure(cause, rounds, alone=alone)
        except (OSError, RuntimeError, ValueError, NotStarted, subprocess.TimeoutExpired) as error:
            print(f"    was not measured: {error}", file=sys.stderr, flush=True)
            rows.append(not_possible(SECTION, cause.name, PEER))
            continue
        rows.append(row_of(measured))
        if saved is not None:
            with saved.open("a") as file:
                file.write(json.dumps(measured._asdict()) + "\n")
    return rows


def read_saved(file: Path) -> dict[str, Measured]:
    """Return what a file has, by name of the cause."""
    lines = file.read_text().splitlines() if file.exists() else []
    return {each.name: each for each in (Measured(**json.loads(line)) for line in lines)}


def table(known: dict[str, Measured], parts: Sequence[str] = ()) -> str:
    """Return the table of docs/performance.md: medians of the rounds, for all causes."""
    lines = [
        "| cause | longest wait, barnabas | its loop computed at most | longest wait, Kafka | rounds | load |",
        "|---|---|---|---|---|---|",
    ]
    for cause in chosen(parts):
        measured = known.get(cause.name)
        if measured is None:
            lines.append(f"| {cause.name} | not measured | | | | |")
            continue
        waits = _median(measured.ours), _median(measured.worked), _median(measured.theirs)
        lines.append(f"| {cause.name} | {' | '.join(waits)} | {len(measured.ours)} | {measured.load:.0f} |")
    return "\n".join(lines)


def _median(times: Sequence[float]) -> str:
    return f"{statistics.median(times):.0f} ms" if times else "-"


def chosen(parts: Sequence[str]) -> list[Cause]:
    return [each for each in all_causes() if not parts or any(part in each.name or part == each.area for part in parts)]


def measure(cause: Cause, rounds: int, *, alone: bool = False) -> Measured:
    seen: dict[str, list[float]] = {"barnabas": [], "Kafka": []}
    worked: list[float] = []
    load = os.getloadavg()[0]
    settings = {**SETTINGS, **cause.settings}
    listeners: Sequence[str] = secured.PROTOCOLS if cause.is_secured else ()
    with contextlib.ExitStack() as stack:
        if cause.is_secured:
            settings |= stack.enter_context(secured.files()).settings()
        ours = Barnabas(settings, more_listeners=listeners)
        nodes: list[tuple[str, Node]] = [("barnabas", stack.enter_context(ours))]
        if cause.has_peer and not alone:
            peer = ApacheKafka(settings, jvm=KAFKA_JVM, more_listeners=listeners)
            nodes.append(("Kafka", stack.enter_context(peer)))
        for _, node in nodes:
            with Client(node) as client:
                _create_topic(client)
        for number in range(rounds):
            for name, node in alternating(nodes, number):
                started = time.monotonic()
                try:
                    waits = measure_once(cause, node)
                except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
                    if name == "barnabas":
                        raise
                    print(f"    Kafka is left out from here on: {error}", file=sys.stderr, flush=True)
                    nodes = nodes[:1]
                    continue
                seen[name].append(waits.longest_ms)
                text = f"    {name}: {waits.longest_ms:.0f} ms at most, of {waits.requests} requests"
                if name == "barnabas":
                    worked.append(waits.worked_ms)
                    text += f" (its loop computed {waits.worked_ms:.0f} ms at most)"
                print(f"{text}; the round took {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return Measured(cause.name, seen["barnabas"], worked, seen["Kafka"], load)


def measure_once(cause: Cause, node: Node) -> Waits:
    steps: Iterator[None] = cause.load(node)
    with contextlib.closing(steps):  # type: ignore[type-var]
        next(steps)
        with Probe(node) as probe:
            next(steps, None)
            time.sleep(SETTLE_S)
            return probe.waits()


def row_of(measured: Measured) -> Row:
    """The median of the longest waits, against what is allowed: Kafka's or `ALLOWED_MS`."""
    name, ours, theirs = measured.name, measured.ours, measured.theirs
    their_median = statistics.median(theirs) if theirs else None
    allowed = max(their_median or 0.0, ALLOWED_MS)
    ratios = sorted(allowed / wait for wait in ours)
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    median = statistics.median(ours)
    return Row(SECTION, name, median, PEER if theirs else "-", their_median, "ms", allowed / median, low, high, 1.0)


def _create_topic(client: Client) -> None:
    topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    client.call(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.stalls", description="The longest wait of another client.")
    parser.add_argument("parts", nargs="*", metavar="AREA_OR_PART_OF_NAME", help="causes to measure; all by default")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--alone", action="store_true", help="without Apache Kafka")
    parser.add_argument("--list", action="store_true", help="print the causes")
    parser.add_argument("--save", type=Path, metavar="FILE", help="add what is measured; leave out what it has already")
    parser.add_argument("--show", type=Path, metavar="FILE", help="print what was saved, and measure nothing")
    arguments = parser.parse_args()
    if arguments.show is not None:
        print(table(read_saved(arguments.show), arguments.parts))
        return
    if arguments.list:
        print("\n".join(f"{each.area}: {each.name}" for each in chosen(arguments.parts)))
        return
    print(render(run(arguments.rounds, arguments.parts, alone=arguments.alone, saved=arguments.save)))


if __name__ == "__main__":
    main()
