"""Sessions as the lake likes them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.lake.keeping.store import Writer
from barnabas.lake.spark.session import FEW_ROWS, FOR_FEW_ROWS, for_rows
from tests.command_line import Process
from tests.lake.keeping.lake_writer import write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_for_few_rows_nothing_is_compiled_unless_the_caller_said_otherwise(spark: SparkSession) -> None:
    before = {name: str(spark.conf.get(name)) for name in FOR_FEW_ROWS}
    others = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
    for name, value in others.items():
        spark.conf.set(name, value)
    try:
        with for_rows(spark, FEW_ROWS - 1, given=["spark.sql.codegen.wholeStage"]):
            seen = {name: spark.conf.get(name) for name in others}
        with for_rows(spark, FEW_ROWS):
            assert {name: spark.conf.get(name) for name in others} == others
        assert seen == {**others, "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def children(pid: int) -> list[int]:
    """The processes of Java that this one has started, and that have not ended."""
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,comm="], capture_output=True, text=True, check=True).stdout
    rows = (line.split(None, 2) for line in listed.splitlines())
    return [int(row[0]) for row in rows if int(row[1]) == pid and row[2] == "java"]


@pytest.mark.spark
def test_ctrl_c_while_spark_starts_leaves_no_java_behind(tmp_path: Path) -> None:
    with Writer(tmp_path / "lake") as writer:
        write_batch(writer.open(), 0)
    query = ("lake", "sql", "show tables", "--lake", tmp_path / "lake")
    with Process(*query, merged=True) as asked:
        while not (java := children(asked.popen.pid)):
            assert asked.popen.poll() is None, asked.lines
            time.sleep(0.02)
        done = asked.stop(signal.SIGINT)
    assert (done.exit_code, "Traceback" in done.output) == (1, False), done.output
    with pytest.raises(ProcessLookupError):
        os.kill(java[0], 0)
