"""Key figures: one number for each question, a verdict on it, and a sentence. The page and the terminal both say these.

Its one rule: a verdict follows from the rows alone. What a table that is not there would have told is left out, and not good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from barnabas.lake.report.content import ClusterContent, Row
from barnabas.lake.report.text import NONE, count, counted, duration, percent, short, size, times

SKEW = 1.25
"""From this many times the mean on, a broker has too much."""
SKEW_BY = 3
"""But not for a difference of less than this many partitions."""
LONG_MINUTES = 60.0
"""A reassignment that runs for longer is worth a look."""
FULL = 0.85
"""A disk that is fuller is worth a look."""
BEHIND_SECONDS = 60.0
"""A node of the quorum that has not caught up for longer is worth a look."""


class Verdict(Enum):
    LOOK = "look at this"
    GOOD = "good"
    PLAIN = "for information"


@dataclass(frozen=True, slots=True)
class KeyFigure:
    name: str
    value: str
    verdict: Verdict
    sentence: str
    table: str
    """The table that tells more."""


def key_figures(cluster: ClusterContent) -> list[KeyFigure]:
    """What to look at first, then what is good, then what is only told; each in the order of importance."""
    found = [figure for make in _FIGURES if (figure := make(cluster)) is not None]
    order = list(Verdict)
    return sorted(found, key=lambda figure: order.index(figure.verdict))


def _one(cluster: ClusterContent, answer: str, table: str = "") -> Row | None:
    """The row of an answer of one row; none although its table is there means that all of its numbers are 0."""
    if answer in cluster.answers:
        rows = cluster.answers[answer]
        if rows:
            return rows[0]
        if table in cluster.tables:
            return _Zeros()
    return None


class _Zeros(dict[str, int]):
    def __missing__(self, key: str) -> int:
        return 0


def _counts(cluster: ClusterContent, answer: str) -> Mapping[str, int] | None:
    if answer not in cluster.answers:
        return None
    return _Zeros({str(row["name"]): row["count"] for row in cluster.answers[answer]})


def _total(cluster: ClusterContent, table: str) -> int | None:
    return cluster.tables[table].total if table in cluster.tables else None


def _judged(bad: Any) -> Verdict:
    return Verdict.LOOK if bad else Verdict.GOOD


def _offline(cluster: ClusterContent) -> KeyFigure | None:
    row = _one(cluster, "trouble_totals", "partition_trouble")
    if row is None:
        return None
    minutes, partitions, now = row["offline_minutes"], row["offline_partitions"], row["offline_now"]
    if not partitions:
        said = "No partition was ever without a leader."
    else:
        said = f"{counted(partitions, 'partition')} had no leader for a time; {_still(now)}"
    return KeyFigure("without a leader", duration(minutes), _judged(partitions), said, "topic_availability")


def _still(now: int) -> str:
    return f"{count(now)} still at the end of the log." if now else "none at the end of the log."


def _below_min(cluster: ClusterContent) -> KeyFigure | None:
    row = _one(cluster, "trouble_totals", "partition_trouble")
    if row is None:
        return None
    minutes, partitions, now = row["below_min_isr_minutes"], row["below_min_isr_partitions"], row["below_min_isr_now"]
    if not partitions:
        said = "Every partition had at least its minimum in sync."
    else:
        said = f"{counted(partitions, 'partition')} could not take acks=all writes for a time; {_still(now)}"
    return KeyFigure("below min ISR", duration(minutes), _judged(partitions), said, "topic_availability")


def _under_replicated(cluster: ClusterContent) -> KeyFigure | None:
    row = _one(cluster, "trouble_totals", "partition_trouble")
    if row is None:
        return None
    now, partitions = row["under_replicated_now"], row["under_replicated_partitions"]
    if not partitions:
        said = "Every replica was always in sync."
    else:
        total = duration(row["under_replicated_minutes"])
        said = f"At the end of the log. Ever: {counted(partitions, 'partition')}, {total} in all."
    return KeyFigure("partitions under-replicated", count(now), _judged(now), said, "partition_trouble")


def _brokers(cluster: ClusterContent) -> KeyFigure | None:
    inventory, fences = _one(cluster, "inventory"), _one(cluster, "fence_totals", "broker_fences")
    if inventory is None or fences is None:
        return None
    brokers, fenced, silent = inventory["brokers"], inventory["fenced_brokers"], fences["silent"]
    parts = [f"{counted(fenced, 'is', 'are')} fenced." if fenced else "None is fenced."]
    if silent:
        parts.append(f"Fenced for silence {counted(silent, 'time')} in this log.")
    value = f"{brokers - fenced} of {brokers}"
    return KeyFigure("brokers in service", value, _judged(fenced or silent), " ".join(parts), "broker_fences")


def _leaders(cluster: ClusterContent) -> KeyFigure | None:
    total = _total(cluster, "leader_changes")
    if total is None or "leader_changes_over_time" not in cluster.answers:
        return None
    causes = _Zeros()
    for row in cluster.answers["leader_changes_over_time"]:
        causes[row["series"]] += row["count"]
    unclean = causes["unclean election"]
    if unclean:
        said = f"{counted(unclean, 'election')} unclean: records may be lost."
        return KeyFigure("leader changes", count(total), Verdict.LOOK, said, "leader_changes")
    said = "No partition ever changed its leader."
    if causes:
        cause = max(causes, key=lambda name: (causes[name], name))
        said = f"None of them unclean. Mostly: {cause}."
    return KeyFigure("leader changes", count(total), Verdict.GOOD, said, "leader_changes")


def _flaps(cluster: ClusterContent) -> KeyFigure | None:
    if "isr_flaps_by_broker" not in cluster.answers:
        return None
    brokers = cluster.answers["isr_flaps_by_broker"]
    if not brokers:
        return KeyFigure(
            "left the ISR", "0", Verdict.GOOD, "No replica ever left the set of those in sync.", "isr_flaps"
        )
    worst = brokers[0]
    said = f"Replicas of broker {worst['broker_id']}, the most of all brokers."
    return KeyFigure("left the ISR", counted(worst["times"], "time"), Verdict.PLAIN, said, "isr_flaps")


def _quorum(cluster: ClusterContent) -> KeyFigure | None:
    total, log = _total(cluster, "quorum_leaders"), cluster.log
    if not total or log.first_time is None or log.last_time is None:
        return None
    days = max((log.last_time - log.first_time).total_seconds() / 86400, 1.0)
    often = total > 2 and (total - 1) / days > 1
    said = f"{short((total - 1) / days)} changes a day." if total > 1 else "The leader of the quorum never changed."
    return KeyFigure("quorum epochs", count(total), _judged(often), said, "quorum_leaders")


def _quorum_health(cluster: ClusterContent) -> KeyFigure | None:
    rows = cluster.tables["quorum_health"].rows if "quorum_health" in cluster.tables else ()
    if not rows:
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
        said = f"Node {gone[0]['replica_id']}, a {gone[0]['role']} once, was not there when the quorum was last seen."
    return KeyFigure("quorum nodes behind", count(len(late) + len(gone)), _judged(late or gone), said, "quorum_health")


def _disks(cluster: ClusterContent) -> KeyFigure | None:
    found = cluster.tables["disk_balance"].rows if "disk_balance" in cluster.tables else ()
    rows = [row for row in found if row["used_share"] is not None]
    if not rows:
        return None
    worst = max(rows, key=lambda row: row["used_share"])
    growth = worst["bytes_per_day"] or 0.0
    said = f"Broker {worst['broker_id']}, {worst['log_dir']}: {size(worst['usable_bytes'])} free"
    if growth > 0:
        said += f", enough for {duration(worst['usable_bytes'] / growth * 1440)} at the pace it was seen to grow"
    value = percent(worst["used_share"])
    return KeyFigure("fullest disk", value, _judged(worst["used_share"] >= FULL), f"{said}.", "disk_balance")


def _watched_groups(cluster: ClusterContent) -> KeyFigure | None:
    verdicts = _counts(cluster, "groups_by_verdict")
    if not verdicts:
        return None
    bad = verdicts["growing"] + verdicts["stopped"]
    said = f"Of {counted(sum(verdicts.values()), 'group')} that were watched"
    if bad:
        said += f": {count(verdicts['growing'])} with growing lag, {count(verdicts['stopped'])} that read nothing"
    elif verdicts["unknown"]:
        said = f"{counted(verdicts['unknown'], 'group')} with lag seen only once: the next run tells whether it grows"
    verdict = Verdict.PLAIN if verdicts["unknown"] and not bad else _judged(bad)
    return KeyFigure("groups seen to fall behind", count(bad), verdict, f"{said}.", "group_lag_growth")


def _groups(cluster: ClusterContent) -> KeyFigure | None:
    trends = _counts(cluster, "groups_by_trend")
    if not trends:
        return None
    bad, total = trends["growing"] + trends["stopped"], sum(trends.values())
    if not bad:
        return KeyFigure("groups falling behind", "0", Verdict.GOOD, f"Of {counted(total, 'group')}.", "group_lag")
    said = f"Of {counted(total, 'group')}: {count(trends['growing'])} with growing lag, {count(trends['stopped'])} stopped."
    return KeyFigure("groups falling behind", count(bad), Verdict.LOOK, said, "group_lag")


def _transactions(cluster: ClusterContent) -> KeyFigure | None:
    total = _total(cluster, "hanging_transactions")
    if total is None:
        return None
    said = "No transaction is open for longer than it may be."
    if total:
        rows = cluster.tables["hanging_transactions"].rows
        longest = max((row["minutes"] for row in rows), default=0.0)
        said = f"Consumers that read committed records wait. The oldest is open for {duration(longest)}."
    return KeyFigure("hanging transactions", count(total), _judged(total), said, "hanging_transactions")


def _balance(cluster: ClusterContent) -> KeyFigure | None:
    if "broker_balance" not in cluster.tables:
        return None
    rows = [row for row in cluster.tables["broker_balance"].rows if row["leader_skew"] is not None]
    if not rows:
        return None
    worst = max(rows, key=lambda row: row["leader_skew"])
    skew, leaders = worst["leader_skew"], worst["leaders"]
    too_much = skew >= SKEW and leaders - leaders / skew >= SKEW_BY
    said = f"Broker {worst['broker_id']} leads {counted(leaders, 'partition')}, {times(skew)} the mean."
    return KeyFigure("most leaders", times(skew), _judged(too_much), said, "broker_balance")


def _simple(
    name: str, table: str, good: str, bad: str, source: str = ""
) -> Callable[[ClusterContent], KeyFigure | None]:
    """A table in which every row is worth a look; that it has none says nothing if its source has none either."""

    def make(cluster: ClusterContent) -> KeyFigure | None:
        total = _total(cluster, table)
        if total is None or (source and not _total(cluster, source)):
            return None
        return KeyFigure(name, count(total), _judged(total), bad if total else good, table)

    return make


def _racks(cluster: ClusterContent) -> KeyFigure | None:
    total = _total(cluster, "rack_violations")
    if total is None or not _total(cluster, "broker_balance"):
        return None
    if any(row["rack"] is None for row in cluster.tables["broker_balance"].rows):
        said = "Not every broker has a rack, so nobody knows."
        return KeyFigure("rack violations", NONE, Verdict.PLAIN, said, "rack_violations")
    said = "Every partition is on as many racks as it can be."
    if total:
        said = "Partitions that the loss of one rack would hit more than it has to."
    return KeyFigure("rack violations", count(total), _judged(total), said, "rack_violations")


def _reassignments(cluster: ClusterContent) -> KeyFigure | None:
    outcomes = _counts(cluster, "reassignments_by_outcome")
    if outcomes is None or "reassignments" not in cluster.tables:
        return None
    running = [row["minutes"] for row in cluster.tables["reassignments"].rows if row["outcome"] == "running"]
    longest = max(running, default=0.0)
    if longest > LONG_MINUTES:
        said = f"{counted(outcomes['running'], 'move')} still running, the longest for {duration(longest)}."
        return KeyFigure("partitions moved", count(sum(outcomes.values())), Verdict.LOOK, said, "reassignments")
    said = ", ".join(f"{count(number)} {name}" for name, number in sorted(outcomes.items())) or "Nothing was moved"
    return KeyFigure("partitions moved", count(sum(outcomes.values())), Verdict.PLAIN, f"{said}.", "reassignments")


def _risks(cluster: ClusterContent) -> KeyFigure | None:
    row, inventory = _one(cluster, "topic_risks"), _one(cluster, "inventory")
    if row is None or inventory is None or inventory["brokers"] < 2:
        return None
    single, all_needed = row["single"], row["all_needed"]
    found = [f"{counted(single, 'topic')} with one replica"] if single else []
    found += [f"{count(all_needed)} that need all of theirs in sync"] if all_needed else []
    said = " and ".join(found) or f"None of {counted(row['topics'], 'topic')}"
    value = count(single + all_needed)
    return KeyFigure("topics one broker can stop", value, _judged(found), f"{said}.", "topic_inventory")


def _unused(cluster: ClusterContent) -> KeyFigure | None:
    verdicts = _counts(cluster, "topics_by_verdict")
    if not verdicts or not _total(cluster, "topic_traffic"):
        return None  # without logs of topics nobody knows what is used
    unused = {name: number for name, number in verdicts.items() if name not in ("used", "unknown") and number}
    said = ", ".join(f"{count(number)} {name}" for name, number in sorted(unused.items()))
    if not unused:
        said = "Every topic is written and read"
    return KeyFigure("unused topics", count(sum(unused.values())), _judged(unused), f"{said}.", "topic_use")


def _plan(cluster: ClusterContent) -> KeyFigure | None:
    row = _one(cluster, "plan_totals", "partition_plan")
    if row is None or not _total(cluster, "partition_plan"):
        return None
    topics, more = row["topics"], row["partitions"]
    said = f"{counted(more, 'partition')} more, together." if topics else "No topic wants more partitions."
    return KeyFigure("topics too narrow", count(topics), _judged(topics), said, "partition_plan")


def _traffic(cluster: ClusterContent) -> KeyFigure | None:
    row = _one(cluster, "traffic_totals", "topic_traffic")
    if row is None or not row["topics"]:
        return None
    said = f"{short(row['records'])} records in {counted(row['topics'], 'topic')}."
    return KeyFigure("written", size(row["bytes"]), Verdict.PLAIN, said, "topic_traffic")


def _changes(cluster: ClusterContent) -> KeyFigure | None:
    total, configs = _total(cluster, "changes"), _total(cluster, "config_history")
    if total is None:
        return None
    said = "Nothing has changed."
    if total:
        said = "Of all kinds." if configs is None else f"{count(configs)} of settings."
    return KeyFigure("changes", count(total), Verdict.PLAIN, said, "changes")


_FIGURES: tuple[Callable[[ClusterContent], KeyFigure | None], ...] = (
    _offline,
    _below_min,
    _under_replicated,
    _brokers,
    _leaders,
    _quorum_health,
    _groups,
    _watched_groups,
    _transactions,
    _disks,
    _simple(
        "drift",
        "drift",
        "The cluster is as declared.",
        "Differences between the cluster and what is declared.",
    ),
    _simple(
        "ACL findings",
        "acl_findings",
        "Nothing is odd about the ACLs.",
        "Entries that are wide, idle or in vain.",
        "acl_grants",
    ),
    _racks,
    _risks,
    _balance,
    _quorum,
    _reassignments,
    _plan,
    _simple(
        "hot partitions",
        "hot_partitions",
        "No partition gets much more than its share.",
        "Partitions with much more than their share.",
        "topic_traffic",
    ),
    _simple(
        "heavy keys",
        "key_skew",
        "No key makes a large part of a topic.",
        "Keys that make a large part of a topic.",
        "topic_traffic",
    ),
    _unused,
    _flaps,
    _traffic,
    _changes,
)
"""The most important first."""
