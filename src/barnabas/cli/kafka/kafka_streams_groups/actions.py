"""The actions of kafka-streams-groups: its requests, in Kafka's order, and its reports. `lines` formats the output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.cli.kafka.group_tools import (
    EXECUTION,
    check_partitions,
    logs_for,
    partitions_named,
    partitions_to_delete,
    say,
    say_error,
)
from barnabas.cli.kafka.java_text import exception_text, hash_order, partition_hash, string_hash
from barnabas.cli.kafka.kafka_consumer_groups.actions import GROUP_LEVEL, PARTITION_LEVEL, file_of, reset_asked
from barnabas.cli.kafka.kafka_consumer_groups.lines import ToolProblem, UsageProblem
from barnabas.cli.kafka.kafka_streams_groups import lines
from barnabas.cli.terminal.output import note
from barnabas.client.admin.groups import CommittedOffset, GroupListing, Groups
from barnabas.client.admin.records import ListedOffset, OffsetSpec, Records
from barnabas.client.admin.streams_groups import StreamsGroupDescription, StreamsGroups
from barnabas.client.admin.topics import Topics
from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.operations.groups.reset_plan import NoOffsetError, Rule, plan
from barnabas.wire.errors import ErrorCode, KafkaError

_NOT_STREAMS = "java.lang.IllegalArgumentException: Group '{}' does not exist or is not a streams group."


async def act(cluster: Cluster, has: Mapping[str, Any]) -> None:
    """Carry out the action of the options; `has` are the given options, by name."""
    if "list" in has:
        listed = await _listed(cluster, lines.parse_states(has.get("state", "")))
        say(lines.listing_text(listed) if "state" in has else "".join(f"{each.group_id}\n" for each in listed))
    elif "describe" in has:
        await _describe(cluster, has)
    elif "delete" in has:
        await _delete(cluster, has)
    elif "delete-offsets" in has:
        await _delete_offsets(cluster, has)
    else:
        plans = await _reset(cluster, has)
        with_group = len(has.get("group", ())) != 1
        say(lines.resets_csv(plans, with_group=with_group) if "export" in has else lines.resets_text(plans))


async def _listed(cluster: Cluster, states: Iterable[str] = ()) -> list[GroupListing]:
    found = await Groups(cluster).list_groups(types=["Streams"], states=states)
    rows = {each.group_id: each for each in found}
    return [rows[group_id] for group_id in hash_order(rows, string_hash)]


async def _group_ids(cluster: Cluster, has: Mapping[str, Any]) -> list[str]:
    return [each.group_id for each in await _listed(cluster)] if "all-groups" in has else list(has["group"])


async def _describe(cluster: Cluster, has: Mapping[str, Any]) -> None:
    verbose = "verbose" in has
    for group_id in await _group_ids(cluster, has):
        group = (await StreamsGroups(cluster).describe_streams_groups([group_id]))[group_id]
        if isinstance(group, KafkaError):
            raise ToolProblem(exception_text(group))
        if "members" in has:
            say(lines.members_text(group, verbose=verbose) if group.members else "")
        elif "state" in has:
            if group.state == "Empty":
                say_error(f"Streams group '{group_id}' has no active members.")
            say(lines.state_text(group, verbose=verbose))
        else:
            rows = await _offset_rows(cluster, group)
            say(lines.offsets_text(group_id, rows, verbose=verbose) if group.members else "")


async def _offset_rows(cluster: Cluster, group: StreamsGroupDescription) -> list[lines.OffsetRow]:
    """Return the partitions of all active tasks. Without a committed offset, all records count as lag."""
    places = {place for each in group.members for place in group.partitions(each.tasks.active)}
    committed = await _committed(cluster, group.group_id)
    starts = await _offsets_at(cluster, places, OffsetSpec.EARLIEST)
    ends = await _offsets_at(cluster, places, OffsetSpec.LATEST)
    rows = []
    for place in hash_order(places, partition_hash):
        found = committed.get(place)
        begin = starts[place] if found is None else found.offset
        offset, epoch = (None, None) if found is None else (found.offset, found.leader_epoch)
        rows.append(lines.OffsetRow(place, offset, epoch, ends[place], ends[place] - begin))
    return rows


async def _offsets_at(
    cluster: Cluster, places: Iterable[TopicPartition], spec: OffsetSpec
) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for place, found in (await Records(cluster).list_offsets(dict.fromkeys(places, spec))).items():
        if not isinstance(found, ListedOffset):
            raise ToolProblem(f"{EXECUTION}: {exception_text(found)}")
        offsets[place] = found.offset
    return offsets


async def _committed(cluster: Cluster, group_id: str) -> dict[TopicPartition, CommittedOffset]:
    found = (await Groups(cluster).list_consumer_group_offsets([group_id]))[group_id]
    if isinstance(found, KafkaError):
        if found.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return {}
        raise ToolProblem(f"{EXECUTION}: {exception_text(found)}")
    return {place: each for place, each in found.items() if isinstance(each, CommittedOffset)}


# --- resetting


async def _reset(cluster: Cluster, has: Mapping[str, Any]) -> dict[str, dict[TopicPartition, int]]:
    plans: dict[str, dict[TopicPartition, int]] = {}
    for group_id in hash_order(dict.fromkeys(await _group_ids(cluster, has)), string_hash):
        group = (await StreamsGroups(cluster).describe_streams_groups([group_id]))[group_id]
        if isinstance(group, KafkaError):
            if group.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise ToolProblem(f"{EXECUTION}: {exception_text(group)}")
        elif group.state not in ("Empty", "Dead"):
            say_error(
                f"Assignments can only be reset if the group '{group_id}' is inactive, "
                f"but the current state is {group.state}."
            )
            plans[group_id] = {}
            continue
        plans[group_id] = new = await _planned(cluster, group_id, has)
        if "execute" not in has:
            continue
        if new:
            for result in (await Groups(cluster).alter_consumer_group_offsets(group_id, {**new})).values():
                if isinstance(result, KafkaError):
                    raise ToolProblem(str(result.message))
        if not isinstance(group, KafkaError):
            await _delete_after_reset(cluster, group, has)
    return plans


async def _delete_after_reset(cluster: Cluster, group: StreamsGroupDescription, has: Mapping[str, Any]) -> None:
    """Delete internal topics of a group whose offsets were reset: with other input, what they keep is wrong."""
    wanted = has.get("delete-internal-topic", ())
    if "delete-all-internal-topics" in has:
        wanted = _internal_topics(group)
    error = _first_error(await Topics(cluster).delete_topics(wanted)) if wanted else None
    if error is not None and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        say_error(f"Deleting internal topics for group '{group.group_id}' failed because the topics do not exist.")
    elif error is not None:
        say_error(f"Deleting internal topics for group '{group.group_id}' failed due to {exception_text(error)}")


def _internal_topics(group: StreamsGroupDescription) -> list[str]:
    mine, doubted = lines.internal_topics(group)
    for topic in doubted:
        say_error(
            f"The internal topic '{topic}' is not inferred as internal and thus will not be deleted with the group "
            f"'{group.group_id}'."
        )
    return mine


def _first_error(results: Mapping[Any, KafkaError | None]) -> KafkaError | None:
    return next((error for error in results.values() if error is not None), None)


async def _planned(cluster: Cluster, group_id: str, has: Mapping[str, Any]) -> dict[TopicPartition, int]:
    committed = await _committed(cluster, group_id)
    wanted = await _partitions_asked(cluster, group_id, committed, has)
    reset = reset_asked(has)
    if reset is None:
        names = ", ".join(f"[{name}]" for name in lines.SCENARIOS)
        raise UsageProblem(f"Option '[reset-offsets]' requires one of the following scenarios: [{names}]")
    file: dict[TopicPartition, int] | None = None
    if reset.rule is Rule.FILE:
        file = file_of(has["from-file"], group_id)
        wanted = list(file)
    logs = await logs_for(cluster, wanted, reset.value if reset.rule is Rule.TIME else None)
    try:
        planned = plan(reset, logs, {place: each.offset for place, each in committed.items()}, file)
    except NoOffsetError as error:
        raise UsageProblem(str(error)) from None
    for each, new in planned.items():
        if new.instead_of is not None:
            which = "higher than latest" if new.instead_of > new.offset else "lower than earliest"
            said = f"New offset ({new.instead_of}) is {which} offset for topic partition {each}."
            note(f"{said} Value will be set to {new.offset}")
    return {each: new.offset for each, new in planned.items()}


async def _partitions_asked(
    cluster: Cluster, group_id: str, committed: Mapping[TopicPartition, object], has: Mapping[str, Any]
) -> list[TopicPartition]:
    if "all-input-topics" in has:
        return await _of_source_topics(cluster, group_id, committed)
    if "input-topic" not in has:
        if "from-file" not in has:
            raise UsageProblem("One of the reset scopes should be defined: --all-topics, --topic.")
        return []
    wanted = await partitions_named(cluster, has["input-topic"])
    if any(place not in committed for place in wanted):
        say_error(f"One or more topics are not part of the group '{group_id}'.")
        return []
    await check_partitions(cluster, wanted)
    return wanted


async def _of_source_topics(
    cluster: Cluster, group_id: str, committed: Mapping[TopicPartition, object]
) -> list[TopicPartition]:
    """Return the partitions of source topics among these. Repartition topics are not: the application fills them."""
    group = (await StreamsGroups(cluster).describe_streams_groups([group_id]))[group_id]
    if isinstance(group, KafkaError):
        raise ToolProblem(f"{EXECUTION}: {exception_text(group)}")
    sources = {topic for each in group.subtopologies for topic in each.source_topics}
    return [each for each in committed if each.topic in sources]


# --- deleting


async def _delete(cluster: Cluster, has: Mapping[str, Any]) -> None:
    listed = {each.group_id: each for each in await _listed(cluster)}
    wanted = list(listed) if "all-groups" in has else list(dict.fromkeys(has["group"]))
    failed: dict[str, str] = {}
    for group_id in wanted:
        listing = listed.get(group_id)
        if listing is None:
            failed[group_id] = _NOT_STREAMS.format(group_id)
        elif listing.state == "Dead":
            failed[group_id] = f"java.lang.IllegalStateException: Streams group '{group_id}' group state is DEAD."
        elif listing.state not in ("Empty", None):
            error = KafkaError(ErrorCode.NON_EMPTY_GROUP, f"Streams group '{group_id}' is not EMPTY.")
            failed[group_id] = exception_text(error)
    deleted: list[str] = []
    asked = [each for each in wanted if each not in failed]
    internal = await _internal_topics_of(cluster, asked) if "delete-all-internal-topics" in has else {}
    for group_id, result in (await Groups(cluster).delete_groups(asked)).items() if asked else ():
        if isinstance(result, KafkaError):
            failed[group_id] = exception_text(result)
        else:
            deleted.append(group_id)
    deleted = hash_order(deleted, string_hash)
    kept = {each: why for each in deleted if (why := await _delete_topics(cluster, internal.get(each, ())))}
    if not failed:
        say(f"Deletion of requested streams groups ({lines.names_text(deleted)}) was successful.\n")
    else:
        say_error("Deletion of some streams groups failed:")
        for group_id in hash_order(failed, string_hash):
            say(f"* Group '{group_id}' could not be deleted due to: {failed[group_id]}\n")
        if deleted:
            say(f"\nThese streams groups were deleted successfully: {lines.names_text(deleted)}.\n")
    if deleted and internal:
        say(lines.deleted_topics_text([each for each in deleted if each in internal], kept))


async def _internal_topics_of(cluster: Cluster, group_ids: list[str]) -> dict[str, list[str]]:
    """Return the internal topics of groups that have any."""
    found: dict[str, list[str]] = {}
    for group_id, group in (await StreamsGroups(cluster).describe_streams_groups(group_ids)).items():
        if isinstance(group, KafkaError):
            say_error(f"Retrieving internal topics failed due to {exception_text(group)}")
            return {}
        if topics := _internal_topics(group):
            found[group_id] = topics
    return found


async def _delete_topics(cluster: Cluster, topics: Iterable[str]) -> str | None:
    """Delete the internal topics of a group that was deleted. Returns the first error as text."""
    results = await Topics(cluster).delete_topics(topics) if topics else {}
    for topic, error in results.items():
        if error is not None:
            say(f"Failed to delete internal topic: {topic}\n")
    error = _first_error(results)
    return None if error is None else exception_text(error)


async def _delete_offsets(cluster: Cluster, has: Mapping[str, Any]) -> None:
    group_id = has["group"][-1]
    texts: dict[TopicPartition, str | None] = {}
    if "all-input-topics" in has:
        wanted = await _of_source_topics(cluster, group_id, await _committed(cluster, group_id))
    else:
        wanted, texts = await partitions_to_delete(cluster, has["input-topic"])
    results: dict[TopicPartition, KafkaError | None] = {}
    first: KafkaError | None = None
    try:
        if wanted:
            results = await Groups(cluster).delete_consumer_group_offsets(group_id, wanted)
        first = next((error for each in hash_order(results, partition_hash) if (error := results[each])), None)
    except KafkaError as error:
        results, first = dict.fromkeys(wanted, error), error
    if first is None:
        say(f"Request succeeded for deleting offsets from group {group_id}.\n")
    elif first.code in GROUP_LEVEL:
        say_error(str(first.code.message))
    elif first.code in PARTITION_LEVEL:
        say_error("Encountered some partition-level error, see the follow-up details.")
    else:
        say_error(f"Encountered some unknown error: {first.code.name}")
    texts.update((place, exception_text(each) if each else None) for place, each in results.items())
    say(lines.deleted_offsets_text(texts))
