"""What commands of `barnabas lake` that ask have in common: of which cluster, as of when, and where to write."""

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

CLUSTER = click.option("--cluster-id", help="The cluster, where the lake has several.")
FILE = click.option(
    "--file", "-f", "file", type=click.Path(dir_okay=False, path_type=Path), help="Where to write; else shown."
)
MOMENT: dict[str, Any] = {"metavar": "OFFSET|TIME", "callback": moment_of}
AS_OF = click.option(
    "--as-of",
    "moment",
    help="At this offset of the metadata log, or at this time, such as 2026-01-31T12:00Z; else at the end.",
    **MOMENT,
)


def cluster_of(tables: OpenLake, given: str | None) -> str:
    """The cluster that is asked about. One that has to be chosen is a failure that names them."""
    try:
        return tables.cluster_id(given)
    except ValueError as error:
        raise Failure(str(error), advice="say which one with --cluster-id") from None


def rows_of(tables: OpenLake, name: str, cluster_id: str | None) -> DataFrame:
    """A table, of one cluster where one was named."""
    rows = tables[name]
    return rows if cluster_id is None else rows.where(rows["cluster_id"] == cluster_of(tables, cluster_id))


def as_it_was(tables: OpenLake, moment: AsOf, cluster_id: str | None) -> LakeAsOf:
    """The tables at a moment, of one cluster or of all; where the moment is, is noted."""
    state = tables.as_of(moment, None if cluster_id is None else cluster_of(tables, cluster_id))
    places = state.places()
    if not places:
        raise Failure(
            "the lake knows of nothing that was before this", advice="see its first changes with: lake changes"
        )
    if moment != EVERYTHING:
        for cluster, log, offset in places:
            note(f"{cluster}: after offset {offset} of {log}")
    return state


def show_of(state: LakeAsOf, rows: DataFrame, names: Sequence[str], output: Output) -> int:
    """All columns for programs, these for people: with the cluster, if there are several. How many rows there were."""
    if not output.is_for_people:
        return show(rows, output)
    several = len({place[0] for place in state.places()}) > 1
    return show(rows.selectExpr(*(["cluster_id"] if several else []), *names), output)


def give(text: str, file: Path | None, advice: str = "") -> None:
    """Into the file that was named, else to the standard output."""
    if file is None:
        click.echo(text, nl=False)
        return
    file.write_text(text)
    note(f"wrote {file}{advice}")
