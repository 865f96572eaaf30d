"""The lake on the versions of Spark that it promises, and its tables read by Delta's own reader where there is a jar.

Each version lives in a virtual environment of its own in the repository's cache, as do the jars; they are made on the first
run. The job is spark/lake_job.py.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tools import spark_connector
from tools.apache_kafka import ROOT, Missing, maven_jars

from barnabas.client import sync
from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
from barnabas.testing import Broker

pytestmark = pytest.mark.interop

JOB = Path(__file__).parent / "spark" / "lake_job.py"
DELTA = "4.4.0"
DELTA_FOR = "4.2"
"""The newest Spark that there is a Delta for."""


def python_with(version: str) -> Path:
    """The Python of a virtual environment with this pyspark and barnabas."""
    pinned = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("pyspark==")]
    packages = [f"pyspark=={version}", "--editable", f"{ROOT}[lake]"]
    try:
        return spark_connector.python_with(f"lake-pyspark-{version}", packages, pinned)
    except Missing as missing:
        pytest.skip(str(missing))


def delta_jars() -> str:
    """Delta, and of what it needs what Spark does not bring."""
    artifact = ("io.delta", f"delta-spark_{DELTA_FOR}_2.13", DELTA)
    try:
        folder = maven_jars(f"delta-{DELTA}-spark-{DELTA_FOR}", [artifact])
    except Missing as missing:
        pytest.skip(f"Delta cannot be had: {missing}")
    return ",".join(
        str(each) for each in sorted(folder.glob("*.jar")) if each.name.startswith(("delta-", "unitycatalog"))
    )


def history(directory: Path) -> Path:
    """Topics, settings and records, written by barnabas; a copy of the log dir as it was at two earlier moments."""
    for number, topics in enumerate(({"orders": 3}, {"payments": 1}, {})):
        broker = Broker(topics, data_dir=directory)
        with broker, sync.Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for value in range(10 * number, 10 * number + 10):
                producer.send("orders", f"value {value}".encode(), partition=value % 3)
            producer.flush()
            with sync.Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
                setting = AlterConfigOp("retention.ms", AlterConfigOpType.SET, str(1000 + number))
                assert not any(admin.incremental_alter_configs({ConfigResource.topic("orders"): [setting]}).values())
        if number < 2:
            shutil.copytree(directory, directory.with_name(f"{directory.name}-{number}"))
    return directory


@pytest.mark.parametrize("version", ["4.2.1", "4.3.0"])
def test_the_lake_works_on_each_version_of_spark(version: str, tmp_path: Path) -> None:
    with_delta = version.startswith(DELTA_FOR)
    python = python_with(version)
    command = [
        str(python),
        str(JOB),
        str(history(tmp_path / "node")),
        str(tmp_path),
        delta_jars() if with_delta else "",
    ]
    environment = {**os.environ, "PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=1100, check=False, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    expected = {
        "version": version,
        "push-down by default": "false",
        "records false": 30,
        "of one partition false": 9,
        "records true": 30,
        "of one partition true": 9,
        "topics": 2,
        "streamed": [30, 30],
        "lake topics": ["orders", "payments"],
    }
    if with_delta:
        expected |= {"delta": [], "tables": 25, "checkpoints": 1, "newest first": True, "states its commit": True}
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("with several versions", 99) > 10
    assert found == expected
