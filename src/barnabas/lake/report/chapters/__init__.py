"""The chapters of the report, one module each. A chapter declares its sections, each with everything that belongs to it.

A section is a gold table with its question, the queries for its chart and key figures, the chart, and the key figures.
This module has only what concerns all of them: the order of chapters on the page, and that of key figures.
"""

from __future__ import annotations

from dataclasses import replace

from barnabas.lake.report.chapters import (
    access,
    availability,
    balance,
    changes,
    consumption,
    incidents,
    inventory,
    leaders,
    quorum,
    traffic,
)
from barnabas.lake.report.content import ClusterContent, Rows
from barnabas.lake.report.figures import KeyFigure, Verdict
from barnabas.lake.report.queries import INVENTORY
from barnabas.lake.report.section import Section

CHAPTERS = (
    incidents.CHAPTER,
    availability.CHAPTER,
    consumption.CHAPTER,
    changes.CHAPTER,
    leaders.CHAPTER,
    quorum.CHAPTER,
    balance.CHAPTER,
    traffic.CHAPTER,
    access.CHAPTER,
    inventory.CHAPTER,
)
"""In the order of the page."""

SECTIONS = {section.table: section for chapter in CHAPTERS for section in chapter.sections}
"""By table, in the order of the page. Tables without a section are shown too, at its end."""

QUERIES = {
    query.name: query for query in (INVENTORY, *(query for section in SECTIONS.values() for query in section.queries))
}
"""By name."""

BY_IMPORTANCE = (
    incidents.INCIDENTS,
    availability.TOPIC_AVAILABILITY,
    availability.PARTITION_TROUBLE,
    availability.BROKER_FENCES,
    leaders.LEADER_CHANGES,
    quorum.QUORUM_HEALTH,
    consumption.GROUP_LAG,
    consumption.GROUP_LAG_GROWTH,
    consumption.HANGING_TRANSACTIONS,
    balance.DISK_BALANCE,
    changes.DRIFT,
    access.ACL_FINDINGS,
    balance.RACK_VIOLATIONS,
    inventory.TOPIC_INVENTORY,
    balance.BROKER_BALANCE,
    quorum.QUORUM_LEADERS,
    balance.REASSIGNMENTS,
    traffic.PARTITION_PLAN,
    traffic.HOT_PARTITIONS,
    traffic.KEY_SKEW,
    consumption.TOPIC_USE,
    leaders.ISR_FLAPS,
    traffic.TOPIC_TRAFFIC,
    changes.CHANGES,
)
"""The sections with key figures, the most important first."""


def section_of(table: str, rows: Rows | None = None) -> Section:
    """Return the section of a table; a plain one if no chapter has it."""
    question = (rows.question if rows else "") or table.replace("_", " ").capitalize()
    return SECTIONS.get(table) or Section(table, question, "cluster_id", "It has no rows.")


def key_figures(cluster: ClusterContent) -> list[KeyFigure]:
    """Return the key figures: problems first, then good ones, then those for information; each by importance."""
    found = [
        replace(figure, table=section.table)
        for section in BY_IMPORTANCE
        for make in section.figures
        if (figure := make(cluster)) is not None
    ]
    order = list(Verdict)
    return sorted(found, key=lambda figure: order.index(figure.verdict))
