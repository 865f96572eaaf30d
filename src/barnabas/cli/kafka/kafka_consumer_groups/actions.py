"""The actions of kafka-consumer-groups: its requests, in Kafka's order, and its reports.

`lines` formats the output, `operations.groups.reset_plan` computes new offsets. An error that ends Kafka's tool is raised.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from barnabas.cli.kafka.group_tools import (
    EXECUTION,
    check_partitions,
    logs_for,
    metadata_of,
    partitions_named,
    partitions_to_delete,
    say,
    say_error,
)
from barnabas.cli.kafka.java_text import exception_text, hash_order, partition_hash, string_hash
from barnabas.cli.kafka.kafka_consumer_groups.lines import (
    SCENARIOS,
    TYPES,
    OffsetRow,
    ToolProblem,
    UsageProblem,
    deleted_offsets_text,
    group_state_text,
    listing_text,
    members_text,
    offsets_text,
    parse_datetime_ms,
    parse_long,
    parse_states,
    parse_types,
    resets_csv,
    resets_text,
    state_text,
)
from barnabas.cli.terminal.output import note
from barnabas.client.admin.groups import CONSUMER, CommittedOffset, GroupDescription, GroupMember, Groups
from barnabas.client.admin.records import OffsetSpec, Records
from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.operations.groups.reset_plan import NoOffsetError, Reset, Rule, parse_file, plan
from barnabas.operations.quantities import parse_iso_duration_ms
from barnabas.wire.errors import ErrorCode, KafkaError

GROUP_LEVEL = (
    *(ErrorCode.INVALID_GROUP_ID, ErrorCode.GROUP_ID_NOT_FOUND),
    *(ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.NON_EMPTY_GROUP),
)
PARTITION_LEVEL = (
    *(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


async def act(cluster: Cluster, has: Mapping[str, Any]) -> None:
    """Carry out the action of the options; `has` are the given options, by name."""
    if "list" in has:
        await _list(cluster, has)
    elif "describe" in has:
        await _describe(cluster, has)
    elif "delete" in has:
        await _delete(cluster, has)
    elif "delete-offsets" in has:
        await _delete_offsets(cluster, has["group"][-1], has["topic"])
    else:
        plans = await _reset(cluster, has)
        say(resets_csv(plans, with_group=len(has.get("group", ())) != 1) if "export" in has else resets_text(plans))


def validate_regex(regex: str) -> None:
    from barnabas.groups import regular_expressions

    try:
        regular_expressions.check(regex)
    except KafkaError as error:
        why = (error.message or "").rpartition("regular expression: ")[2]
        say(f"The regular expression `{regex}` is invalid: {why}\n")
    else:
        say(f"The regular expression `{regex}` is valid.\n")


# --- listing and describing


async def _group_ids(cluster: Cluster, has: Mapping[str, Any]) -> list[str]:
    if "all-groups" not in has:
        return list(has["group"])
    return [group_id for group_id, _, _ in await _listed(cluster, TYPES, ())]


async def _listed(
    cluster: Cluster, types: Iterable[str], states: Iterable[str]
) -> list[tuple[str, str | None, str | None]]:
    try:
        found = await Groups(cluster).list_groups(types=types, states=states)
    except KafkaError as error:
        raise ToolProblem(f"{EXECUTION}: {exception_text(error)}") from error
    rows = {
        each.group_id: (each.group_id, each.type, each.state) for each in found if each.protocol_type in ("", CONSUMER)
    }
    return [rows[group_id] for group_id in hash_order(rows, string_hash)]


async def _list(cluster: Cluster, has: Mapping[str, Any]) -> None:
    if "type" not in has and "state" not in has:
        say("".join(f"{group_id}\n" for group_id, _, _ in await _listed(cluster, TYPES, ())))
        return
    types, states = parse_types(has.get("type", "")), parse_states(has.get("state", ""))
    found = await _listed(cluster, types, states)
    say(listing_text(found, with_type="type" in has, with_state="state" in has))


async def _described(cluster: Cluster, group_ids: Iterable[str]) -> dict[str, GroupDescription]:
    """Return descriptions by group. Raises ToolProblem with the error of the first group that has one."""
    results = await Groups(cluster).describe_consumer_groups(group_ids)
    found: dict[str, GroupDescription] = {}
    for group_id in hash_order(results, string_hash):
        group = results[group_id]
        if isinstance(group, KafkaError):
            raise ToolProblem(exception_text(group))
        if group.protocol_type not in ("", CONSUMER):
            raise ToolProblem(
                "java.lang.IllegalArgumentException: "
                f"GroupId {group_id} is not a consumer group ({group.protocol_type})."
            )
        found[group_id] = group
    return dict(sorted(found.items()))


async def _describe(cluster: Cluster, has: Mapping[str, Any]) -> None:
    verbose = "verbose" in has
    described = await _described(cluster, await _group_ids(cluster, has))
    shows_offsets = "members" not in has and "state" not in has
    offsets = await _offset_rows(cluster, described) if shows_offsets else {}
    for group_id, group in described.items():
        if group.state == "Dead":
            say_error(f"Consumer group '{group_id}' does not exist.")
        elif (said := state_text(group)) is not None:
            sys.stdout.flush()
            note(said)
        if "members" in has:
            say(members_text(group, verbose=verbose))
        elif "state" in has:
            say(group_state_text(group, verbose=verbose) if group.state != "Dead" else "")
        elif offsets[group_id] and group.state != "Dead":
            say(offsets_text(group_id, offsets[group_id], verbose=verbose))


async def _offset_rows(cluster: Cluster, described: Mapping[str, GroupDescription]) -> dict[str, list[OffsetRow]]:
    """Return the rows of each group: by member, those with most partitions first; then unassigned partitions."""
    committed = await _committed(cluster, described)
    parts: dict[str, list[tuple[GroupMember | None, list[TopicPartition]]]] = {}
    for group_id, group in described.items():
        members = sorted((each for each in group.members if each.assignment), key=lambda each: -len(each.assignment))
        owned = {partition for member in members for partition in member.assignment}
        parts[group_id] = [
            *((member, sorted(member.assignment)) for member in members),
            (None, sorted(each for each in committed[group_id] if each not in owned)),
        ]
    wanted = (partition for groups in parts.values() for _, some in groups for partition in some)
    ends = await _log_ends(cluster, wanted)
    return {
        group_id: [
            OffsetRow(partition, committed[group_id].get(partition), ends.get(partition), member)
            for member, some in groups
            for partition in some
        ]
        for group_id, groups in parts.items()
    }


async def _committed(cluster: Cluster, group_ids: Iterable[str]) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    committed: dict[str, dict[TopicPartition, CommittedOffset]] = {}
    for group_id, found in (await Groups(cluster).list_consumer_group_offsets(list(group_ids))).items():
        if isinstance(found, KafkaError):
            raise ToolProblem(f"{EXECUTION}: {exception_text(found)}")
        committed[group_id] = {each: value for each, value in found.items() if not isinstance(value, KafkaError)}
    return committed


async def _log_ends(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the end offset of every partition that has a leader."""
    wanted = list(partitions)
    state = await metadata_of(cluster, (each.topic for each in wanted))
    led = [each for each in wanted if state.leader(*each) is not None]
    ends: dict[TopicPartition, int] = {}
    for each, found in (await Records(cluster).list_offsets(dict.fromkeys(led, OffsetSpec.LATEST))).items():
        if isinstance(found, KafkaError):
            raise ToolProblem(f"{EXECUTION}: {exception_text(found)}")
        ends[each] = found.offset
    return ends


# --- resetting


async def _reset(cluster: Cluster, has: Mapping[str, Any]) -> dict[str, dict[TopicPartition, int]]:
    reset = reset_asked(has)
    described = await Groups(cluster).describe_consumer_groups(await _group_ids(cluster, has))
    plans: dict[str, dict[TopicPartition, int]] = {}
    for group_id in hash_order(described, string_hash):
        group = described[group_id]
        if isinstance(group, KafkaError):
            if group.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise ToolProblem(f"{EXECUTION}: {exception_text(group)}")
        elif group.state not in ("Empty", "Dead"):
            say_error(
                f"Assignments can only be reset if the group '{group_id}' is inactive, "
                f"but the current state is {group.state}."
            )
            plans[group_id] = {}
            continue
        plans[group_id] = plan = await _planned(cluster, group_id, reset, has)
        if "execute" in has and "dry-run" not in has and plan:
            results = await Groups(cluster).alter_consumer_group_offsets(group_id, plan)
            for result in results.values():
                if isinstance(result, KafkaError):
                    raise ToolProblem(str(result.message))
    return plans


def reset_asked(has: Mapping[str, Any]) -> Reset | None:
    """Return the scenario, or None if there is none: Kafka reports that only after it has found the partitions."""
    if "to-offset" in has:
        return Reset(Rule.OFFSET, parse_long("to-offset", has["to-offset"]))
    if "shift-by" in has:
        return Reset(Rule.SHIFT, parse_long("shift-by", has["shift-by"]))
    if "to-datetime" in has:
        return Reset(Rule.TIME, parse_datetime_ms(has["to-datetime"]))
    if "by-duration" in has:
        try:
            return Reset(Rule.TIME, int(time.time() * 1000) - parse_iso_duration_ms(has["by-duration"]))
        except ValueError:
            raise ToolProblem("Text cannot be parsed to a Duration") from None
    names = {"to-earliest": Rule.EARLIEST, "to-latest": Rule.LATEST, "to-current": Rule.CURRENT, "from-file": Rule.FILE}
    return next((Reset(rule) for name, rule in names.items() if name in has), None)


async def _planned(
    cluster: Cluster, group_id: str, reset: Reset | None, has: Mapping[str, Any]
) -> dict[TopicPartition, int]:
    wanted = await _partitions_asked(cluster, group_id, has)
    await check_partitions(cluster, wanted)
    if reset is None:
        names = ", ".join(f"[{name}]" for name in SCENARIOS)
        raise UsageProblem(f"Option '[reset-offsets]' requires one of the following scenarios: [{names}]")
    file: dict[TopicPartition, int] | None = None
    if reset.rule is Rule.FILE:
        file = file_of(has["from-file"], group_id)
        if not file:
            say_error(f"No reset plan for group {group_id} found")
            return {}
        wanted = list(file)
    committed = {each: value.offset for each, value in (await _committed(cluster, [group_id]))[group_id].items()}
    logs = await logs_for(cluster, wanted, reset.value if reset.rule is Rule.TIME else None)
    try:
        planned = plan(reset, logs, committed, file)
    except NoOffsetError as error:
        raise UsageProblem(str(error)) from None
    for each, new in planned.items():
        if new.instead_of is not None:
            which = "higher than latest" if new.instead_of > new.offset else "lower than earliest"
            said = f"New offset ({new.instead_of}) is {which} offset for topic partition {each}."
            note(f"{said} Value will be set to {new.offset}")
    return {each: new.offset for each, new in planned.items()}


def file_of(path: str, group_id: str) -> dict[TopicPartition, int]:
    try:
        return parse_file(Path(path).read_text(), group_id)
    except (OSError, ValueError) as error:
        raise ToolProblem(str(error)) from None


async def _partitions_asked(cluster: Cluster, group_id: str, has: Mapping[str, Any]) -> list[TopicPartition]:
    if "all-topics" in has:
        return list((await _committed(cluster, [group_id]))[group_id])
    if "topic" not in has:
        if "from-file" not in has:
            raise UsageProblem("One of the reset scopes should be defined: --all-topics, --topic.")
        return []
    return await partitions_named(cluster, has["topic"])


# --- deleting


async def _delete(cluster: Cluster, has: Mapping[str, Any]) -> None:
    results = await Groups(cluster).delete_groups(await _group_ids(cluster, has))
    errors = {group_id: error for group_id, error in results.items() if isinstance(error, KafkaError)}
    deleted = hash_order((group_id for group_id in results if group_id not in errors), string_hash)
    names = ", ".join(f"'{group_id}'" for group_id in deleted)
    if not errors:
        say(f"Deletion of requested consumer groups ({names}) was successful.\n")
        return
    say_error("Deletion of some consumer groups failed:")
    for group_id in hash_order(errors, string_hash):
        say(f"* Group '{group_id}' could not be deleted due to: {exception_text(errors[group_id])}\n")
    if deleted:
        say(f"\nThese consumer groups were deleted successfully: {names}\n")


async def _delete_offsets(cluster: Cluster, group_id: str, topics: Iterable[str]) -> None:
    partitions, texts = await partitions_to_delete(cluster, topics)
    try:
        results = await Groups(cluster).delete_consumer_group_offsets(group_id, partitions)
        first = next((error for each in hash_order(results, partition_hash) if (error := results[each])), None)
    except KafkaError as error:
        results, first = dict.fromkeys(partitions, error), error
    texts.update((each, exception_text(error) if error else None) for each, error in results.items())
    if first is None:
        say(f"Request succeeded for deleting offsets from group {group_id}.\n")
    elif first.code in GROUP_LEVEL:
        say_error(str(first.code.message))
    elif first.code in PARTITION_LEVEL:
        say_error("Encountered some partition-level error, see the follow-up details.")
    else:
        say_error(f"Encountered some unknown error: {first.code.name}")
    say(deleted_offsets_text(texts))
