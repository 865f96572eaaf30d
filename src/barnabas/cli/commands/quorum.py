"""`barnabas quorum`: health and voters of the metadata quorum.

Parses arguments and prints; `operations.quorum.health` judges the health.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection.connecting import run, through_controllers
from barnabas.cli.connection.options import common_options, dry_run_option, never_asks_option, yes_option
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.changes import announce, confirm
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.exit_codes import EXIT_NO
from barnabas.cli.terminal.failures import Failure, JudgingCommand
from barnabas.cli.terminal.output import Column, Format, Output, columns, note
from barnabas.cli.terminal.parsing import parsed_by
from barnabas.cli.terminal.watch import watch_option, watched
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.primitives import Uuid

if TYPE_CHECKING:
    from barnabas.client.admin.quorum import QuorumInfo, RaftEndpoint
    from barnabas.client.cluster import Cluster
    from barnabas.operations.quorum.controllers import Controller
    from barnabas.operations.quorum.health import Health

_MAX_LAG_MS = 5_000
_NO_LEADER = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT,
)


def _ago(value: Any) -> str:
    from barnabas.operations.quorum.health import seconds

    return f"{seconds(value)} ago"


_COLUMNS = columns(
    "replicaId",
    "role",
    Column("status", style=lambda value: "green" if value == "ok" else "red"),
    "logEndOffset",
    "lag",
    Column("sinceFetchMs", "LAST-FETCH", show=_ago),
    Column("sinceCaughtUpMs", "LAST-CAUGHT-UP", show=_ago),
    Column("replicaDirectoryId", "DIRECTORY"),
    "endpoints",
)


@click.group(cls=CommandGroup, short_help="Show the health of the metadata quorum; change its voters.")
def quorum() -> None:
    """Show the health of the metadata quorum; add, remove and update voters.

    \b
    Examples:
      barnabas quorum status
      barnabas quorum status --watch 2
      barnabas quorum status --can-lose 1 || page-someone
      barnabas quorum add --config new-controller/server.properties
      barnabas quorum remove 3
    """


@quorum.command("status", cls=JudgingCommand, short_help="Show the voters, and whether the quorum is healthy.")
@click.option(
    "--max-lag-ms",
    type=click.IntRange(1),
    default=_MAX_LAG_MS,
    show_default=True,
    help="Maximum time in milliseconds since a healthy voter was caught up.",
)
@click.option(
    "--can-lose",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    show_default=True,
    help="Report as unhealthy unless N voters can be lost.",
)
@watch_option
@common_options
def status(max_lag_ms: int, can_lose: int, watch: float | None, connection: Connection, output: Output) -> None:
    """Show the leader, voters and observers, and whether the quorum is healthy. Exits with 0 if it is, with 2 if not.

    A quorum is healthy if it has a leader and every voter was caught up within --max-lag-ms. It needs a majority of its
    voters; it can lose the others.

    \b
    Examples:
      barnabas quorum status
      barnabas quorum status -o json
      barnabas quorum status --bootstrap-controller localhost:9093 --watch 2
    """
    healthy = [True]

    async def work(cluster: Cluster) -> None:
        async def show() -> None:
            healthy[0] = await _show_status(cluster, max_lag_ms, can_lose, output)

        await watched(output, watch, show)

    run(connection, work)
    if not healthy[0]:
        raise SystemExit(EXIT_NO)


async def _show_status(cluster: Cluster, max_lag_ms: int, can_lose: int, output: Output) -> bool:
    from barnabas.client.admin.quorum import Quorum
    from barnabas.client.errors import CallTimeoutError
    from barnabas.operations.quorum.health import judge

    try:
        info = await Quorum(cluster).describe_quorum()
    except (KafkaError, CallTimeoutError) as error:
        last = error.last_error if isinstance(error, CallTimeoutError) else error
        if not isinstance(last, KafkaError) or last.code not in _NO_LEADER:
            raise
        note(f"unhealthy: the quorum has no leader that answers ({last.code.name}: {last.message})")
        return False
    health = judge(info, _now_ms(), max_lag_ms=max_lag_ms, can_lose=can_lose)
    _show(cluster.state.cluster_id, info, health, output)
    if output.is_for_people:
        output.title(health.verdict())
        for problem in health.problems:
            output.write(f"- {problem}")
        output.flush()
    return health.is_healthy


def _show(cluster_id: str | None, info: QuorumInfo, health: Health, output: Output) -> None:
    rows = [
        {
            "replicaId": each.state.replica_id,
            "replicaDirectoryId": _directory(each.state.replica_directory_id),
            "role": each.role.value,
            "status": each.status.value,
            "logEndOffset": each.state.log_end_offset,
            "lag": each.lag,
            "lastFetchTimestamp": each.state.last_fetch_timestamp_ms,
            "lastCaughtUpTimestamp": each.state.last_caught_up_timestamp_ms,
            "sinceFetchMs": each.since_fetch_ms,
            "sinceCaughtUpMs": each.since_caught_up_ms,
            "endpoints": list(map(str, info.nodes.get(each.state.replica_id, ()))),
        }
        for each in health.replicas
    ]
    head = {
        "clusterId": cluster_id,
        "leaderId": info.leader_id,
        "leaderEpoch": info.leader_epoch,
        "highWatermark": info.high_watermark,
    }
    if output.format is Format.TABLE:
        output.one(head)
        output.title("replicas")
        output.rows(_COLUMNS, rows)
    elif output.format is Format.TSV:
        output.rows(_COLUMNS, rows)
    else:
        verdict = {"healthy": health.is_healthy, "canLose": health.can_lose, "problems": list(health.problems)}
        output.one({**head, "replicas": rows, "verdict": verdict})


def _directory(directory_id: Uuid) -> str | None:
    return str(directory_id) if any(directory_id) else None


# --- voters


_DIRECTORY = click.option(
    "--directory-id",
    callback=parsed_by(Uuid.parse),
    metavar="UUID",
    help="Directory id of the controller's metadata log dir.",
)
_ENDPOINTS = click.option(
    "--endpoint",
    "endpoints",
    multiple=True,
    metavar="NAME://HOST:PORT",
    help="Endpoint of the controller; may be repeated.",
)
_CONFIG = click.option(
    "--config",
    "-c",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Local server.properties of the controller, to read id, directory id and endpoints from.",
)


@quorum.command("add")
@click.argument("controller", type=int, required=False)
@_DIRECTORY
@_ENDPOINTS
@_CONFIG
@never_asks_option
@dry_run_option
@common_options
def add(
    controller: int | None,
    directory_id: Uuid | None,
    endpoints: tuple[str, ...],
    config: Path | None,
    dry_run: bool,
    connection: Connection,
    output: Output,
) -> None:
    """Make a controller a voter of the quorum. It must run as an observer already.

    \b
    Examples:
      barnabas quorum add --config new-controller/server.properties
      barnabas quorum add 4 --directory-id JEXY6aqzQY-32P5TStzaFg --endpoint CONTROLLER://four:9093
    """
    wanted = _controller(controller, directory_id, endpoints, config)

    async def work(cluster: Cluster) -> None:
        from barnabas.client.admin.quorum import Quorum

        announce([f"make controller {wanted} a voter"], dry_run=dry_run)
        if not dry_run:
            await Quorum(cluster).add_raft_voter(wanted.id, wanted.directory_id, wanted.endpoints)

    run(connection, work)
    if not dry_run or not output.is_for_people:
        output.one(_voter_row(wanted.id, wanted.directory_id, wanted.endpoints))


@quorum.command("remove")
@click.argument("controller", type=int)
@_DIRECTORY
@yes_option
@dry_run_option
@common_options
def remove(
    controller: int, directory_id: Uuid | None, yes: bool, dry_run: bool, connection: Connection, output: Output
) -> None:
    """Remove a controller from the voters. First shows what the quorum would be without it.

    \b
    Examples:
      barnabas quorum remove 3
      barnabas quorum remove 3 --directory-id JEXY6aqzQY-32P5TStzaFg --yes
    """

    async def work(cluster: Cluster) -> Uuid:
        from barnabas.client.admin.quorum import Quorum
        from barnabas.operations.quorum.health import judge, majority

        info = await Quorum(cluster).describe_quorum()
        found = info.voter(controller, directory_id)
        if found is None:
            known = ", ".join(f"{each.replica_id} ({each.replica_directory_id})" for each in info.voters)
            raise Failure(f"is not a voter; voters are {known}", resource=f"controller {controller}")
        left = len(info.voters) - 1
        works = sum(each.works for each in judge(info, _now_ms()).voters if each.state is not found)
        announce([f"remove controller {controller} ({found.replica_directory_id}) from the voters"], dry_run=dry_run)
        note(f"remaining voters: {left}; working: {works}; needed: {majority(left)}")
        if not dry_run:
            confirm(f"Remove voter {controller}?", yes=yes)
            await Quorum(cluster).remove_raft_voter(controller, found.replica_directory_id)
        return found.replica_directory_id

    removed = run(connection, work)
    if not dry_run or not output.is_for_people:
        output.one(_voter_row(controller, removed, ()))


@quorum.command("update")
@click.argument("controller", type=int, required=False)
@_DIRECTORY
@_ENDPOINTS
@_CONFIG
@click.option(
    "--kraft-versions",
    default="0-1",
    metavar="FIRST-LAST",
    show_default=True,
    help="Range of kraft.version it supports.",
)
@never_asks_option
@dry_run_option
@common_options
def update(
    controller: int | None,
    directory_id: Uuid | None,
    endpoints: tuple[str, ...],
    config: Path | None,
    kraft_versions: str,
    dry_run: bool,
    connection: Connection,
    output: Output,
) -> None:
    """Update the endpoints of a voter. Voters normally do this themselves when they start.

    Only controllers accept this. They are found through the brokers, unless --bootstrap-controller is given.

    \b
    Examples:
      barnabas quorum update 2 --directory-id JEXY6aqzQY-32P5TStzaFg --endpoint CONTROLLER://two:9093
    """
    wanted = _controller(controller, directory_id, endpoints, config)
    first, _, last = kraft_versions.partition("-")
    if not (first.isdecimal() and last.isdecimal()):
        raise click.UsageError(f"--kraft-versions {kraft_versions}: must be FIRST-LAST, such as 0-1.")

    async def work(cluster: Cluster) -> None:
        from barnabas.client.admin.quorum import Quorum

        announce([f"update the endpoints of voter {wanted}"], dry_run=dry_run)
        if not dry_run:
            await Quorum(cluster).update_raft_voter(
                wanted.id, wanted.directory_id, wanted.endpoints, kraft_versions=(int(first), int(last))
            )

    run(through_controllers(connection), work)
    if not dry_run or not output.is_for_people:
        output.one(_voter_row(wanted.id, wanted.directory_id, wanted.endpoints))


def _controller(
    controller: int | None, directory_id: Uuid | None, endpoints: tuple[str, ...], config: Path | None
) -> Controller:
    from barnabas.operations.quorum.controllers import Controller, ControllerError, load_controller, parse_endpoint

    try:
        if config is not None:
            if controller is not None or directory_id is not None or endpoints:
                raise click.UsageError("--config cannot be combined with CONTROLLER, --directory-id or --endpoint.")
            return load_controller(config)
        if controller is None or directory_id is None or not endpoints:
            raise click.UsageError("Give either CONTROLLER, --directory-id and --endpoint, or --config.")
        return Controller(controller, directory_id, tuple(map(parse_endpoint, endpoints)))
    except ControllerError as error:
        raise Failure(str(error), resource=None if config is None else str(config)) from None


def _voter_row(voter_id: int, directory_id: Uuid, endpoints: tuple[RaftEndpoint, ...]) -> dict[str, Any]:
    row: dict[str, Any] = {"voterId": voter_id, "voterDirectoryId": str(directory_id)}
    return {**row, "endpoints": list(map(str, endpoints))} if endpoints else row


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
