"""Leaders: which partitions changed their leader, and which replicas left the ISR."""

from __future__ import annotations

from barnabas.lake.declared_column import Column
from barnabas.lake.report.charts import BARS, answer_of, over_time_bars
from barnabas.lake.report.content import ClusterContent
from barnabas.lake.report.figures import KeyFigure, Verdict, Zeros, is_single, total_of
from barnabas.lake.report.plots import Bar, Figure, horizontal_bars
from barnabas.lake.report.queries import CLUSTER, Query, over_time, over_time_columns, top
from barnabas.lake.report.section import Chapter, Section
from barnabas.lake.report.text import count, counted, short

# --- leader changes

LEADER_CHANGES_OVER_TIME = Query(
    "leader_changes_over_time",
    ("leader_changes",),
    over_time_columns("The cause, without the broker's number."),
    over_time("leader_changes", "regexp_replace(t.cause, '^broker -?[0-9]+ ', 'broker ')"),
)


def leader_changes_chart(cluster: ClusterContent, name: str) -> str:
    return over_time_bars(cluster, name, LEADER_CHANGES_OVER_TIME, "leader change", "Leader changes by cause")


def unclean_elections(cluster: ClusterContent) -> KeyFigure | None:
    total = total_of(cluster, "leader_changes")
    if total is None or LEADER_CHANGES_OVER_TIME.name not in cluster.answers:
        return None
    causes = Zeros()
    for row in answer_of(cluster, LEADER_CHANGES_OVER_TIME):
        causes[row["series"]] += row["count"]
    unclean = causes["unclean election"]
    if unclean:
        said = f"Records may be lost. They are among {counted(total, 'leader change')}."
        return KeyFigure("unclean elections", count(unclean), Verdict.ACT, said)
    if is_single(cluster):
        return None  # its partitions change leaders when it goes and comes, which incidents tell
    said = "No partition ever changed its leader."
    if causes:
        cause = max(causes, key=lambda name: (causes[name], name))
        said = f"None of them unclean. Mostly: {cause}."
    return KeyFigure("leader changes", count(total), Verdict.GOOD, said)


LEADER_CHANGES = Section(
    "leader_changes",
    question="Which partitions changed their leader, and why?",
    order="cause = 'unclean election' desc, offset desc, topic_name, partition",
    empty="No partition ever changed its leader.",
    columns=("time", "topic_name", "partition", "alike", "leader_before", "leader", "cause", "leader_epoch", "offset"),
    # A broker that goes or comes is a row for each leader that follows, and not one for each partition.
    alike=("date_trunc('minute', time)", "leader_before", "leader", "cause"),
    queries=(LEADER_CHANGES_OVER_TIME,),
    chart=leader_changes_chart,
    figures=(unclean_elections,),
)


# --- replicas that left the ISR

ISR_FLAPS_BY_BROKER = Query(
    "isr_flaps_by_broker",
    ("isr_flaps",),
    (
        CLUSTER,
        Column("broker_id", "int", "The broker."),
        Column("times", "bigint", "How often one of its replicas left."),
        Column("replicas", "bigint", "Number of its replicas that left."),
    ),
    top(
        "select cluster_id, broker_id, sum(times) as times, count(*) as replicas from isr_flaps group by all",
        "times desc, broker_id",
    ),
)


def isr_flaps_chart(cluster: ClusterContent, name: str) -> str:
    rows = answer_of(cluster, ISR_FLAPS_BY_BROKER)[:BARS]
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


def left_the_isr(cluster: ClusterContent) -> KeyFigure | None:
    if ISR_FLAPS_BY_BROKER.name not in cluster.answers or is_single(cluster):
        return None
    brokers = answer_of(cluster, ISR_FLAPS_BY_BROKER)
    if not brokers:
        return KeyFigure("left the ISR", "0", Verdict.GOOD, "No replica ever left the ISR.")
    worst = brokers[0]
    said = f"Replicas of broker {worst['broker_id']}, the most of all brokers."
    return KeyFigure("left the ISR", counted(worst["times"], "time"), Verdict.PLAIN, said)


ISR_FLAPS = Section(
    "isr_flaps",
    question="Which replicas left the ISR, and how often?",
    order="times desc, shortest_minutes nulls last, topic_name, partition, broker_id",
    empty="No replica ever left the ISR.",
    columns=("topic_name", "partition", "alike", "broker_id", "times", "shortest_minutes", "last_time", "first_time"),
    alike=(
        "broker_id",
        "times",
        "round(shortest_minutes)",
        "date_trunc('minute', first_time)",
        "date_trunc('minute', last_time)",
    ),
    queries=(ISR_FLAPS_BY_BROKER,),
    chart=isr_flaps_chart,
    figures=(left_the_isr,),
)


CHAPTER = Chapter("Leaders", (LEADER_CHANGES, ISR_FLAPS))
