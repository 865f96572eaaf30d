"""Availability: minutes without a leader, below min ISR and under-replicated; fenced brokers; partitions with trouble."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.lake.declared_column import Column
from barnabas.lake.report.charts import BARS, LANES, answer_of, index_of, present, range_of, rows_of, span_of
from barnabas.lake.report.content import ClusterContent, Row
from barnabas.lake.report.figures import KeyFigure, is_single, judged, one, total_of
from barnabas.lake.report.plots import Bar, Figure, Lane, horizontal_bars, nice_minutes, timeline
from barnabas.lake.report.queries import CLUSTER, INVENTORY, Query, numbers
from barnabas.lake.report.section import Chapter, Section
from barnabas.lake.report.text import between, count, counted, duration

_TROUBLE_TOTALS = """
select cluster_id,
  count(distinct if(offline, struct(topic_id, partition), null)) as offline_partitions,
  count(distinct if(below_min_isr, struct(topic_id, partition), null)) as below_min_isr_partitions,
  count(distinct if(under_replicated, struct(topic_id, partition), null)) as under_replicated_partitions,
  count_if(offline and not is_over) as offline_now,
  count_if(below_min_isr and not is_over) as below_min_isr_now,
  count_if(under_replicated and not is_over) as under_replicated_now
from partition_trouble group by cluster_id"""


TROUBLE_TOTALS = Query(
    "trouble_totals",
    ("partition_trouble",),
    numbers(
        offline_partitions="Number of partitions affected.",
        below_min_isr_partitions="Number of partitions affected.",
        under_replicated_partitions="Number of partitions affected.",
        offline_now="Number of partitions still affected.",
        below_min_isr_now="Number of partitions still affected.",
        under_replicated_now="Number of partitions still affected.",
    ),
    _TROUBLE_TOTALS,
)


_OUTAGES = " union all ".join(
    f"""
select cluster_id, '{kind}' as kind, count(distinct outage) as outages,
  sum(minutes) / 1D as minutes, min(began) as began, max(until) as until from (
  select cluster_id, outage, min(began) as began, max(until) as until,
    (unix_micros(max(until)) - unix_micros(min(began))) / 60000000D as minutes from (
    select *, sum(if(began <= before, 0, 1)) over (partition by cluster_id order by began, until
      rows between unbounded preceding and current row) as outage from (
      select cluster_id, began, until, max(until) over (partition by cluster_id order by began, until
        rows between unbounded preceding and 1 preceding) as before from partition_trouble where {kind}
    )
  ) group by cluster_id, outage
) group by cluster_id"""
    for kind in ("offline", "below_min_isr", "under_replicated")
)

OUTAGES = Query(
    "outages",
    ("partition_trouble",),
    (
        CLUSTER,
        Column("kind", "string", "offline, below_min_isr or under_replicated."),
        Column("outages", "bigint", "How often some partition was so; overlapping times are one outage."),
        Column("minutes", "double", "How long some partition was so, by the clock and not summed over partitions."),
        Column("began", "timestamp", "When the first began."),
        Column("until", "timestamp", "When the last ended, or the end of the log."),
    ),
    _OUTAGES,
)


def _outage(cluster: ClusterContent, kind: str, partitions: int) -> tuple[str, str] | None:
    """Return how long, by the clock, and when; None if it never happened."""
    row = next((row for row in answer_of(cluster, OUTAGES) if row["kind"] == kind), None)
    if row is None or not partitions:
        return None
    value = f"{duration(row['minutes'])}, {counted(partitions, 'partition')}"
    when = between(row["began"], row["until"])
    return value, when if row["outages"] == 1 else f"{counted(row['outages'], 'time')}, {when}"


def _outage_or_count(cluster: ClusterContent, kind: str, partitions: int) -> str:
    found = _outage(cluster, kind, partitions)
    return found[0] if found else counted(partitions, "partition")


# --- topics


def topic_availability_chart(cluster: ClusterContent, name: str) -> str:
    known = rows_of(cluster, "topic_availability")
    rows = known[:BARS]
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
        bars.append(Bar(row["topic_name"], values, f"{words} {duration(row[column])}"))
    said = f"Worst: {rows[0]['topic_name']}, {bars[0].text}; {counted(rows[0]['partitions'], 'partition')} affected"
    if len(known) > 1 and len(known) == total_of(cluster, "topic_availability") and _are_alike(known, kinds):
        partitions = counted(sum(row["partitions"] for row in known), "partition")
        said = f"{counted(len(known), 'topic')}, {bars[0].text}; {partitions} affected"
        bars = [bars[0]._replace(label=f"each of {counted(len(known), 'topic')}")]
    figure = Figure(
        name,
        said,
        "Minutes without a leader, below min.insync.replicas, and under-replicated, by topic.",
        "how long some partition of the topic was so",
    )
    return horizontal_bars(figure, bars, duration, scale=nice_minutes, legend=[words for _, words in kinds])


def _are_alike(rows: Sequence[Row], kinds: Sequence[tuple[str, str]]) -> bool:
    """Return whether all rows say the same, as far as it is shown: one outage of everything."""
    return len({tuple(duration(row[column]) for column, _ in kinds) for row in rows}) == 1


def without_a_leader(cluster: ClusterContent) -> KeyFigure | None:
    row = one(cluster, TROUBLE_TOTALS, "partition_trouble")
    if row is None:
        return None
    partitions, now = row["offline_partitions"], row["offline_now"]
    if outage := _outage(cluster, "offline", partitions):
        said = f"Down {outage[1]}; {_still(now)}"
        return KeyFigure("without a leader", outage[0], judged(partitions, now), said)
    if not partitions:
        said = "No partition was ever without a leader."
    else:
        said = f"{counted(partitions, 'partition')} had no leader for a time; {_still(now)}"
    return KeyFigure("without a leader", count(partitions), judged(partitions, now), said)


def below_min_isr(cluster: ClusterContent) -> KeyFigure | None:
    row = one(cluster, TROUBLE_TOTALS, "partition_trouble")
    if row is None:
        return None
    partitions, now = row["below_min_isr_partitions"], row["below_min_isr_now"]
    if outage := _outage(cluster, "below_min_isr", partitions):
        if outage == _outage(cluster, "offline", row["offline_partitions"]):
            return None  # what has no leader accepts no writes at all
        said = f"No acks=all writes {outage[1]}; {_still(now)}"
        return KeyFigure("below min ISR", outage[0], judged(partitions, now), said)
    if not partitions:
        said = "No partition was ever below min.insync.replicas."
    else:
        said = f"{counted(partitions, 'partition')} could not accept acks=all writes for a time; {_still(now)}"
    return KeyFigure("below min ISR", count(partitions), judged(partitions, now), said)


def _still(now: int) -> str:
    return f"{count(now)} still at the end of the log." if now else "none at the end of the log."


TOPIC_AVAILABILITY = Section(
    "topic_availability",
    question="How long was each topic without a leader, below min.insync.replicas, or under-replicated?",
    order="offline_minutes desc, below_min_isr_minutes desc, under_replicated_minutes desc, partitions desc,"
    " topic_name, topic_id",
    empty="No partition was ever without a leader, below min.insync.replicas, or under-replicated.",
    columns=(
        "topic_name",
        "offline_minutes",
        "below_min_isr_minutes",
        "under_replicated_minutes",
        "partitions",
        "is_over",
    ),
    queries=(TROUBLE_TOTALS, OUTAGES),
    chart=topic_availability_chart,
    figures=(without_a_leader, below_min_isr),
)


# --- fences of brokers

FENCE_TOTALS = Query(
    "fence_totals",
    ("broker_fences",),
    numbers(
        fences="How often a broker was fenced while it ran.",
        silent="How often because its session expired.",
        open="Number of brokers still fenced.",
    ),
    "select cluster_id, count_if(cause != 'start') as fences, count_if(cause = 'silence') as silent,"
    " count_if(not is_over) as open from broker_fences group by cluster_id",
)


_FENCE_CAUSES = ("silence", "shutdown", "restart")


def broker_fences_chart(cluster: ClusterContent, name: str) -> str:
    # A broker that starts for the first time was not taken out of service: `broker_availability` does not count it either.
    rows = [row for row in rows_of(cluster, "broker_fences") if row["cause"] != "start"]
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
            f"Broker {worst} was fenced the longest: {duration(total[worst])}, {counted(len(lanes[worst]), 'time')}",
            "When each broker was fenced, by cause.",
            "time (UTC); a line at the right end: not ended by the end of the log",
        ),
        [
            Lane(
                f"broker {broker}",
                f"{counted(len(lanes[broker]), 'time')}, {duration(total[broker])}",
                tuple(span_of(row, index_of(_FENCE_CAUSES, row["cause"]), row["cause"]) for row in lanes[broker]),
            )
            for broker in order
        ],
        *range_of(cluster, rows),
        legend=present(_FENCE_CAUSES, rows, "cause"),
    )


def brokers_in_service(cluster: ClusterContent) -> KeyFigure | None:
    inventory, fences = one(cluster, INVENTORY), one(cluster, FENCE_TOTALS, "broker_fences")
    if inventory is None or fences is None:
        return None
    brokers, fenced, silent = inventory["brokers"], inventory["fenced_brokers"], fences["silent"]
    if is_single(cluster) and not fenced and not silent:
        return None
    parts = [f"{counted(fenced, 'is', 'are')} fenced." if fenced else "None is fenced."]
    if silent:
        parts.append(f"Fenced for silence {counted(silent, 'time')} in this log.")
    value = f"{brokers - fenced} of {brokers}"
    return KeyFigure("brokers in service", value, judged(fenced or silent, fenced), " ".join(parts))


BROKER_FENCES = Section(
    "broker_fences",
    question="When was which broker fenced, for how long, and why?",
    order="is_over, began desc, broker_id",
    empty="No broker was ever fenced.",
    columns=("broker_id", "began", "until", "minutes", "is_over", "cause"),
    queries=(FENCE_TOTALS,),
    chart=broker_fences_chart,
    figures=(brokers_in_service,),
)


# --- brokers


def broker_availability_chart(cluster: ClusterContent, name: str) -> str:
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
        name, finding, "Minutes out of sync, by broker.", "how long some replica of the broker was out of sync"
    )
    return horizontal_bars(figure, bars, duration, scale=nice_minutes)


BROKER_AVAILABILITY = Section(
    "broker_availability",
    question="How long were each broker's replicas out of sync?",
    order="out_of_sync_minutes desc, fenced_minutes desc, broker_id",
    empty="No broker was ever registered.",
    columns=(
        "broker_id",
        "out_of_sync_minutes",
        "offline_minutes",
        "below_min_isr_minutes",
        "partitions",
        "fenced_minutes",
        "fences",
    ),
    chart=broker_availability_chart,
)


# --- partitions


def under_replicated(cluster: ClusterContent) -> KeyFigure | None:
    row = one(cluster, TROUBLE_TOTALS, "partition_trouble")
    if row is None:
        return None
    now, partitions = row["under_replicated_now"], row["under_replicated_partitions"]
    if is_single(cluster):
        return None  # a partition that is not in sync there has no leader
    if not partitions:
        said = "Every replica was always in sync."
    else:
        said = f"At the end of the log. Ever: {_outage_or_count(cluster, 'under_replicated', partitions)}."
    return KeyFigure("partitions under-replicated", count(now), judged(now, now), said)


_TROUBLE = ("offline", "below_min_isr", "under_replicated", "min_isr", "missing", "is_over")

PARTITION_TROUBLE = Section(
    "partition_trouble",
    question="Which partitions had trouble, and when?",
    order="is_over, offline desc, below_min_isr desc, minutes desc, topic_name, partition, valid_from_offset",
    empty="No partition ever had trouble.",
    columns=(
        "topic_name",
        "partition",
        "alike",
        "began",
        "until",
        "minutes",
        *_TROUBLE,
    ),
    # A broker that stops is one row, and not one for each of its partitions.
    alike=("date_trunc('minute', began)", "date_trunc('minute', until)", *_TROUBLE),
    queries=(TROUBLE_TOTALS,),
    figures=(under_replicated,),
)


CHAPTER = Chapter("Availability", (TOPIC_AVAILABILITY, BROKER_FENCES, BROKER_AVAILABILITY, PARTITION_TROUBLE))
