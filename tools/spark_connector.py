"""Spark's own Kafka connector with the matching pyspark, for the interop tests and the benchmark.

The one rule is that of apache_kafka: nothing is installed. pyspark has a virtual environment in the repository's cache,
and the connector's jars are next to it. Both are fetched on first use; if that fails, `Missing` is raised.
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
    """Return the Python of a virtual environment with the connector's pyspark."""
    return python_with(f"pyspark-{VERSION}", [f"pyspark=={VERSION}"])


def python_with(name: str, packages: Sequence[str], constraints: Sequence[str] = ()) -> Path:
    """Return the Python of a virtual environment in the cache, created with these packages on first use."""
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
        raise Missing(f"{name} cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
    return python


def connector_jars() -> str:
    """Return the connector and its dependencies that Spark does not include, in the form of `spark.jars`."""
    folder = maven_jars(f"spark-connector-{VERSION}", [CONNECTOR])
    names = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
    wanted = [each for each in sorted(folder.glob("*.jar")) if each.name.startswith(names)]
    assert len(wanted) == len(names), wanted
    return ",".join(map(str, wanted))
