"""Code that all commands of `barnabas lake` share: shared options, the Spark session, and error messages.

`barnabas.lake` is imported when a command runs; it needs the extra `lake`, and Java for what only Spark answers. Spark logs to
a file in the lake.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.terminal.failures import Failure, failures
from barnabas.cli.terminal.output import ALIGNED_ROWS, Output, columns, note
from barnabas.cli.terminal.repeated_options import unique_keys
from barnabas.cli.terminal.stages import Stages
from barnabas.metadata.as_of import EVERYTHING, AsOf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.lake.asking.frames import FrameAnswers
    from barnabas.lake.asking.opened import OpenLake
    from barnabas.lake.asking.selection import Answers, Found
    from barnabas.lake.asking.stored import StoredLake
    from barnabas.lake.keeping.folders import Folder

_INSTALL = "pip install 'barnabas[lake]'"
_OF_THE_EXTRA = ("pyspark", "pyarrow", "pandas", "numpy", "numba", "duckdb", "sqlglot", "py4j")


class _Place(click.ParamType["Folder"]):
    """The directory of a lake, or its address."""

    name = "directory"

    def convert(self, value: str | Folder, param: click.Parameter | None, ctx: click.Context | None) -> Folder:
        from barnabas.lake.keeping.folders import LakeError, folder_at

        if isinstance(value, str) and Path(value).is_file():
            self.fail(f"Directory {value!r} is a file.", param, ctx)
        try:
            return folder_at(value)
        except LakeError as error:
            raise Failure(str(error)) from None


class Source(click.ParamType["Path | str"]):
    """A directory of logs, or the address to which it was copied."""

    name = "source"

    def convert(self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None) -> Path | str:
        from barnabas.lake.keeping.folders import is_address

        if isinstance(value, str) and is_address(value):
            return value
        if not Path(value).exists():
            self.fail(f"Path {str(value)!r} does not exist.", param, ctx)
        return Path(value)


LAKE = click.option(
    "--lake",
    "directory",
    type=_Place(),
    default="lake",
    show_default=True,
    envvar="BARNABAS_LAKE",
    help="Directory or address (s3a://bucket/lake) of the lake (or $BARNABAS_LAKE).",
)
CONF = click.option(
    "--conf", multiple=True, metavar="KEY=VALUE", help="Spark setting, such as spark.master=URL; may be repeated."
)


def show(found: Found, output: Output) -> int:
    """Show rows as they arrive, and return their number."""
    from barnabas.lake.asking.rows import plain_value

    coming = iter(found.rows)
    with Stages("asking Spark"):
        # Spark returns the first rows of each task late, and a table is aligned by its first rows.
        first = list(islice(coming, ALIGNED_ROWS if output.is_for_people else 1))
    rows = (
        {name: plain_value(value) for name, value in zip(found.names, row, strict=True)} for row in chain(first, coming)
    )
    return output.rows(columns(*found.names), rows)


# --- answers ---------------------------------------------------------------------------------------------------------


@contextmanager
def answering(
    directory: Folder, conf: tuple[str, ...], tables: Iterable[str], moment: AsOf = EVERYTHING
) -> Iterator[Answers]:
    """Open a lake for questions about these tables. Without Spark, if they are stored and `conf` does not ask for it."""
    from barnabas.lake.keeping.manifest import NotStoredError

    try:
        stored = stored_lake(directory, conf)
    except NotStoredError as reason:
        with asking_spark(directory, conf, reason) as answers:
            yield answers
        return
    with stored:
        try:
            stored.check(tables, moment)
        except NotStoredError as reason:
            with asking_spark(directory, conf, reason) as answers:
                yield answers
        else:
            yield stored


def stored_lake(directory: Folder, conf: tuple[str, ...]) -> StoredLake:
    """Open what a lake has stored. Raises NotStoredError, LakeError."""
    from barnabas.lake.asking.stored import StoredLake
    from barnabas.lake.keeping.manifest import NotStoredError
    from barnabas.lake.keeping.store import Lake

    found = Lake(directory)
    if conf:
        raise NotStoredError("--conf has settings of Spark")
    return StoredLake(found)


@contextmanager
def asking_spark(directory: Folder, conf: tuple[str, ...], reason: object) -> Iterator[FrameAnswers]:
    """Start Spark for a question, after saying why."""
    _require_spark()
    note(f"starting Spark, which takes a while: {reason}")
    from barnabas.lake.asking.frames import FrameAnswers

    with opened(directory, conf) as tables:
        yield FrameAnswers(tables)


# --- Spark -----------------------------------------------------------------------------------------------------------


@contextmanager
def opened(directory: Folder, conf: tuple[str, ...]) -> Iterator[OpenLake]:
    """Open a lake for reading, with a Spark session."""
    from barnabas.lake.asking import sessions

    with ExitStack() as stack:
        with Stages("starting Spark"):
            tables = stack.enter_context(sessions.opened(directory, pairs(conf, "--conf")))
        yield tables


@contextmanager
def lake_session(directory: Folder, conf: tuple[str, ...]) -> Iterator[SparkSession]:
    """Yield a Spark session. An active session is reused and left running; a new one is stopped at the end."""
    from barnabas.lake.asking import sessions

    with ExitStack() as stack:
        with Stages("starting Spark"):
            spark = stack.enter_context(sessions.lake_session(directory, pairs(conf, "--conf")))
        yield spark


def _require_spark() -> None:
    try:
        import pyspark  # noqa: F401  (only whether it is there)
    except ModuleNotFoundError as error:
        raise _missing(error) from error


def _missing(error: ModuleNotFoundError) -> Failure:
    return Failure(f"{error.name} is not installed, and the lake needs it", advice=_INSTALL)


@contextmanager
def lake_failures(directory: Folder) -> Iterator[None]:
    """Turn errors of the lake, Spark, Java or a source into a Failure. Imports nothing that a question may do without."""
    from barnabas.lake.keeping.folders import LakeError

    try:
        with failures():
            yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _OF_THE_EXTRA:
            raise
        raise _missing(error) from error
    except LakeError as error:
        raise Failure(str(error)) from error
    except Exception as error:
        failure = _known_failure(directory, error)
        if failure is None:
            raise
        raise failure from error


def _known_failure(directory: Folder, error: Exception) -> Failure | None:
    """Return the Failure for an error of a module that is loaded by now, if it is one."""

    def is_a(module: str, *names: str) -> bool:
        loaded = sys.modules.get(module)
        return loaded is not None and isinstance(error, tuple(getattr(loaded, name) for name in names))

    if (
        is_a("barnabas.lake.keeping.feeds", "SourceError")
        or is_a("barnabas.lake.spark.session", "JavaMissingError")
        or is_a("barnabas.lake.spark.masters", "MasterError")
        or is_a("barnabas.lake.spark.stores", "UnreachableError")
    ):
        return Failure(str(error))
    if is_a("barnabas.lake.spark.session", "SessionError"):
        return Failure(str(error), advice=_see_log(directory))
    if is_a("barnabas.lake.keeping.checks", "CheckFailedError"):
        return Failure(f"{error}; this batch was not written to the lake", resource=str(directory))
    if is_a("pyspark.errors", "PySparkException") and _TOO_LATE in str(error):
        return Failure(
            "Spark's processes of Python took more than 10 s to start, as on a machine with too much to do",
            resource=str(directory),
            advice="run it again: it goes on after the last commit",
        )
    if is_a("pyspark.errors", "PySparkException"):
        return Failure(_reason(error), resource=str(directory), advice=_see_log(directory))
    return None


def _see_log(directory: Folder) -> str:
    from barnabas.lake.keeping.folders import log_directory

    return f"see {log_directory(directory) / 'spark.log'}"


def _reason(error: Exception) -> str:
    """Extract the message: the last Python error in Spark's text, preferably one of barnabas, else the first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if _CAUSE.match(line)]
    ours = [line for line in causes if line.startswith("barnabas.")]
    text = (ours or causes or [*lines[:1], type(error).__name__])[-1 if causes else 0]
    return _CAUSE.sub("", text)


_TOO_LATE = "Python worker failed to connect back"
_CAUSE = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): ")


def pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    pairs = []
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise click.UsageError(f"{option} {text}: must be KEY=VALUE.")
        pairs.append((key.strip(), value))
    return unique_keys(pairs, option)
