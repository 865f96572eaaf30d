"""The actions of kafka-share-groups: its requests, in Kafka's order, and its reports. `lines` formats the output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.cli.kafka.drop_in import Terse
from barnabas.cli.kafka.group_tools import check_partitions, logs_for, partitions_named, say, say_error
from barnabas.cli.kafka.java_text import exception_text, hash_order, string_hash
from barnabas.cli.kafka.kafka_consumer_groups.lines import ToolProblem, parse_datetime_ms, resets_text
from barnabas.cli.kafka.kafka_share_groups import lines
from barnabas.cli.terminal.output import note
from barnabas.client.admin.groups import GroupDescription, GroupListing, Groups
from barnabas.client.admin.share_groups import ShareGroups, ShareOffset
from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.operations.groups.reset_plan import Reset, Rule, plan
from barnabas.wire.errors import ErrorCode, KafkaError

_SAID = (
    *(ErrorCode.INVALID_GROUP_ID, ErrorCode.GROUP_ID_NOT_FOUND),
    *(ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.NON_EMPTY_GROUP),
)
_OF_TOPICS = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_NOT_SHARE = "java.lang.IllegalArgumentException: Group '{}' is not a share group."


async def act(cluster: Cluster, has: Mapping[str, Any]) -> None:
    """Carry out the action of the options; `has` are the given options, by name."""
    if "list" in has:
        states = lines.parse_states(has.get("state", ""))
        listed = await _listed(cluster, states)
        say(lines.listing_text(listed) if "state" in has else "".join(f"{each.group_id}\n" for each in listed))
    elif "describe" in has:
        await _describe(cluster, has)
    elif "delete" in has:
        await _delete(cluster, has)
    elif "delete-offsets" in has:
        await _delete_offsets(cluster, has["group"][-1], has["topic"])
    else:
        say(resets_text(await _reset(cluster, has)))


async def _listed(cluster: Cluster, states: Iterable[str] = ()) -> list[GroupListing]:
    try:
        found = await Groups(cluster).list_groups(types=["Share"], states=states)
    except KafkaError as error:
        raise ToolProblem(str(error.message)) from error
    rows = {each.group_id: each for each in found}
    return [rows[group_id] for group_id in hash_order(rows, string_hash)]


async def _group_ids(cluster: Cluster, has: Mapping[str, Any]) -> list[str]:
    return [each.group_id for each in await _listed(cluster)] if "all-groups" in has else list(has["group"])


async def _described(cluster: Cluster, group_ids: Iterable[str]) -> dict[str, GroupDescription]:
    results = await ShareGroups(cluster).describe_share_groups(group_ids)
    found: dict[str, GroupDescription] = {}
    for group_id in hash_order(results, string_hash):
        group = results[group_id]
        if isinstance(group, KafkaError):
            raise ToolProblem(exception_text(group))
        found[group_id] = group
    return dict(sorted(found.items()))


async def _describe(cluster: Cluster, has: Mapping[str, Any]) -> None:
    verbose = "verbose" in has
    described = await _described(cluster, await _group_ids(cluster, has))
    offsets = {} if {"members", "state"} & has.keys() else await _offsets(cluster, described)
    for group_id, group in described.items():
        if "members" in has or "state" in has:
            _say_state(group)
        if "members" in has:
            say(lines.members_text(group, verbose=verbose) if group.members else "")
        elif "state" in has:
            say(lines.state_text(group, verbose=verbose))
        else:
            say(lines.offsets_text(group_id, offsets[group_id], verbose=verbose))


def _say_state(group: GroupDescription) -> None:
    if group.state == "Dead":
        say_error(f"Share group '{group.group_id}' does not exist.")
    elif (said := lines.empty_text(group)) is not None:
        sys.stdout.flush()
        note(said)


async def _offsets(cluster: Cluster, group_ids: Iterable[str]) -> dict[str, dict[TopicPartition, ShareOffset | None]]:
    found: dict[str, dict[TopicPartition, ShareOffset | None]] = {}
    for group_id, offsets in (await ShareGroups(cluster).list_share_group_offsets(list(group_ids))).items():
        if isinstance(offsets, KafkaError):
            raise ToolProblem(str(offsets.message))
        found[group_id] = {key: None if isinstance(each, KafkaError) else each for key, each in offsets.items()}
    return found


# --- resetting


async def _reset(cluster: Cluster, has: Mapping[str, Any]) -> dict[str, dict[TopicPartition, int]]:
    group_id = has["group"][-1]
    group = (await ShareGroups(cluster).describe_share_groups([group_id]))[group_id]
    if isinstance(group, KafkaError):
        if group.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise ToolProblem(str(group.message))
    elif group.state not in ("Empty", "Dead"):
        raise Terse(f"Share group '{group_id}' is not empty.")
    if "topic" in has:
        wanted = await partitions_named(cluster, has["topic"])
    else:
        wanted = list((await _offsets(cluster, [group_id]))[group_id])
    await check_partitions(cluster, wanted)
    reset = Reset(Rule.EARLIEST if "to-earliest" in has else Rule.LATEST)
    if "to-datetime" in has:
        reset = Reset(Rule.TIME, parse_datetime_ms(has["to-datetime"]))
    logs = await logs_for(cluster, wanted, reset.value if reset.rule is Rule.TIME else None)
    offsets = {each: new.offset for each, new in plan(reset, logs, {}).items()}
    if "execute" in has and offsets:
        try:
            results = await ShareGroups(cluster).alter_share_group_offsets(group_id, offsets)
        except KafkaError as error:
            raise ToolProblem(str(error.message)) from error
        for result in results.values():
            if isinstance(result, KafkaError):
                raise ToolProblem(str(result.message))
    return {group_id: offsets} if offsets else {}


# --- deleting


async def _delete(cluster: Cluster, has: Mapping[str, Any]) -> None:
    listed = {each.group_id: each for each in await _listed(cluster)}
    wanted = list(listed) if "all-groups" in has else list(dict.fromkeys(has["group"]))
    failed: dict[str, str] = {}
    for group_id in wanted:
        listing = listed.get(group_id)
        if listing is None:
            failed[group_id] = _NOT_SHARE.format(group_id)
        elif listing.state == "Dead":
            failed[group_id] = f"java.lang.IllegalStateException: Share group '{group_id}' group state is DEAD."
        elif listing.state not in ("Empty", None):
            error = KafkaError(ErrorCode.NON_EMPTY_GROUP, f"Share group '{group_id}' is not EMPTY.")
            failed[group_id] = exception_text(error)
    deleted: list[str] = []
    for group_id, result in (
        await Groups(cluster).delete_groups([each for each in wanted if each not in failed])
    ).items():
        if isinstance(result, KafkaError):
            failed[group_id] = exception_text(result)
        else:
            deleted.append(group_id)
    names = lines.names_text(hash_order(deleted, string_hash))
    if not failed:
        say(f"Deletion of requested share groups ({names}) was successful.\n")
        return
    say_error("Deletion of some share groups failed:")
    for group_id in hash_order(failed, string_hash):
        say(f"* Group '{group_id}' could not be deleted due to: {failed[group_id]}\n")
    if deleted:
        say(f"\nThese share groups were deleted successfully: {names}\n")


async def _delete_offsets(cluster: Cluster, group_id: str, topics: Iterable[str]) -> None:
    wanted = list(dict.fromkeys(topics))
    try:
        results = await ShareGroups(cluster).delete_share_group_offsets(group_id, wanted)
        first = None
    except KafkaError as error:
        results, first = dict.fromkeys(wanted, error), error
    if first is not None and first.code in _SAID:
        say_error(str(first.message))
    elif first is not None and first.code not in _OF_TOPICS:
        say_error(f"Encounter some unknown error: {exception_text(first)}")
    texts = {topic: None if each is None else str(each.message) for topic, each in results.items()}
    say(lines.deleted_offsets_text(texts))
