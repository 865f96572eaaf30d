"""What all commands of `barnabas lake` share: where the lake is, a session of Spark, and what can be wrong with either.

`barnabas.lake` is imported when a command runs; it needs the extra `lake` and Java. What Spark says goes to a file of the lake.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.lake.rows import plain_value
from barnabas.cli.terminal.failures import Failure, failures
from barnabas.cli.terminal.output import ALIGNED_ROWS, Output, columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from barnabas.lake.asking.opened import OpenLake

_INSTALL = "pip install 'barnabas[lake]'"

LAKE = click.option(
    "--lake",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("lake"),
    show_default=True,
    envvar="BARNABAS_LAKE",
    help="The directory of the lake.",
)
CONF = click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark, such as spark.master.")


def show(frame: DataFrame, output: Output) -> int:
    """The rows, as they come; how many there were."""
    names = frame.columns
    found = frame.toLocalIterator()
    # Spark gives the first rows of each of its tasks late: a table for people is aligned by them.
    first = list(islice(found, ALIGNED_ROWS)) if output.is_for_people else []
    rows = ({name: plain_value(value) for name, value in zip(names, row, strict=True)} for row in chain(first, found))
    return output.rows(columns(*names), rows)


# --- Spark -----------------------------------------------------------------------------------------------------------


@contextmanager
def opened(directory: Path, conf: tuple[str, ...]) -> Iterator[OpenLake]:
    """A lake to read."""
    from barnabas.lake.asking.opened import OpenLake
    from barnabas.lake.keeping.store import Lake
    from barnabas.lake.spark.session import for_rows

    found = Lake(directory)
    with lake_session(directory, conf) as spark:
        tables = OpenLake(spark, found)
        rows = sum(stream.rows for stream in tables.manifest.streams.values())
        with for_rows(spark, rows, pairs(conf, "--conf")):
            yield tables


@contextmanager
def lake_session(directory: Path, conf: tuple[str, ...]) -> Iterator[SparkSession]:
    """A session; one that is there already is used, and left running."""
    from pyspark.sql import SparkSession

    from barnabas.lake import register
    from barnabas.lake.spark.quiet import start_quietly

    os.environ["TZ"] = "UTC"  # times come from Spark as local ones
    time.tzset()
    is_ours = SparkSession.getActiveSession() is None
    spark = start_quietly(directory, pairs(conf, "--conf"))
    try:
        register(spark)
        yield spark
    finally:
        if is_ours:
            spark.stop()


@contextmanager
def lake_failures(directory: Path) -> Iterator[None]:
    """What can be wrong with a lake, Spark, Java or a source, in clear words."""
    try:
        from pyspark.errors import PySparkException

        from barnabas.lake.keeping.checks import CheckFailedError
        from barnabas.lake.keeping.feeds import SourceError
        from barnabas.lake.keeping.store import LakeError
        from barnabas.lake.spark.session import JavaMissingError
    except ModuleNotFoundError as error:
        raise Failure(f"{error.name} is not installed, and the lake needs it", advice=_INSTALL) from error
    try:
        with failures():
            yield
    except (LakeError, SourceError, JavaMissingError) as error:
        raise Failure(str(error)) from error
    except CheckFailedError as error:
        raise Failure(f"{error}; nothing of this batch is in the lake", resource=str(directory)) from error
    except PySparkException as error:
        advice = f"look into {directory / 'log' / 'spark.log'}"
        raise Failure(_reason(error), resource=str(directory), advice=advice) from error


def _reason(error: Exception) -> str:
    """What was wrong, without Spark's words around it: the Python error inside, ours before others, else the first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if _CAUSE.match(line)]
    ours = [line for line in causes if line.startswith("barnabas.")]
    text = (ours or causes or [*lines[:1], type(error).__name__])[-1 if causes else 0]
    return _CAUSE.sub("", text)


_CAUSE = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): ")


def pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    pairs = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise click.UsageError(f"{option} {text}: it takes KEY=VALUE.")
        pairs[key.strip()] = value
    return pairs
