"""Headlines: what happened, by the clock, and rates only where the log is long enough."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from barnabas.lake.report.chapters.availability import (
    below_min_isr,
    broker_fences_chart,
    brokers_in_service,
    topic_availability_chart,
    under_replicated,
    without_a_leader,
)
from barnabas.lake.report.chapters.balance import most_leaders, partitions_moved, violations
from barnabas.lake.report.chapters.leaders import left_the_isr, unclean_elections
from barnabas.lake.report.chapters.quorum import nodes_behind, quorum_epochs
from barnabas.lake.report.content import ClusterContent, LogRange, Rows

BEGAN = datetime(2026, 1, 31, 12, tzinfo=UTC)
UNTIL = BEGAN + timedelta(minutes=4)


def cluster(**answers: list[dict[str, Any]]) -> ClusterContent:
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
    assert figure.sentence == "Down from 2026-01-31 12:00 to 12:04Z; none at the end of the log."
    twice = without_a_leader(outages(2))
    assert twice is not None and twice.sentence.startswith("Down 2 times, from ")
    assert below_min_isr(outages(1)) is not None


def test_what_had_no_leader_is_not_told_again_as_below_its_minimum() -> None:
    once = outages(1)
    same = {**once.answers["outages"][0], "kind": "below_min_isr"}
    assert below_min_isr(replace(once, answers={**once.answers, "outages": [*once.answers["outages"], same]})) is None
    longer = {**same, "minutes": 9.0}
    figure = below_min_isr(replace(once, answers={**once.answers, "outages": [*once.answers["outages"], longer]}))
    assert figure is not None and figure.value == "9 min, 47 partitions"


def test_replicas_that_fell_behind_together_are_told_by_the_clock() -> None:
    row = {"kind": "under_replicated", "outages": 1, "minutes": 4.0, "began": BEGAN, "until": UNTIL}
    totals = {"under_replicated_partitions": 47, "under_replicated_now": 0}
    figure = under_replicated(cluster(trouble_totals=[totals], outages=[row]))
    assert figure is not None and figure.sentence == "At the end of the log. Ever: 4 min, 47 partitions."
    topic = {"topic_name": "t", "partitions": 12, "is_over": True, "offline_minutes": 4.0}
    topic |= {"below_min_isr_minutes": 4.0, "under_replicated_minutes": 4.0}
    content = replace(cluster(), tables={"topic_availability": Rows((), [topic], 1)})
    assert "Worst: t, without a leader 4 min; 12 partitions affected" in topic_availability_chart(content, "plot")
    rows = [{**topic, "topic_name": name} for name in "tuv"]
    alike = replace(content, tables={"topic_availability": Rows((), rows, 3)})
    plot = topic_availability_chart(alike, "plot")
    assert "3 topics, without a leader 4 min; 36 partitions affected" in plot
    assert "each of 3 topics" in plot and plot.count("without a leader 4 min</text>") == 1, "equal bars are one"
    longer = replace(content, tables={"topic_availability": Rows((), [{**rows[0], "offline_minutes": 9.0}, *rows], 4)})
    assert "Worst: t, without a leader 9 min" in topic_availability_chart(longer, "plot")
    more = replace(content, tables={"topic_availability": Rows((), rows, 300)})
    assert "Worst: t, " in topic_availability_chart(more, "plot"), "the others are not known"


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


def test_a_single_broker_has_no_cards_that_are_true_of_every_one() -> None:
    flaps = [{"broker_id": 1, "times": 47, "replicas": 47}]
    names = ("broker_fences", "partition_trouble", "reassignments", "quorum_leaders", "quorum_health")
    tables = {name: Rows((), [], 0) for name in names}
    tables["quorum_leaders"] = Rows((), [{"epoch": epoch, "voters": 1} for epoch in (1, 2)], 2)
    node = {"replica_id": 1, "role": "leader", "is_there": True, "seconds_since_caught_up": 0.0, "most_lag": 0}
    tables["quorum_health"] = Rows((), [node], 1)
    tables["leader_changes"] = Rows((), [], 94)
    of_brokers = (brokers_in_service, under_replicated, unclean_elections, left_the_isr)
    makers = (*of_brokers, partitions_moved, quorum_epochs, nodes_behind)
    causes = [{"series": "broker shut down", "count": 47}, {"series": "broker came back", "count": 47}]

    def figures(brokers: int, fenced: int = 0) -> list[str]:
        inventory = {"topics": 1, "partitions": 1, "brokers": brokers, "fenced_brokers": fenced}
        answers: dict[str, list[dict[str, Any]]] = {
            "fence_totals": [{"fences": 0, "silent": 0, "open": fenced}],
            "isr_flaps_by_broker": flaps,
        }
        answers |= {
            "leader_changes_over_time": causes,
            "inventory": [inventory],
            "reassignments_by_outcome": [],
            "trouble_totals": [],
        }
        content = replace(cluster(**answers), tables=tables)
        return [figure.name for make in makers if (figure := make(content)) is not None]

    assert figures(1) == []
    assert figures(1, fenced=1) == ["brokers in service"]
    of_three = [
        "brokers in service",
        "partitions under-replicated",
        "leader changes",
        "left the ISR",
        "partitions moved",
    ]
    assert figures(3) == of_three
    causes.append({"series": "unclean election", "count": 1})
    assert figures(1) == ["unclean elections"]
