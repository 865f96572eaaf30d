"""A session whose output is in a file: Spark, its JVM and its Python workers write to `spark.log`.

Its one rule: standard error of this process is redirected only while the JVM starts. The JVM keeps the file as its own. Under
spark-submit the JVM runs already, and has its standard error: there it tells errors only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.lake.spark.session import check_start, start_checked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG_FILE: Final = "spark.log"
_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
"""The environment variable that spark-submit sets for a driver in Python."""
_MAX_LOG_BYTES: Final = 16 << 20
_LOG4J_FILE: Final = "log4j2.properties"
_LOG4J: Final = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd'T'HH:mm:ss.SSS'Z'}{UTC} %p %c{1}: %m%n%ex
"""


def start_quietly(directory: Path, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session that writes its log in this directory. Raises as `start` does."""
    check_start(settings)  # before anything is written
    if _GATEWAY in os.environ:
        _disable_query_loggers()
        return start_checked({"spark.log.level": "ERROR", **(settings or {})})
    directory.mkdir(parents=True, exist_ok=True)
    log, log4j = directory / LOG_FILE, directory / _LOG4J_FILE
    if log.exists() and log.stat().st_size > _MAX_LOG_BYTES:
        log.replace(log.with_suffix(".old.log"))
    log4j.write_text(_LOG4J)
    _disable_query_loggers()
    quiet = {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{log4j}"}
    with _stderr_into(log):
        return start_checked({**quiet, **(settings or {})})


def _disable_query_loggers() -> None:
    """Keep pyspark from logging each error of a query, with its stack trace, before it raises it."""
    from pyspark.logger import PySparkLogger

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


@contextmanager
def _stderr_into(path: Path) -> Iterator[None]:
    sys.stderr.flush()
    kept = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
