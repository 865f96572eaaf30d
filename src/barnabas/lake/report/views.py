"""Which plot answers which question: from the content of a cluster to a plot that says what it found.

Its one rule: the caption is the finding, in words, with its number. A view gives nothing where there is nothing to see:
the page then says what that means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from barnabas.lake.report.content import ClusterContent, Row
from barnabas.lake.report.plots import (
    Bar,
    Count,
    Course,
    Figure,
    Lane,
    Point,
    Span,
    courses,
    horizontal_bars,
    nice_bytes,
    nice_minutes,
    stacked_bars,
    timeline,
)
from barnabas.lake.report.text import count, counted, duration, iso, percent, short, size, times
from barnabas.lake.report.use_views import (
    group_lag,
    group_lag_growth,
    hanging_transactions,
    hot_partitions,
    key_skew,
    partition_plan,
    topic_traffic,
    topic_use,
)
from barnabas.lake.report.viewing import BARS, LANES, View, answer_of, counted_bars, rows_of


def _over_time(cluster: ClusterContent, name: str, answer: str, noun: str, described: str) -> str:
    rows = answer_of(cluster, answer)
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
    rows = rows_of(cluster, "topic_availability")[:BARS]
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
    rows = [row for row in rows_of(cluster, "broker_availability") if row["out_of_sync_minutes"] > 0][:BARS]
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
    rows = rows_of(cluster, "broker_fences")
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
        legend=_present(_FENCE_CAUSES, rows, "cause"),
    )


def _index(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else 6


def _present(names: Sequence[str], rows: Sequence[Row], column: str) -> list[str]:
    """The names for a legend, without those that no row has."""
    found = {row[column] for row in rows}
    return [name if name in found else "" for name in names]


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


_ROLES = ("leader", "voter", "observer")


def quorum_health(cluster: ClusterContent, name: str) -> str:
    points: dict[int, list[Point]] = {}
    rows = answer_of(cluster, "quorum_lag_over_time")
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
            f"records behind, at the worst in each {duration(rows[0]['seconds'] / 60)}, by time (UTC); a gap: nobody looked",
        ),
        [
            Course(
                f"{row['role']} {row['replica_id']}",
                f"now {short(row['lag'] or 0)}, at most {short(row['most_lag'] or 0)}",
                tuple(points[row["replica_id"]]),
                _index(_ROLES, row["role"]),
            )
            for row in nodes
        ],
        timedelta(seconds=rows[0]["seconds"]),
        legend=_present(_ROLES, nodes, "role"),
    )


_OUTCOMES = ("done", "running", "cancelled", "deleted", "changed")


def reassignments(cluster: ClusterContent, name: str) -> str:
    rows = rows_of(cluster, "reassignments")[:LANES]
    if not rows:
        return ""
    running = sum(row["count"] for row in answer_of(cluster, "reassignments_by_outcome") if row["name"] == "running")
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
        legend=_present(_OUTCOMES, rows, "outcome"),
    )


def broker_balance(cluster: ClusterContent, name: str) -> str:
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


def disk_balance(cluster: ClusterContent, name: str) -> str:
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


def config_history(cluster: ClusterContent, name: str) -> str:
    return counted_bars(
        cluster,
        name,
        "config_changes_by_setting",
        lambda top, _: f"Changed most: {top['name']}, {counted(top['count'], 'time')}",
        "How often each setting was changed.",
        "changes of a setting, over all resources",
    )


def acl_findings(cluster: ClusterContent, name: str) -> str:
    return counted_bars(
        cluster,
        name,
        "findings_by_kind",
        lambda top, total: f"{counted(total, 'finding')}; most are: {top['name']}",
        "What is odd about the ACLs, by kind.",
        "findings",
    )


def acl_grants(cluster: ClusterContent, name: str) -> str:
    return counted_bars(
        cluster,
        name,
        "grants_by_principal",
        lambda top, _: f"{top['name']} has entries for {counted(top['count'], 'resource')}, the most",
        "For how many resources each principal has entries.",
        "resources with an entry for the principal",
    )


def rack_violations(cluster: ClusterContent, name: str) -> str:
    total = cluster.tables["rack_violations"].total if "rack_violations" in cluster.tables else 0
    return counted_bars(
        cluster,
        name,
        "violations_by_topic",
        lambda top, _: f"{counted(total, 'partition')}, most of them of {top['name']}: {count(top['count'])}",
        "Partitions on fewer racks than they could be, by topic.",
        "partitions on fewer racks than they could be",
    )


def isr_flaps(cluster: ClusterContent, name: str) -> str:
    rows = answer_of(cluster, "isr_flaps_by_broker")[:BARS]
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
        disk_balance,
        group_lag,
        group_lag_growth,
        hanging_transactions,
        hot_partitions,
        isr_flaps,
        key_skew,
        leader_changes,
        partition_plan,
        quorum_health,
        quorum_leaders,
        rack_violations,
        reassignments,
        topic_availability,
        topic_traffic,
        topic_use,
    )
}
"""By table."""
