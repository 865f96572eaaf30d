"""The lines of Kafka's kafka-share-groups, and the checks of its options. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barnabas.cli.kafka.java_text import padded
from barnabas.cli.kafka.kafka_consumer_groups.lines import UsageProblem, assignment_text, check_available
from barnabas.client.admin.groups import GroupDescription, GroupListing
from barnabas.client.admin.share_groups import ShareOffset
from barnabas.client.records import TopicPartition

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
SCENARIOS = ("to-datetime", "to-earliest", "to-latest")
STATES = ("Empty", "Dead", "Stable")


def check(has: Mapping[str, Any]) -> None:
    """Check which options can be combined, in Kafka's order. `has` are the given options, by name. Raises UsageProblem."""
    check_available(has)
    if "bootstrap-server" not in has:
        raise UsageProblem('Missing required argument "[bootstrap-server]"')
    if "describe" in has:
        _check_describe(has)
    if "delete" in has:
        _check_delete(has)
    if "delete-offsets" in has and not {"group", "topic"} <= has.keys():
        raise UsageProblem("Option [delete-offsets] takes the following options: [group], [topic]")
    if "reset-offsets" in has:
        _check_reset(has)
    _check_apart("group", ("all-groups", "list"), has)
    _check_apart("topic", ("list", "describe"), has)
    if len(has.keys() & set(ACTIONS)) != 1:
        names = ", ".join(f"--{name}" for name in ACTIONS)
        raise UsageProblem(f"Command must include exactly one action: {names}.")


def _check_describe(has: Mapping[str, Any]) -> None:
    if not {"group", "all-groups"} & has.keys():
        raise UsageProblem("Option [describe] takes one of these options: [all-groups], [group]")
    if len({"members", "offsets", "state"} & has.keys()) > 1:
        raise UsageProblem("Option [describe] takes at most one of these options: [members], [offsets], [state]")
    if has.get("state"):
        raise UsageProblem("Option [describe] does not take a value for [state]")


def _check_delete(has: Mapping[str, Any]) -> None:
    if not {"group", "all-groups"} & has.keys():
        raise UsageProblem("Option [delete] takes the options [group] or [all-groups]")
    if {"group", "all-groups"} <= has.keys():
        raise UsageProblem("Option [delete] takes either [group] or [all-groups], not both.")
    if "topic" in has:
        raise UsageProblem("Option [delete] does not take the option: [topic]")


def _check_reset(has: Mapping[str, Any]) -> None:
    if {"dry-run", "execute"} <= has.keys():
        raise UsageProblem("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not {"dry-run", "execute"} & has.keys():
        raise UsageProblem("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    if "group" not in has:
        raise UsageProblem("Option [reset-offsets] takes the option: [group]")
    if not {"all-topics", "topic"} & has.keys():
        raise UsageProblem("Option [reset-offsets] takes one of these options: [all-topics], [topic]")
    if not set(SCENARIOS) & has.keys():
        names = ", ".join(f"[{name}]" for name in SCENARIOS)
        raise UsageProblem(f"Option [reset-offsets] takes one of these options: {names}")
    for scenario in SCENARIOS:
        _check_apart(scenario, tuple(other for other in SCENARIOS if other != scenario), has)


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


def listing_text(groups: Sequence[GroupListing]) -> str:
    width = max([15, *(len(each.group_id) for each in groups)])
    rows = [("GROUP", "STATE"), *((each.group_id, each.state or "Unknown") for each in groups)]
    return "".join(padded(row, [width, 0]) + "\n" for row in rows)


def empty_text(group: GroupDescription) -> str | None:
    """Return the line about a group without members, for the standard error."""
    return f"\nShare group '{group.group_id}' has no active members." if group.state == "Empty" else None


def offsets_text(group_id: str, offsets: Mapping[TopicPartition, ShareOffset | None], *, verbose: bool) -> str:
    """Return a table of a group's partitions, with start offsets and lag."""
    if not offsets:
        return f"\nShare group '{group_id}' has no offset information.\n"
    widths = [max(15, len(group_id)), max([15, *(len(each.topic) for each in offsets)]), 10, 13, 13, 0]
    rows = [["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "START-OFFSET", "LAG"]]
    for place in sorted(offsets):
        found = offsets[place]
        is_known = found is not None and found.start_offset is not None
        cells = (found.leader_epoch, found.start_offset, found.lag) if found is not None and is_known else (None,) * 3
        rows.append([group_id, place.topic, str(place.partition), *map(_or_dash, cells)])
    wanted = [at for at in range(6) if verbose or at != 3]
    lines = ("\n" + padded([row[at] for at in wanted], [widths[at] for at in wanted]) for row in rows)
    return "".join(lines) + "\n"


def state_text(group: GroupDescription, *, verbose: bool) -> str:
    """Return a table of coordinator, state and epochs of a group."""
    node = group.coordinator
    where = f"{node.host}:{node.port}  ({node.id})" if node else "-"
    header, cells = ["GROUP", "COORDINATOR (ID)", "STATE"], [group.group_id, where, group.state]
    widths = [max(15, len(group.group_id)), max(25, len(where)), 15]
    if verbose:
        header += ["GROUP-EPOCH", "ASSIGNMENT-EPOCH"]
        cells += [str(group.group_epoch), str(group.assignment_epoch)]
        widths += [12, 17]
    lines = ([*header, "#MEMBERS"], [*cells, str(len(group.members))])
    return "".join("\n" + padded(line, [*widths, 0]) for line in lines) + "\n"


def members_text(group: GroupDescription, *, verbose: bool) -> str:
    """Return a table of a group's members."""
    header = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "MEMBER-EPOCH", "ASSIGNMENT"]
    rows = [
        [
            *(group.group_id, each.member_id, each.client_host, each.client_id),
            *(str(len(each.assignment)), str(each.member_epoch), assignment_text(each.assignment)),
        ]
        for each in sorted(group.members, key=lambda each: each.member_id)
    ]
    widths = [max(15, *(len(row[at]) for row in rows)) for at in range(4)] + [12, 13, 0]
    wanted = [at for at in range(7) if verbose or at != 5]
    lines = ("\n" + padded([row[at] for at in wanted], [widths[at] for at in wanted]) for row in [header, *rows])
    return "".join(lines) + "\n"


def deleted_offsets_text(results: Mapping[str, str | None]) -> str:
    """Return a table of results by topic: the text of an error, or None."""
    if not results:
        return "\n"
    width = max([15, *map(len, results)])
    rows = [("TOPIC", "STATUS")]
    rows += [
        (topic, "Successful" if results[topic] is None else f"Error: {results[topic]}") for topic in sorted(results)
    ]
    return "".join("\n" + padded(row, [width, 0]) for row in rows) + "\n"


def names_text(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _or_dash(cell: object | None) -> str:
    return "-" if cell is None else str(cell)
