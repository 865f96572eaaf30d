"""Which plot answers which question: from the content of a cluster to a plot that says what it found.

Its one rule: the caption is the finding, in words, with its number. A view gives nothing where there is nothing to see:
the page then says what that means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from barnabas.lake.report.content import ClusterContent, Row
from barnabas.lake.report.plots import (
    Bar,
    Count,
    Figure,
    Lane,
    Span,
    horizontal_bars,
    nice_bytes,
    nice_minutes,
    stacked_bars,
    timeline,
)
from barnabas.lake.report.text import count, counted, duration, iso, percent, rate, short, size, times

BARS = 8
LANES = 8

View = Callable[[ClusterContent, str], str]
"""Of a cluster, a plot with this name; empty: there is nothing to see."""


def _rows(cluster: ClusterContent, table: str) -> Sequence[Row]:
    return cluster.tables[table].rows if table in cluster.tables else ()


def _answer(cluster: ClusterContent, name: str) -> Sequence[Row]:
    return cluster.answers.get(name, ())


def _over_time(cluster: ClusterContent, name: str, answer: str, noun: str, described: str) -> str:
    rows = _answer(cluster, answer)
    if not rows:
        return ""
    width = timedelta(seconds=rows[0]["seconds"])
    pieces: dict[datetime, int] = {}
    for row in rows:
        pieces[row["start"]] = pieces.get(row["start"], 0) + row["count"]
    busiest = max(pieces, key=lambda start: (pieces[start], start))
    total, each = sum(pieces.values()), duration(width.total_seconds() / 60)
    finding = f"{counted(total, noun)}; most at {iso(busiest)}: {count(pieces[busiest])} within {each}"
    first = min(pieces)
    last = max(pieces) + width
    return stacked_bars(
        Figure(
            name, finding, f"{described} from {iso(first)} to {iso(last)}.", f"{noun}s in each {each}, by time (UTC)"
        ),
        (Count(row["start"], row["series"], row["count"]) for row in rows),
        width,
        first,
        last,
    )


def changes(cluster: ClusterContent, name: str) -> str:
    return _over_time(cluster, name, "changes_over_time", "change", "Changes by kind")


def leader_changes(cluster: ClusterContent, name: str) -> str:
    return _over_time(cluster, name, "leader_changes_over_time", "leader change", "Leader changes by cause")


def topic_availability(cluster: ClusterContent, name: str) -> str:
    rows = _rows(cluster, "topic_availability")[:BARS]
    if not rows:
        return ""
    kinds = (
        ("offline_minutes", "without a leader"),
        ("below_min_isr_minutes", "below min ISR"),
        ("under_replicated_minutes", "under-replicated"),
    )
    bars = []
    for row in rows:
        column, words = next(((c, w) for c, w in kinds if row[c] > 0), kinds[-1])
        values = tuple(row[column] for column, _ in kinds)
        bars.append(Bar(row["topic_name"], values, f"{duration(row[column])} {words}"))
    said = bars[0].text
    figure = Figure(
        name,
        f"Worst: {rows[0]['topic_name']}, {said}",
        "Minutes without a leader, below the minimum in sync, and under-replicated, by topic.",
        "minutes, summed over the partitions of a topic",
    )
    return horizontal_bars(figure, bars, duration, scale=nice_minutes, legend=[words for _, words in kinds])


def broker_availability(cluster: ClusterContent, name: str) -> str:
    rows = [row for row in _rows(cluster, "broker_availability") if row["out_of_sync_minutes"] > 0][:BARS]
    if not rows:
        return ""
    bars = [
        Bar(
            f"broker {row['broker_id']}",
            (row["out_of_sync_minutes"],),
            f"{duration(row['out_of_sync_minutes'])}, {counted(row['partitions'], 'partition')}",
        )
        for row in rows
    ]
    finding = f"Broker {rows[0]['broker_id']} was out of sync the longest: {duration(rows[0]['out_of_sync_minutes'])}"
    figure = Figure(
        name, finding, "Minutes out of sync, by broker.", "minutes out of sync, summed over a broker's replicas"
    )
    return horizontal_bars(figure, bars, duration, scale=nice_minutes)


_FENCE_CAUSES = ("silence", "shutdown", "start")


def broker_fences(cluster: ClusterContent, name: str) -> str:
    rows = _rows(cluster, "broker_fences")
    if not rows:
        return ""
    lanes: dict[int, list[Row]] = {}
    for row in rows:
        lanes.setdefault(row["broker_id"], []).append(row)
    total = {broker: sum(row["minutes"] for row in found) for broker, found in lanes.items()}
    order = sorted(lanes, key=lambda broker: (-total[broker], broker))[:LANES]
    worst = order[0]
    return timeline(
        Figure(
            name,
            f"Broker {worst} was fenced the longest: {duration(total[worst])} in {counted(len(lanes[worst]), 'turn')}",
            "When each broker was fenced, by cause.",
            "time (UTC); a line at the right end: still so at the end of the log",
        ),
        [
            Lane(
                f"broker {broker}",
                f"{counted(len(lanes[broker]), 'turn')}, {duration(total[broker])}",
                tuple(_span(row, _index(_FENCE_CAUSES, row["cause"]), row["cause"]) for row in lanes[broker]),
            )
            for broker in order
        ],
        *_range(cluster, rows),
        legend=_FENCE_CAUSES,
    )


def _index(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else 6


def _span(row: Row, series: int, what: str, text: str = "") -> Span:
    hint = f"{what}: {iso(row['began'])} to {iso(row['until'])}, {duration(row['minutes'])}"
    return Span(row["began"], row["until"], series, hint, row.get("is_over", True), text)


def _range(cluster: ClusterContent, rows: Sequence[Row]) -> tuple[datetime, datetime]:
    """The range of the log, or of what is shown where that is longer."""
    starts, ends = [row["began"] for row in rows], [row["until"] for row in rows]
    if cluster.log.first_time is not None and cluster.log.last_time is not None:
        starts.append(cluster.log.first_time)
        ends.append(cluster.log.last_time)
    return min(starts), max(ends)


def quorum_leaders(cluster: ClusterContent, name: str) -> str:
    rows = _rows(cluster, "quorum_leaders")
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
            f"Controller {newest['leader_id']} has led since {iso(newest['began'])} ({led}), in epoch {newest['epoch']}",
            "Who led the quorum when, by epoch.",
            "time (UTC); a bar for each epoch, with its number where there is room",
        ),
        [
            Lane(
                f"controller {leader}",
                f"{counted(len(found), 'epoch')}, {duration(sum(row['minutes'] for row in found))}",
                tuple(_span(row, row["epoch"] % 2 * 6, f"epoch {row['epoch']}", f"{row['epoch']}") for row in found),
            )
            for leader, found in sorted(lanes.items())[:LANES]
        ],
        *_range(cluster, rows),
    )


_OUTCOMES = ("done", "running", "cancelled", "deleted")


def reassignments(cluster: ClusterContent, name: str) -> str:
    rows = _rows(cluster, "reassignments")[:LANES]
    if not rows:
        return ""
    running = sum(row["count"] for row in _answer(cluster, "reassignments_by_outcome") if row["name"] == "running")
    longest = max(rows, key=lambda row: row["minutes"])
    place = f"{longest['topic_name']}-{longest['partition']}"
    finding = f"The longest move, of {place}, took {duration(longest['minutes'])}; {count(running)} still running"
    return timeline(
        Figure(name, finding, "When the longest moves of partitions began and ended.", "time (UTC)"),
        [
            Lane(
                f"{row['topic_name']}-{row['partition']}",
                f"{row['outcome']}, {duration(row['minutes'])}",
                (
                    _span(
                        {**row, "is_over": row["outcome"] != "running"},
                        _index(_OUTCOMES, row["outcome"]),
                        row["outcome"],
                    ),
                ),
            )
            for row in rows
        ],
        *_range(cluster, rows),
        legend=_OUTCOMES,
    )


def broker_balance(cluster: ClusterContent, name: str) -> str:
    rows = [row for row in _rows(cluster, "broker_balance") if row["leader_skew"] is not None][:BARS]
    if not rows:
        return ""
    most = max(rows, key=lambda row: row["leader_skew"])
    finding = f"Broker {most['broker_id']} leads {counted(most['leaders'], 'partition')}: {times(most['leader_skew'])} the mean"
    bars = [
        Bar(
            f"broker {row['broker_id']}",
            (row["leader_skew"], row["replica_skew"] or 0.0),
            f"leads {short(row['leaders'])}, holds {short(row['replicas'])}",
            1.0,
        )
        for row in sorted(rows, key=lambda row: (-row["leader_skew"], row["broker_id"]))
    ]
    figure = Figure(
        name, finding, "Leaders and replicas of each broker against the mean.", "times the mean of all brokers"
    )
    return horizontal_bars(figure, bars, times, legend=("leaders", "replicas"), mark="the mean")


def _bars(
    cluster: ClusterContent, name: str, answer: str, finding: Callable[[Row, int], str], described: str, axis: str
) -> str:
    """Bars of an answer that counts something by name."""
    rows = sorted(_answer(cluster, answer), key=lambda row: (-row["count"], str(row["name"])))[:BARS]
    if not rows:
        return ""
    figure = Figure(name, finding(rows[0], sum(row["count"] for row in rows)), described, axis)
    return horizontal_bars(figure, [Bar(str(row["name"]), (row["count"],), count(row["count"])) for row in rows], short)


def config_history(cluster: ClusterContent, name: str) -> str:
    return _bars(
        cluster,
        name,
        "config_changes_by_setting",
        lambda top, _: f"Changed most: {top['name']}, {counted(top['count'], 'time')}",
        "How often each setting was changed.",
        "changes of a setting, over all resources",
    )


def topic_use(cluster: ClusterContent, name: str) -> str:
    verdicts = {row["name"]: row["count"] for row in _answer(cluster, "topics_by_verdict")}
    unused = sum(verdicts.values()) - verdicts.get("used", 0)
    return _bars(
        cluster,
        name,
        "topics_by_verdict",
        lambda _, total: f"{count(unused)} of {counted(total, 'topic')} {'is' if unused == 1 else 'are'} not in use",
        "Topics by how they are used.",
        "topics",
    )


def acl_findings(cluster: ClusterContent, name: str) -> str:
    return _bars(
        cluster,
        name,
        "findings_by_kind",
        lambda top, total: f"{counted(total, 'finding')}; most are: {top['name']}",
        "What is odd about the ACLs, by kind.",
        "findings",
    )


def acl_grants(cluster: ClusterContent, name: str) -> str:
    return _bars(
        cluster,
        name,
        "grants_by_principal",
        lambda top, _: f"{top['name']} has entries for {counted(top['count'], 'resource')}, the most",
        "For how many resources each principal has entries.",
        "resources with an entry for the principal",
    )


def rack_violations(cluster: ClusterContent, name: str) -> str:
    return _bars(
        cluster,
        name,
        "violations_by_topic",
        lambda top, _: f"Most of {top['name']}: {counted(top['count'], 'partition')}",
        "Partitions on fewer racks than they could be, by topic.",
        "partitions on fewer racks than they could be",
    )


def isr_flaps(cluster: ClusterContent, name: str) -> str:
    rows = _answer(cluster, "isr_flaps_by_broker")[:BARS]
    if not rows:
        return ""
    bars = [
        Bar(
            f"broker {row['broker_id']}",
            (row["times"],),
            f"{counted(row['times'], 'time')}, {counted(row['replicas'], 'replica')}",
        )
        for row in rows
    ]
    finding = f"Replicas of broker {rows[0]['broker_id']} left most often: {counted(rows[0]['times'], 'time')}"
    figure = Figure(
        name, finding, "How often replicas of each broker left the ISR.", "times that a replica left the ISR"
    )
    return horizontal_bars(figure, bars, short)


_TRENDS = {
    "growing": "growing ▲",
    "stopped": "stopped ■",
    "falling": "falling ▼",
    "unknown": "trend unknown",
    "none": "none",
}


def group_lag(cluster: ClusterContent, name: str) -> str:
    rows = [row for row in _answer(cluster, "lag_by_group") if row["lag"] > 0][:BARS]
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
    finding = (
        f"{worst['group_id']} is {counted(worst['lag'], 'record')} behind, {duration(worst['lag_minutes'])},"
        f" with {'an unknown' if worst['trend'] == 'unknown' else 'a ' + worst['trend']} trend"
    )
    if worst["trend"] == "stopped":
        finding = f"{worst['group_id']} has stopped: {counted(worst['lag'], 'record')}, {duration(worst['lag_minutes'])} behind"
    known = any(bar.mark is not None for bar in bars)
    figure = Figure(name, finding, "The lag of each group, and its trend.", "records not yet read, over all partitions")
    return horizontal_bars(figure, bars, short, mark="its lag at the commits before" if known else "")


def hanging_transactions(cluster: ClusterContent, name: str) -> str:
    rows = _rows(cluster, "hanging_transactions")[:BARS]
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
    rows = _rows(cluster, "topic_traffic")[:BARS]
    if not rows:
        return ""
    total = sum(row["bytes"] for row in _answer(cluster, "traffic_totals")) or sum(row["bytes"] for row in rows)
    bars = [
        Bar(row["topic"], (row["bytes"],), f"{size(row['bytes'])}, peak {rate(row['peak_bytes_per_second'])}")
        for row in rows
    ]
    share = rows[0]["bytes"] / total if total else 0.0
    figure = Figure(
        name,
        f"{rows[0]['topic']} takes {percent(share)} of all bytes: {size(rows[0]['bytes'])}",
        "Bytes written, by topic.",
        "bytes of keys, values and headers",
    )
    return horizontal_bars(figure, bars, size, scale=nice_bytes)


def partition_plan(cluster: ClusterContent, name: str) -> str:
    rows = [row for row in _rows(cluster, "partition_plan") if row["recommended"] > row["partitions"]][:BARS]
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
    rows = _rows(cluster, "hot_partitions")[:BARS]
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
    rows = _rows(cluster, "key_skew")[:BARS]
    if not rows:
        return ""
    bars = [Bar(f"{row['topic']}: {row['key']}", (row["share"],), percent(row["share"])) for row in rows]
    finding = f"One key makes {percent(rows[0]['share'])} of {rows[0]['topic']}"
    figure = Figure(name, finding, "The share of single keys in a topic.", "share of the records of the topic")
    return horizontal_bars(figure, bars, percent)


VIEWS: Mapping[str, View] = {
    view.__name__: view
    for view in (
        acl_findings,
        acl_grants,
        broker_availability,
        broker_balance,
        broker_fences,
        changes,
        config_history,
        group_lag,
        hanging_transactions,
        hot_partitions,
        isr_flaps,
        key_skew,
        leader_changes,
        partition_plan,
        quorum_leaders,
        rack_violations,
        reassignments,
        topic_availability,
        topic_traffic,
        topic_use,
    )
}
"""By table."""
