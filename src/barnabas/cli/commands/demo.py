"""`barnabas demo`: a node with a small shop in it, the lake over it, and a report to open.

Its one rule: the node comes first. Whatever fails beside it (the shop, Spark that is not there) is said, and the node goes on.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from barnabas.cli.node import in_turn
from barnabas.cli.node.child_processes import Children
from barnabas.cli.node.ready_file import ready_facts
from barnabas.cli.node.running import Restartable, RunningNode, run_node
from barnabas.config.definitions import ConfigError
from barnabas.config.server import load, on_port
from barnabas.config.server_config import ServerConfig
from barnabas.demo.clock import SetBackClock
from barnabas.wire import KafkaError

if TYPE_CHECKING:
    from barnabas.demo.workload import Found

_SETTINGS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
"""There are ACLs to look at, and nobody who comes without a login is refused anything; Kafka's own topics are no larger than
the shop needs them."""


@click.command(short_help="Run a node with something in it, and report on it.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("data"),
    show_default=True,
    help="Where the node keeps its data.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The port for clients, instead of 9092; 0 takes a free one. The controller then takes a free one too.",
)
@click.option(
    "--lake",
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory of the lake.  [default: lake, beside the data]",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory of the report.  [default: report, beside the data]",
)
@click.option("--no-lake", is_flag=True, help="Only the node and the shop: no Spark, no report.")
@click.option(
    "--prepare",
    metavar="COMMAND",
    help="Run this in a shell beside the node before the lake is made: what installs Spark.",
)
def demo(data: Path, port: int | None, lake: Path | None, out: Path | None, no_lake: bool, prepare: str | None) -> None:
    """Run a node as `serve` does, fill it with half a day of a small shop, and report on it.

    The shop has topics, settings that change, ACLs, quotas, transactions, groups that fall behind, and a restart. It moves only
    into a directory in which nothing is, and only once; after that, and in a directory with topics of others, the node is
    served as it is. Then the lake is made of the node's logs, or goes on where it was, and the report is written.

    Without Spark or Java, the node runs all the same, and what is missing is said.

    \b
    Examples:
      barnabas demo
      barnabas demo --data shop/data --port 19092
    """
    from barnabas.broker.surroundings import wall_clock_ms
    from barnabas.demo.workload import begin_ms

    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        _config(data, port)
    except ConfigError as error:
        raise click.ClickException(str(error)) from None
    places = _Places(data, lake or data.parent / "lake", out or data.parent / "report")
    children = Children()
    nodes: list[Restartable] = []

    def build() -> Restartable:
        nodes.append(Restartable(lambda addresses: _node(data, port, addresses, clock)))
        return nodes[0]

    async def beside() -> None:
        preparing = asyncio.create_task(_prepare(children, None if no_lake else prepare))
        try:
            found = await _shop(nodes[0], data, clock)
            await preparing
        finally:
            preparing.cancel()
            await asyncio.wait([preparing])
        if not no_lake:
            await _report(children, places, ready_facts(nodes[0])["bootstrap.servers"], found)

    # A new cluster begins when the shop does. One that exists already stays at the true time.
    is_new = not (data / "meta.properties").exists()
    clock = SetBackClock(begin_ms(wall_clock_ms()) if is_new else None, wall_clock_ms)
    raise SystemExit(run_node(build, beside=beside, at_once=children.kill))


# --- the node


def _config(data: Path, port: int | None) -> ServerConfig:
    overrides = {**_SETTINGS, "log.dirs": str(data)}
    return load(None, overrides if port is None else on_port(port, None, overrides))


def _node(data: Path, port: int | None, addresses: Mapping[str, tuple[str, int]], clock: SetBackClock) -> RunningNode:
    from barnabas.broker.node import Node  # only what runs a node knows the broker
    from barnabas.broker.surroundings import Surroundings

    if port is not None and addresses:
        port = addresses["PLAINTEXT"][1]
    return Node(_config(data, port), Surroundings(now_ms=clock.now_ms))


# --- the shop


async def _shop(node: Restartable, data: Path, clock: SetBackClock) -> Found | None:
    """What was found before, after the shop has moved in if that was nothing; None: it failed."""
    from barnabas.client import Admin
    from barnabas.demo.workload import Found, found, run

    servers = ready_facts(node)["bootstrap.servers"]
    try:
        async with Admin({"bootstrap.servers": servers}) as admin:
            before = await found(admin)
        if before is Found.NOTHING:
            click.echo("\na small shop moves in; this happens once:")
            began_s = time.monotonic()
            await run(servers, node, lambda line: click.echo(f"  {line}"), clock)
            click.echo(f"  done in {time.monotonic() - began_s:.0f} s")
            return before
    except (KafkaError, OSError) as error:
        click.echo(f"the shop could not move in: {error or type(error).__name__}; the node goes on", err=True)
        return None
    finally:
        clock.move_to(clock.true_ms())
    again = f"remove {data} to see it move in again"
    click.echo(
        {
            Found.SHOP: f"\nthe small shop is here already; {again}",
            Found.PART_OF_SHOP: f"\na part of the small shop is here already, it was interrupted; {again}",
        }.get(
            before, f"\n{data} has what is not the demo's: it is served as it is; for the demo: --data DIR, --port PORT"
        )
    )
    return before


# --- the lake and the report


_FOR_LITTLE_DATA: Final = (
    *("--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.sql.adaptive.enabled=false"),
    *("--conf", "spark.sql.codegen.wholeStage=false", "--conf", "spark.sql.codegen.factoryMode=NO_CODEGEN"),
)
"""Compiling a query takes longer than to run it over so few rows."""


class _Places(NamedTuple):
    data: Path
    lake: Path
    out: Path


async def _prepare(children: Children, command: str | None) -> None:
    """Failing is not fatal: what is missing then is said by those who miss it. Of what went wrong, one line is shown."""
    said: list[str] = []
    if command is not None and await children.run(["sh", "-c", command], click.echo, said.append):
        wrong = [line for line in said if "ERROR" in line] or said or ["no reason was given"]
        click.echo(f"not all could be set up: {wrong[-1].strip()}")


async def _report(children: Children, places: _Places, servers: str, found: Found | None) -> None:
    from barnabas.demo.workload import Found

    click.echo(
        f"\nthe lake: Spark makes tables of the node's logs in {places.lake}, and then the report; a minute or more"
    )
    lake = ["--lake", str(places.lake), *_FOR_LITTLE_DATA]
    run = ["lake", "run", str(places.data), "--observe", "--bootstrap-server", servers, *lake]
    if found is not Found.OTHERS:  # which may be as large as they like
        run.append("--traffic")
    said: list[str] = []

    def note(line: str) -> None:
        said.append(line)
        if not line.startswith(("Error:", "Try:", "wrote ")):
            click.echo(f"  {line}")

    began_s = time.monotonic()
    command = [*run, in_turn.THEN, "lake", "report", "--out", str(places.out), *lake]
    if await children.run([sys.executable, "-P", "-m", in_turn.__name__, *command], click.echo, note):
        wrong = [line.partition(":")[2].strip() for line in said if line.startswith(("Error:", "Try:"))] or said[-1:]
        click.echo(f"no report: {'; try: '.join(wrong) or 'it ended without a word'}")
        click.echo("the node runs on; when that is mended, start the demo again")
        return
    click.echo(f"  done in {time.monotonic() - began_s:.0f} s")
    _show_next(places)


def _show_next(places: _Places) -> None:
    click.echo(f"\nthe report: {(places.out / 'index.html').absolute().as_uri()}")
    click.echo("while the node runs, in another terminal:")
    of_lake = "" if places.lake == Path("lake") else f" --lake {places.lake}"
    for command, answer in (
        ("changes --kind configs", "which settings were changed, in words"),
        ("audit acls", "which ACLs are too wide, without effect, or for what is gone"),
        ("plan partitions", "how many partitions topics should have, and why"),
    ):
        text = f"{_program()} lake {command}{of_lake}"
        click.echo(f"  {text:<48} {answer}")


def _program() -> str:
    """How the command is called from here."""
    program = Path(sys.argv[0])
    if shutil.which("barnabas") or program.name != "barnabas":
        return "barnabas"
    with suppress(ValueError):
        return str(program.absolute().relative_to(Path.cwd()))
    return str(program)
