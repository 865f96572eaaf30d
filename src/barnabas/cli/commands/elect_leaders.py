"""`barnabas elect-leaders`: preferred and unclean leader elections."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import common_options, dry_run_option, yes_option
from barnabas.cli.connection.partition_arguments import partitions_argument
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.changes import announce, confirm, show_results
from barnabas.cli.terminal.output import Output, columns, note
from barnabas.operations.partitions import Key, Selection, find_partitions
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.state import ClusterState

_SHOWN_KEYS = 5
_LOSS = "Records that are only on the unavailable replicas will be lost permanently. Elect unclean leaders?"


@click.command("elect-leaders", short_help="Trigger preferred or unclean leader elections.")
@partitions_argument
@click.option("--all", "all_", is_flag=True, help="All partitions of the cluster.")
@click.option(
    "--preferred/--unclean",
    default=True,
    help="Elect the first replica, if it is in sync; or any live replica where there is no leader, which may lose records."
    "  [default: preferred]",
)
@dry_run_option
@yes_option
@common_options
def elect_leaders(
    partitions: tuple[Selection, ...],
    all_: bool,
    preferred: bool,
    dry_run: bool,
    yes: bool,
    connection: Connection,
    output: Output,
) -> None:
    """Trigger preferred or unclean leader elections.

    A preferred election makes the first replica of a partition its leader, if it is in sync. No records are lost. An unclean
    election is for partitions without a leader whose in-sync replicas will not come back. It may lose records.

    \b
    Examples:
      barnabas elect-leaders --all
      barnabas elect-leaders orders payments:0,2 --dry-run
      barnabas elect-leaders --unclean orders:3
    """
    if bool(partitions) == all_:
        raise click.UsageError("Give either topics or partitions, or --all.")
    run(connection, lambda cluster: _elect(cluster, partitions, preferred, dry_run, yes, output))


async def _elect(
    cluster: Cluster, wanted: tuple[Selection, ...], preferred: bool, dry_run: bool, yes: bool, output: Output
) -> None:
    from barnabas.client.admin.elections import Elections, ElectionType

    state, keys = await find_partitions(cluster, wanted)
    needing = [key for key in keys if _needs(state, key, preferred)]
    kind = "the preferred leader" if preferred else "an unclean leader"
    if needing:
        announce([f"elect {kind} of {_names(needing)}"], dry_run=dry_run)
    if dry_run or not needing:
        if not needing:
            note(f"no partition needs {kind}")
        if needing or not output.is_for_people:
            output.rows(columns("topic", "partition", "leader", "preferredLeader"), _rows(state, needing))
        return
    if not preferred:
        confirm(_LOSS, yes=yes)
    election = ElectionType.PREFERRED if preferred else ElectionType.UNCLEAN
    results = await Elections(cluster).elect_leaders(election, needing if wanted else None)
    shown = {key: results[key] for key in sorted(results) if not _is_not_needed(results[key])}
    now = await cluster.metadata({topic for topic, _ in shown})

    def row(key: Key, _: object) -> dict[str, Any]:
        found = now.partition(*key)
        return {
            "topic": key[0],
            "partition": key[1],
            "leader": None if found is None else found.leader_id,
            "electionType": election.name,
        }

    show_results(output, ("topic", "partition", "leader"), shown, row)


def _needs(state: ClusterState, key: Key, preferred: bool) -> bool:
    found = state.partition(*key)
    assert found is not None
    return found.leader_id != found.replicas[0] if preferred else found.leader_id == -1


def _is_not_needed(result: KafkaError | None) -> bool:
    """Return whether the leader was already elected by someone else or by the controller itself."""
    return result is not None and result.code is ErrorCode.ELECTION_NOT_NEEDED


def _rows(state: ClusterState, keys: Iterable[Key]) -> list[dict[str, Any]]:
    found = [(key, state.partition(*key)) for key in keys]
    return [
        {
            "topic": key[0],
            "partition": key[1],
            "leader": None if each.leader_id == -1 else each.leader_id,
            "preferredLeader": each.replicas[0],
            "isr": list(each.isr),
        }
        for key, each in found
        if each is not None
    ]


def _names(keys: list[Key]) -> str:
    shown = ", ".join(f"{topic}-{index}" for topic, index in keys[:_SHOWN_KEYS])
    more = len(keys) - _SHOWN_KEYS
    return f"{shown} and {more} more" if more > 0 else shown
