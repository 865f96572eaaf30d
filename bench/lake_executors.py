"""What a Spark cluster of one and of two executors takes for the same metadata log, from its records to all silver tables.

A standalone cluster on this machine: a master, and workers of one core with an executor each, all of them processes. For each
size, a cluster and a session of their own, which have started before; nothing is in the lake. BENCH_LAKE_EXECUTOR_RECORDS sets
the length of the log.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tools.spark_cluster import environment, spark_cluster

from barnabas.lake.spark.session import SETTINGS
from bench import metadata_history
from bench.spark_session import Session
from bench.table import Row

SECTION = "lake-executors"
RECORDS = int(os.environ.get("BENCH_LAKE_EXECUTOR_RECORDS", "5_000_000"))
EXECUTORS = (1, 2)
_SETTINGS = {
    **SETTINGS,
    "spark.driver.memory": "2g",
    "spark.executor.memory": "2g",
    "spark.executor.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.log.level": "ERROR",
}


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="bench-lake-") as name:
        folder = Path(name)
        metadata_history.write(folder / "log", RECORDS)
        rates = {executors: _grow(folder / str(executors), folder / "log", executors) for executors in EXECUTORS}
    return [_row(executors, rate, rates[EXECUTORS[0]]) for executors, rate in rates.items()]


def _row(executors: int, rate: float, of_one: float) -> Row:
    what = f"a metadata log of {RECORDS:,} records to silver, executors of one core each: {executors}"
    if executors == EXECUTORS[0]:
        return Row(SECTION, what, rate, "-", None, "records/s", None, None, None, None)
    return Row(SECTION, what, rate, "barnabas on 1 executor", of_one, "records/s", rate / of_one, None, None, None)


def _grow(folder: Path, log_dir: Path, executors: int) -> float:
    """Return the records a second."""
    folder.mkdir()
    with spark_cluster(folder, executors, memory="3g") as cluster:
        settings = {**cluster.settings, **_SETTINGS}
        with Session(Path(sys.executable), settings, folder / "driver.log", environment()) as session:
            answer = session.ask(lake=str(folder / "lake"), log_dir=str(log_dir))
        ran = [len(each) for each in cluster.executors()]
    print(f"{executors} executors: {answer}", file=sys.stderr, flush=True)
    if ran != [1] * executors:
        raise RuntimeError(f"workers have run {ran} executors")
    return float(answer["rows"] / answer["seconds"])
