"""Code that all commands of `barnabas lake` share: shared options, the Spark session, and error messages.

`barnabas.lake` is imported when a command runs; it needs the extra `lake` and Java. Spark logs to a file in the lake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.terminal.failures import Failure, failures
from barnabas.cli.terminal.output import ALIGNED_ROWS, Output, columns
from barnabas.cli.terminal.repeated_options import unique_keys

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
    help="Directory of the lake (or $BARNABAS_LAKE).",
)
CONF = click.option(
    "--conf", multiple=True, metavar="KEY=VALUE", help="Spark setting, such as spark.master=URL; may be repeated."
)


def show(frame: DataFrame, output: Output) -> int:
    """Show the rows of a data frame as they arrive, and return their number."""
    from barnabas.lake.asking.rows import plain_value

    names = frame.columns
    found = frame.toLocalIterator()
    # Spark returns the first rows of each task late, and a table is aligned by its first rows.
    first = list(islice(found, ALIGNED_ROWS)) if output.is_for_people else []
    rows = ({name: plain_value(value) for name, value in zip(names, row, strict=True)} for row in chain(first, found))
    return output.rows(columns(*names), rows)


# --- Spark -----------------------------------------------------------------------------------------------------------


@contextmanager
def opened(directory: Path, conf: tuple[str, ...]) -> Iterator[OpenLake]:
    """Open a lake for reading, with a Spark session."""
    from barnabas.lake.asking import sessions

    with sessions.opened(directory, pairs(conf, "--conf")) as tables:
        yield tables


@contextmanager
def lake_session(directory: Path, conf: tuple[str, ...]) -> Iterator[SparkSession]:
    """Yield a Spark session. An active session is reused and left running; a new one is stopped at the end."""
    from barnabas.lake.asking import sessions

    with sessions.lake_session(directory, pairs(conf, "--conf")) as spark:
        yield spark


@contextmanager
def lake_failures(directory: Path) -> Iterator[None]:
    """Turn errors of the lake, Spark, Java or a source into a Failure."""
    try:
        from pyspark.errors import PySparkException

        from barnabas.lake.keeping.checks import CheckFailedError
        from barnabas.lake.keeping.feeds import SourceError
        from barnabas.lake.keeping.store import LakeError
        from barnabas.lake.spark.masters import MasterError
        from barnabas.lake.spark.session import JavaMissingError, SessionError
    except ModuleNotFoundError as error:
        raise Failure(f"{error.name} is not installed, and the lake needs it", advice=_INSTALL) from error
    try:
        with failures():
            yield
    except (LakeError, SourceError, JavaMissingError, MasterError) as error:
        raise Failure(str(error)) from error
    except SessionError as error:
        raise Failure(str(error), advice=_see_log(directory)) from error
    except CheckFailedError as error:
        raise Failure(f"{error}; this batch was not written to the lake", resource=str(directory)) from error
    except PySparkException as error:
        raise Failure(_reason(error), resource=str(directory), advice=_see_log(directory)) from error


def _see_log(directory: Path) -> str:
    return f"see {directory / 'log' / 'spark.log'}"


def _reason(error: Exception) -> str:
    """Extract the message: the last Python error in Spark's text, preferably one of barnabas, else the first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if _CAUSE.match(line)]
    ours = [line for line in causes if line.startswith("barnabas.")]
    text = (ours or causes or [*lines[:1], type(error).__name__])[-1 if causes else 0]
    return _CAUSE.sub("", text)


_CAUSE = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): ")


def pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    pairs = []
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise click.UsageError(f"{option} {text}: must be KEY=VALUE.")
        pairs.append((key.strip(), value))
    return unique_keys(pairs, option)
