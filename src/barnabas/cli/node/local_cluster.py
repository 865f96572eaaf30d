"""The commands of `barnabas cluster` that run a cluster on this machine, one process per node.

Parses arguments and prints rows; directories, processes and questions are in `operations.local_cluster`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection.options import output_options, yes_option
from barnabas.cli.terminal.changes import confirm
from barnabas.cli.terminal.failures import Failure, failures
from barnabas.cli.terminal.output import Column, Output, columns, note
from barnabas.cli.terminal.repeated_options import unique_keys
from barnabas.cli.terminal.watch import watch_option, watched
from barnabas.config.definitions import ConfigError
from barnabas.config.server import load, parse_override
from barnabas.config.unsupported import check_supported

if TYPE_CHECKING:
    from barnabas.operations.local_cluster.directory import LocalCluster

DEFAULT_DIR = Path("cluster")
VIEW_S = 2.0

_STATE = Column("state", style=lambda value: {"running": "green", "paused": "yellow"}.get(value, "red"))
_NODE_COLUMNS = columns("node", "program", "roles", _STATE, "pid", "rack", "clients", "controller")
_LIVE_COLUMNS = columns(
    "node",
    "program",
    "roles",
    _STATE,
    "pid",
    "rack",
    "clients",
    "controller",
    "quorum",
    "lag",
    "leaders",
    "replicas",
    Column("outOfSync", "OUT-OF-SYNC", style=lambda value: "red" if value else None),
)

_dir_option = click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_DIR,
    show_default=True,
    help="Directory of the cluster.",
)
_home_option = click.option(
    "--kafka-home",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of a distribution of Apache Kafka.  [default: $KAFKA_HOME]",
)
_node_argument = click.argument("node", type=int)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _existing(directory: Path) -> LocalCluster:
    from barnabas.operations.local_cluster.directory import read

    with failures():
        found = read(directory.absolute())
    if found is None:
        raise Failure(f"there is no cluster in {directory}", advice="barnabas cluster up creates one")
    return found


@click.command("up", short_help="Run a cluster on this machine, one process per node.")
@click.option("--nodes", type=click.IntRange(1, 20), help="Number of brokers of a new cluster.  [default: 3]")
@click.option(
    "--controllers",
    type=click.IntRange(0, 9),
    help="Number of controllers in processes of their own. Without, the brokers are controllers too.",
)
@click.option("--racks", metavar="A,B,...", help="Racks of the brokers, in turn.")
@click.option(
    "--apache",
    type=click.IntRange(0, 20),
    help="Number of the brokers that run Apache Kafka: the last ones. Needs its distribution and Java 17.",
)
@_home_option
@click.option(
    "--override", "overrides", multiple=True, metavar="KEY=VALUE", help="Setting of every node; may be repeated."
)
@click.option("--detach", is_flag=True, help="Return when the cluster is ready, and leave it running.")
@_dir_option
@output_options
def up(
    nodes: int | None,
    controllers: int | None,
    racks: str | None,
    apache: int | None,
    kafka_home: Path | None,
    overrides: tuple[str, ...],
    detach: bool,
    directory: Path,
    output: Output,
) -> None:
    """Run a cluster on this machine until Ctrl-C: one process per node, with free ports and a directory for each.

    A directory that has a cluster is used again, with its data and ports. Meanwhile, `barnabas cluster kill`, `pause`,
    `resume`, `start`, `stop` and `add` experiment with it from another terminal.

    \b
    Examples:
      barnabas cluster up
      barnabas cluster up --nodes 3 --controllers 3 --racks a,b,c
      barnabas cluster up --nodes 3 --apache 2 --kafka-home ~/kafka_2.13-4.3.1
      barnabas cluster up --dir /tmp/try --override log.retention.hours=1
    """
    from barnabas.operations.local_cluster import processes

    local = _created(directory, nodes, controllers, racks, apache, kafka_home, overrides)
    with failures():
        stopped = [each for each in local.nodes if processes.pid_of(local, each) is None]
        before = signal.getsignal(signal.SIGTERM)
        started: dict[int, subprocess.Popen[bytes]] = {}
        try:
            with _interrupted_afterwards():
                for each in stopped:
                    started[each] = processes.start(local, each)
            processes.wait_ready(local, started)
        except BaseException:
            _stop_all(local, started, started)
            raise
        signal.signal(signal.SIGTERM, before)
    _show_processes(local, output)
    if detach:
        return
    try:
        with asyncio.Runner() as runner:
            runner.run(_view(local, output))
    except KeyboardInterrupt:
        pass
    finally:
        killed = _stop_all(local, local.nodes, started)
        if killed:
            raise Failure(f"the nodes {', '.join(map(str, killed))} did not stop in time and were killed")


@contextlib.contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait, so that no process is started and not known. From then on, SIGTERM is like Ctrl-C."""
    pressed: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda which, _: pressed.append(which))
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt


def _stop_all(
    local: LocalCluster, node_ids: Iterable[int], started: Mapping[int, subprocess.Popen[bytes]]
) -> list[int]:
    """Stop nodes cleanly, whatever the user presses; a second Ctrl-C kills them. Return those that were killed for time."""
    from barnabas.operations.local_cluster import processes

    def kill_all(*_: object) -> None:
        note("killing all nodes")
        pids = {processes.pid_of(local, each) for each in node_ids}
        for pid in pids | {each.pid for each in started.values() if each.poll() is None}:
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    signal.signal(signal.SIGINT, kill_all)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note("stopping all nodes; Ctrl-C kills them")
    return processes.stop_started(local, node_ids, started)


def _created(
    directory: Path,
    nodes: int | None,
    controllers: int | None,
    racks: str | None,
    apache: int | None,
    kafka_home: Path | None,
    overrides: tuple[str, ...],
) -> LocalCluster:
    from barnabas.operations.local_cluster import directory as directories
    from barnabas.operations.local_cluster.apache import find_home
    from barnabas.operations.local_cluster.layout import nodes_of, settings_of

    path = directory.absolute()
    with failures():
        found = directories.read(path)
    if found is not None:
        if any(each is not None for each in (nodes, controllers, racks, apache, kafka_home)) or overrides:
            raise Failure(
                f"there is a cluster in {directory} already",
                advice="leave out the options to start it again, or choose another --dir",
            )
        return found
    names = tuple(filter(None, (each.strip() for each in (racks or "").split(","))))
    if (apache or 0) > (nodes or 3):
        raise click.UsageError(f"--apache: {apache} of {nodes or 3} brokers cannot run Apache Kafka.")
    if kafka_home is not None and not apache:
        raise click.UsageError("--kafka-home can only be used with --apache.")
    wanted = nodes_of(nodes or 3, controllers or 0, names, apache or 0)
    with failures():
        home = find_home(kafka_home, os.environ) if apache else None
    try:
        settings = unique_keys(map(parse_override, overrides), "--override")
        ports = {"PLAINTEXT": 1, "CONTROLLER": 2}
        example = [each._replace(ports=ports) for each in wanted]
        config = load(settings_of(example[0], example, "data", settings), broker_count=nodes or 3)
        check_supported(config)
    except ConfigError as error:
        raise Failure(f"--override: {error}") from None
    if path.exists() and any(path.iterdir()):
        raise Failure(f"{directory} is not empty and has no cluster", advice="choose another --dir")
    for warning in config.warnings:
        note(f"warning: {warning}")
    with failures():
        return directories.create(path, wanted, names, settings, _now_ms, random.SystemRandom(), kafka_home=home)


def _show_processes(local: LocalCluster, output: Output) -> None:
    from barnabas.operations.local_cluster.status import processes

    output.rows(_NODE_COLUMNS, processes(local))
    sys.stdout.flush()
    note(f"cluster {local.cluster_id} in {local.path}")
    note(f"reach it with bootstrap.servers={local.bootstrap_servers}")


async def _view(local: LocalCluster, output: Output) -> None:
    """Show the cluster every few seconds on a terminal, and only wait otherwise. Ends by Ctrl-C and SIGTERM."""
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    while not ended.is_set():
        if sys.stdout.isatty():
            click.clear()
            await _show_status(_existing(local.path), output)
            note("Ctrl-C stops the cluster")
        try:
            async with asyncio.timeout(VIEW_S):
                await ended.wait()
        except TimeoutError:
            pass


@click.command("status", short_help="Show the nodes of a cluster on this machine.")
@_dir_option
@watch_option
@output_options
def status(directory: Path, watch: float | None, output: Output) -> None:
    """Show the processes of a cluster on this machine, its quorum, and the partitions that each node leads and has.

    \b
    Examples:
      barnabas cluster status
      barnabas cluster status --watch 1
    """

    async def show() -> None:
        await _show_status(_existing(directory), output)

    asyncio.run(watched(output, watch, show))


async def _show_status(local: LocalCluster, output: Output) -> None:
    from barnabas.client.cluster import Cluster
    from barnabas.operations.local_cluster.status import ASK_TIMEOUT_MS, Status, look, processes
    from barnabas.wire import KafkaError

    try:
        # A node that is paused does not answer: another one is asked soon.
        soon = {"request.timeout.ms": "1000", "socket.connection.setup.timeout.ms": "1000"}
        settings = {"bootstrap.servers": local.bootstrap_servers, **soon}
        async with Cluster({**settings, "default.api.timeout.ms": str(ASK_TIMEOUT_MS)}) as cluster:
            found = await look(local, cluster)
    except (KafkaError, OSError) as error:
        found = Status(processes(local), problem=str(error))
    if found.partitions is None:
        output.rows(_NODE_COLUMNS, found.rows)
        note(f"the cluster does not answer: {found.problem}")
        return
    output.rows(_LIVE_COLUMNS, found.rows)
    note(
        f"{found.partitions} partitions, {found.under_replicated} under-replicated, {found.offline} without a leader, "
        f"{found.reassignments} being reassigned"
    )
    if found.problem is not None:
        note(f"what brokers last knew; no controller is active: {found.problem}")


def _signalling(name: str, number: signal.Signals, short: str, done: str) -> click.Command:
    @click.command(name, short_help=short, help=f"{short}\n\n\b\nExamples:\n  barnabas cluster {name} 2")
    @_node_argument
    @_dir_option
    def command(node: int, directory: Path) -> None:
        from barnabas.operations.local_cluster import processes

        local = _existing(directory)
        with failures():
            pid = processes.send(local, node, number)
            if number is signal.SIGKILL:
                processes.wait_stopped(local, node, pid)
        click.echo(f"node {node}, process {pid}: {done}")

    return command


kill = _signalling("kill", signal.SIGKILL, "Kill a node of a cluster on this machine, as a crash would.", "killed")
pause = _signalling("pause", signal.SIGSTOP, "Pause a node of a cluster on this machine.", "paused")
resume = _signalling("resume", signal.SIGCONT, "Resume a paused node of a cluster on this machine.", "resumed")


@click.command("start", short_help="Start a node of a cluster on this machine.")
@_node_argument
@_dir_option
def start(node: int, directory: Path) -> None:
    """Start a node of a cluster on this machine that was killed or stopped, and wait until it is ready.

    \b
    Examples:
      barnabas cluster start 2
    """
    from barnabas.operations.local_cluster import processes

    local = _existing(directory)
    with failures():
        local.node(node)
        processes.wait_ready(local, {node: processes.start(local, node)})
    click.echo(f"node {node}, process {processes.pid_of(local, node)}: ready")


@click.command("stop", short_help="Stop nodes of a cluster on this machine cleanly.")
@click.argument("nodes", type=int, nargs=-1, metavar="[NODE]...")
@_dir_option
def stop(nodes: tuple[int, ...], directory: Path) -> None:
    """Stop nodes of a cluster on this machine cleanly, or all of them. Each hands over what it leads first.

    \b
    Examples:
      barnabas cluster stop 2
      barnabas cluster stop
    """
    from barnabas.operations.local_cluster import processes

    local = _existing(directory)
    with failures():
        wanted = [local.node(each).node_id for each in nodes] or list(local.nodes)
        killed = processes.stop(local, wanted)
    for each in wanted:
        click.echo(f"node {each}: {'did not stop in time and was killed' if each in killed else 'stopped'}")


@click.command("add", short_help="Add a broker to a cluster on this machine.")
@click.argument("node", type=click.IntRange(min=1), required=False)
@click.option("--apache", is_flag=True, help="The broker runs Apache Kafka. Needs its distribution and Java 17.")
@_home_option
@_dir_option
def add(node: int | None, apache: bool, kafka_home: Path | None, directory: Path) -> None:
    """Add a broker to a cluster on this machine and start it. Partitions move to it only when they are reassigned.

    \b
    Examples:
      barnabas cluster add
      barnabas cluster add 9
      barnabas cluster add --apache --kafka-home ~/kafka_2.13-4.3.1
    """
    from barnabas.operations.local_cluster import directory as directories
    from barnabas.operations.local_cluster import processes
    from barnabas.operations.local_cluster.apache import find_home

    if kafka_home is not None and not apache:
        raise click.UsageError("--kafka-home can only be used with --apache.")
    local = _existing(directory)
    with failures():
        home = find_home(kafka_home or local.kafka_home, os.environ) if apache else None
        local, made = directories.added(local, node, _now_ms, random.SystemRandom(), kafka_home=home)
        processes.wait_ready(local, {made.node_id: processes.start(local, made.node_id)})
    pid = processes.pid_of(local, made.node_id)
    click.echo(f"node {made.node_id}, process {pid}: ready at {made.address('PLAINTEXT')}")


@click.command("remove", short_help="Remove a broker from a cluster on this machine.")
@click.argument("node", type=int)
@yes_option
@_dir_option
def remove(node: int, yes: bool, directory: Path) -> None:
    """Remove a broker that is stopped from a cluster on this machine, with its directory. `up` no longer starts it.

    Move its replicas to other brokers first, stop it and unregister it.

    \b
    Examples:
      barnabas reassign run --drain 4 && barnabas cluster stop 4
      barnabas cluster unregister 4 && barnabas cluster remove 4
    """
    from barnabas.operations.local_cluster import directory as directories
    from barnabas.operations.local_cluster import processes

    local = _existing(directory)
    with failures():
        local.node(node)
        if (pid := processes.pid_of(local, node)) is not None:
            raise Failure(f"node {node} is running, as process {pid}", advice=f"barnabas cluster stop {node}")
        confirm(f"Remove node {node} and delete {local.directory(node)}?", yes=yes)
        directories.removed(local, node)
    click.echo(f"node {node}: removed")


COMMANDS: tuple[Any, ...] = (up, status, start, stop, kill, pause, resume, add, remove)
