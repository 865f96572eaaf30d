"""The page: one HTML file without external resources, with problems first, then a plot and a table for each question.

Its one rule: every text from a log goes through `escaped`. A content security policy also forbids loading anything, and any
script but the page's own. `render` is pure; the caller writes the file, and beside it the files with all rows that tables
link to.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from barnabas.lake.declared_column import Column
from barnabas.lake.report.chapters import CHAPTERS, SECTIONS, key_figures, section_of
from barnabas.lake.report.charts import answer_of
from barnabas.lake.report.content import ClusterContent, LogRange, ReportContent, Rows
from barnabas.lake.report.figures import KeyFigure, Verdict
from barnabas.lake.report.plots import PATTERNS
from barnabas.lake.report.queries import INVENTORY
from barnabas.lake.report.section import Section
from barnabas.lake.report.text import CELL_CHARACTERS, NONE, clipped, count, counted, escaped, is_number, iso, visible
from barnabas.lake.report.text import shown as shown_text

OTHER = "More"
"""The chapter of tables without a section."""
FILTER_FROM = 10
"""Tables with more rows than this have a filter."""
BESIDE_COLUMNS = 5
"""A table with more columns is below its plot and not beside it, so that none of them is cut."""
LINE_CHARACTERS = 36
"""Longer texts are wrapped."""
_SIGNS = {Verdict.ACT: "▲", Verdict.AWARE: "!", Verdict.GOOD: "✓", Verdict.PLAIN: "i"}
_BAD = frozenset(
    ("growing", "stopped", "cancelled", "unclean election", "silence", "never written", "never consumed", "idle")
)
"""Words in tables that are highlighted."""
_WORDS = frozenset(("trend", "verdict", "outcome", "cause", "finding", "kind", "state"))


def render(content: ReportContent) -> str:
    """Return the page. It depends only on the content."""
    style, script = _asset("page.css"), _asset("page.js")
    clusters = content.clusters
    names = ", ".join(visible(cluster.cluster_id) for cluster in clusters)
    body = [PATTERNS, _header(content), "<main>"]
    body += [_cluster(cluster, n, len(clusters)) for n, cluster in enumerate(clusters)]
    if not clusters:
        body.append('<p class="empty">The lake has no cluster yet.</p>')
    body.append("</main>")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{escaped(f'Kafka report {names}'.strip())}</title>"
        f"<style>{style}</style></head>\n<body>{''.join(body)}\n<script>{script}</script></body></html>\n"
    )


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def policy() -> str:
    """Return the content security policy of the page."""
    digest = b64encode(sha256(_asset("page.js").encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _header(content: ReportContent) -> str:
    several = len(content.clusters) > 1
    links = "".join(
        f'<li><a href="#c{n}">{escaped(cluster.cluster_id)}</a></li>' for n, cluster in enumerate(content.clusters)
    )
    return (
        '<header class="top"><div><p class="maker">barnabas lake report</p>'
        f"<h1>{f'{len(content.clusters)} Kafka clusters' if several else 'What the logs show'}</h1></div>"
        '<button type="button" id="theme" hidden>Theme: system</button></header>'
        + (f'<nav class="clusters" aria-label="Clusters"><ul>{links}</ul></nav>' if several else "")
    )


def _cluster(cluster: ClusterContent, n: int, clusters: int) -> str:
    prefix = f"c{n}"
    chapters = _chapters(cluster)
    links = "".join(f'<li><a href="#{prefix}-chapter-{chapter.lower()}">{chapter}</a></li>' for chapter in chapters)
    bodies = []
    for chapter, sections in chapters.items():
        title = "More tables" if chapter == OTHER else chapter
        blocks = (_block(cluster, section, f"{prefix}-{_part(section.table)}", clusters) for section in sections)
        bodies.append(f'<h3 class="chapter" id="{prefix}-chapter-{chapter.lower()}">{title}</h3>{"".join(blocks)}')
    first = 1 if next(iter(chapters), "") == CHAPTERS[0].title else 0
    parts = [
        f'<article class="cluster" id="{prefix}"><div class="about"><h2>Cluster {escaped(cluster.cluster_id)}</h2>'
        f"{_inventory(cluster)}{_range(cluster.log)}</div>",
        *bodies[:first],  # what went wrong, before all that there is to know
        _cards(key_figures(cluster), prefix),
        f'<nav class="chapters" aria-label="Chapters"><ul>{links}</ul></nav>' if chapters else "",
        *bodies[first:],
    ]
    return "".join((*parts, "</article>"))


def _chapters(cluster: ClusterContent) -> dict[str, list[Section]]:
    """Return the sections of the cluster's tables, by the title of their chapter."""
    found = {
        chapter.title: [section for section in chapter.sections if section.table in cluster.tables]
        for chapter in CHAPTERS
    }
    found[OTHER] = [section_of(name, rows) for name, rows in cluster.tables.items() if name not in SECTIONS]
    return {title: sections for title, sections in found.items() if sections}


def _part(table: str) -> str:
    """Return a table's name as part of an id."""
    return "".join(c if c.isalnum() or c in "_-" else "-" for c in table)


def _inventory(cluster: ClusterContent) -> str:
    rows = answer_of(cluster, INVENTORY)
    if not rows:
        return ""
    nouns = ("broker", "topic", "partition")
    return f"<p>{' · '.join(counted(rows[0][f'{noun}s'], noun) for noun in nouns)}</p>"


def _range(log: LogRange) -> str:
    if log.last_time is None or log.first_time is None:
        return '<p class="range">Nothing of its metadata log has been read.</p>'
    offsets = ""
    if log.first_offset is not None and log.last_offset is not None:
        offsets = f"offsets {count(log.first_offset)} to {count(log.last_offset)}, "
    return (
        f'<p class="range">Made from the metadata log, {offsets}'
        f"{_time(iso(log.first_time))} to {_time(iso(log.last_time))}. What had not ended by then is counted up to then.</p>"
    )


def _time(text: str) -> str:
    return f'<time datetime="{text}">{text}</time>'


def _cards(figures: Iterable[KeyFigure], prefix: str) -> str:
    cards = "".join(
        f'<li><a class="card {figure.verdict.name.lower()}" href="#{prefix}-{_part(figure.table)}">'
        f'<span class="verdict"><span class="sign" aria-hidden="true">{_SIGNS[figure.verdict]}</span>'
        f'{figure.verdict.value}</span><span class="figure">{escaped(figure.value)}</span>'
        f'<span class="what">{escaped(figure.name)}</span><span class="said">{escaped(figure.sentence)}</span></a></li>'
        for figure in figures
    )
    return f'<ul class="cards">{cards}</ul>' if cards else ""


def _block(cluster: ClusterContent, section: Section, name: str, clusters: int) -> str:
    """Return a question and its answer: a plot and a table, or a sentence if there is nothing to show."""
    table = cluster.tables[section.table]
    if section.source in cluster.tables and not cluster.tables[section.source].total:
        section, table = replace(section, empty=section_of(section.source).empty), replace(table, rows=(), total=0)
    has_rows = bool(table.total or table.rows)
    plot = section.chart(cluster, f"{name}-plot") if section.chart and has_rows else ""
    if has_rows:
        # fewer rows of each cluster if there are several, so that the page stays small enough for browsers
        answer = _table(section, table, name, max(section.limit // clusters, 5))
    else:
        answer = f'<p class="empty">{escaped(section.empty)}</p>'
    is_beside = plot and len(section.columns or table.columns) <= BESIDE_COLUMNS
    kind = "block" if is_beside else "block alone" if has_rows else "block nothing"
    many = " many" if len(table.rows) > FILTER_FROM else ""
    return (
        f'<section class="{kind}" id="{name}"><h4>{escaped(section.question)}</h4>'
        f'<div class="answer{many}">{plot}{answer}</div></section>'
    )


def _table(section: Section, table: Rows, name: str, limit: int) -> str:
    by_name = {column.name: column for column in table.columns}
    wanted = section.columns or tuple(column for column in by_name if column != "cluster_id")
    columns = [by_name[column] for column in wanted if column in by_name]
    rows = table.rows[:limit]
    head = "".join(
        f'<th scope="col" title="{escaped(f"{column.name}: {column.doc}")}"{" data-n" if is_number(column) else ""}>'
        f"{escaped(_heading(column, wanted))}</th>"
        for column in columns
    )
    body = "".join(f"<tr>{''.join(_cell(column, row.get(column.name)) for column in columns)}</tr>" for row in rows)
    search = ""
    if len(rows) > FILTER_FROM:
        search = (
            f'<input type="search" class="filter" hidden aria-label="Filter the rows of {escaped(section.table)}"'
            ' placeholder="Filter these rows">'
        )
    return (
        f'<div class="box"><div class="tools"><p class="count">{_how_many(len(rows), table)}</p>{search}</div>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(section.question)}">'
        f'<table id="{name}-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></div>'
    )


def _heading(column: Column, others: Iterable[str]) -> str:
    """Return a heading without units, since values have theirs; the full name is in the title."""
    name = "lasted" if column.name == "minutes" else column.name.removesuffix("_minutes")
    if name != column.name and name in others:
        name += "_in_time"
    name = name.replace("bytes_per_second", "rate").replace("bytes_per_day", "growth").replace("seconds_since", "since")
    return name.replace("_", " ")


def _how_many(rows: int, table: Rows) -> str:
    link = f'<a href="{escaped(quote(visible(table.file)))}">{escaped(table.file)}</a>' if table.file else ""
    if rows < table.total:
        rest = f"all of them in {link}" if link else "the others are in the lake"
        return f"{count(rows)} of {counted(table.total, 'row')}; {rest}"
    return f"{counted(rows, 'row')}; also in {link}" if link else counted(rows, "row")


def _cell(column: Column, value: Any) -> str:
    text = escape(clipped(visible(shown_text(column, value)), CELL_CHARACTERS))
    if value is None:
        return f'<td class="none{" n" if is_number(column) else ""}">{NONE}</td>'
    if column.type == "timestamp":
        return f"<td>{_time(text)}</td>"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f'<td class="{"n" if is_number(column) else "i"}" data-v="{value!r}">{text}</td>'
    if column.name in _WORDS:
        return f'<td><span class="word{" bad" if value in _BAD else ""}">{text}</span></td>'
    return f"<td>{text}</td>" if len(text) <= LINE_CHARACTERS else f'<td class="long">{text}</td>'
