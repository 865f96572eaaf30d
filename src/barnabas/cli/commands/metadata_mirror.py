"""`barnabas metadata mirror`: keep a copy of the metadata log of a running cluster.

Parses arguments and prints; the mirror is in `operations.metadata_mirror`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection.connecting import run, through_controllers
from barnabas.cli.connection.options import common_options
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.failures import failures
from barnabas.cli.terminal.output import Output, columns, note
from barnabas.cli.terminal.watch import cancelled_by_sigterm, interrupted, terminated

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.operations.metadata_mirror import Mirrored

_SHOWN = columns("directory", "start_offset", "end_offset", "batches", "set_aside")
_NOTE_EVERY_S = 2.0


@click.command("mirror", short_help="Keep a copy of the metadata log of a running cluster.")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--until-end/--follow",
    default=False,
    help="End when everything that is committed was copied, or go on until Ctrl-C.  [default: follow]",
)
@common_options
def mirror(directory: Path, until_end: bool, connection: Connection, output: Output) -> None:
    """Copy the metadata log of a running cluster to DIRECTORY, and keep the copy up to date.

    The copy has the records that are committed, byte for byte, and keeps them when the cluster cleans its log: history that
    the cluster itself forgets. Start the command again to go on. It works with controllers of Apache Kafka and of
    barnabas, and is no voter and no replica. Reading needs CLUSTER_ACTION on the cluster.

    DIRECTORY is a log dir that belongs to no node. Browse it with barnabas metadata and dump, serve it with serve
    --read-only, and give it to barnabas lake run. If the mirror was away for so long that the cluster has cleaned up what
    comes next, it goes on with a snapshot, and what it had is kept in DIRECTORY/until-OFFSET.

    \b
    Examples:
      barnabas metadata mirror history -b localhost:9092
      barnabas metadata mirror history -b localhost:9092 --until-end
      barnabas metadata find history topics/byName --as-of 2h
      barnabas serve --read-only history --as-of 2026-01-31T12:30:00Z
    """

    async def work(cluster: Cluster) -> None:
        from barnabas.operations.metadata_mirror import mirror as mirrored

        last: Mirrored | None = None
        is_interrupted = False
        with cancelled_by_sigterm() as is_terminated, failures():
            try:
                async with aclosing(mirrored(cluster, directory, follow=not until_end)) as states:
                    async for state in _told(states):
                        last = state
            except asyncio.CancelledError:  # Ctrl-C or SIGTERM
                is_interrupted = True
        if last is not None:
            output.rows(_SHOWN, [_row(directory, last)])
            output.flush()
        if is_terminated():
            terminated()
        if is_interrupted:
            interrupted(is_normal=not until_end)

    run(through_controllers(connection), work, is_long=True)


def _row(directory: Path, state: Mirrored) -> dict[str, Any]:
    return {
        "directory": str(directory),
        "start_offset": state.start_offset,
        "end_offset": state.end_offset,
        "batches": state.batches,
        "set_aside": [str(path) for path in state.set_aside],
    }


async def _told(states: AsyncIterator[Mirrored]) -> AsyncIterator[Mirrored]:
    """Pass the states on, and tell those that are new, with a pause in between."""
    told: Mirrored | None = None
    told_at_s = 0.0
    async for state in states:
        is_first = told is None or (state.problem is None) != (told.problem is None)
        if state != told and (is_first or time.monotonic() - told_at_s >= _NOTE_EVERY_S):
            _tell(state, told)
            told, told_at_s = state, time.monotonic()
        yield state


def _tell(state: Mirrored, told: Mirrored | None) -> None:
    for path in state.set_aside[len(told.set_aside) if told is not None else 0 :]:
        note(
            f"the cluster has cleaned up what comes next: the mirror goes on with a snapshot, and {path} has what was before"
        )
    if state.problem is not None:
        note(f"the cluster cannot be reached, trying again: {state.problem}")
    else:
        added = state.batches - (told.batches if told is not None else 0)
        note(f"offsets {state.start_offset:,} to {state.end_offset:,} are on disk, {added:,} new batches")
