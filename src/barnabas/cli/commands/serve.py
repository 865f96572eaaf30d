"""`barnabas serve`: run a node until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from barnabas.config.definitions import ConfigError
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
    "--log-level", default="info", type=click.Choice(["debug", "info", "warning", "error"]), show_default=True
)
def serve(properties: Path | None, overrides: tuple[str, ...], log_level: str) -> None:
    """Run a node with the settings of a Kafka server.properties.

    Without a file, one node is broker and controller at once: it listens on 127.0.0.1:9092, keeps its data in ./data,
    and creates internal topics with one replica.

    \b
    barnabas serve
    barnabas serve --override listeners=PLAINTEXT://:19092,CONTROLLER://:19093
    barnabas serve config/server.properties
    """
    logging.basicConfig(
        level=log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
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
    raise SystemExit(_run(config))


def _show_embedded(config: ServerConfig) -> None:
    fitted = [
        f"{key}={config.given[key]}"
        for key in EMBEDDED_DEFAULTS
        if "replication" in key or "isr" in key or "delay" in key
    ]
    click.echo("no server.properties given: one node, fitted with " + ", ".join(fitted))


def _run(config: ServerConfig) -> int:
    from barnabas.broker.node import Node, NodeError  # noqa: PLC0415  (only this command knows the broker)

    async def main() -> int:
        node = Node(config)
        try:
            await node.start()
        except (NodeError, OSError) as error:
            click.echo(f"Error: {error}", err=True)
            await node.stop()
            return 1
        for line in node.describe():
            click.echo(line)
        sys.stdout.flush()
        failure = await _told_to_stop(node.failed)
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


async def _told_to_stop(failed: asyncio.Future[None]) -> BaseException | None:
    """Returns at the first SIGINT or SIGTERM, or when the node cannot go on; a second signal ends the process at once."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()

    def on_signal() -> None:
        if told.is_set():
            os._exit(1)
        told.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    waiting = asyncio.create_task(told.wait())
    either: set[asyncio.Future[Any]] = {waiting, failed}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if not failed.done():
        return None
    told.set()
    waiting.cancel()
    return failed.exception()
