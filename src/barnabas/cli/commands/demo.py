"""`barnabas demo`: a node with example data of a small shop, a lake of its logs, and an HTML report.

Its one rule: the node comes first. If anything else fails (loading the shop, Spark), an error is printed and the node keeps
running.
"""

from __future__ import annotations

import asyncio
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
from barnabas.cli.node.console_process import run_console
from barnabas.cli.node.log_lines import begin_logging
from barnabas.cli.node.ready_file import ready_facts
from barnabas.cli.node.running import Restartable, RunningNode, run_node
from barnabas.config.definitions import ConfigError
from barnabas.config.server import METRICS, METRICS_LISTENER, load, on_port
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
"""The authorizer is on so that there are ACLs to show; ANONYMOUS is a super user so that no client is rejected. Internal topics
are as small as the shop allows."""
METRICS_PORT: Final = 9404
CONSOLE_PORT: Final = 8080


@click.command(short_help="Run a node with example data, and write a report on it.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("data"),
    show_default=True,
    help="Directory for the node's data.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port for clients; 0 picks a free one. If given, the ports of the controller, metrics and console are free ones.  "
    "[default: 9092; metrics: 9404; console: 8080]",
)
@click.option(
    "--lake",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the lake.  [default: lake, beside the data directory]",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the report.  [default: report, beside the data directory]",
)
@click.option("--no-console", is_flag=True, help="Do not show the cluster in a browser.")
@click.option("--no-lake", is_flag=True, help="Run only the node and the shop: no Spark, no report.")
@click.option(
    "--prepare",
    metavar="COMMAND",
    help="Shell command to run before the lake is built, while the node starts; for example to install Spark.",
)
def demo(
    data: Path,
    port: int | None,
    lake: Path | None,
    out: Path | None,
    no_console: bool,
    no_lake: bool,
    prepare: str | None,
) -> None:
    """Run a node as `serve` does, load half a day of data from a small example shop, and write a report on it.

    The shop has topics, changing settings, ACLs, quotas, transactions, groups that fall behind, and a restart. It is loaded
    only into an empty data directory; a directory that has data already is served unchanged. Then Spark builds or updates
    the lake from the node's logs, and the report is written.

    The console shows the cluster in a browser while the node runs; its address is printed.

    Without Spark or Java the node still runs, and a message names what is missing.

    \b
    Examples:
      barnabas demo
      barnabas demo --data shop/data --port 19092
    """
    from barnabas.broker.surroundings import wall_clock_ms
    from barnabas.demo.workload import begin_ms

    begin_logging("WARNING")
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
        tasks = [preparing]
        try:
            found = await _shop(nodes[0], data, clock)
            if not no_console:
                tasks.append(asyncio.create_task(_console(children, nodes[0], port, None if no_lake else places)))
            await preparing
            if not no_lake:
                await _report(children, places, ready_facts(nodes[0])["bootstrap.servers"], found)
            await asyncio.wait(tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    # The clock of a new cluster starts at the shop's first event. An existing cluster uses the real time.
    is_new = not (data / "meta.properties").exists()
    clock = SetBackClock(begin_ms(wall_clock_ms()) if is_new else None, wall_clock_ms)
    raise SystemExit(run_node(build, beside=beside, at_once=children.kill))


# --- the node


def _config(data: Path, port: int | None, metrics_port: int | None = None) -> ServerConfig:
    if metrics_port is None:
        metrics_port = METRICS_PORT if port is None else 0
    overrides = {**_SETTINGS, "log.dirs": str(data), METRICS_LISTENER: f":{metrics_port}"}
    return load(None, overrides if port is None else on_port(port, None, overrides))


def _node(data: Path, port: int | None, addresses: Mapping[str, tuple[str, int]], clock: SetBackClock) -> RunningNode:
    from barnabas.broker.node import Node  # only commands that run a node import the broker
    from barnabas.broker.surroundings import Surroundings

    metrics_port = None
    if port is not None and addresses:
        port, metrics_port = addresses["PLAINTEXT"][1], addresses[METRICS][1]
    return Node(_config(data, port, metrics_port), Surroundings(now_ms=clock.now_ms))


# --- the shop


async def _shop(node: Restartable, data: Path, clock: SetBackClock) -> Found | None:
    """Load the shop if the node is empty. Return what the node held before, or None if that failed."""
    from barnabas.client import Admin
    from barnabas.demo.workload import Found, found, run

    servers = ready_facts(node)["bootstrap.servers"]
    try:
        async with Admin({"bootstrap.servers": servers}) as admin:
            before = await found(admin)
        if before is Found.NOTHING:
            click.echo("\nloading the example shop; this happens once:")
            began_s = time.monotonic()
            await run(servers, node, lambda line: click.echo(f"  {line}"), clock)
            click.echo(f"  done in {time.monotonic() - began_s:.0f} s")
            return before
    except (KafkaError, OSError) as error:
        click.echo(f"loading the shop failed: {error or type(error).__name__}; the node keeps running", err=True)
        return None
    finally:
        clock.move_to(clock.true_ms())
    again = f"remove {data} to load it again"
    click.echo(
        {
            Found.SHOP: f"\nthe example shop was loaded before; {again}",
            Found.PART_OF_SHOP: f"\nthe example shop was loaded only in part, loading was interrupted; {again}",
        }.get(
            before,
            f"\n{data} has other data and is served unchanged; to load the shop use another --data DIR and --port",
        )
    )
    return before


# --- the console


async def _console(children: Children, node: Restartable, port: int | None, places: _Places | None) -> None:
    """Show the cluster in a browser, once the shop is loaded; loading restarts the node."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        click.echo(f"no console: {error.name} is not installed; try: pip install 'barnabas[console]'")
        return
    options = () if places is None else ("--lake", str(places.lake), "--report", str(places.out))
    await run_console(children, node, f"127.0.0.1:{CONSOLE_PORT if port is None else 0}", options)


# --- the lake and the report


_FOR_LITTLE_DATA: Final = (
    *("--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.sql.adaptive.enabled=false"),
    *("--conf", "spark.sql.codegen.wholeStage=false", "--conf", "spark.sql.codegen.factoryMode=NO_CODEGEN"),
)
"""With so few rows, compiling a query takes longer than running it."""


class _Places(NamedTuple):
    data: Path
    lake: Path
    out: Path


async def _prepare(children: Children, command: str | None) -> None:
    """Run the --prepare command. If it fails, print one line of its errors and continue."""
    said: list[str] = []
    if command is not None and await children.run(["sh", "-c", command], click.echo, said.append):
        wrong = [line for line in said if "ERROR" in line] or said or ["it printed nothing"]
        click.echo(f"the --prepare command failed: {wrong[-1].strip()}")


async def _report(children: Children, places: _Places, servers: str, found: Found | None) -> None:
    from barnabas.demo.workload import Found

    click.echo(
        f"\nbuilding the lake in {places.lake} from the node's logs, then the report; Spark needs a minute or more"
    )
    lake = ["--lake", str(places.lake), *_FOR_LITTLE_DATA]
    run = ["lake", "run", str(places.data), "--observe", "--bootstrap-server", servers, *lake]
    if found is not Found.OTHERS:  # data of others may be large
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
        click.echo(f"no report: {'; try: '.join(wrong) or 'the process ended without a message'}")
        click.echo("the node keeps running; fix this and start the demo again to get the report")
        return
    click.echo(f"  done in {time.monotonic() - began_s:.0f} s")
    _show_next(places)


def _show_next(places: _Places) -> None:
    click.echo(f"\nthe report: {(places.out / 'index.html').absolute().as_uri()}")
    click.echo("while the node runs, in another terminal:")
    of_lake = "" if places.lake == Path("lake") else f" --lake {places.lake}"
    for command, answer in (
        ("changes --kind configs", "changes of settings, as sentences"),
        ("audit acls", "ACLs that allow too much, have no effect or name deleted resources"),
        ("plan partitions", "how many partitions topics should have, and why"),
    ):
        text = f"{_program()} lake {command}{of_lake}"
        click.echo(f"  {text:<48} {answer}")


def _program() -> str:
    """Return how to call this command in the user's shell."""
    program = Path(sys.argv[0])
    if shutil.which("barnabas") or program.name != "barnabas":
        return "barnabas"
    with suppress(ValueError):
        return str(program.absolute().relative_to(Path.cwd()))
    return str(program)
