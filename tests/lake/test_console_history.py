"""The console's history with a lake: every tab answers, as of moments, about one subject; drift, and the report."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.console.history import TABLES
from barnabas.testing import Broker
from tests.console.running_console import NAME, RunningConsole, entry
from tests.lake.commands import SECRET

HISTORY = f"/c/{NAME}/history"
POLICY = "content-security-policy"
AT_WORK = "data-again"
"""On a page that shows what Spark does, and not yet its answer."""


def answered(console: RunningConsole, path: str) -> str:
    while AT_WORK in (page := console.get(f"{HISTORY}{path}")).text:
        time.sleep(0.1)
    assert page.status == 200, page.text
    assert SECRET not in page.text
    return page.text


def test_every_table_answers_and_states_as_of_a_moment(broker: Broker, lake: Path) -> None:
    with RunningConsole(entry(broker), lake=lake) as console:
        console.enter()
        for tab, wanted in TABLES.items():
            page = answered(console, f"?tab={tab}")
            assert "<caption>" in page, page
            if wanted.has_moments:
                assert "<caption>0 rows</caption>" in answered(console, f"?tab={tab}&as_of=2001-01-01")
        assert ">orders<" in answered(console, "?tab=topics")
        assert "<caption>3 rows</caption>" in answered(console, "?tab=partitions&subject=orders")
        assert "<caption>0 rows</caption>" in answered(console, "?tab=partitions&subject=another")
        assert "topic orders" in answered(console, "?tab=changes")
        assert console.get(f"{HISTORY}?tab=topics&as_of=tomorrow-ish").status == 400
        assert console.get(f"{HISTORY}?tab=nothing").status == 404


def test_drift_from_files_at_a_moment(broker: Broker, lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("topics:\n  orders: {partitions: 3}\n  missing: {partitions: 2}\n")
    with RunningConsole(replace(entry(broker), declared=(file,)), lake=lake) as console:
        page = answered(console.enter(), "?tab=drift")
        assert "missing" in page
        assert "create" in page
        assert ">orders<" not in page
        before = console.get(f"{HISTORY}?tab=drift&as_of=2001-01-01")
        assert "no data of this cluster from before" in before.text
    with RunningConsole(entry(broker), lake=lake) as console:
        assert "files that declare this cluster" in answered(console.enter(), "?tab=drift")


def test_the_report_is_given_out_in_an_origin_of_its_own(broker: Broker, lake: Path, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    with RunningConsole(entry(broker), lake=lake, report=folder) as console:
        assert console.get(f"{HISTORY}/report/").status == 401
        console.enter()
        assert "not written yet" in answered(console, "?tab=report")
        assert console.get(f"{HISTORY}/report/").status == 404
        (folder / "rows").mkdir(parents=True)
        (folder / "index.html").write_text("<p>the report")
        (folder / "rows" / "a.csv").write_text("a,b")
        (tmp_path / "outside").write_text("secret")
        (folder / "link").symlink_to(tmp_path / "outside")
        assert "Open the report" in answered(console, "?tab=report")
        page = console.get(f"{HISTORY}/report/")
        assert (page.status, page.text) == (200, "<p>the report")
        assert page.headers[POLICY].startswith("sandbox allow-scripts allow-downloads; default-src 'none';")
        assert "allow-same-origin" not in page.headers[POLICY]
        assert console.get(f"{HISTORY}/report/rows/a.csv").text == "a,b"
        for outside in ("../outside", "%2e%2e/outside", "link", "rows", "nothing"):
            answer = console.get(f"{HISTORY}/report/{outside}")
            assert answer.status == 404
            assert "secret" not in answer.text
    with RunningConsole(entry(broker), lake=lake) as console:
        assert "--report" in answered(console.enter(), "?tab=report")
        assert console.get(f"{HISTORY}/report/").status == 404


@pytest.mark.parametrize("path", ["?tab=drift", "?tab=report", "?tab=topics", "/report/"])
def test_without_a_lake_there_is_no_such_page(broker: Broker, path: str) -> None:
    with RunningConsole(entry(broker)) as console:
        assert console.enter().get(f"{HISTORY}{path}").status == 404


def test_while_spark_is_at_work_the_page_says_so_and_for_how_long(broker: Broker, lake: Path) -> None:
    with RunningConsole(entry(broker), lake=lake, patience_s=0.0) as console:
        console.enter()
        seen = ""
        while "<caption>" not in (page := console.get(f"{HISTORY}?tab=availability").text):
            assert AT_WORK in page, page
            seen += page
            time.sleep(0.02)
    assert re.search(
        r"Spark is (starting|reading the lake), because .* is not stored in the lake. This has taken \d+ s", seen
    )
    assert "The cluster has not answered" not in seen


def test_a_lake_that_is_not_there_or_has_another_cluster_says_what_to_do(
    broker: Broker, lake: Path, tmp_path: Path
) -> None:
    for directory in (tmp_path / "nothing", tmp_path):
        with RunningConsole(entry(broker), lake=directory) as console:
            page = console.enter().get(f"{HISTORY}?tab=topics")
            assert page.status == 404
            assert "a lake is written by: barnabas lake run" in page.text
    with Broker() as another, RunningConsole(entry(another), lake=lake) as console:
        page = console.enter().get(f"{HISTORY}?tab=topics")
        assert "the lake has no data of this cluster; a lake is written by: barnabas lake run" in page.text
