"""Copies of a group's committed offsets to another group, for the same topics, for copies of them, or in another cluster.

Its one rule: a group never skips a record because of a copy; it may read some again. What cannot be copied so is refused.

**The same topics**: offsets are copied as they are, with their metadata.

**Copies of topics**: a record has another offset there, so the offset is found by time. Let T be the timestamp of the oldest
record that the group has not read. The new offset is that of the first record at or after T in the copy. If the copy holds that
record with the same or a later timestamp (log append time), it is at or after this offset. This needs records in the same
partitions, in the same order. So it is refused if the numbers of partitions differ, or if the time of the oldest unread
record is unknown. If nothing is unread, the offset of the first record that is newer than all of the source is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.client.admin.groups import CommittedOffset, Groups
from barnabas.client.admin.records import ListedOffset, OffsetSpec, Records
from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.operations.errors import OperationError, refused
from barnabas.operations.groups.any_type import SHARE_TYPE, types_of
from barnabas.operations.groups.positions import lags_in_time_ms, logs_of
from barnabas.operations.groups.reset_plan import Log
from barnabas.operations.groups.resets import OffsetChange, committed_offsets, require_empty
from barnabas.operations.partitions import Selection
from barnabas.operations.proposal import Proposal
from barnabas.wire.errors import KafkaError

_LATER_THAN_ALL_MS = 1 << 62
"""A moment from which the age of every record is above 0: the difference from the age is the timestamp."""


class OffsetCopy(NamedTuple):
    """A copied offset: the partition it is from, the offset there, and the change of the target group."""

    source: TopicPartition
    source_offset: int
    change: OffsetChange


Copies = dict[TopicPartition, OffsetCopy]
"""The copied offsets by partition of the target group."""


async def propose_group_copy(
    source: Cluster,
    target: Cluster,
    group_id: str,
    new_group_id: str,
    selections: Iterable[Selection] = (),
    renamed: Mapping[str, str] | None = None,
) -> Proposal[TopicPartition, OffsetCopy]:
    """Propose to give a group the offsets of another. Raises OperationError, for one group or partition that is refused.

    Without selections, all offsets are copied. `renamed` has the names of topics whose copies have another name.
    """
    is_same_cluster = source is target or source.state.cluster_id == target.state.cluster_id
    names = dict(renamed or {})
    if is_same_cluster and group_id == new_group_id and not names:
        raise OperationError("a group cannot be copied to itself", resource=f"group {group_id}")
    found = await _committed(source, group_id, list(selections), names)
    if await require_empty(target, new_group_id) == SHARE_TYPE:
        raise _is_share_group(new_group_id)
    before = await committed_offsets(target, new_group_id)
    by_time = [each for each in found if not is_same_cluster or each.topic in names]
    new = {each: value for each, value in found.items() if each not in by_time}
    notes: list[str] = []
    if by_time:
        await _check_partitions(source, target, by_time, names)
        offsets, notes = await _offsets_by_time(source, target, {each: found[each].offset for each in by_time}, names)
        new |= {each: CommittedOffset(offset) for each, offset in offsets.items()}
    expected = {}
    for each, value in sorted(new.items()):
        place = TopicPartition(names.get(each.topic, each.topic), each.partition)
        expected[place] = OffsetCopy(each, found[each].offset, OffsetChange(before.get(place), value.offset))
    wanted = {place: new[copy.source] for place, copy in expected.items()}

    async def carry_out() -> Copies:
        results = await Groups(target).alter_consumer_group_offsets(new_group_id, wanted)
        return {
            place: copy._replace(change=copy.change._replace(error=results[place])) for place, copy in expected.items()
        }

    count = len(expected)
    return Proposal(
        expected,
        tuple(_step(new_group_id, place, copy) for place, copy in expected.items()),
        tuple(notes),
        question=f"Set {count} offset{'' if count == 1 else 's'} of group {new_group_id}?",
        carry_out=carry_out,
    )


def _step(group_id: str, place: TopicPartition, copy: OffsetCopy) -> str:
    old = "none" if copy.change.old is None else copy.change.old
    of = f" ({copy.source_offset} in the source)" if copy.source_offset != copy.change.new else ""
    return f"set the offset of {group_id} in {place} from {old} to {copy.change.new}{of}"


def _is_share_group(group_id: str) -> OperationError:
    return OperationError("is a share group, which has no committed offsets", resource=f"group {group_id}")


async def _committed(
    cluster: Cluster, group_id: str, selections: list[Selection], renamed: Mapping[str, str]
) -> dict[TopicPartition, CommittedOffset]:
    found = (await Groups(cluster).list_consumer_group_offsets([group_id]))[group_id]
    if isinstance(found, KafkaError):
        raise refused(found, f"group {group_id}")
    for each, value in found.items():
        if isinstance(value, KafkaError):
            raise refused(value, str(each))
    committed = {
        each: value
        for each, value in found.items()
        if isinstance(value, CommittedOffset)
        and (not selections or any(selection.covers(*each) for selection in selections))
    }
    if not committed:
        if (await types_of(cluster, [group_id])).get(group_id) == SHARE_TYPE:
            raise _is_share_group(group_id)
        raise OperationError("has no committed offsets to copy", resource=f"group {group_id}")
    if missing := [name for name in renamed if not any(each.topic == name for each in committed)]:
        raise OperationError(f"has no committed offsets in {missing[0]}", resource=f"group {group_id}")
    return committed


async def _check_partitions(
    source: Cluster, target: Cluster, partitions: Iterable[TopicPartition], renamed: Mapping[str, str]
) -> None:
    topics = sorted({each.topic for each in partitions})
    here = await source.metadata(topics)
    there = await target.metadata([renamed.get(name, name) for name in topics])
    for name in topics:
        copy = renamed.get(name, name)
        for state, topic in ((here, name), (there, copy)):
            if topic in state.errors:
                raise refused(KafkaError(state.errors[topic]), f"topic {topic}")
        counts = len(here.topics[name].partitions), len(there.topics[copy].partitions)
        if counts[0] != counts[1]:
            raise OperationError(
                f"the copy has {counts[1]} partitions and the source {counts[0]}: records are in other partitions, "
                "so no offset of the copy continues where the group is",
                resource=f"topic {copy}",
                advice="copy the topic with the same number of partitions, or use: barnabas groups reset --to-datetime",
            )


async def _offsets_by_time(
    source: Cluster, target: Cluster, offsets: Mapping[TopicPartition, int], renamed: Mapping[str, str]
) -> tuple[dict[TopicPartition, int], list[str]]:
    """Return the offset in the copy of each partition, and notes. Raises OperationError if one is unknown."""
    places = [TopicPartition(*each) for each in sorted(offsets)]
    copies = {each: TopicPartition(renamed.get(each.topic, each.topic), each.partition) for each in places}
    ends = await Records(source).list_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
    ages = await lags_in_time_ms(source, [(each, offsets[each]) for each in places], ends, _LATER_THAN_ALL_MS)
    newest = await Records(source).list_offsets(dict.fromkeys(places, OffsetSpec.MAX_TIMESTAMP))
    logs = await logs_of(target, copies.values())
    times: dict[TopicPartition, int | None] = {}
    for each in places:
        log = logs[copies[each]]
        if isinstance(log, KafkaError):
            raise refused(log, str(copies[each]))
        times[each] = _time_of(each, ages.get((each, offsets[each])), newest[each], log)
    asked = {copies[each]: time_ms for each, time_ms in times.items() if time_ms is not None}
    found = await Records(target).list_offsets(asked)
    new, notes = {}, []
    for each in places:
        answer, log = found.get(copies[each]), logs[copies[each]]
        if isinstance(answer, KafkaError):
            raise refused(answer, str(copies[each]))
        assert isinstance(log, Log)
        if answer is not None and answer.offset >= 0:
            new[each] = answer.offset
        else:
            new[each] = log.end
            if ages.get((each, offsets[each])):
                notes.append(
                    f"{copies[each]}: the oldest unread record was not copied yet; the group starts at the end, {log.end}"
                )
    return new, notes


def _time_of(each: TopicPartition, age_ms: int | None, newest: ListedOffset | KafkaError, copy: Log) -> int | None:
    """Return the time to look for in the copy, or None for its end. Raises OperationError if the time is unknown.

    `age_ms` is the age of the oldest unread record; 0 if nothing is unread.
    """
    if age_ms:
        return _LATER_THAN_ALL_MS - age_ms
    if age_ms == 0 and isinstance(newest, ListedOffset) and newest.timestamp >= 0:
        return newest.timestamp + 1
    if age_ms == 0 and copy.start == copy.end:
        return None
    raise OperationError(
        "the time of the oldest unread record is not known, so its place in the copy is not either",
        resource=str(each),
        advice="leave it out by naming the others with --topic, or use: barnabas groups reset",
    )
