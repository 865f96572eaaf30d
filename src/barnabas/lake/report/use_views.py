"""The plots about who writes and who reads: groups and their lag, transactions, traffic, partitions to plan. As `views`."""

from __future__ import annotations

from barnabas.lake.report.content import ClusterContent
from barnabas.lake.report.plots import Bar, Figure, horizontal_bars, nice_bytes, nice_minutes
from barnabas.lake.report.text import count, counted, duration, percent, rate, short, size, times
from barnabas.lake.report.viewing import BARS, answer_of, counted_bars, rows_of


def topic_use(cluster: ClusterContent, name: str) -> str:
    verdicts = {row["name"]: row["count"] for row in answer_of(cluster, "topics_by_verdict")}
    unused = sum(number for name, number in verdicts.items() if name not in ("used", "unknown"))
    return counted_bars(
        cluster,
        name,
        "topics_by_verdict",
        lambda _, total: f"{count(unused)} of {counted(total, 'topic')} {'is' if unused == 1 else 'are'} not in use",
        "Topics by how they are used.",
        "topics",
    )


_TRENDS = {
    "growing": "growing ▲",
    "stopped": "stopped ■",
    "steady": "steady",
    "falling": "falling ▼",
    "unknown": "trend unknown",
    "none": "none",
}


def group_lag(cluster: ClusterContent, name: str) -> str:
    rows = [row for row in answer_of(cluster, "lag_by_group") if row["lag"] > 0][:BARS]
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
        behind += f" ({duration(worst['lag_minutes'])})"
    finding = f"{worst['group_id']} is {behind}; its trend is {worst['trend']}"
    if worst["trend"] == "stopped":
        finding = f"{worst['group_id']} has stopped, {behind}"
    known = any(bar.mark is not None for bar in bars)
    figure = Figure(name, finding, "The lag of each group, and its trend.", "records not yet read, over all partitions")
    return horizontal_bars(figure, bars, short, mark="its lag at the commits before" if known else "")


def group_lag_growth(cluster: ClusterContent, name: str) -> str:
    rows = [row for row in rows_of(cluster, "group_lag_growth") if row["lag"] > 0][:BARS]
    if not rows:
        return ""
    worst = rows[0]
    speed = worst["records_per_minute"]
    how = "" if speed is None or worst["verdict"] != "growing" else f", {short(round(speed, 1))} more each minute"
    finding = f"{worst['group_id']} is {counted(worst['lag'], 'record')} behind ({worst['verdict']}{how})"
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


def hanging_transactions(cluster: ClusterContent, name: str) -> str:
    rows = rows_of(cluster, "hanging_transactions")[:BARS]
    if not rows:
        return ""
    bars = [
        Bar(row["transactional_id"], (row["minutes"],), duration(row["minutes"]), row["timeout_minutes"])
        for row in rows
    ]
    finding = f"{rows[0]['transactional_id']} has been open for {duration(rows[0]['minutes'])}"
    figure = Figure(name, finding, "How long each transaction has been open, and how long it may be.", "minutes open")
    return horizontal_bars(figure, bars, duration, scale=nice_minutes, mark="its time-out")


def topic_traffic(cluster: ClusterContent, name: str) -> str:
    rows = rows_of(cluster, "topic_traffic")[:BARS]
    if not rows:
        return ""
    total = sum(row["bytes"] for row in answer_of(cluster, "traffic_totals")) or sum(row["bytes"] for row in rows)
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


def partition_plan(cluster: ClusterContent, name: str) -> str:
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


def hot_partitions(cluster: ClusterContent, name: str) -> str:
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


def key_skew(cluster: ClusterContent, name: str) -> str:
    rows = rows_of(cluster, "key_skew")[:BARS]
    if not rows:
        return ""
    bars = [Bar(f"{row['topic']}: {row['key']}", (row["share"],), percent(row["share"])) for row in rows]
    finding = f"One key makes {percent(rows[0]['share'])} of {rows[0]['topic']}"
    figure = Figure(name, finding, "The share of single keys in a topic.", "share of the records of the topic")
    return horizontal_bars(figure, bars, percent)
