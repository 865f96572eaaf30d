"""`barnabas security`: create the files of a secured node.

Parses arguments and prints; the work is in `operations.security.files`, and formatting in the tool of kafka-storage.
Passwords are written to files that only their owner can read, and never printed.
"""

from __future__ import annotations

import time
from pathlib import Path

import click

from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.failures import failures


@click.group(cls=CommandGroup, short_help="Create the files of a node with TLS, logins and ACLs.")
def security() -> None:
    """Create the files of a node with TLS, logins and ACLs.

    \b
    Examples:
      barnabas security init secured
      barnabas security init secured --host kafka.example.com --user alice --user bob
    """


@security.command("init")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@click.option(
    "--host", "hosts", multiple=True, metavar="HOST", help="Name or address of the node. [default: localhost]"
)
@click.option("--port", type=click.IntRange(1, 65534), default=9092, show_default=True, help="Port for clients.")
@click.option("--user", "users", multiple=True, metavar="NAME", help="A user beside admin. May be repeated.")
def init(folder: Path, hosts: tuple[str, ...], port: int, users: tuple[str, ...]) -> None:
    """Create a secured node in a new folder: certificates, users, settings and a formatted data directory.

    Clients need TLS and log in with SCRAM-SHA-512. `admin` may do everything; other users may do what ACLs allow. The next
    port is that of the controller. Nothing is started, and Apache Kafka can run the node as well.
    """
    from random import SystemRandom

    from barnabas.cli.kafka.kafka_storage.tool import FormatOptions, format_storage
    from barnabas.config import server
    from barnabas.operations.security.files import MECHANISM, create_secured_node
    from barnabas.wire import random_uuid

    with failures(str(folder)):
        node = create_secured_node(folder, hosts, port, users)
        random = SystemRandom()
        options = FormatOptions(
            cluster_id=str(random_uuid(random)),
            is_standalone=True,
            scram=tuple(f'{MECHANISM}=[name={user},password="{pw}"]' for user, pw in node.passwords.items()),
        )
        config = server.load(node.server_properties.read_text(encoding="utf-8"))
        format_storage(config, options, random, lambda: time.time_ns() // 1_000_000, lambda line: None)
    click.echo(f"created {node.folder}: certificates, users, settings and an empty cluster")
    click.echo(f"  start    barnabas serve {node.server_properties}")
    click.echo(f"  use      BARNABAS_CONFIG={node.profiles} barnabas topics list")
    click.echo(f"  clients  {node.folder / 'clients'}: a file of settings for each user")
    click.echo("  keep     ca.key in a safe place: whoever has it can sign certificates")
