"""Spark's own Kafka connector, batch and streaming, reading from and writing to barnabas.

tools/spark_connector.py has both from the repository's cache. The job is spark/job.py.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tools.apache_kafka import Barnabas, Missing
from tools.spark_connector import connector_jars, python_with_spark

from tests.crash.clients import create_topic
from tests.interop.conftest import jars

pytestmark = pytest.mark.interop

JOB = Path(__file__).parent / "spark" / "job.py"


def in_transactions(bootstrap: str) -> None:
    """20 records that are committed, and 20 that are aborted."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "before-spark"})
    producer.init_transactions()
    for word in ("committed", "aborted"):
        producer.begin_transaction()
        for number in range(20):
            producer.produce("in", f"{word} {number}", word, number % 3)
        producer.flush()
        if word == "committed":
            producer.commit_transaction()
        else:
            producer.abort_transaction()


def test_spark_reads_and_writes_batches_and_streams(tmp_path: Path) -> None:
    jars("4.3.1")  # says what is missing of Java
    try:
        python, libraries = python_with_spark(), connector_jars()
    except Missing as missing:
        pytest.skip(f"Spark's connector cannot be had: {missing}")
    with Barnabas(directory=tmp_path / "node") as node:
        for topic in ("in", "out"):
            create_topic(node.bootstrap, topic, 3)
        in_transactions(node.bootstrap)
        command = [str(python), str(JOB), node.bootstrap, str(tmp_path / "spark"), libraries]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=580, check=False, cwd=tmp_path, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        assert node.stop() == 0
        assert "Traceback" not in node.log.read_text()
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "committed": 20,
        "uncommitted": 40,
        "rows": 1000,
        "different": 1000,
        "partitions": [0, 1, 2],
        "one": ["value 7", "origin", "spark", 0],
        "bounded": 15,
        "of the future": 0,
        "copied": 1020,
        "copied more": 1520,
        "copied once": 1520,
        "live": 300,
    }
