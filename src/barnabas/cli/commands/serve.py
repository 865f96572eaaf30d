"""`barnabas serve`: run a node until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Protocol

import click

from barnabas.config.definitions import ConfigError
from barnabas.config.properties import loads
from barnabas.config.server import EMBEDDED_DEFAULTS, load, parse_override
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
    help="With --read-only: after this offset of the metadata log, or at this time (ISO 8601, or milliseconds).",
)
@click.option(
    "--log-level", default="info", type=click.Choice(["debug", "info", "warning", "error"]), show_default=True
)
def serve(
    properties: Path | None,
    overrides: tuple[str, ...],
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
    barnabas serve --read-only /backup/kafka-logs --as-of 2026-01-31T12:30:00Z
    """
    logging.basicConfig(
        level=log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    if as_of is not None and not read_only:
        raise click.UsageError("--as-of is for --read-only.")
    if read_only:
        raise SystemExit(_run(_read_only(properties, overrides, read_only, as_of)))
    try:
        text = None if properties is None else properties.read_text(encoding="utf-8")
        config = load(text, dict(map(parse_override, overrides)))
    except (ConfigError, UnicodeDecodeError) as error:
        where = "the embedded default" if properties is None else str(properties)
        raise click.ClickException(f"{where}: {error}") from None
    for warning in config.warnings:
        click.echo(f"warning: {warning}", err=True)
    if properties is None:
        _show_embedded(config)
    from barnabas.broker.node import Node  # noqa: PLC0415  (only this command knows the broker)

    raise SystemExit(_run(lambda: Node(config)))


class _Node(Protocol):
    """What is run: a node, or the remains of one."""

    failed: asyncio.Future[None]

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def describe(self) -> Iterator[str]: ...


def _read_only(
    properties: Path | None, overrides: tuple[str, ...], dirs: tuple[Path, ...], as_of: str | None
) -> Callable[[], _Node]:
    from barnabas.broker import read_only_node  # noqa: PLC0415
    from barnabas.broker.node import NodeError  # noqa: PLC0415

    try:
        found = read_only_node.find_directories(dirs)
        if properties is not None:
            found = found._replace(properties=loads(properties.read_text(encoding="utf-8")))
        config = read_only_node.read_only_config(found, dict(map(parse_override, overrides)))
        limit = read_only_node.parse_as_of(as_of)
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


def _run(build: Callable[[], _Node]) -> int:
    from barnabas.broker.node import NodeError  # noqa: PLC0415

    async def main() -> int:
        told = _listen_for_signals()
        node = build()
        try:
            await _first_of(node.start(), told)
        except (NodeError, OSError) as error:
            click.echo(f"Error: {error}", err=True)
            await node.stop()
            return 1
        if not told.is_set():
            for line in node.describe():
                click.echo(line)
            sys.stdout.flush()
            await _first_of(told.wait(), told, node.failed)
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
