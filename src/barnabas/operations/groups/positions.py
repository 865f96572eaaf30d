"""How far groups are behind: in records, and in time.

Its one rule: what cannot be found out is None, and never a guess. The lag in time is between the last record that a group has
read and the newest in the partition; where the record before the committed offset is gone, the first that is still there
stands for it. One batch of each partition that lags is fetched for that, which needs the right to read the topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from barnabas.batches.errors import BatchError
from barnabas.batches.reader import decode_records, iterate_batches
from barnabas.client.admin.groups import CommittedOffset, GroupDescription, GroupMember, GroupOffsets
from barnabas.client.admin.leaders import Answers, ask_leaders
from barnabas.client.admin.records import ListedOffset, OffsetSpec, Records
from barnabas.client.cluster import Cluster
from barnabas.client.errors import UnsupportedByNodeError
from barnabas.client.records import TopicPartition
from barnabas.client.routing import node
from barnabas.operations.groups.reset_plan import Log
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse

_LAST_FETCH_WITH_NAMES = 12
_FETCHES_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class PartitionPosition:
    """Where a group is in one partition. None: there is no such thing, or it is not known."""

    topic: str
    partition: int
    committed: CommittedOffset | None
    log_end_offset: int | None
    member: GroupMember | None
    lag_ms: int | None = None

    @property
    def lag(self) -> int | None:
        if self.committed is None or self.log_end_offset is None:
            return None
        return max(self.log_end_offset - self.committed.offset, 0)


async def positions(
    cluster: Cluster, groups: Mapping[str, tuple[GroupDescription, GroupOffsets]], *, with_time: bool
) -> dict[str, list[PartitionPosition]]:
    """Of each group every partition that it has an offset in, or that one of its members has, by topic and number.

    What is asked of the logs is asked once for all groups.
    """
    owners = {
        group_id: {each: member for member in description.members for each in member.assignment}
        for group_id, (description, _) in groups.items()
    }
    committed = {
        group_id: {each: value for each, value in offsets.items() if isinstance(value, CommittedOffset)}
        for group_id, (_, offsets) in groups.items()
    }
    partitions = {group_id: sorted({*groups[group_id][1], *owners[group_id]}) for group_id in groups}
    wanted = {each for some in partitions.values() for each in some}
    ends = await Records(cluster).list_offsets(dict.fromkeys(sorted(wanted), OffsetSpec.LATEST))
    places = {(each, value.offset) for offsets in committed.values() for each, value in offsets.items()}
    times = await _lags_ms(cluster, places, ends) if with_time else {}

    def position(group_id: str, each: TopicPartition) -> PartitionPosition:
        value = committed[group_id].get(each)
        lag_ms = None if value is None else times.get((each, value.offset))
        return PartitionPosition(*each, value, _offset(ends.get(each)), owners[group_id].get(each), lag_ms)

    return {group_id: [position(group_id, each) for each in some] for group_id, some in partitions.items()}


Place: TypeAlias = tuple[TopicPartition, int]


async def _lags_ms(
    cluster: Cluster, places: Iterable[Place], ends: Mapping[TopicPartition, ListedOffset | KafkaError]
) -> dict[Place, int | None]:
    """How much older the last record before each offset is than the newest of its partition."""
    lags: dict[Place, int | None] = {}
    behind: list[Place] = []
    for each, offset in places:
        end = _offset(ends.get(each))
        if end is not None and offset < end:
            behind.append((each, offset))
        elif end is not None:
            lags[each, offset] = 0
    partitions = sorted({each for each, _ in behind})
    if not partitions:
        return lags
    starts = await Records(cluster).list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    read = {(each, offset): (each, max(offset - 1, _offset(starts.get(each)) or 0)) for each, offset in behind}
    consumed, newest = await asyncio.gather(
        record_times(cluster, read.values()), _newest_times(cluster, partitions, ends)
    )
    for place, before in read.items():
        first, last = consumed.get(before), newest.get(place[0])
        lags[place] = max(last - first, 0) if first is not None and last is not None else None
    return lags


async def _newest_times(
    cluster: Cluster, partitions: Iterable[TopicPartition], ends: Mapping[TopicPartition, ListedOffset | KafkaError]
) -> dict[TopicPartition, int]:
    try:
        found = await Records(cluster).list_offsets(dict.fromkeys(partitions, OffsetSpec.MAX_TIMESTAMP))
    except UnsupportedByNodeError:  # before Kafka 3.0
        last = await record_times(cluster, ((each, (_offset(ends[each]) or 1) - 1) for each in partitions))
        return {each: time_ms for (each, _), time_ms in last.items()}
    return {
        each: value.timestamp
        for each, value in found.items()
        if not isinstance(value, KafkaError) and value.timestamp >= 0
    }


async def logs_of(
    cluster: Cluster, partitions: Iterable[TopicPartition], time_ms: int | None = None
) -> dict[TopicPartition, Log | KafkaError]:
    """Where partitions begin and end, and their first offset at or after a time, if one is given."""
    wanted = list(dict.fromkeys(partitions))
    specs = [OffsetSpec.EARLIEST, OffsetSpec.LATEST, *([] if time_ms is None else [time_ms])]
    found = await asyncio.gather(*(Records(cluster).list_offsets(dict.fromkeys(wanted, spec)) for spec in specs))
    logs: dict[TopicPartition, Log | KafkaError] = {}
    for each in wanted:
        answers = [answer[each] for answer in found]
        error = next((answer for answer in answers if isinstance(answer, KafkaError)), None)
        logs[each] = error or Log(*(_offset(answer) for answer in answers))  # type: ignore[arg-type]
    return logs


async def record_times(cluster: Cluster, places: Iterable[Place]) -> dict[Place, int]:
    """The timestamp of the record at each offset, or of the first after it, where that can be read."""
    at_once = asyncio.Semaphore(_FETCHES_AT_ONCE)
    offsets: dict[TopicPartition, set[int]] = {}
    for each, offset in places:
        offsets.setdefault(each, set()).add(offset)

    async def ask(node_id: int, asked: list[TopicPartition], wait_ms: float) -> Answers[dict[int, int]]:
        best = (await cluster.versions(node(node_id))).best("Fetch")
        version = None if best is None else min(best, _LAST_FETCH_WITH_NAMES)

        async def fetch(each: TopicPartition, offset: int) -> int | None:
            async with at_once:
                response = await cluster.send(
                    _one_batch(each, offset), node(node_id), version=version, timeout_ms=wait_ms, lane="batches"
                )
            return _time_in(response, offset)

        # A request each: a broker sends a whole batch only for the first partition that it is asked for.
        wanted = [(each, offset) for each in asked for offset in sorted(offsets[each])]
        times = await asyncio.gather(*(fetch(*place) for place in wanted))
        found: dict[TopicPartition, dict[int, int]] = {each: {} for each in asked}
        for (each, offset), time_ms in zip(wanted, times, strict=True):
            if time_ms is not None:
                found[each][offset] = time_ms
        return dict(found)

    found = await ask_leaders(cluster, offsets, ask)
    return {
        (each, offset): time_ms
        for each, times in found.items()
        if not isinstance(times, KafkaError)
        for offset, time_ms in times.items()
    }


def _one_batch(each: TopicPartition, offset: int) -> FetchRequest:
    partition = FetchRequest.FetchPartition(partition=each.partition, fetch_offset=offset, partition_max_bytes=1)
    topic = FetchRequest.FetchTopic(topic=each.topic, partitions=[partition])
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1, topics=[topic])


def _time_in(response: FetchResponse, offset: int) -> int | None:
    for topic in response.responses:
        for row in topic.partitions:
            data = bytes(row.records or b"")
            try:
                for position, header in iterate_batches(data, tolerate_truncated=True):
                    if header.last_offset < offset:
                        continue
                    if header.is_control or header.last_offset == offset == header.base_offset:
                        return header.max_timestamp
                    records = decode_records(data, position, header)
                    # What compaction has left of the batch may all be before the offset.
                    return next((each.timestamp for each in records if each.offset >= offset), header.max_timestamp)
            except BatchError:  # of a format or a codec that is not read here
                return None
    return None


def _offset(found: ListedOffset | KafkaError | None) -> int | None:
    return found.offset if isinstance(found, ListedOffset) and found.offset >= 0 else None
