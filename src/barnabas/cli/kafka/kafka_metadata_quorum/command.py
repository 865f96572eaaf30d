"""`barnabas kafka-metadata-quorum`: Kafka's script of this name, with its options and its lines."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import profiles
from barnabas.cli.connection.connecting import run
from barnabas.cli.kafka.drop_in import KafkaToolGroup, Terse
from barnabas.cli.kafka.java_text import exception_text
from barnabas.cli.kafka.kafka_metadata_quorum.lines import replication_lines, status_lines, uuid_problem
from barnabas.wire.errors import KafkaError
from barnabas.wire.primitives import Uuid

if TYPE_CHECKING:
    from barnabas.client.admin.quorum import QuorumInfo
    from barnabas.client.cluster import Cluster


@click.group(
    "kafka-metadata-quorum", cls=KafkaToolGroup, short_help="Describe and change the quorum as Kafka's script does."
)
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="Brokers to connect to.")
@click.option("--bootstrap-controller", metavar="HOST:PORT,...", help="Controllers to connect to.")
@click.option(
    "--command-config",
    type=click.Path(path_type=Path),
    help="Properties file with client settings; for add-controller, with those of the controller as well.",
)
@click.pass_context
def kafka_metadata_quorum(
    ctx: click.Context, bootstrap_server: str | None, bootstrap_controller: str | None, command_config: Path | None
) -> None:
    """Describe and change the metadata quorum as Kafka's script of this name does. See also: barnabas quorum."""
    if bootstrap_server and bootstrap_controller:
        raise click.UsageError("argument --bootstrap-controller: not allowed with argument --bootstrap-server")
    if not bootstrap_server and not bootstrap_controller:
        raise click.UsageError("one of the arguments --bootstrap-server --bootstrap-controller is required")
    if command_config is not None and not command_config.exists():
        raise Terse(f"Properties file {command_config} does not exists!")
    ctx.obj = (bootstrap_server, bootstrap_controller, command_config)


@kafka_metadata_quorum.command("describe")
@click.option("--status", is_flag=True, help="Show a short summary of the quorum.")
@click.option("--replication", is_flag=True, help="Show the lag of each replica.")
@click.option("--human-readable", is_flag=True, help="With --replication: show times as ages.")
@click.pass_context
def describe(ctx: click.Context, status: bool, replication: bool, human_readable: bool) -> None:
    """Describe the metadata quorum."""
    if status and replication:
        raise Terse("Only one of --status or --replication should be specified with describe sub-command")
    if not status and not replication:
        raise Terse("One of --status or --replication must be specified with describe sub-command")
    if status and human_readable:
        raise Terse("The option --human-readable is only supported along with --replication")

    async def work(cluster: Cluster) -> tuple[str | None, QuorumInfo]:
        from barnabas.client.admin.quorum import Quorum

        return cluster.state.cluster_id, await Quorum(cluster).describe_quorum()

    cluster_id, info = _run(ctx, work)
    leader = info.leader
    if leader is None:
        raise Terse("No value present")
    try:
        now_ms = time.time_ns() // 1_000_000 if human_readable else None
        lines = status_lines(str(cluster_id), info, leader) if status else replication_lines(info, leader, now_ms)
    except ValueError as error:
        raise Terse(str(error)) from None
    click.echo("\n".join(lines))


@kafka_metadata_quorum.command("add-controller")
@click.option("--dry-run", is_flag=True, help="Show the change without making it.")
@click.pass_context
def add_controller(ctx: click.Context, dry_run: bool) -> None:
    """Add the controller whose settings are in the --command-config file."""
    from barnabas.operations.quorum.controllers import ControllerError, load_controller

    path: Path | None = ctx.obj[2]
    if path is None:
        raise Terse(
            "You must supply the configuration file of the controller you are adding when using add-controller."
        )
    try:
        controller = load_controller(path)
    except ControllerError as error:
        raise Terse(str(error)) from None

    async def work(cluster: Cluster) -> None:
        from barnabas.client.admin.quorum import Quorum

        await Quorum(cluster).add_raft_voter(controller.id, controller.directory_id, controller.endpoints)

    if not dry_run:
        _run(ctx, work)
    done = "DRY RUN of adding" if dry_run else "Added"
    endpoints = ", ".join(map(str, controller.endpoints))
    click.echo(
        f"{done} controller {controller.id} with directory id {controller.directory_id} and endpoints: {endpoints}"
    )


@kafka_metadata_quorum.command("remove-controller")
@click.option("--controller-id", "-i", type=int, required=True, help="The id of the controller.")
@click.option("--controller-directory-id", "-d", required=True, help="The id of its directory.")
@click.option("--dry-run", is_flag=True, help="Show the change without making it.")
@click.pass_context
def remove_controller(ctx: click.Context, controller_id: int, controller_directory_id: str, dry_run: bool) -> None:
    """Remove a controller from the voters."""
    if controller_id < 0:
        raise Terse(f"Invalid negative --controller-id: {controller_id}")
    try:
        directory_id = Uuid.parse(controller_directory_id)
    except ValueError:
        raise Terse(f"Failed to parse --controller-directory-id: {uuid_problem(controller_directory_id)}") from None

    async def work(cluster: Cluster) -> None:
        from barnabas.client.admin.quorum import Quorum

        await Quorum(cluster).remove_raft_voter(controller_id, directory_id)

    if not dry_run:
        _run(ctx, work)
    done = "DRY RUN of removing " if dry_run else "Removed "
    click.echo(f"{done} KRaft controller {controller_id} with directory id {directory_id}")


def _run(ctx: click.Context, work: Callable[[Cluster], Awaitable[Any]]) -> Any:
    servers, controllers, command_config = ctx.obj
    connection = profiles.resolve(
        {}, bootstrap_servers=servers, bootstrap_controllers=controllers, command_config=command_config
    )

    async def guarded(cluster: Cluster) -> Any:
        try:
            return await work(cluster)
        except KafkaError as error:
            raise Terse(exception_text(error)) from None

    return run(connection, guarded)
