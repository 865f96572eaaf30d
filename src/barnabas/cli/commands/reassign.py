"""`barnabas reassign`: plan, start, watch, throttle and cancel reassignments of partitions.

Parses arguments and prints. Plans are made in `client.reassignment_plan`; the files are those of kafka-reassign-partitions.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from barnabas.cli.connection.completion import complete_topic
from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import (
    common_options,
    connection_options,
    dry_run_option,
    never_asks_option,
    yes_option,
)
from barnabas.cli.connection.partition_arguments import parse_partitions, partitions_argument
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.connection.rate_option import parse_rate, throttle_option
from barnabas.cli.terminal.changes import announce, carry_out, confirm, show_results
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Column, Output, columns, note
from barnabas.cli.terminal.output import Progress as ProgressBar
from barnabas.cli.terminal.watch import watch_option, watched
from barnabas.operations.partitions import Key, Selection, find_partitions, require_brokers
from barnabas.operations.quantities import bytes_text, duration_text
from barnabas.operations.reassignments.plan import Goal

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.reassignment_plan import ReassignmentPlan
    from barnabas.operations.reassignments.plan import PlannedMoves
    from barnabas.operations.reassignments.progress import Look, Progress

F = TypeVar("F", bound=Callable[..., Any])

_POLL_S = 1.0
_BYTES = Column("bytes", show=bytes_text)
_MOVES = columns("topic", "partition", "before", "after", "adding", "removing", _BYTES)
_LOADS = columns(
    *("broker", "rack", "replicasBefore", "replicasAfter", "leadersBefore", "leadersAfter"),
    Column("bytesIn", show=bytes_text),
)
_STATUS = columns(
    *("topic", "partition", "replicas", "adding", "removing"),
    Column("percent", title="DONE", show=lambda percent: f"{percent:.0f}%"),
    Column("bytesLeft", title="LEFT", show=bytes_text),
    Column("bytesPerSecond", title="RATE", show=lambda rate: f"{bytes_text(int(rate))}/s"),
    Column("secondsLeft", title="TIME-LEFT", show=lambda seconds: duration_text(int(seconds * 1000))),
)


def _broker_ids(ctx: click.Context, param: click.Parameter, values: Iterable[str]) -> tuple[int, ...]:
    try:
        return tuple(int(each) for value in values for each in value.split(","))
    except ValueError:
        raise click.BadParameter("broker ids are numbers, such as 4 or 4,5.", ctx, param) from None


def _goal_options(command: F) -> F:
    """Add the options for the goal of a plan; the command receives them as `goal`."""

    @click.option(
        "--rebalance", is_flag=True, help="Spread replicas and leaders evenly over brokers, and replicas over racks."
    )
    @click.option(
        "--add",
        multiple=True,
        metavar="ID,...",
        callback=_broker_ids,
        help="Move a fair share to these brokers; may be repeated.",
    )
    @click.option(
        "--drain",
        multiple=True,
        metavar="ID,...",
        callback=_broker_ids,
        help="Move all replicas off these brokers; may be repeated.",
    )
    @click.option("--replication-factor", type=click.IntRange(1), help="New number of replicas per partition.")
    @click.option("--disable-rack-aware", is_flag=True, help="Ignore racks.")
    @functools.wraps(command)
    def wrapped(
        *args: Any,
        rebalance: bool,
        add: tuple[int, ...],
        drain: tuple[int, ...],
        replication_factor: int | None,
        disable_rack_aware: bool,
        **kwargs: Any,
    ) -> Any:
        goal = Goal(rebalance, add, drain, replication_factor, rack_aware=not disable_rack_aware)
        return command(*args, goal=goal, **kwargs)

    return wrapped  # type: ignore[return-value]


@click.group(cls=CommandGroup, short_help="Move replicas between brokers: plan, run, watch and cancel.")
def reassign() -> None:
    """Move replicas between brokers: plan, run, watch and cancel reassignments.

    Plans respect racks, move as few replicas as possible, and balance replicas and leaders. Plan files have the format of
    kafka-reassign-partitions.

    \b
    Examples:
      barnabas reassign plan --add 4,5 --save plan.json
      barnabas reassign run plan.json --throttle 50MB --wait
      barnabas reassign run orders --replication-factor 3
      barnabas reassign status --watch 2
      barnabas reassign cancel --all
    """


# --- plan


@reassign.command("plan", short_help="Show which replicas would move.")
@partitions_argument
@_goal_options
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="File to write the plan to, as JSON.")
@common_options
def plan(
    partitions: tuple[Selection, ...], goal: Goal, save: Path | None, connection: Connection, output: Output
) -> None:
    """Show which replicas of the given topics, or of all, would move, and how many bytes. Nothing is changed.

    \b
    Examples:
      barnabas reassign plan --rebalance
      barnabas reassign plan --add 4 --save plan.json
      barnabas reassign plan --drain 2
      barnabas reassign plan orders payments:0 --replication-factor 3 -o json
    """
    _check(goal)
    planned = run(connection, lambda cluster: _plan(cluster, partitions, goal))
    if save is not None:
        _save(planned.plan, save)
    _show_plan(planned, output)


def _check(goal: Goal) -> None:
    if goal.is_empty:
        raise click.UsageError("Give at least one of --rebalance, --add, --drain and --replication-factor.")


async def _plan(cluster: Cluster, partitions: tuple[Selection, ...], goal: Goal) -> PlannedMoves:
    from barnabas.operations.reassignments.plan import plan_moves

    planned = await plan_moves(cluster, partitions, goal)
    if planned.left_out:
        note(f"warning: {_are_moving(planned.left_out)} now and left out of the plan; see: barnabas reassign status")
    _warn(planned)
    return planned


def _warn(planned: PlannedMoves) -> None:
    for warning in planned.warnings:
        note(f"warning: {warning}")


def _save(made: ReassignmentPlan, path: Path) -> None:
    from barnabas.operations.reassignments.files import format_reassignment

    try:
        path.write_text(format_reassignment(made.targets) + "\n", encoding="utf-8")
    except OSError as error:
        raise Failure(error.strerror or str(error), resource=str(path)) from error
    note(f"wrote {path}; run it with: barnabas reassign run {path}")


def _show_plan(planned: PlannedMoves, output: Output) -> None:
    made = planned.plan
    if not made.targets:
        note("nothing to move")
    if made.targets or not output.is_for_people:
        output.rows(_MOVES, move_rows(made))
    if made.targets and output.is_for_people:
        output.title("Brokers")
        output.rows(_LOADS, _load_rows(made, planned.racks))
        note(_summary(made))


def move_rows(made: ReassignmentPlan) -> list[dict[str, Any]]:
    """Return one row per partition that changes."""
    return [
        {
            "topic": key[0],
            "partition": key[1],
            "before": list(made.current[key]),
            "after": list(after),
            "adding": list(made.adding(key)),
            "removing": list(made.removing(key)),
            "bytes": made.bytes_to_copy(key),
        }
        for key, after in sorted(made.targets.items())
    ]


def _load_rows(made: ReassignmentPlan, racks: Mapping[int, str | None]) -> list[dict[str, Any]]:
    return [
        {
            "broker": broker_id,
            "rack": racks.get(broker_id),
            "replicasBefore": load.replicas_before,
            "replicasAfter": load.replicas_after,
            "leadersBefore": load.leaders_before,
            "leadersAfter": load.leaders_after,
            "bytesIn": load.bytes_in,
        }
        for broker_id, load in made.loads(racks).items()
    ]


def _summary(made: ReassignmentPlan) -> str:
    copies = sum(len(made.adding(key)) for key in made.targets)
    sizes = [made.bytes_to_copy(key) for key in made.targets]
    size = bytes_text(sum(each or 0 for each in sizes)) + (" or more" if None in sizes else "")
    changed = len(made.targets)
    return (
        f"{changed} partition{'s change' if changed != 1 else ' changes'}, "
        f"{copies} replica{'s' if copies != 1 else ''} to copy, {size}"
    )


# --- run


@reassign.command("run")
@click.argument("what", nargs=-1, metavar="[FILE | TOPIC[:PARTITION,...]...]", shell_complete=complete_topic)
@_goal_options
@throttle_option
@click.option("--wait", is_flag=True, help="Wait until the reassignment is complete.")
@click.option("--additional", is_flag=True, help="Start even if other reassignments are in progress.")
@dry_run_option
@yes_option
@common_options
@click.pass_context
def run_(
    ctx: click.Context,
    what: tuple[str, ...],
    goal: Goal,
    throttle: int | None,
    wait: bool,
    additional: bool,
    dry_run: bool,
    yes: bool,
    connection: Connection,
    output: Output,
) -> None:
    """Start a reassignment from a plan file, or plan it now. Asks for confirmation.

    Without --wait the command returns while the reassignment continues: see `barnabas reassign status`. A throttle then stays
    until it is cleared with `barnabas reassign throttle --clear`.

    \b
    Examples:
      barnabas reassign run plan.json --throttle 50MB --wait
      barnabas reassign run --drain 3 --dry-run
      barnabas reassign run orders --replication-factor 3 --yes
    """
    targets: dict[Key, tuple[int, ...]] | None = None
    partitions: tuple[Selection, ...] = ()
    if goal.is_empty:
        if len(what) != 1:
            raise click.UsageError(
                "Give either one plan file, or at least one of --rebalance, --add, --drain and --replication-factor."
            )
        targets = _load(Path(what[0]))
    else:
        partitions = parse_partitions(ctx, ctx.command.params[0], what)
    job = _Job(throttle, wait, additional, dry_run, yes)
    run(connection, lambda cluster: _run(cluster, targets, partitions, goal, job, output))


class _Job(NamedTuple):
    throttle: int | None
    wait: bool
    additional: bool
    dry_run: bool
    yes: bool


def _load(path: Path) -> dict[Key, tuple[int, ...]]:
    from barnabas.operations.reassignments.files import (
        ReassignmentFileError,
        check_executable,
        parse_reassignment,
    )

    try:
        reassignment = parse_reassignment(path.read_text(encoding="utf-8"))
        check_executable(reassignment)
    except OSError as error:
        raise Failure(error.strerror or str(error), resource=str(path)) from error
    except (ReassignmentFileError, UnicodeDecodeError) as error:
        advice = 'write a plan with: barnabas reassign plan --save FILE; it has {"version": 1, "partitions": [...]}'
        raise Failure(str(error), resource=str(path), advice=advice) from None
    if reassignment.log_dirs:
        note("warning: log dirs in the file are ignored; see: barnabas log-dirs move")
    return reassignment.targets


async def _run(
    cluster: Cluster,
    targets: dict[Key, tuple[int, ...]] | None,
    partitions: tuple[Selection, ...],
    goal: Goal,
    job: _Job,
    output: Output,
) -> None:
    from barnabas.client.admin.reassignments import Reassignments
    from barnabas.operations.reassignments.execution import begin
    from barnabas.operations.reassignments.plan import plan_targets

    ongoing = await Reassignments(cluster).list_partition_reassignments()
    if ongoing and not job.additional:
        raise Failure(
            f"{_are_moving(list(ongoing))} now",
            advice="wait until it is complete (barnabas reassign status), or pass --additional",
        )
    if targets is None:
        planned = await _plan(cluster, partitions, goal)
    else:
        planned = await plan_targets(cluster, targets)
        _warn(planned)
    made = planned.plan
    if not made.targets:
        note("nothing to move")
        return
    if output.is_for_people:
        _show_plan(planned, output)
    lines = [f"reassign {_names(list(made.targets))}"]
    if job.throttle is not None:
        lines.append(f"throttle it to {bytes_text(job.throttle)}/s on each broker involved")
    announce(lines, dry_run=job.dry_run)
    if job.dry_run:
        if not output.is_for_people:
            output.rows(_MOVES, move_rows(made))
        return
    confirm("Start moving replicas?", yes=job.yes)
    results = await begin(cluster, made.targets, made.current, job.throttle)
    started = [key for key, result in results.items() if result is None]
    await _follow(cluster, started, job, {topic for topic, _ in made.targets})

    def row(key: Key, _: object) -> dict[str, Any]:
        return {"topic": key[0], "partition": key[1], "replicas": list(made.targets[key])}

    show_results(output, ("topic", "partition", "replicas"), results, row)


async def _follow(cluster: Cluster, started: Sequence[Key], job: _Job, topics: Iterable[str]) -> None:
    """Wait if `--wait` is given, then clear the throttle once no reassignment needs it."""
    from barnabas.client.admin.reassignments import Reassignments
    from barnabas.operations.reassignments.execution import follow, unthrottle

    stays = "the throttle stays; clear it when the reassignment is complete: barnabas reassign throttle --clear"
    if started and not job.wait:
        note("see the progress with: barnabas reassign status --watch 2")
        if job.throttle is not None:
            note(stays)
        return
    try:
        with ProgressBar("reassigning", 1000) as shown:
            async for done in follow(cluster, started, _POLL_S):
                shown.update(int(1000 * done))
        if job.throttle is None:
            return
        if not await Reassignments(cluster).list_partition_reassignments():
            await unthrottle(cluster, topics)
            return
    except asyncio.CancelledError:
        note("the reassignment continues; see: barnabas reassign status")
        if job.throttle is not None:
            note(stays)
        raise
    note(stays)


def _names(keys: Sequence[Key]) -> str:
    if len(keys) == 1:
        return f"{keys[0][0]}-{keys[0][1]}"
    topics = len({topic for topic, _ in keys})
    return f"{len(keys)} partitions of {topics} topic{'s' if topics != 1 else ''}"


def _are_moving(keys: Sequence[Key]) -> str:
    return f"{_names(keys)} {'are' if len(keys) != 1 else 'is'} being reassigned"


# --- status


@reassign.command("status")
@partitions_argument
@click.option(
    "--sample",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Time over which to measure the rate; 0 skips it.",
)
@watch_option
@common_options
def status(
    partitions: tuple[Selection, ...], sample: float, watch: float | None, connection: Connection, output: Output
) -> None:
    """Show the progress of reassignments, with rate and remaining time.

    Progress compares the size of the new replicas with the leader's. With --watch, exits when no reassignment is left.

    \b
    Examples:
      barnabas reassign status
      barnabas reassign status orders --watch 2
    """
    run(connection, lambda cluster: _status(cluster, partitions, sample, watch, output))


async def _status(
    cluster: Cluster, partitions: tuple[Selection, ...], sample: float, watch: float | None, output: Output
) -> None:
    from barnabas.client.admin.reassignments import Reassignments
    from barnabas.operations.reassignments.execution import measure

    keys = (await find_partitions(cluster, partitions)).keys if partitions else None
    part = Reassignments(cluster)
    before: Look | None = None

    async def show() -> bool:
        nonlocal before
        ongoing = await part.list_partition_reassignments(keys)
        if before is None and ongoing and sample:
            before = await measure(cluster, ongoing)
            await asyncio.sleep(sample)
            ongoing = await part.list_partition_reassignments(keys)
        now = await measure(cluster, ongoing)
        _show_status(now, before, output)
        before = now
        return not ongoing

    await watched(output, watch, show)


def _show_status(now: Look, before: Look | None, output: Output) -> None:
    from barnabas.operations.reassignments.progress import progress_of, sum_of

    found = {key: progress_of(key, now, before) for key in now.reassignments}
    if not found:
        note("nothing is being reassigned")
        if not output.is_for_people:
            output.rows(_STATUS, ())
        return
    output.rows(_STATUS, (_status_row(key, now, each) for key, each in found.items()))
    if len(found) > 1:
        all_ = sum_of(found.values())
        percent = "" if all_.percent is None else f", {all_.percent:.0f}% done"
        left = "" if all_.left_s is None else f", {duration_text(int(all_.left_s * 1000))} left"
        note(f"{len(found)} partitions{percent}{left}")


def _status_row(key: Key, now: Look, progress: Progress) -> dict[str, Any]:
    each = now.reassignments[key]
    return {
        "topic": key[0],
        "partition": key[1],
        "replicas": list(each.replicas),
        "adding": list(each.adding_replicas),
        "removing": list(each.removing_replicas),
        "inSync": progress.in_sync,
        "percent": progress.percent,
        "bytesLeft": progress.bytes_left,
        "bytesPerSecond": progress.rate,
        "secondsLeft": progress.left_s,
        "timeLeftMs": None if progress.left_s is None else round(progress.left_s * 1000),
    }


# --- cancel, throttle


@reassign.command("cancel")
@partitions_argument
@click.option("--all", "all_", is_flag=True, help="All reassignments in progress.")
@dry_run_option
@yes_option
@common_options
def cancel(
    partitions: tuple[Selection, ...], all_: bool, dry_run: bool, yes: bool, connection: Connection, output: Output
) -> None:
    """Cancel reassignments. Partitions keep their old replicas, and data copied so far is discarded. Asks for confirmation.

    \b
    Examples:
      barnabas reassign cancel orders:0
      barnabas reassign cancel --all --yes
    """
    if bool(partitions) == all_:
        raise click.UsageError("Give either topics or partitions, or --all.")
    run(connection, lambda cluster: _cancel(cluster, partitions, dry_run, yes, output))


async def _cancel(
    cluster: Cluster, partitions: tuple[Selection, ...], dry_run: bool, yes: bool, output: Output
) -> None:
    from barnabas.client.admin.reassignments import Reassignments
    from barnabas.operations.reassignments.proposals import propose_cancel
    from barnabas.operations.reassignments.throttles import throttled_topics

    keys = (await find_partitions(cluster, partitions)).keys if partitions else None
    ongoing = await Reassignments(cluster).list_partition_reassignments(keys)
    results = await carry_out(await propose_cancel(cluster, keys), dry_run=dry_run, yes=yes)
    if not ongoing:
        if not output.is_for_people:
            output.rows(columns("topic", "partition", "replicas"), ())
        return
    if not dry_run and cluster.state.brokers and await throttled_topics(cluster, {topic for topic, _ in ongoing}):
        note("a throttle is still set; clear it with: barnabas reassign throttle --clear")

    def row(key: Key, _: object) -> dict[str, Any]:
        each = ongoing[key]
        back = [broker_id for broker_id in each.replicas if broker_id not in each.adding_replicas]
        return {"topic": key[0], "partition": key[1], "replicas": back}

    if not dry_run or not output.is_for_people:
        show_results(output, ("topic", "partition", "replicas"), results, row)


@reassign.command("throttle", short_help="Set or clear the throttle of reassignments.")
@click.option(
    "--rate", metavar="RATE", callback=parse_rate, help="Bytes per second on each broker involved, such as 50MB."
)
@click.option("--clear", is_flag=True, help="Clear the throttles of all brokers and topics.")
@never_asks_option
@dry_run_option
@connection_options
def throttle_(rate: int | None, clear: bool, dry_run: bool, connection: Connection) -> None:
    """Throttle the reassignments in progress, or clear all throttles after they are complete.

    \b
    Examples:
      barnabas reassign throttle --rate 100MB
      barnabas reassign throttle --clear
    """
    if (rate is None) != clear:
        raise click.UsageError("Give either --rate or --clear.")
    run(connection, lambda cluster: _throttle(cluster, rate, dry_run))


async def _throttle(cluster: Cluster, rate: int | None, dry_run: bool) -> None:
    from barnabas.client.admin.reassignments import Reassignments
    from barnabas.operations.reassignments.proposals import propose_throttle

    require_brokers(cluster)
    if rate is None and (ongoing := await Reassignments(cluster).list_partition_reassignments()):
        note(f"warning: {_are_moving(list(ongoing))} still")
    await carry_out(await propose_throttle(cluster, rate), dry_run=dry_run)
