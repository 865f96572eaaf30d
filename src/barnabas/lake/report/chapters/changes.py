"""Changes: drift from a declaration file, changes of all kinds, and the history of settings."""

from __future__ import annotations

from barnabas.lake.declared_column import Column
from barnabas.lake.report.charts import counted_bars, over_time_bars
from barnabas.lake.report.content import ClusterContent
from barnabas.lake.report.figures import KeyFigure, Verdict, every_row, total_of
from barnabas.lake.report.queries import COUNTED, Query, counted_by, over_time, over_time_columns, top
from barnabas.lake.report.section import Chapter, Section
from barnabas.lake.report.text import count, counted

# --- drift

DRIFT_COLUMNS = (
    Column("cluster_id", "string", "The cluster."),
    Column("action", "string", "The action that would resolve it: create, alter or delete."),
    Column("kind", "string", "topic, broker, acl, quota or user."),
    Column("name", "string", "The resource that differs."),
    Column("field", "string", "The field that differs."),
    Column("before", "string", "The current value; null: none."),
    Column("after", "string", "The declared value; null: none."),
)
"""The columns of `drift`, which is not a table of the lake: it depends on a file."""


DRIFT = Section(
    "drift",
    question="How does the cluster differ from what the file declares?",
    order="kind, name, field",
    empty="The cluster is as the file declares it.",
    columns=("kind", "name", "field", "before", "after", "action"),
    figures=(
        every_row(
            "drift",
            "drift",
            good="The cluster is as declared.",
            bad="Differences between the cluster and what is declared.",
        ),
    ),
)


# --- changes of all kinds

CHANGES_OVER_TIME = Query(
    "changes_over_time", ("changes",), over_time_columns("The kind of change."), over_time("changes", "t.kind")
)


def changes_chart(cluster: ClusterContent, name: str) -> str:
    return over_time_bars(cluster, name, CHANGES_OVER_TIME, "change", "Changes by kind")


def number_of_changes(cluster: ClusterContent) -> KeyFigure | None:
    total, configs = total_of(cluster, "changes"), total_of(cluster, "config_history")
    if total is None:
        return None
    said = "Nothing has changed."
    if total:
        said = "Of all kinds." if configs is None else f"{count(configs)} of settings."
    return KeyFigure("changes", count(total), Verdict.PLAIN, said)


CHANGES = Section(
    "changes",
    question="What changed, when, and from what to what?",
    order="offset desc, kind, resource, sentence",
    empty="Nothing has changed.",
    columns=("time", "sentence", "kind", "offset", "exact"),
    limit=200,
    queries=(CHANGES_OVER_TIME,),
    chart=changes_chart,
    figures=(number_of_changes,),
)


# --- settings

CONFIG_CHANGES_BY_SETTING = Query(
    "config_changes_by_setting",
    ("config_history",),
    COUNTED,
    top(counted_by("config_history", "name"), "count desc, name"),
)


def config_history_chart(cluster: ClusterContent, name: str) -> str:
    return counted_bars(
        cluster,
        name,
        CONFIG_CHANGES_BY_SETTING,
        lambda top, _: f"Changed most: {top['name']}, {counted(top['count'], 'time')}",
        "How often each setting was changed.",
        "changes of a setting, over all resources",
    )


CONFIG_HISTORY = Section(
    "config_history",
    question="Which value did each setting have before and after each change?",
    order="offset desc, resource_type, resource_name, name",
    empty="No setting was ever changed.",
    columns=("time", "resource_type", "resource_name", "name", "before", "after", "epoch", "offset", "exact"),
    limit=200,
    queries=(CONFIG_CHANGES_BY_SETTING,),
    chart=config_history_chart,
)


CHAPTER = Chapter("Changes", (DRIFT, CHANGES, CONFIG_HISTORY))
