"""`barnabas kafka-cluster`: Kafka's script of this name, with its commands, its options and its lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from barnabas.cli.connection import profiles
from barnabas.cli.connection.connecting import run
from barnabas.cli.kafka.argparse_tool import INTEGER, ArgparseGroup
from barnabas.cli.kafka.java_text import exception_text, padded
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import note
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

_PROGRAM = "kafka-cluster"
_SERVER, _CONTROLLER = "--bootstrap-server/-b", "--bootstrap-controller/-C"
_DEPRECATED = (
    "Option --config has been deprecated and will be removed in a future version. Use --command-config instead."
)
_WIDTH, _TYPE_WIDTH = 10, 15

Work = Callable[["Cluster"], Coroutine[Any, Any, str]]


@click.group(
    "kafka-cluster",
    cls=ArgparseGroup,
    program=_PROGRAM,
    context_settings={"help_option_names": ["-h", "--help"]},
    short_help="Show the id and the endpoints of a cluster as Kafka's script does.",
)
def kafka_cluster() -> None:
    """Show the id and the endpoints of a cluster, and unregister brokers, as Kafka's script of this name does.

    See also: barnabas cluster.
    """


def _connection_options(command: Any) -> Any:
    for option in (
        click.option("--bootstrap-server", "-b", metavar="HOST:PORT,...", help="Brokers to connect to."),
        click.option("--bootstrap-controller", "-C", metavar="HOST:PORT,...", help="Controllers to connect to."),
        click.option("--config", metavar="FILE", help="(Deprecated) Same as --command-config."),
        click.option("--command-config", "-c", metavar="FILE", help="Properties file with client settings."),
    ):
        command = option(command)
    return command


@kafka_cluster.command("cluster-id")
@_connection_options
def cluster_id(**given: str | None) -> None:
    """Show the id of the cluster."""

    async def work(cluster: Cluster) -> str:
        from barnabas.client.admin.brokers import Brokers

        found = (await Brokers(cluster).describe_cluster()).cluster_id
        if found is None:
            return "No cluster ID found. The Kafka version is probably too old."
        return f"Cluster ID: {found}"

    _run(given, work)


@kafka_cluster.command("unregister")
@click.option("--id", "-i", "broker_id", type=INTEGER, required=True, help="The broker to unregister.")
@_connection_options
def unregister(broker_id: int, **given: str | None) -> None:
    """Remove the registration of a broker."""

    async def work(cluster: Cluster) -> str:
        from barnabas.client.admin.brokers import Brokers
        from barnabas.client.errors import UnsupportedByNodeError

        try:
            await Brokers(cluster).unregister_broker(broker_id)
        except UnsupportedByNodeError:
            return "The target cluster does not support the broker unregistration API."
        return f"Broker {broker_id} is no longer registered."

    _run(given, work)


@kafka_cluster.command("list-endpoints")
@click.option("--include-fenced-brokers", is_flag=True, help="Also list fenced brokers.")
@_connection_options
def list_endpoints(include_fenced_brokers: bool, **given: str | None) -> None:
    """List the endpoints of brokers, or of controllers."""

    async def work(cluster: Cluster) -> str:
        from barnabas.client.admin.brokers import Brokers

        found = await Brokers(cluster).describe_cluster(include_fenced_brokers=include_fenced_brokers)
        widest = max((len(node.host) for node in found.nodes), default=_WIDTH)
        widths = (_WIDTH, widest, _WIDTH, _WIDTH)
        if found.has_controllers:
            titles, kind = ("ID", "HOST", "PORT", "RACK", "ENDPOINT_TYPE"), "controller"
            rows = [(node.id, node.host, node.port, node.rack or "null", kind) for node in found.nodes]
            return "\n".join(padded(row, (*widths, _TYPE_WIDTH)) for row in (titles, *rows))
        lines: list[tuple[object, ...]] = [("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")]
        for node in found.nodes:
            state = "fenced" if node.is_fenced else "unfenced"
            lines.append((node.id, node.host, node.port, node.rack or "null", state, "broker"))
        return "\n".join(padded(row, (*widths, _WIDTH, _TYPE_WIDTH)) for row in lines)

    _run(given, work, only_brokers=include_fenced_brokers)


def _run(given: dict[str, str | None], work: Work, *, only_brokers: bool = False) -> None:
    """Run the work, and print its result or Kafka's error message."""
    servers, controllers = given["bootstrap_server"], given["bootstrap_controller"]
    if servers is not None and controllers is not None:
        raise click.UsageError(
            f"argument {_CONTROLLER}: not allowed with argument {_SERVER}", click.get_current_context()
        )
    if servers is None and controllers is None:
        text = f"one of the arguments {_SERVER} {_CONTROLLER} is required"
        raise click.UsageError(text, click.get_current_context())
    old, new = given["config"], given["command_config"]
    if old is not None and new is not None:
        _failed("--config and --command-config cannot be specified together.")
    if old is not None:
        click.echo(_DEPRECATED)
    path = new or old
    if path is not None and not Path(path).exists():
        _failed(path)
    if only_brokers and servers is None:
        _failed("The option --include-fenced-brokers is only supported with --bootstrap-server option")
    try:
        connection = profiles.resolve(
            {},
            bootstrap_servers=servers,
            bootstrap_controllers=controllers,
            command_config=None if path is None else Path(path),
        )
        click.echo(run(connection, work))
    except Failure as failure:
        cause = failure.__cause__
        _failed(exception_text(cause) if isinstance(cause, KafkaError) else failure.message)


def _failed(message: str) -> NoReturn:
    note(message)
    sys.exit(EXIT_FAILED)
