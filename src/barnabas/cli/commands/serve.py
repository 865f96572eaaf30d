"""`barnabas serve`: run a node until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import click

from barnabas.cli.ready_file import Announced, announced, prepare_ready_file
from barnabas.config.definitions import ConfigError
from barnabas.config.properties import loads
from barnabas.config.server import EMBEDDED_DEFAULTS, load, on_port, parse_override
from barnabas.config.server_config import ServerConfig


@click.command(short_help="Run a node.")
@click.argument("properties", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting that wins over the file; may be repeated.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The port of the first listener for clients, instead of the one in listeners; 0 takes a free one.",
)
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file that exists while the node answers, with its bootstrap.servers, cluster.id and pid.",
)
@click.option(
    "--read-only",
    "read_only",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Show what is in log dirs that any Kafka node left, without writing a byte; may be repeated.",
)
@click.option(
    "--as-of",
    metavar="OFFSET|TIME",
    help="With --read-only: the metadata after this offset of its log, or at this time (ISO 8601, or milliseconds); "
    "logs are shown whole.",
)
@click.option(
    "--log-level", default="info", type=click.Choice(["debug", "info", "warning", "error"]), show_default=True
)
def serve(
    properties: Path | None,
    overrides: tuple[str, ...],
    port: int | None,
    ready_file: Path | None,
    read_only: tuple[Path, ...],
    as_of: str | None,
    log_level: str,
) -> None:
    """Run a node with the settings of a Kafka server.properties.

    Without a file, one node is broker and controller at once: it listens on 127.0.0.1:9092, keeps its data in ./data,
    and creates internal topics with one replica.

    \b
    barnabas serve
    barnabas serve --override listeners=PLAINTEXT://:19092,CONTROLLER://:19093
    barnabas serve config/server.properties
    barnabas serve --port 0 --ready-file ready.properties --override log.dirs=data-of-this-test
    barnabas serve --read-only /backup/kafka-logs --as-of 2026-01-31T12:30:00Z
    """
    logging.basicConfig(
        level=log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    if as_of is not None and not read_only:
        raise click.UsageError("--as-of is for --read-only.")
    if ready_file is not None:
        prepare_ready_file(ready_file)
    if read_only:
        raise SystemExit(_run(_read_only(properties, overrides, port, read_only, as_of), ready_file))
    try:
        given = None if properties is None else loads(properties.read_text(encoding="utf-8"))
        config = load(given, _chosen(overrides, port, given))
    except (ConfigError, UnicodeDecodeError) as error:
        where = "the embedded default" if properties is None else str(properties)
        raise click.ClickException(f"{where}: {error}") from None
    for warning in config.warnings:
        click.echo(f"warning: {warning}", err=True)
    if properties is None:
        _show_embedded(config)
    from barnabas.broker.node import Node  # noqa: PLC0415  (only this command knows the broker)

    raise SystemExit(_run(lambda: Node(config), ready_file))


def _chosen(overrides: tuple[str, ...], port: int | None, given: Mapping[str, str] | None) -> dict[str, str]:
    chosen = dict(map(parse_override, overrides))
    return chosen if port is None else on_port(port, given, chosen)


class _Node(Announced, Protocol):
    """What is run: a node, or the remains of one."""

    failed: asyncio.Future[None]

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def describe(self) -> Iterator[str]: ...


def _read_only(
    properties: Path | None, overrides: tuple[str, ...], port: int | None, dirs: tuple[Path, ...], as_of: str | None
) -> Callable[[], _Node]:
    from barnabas.broker import read_only_node  # noqa: PLC0415
    from barnabas.broker.node import NodeError  # noqa: PLC0415
    from barnabas.raft.offline_metadata import parse_as_of  # noqa: PLC0415

    try:
        found = read_only_node.find_directories(dirs)
        if properties is not None:
            found = found._replace(properties=loads(properties.read_text(encoding="utf-8")))
        listeners = {"listeners": read_only_node.DEFAULT_LISTENERS, "controller.listener.names": "CONTROLLER"}
        config = read_only_node.read_only_config(found, _chosen(overrides, port, listeners))
        limit = parse_as_of(as_of)
    except (NodeError, ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    return lambda: read_only_node.ReadOnlyNode(found, config, limit)


def _show_embedded(config: ServerConfig) -> None:
    fitted = [
        f"{key}={config.given[key]}"
        for key in EMBEDDED_DEFAULTS
        if "replication" in key or "isr" in key or "delay" in key
    ]
    click.echo("no server.properties given: one node, fitted with " + ", ".join(fitted))


def _run(build: Callable[[], _Node], ready_file: Path | None) -> int:
    from barnabas.broker.allocator import keep_large_blocks  # noqa: PLC0415
    from barnabas.broker.node import NodeError  # noqa: PLC0415

    keep_large_blocks()

    async def main() -> int:
        told = _listen_for_signals()
        node = build()
        try:
            await _first_of(node.start(), told)
            if not told.is_set():
                for line in node.describe():
                    click.echo(line)
                sys.stdout.flush()
                with announced(ready_file, node):
                    await _first_of(told.wait(), told, node.failed)
        except (NodeError, OSError) as error:
            click.echo(f"Error: {error}", err=True)
            await node.stop()
            return 1
        failure = node.failed.exception() if node.failed.done() else None
        if failure is not None:
            click.echo(f"Error: this node cannot go on: {failure}", err=True)
        click.echo("stopping (once more to stop at once)")
        await node.stop()
        return 0 if failure is None else 1

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:  # not on every platform
        return None
    return uvloop.new_event_loop


def _listen_for_signals() -> asyncio.Event:
    """Set at the first SIGINT or SIGTERM; a second one ends the process at once."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()

    def on_signal() -> None:
        if told.is_set():
            os._exit(1)
        told.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    return told


async def _first_of(work: Coroutine[Any, Any, Any], told: asyncio.Event, *failed: asyncio.Future[None]) -> None:
    """Wait for the work, but not longer than until a signal comes or the node cannot go on."""
    working, stopped = asyncio.create_task(work), asyncio.create_task(told.wait())
    either: set[asyncio.Future[Any]] = {working, stopped, *failed}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if working.done():
        working.result()
    else:
        working.cancel()
        await asyncio.wait([working])
