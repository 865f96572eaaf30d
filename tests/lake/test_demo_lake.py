"""The lake over the demo's shop shows what is planted in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.demo import shop
from barnabas.security.acl_text import entry_text
from tests.demo.demo_process import Demo
from tests.lake.commands import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
