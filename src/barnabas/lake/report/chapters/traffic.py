"""Traffic: bytes and records of topics, the partitions that they need, hot partitions, and heavy keys."""

from __future__ import annotations

from barnabas.lake.report.charts import BARS, answer_of, rows_of
from barnabas.lake.report.content import ClusterContent
from barnabas.lake.report.figures import KeyFigure, Verdict, every_row, judged, one, total_of
from barnabas.lake.report.plots import Bar, Figure, horizontal_bars, nice_bytes
from barnabas.lake.report.queries import Query, numbers
from barnabas.lake.report.section import Chapter, Section
from barnabas.lake.report.text import count, counted, percent, rate, short, size, times

# --- topics

TRAFFIC_TOTALS = Query(
    "traffic_totals",
    ("topic_traffic",),
    numbers(topics="Topics with records.", records="Records.", bytes="Bytes of them."),
    "select cluster_id, count(*) as topics, sum(records) as records, sum(bytes) as bytes"
    " from topic_traffic group by cluster_id",
)


def topic_traffic_chart(cluster: ClusterContent, name: str) -> str:
    rows = rows_of(cluster, "topic_traffic")[:BARS]
    if not rows:
        return ""
    total = sum(row["bytes"] for row in answer_of(cluster, TRAFFIC_TOTALS)) or sum(row["bytes"] for row in rows)
    bars = [
        Bar(row["topic"], (row["bytes"],), f"{size(row['bytes'])}, peak {rate(row['peak_bytes_per_second'])}")
        for row in rows
    ]
    share = rows[0]["bytes"] / total if total else 0.0
    figure = Figure(
        name,
        f"{rows[0]['topic']} takes {percent(share)} of all bytes: {size(rows[0]['bytes'])}",
        "Bytes written, by topic.",
        "bytes of keys and values",
    )
    return horizontal_bars(figure, bars, size, scale=nice_bytes)


def written(cluster: ClusterContent) -> KeyFigure | None:
    row = one(cluster, TRAFFIC_TOTALS, "topic_traffic")
    if row is None or not row["topics"]:
        return None
    said = f"{short(row['records'])} records in {counted(row['topics'], 'topic')}."
    return KeyFigure("written", size(row["bytes"]), Verdict.PLAIN, said)


TOPIC_TRAFFIC = Section(
    "topic_traffic",
    question="How much is written to each topic, and when is the peak?",
    order="bytes desc, topic",
    empty="No record of a topic was read: the lake was not run with --traffic, or its topics are empty.",
    columns=(
        "topic",
        "bytes",
        "records",
        "partitions",
        "mean_record_bytes",
        "mean_bytes_per_second",
        "peak_bytes_per_second",
        "peak_hour",
        "last_time",
    ),
    queries=(TRAFFIC_TOTALS,),
    chart=topic_traffic_chart,
    figures=(written,),
)


# --- partitions that topics should have

PLAN_TOTALS = Query(
    "plan_totals",
    ("partition_plan",),
    numbers(topics="Topics that need more partitions.", partitions="Their number, summed."),
    "select cluster_id, count_if(recommended > partitions) as topics, sum(recommended - partitions) as partitions"
    " from partition_plan group by cluster_id",
)


def partition_plan_chart(cluster: ClusterContent, name: str) -> str:
    rows = [row for row in rows_of(cluster, "partition_plan") if row["recommended"] > row["partitions"]][:BARS]
    if not rows:
        return ""
    bars = [
        Bar(
            row["topic"],
            (row["partitions"], row["recommended"]),
            f"{count(row['partitions'])} → {count(row['recommended'])}",
        )
        for row in rows
    ]
    worst = rows[0]
    finding = (
        f"{worst['topic']} should have {count(worst['recommended'])} partitions instead of {count(worst['partitions'])}"
    )
    figure = Figure(name, finding, "Partitions that topics have, and should have.", "partitions")
    return horizontal_bars(figure, bars, short, legend=("has", "should have"))


def topics_too_narrow(cluster: ClusterContent) -> KeyFigure | None:
    row = one(cluster, PLAN_TOTALS, "partition_plan")
    if row is None or not total_of(cluster, "partition_plan"):
        return None
    topics, more = row["topics"], row["partitions"]
    said = f"{counted(more, 'partition')} more, together." if topics else "No topic needs more partitions."
    return KeyFigure("topics too narrow", count(topics), judged(topics), said)


PARTITION_PLAN = Section(
    "partition_plan",
    question="How many partitions should each topic have, and why?",
    order="recommended - partitions desc, peak_bytes_per_second desc nulls last, topic",
    empty="No topic has both records and partitions.",
    columns=("topic", "partitions", "recommended", "reason", "peak_bytes_per_second", "most_members"),
    source="topic_traffic",
    queries=(PLAN_TOTALS,),
    chart=partition_plan_chart,
    figures=(topics_too_narrow,),
)


# --- hot partitions


def hot_partitions_chart(cluster: ClusterContent, name: str) -> str:
    rows = rows_of(cluster, "hot_partitions")[:BARS]
    if not rows:
        return ""
    bars = [
        Bar(
            f"{row['topic']}-{row['partition']}",
            (row["times_even"],),
            f"{times(row['times_even'])}, {size(row['bytes'])}",
            1.0,
        )
        for row in rows
    ]
    finding = f"{rows[0]['topic']}-{rows[0]['partition']} gets {times(rows[0]['times_even'])} its even share"
    figure = Figure(name, finding, "Partitions that get more than their share.", "times the even share")
    return horizontal_bars(figure, bars, times, mark="an even share")


HOT_PARTITIONS = Section(
    "hot_partitions",
    question="Which partitions get much more than their share?",
    order="times_even desc, bytes desc, topic, partition",
    empty="No partition gets much more than its share.",
    columns=("topic", "partition", "times_even", "share", "bytes"),
    source="topic_traffic",
    chart=hot_partitions_chart,
    figures=(
        every_row(
            "hot partitions",
            "hot_partitions",
            good="No partition gets much more than its share.",
            bad="Partitions with much more than their share.",
            source="topic_traffic",
        ),
    ),
)


# --- heavy keys


def key_skew_chart(cluster: ClusterContent, name: str) -> str:
    rows = rows_of(cluster, "key_skew")[:BARS]
    if not rows:
        return ""
    bars = [Bar(f"{row['topic']}: {row['key']}", (row["share"],), percent(row["share"])) for row in rows]
    finding = f"One key makes {percent(rows[0]['share'])} of {rows[0]['topic']}"
    figure = Figure(name, finding, "The share of single keys in a topic.", "share of the records of the topic")
    return horizontal_bars(figure, bars, percent)


KEY_SKEW = Section(
    "key_skew",
    question="Which keys make a large part of a topic?",
    order="share desc, records desc, topic, key",
    empty="No key makes a large part of a topic.",
    columns=("topic", "key", "share", "records"),
    source="topic_traffic",
    chart=key_skew_chart,
    figures=(
        every_row(
            "heavy keys",
            "key_skew",
            good="No key makes a large part of a topic.",
            bad="Keys that make a large part of a topic.",
            source="topic_traffic",
        ),
    ),
)


CHAPTER = Chapter("Traffic", (TOPIC_TRAFFIC, PARTITION_PLAN, HOT_PARTITIONS, KEY_SKEW))
