"""The shipped pipeline, run twice by Spark's own `spark-pipelines`, has the tables that the lake's runner makes."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.client import sync
from barnabas.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDS = ("grpc", "grpc_status", "google.rpc", "zstandard")


def is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


MISSING = [module for module in NEEDS if not is_there(module)]


def consume_and_transact(broker: Broker) -> None:
    """Leave a group with a committed offset, and a transaction that ended."""
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    with sync.Producer({**settings, "transactional.id": "shop"}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"two apples").result()
        producer.commit_transaction()
    reading = {"group.id": "billing", "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    with sync.Consumer({**settings, **reading}) as consumer:
        consumer.subscribe(["orders"])
        while not consumer.poll(1000):
            pass
        consumer.commit()


def run_pipeline(project: Path) -> None:
    """What a user does: one command, with a catalog that outlives it."""
    import pyspark

    own = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(project / "conf")}
    done = subprocess.run(
        [str(Path(pyspark.__path__[0]) / "bin" / "spark-pipelines"), "run"],
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
        cwd=project,
        env={**os.environ, **own},
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-4000:]
    assert "Run is COMPLETED" in said


@pytest.mark.interop
@pytest.mark.skipif(
    bool(MISSING), reason=f"spark-pipelines needs {', '.join(MISSING)}: pip install 'pyspark[pipelines]'"
)
def test_the_pipeline_runs_twice_and_has_the_tables_of_the_lake(spark: SparkSession, tmp_path: Path) -> None:
    from barnabas.lake import pipeline
    from barnabas.lake.keeping.feeds import find_feeds
    from barnabas.lake.keeping.runner import Runner
    from barnabas.lake.keeping.store import Lake, Writer
    from barnabas.lake.keeping.table_reading import read_table
    from barnabas.lake.tables.all import STREAMS, TABLES

    project, source = tmp_path / "project", tmp_path / "node"
    shutil.copytree(Path(pipeline.__path__[0]), project, ignore=shutil.ignore_patterns("__pycache__", "__init__.py"))
    spec = project / "spark-pipeline.yml"
    text = spec.read_text().replace("/var/lib/barnabas-lake", str(project))
    spec.write_text(text.replace("/var/lib/kafka", str(source)))
    with Broker({"orders": 2}, data_dir=source) as broker:
        consume_and_transact(broker)
    run_pipeline(project)
    with Broker({"payments": 1}, data_dir=source):
        pass
    run_pipeline(project)

    with Writer(tmp_path / "lake") as writer:
        writer.open()
        Runner(spark, writer).run(find_feeds([source], STREAMS, {}))
    lake = Lake(tmp_path / "lake")
    tables = ("topics", "partitions", "brokers", "features", "metadata_records")
    for name in (*tables, "groups", "group_offsets", "transactions"):
        mine = read_table(spark, lake.data, lake.manifest(), TABLES[name])
        file = f"{name}_as_read" if name == "metadata_records" else name
        theirs = spark.read.parquet(str(project / "warehouse" / file)).select(mine.columns)
        assert sorted(map(str, theirs.collect())) == sorted(map(str, mine.collect())), name
        assert mine.count() > 0
