"""Spark finds the sources by their packages, in a session that nobody has told of them; and the packages weigh nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from barnabas.lake.sources import SOURCES

PACKAGES = [f"pyspark_{name}" for name in SOURCES]
HEAVY = [
    "numba",
    "numpy",
    "pyarrow",
    "pandas",
    "barnabas.client",
    "barnabas.wire",
    "barnabas.storage",
    "barnabas.metadata",
]

FIND = """
import json, sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
directory = sys.argv[1]
found = {}
for name in json.loads(sys.argv[2]):
    reader = spark.read.format(name)
    if name == "kafka_cluster":
        frame = reader.option("bootstrap.servers", "localhost:1").option("table", "topics").load()
    else:
        frame = reader.load(directory)
    found[name] = frame.columns
print(json.dumps(found))
spark.stop()
"""


def run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()[-1]


@pytest.mark.spark
def test_a_session_that_was_told_nothing_finds_all_sources(tmp_path_factory: pytest.TempPathFactory) -> None:
    found = json.loads(run(FIND, str(tmp_path_factory.mktemp("empty")), json.dumps(list(SOURCES))))
    assert found.keys() == SOURCES.keys()
    assert all("cluster_id" in columns for columns in found.values())


def test_importing_the_packages_loads_nothing_heavy() -> None:
    code = f"import json, sys; import {', '.join(PACKAGES)}; print(json.dumps(sorted(sys.modules)))"
    loaded = set(json.loads(run(code)))
    without = set(json.loads(run("import json, sys, pyspark.sql.datasource; print(json.dumps(sorted(sys.modules)))")))
    assert {name for name in HEAVY if name in loaded - without} == set()
