"""`barnabas lake shell`: queries one after another, with one session of Spark that stays."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import click

from barnabas.cli.connection.options import output_options
from barnabas.cli.lake.session import CONF, LAKE, asking_spark, lake_failures, show, stored_lake
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.lake.asking.selection import Found
    from barnabas.lake.keeping.folders import Folder

_PROMPT, _MORE = "lake> ", "   -> "
_WELCOME = "queries end with ; and Ctrl-D ends the shell; tables lists the tables"


@click.command("shell", short_help="Run queries one after another; Spark stays warm.")
@LAKE
@CONF
@output_options
def shell(directory: Folder, conf: tuple[str, ...], output: Output) -> None:
    """Run Spark SQL queries one after another, each of the lake's newest commit. Each ends with a semicolon.

    What is stored is answered without Spark. Spark starts with the first query that needs it, and stays for the next ones.
    Queries can come from a pipe as well; then the first that fails ends the shell.

    \b
    Examples:
      barnabas lake shell
      barnabas lake shell -o json < queries.sql
    """
    is_interactive = sys.stdin.isatty()
    with lake_failures(directory), ExitStack() as stack:
        from barnabas.lake.keeping.store import Lake

        Lake(directory)  # raises LakeError before anybody types
        asked = _Shell(directory, conf, stack)
        if is_interactive:
            note(_WELCOME)
            with suppress(ImportError):
                import readline  # noqa: F401  (for arrow keys and the history)
        for query in _queries(is_interactive):
            try:
                with lake_failures(directory):
                    asked.answer(query, output)
            except Failure as failure:
                if not is_interactive:
                    raise
                failure.show()
            except KeyboardInterrupt:
                if not is_interactive:
                    raise
                note("")


class _Shell:
    """The session of Spark, once it was started."""

    def __init__(self, directory: Folder, conf: tuple[str, ...], stack: ExitStack) -> None:
        self._directory, self._conf, self._stack = directory, conf, stack
        self._spark: SparkSession | None = None

    def answer(self, query: str, output: Output) -> None:
        from barnabas.lake.asking.spark_sql import check_query, run_without_spark
        from barnabas.lake.keeping.manifest import NotStoredError

        if query.lower() == "tables":
            _list_tables(output)
            return
        check_query(query)
        try:
            with stored_lake(self._directory, self._conf) as stored:
                show(run_without_spark(stored, query), output)
        except NotStoredError as reason:
            show(self._by_spark(query, reason), output)

    def _by_spark(self, query: str, reason: object) -> Found:
        from barnabas.lake.asking.frames import found
        from barnabas.lake.asking.opened import OpenLake
        from barnabas.lake.keeping.store import Lake

        if self._spark is None:
            self._spark = self._stack.enter_context(asking_spark(self._directory, self._conf, reason)).tables.spark
        return found(OpenLake(self._spark, Lake(self._directory)).sql(query))


def _list_tables(output: Output) -> None:
    from barnabas.cli.terminal.output import columns
    from barnabas.lake.tables.all import TABLES

    rows = [{"table": each.name, "layer": each.layer, "question": each.question} for each in TABLES.values()]
    output.rows(columns("table", "layer", "question"), rows)


def _queries(is_interactive: bool) -> Iterator[str]:
    """Yield the queries that are typed, or that come from a pipe, each without its semicolon."""
    waiting = ""
    while True:
        try:
            line = input(_MORE if waiting else _PROMPT) if is_interactive else next(sys.stdin)
        except KeyboardInterrupt:
            if not is_interactive:
                raise
            waiting = ""
            note("")
            continue
        except (EOFError, StopIteration):
            break
        waiting = f"{waiting}\n{line}" if waiting else line
        *whole, waiting = split_queries(waiting)
        yield from filter(None, map(str.strip, whole))
        waiting = waiting.strip()
        if waiting.lower() == "tables" and is_interactive:
            yield waiting
            waiting = ""
    if waiting:
        yield waiting


def split_queries(text: str) -> list[str]:
    """Split at semicolons that are not in quotes or comments; the last part has no semicolon yet.

    >>> split_queries("select ';'; select 1")
    ["select ';'", ' select 1']
    """
    parts, start, quote, index = list[str](), 0, "", 0
    while index < len(text):
        letter = text[index]
        if quote == "--":
            quote = "" if letter == "\n" else quote
        elif quote:
            if letter == "\\" and quote != "`":
                index += 1
            elif letter == quote:
                quote = ""
        elif letter in "'\"`":
            quote = letter
        elif text.startswith("--", index):
            quote = "--"
        elif letter == ";":
            parts.append(text[start:index])
            start = index + 1
        index += 1
    return [*parts, text[start:]]
