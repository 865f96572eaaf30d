"""A lake of a large cluster: 10,000 topics, 100,000 partitions, a million changes; then every table of gold, and the report.

One session of Spark on two cores, with the memory that it takes by itself, does all of it: what each stage takes, and the most
memory of the JVM, the driver's Python and its workers together. The page has to stay under 5 MB whatever the cluster.
BENCH_LAKE_SCALE_RECORDS sets the length of the history, its topics and partitions among them.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from barnabas.lake.spark.session import SETTINGS
from barnabas.lake.tables.all import TABLES
from bench import metadata_history
from bench.large_history import LargeCluster
from bench.spark_session import PeakMemory, Session
from bench.table import Row

SECTION = "lake-scale"
RECORDS = int(os.environ.get("BENCH_LAKE_SCALE_RECORDS", "1_200_000"))
CORES = 2
PAGE_BYTES = 5_000_000
_SESSION = {
    **SETTINGS,
    "spark.master": f"local[{CORES}]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
}


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="bench-lake-") as name:
        folder = Path(name)
        metadata_history.write(folder / "log", RECORDS, LargeCluster)
        return _measured(folder)


def _measured(folder: Path) -> list[Row]:
    lake, out = str(folder / "lake"), folder / "report"
    with Session(Path(sys.executable), _SESSION, folder / "spark.log") as session:
        grown, run_mb = _asked(session, lake=lake, log_dir=str(folder / "log"))
        report, report_mb = _asked(session, lake=lake, out=str(out))
        slowest, gold_mb, gold_s = ("", 0.0), 0.0, 0.0
        for table in (table for table in TABLES.values() if table.layer == "gold"):
            answer, peak = _asked(session, lake=lake, table=table.name)
            slowest = max(slowest, (table.name, answer["seconds"]), key=lambda each: each[1])
            gold_mb, gold_s = max(gold_mb, peak), gold_s + answer["seconds"]
    page, files = (out / "index.html").stat().st_size, sum(each.stat().st_size for each in (out / "rows").iterdir())
    (there,), rows = report["inventory"], report["rows"]
    of = f"{there['topics']:,} topics, {there['partitions']:,} partitions, {rows['changes']:,} changes"
    tables = sum(table.layer == "gold" for table in TABLES.values())
    return [
        _stated(f"{of}: lake run, {grown['rows']:,} records, {CORES} cores", grown["seconds"], "s"),
        _stated(f"{of}: lake run, most memory, Spark and workers", run_mb, "MB"),
        _stated(f"{of}: all {tables} tables of gold, each made anew", gold_s, "s"),
        _stated(f"{of}: the slowest of them, {slowest[0]}", slowest[1], "s"),
        _stated(f"{of}: tables of gold, most memory", gold_mb, "MB"),
        _stated(f"{of}: report, all of it", report["seconds"], "s"),
        _stated(f"{of}: report, tables of gold, each once", report["steps"]["making"], "s"),
        _stated(f"{of}: report, what the page asks for", report["steps"]["asking"], "s"),
        _stated(f"{of}: report, {sum(rows.values()):,} rows in files beside it", report["steps"]["files"], "s"),
        _stated(f"{of}: report, most memory", report_mb, "MB"),
        _stated(f"{of}: report, the files", files / 1e6, "MB"),
        Row(SECTION, f"{of}: report, the page", page / 1e6, "at most", PAGE_BYTES / 1e6, "MB", PAGE_BYTES / page,
            None, None, 1.0),
    ]  # fmt: skip


def _asked(session: Session, **question: Any) -> tuple[dict[str, Any], float]:
    """The answer, and the most memory meanwhile, in MB."""
    with PeakMemory(session.pid) as peak:
        answer = session.ask(**question)
    print(f"{question} {answer}, {peak.bytes / 1e6:,.0f} MB", file=sys.stderr, flush=True)
    return answer, peak.bytes / 1e6


def _stated(question: str, ours: float, unit: str) -> Row:
    return Row(SECTION, question, ours, "-", None, unit, None, None, None, None)
