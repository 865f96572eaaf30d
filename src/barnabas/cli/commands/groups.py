"""`barnabas groups`: show and change groups of all types, their members, offsets and lag.

Parses arguments and prints; the work is in `client.admin.groups` and `operations.groups`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection.completion import complete_group, complete_topic
from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import common_options, dry_run_option, yes_option
from barnabas.cli.connection.partition_arguments import parse_partitions, partitions_by_topic
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.connection.target_cluster import target_cluster, target_options
from barnabas.cli.terminal.changes import announce, carry_out, confirm, show_results
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.failures import Failure, ItemsFailed, failure_of
from barnabas.cli.terminal.output import Column, Output, columns, note
from barnabas.cli.terminal.parsing import age_ms, time_ms
from barnabas.cli.terminal.watch import watch_option, watched
from barnabas.operations.partitions import require_brokers
from barnabas.operations.quantities import duration_text
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.groups import GroupDescription, GroupMember, MemberToRemove
    from barnabas.client.cluster import Cluster
    from barnabas.client.records import TopicPartition
    from barnabas.operations.groups.lag import PartitionPosition
    from barnabas.operations.groups.reset_plan import Reset
    from barnabas.operations.groups.resets import OffsetChange
    from barnabas.operations.groups.trend import LagHistory, LagTrend
    from barnabas.operations.partitions import Selection

_STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
    "NotReady",
)
_TYPES = ("Classic", "Consumer", "Share", "Streams")

_GROUP = click.argument("group_id", metavar="GROUP", shell_complete=complete_group)
_GROUPS = click.argument("group_ids", metavar="[GROUP...]", nargs=-1, shell_complete=complete_group)
_ALL_GROUPS = click.option("--all", "all_groups", is_flag=True, help="All groups that read topics.")
_TOPICS = click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:0,1]",
    callback=parse_partitions,
    shell_complete=complete_topic,
    help="Topic, or some of its partitions; may be repeated.",
)


def _state_color(state: Any) -> str | None:
    return {"Stable": "green", "Empty": "dim", "Dead": "red"}.get(state, "yellow" if state else None)


def _lag_color(lag: Any) -> str | None:
    return "yellow" if lag else None


def _assignment_text(rows: list[dict[str, Any]]) -> str:
    return " ".join(f"{row['topic']}:{','.join(map(str, row['partitions']))}" for row in rows) or "-"


def _rate_text(per_second: float) -> str:
    """Format a change of lag for people.

    >>> _rate_text(12.34), _rate_text(-1500.0), _rate_text(0.0)
    ('growing 12.3/s', 'shrinking 1,500/s', 'steady')
    """
    if not per_second:
        return "steady"
    number = f"{abs(per_second):,.0f}" if abs(per_second) >= 100 else f"{abs(per_second):.3g}"
    return f"{'growing' if per_second > 0 else 'shrinking'} {number}/s"


_STATE = Column("state", style=_state_color)
_LISTED = columns("groupId", "type", _STATE, "protocolType", "coordinatorId")
_POSITIONS = columns(
    *("topic", "partition", "currentOffset", "logEndOffset", Column("lag", style=_lag_color)),
    *(Column("lagMs", "TIME-LAG", show=duration_text), "memberId", "clientId", "clientHost"),
)
_TREND = columns(
    Column("lagPerSecond", "TREND", style=lambda rate: "red" if rate and rate > 0 else None, show=_rate_text),
    Column("catchUpMs", "CATCH-UP", show=duration_text),
)
_MEMBERS = columns(
    *("groupId", "memberId", "groupInstanceId", "clientId", "clientHost", "memberEpoch"),
    *(Column("partitions", "#PARTITIONS"), Column("assignment", show=_assignment_text)),
)
_DESCRIBED = columns(
    *("groupId", "type", _STATE, "coordinator", "assignor", "groupEpoch", "assignmentEpoch"),
    Column("members", "#MEMBERS"),
)


@click.group(cls=CommandGroup, short_help="Show groups and their lag; reset and delete offsets.")
def groups() -> None:
    """Show groups of all types, their members, offsets and lag; reset and delete their offsets.

    Types are classic, consumer, share and streams. A share group has a start offset where others have a committed one.

    \b
    Examples:
      barnabas groups list --state Empty
      barnabas groups describe orders-app                       offsets, and lag in records and in time
      barnabas groups describe --all --watch 2                  with trend and time to catch up
      barnabas groups members orders-app
      barnabas groups reset orders-app --topic orders --to-datetime 2026-01-31T12:00:00Z --dry-run
      barnabas groups reset orders-app --all-topics --shift-by -100
      barnabas groups copy orders-app orders-test
      barnabas groups delete old-app
    """


@groups.command("list")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES, case_sensitive=False),
    help="Only groups in this state; may be repeated.",
)
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice(_TYPES, case_sensitive=False),
    help="Only groups of this type; may be repeated.",
)
@watch_option
@common_options
def list_(
    states: tuple[str, ...], types: tuple[str, ...], watch: float | None, connection: Connection, output: Output
) -> None:
    """List groups of all types, from all brokers."""

    async def show(cluster: Cluster) -> None:
        from barnabas.client.admin.groups import Groups

        require_brokers(cluster)
        found = await Groups(cluster).list_groups(states=states, types=types)
        rows = (
            {
                "groupId": each.group_id,
                "type": each.type,
                "state": each.state,
                "protocolType": each.protocol_type or None,
                "coordinatorId": each.coordinator_id,
            }
            for each in sorted(found, key=lambda each: each.group_id)
        )
        output.rows(_LISTED, rows)

    run(connection, lambda cluster: watched(output, watch, lambda: show(cluster)))


# --- describing


@groups.command("describe", short_help="Show committed offsets, and lag in records and time.")
@_GROUPS
@_ALL_GROUPS
@click.option(
    "--time/--no-time",
    "with_time",
    default=True,
    show_default=True,
    help="Also show lag in time (one Fetch per lagging partition).",
)
@watch_option
@common_options
def describe(
    group_ids: tuple[str, ...],
    all_groups: bool,
    with_time: bool,
    watch: float | None,
    connection: Connection,
    output: Output,
) -> None:
    """Show the committed offset and the lag of groups in each partition.

    Lag in time is the age of the oldest record that the group has not consumed. A dash means unknown. With --watch, TREND is
    the change of the lag per second over the last 30 seconds, and CATCH-UP the time until the lag is 0 at this rate.
    """
    from barnabas.operations.groups.trend import LagHistory

    _need_groups(group_ids, all_groups)
    history: LagHistory[tuple[str, str, int]] = LagHistory()
    shown = _POSITIONS if watch is None else (*_POSITIONS[:6], *_TREND, *_POSITIONS[6:])

    def row(group_id: str, at: PartitionPosition) -> dict[str, Any]:
        more = {} if watch is None else _trend_fields(history.trend((group_id, at.topic, at.partition)))
        return {**_position_row(group_id, at), **more}

    async def show(cluster: Cluster) -> None:
        described, failures = await _described(cluster, group_ids, all_groups)
        found = await _positions(cluster, described, failures, with_time)
        lags = {(group_id, each.topic, each.partition): each.lag for group_id, rows in found.items() for each in rows}
        history.add(time.time_ns() // 1_000_000, lags)
        if output.is_for_people:
            for group_id, rows in found.items():
                output.title(_headline(described[group_id], rows) + (_trend_text(group_id, rows, history)))
                output.rows(shown, [row(group_id, each) for each in rows])
        else:
            output.rows(
                (Column("groupId"), *shown), (row(group_id, each) for group_id, rows in found.items() for each in rows)
            )
        _end_with(failures, is_watched=watch is not None)

    run(connection, lambda cluster: watched(output, watch, lambda: show(cluster)))


@groups.command("members", short_help="Show members and their assigned partitions.")
@_GROUPS
@_ALL_GROUPS
@watch_option
@common_options
def members(
    group_ids: tuple[str, ...], all_groups: bool, watch: float | None, connection: Connection, output: Output
) -> None:
    """Show the members of groups and the partitions assigned to each."""
    _need_groups(group_ids, all_groups)

    async def show(cluster: Cluster) -> None:
        described, failures = await _described(cluster, group_ids, all_groups)
        output.rows(_MEMBERS, (_member_row(group, each) for group in described.values() for each in group.members))
        _end_with(failures, is_watched=watch is not None)

    run(connection, lambda cluster: watched(output, watch, lambda: show(cluster)))


@groups.command("state", short_help="Show state, type, coordinator, assignor and epochs.")
@_GROUPS
@_ALL_GROUPS
@watch_option
@common_options
def state(
    group_ids: tuple[str, ...], all_groups: bool, watch: float | None, connection: Connection, output: Output
) -> None:
    """Show the state of groups, with type, coordinator, assignor, epochs and number of members."""
    _need_groups(group_ids, all_groups)

    async def show(cluster: Cluster) -> None:
        described, failures = await _described(cluster, group_ids, all_groups)
        output.rows(_DESCRIBED, map(_state_row, described.values()))
        _end_with(failures, is_watched=watch is not None)

    run(connection, lambda cluster: watched(output, watch, lambda: show(cluster)))


def _need_groups(group_ids: tuple[str, ...], all_groups: bool) -> None:
    if bool(group_ids) == all_groups:
        raise click.UsageError("Give either groups or --all.")


async def _described(
    cluster: Cluster, group_ids: Iterable[str], all_groups: bool
) -> tuple[dict[str, GroupDescription], dict[str, KafkaError]]:
    from barnabas.client.admin.groups import Groups
    from barnabas.operations.groups import any_type

    if all_groups:
        require_brokers(cluster)
        listed = await Groups(cluster).list_groups()
        types = {each.group_id: each.type for each in listed if any_type.commits_offsets(each)}
        group_ids = sorted(types)
    else:
        types = await any_type.types_of(cluster, group_ids)
    results = await any_type.describe(cluster, list(group_ids), types)
    failures = {group_id: result for group_id, result in results.items() if isinstance(result, KafkaError)}
    return {key: result for key, result in results.items() if not isinstance(result, KafkaError)}, failures


async def _positions(
    cluster: Cluster, described: Mapping[str, GroupDescription], failures: dict[str, KafkaError], with_time: bool
) -> dict[str, list[PartitionPosition]]:
    from barnabas.operations.groups import any_type

    offsets = await any_type.offsets_of(cluster, list(described), {key: each.type for key, each in described.items()})
    failures.update((group_id, result) for group_id, result in offsets.items() if isinstance(result, KafkaError))
    found = {group_id: result for group_id, result in offsets.items() if not isinstance(result, KafkaError)}
    now_ms = int(time.time() * 1000) if with_time else None
    return await any_type.positions_of(cluster, described, found, now_ms=now_ms)


def _end_with(failures: Mapping[str, KafkaError], *, is_watched: bool = False) -> None:
    """Print the errors. Exit with 1 if there are any, unless the command repeats with --watch."""
    for group_id, error in failures.items():
        note(f"Error: group {group_id}: {error.code.name}: {error.message}")
    if failures and not is_watched:
        raise ItemsFailed(error.code for error in failures.values())


# --- resetting


@groups.command("reset", short_help="Reset the offsets of a group without members.")
@_GROUP
@_TOPICS
@click.option(
    "--all-topics",
    is_flag=True,
    help="All partitions in which the group has committed offsets; of a streams group, only those of its source topics.",
)
@click.option("--to-earliest", is_flag=True, help="Reset to the first offset of the partition.")
@click.option("--to-latest", is_flag=True, help="Reset to the end of the partition.")
@click.option("--to-current", is_flag=True, help="Keep the committed offset; the end where there is none.")
@click.option("--to-offset", type=click.IntRange(0), metavar="OFFSET", help="Reset to this offset.")
@click.option("--shift-by", type=int, metavar="N", help="Shift by N records, forward or (with -N) backward.")
@click.option(
    "--to-datetime",
    metavar="TIME|AGE",
    callback=time_ms,
    help="Reset to the first record at or after this time (ISO 8601, milliseconds since 1970, or an age such as 1h).",
)
@click.option(
    "--by-duration",
    metavar="DURATION",
    callback=age_ms,
    help="Reset to the first record that is not older than DURATION: 90m, 7d, PT1H30M.",
)
@click.option(
    "--from-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Reset to the offsets of a CSV file: topic,partition,offset or group,topic,partition,offset.",
)
@dry_run_option
@yes_option
@common_options
def reset(
    group_id: str,
    topics: tuple[Selection, ...],
    all_topics: bool,
    from_file: Path | None,
    dry_run: bool,
    yes: bool,
    connection: Connection,
    output: Output,
    **rules: Any,
) -> None:
    """Reset the offsets of a group without members. A group that does not exist is created.

    Shows the old and new offsets and asks for confirmation. An offset outside the log is replaced by the nearest valid one.

    \b
    Examples:
      barnabas groups reset app --topic orders --to-earliest
      barnabas groups reset app --topic orders:0,2 --shift-by -100 --dry-run
      barnabas groups reset app --all-topics --by-duration 90m --yes
      barnabas groups reset app --from-file offsets.csv
    """
    from barnabas.operations.groups.reset_plan import parse_file
    from barnabas.operations.groups.resets import propose_reset

    wanted = _reset_asked({**rules, "from_file": from_file})
    if from_file is not None and (topics or all_topics):
        raise click.UsageError("--from-file cannot be combined with --topic or --all-topics.")
    if from_file is None and bool(topics) == all_topics:
        raise click.UsageError("Give either --topic or --all-topics.")
    try:
        file = None if from_file is None else parse_file(from_file.read_text(), group_id)
    except (ValueError, OSError) as error:
        raise Failure(str(error), resource=str(from_file)) from None
    if file == {}:
        raise Failure(f"contains no offsets for group {group_id}", resource=str(from_file))

    async def work(cluster: Cluster) -> Mapping[TopicPartition, OffsetChange]:
        proposal = await propose_reset(cluster, group_id, wanted, topics, file)
        return await carry_out(proposal, dry_run=dry_run, yes=yes)

    changes = run(connection, work)

    def row(key: TopicPartition, _: object) -> dict[str, Any]:
        return {"groupId": group_id, **_partition(key), "oldOffset": changes[key].old, "newOffset": changes[key].new}

    keys = ("groupId", "topic", "partition", "oldOffset", "newOffset")
    if dry_run:
        output.rows(columns(*keys), (row(key, None) for key in changes))
    else:
        show_results(output, keys, {key: change.error for key, change in changes.items()}, row)


_RULES = {
    "to_earliest": "EARLIEST",
    "to_latest": "LATEST",
    "to_current": "CURRENT",
    "to_offset": "OFFSET",
    "shift_by": "SHIFT",
    "to_datetime": "TIME",
    "by_duration": "TIME",
    "from_file": "FILE",
}


def _reset_asked(rules: Mapping[str, Any]) -> Reset:
    from barnabas.operations.groups.reset_plan import Reset, Rule

    given = {name: value for name, value in rules.items() if value is not None and value is not False}
    if len(given) != 1:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in _RULES)
        raise click.UsageError(f"Give exactly one of {names}.")
    ((name, value),) = given.items()
    return Reset(Rule[_RULES[name]], value if isinstance(value, int) else 0)


def _partition(key: TopicPartition) -> dict[str, Any]:
    return {"topic": key.topic, "partition": key.partition}


# --- copying


def _renamed(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in value:
        old, sign, new = text.partition("=")
        if not sign or not old or not new:
            raise click.BadParameter(f"{text!r} is not OLD=NEW", ctx, param)
        found[old] = new
    return found


@groups.command("copy", short_help="Copy the committed offsets of a group to another.")
@click.argument("group_id", metavar="SOURCE", shell_complete=complete_group)
@click.argument("new_group_id", metavar="TARGET")
@_TOPICS
@click.option(
    "--renamed",
    multiple=True,
    callback=_renamed,
    metavar="OLD=NEW",
    help="Topic OLD was copied to topic NEW: set the offset in NEW; may be repeated.",
)
@target_options
@dry_run_option
@yes_option
@common_options
def copy(
    group_id: str,
    new_group_id: str,
    topics: tuple[Selection, ...],
    renamed: dict[str, str],
    target: Connection | None,
    dry_run: bool,
    yes: bool,
    connection: Connection,
    output: Output,
) -> None:
    """Give the group TARGET the committed offsets of the group SOURCE. TARGET must have no members.

    In the same topics, offsets are copied as they are. In a copy of a topic (in another cluster, or --renamed), the offset is
    that of the first record at or after the time of the oldest unread record: no record is skipped, some may be read again.
    Refused if the copy has another number of partitions, or if that time is unknown.

    \b
    Examples:
      barnabas groups copy app app-test
      barnabas groups copy app app --to-profile new-cluster --dry-run
      barnabas groups copy app app-v2 --topic orders --renamed orders=orders-v2
    """
    from barnabas.operations.groups.copying import OffsetCopy, propose_group_copy

    async def work(cluster: Cluster) -> Mapping[TopicPartition, OffsetCopy]:
        async with target_cluster(cluster, target) as other:
            proposal = await propose_group_copy(cluster, other, group_id, new_group_id, topics, renamed)
            return await carry_out(proposal, dry_run=dry_run, yes=yes)

    copies = run(connection, work)

    def row(key: TopicPartition, _: object) -> dict[str, Any]:
        copy = copies[key]
        return {
            "groupId": new_group_id,
            **_partition(key),
            "sourceOffset": copy.source_offset,
            "oldOffset": copy.change.old,
            "newOffset": copy.change.new,
        }

    keys = ("groupId", "topic", "partition", "sourceOffset", "oldOffset", "newOffset")
    if dry_run:
        output.rows(columns(*keys), (row(key, None) for key in copies))
    else:
        show_results(output, keys, {key: each.change.error for key, each in copies.items()}, row)


# --- deleting


@groups.command("delete", short_help="Delete groups without members.")
@click.argument("group_ids", metavar="GROUP...", nargs=-1, required=True, shell_complete=complete_group)
@dry_run_option
@yes_option
@common_options
def delete(group_ids: tuple[str, ...], dry_run: bool, yes: bool, connection: Connection, output: Output) -> None:
    """Delete groups without members, and all their offsets."""

    async def work(cluster: Cluster) -> None:
        from barnabas.client.admin.groups import Groups
        from barnabas.operations.groups.deletion import propose_group_deletion

        proposal = await propose_group_deletion(cluster, group_ids)
        announce((f"delete group {group_id} and its offsets" for group_id in group_ids), dry_run=dry_run)
        results = proposal.expected
        if not dry_run:
            confirm(proposal.question or "", yes=yes)
            results = await Groups(cluster).delete_groups(group_ids)
        show_results(output, ["groupId"], results, lambda group_id, _: {"groupId": group_id})

    run(connection, work)


@groups.command("delete-offsets", short_help="Delete offsets of a group for topics.")
@_GROUP
@_TOPICS
@dry_run_option
@yes_option
@common_options
def delete_offsets(
    group_id: str, topics: tuple[Selection, ...], dry_run: bool, yes: bool, connection: Connection, output: Output
) -> None:
    """Delete the offsets of a group for topics that none of its members subscribes to.

    A share group must have no members. It then begins in these topics where share.auto.offset.reset says.
    """
    if not topics:
        raise click.UsageError("Give at least one --topic.")
    from barnabas.operations.groups import any_type
    from barnabas.operations.groups.deletion import delete_offsets as delete_now
    from barnabas.operations.groups.resets import committed_offsets

    async def work(cluster: Cluster) -> None:
        kind = (await any_type.types_of(cluster, [group_id])).get(group_id)
        if kind == any_type.SHARE_TYPE and any(topic.partitions is not None for topic in topics):
            raise click.UsageError("The offsets of a share group are deleted for whole topics.")
        committed = await committed_offsets(cluster, group_id, kind)
        wanted = [each for each in sorted(committed) if any(topic.covers(*each) for topic in topics)]
        if not wanted:
            names = ", ".join(dict.fromkeys(each.topic for each in topics))
            raise Failure(f"no committed offsets in {names}", resource=f"group {group_id}")
        announce(
            (f"delete the offset {committed[each]} of group {group_id} in {each}" for each in wanted),
            dry_run=dry_run,
        )
        results: dict[TopicPartition, KafkaError | None] = dict.fromkeys(wanted)
        if not dry_run:
            confirm(f"Delete {len(wanted)} offset{'' if len(wanted) == 1 else 's'} of group {group_id}?", yes=yes)
            results = await delete_now(cluster, group_id, wanted, kind)
        show_results(
            output,
            ["groupId", "topic", "partition", "oldOffset"],
            results,
            lambda key, _: {"groupId": group_id, **_partition(key), "oldOffset": committed[key]},
        )

    run(connection, work)


@groups.command("remove-members", short_help="Remove members from a group.")
@_GROUP
@click.option("--member-id", "member_ids", multiple=True, help="Member id; may be repeated.")
@click.option(
    "--instance-id", "instance_ids", multiple=True, help="Static member (group.instance.id); may be repeated."
)
@click.option("--all", "all_members", is_flag=True, help="All members.")
@click.option("--reason", help="Reason for the broker's log.")
@dry_run_option
@yes_option
@common_options
def remove_members(
    group_id: str,
    member_ids: tuple[str, ...],
    instance_ids: tuple[str, ...],
    all_members: bool,
    reason: str | None,
    dry_run: bool,
    yes: bool,
    connection: Connection,
    output: Output,
) -> None:
    """Remove members from a group, such as dead static members that still hold partitions. A running member joins again."""
    if bool(member_ids or instance_ids) == all_members:
        raise click.UsageError("Give either members with --member-id or --instance-id, or --all.")

    async def work(cluster: Cluster) -> None:
        from barnabas.client.admin.groups import Groups, MemberToRemove

        wanted = [MemberToRemove(each) for each in member_ids] + [MemberToRemove("", each) for each in instance_ids]
        if all_members:
            wanted = await _members_of(cluster, group_id)
        announce(
            (f"remove {each.group_instance_id or each.member_id} from {group_id}" for each in wanted), dry_run=dry_run
        )
        results: dict[MemberToRemove, KafkaError | None] = dict.fromkeys(wanted)
        if not dry_run and wanted:
            confirm(f"Remove {len(wanted)} member{'' if len(wanted) == 1 else 's'} from group {group_id}?", yes=yes)
            results = await Groups(cluster).remove_members(group_id, wanted, reason=reason)
        show_results(
            output,
            ["groupId", "memberId", "groupInstanceId"],
            results,
            lambda key, _: {
                "groupId": group_id,
                "memberId": key.member_id or None,
                "groupInstanceId": key.group_instance_id,
            },
        )

    run(connection, work)


async def _members_of(cluster: Cluster, group_id: str) -> list[MemberToRemove]:
    from barnabas.client.admin.groups import MemberToRemove
    from barnabas.operations.groups import any_type

    types = await any_type.types_of(cluster, [group_id])
    found = (await any_type.describe(cluster, [group_id], types))[group_id]
    if isinstance(found, KafkaError):
        raise failure_of(found, f"group {group_id}")
    return [
        MemberToRemove("", each.group_instance_id) if each.group_instance_id else MemberToRemove(each.member_id)
        for each in found.members
    ]


# --- rows, with Kafka's field names


def _headline(group: GroupDescription, rows: Iterable[PartitionPosition]) -> str:
    count = len(group.members)
    lag = sum(row.lag or 0 for row in rows)
    by = f" by {group.assignor}" if group.assignor else ""
    return (
        f"{group.group_id}: {group.state}, {group.type.lower()}{by}, {count} member{'' if count == 1 else 's'}, "
        f"lag {lag:,}, coordinator {group.coordinator or '-'}"
    )


def _position_row(group_id: str, at: PartitionPosition) -> dict[str, Any]:
    committed, member = at.committed, at.member
    return {
        "groupId": group_id,
        "topic": at.topic,
        "partition": at.partition,
        "currentOffset": committed.offset if committed else None,
        "logEndOffset": at.log_end_offset,
        "lag": at.lag,
        "lagMs": at.lag_ms,
        "memberId": member.member_id if member else None,
        "groupInstanceId": member.group_instance_id if member else None,
        "clientId": member.client_id if member else None,
        "clientHost": member.client_host if member else None,
        "leaderEpoch": committed.leader_epoch if committed else None,
        "metadata": committed.metadata if committed else None,
    }


def _trend_fields(trend: LagTrend | None) -> dict[str, Any]:
    return {
        "lagPerSecond": trend.lag_per_second if trend else None,
        "catchUpMs": trend.catch_up_ms if trend else None,
    }


def _trend_text(group_id: str, rows: Iterable[PartitionPosition], history: LagHistory[tuple[str, str, int]]) -> str:
    from barnabas.operations.groups.trend import sum_of_trends

    every = list(rows)
    trends = [history.trend((group_id, each.topic, each.partition)) for each in every]
    trend = sum_of_trends([each.lag for each in every], trends)
    if trend is None or not any(each.lag for each in every):
        return ""
    if trend.catch_up_ms is not None:
        return f", caught up in {duration_text(trend.catch_up_ms)}"
    return f", {_rate_text(trend.lag_per_second)}"


def _member_row(group: GroupDescription, member: GroupMember) -> dict[str, Any]:
    return {
        "groupId": group.group_id,
        "memberId": member.member_id,
        "groupInstanceId": member.group_instance_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "memberEpoch": member.member_epoch,
        "partitions": len(member.assignment),
        "assignment": partitions_by_topic(member.assignment),
        "targetAssignment": None if member.target_assignment is None else partitions_by_topic(member.target_assignment),
        "rackId": member.rack_id,
        "subscribedTopics": member.subscribed_topics,
        "subscribedTopicRegex": member.subscribed_topic_regex,
    }


def _state_row(group: GroupDescription) -> dict[str, Any]:
    return {
        "groupId": group.group_id,
        "type": group.type,
        "state": group.state,
        "coordinatorId": group.coordinator.id if group.coordinator else None,
        "coordinator": str(group.coordinator) if group.coordinator else None,
        "assignor": group.assignor or None,
        "groupEpoch": group.group_epoch,
        "assignmentEpoch": group.assignment_epoch,
        "members": len(group.members),
    }
