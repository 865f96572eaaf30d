"""A Spark session as the lake likes it, and clear words where Java is missing.

Its one rule: what is set here can be set by the caller, whose word goes first. Spark's noise goes to a file.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST_JAVA = 17
JAVA_PACKAGE = "openjdk-17-jre-headless"

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class JavaMissingError(RuntimeError):
    """Spark cannot start: there is no Java, or one that is too old."""


def check_java() -> None:
    """Raises `JavaMissingError`, with what to install, where Spark would fail with less."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    advice = (
        f"Spark needs Java {LEAST_JAVA} or newer; on Debian: apt-get install {JAVA_PACKAGE}, elsewhere set JAVA_HOME"
    )
    if java is None or not Path(java).exists():
        raise JavaMissingError(f"there is no Java{f' in JAVA_HOME ({home})' if home else ''}. {advice}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found[1]) < LEAST_JAVA:
        raise JavaMissingError(f"{java} is {said.splitlines()[0] if said else 'not Java'}. {advice}")


def start(settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session of this process; a local one on all cores unless `settings` or spark-submit name a master."""
    check_java()
    from pyspark.sql import SparkSession  # noqa: PLC0415

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("barnabas")
    if "spark.master" not in (settings or {}) and "SPARK_REMOTE" not in os.environ and "MASTER" not in os.environ:
        builder = builder.config("spark.master", os.environ.get("SPARK_MASTER", "local[*]"))
    for name, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
