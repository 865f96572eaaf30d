"""Plots as SVG: horizontal bars, stacked bars over time, and timelines with spans or columns.

Its one rule: a plot has no fixed width. Horizontal positions are in per cent, vertical ones in pixels, so that text has the
same size on a phone as on a wide screen. Names that are too long for a narrow plot are there twice, and the style sheet shows
one of them. Fills are those of the page (classes s0 to s6), each with its own pattern. `chapters` decide what plots show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from typing import NamedTuple

from barnabas.lake.report.text import CELL_CHARACTERS, clipped, escaped, iso, visible

SERIES = 7
"""Number of fills; the last is for all other series."""
_NARROW, _WIDE = 20, 36
"""Characters of a name that fit beside its value, in narrow and in wide plots."""
_LETTER, _WIDE_PLOT, _NARROW_PLOT = 7.4, 430, 270
"""The width of a character of an axis, of the narrowest plot that is called wide, and of the narrowest plot; in pixels."""
_LINE, _BAR, _GAP = 17, 9, 11
_COLUMN_HEIGHT = 190
_STEPS = (
    timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=15), timedelta(minutes=30), timedelta(hours=1),
    timedelta(hours=3), timedelta(hours=6), timedelta(hours=12), timedelta(days=1), timedelta(days=2), timedelta(days=7),
    timedelta(days=14), timedelta(days=28), timedelta(days=91), timedelta(days=364),
)  # fmt: skip
_EPOCH = datetime(1970, 1, 5, tzinfo=UTC)
"""A Monday, so that weeks start on one."""

PATTERNS = (
    '<svg class="patterns" width="0" height="0" aria-hidden="true" focusable="false"><defs>'
    + "".join(
        f'<pattern id="fill{n}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<rect width="8" height="8" class="base{n}"/><path d="{path}" class="ink{n}"/></pattern>'
        for n, path in (
            (1, "M-2,2l4,-4M0,8l8,-8M6,10l4,-4"),
            (2, "M2,2h2v2h-2zM6,6h2v2h-2z"),
            (3, "M0,2h8M0,6h8"),
            (4, "M-2,6l4,4M0,0l8,8M6,-2l4,4"),
            (5, "M2,0v8M6,0v8"),
        )
    )
    + "</defs></svg>"
)
"""The patterns of the fills of series 1 to 5; once in a page."""


class Figure(NamedTuple):
    """The texts of a plot."""

    name: str
    """Its id, unique on the page."""
    finding: str
    description: str
    axis: str
    """The measured quantity and its unit."""


class Bar(NamedTuple):
    label: str
    values: tuple[float, ...]
    """One thin bar for each value that is not 0, with the fills of series 0, 1, ..."""
    text: str
    """The value in words, at the right."""
    mark: float | None = None
    """A line across the bar, to compare it with."""


class Span(NamedTuple):
    began: datetime
    until: datetime
    series: int
    hint: str
    is_over: bool = True
    text: str = ""


@dataclass(frozen=True, slots=True)
class Lane:
    label: str
    text: str
    spans: tuple[Span, ...]


class Point(NamedTuple):
    """The largest value in an interval."""

    start: datetime
    value: float
    hint: str


@dataclass(frozen=True, slots=True)
class Course:
    """The values of one subject over time."""

    label: str
    text: str
    points: tuple[Point, ...]
    series: int = 0


class Count(NamedTuple):
    start: datetime
    series: str
    number: int


def _percent(part: float, whole: float) -> str:
    share = 0.0 if whole <= 0 else min(max(part / whole, 0.0), 1.0) * 100
    return f"{share:.2f}".rstrip("0").rstrip(".") + "%"


def nice(value: float) -> float:
    """Return the next round number at or above a value whose half is round too."""
    if value <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(value) + 1e-9)
    return next((step * size for step in (1, 2, 4, 6, 8) if step * size >= value), 10 * size)


def nice_bytes(value: float) -> float:
    return 2.0 ** math.ceil(math.log2(max(value, 1.0)) - 1e-9)


def nice_minutes(value: float) -> float:
    """Return the next round number of seconds, minutes, hours or days."""
    for unit, steps in ((1 / 60, (2, 4, 10, 20, 30)), (1, (1, 2, 4, 10, 20, 30)), (60, (1, 2, 4, 6, 8, 12))):
        for step in steps:
            if unit * step >= value:
                return float(unit * step)
    return nice(value / 1440) * 1440


def _figure(figure: Figure, height: int, body: str, legend: str = "") -> str:
    finding = escape(clipped(visible(figure.finding), CELL_CHARACTERS))
    title, description = f"{figure.name}-title", f"{figure.name}-description"
    return (
        f'<figure class="plot"><figcaption>{finding}</figcaption>{legend}'
        f'<svg role="img" aria-labelledby="{title} {description}" width="100%" height="{height}">'
        f'<title id="{title}">{finding}</title>'
        f'<desc id="{description}">{escaped(figure.description)}</desc>{body}</svg>'
        f'<p class="axis">{escaped(figure.axis)}</p></figure>'
    )


def _legend(names: Sequence[str], mark: str = "") -> str:
    items = "".join(
        f'<li><svg width="14" height="14" aria-hidden="true"><rect width="14" height="14" rx="3" class="s{n}"/></svg>'
        f"{escaped(name)}</li>"
        for n, name in enumerate(names)
        if name
    )
    if mark:
        items += (
            '<li><svg width="14" height="14" aria-hidden="true"><line x1="7" x2="7" y1="0" y2="14" class="mark"/></svg>'
            f"{escaped(mark)}</li>"
        )
    return f'<ul class="legend">{items}</ul>' if items else ""


def _label(label: str, y: int) -> str:
    """Return a name; twice, for wide and for narrow plots, if it is too long for the latter."""
    label = visible(label)
    if len(label) <= _NARROW:
        return f'<text y="{y}" class="label">{escaped(label)}</text>'
    texts = ((_WIDE, "wide"), (_NARROW, "narrow"))
    return "".join(
        f'<text y="{y}" class="label {kind}">{escape(clipped(label, letters))}</text>' for letters, kind in texts
    )


def horizontal_bars(
    figure: Figure,
    bars: Sequence[Bar],
    show: Callable[[float], str],
    *,
    legend: Sequence[str] = (),
    mark: str = "",
    scale: Callable[[float], float] = nice,
) -> str:
    """Return a row for each bar: its name and value, and the bar below them."""
    marks = [bar.mark for bar in bars if bar.mark is not None]
    most = scale(max([*(value for bar in bars for value in bar.values), *marks]))
    body, y = [], 0
    for bar in bars:
        top, y = y, y + _LINE
        row = [
            f"<title>{escaped(clipped(bar.label, CELL_CHARACTERS))}: {escaped(bar.text)}</title>",
            _label(bar.label, y - 5),
        ]
        row.append(f'<text x="100%" y="{y - 5}" class="value">{escaped(bar.text)}</text>')
        for series, value in [(n, value) for n, value in enumerate(bar.values) if value > 0] or [(0, 0.0)]:
            width = _percent(max(value, most * 0.006) if value else 0.0, most)
            row.append(f'<rect y="{y}" width="100%" height="{_BAR}" rx="2" class="track"/>')
            row.append(f'<rect y="{y}" width="{width}" height="{_BAR}" rx="2" class="s{series}"/>')
            y += _BAR + 2
        if bar.mark is not None:
            x = _percent(bar.mark, most)
            row.append(f'<line x1="{x}" x2="{x}" y1="{top + _LINE - 2}" y2="{y}" class="mark"/>')
        body.append(f"<g>{''.join(row)}</g>")
        y += _GAP
    are_whole = all(float(value).is_integer() for bar in bars for value in bar.values)
    middle = [] if are_whole and not (most / 2).is_integer() else [(most / 2, "middle")]
    ticks = ((0.0, "start"), *middle, (most, "end"))
    body += [f'<line x1="0" x2="100%" y1="{y}" y2="{y}" class="grid"/>']
    body += [
        f'<text x="{_percent(tick, most)}" y="{y + 16}" class="tick {side}">{escaped(show(tick))}</text>'
        for tick, side in ticks
    ]
    return _figure(figure, y + 22, "".join(body), _legend(legend, mark))


def _time_axis(first: datetime, last: datetime, y: int, top: int = 0) -> str:
    """Return lines at round times, with labels where there is room (fewer in narrow plots); each day is named once."""
    span = last - first
    step = next((step for step in _STEPS if span / step <= 6), span / 5 or timedelta(minutes=1))
    tick = _EPOCH + math.ceil((first - _EPOCH) / step) * step
    ticks: list[datetime] = []
    while tick <= last and len(ticks) < 12:
        ticks.append(tick)
        tick += step
    days = step >= timedelta(days=1)
    parts = [f'<line x1="0" x2="100%" y1="{y}" y2="{y}" class="base"/>']
    wide, narrow = -1.0, -1.0  # the end of the last label, in wide and in narrow plots
    day = ""
    for time in ticks:
        share = (time - first) / span if span else 0.0
        x = _percent(share, 1.0)
        parts.append(f'<line x1="{x}" x2="{x}" y1="{top}" y2="{y + 4}" class="grid"/>')
        name = time.strftime("%Y-%m-%d") if days else time.strftime("%H:%MZ")
        if not days and time.strftime("%m-%d") != day:
            name = time.strftime("%m-%dT") + name
        side = "start" if share < 0.12 else "end" if share > 0.88 else "middle"
        before = {"start": 0.0, "middle": 0.5, "end": 1.0}[side]
        sizes = [len(name) * _LETTER / plot for plot in (_WIDE_PLOT, _NARROW_PLOT)]
        if share - before * sizes[0] < wide:
            continue
        day = time.strftime("%m-%d")
        wide = share + (1 - before) * sizes[0]
        kind = " wide" if share - before * sizes[1] < narrow else ""
        if not kind:
            narrow = share + (1 - before) * sizes[1]
        parts.append(f'<text x="{x}" y="{y + 17}" class="tick {side}{kind}">{name}</text>')
    return "".join(parts)


def stacked_bars(figure: Figure, counts: Iterable[Count], width: timedelta, first: datetime, last: datetime) -> str:
    """Return a column for each interval, with the series stacked, the most frequent at the bottom."""
    counts = list(counts)
    totals: dict[str, int] = {}
    columns: dict[datetime, dict[str, int]] = {}
    for start, series, number in counts:
        totals[series] = totals.get(series, 0) + number
        columns.setdefault(start, {})[series] = columns.get(start, {}).get(series, 0) + number
    order = sorted(totals, key=lambda name: (-totals[name], name))
    named = order if len(order) <= SERIES else order[: SERIES - 1]
    rest = order[len(named) :]
    first = min(first, *columns).astimezone(UTC)
    last = max(last, max(columns) + width).astimezone(UTC)
    span = last - first
    most = nice(max(sum(column.values()) for column in columns.values()))
    height, top = _COLUMN_HEIGHT, 16
    body = [_time_axis(first, last, height, top)]
    for start, column in sorted(columns.items()):
        body.append(_column(start, width, first, span, column, (named, rest), most, (height, top)))
    for share in (0.5, 1.0):
        y, tick = height - (height - top) * share, most * share
        body.append(f'<line x1="0" x2="100%" y1="{y:.0f}" y2="{y:.0f}" class="grid"/>')
        if tick.is_integer():
            body.append(f'<text x="0" y="{y - 4:.0f}" class="tick halo">{tick:,.0f}</text>')
    legend = [f"{name} ({totals[name]:,})" for name in named]
    if rest:
        legend.append(f"{len(rest)} others ({sum(totals[name] for name in rest):,})")
    return _figure(figure, height + 24, "".join(body), _legend(legend))


def _column(
    start: datetime,
    width: timedelta,
    first: datetime,
    span: timedelta,
    column: dict[str, int],
    series: tuple[list[str], list[str]],
    most: float,
    frame: tuple[int, int],
) -> str:
    named, rest = series
    height, top = frame
    pieces = [(n, name, column.get(name, 0)) for n, name in enumerate(named)]
    if rest:
        pieces.append((SERIES - 1, "others", sum(column.get(name, 0) for name in rest)))
    said = ", ".join(f"{name} {number:,}" for _, name, number in pieces if number)
    x, wide = _percent((start - first) / span, 1.0), _percent(width / span * 0.86, 1.0)
    parts, y = [f"<title>{escaped(iso(start))}: {escaped(said)}</title>"], float(height)
    for n, _, number in pieces:
        if number:
            tall = max((height - top) * number / most, 1.0)
            y -= tall
            parts.append(f'<rect x="{x}" y="{y:.1f}" width="{wide}" height="{tall:.1f}" class="s{n} bar"/>')
    return f"<g>{''.join(parts)}</g>"


def timeline(
    figure: Figure, lanes: Sequence[Lane], first: datetime, last: datetime, *, legend: Sequence[str] = ()
) -> str:
    """Return a lane for each name, with its spans; a span that has not ended is open to the right."""
    first, last = first.astimezone(UTC), last.astimezone(UTC)
    span, body, y, tall = last - first or timedelta(seconds=1), [], 0, 14
    height = len(lanes) * (_LINE + tall + _GAP)
    body.append(_time_axis(first, last, height))
    for lane in lanes:
        y += _LINE
        body.append(_label(lane.label, y - 5))
        body.append(f'<text x="100%" y="{y - 5}" class="value">{escaped(lane.text)}</text>')
        body.append(f'<rect y="{y}" width="100%" height="{tall}" rx="2" class="track"/>')
        for began, until, series, hint, is_over, text in lane.spans:
            start, end = max(began - first, timedelta()) / span, min(until - first, span) / span
            x, wide = _percent(start, 1.0), _percent(max(end - start, 0.004), 1.0)
            body.append(f"<g><title>{escaped(hint)}</title>")
            body.append(f'<rect x="{x}" y="{y}" width="{wide}" height="{tall}" class="s{series} bar"/>')
            if not is_over:
                body.append(f'<line x1="100%" x2="100%" y1="{y - 3}" y2="{y + tall + 3}" class="open"/>')
            if text and end - start > 0.1:
                middle = _percent((start + end) / 2, 1.0)
                body.append(f'<text x="{middle}" y="{y + 11}" class="inside">{escaped(text)}</text>')
            body.append("</g>")
        y += tall + _GAP
    return _figure(figure, height + 24, "".join(body), _legend(legend))


def courses(figure: Figure, lanes: Sequence[Course], width: timedelta, *, legend: Sequence[str] = ()) -> str:
    """Return a lane for each, with a column for each interval with an observation; all lanes have the same scale."""
    starts = [point.start for lane in lanes for point in lane.points]
    first, last = min(starts).astimezone(UTC), (max(starts) + width).astimezone(UTC)
    most = max([*(point.value for lane in lanes for point in lane.points), 1.0])
    tall, y = 30, 0
    height = len(lanes) * (_LINE + tall + _GAP)
    body = [_time_axis(first, last, height)]
    for lane in lanes:
        y += _LINE
        body.append(_label(lane.label, y - 5))
        body.append(f'<text x="100%" y="{y - 5}" class="value">{escaped(lane.text)}</text>')
        body.append(f'<rect y="{y}" width="100%" height="{tall}" rx="2" class="track"/>')
        for start, value, hint in lane.points:
            x, wide = _percent((start - first) / (last - first), 1.0), _percent(width / (last - first), 1.0)
            # 0 is visible too: it shows that there was an observation
            high = max(tall * value / most, 1.5)
            place = f'x="{x}" y="{y + tall - high:.1f}" width="{wide}" height="{high:.1f}"'
            body.append(f'<rect {place} class="s{lane.series}"><title>{escaped(hint)}</title></rect>')
        y += tall + _GAP
    return _figure(figure, height + 24, "".join(body), _legend(legend))
