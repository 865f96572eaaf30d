"""The lake over the demo's shop shows what is planted in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.demo import shop
from barnabas.security.acl_text import entry_text
from tests.demo.demo_process import Demo
from tests.lake.commands import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


DOCS = Path(__file__).parents[2] / "docs"
FIGURE = re.compile(r"^  (!!|! ) (\S.*?)  ", re.MULTILINE)


RESTARTED = {("! ", "incidents #"), ("! ", "without a leader # min, # partitions")}
"""What the pages show and not this test: there, the demo was stopped for a while and started again."""


def figures(summary: str) -> set[tuple[str, str]]:
    """What a summary says first, without its numbers."""
    return {(sign, re.sub(r"[\d,.]*\d", "#", text)) for sign, text in FIGURE.findall(summary)}


def test_figures_of_a_summary_are_found() -> None:
    assert figures("cluster c\n  !! groups 2      Of 5.\n  !  down 4 min, 1,047 partitions  Over.\n  good: 3\n") == {
        ("!!", "groups #"),
        ("! ", "down # min, # partitions"),
    }


def test_what_is_planted_in_the_shop_is_in_the_tables(spark: SparkSession, tmp_path: Path) -> None:
    from barnabas import lake

    with Demo("--data", tmp_path / "data", "--no-lake") as demo:
        demo.until("done in")
        assert demo.interrupt() == 0
    result = run("run", tmp_path / "data", "--traffic", "--lake", tmp_path / "lake")
    assert result.exit_code == 0, result.stderr
    tables = lake.open(tmp_path / "lake", spark)

    values = tables["config_history"].where(f"resource_name = '{shop.ORDERS}' and name = 'retention.ms'")
    told = [(row.before, row.after) for row in values.orderBy("offset").collect()]
    week, days = str(shop.WEEK_MS), str(2 * shop.DAY_MS)
    assert told == [(None, week), (week, days), (days, week)]

    odd = {(row.finding, entry) for row in tables["acl_findings"].collect() for entry in row.entries}
    assert {
        ("shadowed", entry_text(shop.SHADOWED)),
        ("never-denies", entry_text(shop.NEVER_DENIES)),
        ("no-such-resource", entry_text(shop.OF_A_DELETED_TOPIC)),
    } <= odd

    trends: dict[str, set[str]] = {}
    for row in tables["group_lag"].collect():
        trends.setdefault(row.group_id, set()).add(row.trend)
    assert trends[shop.BILLING] == trends[shop.LEDGER] == {"none"}
    assert trends[shop.RECOMMENDATIONS] == {"stopped"}
    assert "growing" in trends[shop.DISPATCH]
    assert "falling" in trends[shop.SEARCH]

    result = run("report", "--lake", tmp_path / "lake", "--out", tmp_path / "report", "--no-files")
    assert result.exit_code == 0, result.stderr
    for page in ("lake.md", "tour.md"):
        shown = figures((DOCS / page).read_text())
        assert shown > RESTARTED and shown - RESTARTED <= figures(result.stdout), page
