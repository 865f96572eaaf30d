"""Verdicts, and the summary of a terminal."""

from __future__ import annotations

from dataclasses import replace

from barnabas.lake.report.chapters import key_figures
from barnabas.lake.report.chapters.incidents import effects, what_happened
from barnabas.lake.report.content import ClusterContent, LogRange, ReportContent
from barnabas.lake.report.figures import Verdict
from barnabas.lake.report.summary import summarize
from barnabas.lake.report.text import NONE, TIMES
from tests.lake.report import sample


def _by_name(cluster: ClusterContent) -> dict[str, tuple[str, Verdict]]:
    return {figure.name: (figure.value, figure.verdict) for figure in key_figures(cluster)}


def test_what_is_wrong_comes_first() -> None:
    verdicts = [figure.verdict for figure in key_figures(sample.content().clusters[0])]
    assert verdicts == sorted(verdicts, key=list(Verdict).index)
    assert verdicts[0] is Verdict.ACT and Verdict.AWARE in verdicts


def test_figures_are_those_of_the_rows() -> None:
    rows = sample.all_rows()
    figures = _by_name(sample.cluster(rows))
    assert figures["brokers in service"] == ("5 of 6", Verdict.ACT)
    assert figures["hanging transactions"] == (str(len(rows["hanging_transactions"])), Verdict.ACT)
    assert figures["unused topics"] == (str(sum(row["verdict"] != "used" for row in rows["topic_use"])), Verdict.AWARE)
    assert figures["changes"] == ("1,800", Verdict.PLAIN)
    assert figures["quorum epochs"] == ("6", Verdict.GOOD)


def test_nothing_is_called_good_that_is_not_known() -> None:
    assert key_figures(ClusterContent("c", LogRange(), {})) == []
    without_logs = _by_name(sample.quiet().clusters[0])
    assert not {"hot partitions", "heavy keys", "unused topics", "topics too narrow", "groups falling behind"} & set(
        without_logs
    )
    assert without_logs["without a leader"] == ("0", Verdict.GOOD)


def test_groups_that_were_seen_once_are_not_judged() -> None:
    cluster = sample.content().clusters[0]
    once = [{"name": "unknown", "count": 3}, {"name": "none", "count": 2}]
    (figure,) = (
        figure
        for figure in key_figures(replace(cluster, answers={**cluster.answers, "groups_by_verdict": once}))
        if figure.name == "groups seen to fall behind"
    )
    assert (figure.value, figure.verdict) == ("0", Verdict.PLAIN)
    assert "3 groups with lag seen only once" in figure.sentence


def test_racks_are_not_judged_where_a_broker_has_none() -> None:
    cluster = sample.content().clusters[0]
    balance = cluster.tables["broker_balance"]
    unknown = replace(balance, rows=[{**row, "rack": None} for row in balance.rows])
    assert _by_name(replace(cluster, tables={**cluster.tables, "broker_balance": unknown}))["rack violations"] == (
        NONE,
        Verdict.PLAIN,
    )


def test_a_cluster_with_few_partitions_is_not_called_uneven() -> None:
    cluster = sample.content().clusters[0]
    balance = cluster.tables["broker_balance"]
    few = [{**balance.rows[0], "leaders": leaders, "leader_skew": leaders / 1.5} for leaders in (2, 1)]
    tables = {**cluster.tables, "broker_balance": replace(balance, rows=few)}
    assert _by_name(replace(cluster, tables=tables))["most leaders"] == (f"1.33{TIMES}", Verdict.GOOD)


def test_the_summary_says_what_is_wrong_first_in_a_few_lines() -> None:
    lines = summarize(sample.content()).splitlines()
    assert lines[0] == (
        "cluster 5L6g3nShT-eMCtK--X86sw: 6 brokers, 42 topics, 294 partitions; up to 2026-11-16T09:42:17Z (offset 48,211)"
    )
    assert lines[1].startswith("  !! incidents 4 ")
    assert lines[2].startswith("  !! without a leader 3 d, 2 partitions ")
    assert len(lines) < 30
    marked = [line.startswith("  !") for line in lines[1:]]
    assert marked == sorted(marked, reverse=True)


def test_an_incident_is_told_in_one_line() -> None:
    cluster = sample.content().clusters[0]
    assert _by_name(cluster)["incidents"] == ("4", Verdict.ACT)
    rows = cluster.tables["incidents"].rows
    assert [f"{what_happened(row)}; {effects(row)}" for row in rows] == [
        "broker 5 stopped answering; 3 partitions under-replicated",
        "brokers 2, 4 shut down and stopped answering; down 1 h 36 min, 2 partitions, 2 groups stalled",
        "partitions below min ISR; no acks=all writes to 6 partitions",
        "broker 4 stopped answering; 12 partitions under-replicated",
    ]
    over = replace(cluster.tables["incidents"], rows=rows[1:], total=3)
    (figure,) = (
        figure
        for figure in key_figures(replace(cluster, tables={**cluster.tables, "incidents": over}))
        if figure.name == "incidents"
    )
    assert figure.verdict is Verdict.AWARE
    assert figure.sentence.startswith(
        "Worst: brokers 2, 4 shut down and stopped answering, 2026-11-13 09:00Z, 3 h 30 min; "
    )


def test_a_good_cluster_is_said_to_be_one() -> None:
    assert "Nothing to look at." in summarize(sample.quiet())
    assert summarize(ReportContent(())) == "The lake has no cluster yet.\n"


def test_no_name_reaches_the_terminal_as_a_command() -> None:
    cluster = replace(sample.quiet().clusters[0], cluster_id="a\x1b]0;owned\x07\nb")
    assert r"cluster a\x1b]0;owned\x07\nb" in summarize(ReportContent((cluster,)))
