"""The lines of Kafka's kafka-consumer-groups, and the checks of its options. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from barnabas.cli.kafka.java_text import csv_line, hash_order, padded, partition_hash, string_hash
from barnabas.client.admin.groups import CommittedOffset, GroupDescription, GroupMember
from barnabas.client.records import TopicPartition
from barnabas.operations.groups.lag import offsets_between
from barnabas.operations.partitions import parse_selection

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
SCENARIOS = (
    *("to-offset", "shift-by", "to-datetime", "by-duration", "to-earliest", "to-latest", "to-current"),
    "from-file",
)
STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")
TYPES = ("Classic", "Consumer")
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
NOT_EXECUTED = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will require either "
    "--dry-run or --execute to be specified. You should add the --dry-run option explicitly if you are scripting this "
    "command and want to keep the current default behavior without prompting."
)


class UsageProblem(ValueError):  # noqa: N818 - what Kafka's tool answers with its help
    """Options that cannot be combined; the text is Kafka's."""


class Unavailable(UsageProblem):
    """An option has no meaning beside the others."""


class ToolProblem(Exception):  # noqa: N818 - what Kafka's tool says and goes on from
    """The text after `Error: Executing consumer group command failed due to`."""


# --- options


def check(has: Mapping[str, Any]) -> None:
    """Check which options can be combined, in Kafka's order. `has` are the given options, by name. Raises UsageProblem."""
    check_available(has)
    if "type" in has and "list" not in has:
        raise unavailable("type")
    if "validate-regex" not in has and "bootstrap-server" not in has:
        raise UsageProblem('Missing required argument "[bootstrap-server]"')
    if "describe" in has:
        _check_describe(has)
    if "delete" in has:
        _need_groups("delete", has)
        if "topic" in has:
            raise UsageProblem("The consumer does not support topic-specific offset deletion from a consumer group.")
    if "delete-offsets" in has and not {"group", "topic"} <= has.keys():
        raise UsageProblem("Option [delete-offsets] takes the following options: [group], [topic]")
    if "reset-offsets" in has:
        _check_reset(has)
    _check_apart("group", ("all-groups", "list"), has)
    _check_apart("topic", ("list", "describe"), has)


def check_available(has: Mapping[str, Any]) -> None:
    """Check that options which change what is shown stand beside the actions that show something. Raises Unavailable."""
    for name in ("members", "verbose", "offsets"):
        if name in has and "describe" not in has:
            raise unavailable(name)
    if "state" in has and not {"describe", "list"} & has.keys():
        raise unavailable("state")


def unavailable(name: str) -> Unavailable:
    return Unavailable(f"Option(s) [{name}] are unavailable given other options on the command line")


def _check_describe(has: Mapping[str, Any]) -> None:
    _need_groups("describe", has)
    if len({"members", "offsets", "state"} & has.keys()) > 1:
        raise UsageProblem("Option [describe] takes at most one of these options: [members], [offsets], [state]")
    if has.get("state"):
        raise UsageProblem("Option [describe] does not take a value for [state]")


def _check_reset(has: Mapping[str, Any]) -> None:
    if {"dry-run", "execute"} <= has.keys():
        raise UsageProblem("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    _need_groups("reset-offsets", has)
    for scenario in SCENARIOS:
        _check_apart(scenario, tuple(other for other in SCENARIOS if other != scenario), has)


def _need_groups(action: str, has: Mapping[str, Any]) -> None:
    if not {"group", "all-groups"} & has.keys():
        raise UsageProblem(f"Option [{action}] takes one of these options: [all-groups], [group]")


def _check_apart(used: str, others: Sequence[str], has: Mapping[str, Any]) -> None:
    for other in others:
        if used in has and other in has:
            raise UsageProblem(f'Option "[{used}]" can\'t be used with option "[{other}]"')


def check_actions(has: Mapping[str, Any]) -> None:
    if len(has.keys() & set(ACTIONS)) != 1:
        names = ", ".join(f"--{name}" for name in ACTIONS)
        raise UsageProblem(f"Command must include exactly one action: {names}")


def parse_states(text: str) -> list[str]:
    return _parse_words(text, STATES, "Invalid state list '{}'. Valid states are: {}")


def parse_types(text: str) -> list[str]:
    return _parse_words(text, TYPES, "Invalid types list '{}'. Valid types are: {}")


def _parse_words(text: str, known: Sequence[str], problem: str) -> list[str]:
    by_lower = {each.lower(): each for each in known}
    words = [word.strip().lower() for word in text.split(",")] if text else []
    if any(word not in by_lower for word in words):
        raise UsageProblem(problem.format(text, ", ".join(known)))
    return [by_lower[word] for word in words]


def parse_topics(texts: Iterable[str]) -> list[tuple[str, list[int] | None]]:
    return [_parse_topic(text) for text in texts]


def _parse_topic(text: str) -> tuple[str, list[int] | None]:
    if text.count(":") > 1 or text.endswith(":"):
        raise UsageProblem(f"Invalid topic arg '{text}', expected topic name and partitions")
    try:
        topic, numbers = parse_selection(text)
    except ValueError:
        words = text.partition(":")[2].split(",")
        bad = next(number for number in words if not re.fullmatch(r"[-+]?\d+", number))
        raise UsageProblem(f"Invalid partition '{bad}' specified in topic arg '{text}''") from None
    return topic, None if numbers is None else list(numbers)


def parse_long(name: str, text: str) -> int:
    if not re.fullmatch(r"[-+]?\d{1,19}", text):
        raise ToolProblem(f"Cannot parse argument '{text}' of option {name}")
    return int(text)


_DATETIME = re.compile(r"(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)\.(\d{1,3})(Z|[-+]\d\d(?::\d\d)?)")


def parse_datetime_ms(text: str) -> int:
    """Parse a time as Kafka's tools do: with milliseconds, in UTC unless it has a zone. Raises ToolProblem."""
    clock = text.partition("T")[2]
    if not clock:
        problem = "Error parsing timestamp. It does not contain a 'T' according to ISO8601 format"
        raise ToolProblem(f"java.text.ParseException: {problem}")
    whole = text if set("+-Z") & set(clock) else f"{text}Z"
    found = _DATETIME.fullmatch(whole)
    try:
        if found is None:
            raise ValueError
        year, month, day, hour, minute, second, ms = map(int, found.groups()[:7])
        zone = datetime.fromisoformat(f"2000-01-01T00:00{found[8]}").tzinfo
        moment = datetime(year, month, day, hour, minute, second, ms * 1000, tzinfo=zone)
    except ValueError:
        raise ToolProblem(f'java.text.ParseException: Unparseable date: "{whole}"') from None
    return round(moment.timestamp() * 1000)


# --- lines


class OffsetRow(NamedTuple):
    """The row of a partition; None is shown as a dash."""

    partition: TopicPartition | None
    committed: CommittedOffset | None
    log_end_offset: int | None
    member: GroupMember | None

    @property
    def lag(self) -> int | None:
        # Kafka's tool prints a negative lag for an offset past the end.
        return offsets_between(self.committed.offset if self.committed else None, self.log_end_offset)


def state_text(group: GroupDescription) -> str | None:
    """Return the line about a group's state for the standard error."""
    if group.state == "Empty":
        return f"\nConsumer group '{group.group_id}' has no active members."
    if group.state in REBALANCING:
        return f"\nWarning: Consumer group '{group.group_id}' is rebalancing."
    return None


def listing_text(groups: Iterable[tuple[str, str | None, str | None]], *, with_type: bool, with_state: bool) -> str:
    """Return a table of groups as (id, type, state)."""
    rows = list(groups)
    widths = [max([15, *(len(group_id) for group_id, _, _ in rows)]) + 10, *[20] * (with_type + with_state)]
    wanted = [True, with_type, with_state]
    lines = []
    for row in (
        ("GROUP", "TYPE", "STATE"),
        *((name, kind or "Unknown", state or "Unknown") for name, kind, state in rows),
    ):
        cells = [cell for cell, is_wanted in zip(row, wanted, strict=True) if is_wanted]
        lines.append(padded(cells, widths) + "\n")
    return "".join(lines)


def offsets_text(group_id: str, rows: Sequence[OffsetRow], *, verbose: bool) -> str:
    """Return a table of a group's partitions, with offsets and lag."""
    header = ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    header += ["CONSUMER-ID", "HOST", "CLIENT-ID"]
    table = [header, *([_or_dash(cell) for cell in _offset_cells(group_id, row)] for row in rows)]

    def width(column: int) -> int:
        return max([15, *(len(line[column]) for line in table[1:])])

    widths = [width(0), width(1), 10, 15, 15, 15, 15, width(7), width(8), 0]
    wanted = [at for at in range(len(header)) if verbose or header[at] != "LEADER-EPOCH"]
    lines = ("\n" + padded([line[at] for at in wanted], [widths[at] for at in wanted]) for line in table)
    return "".join(lines) + "\n"


def _offset_cells(group_id: str, row: OffsetRow) -> list[object | None]:
    topic, number = row.partition or (None, None)
    committed, member = row.committed, row.member
    return [
        *(group_id, topic, number, committed.leader_epoch if committed else None),
        *(committed.offset if committed else None, row.log_end_offset, row.lag),
        *((member.member_id, member.client_host, member.client_id) if member else (None, None, None)),
    ]


def members_text(group: GroupDescription, *, verbose: bool) -> str:
    """Return a table of a group's members; only its header if there are none."""
    header = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    header += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED"]
    rows = [[_or_dash(cell) for cell in _member_cells(group, member)] for member in group.members]

    def width(column: int, least: int) -> int:
        return max([least, *(len(row[column]) for row in rows)])

    widths = [width(0, 15), width(1, 15), width(2, 17), width(3, 15), width(4, 15), 15]
    widths += [15, width(7, 20), 15, width(9, 20), 0]
    is_mixed = {True, False} <= {member.is_upgraded for member in group.members}
    first = [0, 1, *([2] if any(row[2] for row in rows) else []), 3, 4, 5]
    second = [] if not verbose else [6, 7, 8, 9, *([10] if is_mixed else [])]

    def line(row: Sequence[str]) -> str:
        text = padded([row[at] for at in first], [widths[at] for at in first]) + " "
        return text + padded([row[at] for at in second], [widths[at] for at in second]) + "\n"

    return "\n" + "".join(line(row) for row in [header, *rows])


def _member_cells(group: GroupDescription, member: GroupMember) -> list[object | None]:
    upgraded = None if member.is_upgraded is None else str(member.is_upgraded).lower()
    return [
        *(group.group_id, member.member_id, member.group_instance_id or "", member.client_host, member.client_id),
        *(len(member.assignment), member.member_epoch, assignment_text(member.assignment) or None),
        *(group.assignment_epoch, assignment_text(member.target_assignment or ()) or None, upgraded),
    ]


def assignment_text(partitions: Iterable[TopicPartition]) -> str:
    """Format an assignment.

    >>> assignment_text([TopicPartition("b", 1), TopicPartition("a", 2), TopicPartition("b", 0)])
    'a:2;b:0,1'
    """
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        found.setdefault(topic, []).append(partition)
    return ";".join(sorted(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in found.items()))


def group_state_text(group: GroupDescription, *, verbose: bool) -> str:
    """Return a table of coordinator, assignor, state and epochs of a group."""
    node = group.coordinator
    coordinator = f"{node.host}:{node.port}  ({node.id})" if node else "-"
    header = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    cells = [group.group_id, coordinator, group.assignor or "-", group.state]
    widths = [max(15, len(group.group_id)), max(25, len(coordinator)), 20, 20]
    if verbose:
        header += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        cells += [_or_dash(group.group_epoch), _or_dash(group.assignment_epoch)]
        widths += [15, 25]
    lines = ([*header, "#MEMBERS"], [*cells, str(len(group.members))])
    return "".join("\n" + padded(line, [*widths, 0]) for line in lines) + "\n"


def resets_text(plans: Mapping[str, Mapping[TopicPartition, int]]) -> str:
    """Return a table of new offsets, with groups and partitions in the order of Java's hash maps."""
    groups = hash_order(plans, string_hash)
    topics = (each.topic for plan in plans.values() for each in plan)
    widths = [max([15, *map(len, plans)]), max([15, *map(len, topics)]), 10, 0]
    lines = [["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]] if plans else []
    for group_id in groups:
        lines += (
            [group_id, each.topic, str(each.partition), str(plans[group_id][each])]
            for each in hash_order(plans[group_id], partition_hash)
        )
    return "".join("\n" + padded(line, widths) for line in lines) + "\n"


def resets_csv(plans: Mapping[str, Mapping[TopicPartition, int]], *, with_group: bool) -> str:
    lines = []
    for group_id in hash_order(plans, string_hash):
        for each in hash_order(plans[group_id], partition_hash):
            cells = [each.topic, each.partition, plans[group_id][each]]
            lines.append(csv_line([group_id, *cells] if with_group else cells) + "\n")
    return "".join(lines) + "\n"


def deleted_offsets_text(results: Mapping[TopicPartition, str | None]) -> str:
    """Return a table of results by partition: the text of an error, or None."""
    widths = [max([15, *(len(each.topic) for each in results)]), 10, 15]
    lines = [["TOPIC", "PARTITION", "STATUS"]]
    for each in sorted(results, key=lambda each: f"{each.topic}{each.partition}"):
        error = results[each]
        number = str(each.partition) if each.partition >= 0 else "-"
        lines.append([each.topic, number, "Successful" if error is None else f"Error: {error}"])
    return "".join("\n" + padded(line, widths) for line in lines) + "\n"


def _or_dash(cell: object | None) -> str:
    return "-" if cell is None else str(cell)
