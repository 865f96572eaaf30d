"""Options and functions that query commands of `barnabas lake` share: the cluster, the moment, the file to write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.lake.session import show
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, note
from barnabas.cli.terminal.parsing import moment_of
from barnabas.metadata.as_of import EVERYTHING, AsOf

if TYPE_CHECKING:
    from barnabas.lake.asking.selection import Answers, Found, Selection

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


def cluster_of(answers: Answers, given: str | None) -> str:
    """Return the given cluster id, or that of the only cluster. Raises Failure if it is unknown or has to be chosen."""
    try:
        return answers.cluster_id(given)
    except ValueError as error:
        raise Failure(str(error), advice="choose one with --cluster-id") from None


def checked_cluster(answers: Answers, given: str | None) -> str | None:
    """Return the given cluster id, or None for all. Raises Failure if it is unknown."""
    return None if given is None else cluster_of(answers, given)


def places_of(answers: Answers, moment: AsOf, cluster_id: str | None) -> list[tuple[str, str, int]]:
    """Return the places of a moment, and print the offsets it means. Raises Failure if the lake has no data from before."""
    places = answers.places(moment, cluster_id)
    check_places(places)
    if moment != EVERYTHING:
        for cluster, log, offset in places:
            note(f"{cluster}: after offset {offset} of {log}")
    return places


def check_places(places: Sequence[object], table: str | None = None) -> None:
    if not places:
        raise Failure(
            "the lake has no data from before this offset or time",
            resource=table,
            advice="see the first changes with: barnabas lake changes",
        )


def show_of(
    answers: Answers, selection: Selection, moment: AsOf, cluster_id: str | None, output: Output, shown: Sequence[str]
) -> int:
    """Show rows as of a moment, and return their number. Tables have only `shown`, and the cluster if there are several."""
    cluster = checked_cluster(answers, cluster_id)
    places = places_of(answers, moment, cluster)
    if output.is_for_people:
        several = ("cluster_id",) if len(places) > 1 else ()
        selection = selection._replace(columns=(*several, *shown))
    return show(answers.select(selection, moment, cluster), output)


def states(answers: Answers, tables: Iterable[str], moment: AsOf, cluster_id: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of tables as of a moment."""
    from barnabas.lake.asking.selection import Selection, as_dicts

    return {name: as_dicts(answers.select(Selection(name), moment, cluster_id)) for name in tables}


def only(found: Found, names: Sequence[str]) -> Found:
    """Return the rows with these columns only."""
    from barnabas.lake.asking.selection import Found

    places = [found.names.index(name) for name in names]
    return Found(tuple(names), (tuple(row[place] for place in places) for row in found.rows))


def give(text: str, file: Path | None, advice: str = "") -> None:
    """Write the text to the file, or to standard output if there is none."""
    if file is None:
        click.echo(text, nl=False)
        return
    file.write_text(text)
    note(f"wrote {file}{advice}")
