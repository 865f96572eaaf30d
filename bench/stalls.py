"""How long one client waits while another keeps the node busy: barnabas beside Apache Kafka, for every cause of `stall_causes`.

The waiting client is `stall_probe`, a process of its own. Both nodes run at once and are loaded in turns, with Kafka's own
JVM settings, and are new for each cause. A row is the median over the rounds of the longest wait, and what is allowed is
Kafka's or 100 ms, whichever is larger; "times better" is what is allowed divided by ours. The row `nothing` shows what
the machine itself adds. This takes an hour with all causes and rounds, so `python -m bench` runs it only if it is named;
`python -m bench.stalls --rounds 1 --alone fetch` is for a look at a few.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time
from collections.abc import Iterator, Sequence

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


def run(rounds: int = ROUNDS, parts: Sequence[str] = (), *, alone: bool = False) -> list[Row]:
    """Measure the causes whose area or name contains one of the parts; all without any."""
    rows = []
    for cause in chosen(parts):
        print(f"  {cause.area}: {cause.name} ...", file=sys.stderr, flush=True)
        try:
            rows.append(measure(cause, rounds, alone=alone))
        except (OSError, RuntimeError, ValueError, NotStarted) as error:
            print(f"    was not measured: {error}", file=sys.stderr, flush=True)
            rows.append(not_possible(SECTION, cause.name, PEER))
    return rows


def chosen(parts: Sequence[str]) -> list[Cause]:
    return [each for each in all_causes() if not parts or any(part in each.name or part == each.area for part in parts)]


def measure(cause: Cause, rounds: int, *, alone: bool = False) -> Row:
    seen: dict[str, list[float]] = {"barnabas": [], "Kafka": []}
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
                waits = measure_once(cause, node)
                seen[name].append(waits.longest_ms)
                text = f"    {name}: {waits.longest_ms:.0f} ms at most, of {waits.requests} requests"
                if name == "barnabas":
                    text += f" (its loop computed {waits.worked_ms:.0f} ms at most)"
                print(f"{text}; the round took {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return row_of(cause.name, seen["barnabas"], seen["Kafka"])


def measure_once(cause: Cause, node: Node) -> Waits:
    steps: Iterator[None] = cause.load(node)
    with contextlib.closing(steps):  # type: ignore[type-var]
        next(steps)
        with Probe(node) as probe:
            next(steps, None)
            time.sleep(SETTLE_S)
            return probe.waits()


def row_of(name: str, ours: Sequence[float], theirs: Sequence[float]) -> Row:
    """The median of the longest waits, against what is allowed: Kafka's or `ALLOWED_MS`."""
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
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(f"{each.area}: {each.name}" for each in chosen(arguments.parts)))
        return
    print(render(run(arguments.rounds, arguments.parts, alone=arguments.alone)))


if __name__ == "__main__":
    main()
