"""Spark sessions with settings that suit the lake, and a clear error if Java is missing.

Its one rule: the caller's settings override those set here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIN_JAVA = 17
JAVA_PACKAGE = "openjdk-17-jre-headless"

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
    # Rows pass between Spark and Python a tenth faster than through the loopback address, and are collected in parallel.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

FEW_ROWS = 200_000
FOR_FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""For few rows, where compiling a query takes longer than running it."""
FOR_MANY_ROWS = {
    "spark.sql.shuffle.partitions": "32",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "8m",
    "spark.sql.codegen.hugeMethodLimit": "8000",
}
"""For many rows: partitions that are sorted in memory, and methods small enough for Java to compile."""


class JavaMissingError(RuntimeError):
    """Spark cannot start: Java is missing or too old."""


def check_java() -> None:
    """Raise JavaMissingError, which says what to install, if there is no suitable Java."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    advice = f"Spark needs Java {MIN_JAVA} or newer; on Debian: apt-get install {JAVA_PACKAGE}, elsewhere set JAVA_HOME"
    if java is None or not Path(java).exists():
        raise JavaMissingError(f"there is no Java{f' in JAVA_HOME ({home})' if home else ''}. {advice}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found[1]) < MIN_JAVA:
        raise JavaMissingError(f"{java} is {said.splitlines()[0] if said else 'not Java'}. {advice}")


@contextmanager
def for_rows(spark: SparkSession, rows: int, given: Collection[str] = ()) -> Iterator[None]:
    """Set the session for this number of rows within a `with` block, except for the settings in `given`."""
    settings = FOR_FEW_ROWS if rows < FEW_ROWS else FOR_MANY_ROWS
    wanted = {name: value for name, value in settings.items() if name not in given}
    before = {name: str(spark.conf.get(name)) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def start(settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session: local, on all cores, unless `settings` or spark-submit name a master."""
    check_java()
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("barnabas")
    if "spark.master" not in (settings or {}) and "SPARK_REMOTE" not in os.environ and "MASTER" not in os.environ:
        builder = builder.config("spark.master", os.environ.get("SPARK_MASTER", "local[*]"))
    for name, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
