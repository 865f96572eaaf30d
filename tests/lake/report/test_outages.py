"""Headlines: what happened, by the clock, and rates only where the log is long enough."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from barnabas.lake.report.chapters.availability import below_min_isr, broker_fences_chart, without_a_leader
from barnabas.lake.report.chapters.balance import most_leaders, violations
from barnabas.lake.report.chapters.quorum import quorum_epochs
from barnabas.lake.report.content import ClusterContent, LogRange, Rows

BEGAN = datetime(2026, 1, 31, 12, tzinfo=UTC)
UNTIL = BEGAN + timedelta(minutes=4)


def cluster(**answers: list[dict[str, object]]) -> ClusterContent:
    tables = {name: Rows((), [], 0) for name in ("partition_trouble", "quorum_leaders")}
    return ClusterContent("c", LogRange(0, 9, BEGAN, BEGAN + timedelta(minutes=15)), tables, answers)


def outages(count: int) -> ClusterContent:
    """47 partitions were down at the same time, 188 minutes in all."""
    totals = {f"{kind}_{what}": 0 for kind in ("offline", "below_min_isr") for what in ("minutes", "partitions", "now")}
    totals |= {"offline_minutes": 188, "offline_partitions": 47, "below_min_isr_minutes": 188}
    row = {"outages": count, "minutes": 4.0, "began": BEGAN, "until": UNTIL}
    return cluster(trouble_totals=[{**totals, "below_min_isr_partitions": 47}], outages=[{**row, "kind": "offline"}])


def test_an_outage_is_told_by_the_clock_and_not_summed_over_partitions() -> None:
    figure = without_a_leader(outages(1))
    assert figure is not None and figure.value == "4 min, 47 partitions"
    assert figure.sentence == "Down from 2026-01-31T12:00:00Z to 2026-01-31T12:04:00Z; none at the end of the log."
    twice = without_a_leader(outages(2))
    assert twice is not None and twice.sentence.startswith("Down 2 outages from ")
    assert below_min_isr(outages(1)) is not None


def test_a_log_of_a_quarter_of_an_hour_gives_no_rate_by_day() -> None:
    short = cluster()
    short = replace(short, tables={"quorum_leaders": Rows((), [], 6)})
    figure = quorum_epochs(short)
    assert figure is not None and figure.sentence == "5 changes in 15 min."
    long = replace(short, log=LogRange(0, 9, BEGAN, BEGAN + timedelta(days=10)))
    figure = quorum_epochs(long)
    assert figure is not None and figure.sentence == "5 changes, 0.5 a day."


def test_fences_of_a_first_start_are_not_counted_by_the_chart_as_they_are_not_in_the_table_of_brokers() -> None:
    rows = [
        {"broker_id": 1, "began": BEGAN, "until": UNTIL, "minutes": 4.0, "is_over": True, "cause": cause}
        for cause in ("start", "restart", "silence")
    ]
    content = replace(cluster(), tables={"broker_fences": Rows((), rows, 3)})
    assert "fenced the longest: 8 min, 2 times" in broker_fences_chart(content, "plot")


def test_a_single_broker_has_no_cards_about_balance_and_racks() -> None:
    row = {"broker_id": 1, "leader_skew": 1.0, "leaders": 9, "rack": "a"}
    tables = {"broker_balance": Rows((), [row], 1), "rack_violations": Rows((), [], 0)}
    content = replace(cluster(), tables=tables)
    assert most_leaders(content) is None and violations(content) is None
