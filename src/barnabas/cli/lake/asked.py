"""Options and functions that query commands of `barnabas lake` share: the cluster, the moment, the file to write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.lake.session import show
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, note
from barnabas.cli.terminal.parsing import moment_of
from barnabas.metadata.as_of import EVERYTHING, AsOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from barnabas.lake.asking.opened import LakeAsOf, OpenLake

CLUSTER = click.option("--cluster-id", help="Cluster id, if the lake has several clusters.")
FILE = click.option(
    "--file",
    "-f",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write.  [default: standard output]",
)
MOMENT: dict[str, Any] = {"metavar": "OFFSET|TIME|AGE", "callback": moment_of}
AS_OF = click.option(
    "--as-of",
    "moment",
    help="Offset of the metadata log, time such as 2026-01-31T12:00Z, or age such as 1h.  [default: end of the log]",
    **MOMENT,
)


def cluster_of(tables: OpenLake, given: str | None) -> str:
    """Return the given cluster id, or that of the only cluster. Raises Failure if it is unknown or has to be chosen."""
    try:
        return tables.cluster_id(given)
    except ValueError as error:
        raise Failure(str(error), advice="choose one with --cluster-id") from None


def rows_of(tables: OpenLake, name: str, cluster_id: str | None) -> DataFrame:
    """Return a table, only of the given cluster if there is one."""
    rows = tables[name]
    return rows if cluster_id is None else rows.where(rows["cluster_id"] == cluster_of(tables, cluster_id))


def as_it_was(tables: OpenLake, moment: AsOf, cluster_id: str | None) -> LakeAsOf:
    """Return the tables as of a moment, and print the offset it means. Raises Failure if the lake has no data from before."""
    state = tables.as_of(moment, None if cluster_id is None else cluster_of(tables, cluster_id))
    places = state.places()
    if not places:
        raise Failure(
            "the lake has no data from before this offset or time",
            advice="see the first changes with: barnabas lake changes",
        )
    if moment != EVERYTHING:
        for cluster, log, offset in places:
            note(f"{cluster}: after offset {offset} of {log}")
    return state


def show_of(state: LakeAsOf, rows: DataFrame, names: Sequence[str], output: Output) -> int:
    """Show rows and return their number. Tables have only the columns `names`, and the cluster if there are several."""
    if not output.is_for_people:
        return show(rows, output)
    several = len({place[0] for place in state.places()}) > 1
    return show(rows.selectExpr(*(["cluster_id"] if several else []), *names), output)


def give(text: str, file: Path | None, advice: str = "") -> None:
    """Write the text to the file, or to standard output if there is none."""
    if file is None:
        click.echo(text, nl=False)
        return
    file.write_text(text)
    note(f"wrote {file}{advice}")
