"""`barnabas kafka-broker-api-versions`: Kafka's script of this name, with its options and its lines."""

from __future__ import annotations

from collections.abc import Mapping

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.kafka.java_tool import JavaTool, connection_of, refuse
from barnabas.client.admin.brokers import Brokers
from barnabas.client.cluster import Cluster
from barnabas.client.state import Node
from barnabas.client.versions import NodeVersions
from barnabas.wire import APIS
from barnabas.wire.errors import KafkaError
from barnabas.wire.schema import Versions


@click.command("kafka-broker-api-versions", cls=JavaTool, short_help="Versions of APIs as Kafka's script prints them.")
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="Brokers to connect to.")
@click.option("--command-config", metavar="FILE", help="Properties file with client settings.")
@click.pass_context
def kafka_broker_api_versions(ctx: click.Context, bootstrap_server: str | None, command_config: str | None) -> None:
    """Print the versions of APIs that brokers serve as Kafka's script of this name does.

    See also: barnabas cluster api-versions.
    """
    if bootstrap_server is None:
        refuse(ctx, 'Missing required argument "[bootstrap-server]"')
    connection = connection_of(bootstrap_server, command_config)

    async def work(cluster: Cluster) -> tuple[tuple[Node, ...], Mapping[int, NodeVersions | KafkaError]]:
        nodes = (await Brokers(cluster).describe_cluster()).nodes
        return nodes, await Brokers(cluster).api_versions(node.id for node in nodes)

    nodes, versions = run(connection, work)
    for node in nodes:
        found = versions[node.id]
        said = f"ERROR: {found.message}" if isinstance(found, KafkaError) else versions_text(found.ranges)
        fenced = str(node.is_fenced).lower()
        rack = node.rack or "null"
        click.echo(f"{node.host}:{node.port} (id: {node.id} rack: {rack} isFenced: {fenced}) -> {said}")


def versions_text(offered: Mapping[int, Versions]) -> str:
    """Format the APIs that a node offers, and the broker APIs of Kafka 4.3.1 that it does not."""
    lines = {key: _line(key, versions) for key, versions in offered.items()}
    for key, api in APIS.items():
        if key not in lines and "broker" in api.listeners:
            lines[key] = f"{api.name}({key}): UNSUPPORTED"
    joined = ",\n\t".join(line for _, line in sorted(lines.items()))
    return f"(\n\t{joined}\n)"


def _line(key: int, offered: Versions) -> str:
    api = APIS.get(key)
    name = "UNKNOWN" if api is None else api.name
    shown = str(offered.first) if offered.first == offered.last else f"{offered.first} to {offered.last}"
    if api is None:
        return f"{name}({key}): {shown}"
    if api.kafka.last < offered.first:
        usable = "[unusable: node too new]"
    elif offered.last < api.kafka.first:
        usable = "[unusable: node too old]"
    else:
        usable = f"[usable: {min(api.kafka.last, offered.last)}]"
    return f"{name}({key}): {shown} {usable}"
