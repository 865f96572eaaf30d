"""Quorum: who led it, and which of its nodes lag behind the leader."""

from __future__ import annotations

from datetime import timedelta

from barnabas.lake.declared_column import Column
from barnabas.lake.report.charts import LANES, answer_of, index_of, present, range_of, rows_of, span_of
from barnabas.lake.report.content import ClusterContent, Row
from barnabas.lake.report.figures import KeyFigure, judged, total_of
from barnabas.lake.report.plots import Course, Figure, Lane, Point, courses, timeline
from barnabas.lake.report.queries import TOP, Query, over_time, over_time_columns
from barnabas.lake.report.section import Chapter, Section
from barnabas.lake.report.text import clock, count, counted, duration, iso, short

# --- leaders of the quorum


def quorum_leaders_chart(cluster: ClusterContent, name: str) -> str:
    rows = rows_of(cluster, "quorum_leaders")
    if not rows:
        return ""
    lanes: dict[int, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row["epoch"]):
        lanes.setdefault(row["leader_id"], []).append(row)
    newest = max(rows, key=lambda row: row["epoch"])
    led = duration(newest["minutes"])
    return timeline(
        Figure(
            name,
            f"Controller {newest['leader_id']} has led since {clock(newest['began'])} ({led}), in epoch {newest['epoch']}",
            "Who led the quorum when, by epoch.",
            "time (UTC); a bar for each epoch, with its number where there is room",
        ),
        [
            Lane(
                f"controller {leader}",
                f"{counted(len(found), 'epoch')}, {duration(sum(row['minutes'] for row in found))}",
                tuple(span_of(row, row["epoch"] % 2 * 6, f"epoch {row['epoch']}", f"{row['epoch']}") for row in found),
            )
            for leader, found in sorted(lanes.items())[:LANES]
        ],
        *range_of(cluster, rows),
    )


def quorum_epochs(cluster: ClusterContent) -> KeyFigure | None:
    total, log = total_of(cluster, "quorum_leaders"), cluster.log
    if not total or log.first_time is None or log.last_time is None:
        return None
    rows = rows_of(cluster, "quorum_leaders")
    if rows and all(row["voters"] == 1 for row in rows):
        return None  # the only voter leads each time that it starts
    days = (log.last_time - log.first_time).total_seconds() / 86400
    changes = counted(total - 1, "change")
    often = total > 2 and total - 1 > max(days, 1.0)
    said = "The leader of the quorum never changed."
    if total > 1 and days < 1:  # too short for a rate by day
        said = f"{changes} in {duration(days * 1440)}."
    elif total > 1:
        said = f"{changes}, {short((total - 1) / days)} a day."
    return KeyFigure("quorum epochs", count(total), judged(often), said)


QUORUM_LEADERS = Section(
    "quorum_leaders",
    question="Who led the quorum, and for how long?",
    order="epoch desc",
    empty="The log has no record about a leader of the quorum.",
    columns=("epoch", "leader_id", "began", "until", "minutes", "is_over", "voters", "granting_voters"),
    chart=quorum_leaders_chart,
    figures=(quorum_epochs,),
)


# --- nodes behind the leader

BEHIND_SECONDS = 60.0
"""A node of the quorum that has not caught up for longer is reported as a problem."""


_LAG_OF_NODES = f"""
select * except (`_worst`, `_rank`) from (
  select *, dense_rank() over (partition by cluster_id order by `_worst` desc, series) as `_rank` from (
    select *, max(lag) over (partition by cluster_id, series) as `_worst` from ({
    over_time(
        "quorum_lag",
        "t.replica_id",
        "observed_at",
        "max(t.lag) as lag, max(t.seconds_since_caught_up) as seconds_since_caught_up",
    )
})
  )
) where `_rank` <= {TOP} order by cluster_id, start, series"""


QUORUM_LAG_OVER_TIME = Query(
    "quorum_lag_over_time",
    ("quorum_lag",),
    (
        *over_time_columns("")[:-2],
        Column("series", "int", "The node; only those that were furthest behind."),
        Column("lag", "bigint", "The largest lag."),
        Column("seconds_since_caught_up", "double", "The longest such time."),
    ),
    _LAG_OF_NODES,
)


_ROLES = ("leader", "voter", "observer")


def quorum_health_chart(cluster: ClusterContent, name: str) -> str:
    points: dict[int, list[Point]] = {}
    rows = answer_of(cluster, QUORUM_LAG_OVER_TIME)
    for row in rows:
        since = row["seconds_since_caught_up"]
        said = "never caught up" if since is None else f"{duration(since / 60)} since it had caught up"
        hint = f"{iso(row['start'])}: {counted(row['lag'] or 0, 'record')} behind, {said}"
        points.setdefault(row["series"], []).append(Point(row["start"], row["lag"] or 0, hint))
    known = [row for row in rows_of(cluster, "quorum_health") if row["replica_id"] in points]
    nodes = [row for row in known if row["most_lag"]][:LANES] or [row for row in known if row["role"] != "observer"][:1]
    if not nodes:
        return ""
    worst = max(nodes, key=lambda row: row["most_lag"] or 0)
    finding = (
        f"Node {worst['replica_id']} ({worst['role']}) was {counted(worst['most_lag'], 'record')} behind at the worst,"
        f" and {count(worst['lag'] or 0)} when last seen"
        if worst["most_lag"]
        else "No node of the quorum was ever seen behind its leader"
    )
    return courses(
        Figure(
            name,
            finding,
            "How far each node of the quorum was behind its leader over time.",
            f"records behind, at the worst in each {duration(rows[0]['seconds'] / 60)}, by time (UTC); a gap: no observation",
        ),
        [
            Course(
                f"{row['role']} {row['replica_id']}",
                f"now {short(row['lag'] or 0)}, at most {short(row['most_lag'] or 0)}",
                tuple(points[row["replica_id"]]),
                index_of(_ROLES, row["role"]),
            )
            for row in nodes
        ],
        timedelta(seconds=rows[0]["seconds"]),
        legend=present(_ROLES, nodes, "role"),
    )


def nodes_behind(cluster: ClusterContent) -> KeyFigure | None:
    rows = rows_of(cluster, "quorum_health")
    if len(rows) < 2:  # who is alone is never behind
        return None
    gone = [row for row in rows if not row["is_there"] and row["role"] != "observer"]
    late = [row for row in rows if row["is_there"] and (row["seconds_since_caught_up"] or 0) > BEHIND_SECONDS]
    most = max(row["most_lag"] or 0 for row in rows)
    said = f"Of {counted(len(rows), 'node')}, when last seen; at the worst {counted(most, 'record')}."
    if late:
        worst = max(late, key=lambda row: row["seconds_since_caught_up"])
        since = duration(worst["seconds_since_caught_up"] / 60)
        said = f"Node {worst['replica_id']} had not caught up for {since}, when last seen."
    elif gone:
        said = f"Node {gone[0]['replica_id']}, a {gone[0]['role']} once, was missing when the quorum was last observed."
    return KeyFigure("quorum nodes behind", count(len(late) + len(gone)), judged(late or gone, late or gone), said)


QUORUM_HEALTH = Section(
    "quorum_health",
    question="Which nodes lag behind the leader of the quorum, and how long ago had they caught up?",
    order="is_there, lag desc nulls last, most_lag desc nulls last, replica_id",
    empty="The quorum was not observed (lake run --observe).",
    columns=(
        "replica_id",
        "role",
        "lag",
        "most_lag",
        "seconds_since_caught_up",
        "most_seconds_since_caught_up",
        "times_leader",
        "observations",
        "last_seen",
        "is_there",
    ),
    queries=(QUORUM_LAG_OVER_TIME,),
    chart=quorum_health_chart,
    figures=(nodes_behind,),
)


CHAPTER = Chapter("Quorum", (QUORUM_LEADERS, QUORUM_HEALTH))
