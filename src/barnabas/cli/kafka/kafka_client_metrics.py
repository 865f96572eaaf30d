"""`barnabas kafka-client-metrics`: Kafka's script of this name, with its options and its lines."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Any, NoReturn

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.kafka.java_tool import JavaTool, connection_of, refuse
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import note
from barnabas.config.resource_type import ConfigResourceType
from barnabas.wire.errors import KafkaError
from barnabas.wire.primitives import random_uuid

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

_ACTIONS = ("alter", "delete", "describe", "list")
_SETTINGS = {"interval": "interval.ms", "match": "match", "metrics": "metrics"}
# An action, and the options that it cannot be used with, in the order in which Kafka's tool checks them.
_EXCLUSIVE = {
    "list": ("name", "generate-name", "interval", "match", "metrics"),
    "describe": ("generate-name", "interval", "match", "metrics"),
    "delete": ("generate-name", "interval", "match", "metrics"),
}


@click.command(
    "kafka-client-metrics", cls=JavaTool, short_help="Show and change metrics of clients as Kafka's script does."
)
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="Brokers to connect to.")
@click.option("--command-config", metavar="FILE", help="Properties file with client settings.")
@click.option("--alter", is_flag=True, help="Change a subscription.")
@click.option("--delete", is_flag=True, help="Delete a subscription.")
@click.option("--describe", is_flag=True, help="Show subscriptions.")
@click.option("--list", is_flag=True, help="List the names of subscriptions.")
@click.option("--name", metavar="NAME", help="The name of the subscription.")
@click.option("--generate-name", is_flag=True, help="With --alter: choose a new name.")
@click.option("--interval", metavar="MS", help="Time between two pushes; empty resets it.")
@click.option("--match", metavar="KEY=VALUE,...", help="The clients to ask, such as client_id=app.")
@click.option("--metrics", metavar="PREFIX,...", help="Prefixes of the names of metrics.")
@click.pass_context
def kafka_client_metrics(ctx: click.Context, /, **values: Any) -> None:
    """Show and change the subscriptions to client metrics as Kafka's script of this name does.

    See also: barnabas configs describe client-metrics:NAME.
    """
    action = _checked_action(ctx, values)
    config = values["command_config"]
    if config is not None and not Path(config).exists():
        _failed(config)
    name = str(random_uuid(SystemRandom())) if values["generate_name"] else values["name"]

    async def work(cluster: Cluster) -> None:
        if action == "alter":
            given = {_SETTINGS[each]: values[each] for each in _SETTINGS if values[each] is not None}
            await _alter(cluster, name, given)
        elif action == "delete":
            await _delete(cluster, name)
        elif action == "describe":
            await _describe(cluster, name)
        else:
            for each in await _names(cluster):
                click.echo(each)

    try:
        run(connection_of(values["bootstrap_server"], config), work)
    except Failure as failure:
        cause = failure.__cause__
        text = cause.message if isinstance(cause, KafkaError) else failure.message
        click.echo(f"Error while executing client metrics command : {text}")
        sys.exit(EXIT_FAILED)


def _checked_action(ctx: click.Context, values: dict[str, Any]) -> str:
    """Return the action, or exit as Kafka's tool does if the options do not fit together."""
    actions = [each for each in _ACTIONS if values[each]]
    if len(actions) != 1:
        refuse(ctx, "Command must include exactly one action: --alter, --delete, --describe or --list.")
    (action,) = actions
    if values["bootstrap_server"] is None:
        _failed("--bootstrap-server must be specified.")
    for other in _EXCLUSIVE.get(action, ()):
        if values[other.replace("-", "_")] not in (None, False):
            refuse(ctx, f'Option "[{action}]" can\'t be used with option "[{other}]"')
    if action == "alter":
        if (values["name"] is None) != bool(values["generate_name"]):
            _failed("One of --name or --generate-name must be specified with --alter.")
        if values["interval"] and not re.fullmatch(r"[+-]?\d+", values["interval"], re.ASCII):
            _failed("Invalid interval value. Enter an integer, or leave empty to reset.")
    if action == "delete" and values["name"] is None:
        _failed("A client metrics resource name must be specified with --delete.")
    return action


def _failed(message: str) -> NoReturn:
    note(message)
    sys.exit(EXIT_FAILED)


async def _names(cluster: Cluster) -> list[str]:
    from barnabas.client.admin.configs import Configs

    found = await Configs(cluster).list_config_resources([ConfigResourceType.CLIENT_METRICS])
    return [resource.name for resource in found]


async def _configs(cluster: Cluster, name: str) -> dict[str, str]:
    """Return the settings of a subscription; none if it does not exist."""
    from barnabas.client.admin.config_values import ConfigResource
    from barnabas.client.admin.configs import Configs
    from barnabas.client.admin.part import checked

    resource = ConfigResource(ConfigResourceType.CLIENT_METRICS, name)
    found = checked(await Configs(cluster).describe_configs([resource]))[resource]
    return {entry.name: entry.value or "" for entry in found.values()}


async def _change(cluster: Cluster, name: str, values: Mapping[str, str]) -> None:
    """Set these values. An empty value restores the default."""
    from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, ConfigResource
    from barnabas.client.admin.configs import Configs
    from barnabas.client.admin.part import checked

    ops = [
        AlterConfigOp(key, AlterConfigOpType.SET, value)
        if value
        else AlterConfigOp(key, AlterConfigOpType.DELETE, None)
        for key, value in values.items()
    ]
    checked(
        await Configs(cluster).incremental_alter_configs({ConfigResource(ConfigResourceType.CLIENT_METRICS, name): ops})
    )


async def _alter(cluster: Cluster, name: str, given: Mapping[str, str]) -> None:
    await _change(cluster, name, given)
    click.echo(f"Altered client metrics config for {name}.")


async def _delete(cluster: Cluster, name: str) -> None:
    await _change(cluster, name, dict.fromkeys(await _configs(cluster, name), ""))
    click.echo(f"Deleted client metrics config for {name}.")


async def _describe(cluster: Cluster, name: str | None) -> None:
    names = await _names(cluster)
    if name is not None and name not in names:
        click.echo(f"The client metric resource {name} doesn't exist and doesn't have dynamic config.")
        return
    for each in names if name is None else [name]:
        click.echo(f"Client metrics configs for {each} are:")
        for key, value in (await _configs(cluster, each)).items():
            click.echo(f"  {key}={value}")
