"""Consumption: groups that are behind, unused topics, and hanging transactions."""

from __future__ import annotations

from barnabas.lake.declared_column import Column
from barnabas.lake.report.charts import BARS, answer_of, counted_bars, rows_of
from barnabas.lake.report.content import ClusterContent
from barnabas.lake.report.figures import KeyFigure, Verdict, counts, judged, total_of
from barnabas.lake.report.plots import Bar, Figure, horizontal_bars, nice_minutes
from barnabas.lake.report.queries import CLUSTER, COUNTED, Query, counted_by, top
from barnabas.lake.report.section import Chapter, Section
from barnabas.lake.report.text import count, counted, duration, short

_TRENDS = {
    "growing": "growing ▲",
    "stopped": "stopped ■",
    "steady": "steady",
    "falling": "falling ▼",
    "unknown": "trend unknown",
    "none": "none",
}


# --- lag of groups, from their commits

_BY_GROUP = """
select cluster_id, group_id, sum(lag) as lag,
  if(count(lag_minutes) = count(*), max(lag_minutes), null) as lag_minutes,
  bool_or(lag_is_interpolated) as lag_is_interpolated,
  if(count(lag_before) = count(*), sum(lag_before), null) as lag_before,
  count_if(lag > 0) as partitions_behind,
  case when count_if(trend = 'stopped') > 0 then 'stopped' when count_if(trend = 'growing') > 0 then 'growing'
    when count_if(trend = 'steady') > 0 then 'steady' when count_if(trend = 'falling') > 0 then 'falling'
    when count_if(trend = 'unknown') > 0 then 'unknown'
    else 'none' end as trend
from group_lag group by cluster_id, group_id"""


LAG_BY_GROUP = Query(
    "lag_by_group",
    ("group_lag",),
    (
        CLUSTER,
        Column("group_id", "string", "The group."),
        Column("lag", "bigint", "Over all of its partitions."),
        Column("lag_minutes", "double", "The age of its oldest unread record; null: not known of all."),
        Column("lag_is_interpolated", "boolean", "Whether one of these ages is an estimate."),
        Column("lag_before", "bigint", "Its lag at the commits before the last; null: not known of all."),
        Column("partitions_behind", "bigint", "Partitions that it has not read to the end."),
        Column("trend", "string", "The worst of its partitions."),
    ),
    top(_BY_GROUP, "trend in ('growing', 'stopped') desc, lag desc, group_id"),
)


GROUPS_BY_TREND = Query(
    "groups_by_trend",
    ("group_lag",),
    COUNTED,
    f"select cluster_id, trend as name, count(*) as count from ({_BY_GROUP}) group by cluster_id, trend",
)


def group_lag_chart(cluster: ClusterContent, name: str) -> str:
    rows = [row for row in answer_of(cluster, LAG_BY_GROUP) if row["lag"] > 0][:BARS]
    if not rows:
        return ""
    worst = rows[0]
    bars = [
        Bar(
            row["group_id"],
            (row["lag"],),
            f"{short(row['lag'])}, {_TRENDS.get(row['trend'], row['trend'])}",
            row["lag_before"],
        )
        for row in rows
    ]
    behind = f"{counted(worst['lag'], 'record')} behind"
    if worst["lag_minutes"]:
        about = "about " if worst["lag_is_interpolated"] else ""
        behind += f", the oldest {about}{duration(worst['lag_minutes'])} old"
    finding = f"{worst['group_id']} is {behind}; its trend is {worst['trend']}"
    if worst["trend"] == "stopped":
        finding = f"{worst['group_id']} has stopped, {behind}"
    known = any(bar.mark is not None for bar in bars)
    figure = Figure(name, finding, "The lag of each group, and its trend.", "records not yet read, over all partitions")
    return horizontal_bars(figure, bars, short, mark="its lag at the commits before" if known else "")


def groups_falling_behind(cluster: ClusterContent) -> KeyFigure | None:
    trends = counts(cluster, GROUPS_BY_TREND)
    if not trends:
        return None
    bad, total = trends["growing"] + trends["stopped"], sum(trends.values())
    if not bad:
        return KeyFigure("groups falling behind", "0", Verdict.GOOD, f"Of {counted(total, 'group')}.")
    said = f"Of {counted(total, 'group')}: {count(trends['growing'])} with growing lag, {count(trends['stopped'])} stopped."
    return KeyFigure("groups falling behind", count(bad), Verdict.ACT, said)


GROUP_LAG = Section(
    "group_lag",
    question="Which groups are behind, in records and in time, and does it get worse?",
    order="trend in ('growing', 'stopped') desc, lag desc, group_id, topic, partition",
    empty="No group has committed an offset of a topic whose records were read (lake run --traffic).",
    columns=(
        "group_id",
        "topic",
        "partition",
        "lag",
        "lag_minutes",
        "lag_is_interpolated",
        "trend",
        "committed_at",
        "lag_before",
        "end_offset",
    ),
    queries=(LAG_BY_GROUP, GROUPS_BY_TREND),
    chart=group_lag_chart,
    figures=(groups_falling_behind,),
)


# --- lag of groups, from observations

GROUPS_BY_VERDICT = Query(
    "groups_by_verdict", ("group_lag_growth",), COUNTED, counted_by("group_lag_growth", "verdict")
)


def group_lag_growth_chart(cluster: ClusterContent, name: str) -> str:
    rows = [row for row in rows_of(cluster, "group_lag_growth") if row["lag"] > 0][:BARS]
    if not rows:
        return ""
    worst = rows[0]
    speed = worst["records_per_minute"]
    how = "" if speed is None or worst["verdict"] != "growing" else f", {short(round(speed, 1))} more each minute"
    age = f", the oldest {duration(worst['lag_minutes'])} old" if worst["lag_minutes"] else ""
    trend = "trend unknown" if worst["verdict"] == "unknown" else worst["verdict"]
    finding = f"{worst['group_id']} is {counted(worst['lag'], 'record')} behind{age} ({trend}{how})"
    bars = [
        Bar(
            row["group_id"],
            (row["lag"],),
            f"{short(row['lag'])}, {_TRENDS.get(row['verdict'], row['verdict'])}",
            row["first_lag"],
        )
        for row in rows
    ]
    figure = Figure(
        name, finding, "The lag of each group at first and at last.", "records not yet read, when last seen"
    )
    return horizontal_bars(figure, bars, short, mark="its lag when first seen")


def groups_seen_to_fall_behind(cluster: ClusterContent) -> KeyFigure | None:
    verdicts = counts(cluster, GROUPS_BY_VERDICT)
    if not verdicts:
        return None
    bad = verdicts["growing"] + verdicts["stopped"]
    said = f"Of {counted(sum(verdicts.values()), 'group')} that were observed"
    if bad:
        said += f": {count(verdicts['growing'])} with growing lag, {count(verdicts['stopped'])} that read nothing"
    elif verdicts["unknown"]:
        said = f"{counted(verdicts['unknown'], 'group')} with lag seen only once: the next run tells whether it grows"
    verdict = Verdict.PLAIN if verdicts["unknown"] and not bad else judged(bad, bad)
    return KeyFigure("groups seen to fall behind", count(bad), verdict, f"{said}.")


GROUP_LAG_GROWTH = Section(
    "group_lag_growth",
    question="Which groups fell behind while they were observed?",
    order="verdict in ('growing', 'stopped') desc, lag desc, group_id",
    empty="No group was observed (lake run --observe).",
    columns=(
        "group_id",
        "verdict",
        "lag",
        "first_lag",
        "most_lag",
        "records_per_minute",
        "lag_minutes",
        "state",
        "last_seen",
        "observations",
    ),
    queries=(GROUPS_BY_VERDICT,),
    chart=group_lag_growth_chart,
    figures=(groups_seen_to_fall_behind,),
)


# --- use of topics

TOPICS_BY_VERDICT = Query("topics_by_verdict", ("topic_use",), COUNTED, counted_by("topic_use", "verdict"))


def topic_use_chart(cluster: ClusterContent, name: str) -> str:
    verdicts = {row["name"]: row["count"] for row in answer_of(cluster, TOPICS_BY_VERDICT)}
    unused = sum(number for name, number in verdicts.items() if name not in ("used", "unknown"))
    return counted_bars(
        cluster,
        name,
        TOPICS_BY_VERDICT,
        lambda _, total: f"{count(unused)} of {counted(total, 'topic')} {'is' if unused == 1 else 'are'} not in use",
        "Topics by how they are used.",
        "topics",
    )


def unused_topics(cluster: ClusterContent) -> KeyFigure | None:
    verdicts = counts(cluster, TOPICS_BY_VERDICT)
    if not verdicts or not total_of(cluster, "topic_traffic"):
        return None  # without records of topics their use is unknown
    unused = {name: number for name, number in verdicts.items() if name not in ("used", "unknown") and number}
    said = ", ".join(f"{count(number)} {name}" for name, number in sorted(unused.items()))
    if not unused:
        said = "Every topic is written and read"
    return KeyFigure("unused topics", count(sum(unused.values())), judged(unused), f"{said}.")


TOPIC_USE = Section(
    "topic_use",
    question="Which topics are idle, and which have never been consumed?",
    order="verdict = 'used', verdict, last_written nulls first, topic, topic_id",
    empty="There are no topics.",
    columns=("topic", "verdict", "groups", "last_written", "last_committed", "created"),
    source="topic_traffic",
    queries=(TOPICS_BY_VERDICT,),
    chart=topic_use_chart,
    figures=(unused_topics,),
)


# --- transactions


def hanging_transactions_chart(cluster: ClusterContent, name: str) -> str:
    rows = rows_of(cluster, "hanging_transactions")[:BARS]
    if not rows:
        return ""
    bars = [
        Bar(row["transactional_id"], (row["minutes"],), duration(row["minutes"]), row["timeout_minutes"])
        for row in rows
    ]
    finding = f"{rows[0]['transactional_id']} has been open for {duration(rows[0]['minutes'])}"
    figure = Figure(name, finding, "How long each transaction has been open, and its timeout.", "minutes open")
    return horizontal_bars(figure, bars, duration, scale=nice_minutes, mark="its timeout")


def hanging(cluster: ClusterContent) -> KeyFigure | None:
    total = total_of(cluster, "hanging_transactions")
    if total is None:
        return None
    said = "No transaction has been open for longer than its timeout."
    if total:
        rows = cluster.tables["hanging_transactions"].rows
        longest = max((row["minutes"] for row in rows), default=0.0)
        said = f"Consumers that read committed records wait. The oldest is open for {duration(longest)}."
    return KeyFigure("hanging transactions", count(total), judged(total, total), said)


HANGING_TRANSACTIONS = Section(
    "hanging_transactions",
    question="Which transactions have been open for longer than their timeout?",
    order="minutes desc, transactional_id",
    empty="No transaction has been open for longer than its timeout.",
    columns=("transactional_id", "producer_id", "producer_epoch", "state", "started", "minutes", "timeout_minutes"),
    chart=hanging_transactions_chart,
    figures=(hanging,),
)


CHAPTER = Chapter("Consumption", (GROUP_LAG, GROUP_LAG_GROWTH, TOPIC_USE, HANGING_TRANSACTIONS))
