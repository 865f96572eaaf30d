"""The metrics of a node as text: asks every collector, and goes on without one that fails."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.broker.metrics.collectors import (
    audit,
    connections,
    controller,
    groups,
    logs,
    loop,
    memory,
    partitions,
    process,
    quorum,
    quotas,
    requests,
    sessions,
    share_groups,
    topics,
    transactions,
)
from barnabas.broker.metrics.exposition import Exposition, Metric, counter, gauge, labels
from barnabas.broker.metrics.observed import Observed
from barnabas.slices import Slices

_log = logging.getLogger(__name__)

SCRAPES = counter("barnabas_metrics_scrapes_total", "Times that the metrics of this node were written.")
SCRAPE_MS = counter(
    "barnabas_metrics_scrape_milliseconds_total", "Time that writing the metrics took, with its pauses."
)
FAILURES = counter("barnabas_metrics_failures_total", "Failures of a part of the metrics, which was left out.", "part")
LEFT_OUT = gauge(
    "barnabas_metrics_left_out",
    "Topics, partitions, groups and committed offsets without rows of their own because of barnabas.metrics.max.*, "
    "and rows above the limit of all.",
    "kind",
)
OWN_METRICS: Final = (SCRAPES, SCRAPE_MS, FAILURES, LEFT_OUT)

LeftOut = Counter[str]


class Collector(NamedTuple):
    """A part of the metrics. `collect` adds the rows and counts what it leaves out because of a limit."""

    name: str
    metrics: tuple[Metric, ...]
    collect: Callable[[Observed, Exposition, LeftOut], Slices[None]]


COLLECTORS: Final = (
    Collector("process", process.METRICS, process.collect),
    Collector("loop", loop.METRICS, loop.collect),
    Collector("memory", memory.METRICS, memory.collect),
    Collector("connections", connections.METRICS, connections.collect),
    Collector("quotas", quotas.METRICS, quotas.collect),
    Collector("requests", requests.METRICS, requests.collect),
    Collector("audit", audit.METRICS, audit.collect),
    Collector("sessions", sessions.METRICS, sessions.collect),
    Collector("topics", topics.METRICS, topics.collect),
    Collector("partitions", partitions.METRICS, partitions.collect),
    Collector("logs", logs.METRICS, logs.collect),
    Collector("groups", groups.METRICS, groups.collect),
    Collector("share groups", share_groups.METRICS, share_groups.collect),
    Collector("transactions", transactions.METRICS, transactions.collect),
    Collector("controller", controller.METRICS, controller.collect),
    Collector("quorum", quorum.METRICS, quorum.collect),
)
METRICS: Final = (*OWN_METRICS, *(metric for collector in COLLECTORS for metric in collector.metrics))


class Renderer:
    """Renders the metrics of one node, and counts how often."""

    def __init__(self) -> None:
        self._scrapes = 0
        self._scrape_ms = 0
        self._failures: Counter[str] = Counter()

    def render(self, node: Observed) -> Slices[bytes]:
        clock = node.services.monotonic_ms
        began_ms = clock()
        self._scrapes += 1
        out = Exposition(METRICS)
        left_out: LeftOut = Counter(topics=0, partitions=0, groups=0, offsets=0)
        for collector in COLLECTORS:
            try:
                yield from collector.collect(node, out, left_out)
            except Exception:
                out.drop(collector.metrics)
                if not self._failures[collector.name]:  # once: scrapes are frequent
                    _log.exception("the metrics of %s could not be collected", collector.name)
                self._failures[collector.name] += 1
        for kind, count in {**left_out, "rows": out.left_out}.items():
            out.add(LEFT_OUT, count, labels(kind=kind))
        for collector in COLLECTORS:
            out.add(FAILURES, self._failures[collector.name], labels(part=collector.name))
        out.add(SCRAPES, self._scrapes)
        self._scrape_ms += clock() - began_ms
        out.add(SCRAPE_MS, self._scrape_ms)
        return (yield from out.encode())
