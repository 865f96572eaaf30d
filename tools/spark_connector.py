"""Spark's own Kafka connector, with the pyspark that it is of, for the interop tests and the benchmark.

The one rule is that of apache_kafka: nothing is installed. pyspark has a virtual environment of its own in the repository's
cache, the connector's jars lie beside it; both are fetched on first use, and what cannot be had is `Missing`.
"""

from __future__ import annotations

import shutil
import subprocess
import venv
from collections.abc import Sequence
from pathlib import Path

from tools.apache_kafka import ROOT, Missing, maven_jars

VERSION = "4.0.0"
CONNECTOR = ("org.apache.spark", "spark-sql-kafka-0-10_2.13", VERSION)


def python_with_spark() -> Path:
    """The Python of a virtual environment with the pyspark of the connector."""
    return python_with(f"pyspark-{VERSION}", [f"pyspark=={VERSION}"])


def python_with(name: str, packages: Sequence[str], constraints: Sequence[str] = ()) -> Path:
    """The Python of a virtual environment in the cache, made with these packages when it is not there yet."""
    folder = ROOT / ".cache" / name
    python = folder / "bin" / "python"
    if python.exists():
        return python
    folder.parent.mkdir(exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    pinned = folder / "constraints.txt"
    pinned.write_text("\n".join(constraints))
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--constraint", str(pinned), *packages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        shutil.rmtree(folder, ignore_errors=True)
        raise Missing(f"{name} cannot be had: {done.stderr.strip().splitlines()[-1:]}")
    return python


def connector_jars() -> str:
    """The connector, and of what it needs what Spark does not bring, as Spark's setting `spark.jars` takes it."""
    folder = maven_jars(f"spark-connector-{VERSION}", [CONNECTOR])
    names = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
    wanted = [each for each in sorted(folder.glob("*.jar")) if each.name.startswith(names)]
    assert len(wanted) == len(names), wanted
    return ",".join(map(str, wanted))
