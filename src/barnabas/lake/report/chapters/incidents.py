"""Incidents: what happened at the same time, as one row and one span on a timeline."""

from __future__ import annotations

from barnabas.lake.report.charts import LANES, index_of, present, range_of, rows_of, span_of
from barnabas.lake.report.content import ClusterContent, Row
from barnabas.lake.report.figures import KeyFigure, Verdict, judged, total_of
from barnabas.lake.report.plots import Figure, Lane, timeline
from barnabas.lake.report.section import Chapter, Section
from barnabas.lake.report.text import clock, count, counted, duration

_KINDS = ("without a leader", "below min ISR", "brokers fenced")
_CAUSES = {"silence": "stopped answering", "shutdown": "shut down", "restart": "restarted"}
_NAMED = 3


def what_happened(row: Row) -> str:
    """Return the cause of an incident, as far as it is known: broker 3 shut down."""
    brokers, causes = row["brokers"], [_CAUSES.get(cause, cause) for cause in row["causes"]]
    if not brokers:
        return f"partitions {_kind(row)}"
    named = ", ".join(map(str, brokers[:_NAMED])) + (", ..." if len(brokers) > _NAMED else "")
    return f"broker{'s' if len(brokers) > 1 else ''} {named} {' and '.join(causes)}"


def effects(row: Row) -> str:
    """Return what it did to partitions and groups."""
    told = []
    if row["offline_partitions"]:
        down = duration(row["offline_minutes"])
        told.append(f"down {down}, {counted(row['offline_partitions'], 'partition')}")
    elif row["below_min_isr_partitions"]:
        told.append(f"no acks=all writes to {counted(row['below_min_isr_partitions'], 'partition')}")
    elif row["under_replicated_partitions"]:
        told.append(f"{counted(row['under_replicated_partitions'], 'partition')} under-replicated")
    if row["stalled_groups"]:
        told.append(f"{counted(len(row['stalled_groups']), 'group')} stalled")
    return ", ".join(told) or "no partition affected"


def extent(row: Row) -> str:
    """Return how long it was, and on how many partitions, in few letters."""
    partitions = row["offline_partitions"] or row["below_min_isr_partitions"] or row["under_replicated_partitions"]
    minutes = row["offline_minutes"] if row["offline_partitions"] else row["minutes"]
    return f"{duration(minutes)}, {counted(partitions, 'partition')}" if partitions else duration(minutes)


def _kind(row: Row) -> str:
    if row["offline_partitions"]:
        return _KINDS[0]
    return _KINDS[1] if row["below_min_isr_partitions"] else _KINDS[2]


def incidents_chart(cluster: ClusterContent, name: str) -> str:
    rows = rows_of(cluster, "incidents")[:LANES]
    if not rows:
        return ""
    worst = rows[0]
    figure = Figure(
        name,
        f"{clock(worst['began'])}: {what_happened(worst)}; {effects(worst)}",
        "When each incident began and ended, by what it did.",
        "time (UTC); a line at the right end: not ended by the end of the log",
    )
    shown = [{**row, "effect": _kind(row)} for row in rows]
    lanes = [
        Lane(
            what_happened(row),
            extent(row),
            (span_of(row, index_of(_KINDS, row["effect"]), what_happened(row)),),
        )
        for row in sorted(shown, key=lambda row: row["began"])
    ]
    return timeline(figure, lanes, *range_of(cluster, rows), legend=present(_KINDS, shown, "effect"))


def incidents(cluster: ClusterContent) -> KeyFigure | None:
    total = total_of(cluster, "incidents")
    if total is None:
        return None
    if not total:
        return KeyFigure("incidents", "none", Verdict.GOOD, "No broker was fenced, and all partitions had leaders.")
    rows = rows_of(cluster, "incidents")
    running = [row for row in rows if not row["is_over"]]
    if not rows:
        return KeyFigure("incidents", count(total), Verdict.AWARE, "")
    verdict, row = judged(True, running), (running or rows)[0]
    when = f"since {clock(row['began'])}" if running else f"{clock(row['began'])}, {duration(row['minutes'])}"
    said = f"{'Not over' if running else 'Worst'}: {what_happened(row)}, {when}; {effects(row)}."
    return KeyFigure("incidents", count(total), verdict, said)


INCIDENTS = Section(
    "incidents",
    question="What went wrong, when, and what was affected?",
    order="is_over, offline_partitions > 0 desc, offline_minutes * offline_partitions desc,"
    " below_min_isr_partitions desc, minutes desc, began",
    empty="No broker was ever fenced, and no partition was ever without a leader or below min.insync.replicas.",
    columns=(
        "began",
        "until",
        "minutes",
        "brokers",
        "causes",
        "offline_minutes",
        "offline_partitions",
        "below_min_isr_partitions",
        "stalled_groups",
        "is_over",
    ),
    chart=incidents_chart,
    figures=(incidents,),
)


CHAPTER = Chapter("Incidents", (INCIDENTS,))
