"""The lines of Kafka's kafka-streams-groups, and the checks of its options. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.cli.kafka.java_text import csv_line, hash_order, partition_hash, string_hash
from barnabas.cli.kafka.kafka_consumer_groups.lines import UsageProblem, check_available
from barnabas.client.admin.groups import GroupListing
from barnabas.client.admin.streams_groups import StreamsGroupDescription, TaskAssignment, TaskId
from barnabas.client.records import TopicPartition

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
SCENARIOS = (
    *("to-offset", "shift-by", "to-datetime", "by-duration", "to-earliest", "to-latest", "to-current"),
    "from-file",
)
STATES = ("Assigning", "Stable", "NotReady", "Reconciling", "Empty", "Dead")


def check(has: Mapping[str, Any]) -> None:
    """Check which options can be combined, in Kafka's order. `has` are the given options, by name. Raises UsageProblem."""
    check_available(has)
    if "bootstrap-server" not in has:
        raise UsageProblem('Missing required argument "[bootstrap-server]"')
    if "describe" in has:
        _need_groups("describe", has)
        if len({"members", "offsets", "state"} & has.keys()) > 1:
            raise UsageProblem("Option [describe] takes at most one of these options: [members], [offsets], [state]")
        if has.get("state"):
            raise UsageProblem("Option [describe] does not take a value for [state]")
    if "delete" in has:
        _need_groups("delete", has)
        if {"input-topic", "all-input-topics"} & has.keys():
            text = "Kafka Streams does not support topic-specific offset deletion from a streams group."
            raise UsageProblem(text)
    if "delete-offsets" in has:
        _check_delete_offsets(has)
    if "reset-offsets" in has:
        _check_reset(has)
    _check_internal_topics(has)
    if {"dry-run", "execute"} & has.keys() and "reset-offsets" not in has:
        raise UsageProblem("Only Option [reset-offsets] accepts [execute] or [dry-run]")
    _check_apart("list", ("members", "offsets"), has)
    _check_apart("group", ("all-groups", "list"), has)
    _check_apart("input-topic", ("list", "describe", "delete"), has)
    if len(has.keys() & set(ACTIONS)) != 1:
        names = "--list, --describe, --delete, --reset-offsets, or --delete-offsets."
        raise UsageProblem(f"Command must include exactly one action: {names}")


def _check_reset(has: Mapping[str, Any]) -> None:
    if {"dry-run", "execute"} <= has.keys():
        raise UsageProblem("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not {"dry-run", "execute"} & has.keys():
        raise UsageProblem("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    _need_groups("reset-offsets", has)
    for at, scenario in enumerate(SCENARIOS):
        _check_apart(scenario, SCENARIOS[:at] + SCENARIOS[at + 1 :], has)


def _check_delete_offsets(has: Mapping[str, Any]) -> None:
    if not ("group" in has and {"all-input-topics", "input-topic"} & has.keys()):
        wanted = "[group] and one of these options: [all-input-topics], [input-topic]"
        raise UsageProblem(f"Option [delete-offsets] takes the {wanted}")
    if len(has["group"]) > 1:
        groups = ", ".join(has["group"])
        raise UsageProblem(f"Option [delete-offsets] supports only one [group] at a time, but found: [{groups}]")


def _check_internal_topics(has: Mapping[str, Any]) -> None:
    if "delete-all-internal-topics" in has:
        option = "Option [delete-all-internal-topics]"
        if not {"reset-offsets", "delete"} & has.keys():
            raise UsageProblem(f"{option} takes one of these options: [delete], [reset-offsets]")
        if "reset-offsets" in has and "execute" not in has:
            raise UsageProblem(f"{option} takes [execute] when [reset-offsets] is used.")
    elif "delete-internal-topic" in has and not {"reset-offsets", "execute"} <= has.keys():
        raise UsageProblem("Option [delete-internal-topic] takes [reset-offsets] when [execute] is used.")


def _need_groups(action: str, has: Mapping[str, Any]) -> None:
    if not {"group", "all-groups"} & has.keys():
        raise UsageProblem(f"Option [{action}] takes one of these options: [all-groups], [group]")


def _check_apart(used: str, others: Sequence[str], has: Mapping[str, Any]) -> None:
    for other in others:
        if used in has and other in has:
            raise UsageProblem(f'Option "[{used}]" can\'t be used with option "[{other}]"')


def parse_states(text: str) -> list[str]:
    by_lower = {each.lower(): each for each in STATES}
    words = [word.strip().lower() for word in text.split(",")] if text else []
    if any(word not in by_lower for word in words):
        raise UsageProblem(f"Invalid state list '{text}'. Valid states are: {', '.join(STATES)}")
    return [by_lower[word] for word in words]


class OffsetRow(NamedTuple):
    """The row of a partition; None is shown as a dash."""

    partition: TopicPartition
    current_offset: int | None
    leader_epoch: int | None
    log_end_offset: int
    lag: int


def _line(cells: Iterable[object], widths: Iterable[int]) -> str:
    """Return a line in which each cell is as wide as its column, the last one too, unless its width is 0."""
    return (
        " ".join(f"{'-' if cell is None else cell!s:<{width}}" for cell, width in zip(cells, widths, strict=True))
        + "\n"
    )


def listing_text(groups: Sequence[GroupListing]) -> str:
    widths = [max([15, *(len(each.group_id) for each in groups)]), 0]
    rows = [("GROUP", "STATE"), *((each.group_id, each.state or "Unknown") for each in groups)]
    return "".join(_line(row, widths) for row in rows)


def offsets_text(group_id: str, rows: Sequence[OffsetRow], *, verbose: bool) -> str:
    """Return a table of a group's partitions."""
    widths = [max(15, len(group_id)), max([15, *(len(each.partition.topic) for each in rows)]), 10]
    header = ["GROUP", "TOPIC", "PARTITION"]
    if not verbose:
        lines = [_line([*header, "OFFSET-LAG"], [*widths, 0])]
        lines += [_line([group_id, *each.partition, each.lag], [*widths, 0]) for each in rows]
        return "".join(lines)
    widths += [15, 15, 15, 15]
    lines = [_line([*header, "CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET", "OFFSET-LAG"], widths)]
    lines += [_line([group_id, *each.partition, *each[1:]], widths) for each in rows]
    return "".join(lines)


def members_text(group: StreamsGroupDescription, *, verbose: bool) -> str:
    """Return a table of a group's members and their tasks."""
    width = max(15, len(group.group_id))
    members = group.members
    ids = max([15, *(len(each.member_id) for each in members)])
    processes = max([15, *(len(each.process_id) for each in members)])
    clients = max([15, *(len(each.client_id) for each in members)])
    if not verbose:
        widths = [width, ids, processes, clients, 0]
        lines = [_line(["GROUP", "MEMBER", "PROCESS", "CLIENT-ID", "ASSIGNMENTS"], widths)]
        lines += [
            _line([group.group_id, each.member_id, each.process_id, each.client_id, _tasks(each.tasks)], widths)
            for each in members
        ]
        return "".join(lines)
    widths = [width, 25, 14, ids, 15, 15, processes, clients, 0]
    header = ["GROUP", "TARGET-ASSIGNMENT-EPOCH", "TOPOLOGY-EPOCH", "MEMBER", "MEMBER-PROTOCOL", "MEMBER-EPOCH"]
    lines = [_line([*header, "PROCESS", "CLIENT-ID", "ASSIGNMENTS"], widths)]
    for each in members:
        protocol = "classic" if each.is_classic else "streams"
        cells = [group.group_id, group.assignment_epoch, group.topology_epoch, each.member_id, protocol]
        tasks = _tasks(each.tasks) + _tasks(each.target_tasks, "TARGET-")
        lines.append(_line([*cells, each.member_epoch, each.process_id, each.client_id, tasks], widths))
    return "".join(lines)


def _tasks(tasks: TaskAssignment, prefix: str = "") -> str:
    roles = (("ACTIVE", tasks.active), ("STANDBY", tasks.standby), ("WARMUP", tasks.warmup))
    return "".join(f"{prefix}{role}: {_task_text(some)}" for role, some in roles if some)


def _task_text(tasks: Iterable[TaskId]) -> str:
    by_id: dict[str, list[int]] = {}
    for each in tasks:
        by_id.setdefault(each.subtopology_id, []).append(each.partition)
    return "".join(f"{name}:[{','.join(map(str, numbers))}]; " for name, numbers in by_id.items())


def state_text(group: StreamsGroupDescription, *, verbose: bool) -> str:
    """Return a table of coordinator, state and epochs of a group."""
    node = group.coordinator
    where = f"{node.host}:{node.port} ({node.id})" if node else "-"
    header: list[object] = ["GROUP", "COORDINATOR (ID)", "STATE"]
    cells: list[object] = [group.group_id, where, group.state]
    widths = [max(15, len(group.group_id)), max(25, len(where)), 25]
    if verbose:
        header += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        cells += [group.group_epoch, group.assignment_epoch]
        widths += [15, 25]
    return _line([*header, "#MEMBERS"], [*widths, 0]) + _line([*cells, len(group.members)], [*widths, 0])


def resets_text(plans: Mapping[str, Mapping[TopicPartition, int]]) -> str:
    """Return a table of new offsets."""
    widths = [30, 30, 10, 15]
    lines = ["\n", _line(["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"], widths)] if plans else ["\n"]
    for group_id in hash_order(plans, string_hash):
        places = hash_order(plans[group_id], partition_hash)
        lines += [_line([group_id, *each, plans[group_id][each]], widths) for each in places]
    return "".join(lines)


def resets_csv(plans: Mapping[str, Mapping[TopicPartition, int]], *, with_group: bool) -> str:
    lines = []
    for group_id in hash_order(plans, string_hash):
        for each in hash_order(plans[group_id], partition_hash):
            cells: list[Any] = [*each, plans[group_id][each]]
            lines.append(csv_line([group_id, *cells] if with_group else cells) + "\n")
    return "".join(lines) + "\n"


_INTERNAL = re.compile(
    r"-changelog|-repartition|-subscription-registration-topic|-subscription-response-topic"
    r"|.+-KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-\d+-topic"
)


def has_internal_name(topic: str, group_id: str) -> bool:
    """Whether a topic is named as Kafka Streams names the internal topics of this application."""
    return topic.startswith(f"{group_id}-") and re.search(f"(?:{_INTERNAL.pattern})$", topic) is not None


def internal_topics(group: StreamsGroupDescription) -> tuple[list[str], list[str]]:
    """Return the internal topics of a group: those that may be deleted with it, and those whose names Kafka's tool doubts."""
    sources = {topic for each in group.subtopologies for topic in each.source_topics}
    named = [
        topic.name
        for each in group.subtopologies
        for topic in (*each.repartition_source_topics, *each.state_changelog_topics)
        if topic.name not in sources
    ]
    mine = [each for each in named if has_internal_name(each, group.group_id)]
    return mine, [each for each in named if not has_internal_name(each, group.group_id)]


def names_text(names: Iterable[str]) -> str:
    return "'" + "', '".join(names) + "'"


def deleted_topics_text(group_ids: Iterable[str], failed: Mapping[str, str]) -> str:
    """Return what became of the internal topics of groups that were deleted; `failed` has the groups that keep some."""
    if not failed:
        return (
            f"Deletion of associated internal topics of the streams groups ({names_text(group_ids)}) was successful.\n"
        )
    rows = (
        f"* Internal topics of the streams group '{group_id}' could not be deleted due to: {error}\n"
        for group_id, error in failed.items()
    )
    return "".join(["Deletion of some associated internal topics failed:\n", *rows])


def deleted_offsets_text(results: Mapping[TopicPartition, str | None]) -> str:
    """Return a table of results by partition: the text of an error, or None."""
    widths = [max([15, *(len(each.topic) for each in results)]), 10, 15]
    lines = ["\n", _line(["TOPIC", "PARTITION", "STATUS"], widths)]
    for each in sorted(results, key=lambda each: f"{each.topic}{each.partition}"):
        error = results[each]
        number = each.partition if each.partition >= 0 else None
        lines.append(_line([each.topic, number, "Successful" if error is None else f"Error: {error}"], widths))
    return "".join(lines)
