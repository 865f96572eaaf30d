"""Tables of a lake in a catalog of Spark, in its own session and in others that know nothing of the lake but its names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.lake.asking.opened import OpenLake
from barnabas.lake.keeping.store import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("topics", "access", "topic_inventory", "group_lag", "metadata_records", "users")

_OTHER_SESSION = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").enableHiveSupport().getOrCreate()
print("found", spark.table("barnabas.topics").where("valid_to_offset is null").count())
"""


def test_tables_in_a_catalog_have_the_rows_that_the_lake_has(spark: SparkSession, lake: Path) -> None:
    tables = OpenLake(spark, Lake(lake))
    names = tables.register("registered")
    assert set(TABLES) <= set(names)
    try:
        for name in TABLES:
            found, wanted = spark.table(f"registered.{name}"), tables[name]
            assert found.schema.simpleString() == wanted.schema.simpleString(), name
            assert sorted(map(str, found.collect())) == sorted(map(str, wanted.collect())), name
        with pytest.raises(Exception, match="read the name without _files_"):
            spark.table("registered._files_topics").collect()
    finally:
        spark.sql("DROP DATABASE registered CASCADE")


def test_another_session_finds_the_tables_by_name(lake: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    registered = run("-m", "barnabas", "lake", "register", "--lake", str(lake))
    assert registered.returncode == 0, registered.stderr
    assert "tables are in the database barnabas: spark.table('barnabas." in registered.stderr
    found = run("-c", _OTHER_SESSION)
    topics = run("-m", "barnabas", "lake", "sql", "select count(*) from topics where valid_to_offset is null",
                 "--lake", str(lake), "-o", "json")  # fmt: skip
    ((count,),) = (row.values() for row in json.loads(topics.stdout))
    assert found.stdout.split() == ["found", str(count)], found.stderr[-2000:]
