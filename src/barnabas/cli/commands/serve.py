"""`barnabas serve`: run a node until SIGINT or SIGTERM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import click

from barnabas.cli.node.child_processes import Children
from barnabas.cli.node.console_process import run_console
from barnabas.cli.node.log_lines import begin_logging
from barnabas.cli.node.ready_file import prepare_ready_file
from barnabas.cli.node.running import RunningNode, run_node
from barnabas.cli.terminal.parsing import moment_or_none
from barnabas.cli.terminal.repeated_options import unique_keys
from barnabas.config.definitions import ConfigError
from barnabas.config.properties import loads
from barnabas.config.server import EMBEDDED_DEFAULTS, METRICS_LISTENER, load, on_port, parse_override
from barnabas.config.server_config import ServerConfig
from barnabas.config.unsupported import check_supported
from barnabas.metadata.as_of import AsOf


@click.command(short_help="Run a node: a broker, a controller or both.")
@click.argument("properties", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Setting that overrides the file; may be repeated.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port of the first client listener, instead of the one in listeners; 0 picks a free one.",
)
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File that exists while the node is ready, with its bootstrap.servers, cluster.id and pid.",
)
@click.option(
    "--read-only",
    "read_only",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Serve the log dirs of a stopped Kafka or barnabas node without writing to them; may be repeated.",
)
@click.option(
    "--as-of",
    metavar="OFFSET|TIME|AGE",
    callback=moment_or_none,
    help="With --read-only, serve the metadata as of this offset of the metadata log, or this time (ISO 8601, "
    "milliseconds since 1970, or an age such as 1h). Records of topics are served in full.",
)
@click.option(
    "--metrics",
    metavar="[HOST]:PORT",
    help="Serve metrics in Prometheus' format and health checks over HTTP at this address; :0 picks a free port of "
    "127.0.0.1. The same as barnabas.metrics.listener.",
)
@click.option(
    "--console",
    "console",
    metavar="[HOST:]PORT",
    help="Show the cluster in a browser at this address, in a process of its own; 0 picks a free port of 127.0.0.1. "
    "For more options see barnabas console.",
)
@click.option(
    "--log-level",
    default="info",
    type=click.Choice(["debug", "info", "warning", "error"]),
    show_default=True,
    help="Level of messages on standard error.",
)
def serve(
    properties: Path | None,
    overrides: tuple[str, ...],
    port: int | None,
    ready_file: Path | None,
    read_only: tuple[Path, ...],
    as_of: AsOf | None,
    metrics: str | None,
    console: str | None,
    log_level: str,
) -> None:
    """Run a node with the settings of a Kafka server.properties.

    Without a file, the node is both broker and controller. It listens on 127.0.0.1:9092, stores its data in ./data, and
    creates internal topics with one replica.

    \b
    Examples:
      barnabas serve
      barnabas serve --override listeners=PLAINTEXT://:19092,CONTROLLER://:19093
      barnabas serve config/server.properties
      barnabas serve --port 0 --ready-file ready.properties --override log.dirs=data-of-this-test
      barnabas serve --metrics :9404
      barnabas serve --console 8080
      barnabas serve --read-only /backup/kafka-logs --as-of 2026-01-31T12:30:00Z
    """
    begin_logging(log_level.upper())
    if as_of is not None and not read_only:
        raise click.UsageError("--as-of can only be used with --read-only.")
    if metrics is not None:
        if read_only:
            raise click.UsageError("--metrics cannot be used with --read-only.")
        overrides = (*overrides, f"{METRICS_LISTENER}={metrics}")
    if ready_file is not None:
        prepare_ready_file(ready_file)
    if read_only:
        raise SystemExit(_run(_read_only(properties, overrides, port, read_only, as_of), ready_file, console))
    try:
        given = None if properties is None else loads(properties.read_text(encoding="utf-8"))
        config = load(given, _chosen(overrides, port, given))
        check_supported(config)
    except (ConfigError, UnicodeDecodeError) as error:
        where = "default settings" if properties is None else str(properties)
        raise click.ClickException(f"{where}: {error}") from None
    for warning in config.warnings:
        click.echo(f"warning: {warning}", err=True)
    if properties is None:
        _show_embedded(config)
    from barnabas.broker.node import Node  # only commands that run a node import the broker

    raise SystemExit(_run(lambda: Node(config), ready_file, console))


def _run(build: Callable[[], RunningNode], ready_file: Path | None, console: str | None) -> int:
    """Run a node, with a console beside it if that is asked for."""
    if console is None:
        return run_node(build, ready_file)
    children = Children()
    nodes: list[RunningNode] = []

    def build_and_keep() -> RunningNode:
        nodes.append(build())
        return nodes[0]

    async def beside() -> None:
        await run_console(children, nodes[0], console if ":" in console else f"127.0.0.1:{console}")

    return run_node(build_and_keep, ready_file, beside=beside, at_once=children.kill)


def _chosen(overrides: tuple[str, ...], port: int | None, given: Mapping[str, str] | None) -> dict[str, str]:
    chosen = unique_keys(map(parse_override, overrides), "--override")
    return chosen if port is None else on_port(port, given, chosen)


def _read_only(
    properties: Path | None, overrides: tuple[str, ...], port: int | None, dirs: tuple[Path, ...], as_of: AsOf | None
) -> Callable[[], RunningNode]:
    from barnabas.broker import read_only_node
    from barnabas.broker.node import NodeError
    from barnabas.metadata.as_of import EVERYTHING

    try:
        found = read_only_node.find_directories(dirs)
        if properties is not None:
            found = found._replace(properties=loads(properties.read_text(encoding="utf-8")))
        listeners = {"listeners": read_only_node.DEFAULT_LISTENERS, "controller.listener.names": "CONTROLLER"}
        config = read_only_node.read_only_config(found, _chosen(overrides, port, listeners))
    except (ConfigError, NodeError, ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    return lambda: read_only_node.ReadOnlyNode(found, config, as_of or EVERYTHING)


def _show_embedded(config: ServerConfig) -> None:
    fitted = [
        f"{key}={config.given[key]}"
        for key in EMBEDDED_DEFAULTS
        if "replication" in key or "isr" in key or "delay" in key
    ]
    click.echo("no server.properties given; defaults for a single node: " + ", ".join(fitted))
