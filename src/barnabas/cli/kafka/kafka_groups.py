"""`barnabas kafka-groups`: Kafka's script of this name, with its options and its lines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.kafka.java_text import hash_order, padded, string_hash
from barnabas.cli.kafka.java_tool import JavaTool, connection_of, refuse
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import note
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.groups import GroupListing
    from barnabas.client.cluster import Cluster

_TYPES = ("consumer", "classic", "share", "streams")
_MIN_WIDTH = 20
# An option, and those that it cannot be used with, in the order in which Kafka's tool checks them.
_EXCLUSIVE = {
    "consumer": ("group-type", "protocol", "share", "streams"),
    "share": ("consumer", "group-type", "protocol", "streams"),
    "streams": ("consumer", "group-type", "protocol", "share"),
}


@click.command("kafka-groups", cls=JavaTool, short_help="List groups of all types as Kafka's script does.")
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="Brokers to connect to.")
@click.option("--command-config", metavar="FILE", help="Properties file with client settings.")
@click.option("--list", "list_", is_flag=True, help="List groups.")
@click.option("--group-type", metavar="TYPE", help="Only groups of this type: classic, consumer, share or streams.")
@click.option("--protocol", metavar="PROTOCOL", help="Only groups with this protocol type.")
@click.option("--consumer", is_flag=True, help="Only consumer groups of both protocols, and groups with offsets only.")
@click.option("--share", is_flag=True, help="Only share groups.")
@click.option("--streams", is_flag=True, help="Only streams groups.")
@click.pass_context
def kafka_groups(ctx: click.Context, /, **values: Any) -> None:
    """List groups of all types as Kafka's script of this name does. See also: barnabas groups list."""
    if values["bootstrap_server"] is None:
        refuse(ctx, "Missing required option(s) [bootstrap-server]")
    if not values["list_"]:
        refuse(ctx, "Command must include exactly one action: --list.")
    group_type = values["group_type"]
    if group_type is not None and group_type.lower() not in _TYPES:
        _failed("--group-type must be a valid group type.")
    for option, others in _EXCLUSIVE.items():
        for other in others:
            if values[option] and values[other.replace("-", "_")]:
                refuse(ctx, f'Option "[{option}]" can\'t be used with option "[{other}]"')
    config = values["command_config"]
    if config is not None and not Path(config).exists():
        _failed(config)
    try:
        groups = run(connection_of(values["bootstrap_server"], config), _list)
    except Failure as failure:
        cause = failure.__cause__
        click.echo(
            f"Error while executing groups command : {cause.message if isinstance(cause, KafkaError) else failure.message}"
        )
        sys.exit(EXIT_FAILED)
    by_id = {group.group_id: group for group in groups}
    ordered = [by_id[group_id] for group_id in hash_order(by_id, string_hash)]
    rows = [(each.group_id, each.type or "", each.protocol_type) for each in ordered if _is_wanted(each, values)]
    width = max((_MIN_WIDTH, *(len(cell) for row in rows for cell in row)))
    click.echo(padded(("GROUP", "TYPE", "PROTOCOL"), (width,) * 3))
    for row in rows:
        click.echo("".join(f"{cell:<{width}} " for cell in row))


async def _list(cluster: Cluster) -> list[GroupListing]:
    from barnabas.client.admin.groups import Groups

    return await Groups(cluster).list_groups()


def _is_wanted(group: GroupListing, values: dict[str, Any]) -> bool:
    kind, protocol = (group.type or "").lower(), values["protocol"]
    if values["group_type"] is not None:
        return kind == values["group_type"].lower() and protocol in (None, group.protocol_type)
    if protocol is not None:
        return bool(group.protocol_type == protocol)
    if values["consumer"]:
        return group.protocol_type in ("consumer", "") or kind == "consumer"
    if values["share"] or values["streams"]:
        return kind == ("share" if values["share"] else "streams")
    return True


def _failed(message: str) -> NoReturn:
    note(message)
    sys.exit(EXIT_FAILED)
