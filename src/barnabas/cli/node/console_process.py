"""The console beside a node, in a process of its own: pages never keep the node's event loop busy.

Its one rule: the node comes first. A console that cannot be started or ends is reported in a line, and the node keeps running.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from barnabas.cli.node import in_turn
from barnabas.cli.node.child_processes import Children
from barnabas.cli.node.ready_file import Announced, ready_facts
from barnabas.config.server_config import ServerConfig
from barnabas.operations.audit_trail import AUDIT_LOG_PATH

_TRUST = ("ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.password", "ssl.truststore.certificates")


async def run_console(children: Children, node: Announced, listen: str, options: Sequence[str] = ()) -> None:
    """Run a console for this node until it ends or this is cancelled."""
    servers = ready_facts(node).get("bootstrap.servers")
    if servers is None:
        click.echo("no console: this node is no broker", err=True)
        return
    with TemporaryDirectory(prefix="barnabas-console-") as folder:
        words = ["console", "-b", servers, "--listen", listen, *_config_option(node.config, Path(folder)), *options]
        if audit_log := node.config.get_str(AUDIT_LOG_PATH):
            words += ["--audit-log", audit_log]
        said: list[str] = []
        command = [sys.executable, "-P", "-m", in_turn.__name__, *words]
        await children.run(command, lambda line: click.echo(f"  {line}"), said.append)
    wrong = "; ".join(line.partition(":")[2].strip() for line in said if line.startswith(("Error:", "Try:")))
    click.echo(f"the console has ended: {wrong or (said or ['it said nothing'])[-1]}; the node keeps running", err=True)


def _config_option(config: ServerConfig, folder: Path) -> list[str]:
    """Write the settings of a client, if they are not the default, and return the option that names the file."""
    settings = dict(client_settings(config))
    if settings == {"security.protocol": "PLAINTEXT"}:
        return []
    file = folder / "client.properties"
    file.touch(mode=0o600)
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return ["--command-config", str(file)]


def client_settings(config: ServerConfig) -> Iterator[tuple[str, str]]:
    """Yield the settings of a client of the first client listener: its protocol, and whom to trust. Users log in themselves."""
    first = next(each for each in config.listeners if each.listener_name not in config.controller_listener_names)
    protocol = first.security_protocol
    yield "security.protocol", protocol
    if protocol.endswith("SSL"):
        for name in _TRUST:
            value = config.for_listener(first.listener_name, name)
            if value is not None:
                yield name, str(value)
    if protocol.startswith("SASL_"):
        enabled = config.for_listener(first.listener_name, "sasl.enabled.mechanisms")
        yield "sasl.mechanism", str(enabled[0]) if isinstance(enabled, list | tuple) and enabled else "SCRAM-SHA-512"
