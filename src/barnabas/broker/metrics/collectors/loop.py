"""How late the event loop is."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.metrics.exposition import Exposition, counter, gauge, histogram
from barnabas.broker.metrics.observed import Observed
from barnabas.slices import Slices

LAG = histogram("barnabas_loop_lag_milliseconds", "How late the event loop was, looked at 20 times a second.")
LONGEST = gauge("barnabas_loop_longest_lag_milliseconds", "The latest that the event loop was since the start.")
LONG_TURNS = counter("barnabas_loop_long_turns_total", "Times that the event loop was late by more than 100 ms.")
METRICS = (LAG, LONGEST, LONG_TURNS)


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    watch = node.loop_watch
    out.add_histogram(LAG, watch.lags_ms)
    out.add(LONGEST, watch.longest_ms)
    out.add(LONG_TURNS, watch.long_turns)
    yield
