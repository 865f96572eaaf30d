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
from typing import TYPE_CHECKING, Any

from barnabas.lake.spark import stores
from barnabas.lake.spark.masters import check_master

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


class SessionError(RuntimeError):
    """Spark did not start; the text is its first line about it."""


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
    """Start a session: local, on all cores, unless `settings` or spark-submit name a master.

    Raises JavaMissingError, MasterError and SessionError.
    """
    check_start(settings)
    return start_checked(settings)


def check_start(settings: Mapping[str, str] | None = None) -> None:
    """Raise JavaMissingError or MasterError if Spark cannot start with these settings."""
    from pyspark.sql import SparkSession

    check_java()
    master = _with_master(settings).get("spark.master")
    if master is not None and SparkSession.getActiveSession() is None:
        check_master(master)


def start_checked(settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session after `check_start`. Raises SessionError."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("barnabas")
    for name, value in {**SETTINGS, **stores.settings_of(), **_with_master(settings)}.items():
        builder = builder.config(name, value)
    try:
        with _without_orphans():
            return builder.getOrCreate()
    except Exception as error:  # of py4j, which is Java's with its stack trace, or of pyspark
        raise SessionError(f"Spark did not start: {_first_line(error)}") from error


@contextmanager
def _without_orphans() -> Iterator[None]:
    """Kill the JVM if Ctrl-C arrives before it has told its port: pyspark leaves it behind, and it would run for ever.

    Later, it ends with this process.
    """
    from pyspark import SparkContext, java_gateway

    started: list[subprocess.Popen[bytes]] = []
    names = vars(java_gateway)
    start_process = names["Popen"]

    def remember(*arguments: Any, **more: Any) -> subprocess.Popen[bytes]:
        started.append(start_process(*arguments, **more))
        return started[-1]

    names["Popen"] = remember
    try:
        yield
    except KeyboardInterrupt:
        if SparkContext._gateway is None:
            for process in started:
                process.kill()
                process.wait()
        raise
    finally:
        names["Popen"] = start_process


def _with_master(settings: Mapping[str, str] | None) -> dict[str, str]:
    """Return the settings with a master, unless the environment of spark-submit has one."""
    if "SPARK_REMOTE" in os.environ or "MASTER" in os.environ:
        return dict(settings or {})
    return {"spark.master": os.environ.get("SPARK_MASTER", "local[*]"), **(settings or {})}


def _first_line(error: Exception) -> str:
    """Return the message of Java's exception, if there is one, else that of the error; in one line."""
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.getMessage() or java.toString())
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
