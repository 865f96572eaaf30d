"""Balance: replicas, leaders and bytes by broker, racks, and moves of partitions."""

from __future__ import annotations

from barnabas.lake.report.charts import (
    BARS,
    LANES,
    answer_of,
    counted_bars,
    index_of,
    present,
    range_of,
    rows_of,
    span_of,
)
from barnabas.lake.report.content import ClusterContent, Row
from barnabas.lake.report.figures import KeyFigure, Verdict, counts, is_single, judged, total_of
from barnabas.lake.report.plots import Bar, Figure, Lane, horizontal_bars, nice_bytes, timeline
from barnabas.lake.report.queries import COUNTED, Query, counted_by, top
from barnabas.lake.report.section import Chapter, Section
from barnabas.lake.report.text import NONE, count, counted, duration, percent, short, size, times

# --- brokers

SKEW = 1.25
"""From this many times the mean on, a broker leads too many partitions."""
SKEW_BY = 3
"""But not for a difference of less than this many partitions."""


def broker_balance_chart(cluster: ClusterContent, name: str) -> str:
    rows = [row for row in rows_of(cluster, "broker_balance") if row["replica_skew"] is not None][:BARS]
    if not rows:
        return ""
    kind, verb, noun = "leader", "leads", "partition"
    if not any(row["leader_skew"] for row in rows):
        kind, verb, noun = "replica", "holds", "replica"
    order = sorted(rows, key=lambda row: (-(row[f"{kind}_skew"] or 0.0), row["broker_id"]))
    most = order[0]
    number = counted(most[f"{kind}s"], noun)
    finding = f"Broker {most['broker_id']} {verb} {number}: {times(most[f'{kind}_skew'])} the mean"
    bars = [
        Bar(
            f"broker {row['broker_id']}",
            (row["leader_skew"] or 0.0, row["replica_skew"] or 0.0),
            f"leads {short(row['leaders'])}, holds {short(row['replicas'])}",
            1.0,
        )
        for row in order
    ]
    figure = Figure(
        name, finding, "Leaders and replicas of each broker against the mean.", "times the mean of all brokers"
    )
    return horizontal_bars(figure, bars, times, legend=("leaders", "replicas"), mark="the mean")


def most_leaders(cluster: ClusterContent) -> KeyFigure | None:
    if "broker_balance" not in cluster.tables:
        return None
    rows = [row for row in cluster.tables["broker_balance"].rows if row["leader_skew"] is not None]
    if len(rows) < 2:
        return None  # a single broker leads everything
    worst = max(rows, key=lambda row: row["leader_skew"])
    skew, leaders = worst["leader_skew"], worst["leaders"]
    too_much = skew >= SKEW and leaders - leaders / skew >= SKEW_BY
    said = f"Broker {worst['broker_id']} leads {counted(leaders, 'partition')}, {times(skew)} the mean."
    return KeyFigure("most leaders", times(skew), judged(too_much), said)


BROKER_BALANCE = Section(
    "broker_balance",
    question="How many replicas and leaders does each broker have, and how uneven is that?",
    order="greatest(abs(leader_skew - 1), abs(replica_skew - 1)) desc nulls last, broker_id",
    empty="No broker is registered.",
    columns=("broker_id", "rack", "fenced", "leaders", "leader_skew", "preferred_leaders", "replicas", "replica_skew"),
    chart=broker_balance_chart,
    figures=(most_leaders,),
)


# --- disks

FULL = 0.85
"""A disk that is fuller is reported as a problem."""


def disk_balance_chart(cluster: ClusterContent, name: str) -> str:
    rows = sorted(rows_of(cluster, "disk_balance"), key=lambda row: -row["bytes"])[:BARS]
    if not rows or not rows[0]["bytes"]:
        return ""
    most, mean = rows[0], rows[0]["bytes"] / rows[0]["skew"]
    bars = [
        Bar(
            _log_dir(row),
            (row["bytes"],),
            size(row["bytes"]) + ("" if row["used_share"] is None else f", disk {percent(row['used_share'])} full"),
            mean,
        )
        for row in rows
    ]
    finding = (
        f"Broker {most['broker_id']} holds {size(most['bytes'])} in {most['log_dir']}: {times(most['skew'])} the mean"
    )
    figure = Figure(name, finding, "Bytes of each log dir, and the mean of all.", "bytes of segments")
    return horizontal_bars(figure, bars, size, scale=nice_bytes, mark="the mean")


def _log_dir(row: Row) -> str:
    return f"broker {row['broker_id']} {row['log_dir']}"


def fullest_disk(cluster: ClusterContent) -> KeyFigure | None:
    found = rows_of(cluster, "disk_balance")
    rows = [row for row in found if row["used_share"] is not None]
    if not rows:
        return None
    worst = max(rows, key=lambda row: row["used_share"])
    growth = worst["bytes_per_day"] or 0.0
    said = f"Broker {worst['broker_id']}, {worst['log_dir']}: {size(worst['usable_bytes'])} free"
    if growth > 0:
        said += f", enough for {duration(worst['usable_bytes'] / growth * 1440)} at its observed growth"
    value = percent(worst["used_share"])
    return KeyFigure(
        "fullest disk", value, judged(worst["used_share"] >= FULL, worst["used_share"] >= FULL), f"{said}."
    )


DISK_BALANCE = Section(
    "disk_balance",
    question="How many bytes does each log dir have, and how full is its disk?",
    order=f"used_share >= {FULL} desc nulls last, skew desc nulls last, broker_id, log_dir",
    empty="No log dir was observed (lake run --observe).",
    columns=(
        "broker_id",
        "log_dir",
        "bytes",
        "skew",
        "replicas",
        "used_share",
        "usable_bytes",
        "volume_bytes",
        "bytes_per_day",
        "observed_at",
    ),
    chart=disk_balance_chart,
    figures=(fullest_disk,),
)


# --- racks

VIOLATIONS_BY_TOPIC = Query(
    "violations_by_topic",
    ("rack_violations",),
    COUNTED,
    top(counted_by("rack_violations", "topic_name"), "count desc, name"),
)


def rack_violations_chart(cluster: ClusterContent, name: str) -> str:
    total = total_of(cluster, "rack_violations") or 0
    return counted_bars(
        cluster,
        name,
        VIOLATIONS_BY_TOPIC,
        lambda top, _: f"{counted(total, 'partition')}, most of them of {top['name']}: {count(top['count'])}",
        "Partitions on fewer racks than possible, by topic.",
        "partitions on fewer racks than possible",
    )


def violations(cluster: ClusterContent) -> KeyFigure | None:
    total = total_of(cluster, "rack_violations")
    if total is None or (total_of(cluster, "broker_balance") or 0) < 2:
        return None  # a single broker is in one rack
    if any(row["rack"] is None for row in cluster.tables["broker_balance"].rows):
        said = "Unknown, since not every broker has a rack."
        return KeyFigure("rack violations", NONE, Verdict.PLAIN, said)
    said = "Every partition is on as many racks as possible."
    if total:
        said = "Partitions that would lose more replicas than necessary if one rack failed."
    return KeyFigure("rack violations", count(total), judged(total), said)


RACK_VIOLATIONS = Section(
    "rack_violations",
    question="Which partitions have replicas on fewer racks than possible?",
    order="size(racks), topic_name, partition",
    empty="Every partition is on as many racks as possible, or not every broker has a rack.",
    columns=("topic_name", "partition", "replicas", "racks", "possible_racks"),
    queries=(VIOLATIONS_BY_TOPIC,),
    chart=rack_violations_chart,
    figures=(violations,),
)


# --- reassignments

LONG_MINUTES = 60.0
"""A reassignment that runs for longer is reported as a problem."""


REASSIGNMENTS_BY_OUTCOME = Query(
    "reassignments_by_outcome", ("reassignments",), COUNTED, counted_by("reassignments", "outcome")
)


_OUTCOMES = ("done", "running", "cancelled", "deleted", "changed")


def reassignments_chart(cluster: ClusterContent, name: str) -> str:
    rows = rows_of(cluster, "reassignments")[:LANES]
    if not rows:
        return ""
    running = sum(row["count"] for row in answer_of(cluster, REASSIGNMENTS_BY_OUTCOME) if row["name"] == "running")
    longest = max(rows, key=lambda row: row["minutes"])
    place = f"{longest['topic_name']}-{longest['partition']}"
    still = f"{count(running)} still running" if running else "none is running"
    finding = f"The longest move, of {place}, took {duration(longest['minutes'])}; {still}"
    return timeline(
        Figure(name, finding, "When the longest moves of partitions began and ended.", "time (UTC)"),
        [
            Lane(
                f"{row['topic_name']}-{row['partition']}",
                f"{row['outcome']}, {duration(row['minutes'])}",
                (
                    span_of(
                        {**row, "is_over": row["outcome"] != "running"},
                        index_of(_OUTCOMES, row["outcome"]),
                        row["outcome"],
                    ),
                ),
            )
            for row in rows
        ],
        *range_of(cluster, rows),
        legend=present(_OUTCOMES, rows, "outcome"),
    )


def partitions_moved(cluster: ClusterContent) -> KeyFigure | None:
    outcomes = counts(cluster, REASSIGNMENTS_BY_OUTCOME)
    if outcomes is None or "reassignments" not in cluster.tables or (is_single(cluster) and not outcomes):
        return None  # one broker has nowhere to move anything
    running = [row["minutes"] for row in cluster.tables["reassignments"].rows if row["outcome"] == "running"]
    longest = max(running, default=0.0)
    if longest > LONG_MINUTES:
        said = f"{counted(outcomes['running'], 'move')} still running, the longest for {duration(longest)}."
        return KeyFigure("partitions moved", count(sum(outcomes.values())), Verdict.AWARE, said)
    said = ", ".join(f"{count(number)} {name}" for name, number in sorted(outcomes.items())) or "Nothing was moved"
    return KeyFigure("partitions moved", count(sum(outcomes.values())), Verdict.PLAIN, f"{said}.")


REASSIGNMENTS = Section(
    "reassignments",
    question="Which partitions were moved, how long did it take, and how did it end?",
    order="outcome = 'running' desc, minutes desc, topic_name, partition, valid_from_offset",
    empty="No partition was ever moved.",
    columns=(
        "topic_name",
        "partition",
        "began",
        "until",
        "minutes",
        "outcome",
        "adding_replicas",
        "removing_replicas",
        "added_in_sync",
    ),
    queries=(REASSIGNMENTS_BY_OUTCOME,),
    chart=reassignments_chart,
    figures=(partitions_moved,),
)


CHAPTER = Chapter("Balance", (BROKER_BALANCE, DISK_BALANCE, RACK_VIOLATIONS, REASSIGNMENTS))
