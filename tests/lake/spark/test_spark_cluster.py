"""The lake on a Spark cluster: the same command with another master makes the same tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.client import sync
from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.testing import Broker
from tests.lake.few_rows import FEW_ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def history(directory: Path) -> Path:
    """A log dir with topics, one of them deleted, and a setting."""
    broker = Broker({"orders": 3, "gone": 1}, data_dir=directory)
    with broker, sync.Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        orders = ConfigResource.topic("orders")
        ops = [AlterConfigOp("max.message.bytes", AlterConfigOpType.SET, "2000000")]
        assert admin.incremental_alter_configs({orders: ops}) == {orders: None}
        assert admin.delete_topics(["gone"]) == {"gone": None}
    return directory


def tables(spark: SparkSession, directory: Path) -> dict[str, list[Any]]:
    from barnabas.lake.keeping.store import Lake
    from barnabas.lake.keeping.table_reading import read_table
    from barnabas.lake.tables.all import TABLES

    lake = Lake(directory)
    manifest = lake.manifest()
    return {
        name: sorted(map(str, read_table(spark, lake.data, manifest, table).collect()))
        for name, table in TABLES.items()
        if table.path in manifest.tables
    }


@pytest.mark.spark
def test_a_cluster_of_two_workers_makes_the_tables_that_one_process_makes(spark: SparkSession, tmp_path: Path) -> None:
    from tools.spark_cluster import SPARK_HOME, environment, spark_cluster

    from barnabas.lake.keeping.feeds import find_feeds
    from barnabas.lake.keeping.runner import SMALL_BATCH, Runner
    from barnabas.lake.keeping.store import Writer
    from barnabas.lake.tables.all import STREAMS

    source = history(tmp_path / "node")
    with Writer(tmp_path / "local") as writer:
        writer.open()
        Runner(spark, writer).run(find_feeds([source], STREAMS, {}))
    with spark_cluster(tmp_path) as cluster:
        command = [str(SPARK_HOME / "bin" / "spark-submit")]
        for name, value in {**cluster.settings, **FEW_ROWS, SMALL_BATCH: "0"}.items():
            command += ["--conf", f"{name}={value}"]
        command += [str(Path(sys.modules["barnabas"].__path__[0]) / "__main__.py")]
        command += ["lake", "run", str(source), "--lake", str(tmp_path / "lake")]
        driver = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(),
            timeout=1000,
            check=False,
        )
        said = driver.stdout
        log = tmp_path / "lake" / "log" / "spark.log"
        assert driver.returncode == 0, said + (log.read_text()[-2000:] if log.exists() else "")
        assert said.count(" INFO ") < 5 and len(said.splitlines()) < 40, "Spark logs 1,800 lines if it is let"
        assert [len(each) for each in cluster.executors()] == [1, 1], said
        worked = [(each / "stderr").read_text() for (each,) in cluster.executors()]
        assert all("Running task" in text for text in worked)
    local = tables(spark, tmp_path / "local")
    made = tables(spark, tmp_path / "lake")  # and answers, which `lake run` keeps up to date
    assert {name: made[name] for name in local} == local
    assert any("'gone'" in row or "name=gone" in row for row in local["topics"]), local["topics"]
    assert {name for name, rows in local.items() if rows} >= {"metadata_records", "topics", "partitions", "configs"}
