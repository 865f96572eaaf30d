"""What a section returns, and how it is shown and kept."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One answer: `ratio` says how many times better barnabas is, so more is better whatever was measured.

    It is the median of the rounds' own ratios, because what is measured in one round shares the machine's mood; half of
    the rounds lie between `low` and `high`. Where the target is between these two, the answer is open: a `?` is shown.
    """

    section: str
    question: str
    ours: float | None
    peer: str
    theirs: float | None
    unit: str
    ratio: float | None
    low: float | None
    high: float | None
    target: float | None  # the least ratio that will do; None where nothing is asked

    @property
    def ok(self) -> bool | None:
        return None if self.ratio is None or self.target is None else self.ratio >= self.target

    @property
    def is_open(self) -> bool:
        if self.low is None or self.high is None or self.target is None:
            return False
        return self.low < self.target < self.high


def from_rounds(
    section: str,
    question: str,
    ours: Sequence[float],
    peer: str,
    theirs: Sequence[float],
    unit: str,
    target: float | None,
    more_is_better: bool = False,
) -> Row:
    """A row from what each round saw on both sides."""
    pairs = zip(ours, theirs, strict=True)
    ratios = [our / their if more_is_better else their / our for our, their in pairs]
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    values = (statistics.median(ours), peer, statistics.median(theirs))
    return Row(section, question, *values, unit, statistics.median(ratios), low, high, target)


def not_possible(section: str, question: str, peer: str) -> Row:
    return Row(section, question, None, peer, None, "", None, None, None, None)


def render(rows: Sequence[Row]) -> str:
    """A plain table: names to the left, numbers to the right."""
    head = (
        "section",
        "question",
        "barnabas",
        "peer",
        "its value",
        "unit",
        "times better",
        "half of rounds",
        "target",
        "ok",
    )
    cells = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    numbers = {2, 4, 6, 7, 8}
    lines = [
        "  ".join(
            text.rjust(width) if column in numbers else text.ljust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _cells(row: Row) -> tuple[str, ...]:
    verdict = {True: "yes", False: "NO", None: "-"}[row.ok] + ("?" if row.is_open else "")
    target = "-" if row.target is None else f">= {row.target:g}"
    ratio = "n/a" if row.ratio is None else f"{row.ratio:.2f}"
    half = "-" if row.low is None or row.high is None else f"{row.low:.2f}..{row.high:.2f}"
    values = (_number(row.ours), row.peer, _number(row.theirs), row.unit or "-")
    return (row.section, row.question, *values, ratio, half, target, verdict)


def _number(value: float | None) -> str:
    if value is None:
        return "n/a"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def write_json(path: Path, rows: Sequence[Row], notes: Sequence[str]) -> None:
    """The rows as data, with what is needed to judge them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()}
    content = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "machine": machine,
        "notes": list(notes),
        "rows": [{**asdict(row), "ok": row.ok, "open": row.is_open} for row in rows],
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
