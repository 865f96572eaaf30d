"""A lake in an object store (moto's server of S3, with Hadoop's S3A) and in HDFS: runs, kills, answers, a catalog."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench.lake_change import History
from tools.apache_kafka import Missing
from tools.hadoop import Hdfs, s3a_jars

from tests.lake.commands import rows, run
from tests.lake.few_rows import FEW_ROWS
from tests.lake.keeping.folder_contract import check_folder
from tests.lake.s3_server import s3_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop

ROOT = Path(__file__).parents[2]
SMALL_BATCH = "spark.barnabas.smallBatchRecords"
QUERIES = {
    name: f"select * from {name} order by {', '.join(keys)}, valid_from_offset"
    for name, keys in {"topics": ("topic_id",), "partitions": ("topic_id", "partition")}.items()
}


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    from barnabas import lake

    with s3_server():
        try:
            jars = s3a_jars()
        except Missing as missing:
            pytest.exit(f"the interop tests cannot run: {missing}", returncode=1)
        spark = lake.session(**FEW_ROWS, **{"spark.master": "local[2]", "spark.jars": jars})
        yield spark
        spark.stop()


@pytest.fixture(scope="module")
def hdfs() -> Iterator[str]:
    with Hdfs() as cluster:
        yield cluster.address


@pytest.fixture(params=["s3a", "hdfs"])
def place(request: pytest.FixtureRequest, session: SparkSession) -> str:
    """An address where nothing is yet."""
    root = "s3a://bucket" if request.param == "s3a" else request.getfixturevalue("hdfs")
    return f"{root}/{request.node.name.partition('[')[0]}"


def test_a_folder_of_hdfs(hdfs: str) -> None:
    from barnabas.lake.keeping.folders import folder_at

    check_folder(folder_at(f"{hdfs}/some/folder"))


def test_a_lake_at_an_address_has_the_rows_of_one_on_a_disk(place: str, session: SparkSession, tmp_path: Path) -> None:
    log_dir = tmp_path / "log"
    history = History(log_dir, 60)
    for small_records in ("0", "20000", "20000", "0"):
        session.conf.set(SMALL_BATCH, small_records)
        for lake in (place, tmp_path / "lake"):
            done = run("run", log_dir, "--lake", lake)
            assert done.exit_code == 0, done.output
        history.change(7)
    for query in QUERIES.values():
        found = run("sql", query, "--lake", place, "-o", "json")
        assert found.exit_code == 0, found.stderr
        assert "starting Spark" not in found.stderr, "DuckDB reads the files at the address"
        assert found.json == rows(tmp_path / "lake", "sql", query)
    with_spark = rows(place, "sql", "select cast(count(*) as int) as n from partitions")
    assert with_spark == rows(tmp_path / "lake", "sql", "select cast(count(*) as int) as n from partitions")
    assert rows(place, "changes") == rows(tmp_path / "lake", "changes")
    told = run("run", log_dir, "--lake", place)
    assert " new records" in told.stderr
    assert [table["rows"] for table in rows(place, "tables") if table["table"] == "topics"]


def test_a_catalog_finds_the_tables_at_an_address(place: str, session: SparkSession, tmp_path: Path) -> None:
    from barnabas import lake

    History(tmp_path / "log", 5)
    assert run("run", tmp_path / "log", "--lake", place).exit_code == 0
    opened = lake.open(place, session)
    opened.register("at_an_address")
    try:
        found = session.table("at_an_address.topics")
        assert found.count() == opened["topics"].count() > 0
        assert sorted(map(str, found.collect())) == sorted(map(str, opened["topics"].collect()))
    finally:
        session.sql("DROP DATABASE at_an_address CASCADE")


@pytest.mark.parametrize("step", ["tables written", "lock checked", "manifest named"])
def test_a_run_that_is_killed_is_followed_by_one_that_reads_every_record_once(
    place: str, session: SparkSession, tmp_path: Path, step: str
) -> None:
    place = f"{place}/{step.replace(' ', '-')}"
    history = History(tmp_path / "log", 10)
    assert run("run", tmp_path / "log", "--lake", place).exit_code == 0
    history.change(3)
    command = [
        sys.executable,
        "-m",
        "tests.interop.killed_at_an_address",
        place,
        str(tmp_path / "log"),
        step,
        s3a_jars(),
    ]
    killed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert killed.returncode == -9, killed.stderr
    history.change(2)
    for lake in (place, tmp_path / "lake"):
        done = run("run", tmp_path / "log", "--lake", lake)
        assert done.exit_code == 0, done.stderr
    for query in QUERIES.values():
        assert rows(place, "sql", query) == rows(tmp_path / "lake", "sql", query)
    count = "select count(*) as n from metadata_records"
    assert rows(place, "sql", count) == rows(tmp_path / "lake", "sql", count)


def test_an_address_that_spark_cannot_reach_is_one_line(tmp_path: Path) -> None:
    """In a process of its own, whose Spark has no jar for S3."""
    History(tmp_path / "log", 2)
    with s3_server() as bucket:
        command = [sys.executable, "-m", "barnabas", "lake", "run", str(tmp_path / "log"), "--lake", f"{bucket}/lake"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert (
        "Spark has no jar for s3a://; give it one: --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:3."
        in done.stderr
    )
    assert "Traceback" not in done.stderr
