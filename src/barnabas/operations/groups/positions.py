"""Positions of groups in a live cluster: ends of partitions, and the oldest unread record of each group in them.

Lag is defined in `operations.groups.lag`. Lag in time costs one Fetch for each offset below the end of its partition,
and needs the right to read the topic. Another Fetch follows only if the fetched batch holds no record that a consumer can read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from barnabas.client.admin.groups import CommittedOffset, GroupDescription, GroupMember, GroupOffsets
from barnabas.client.admin.leaders import Answers, ask_leaders
from barnabas.client.admin.part import failed
from barnabas.client.admin.records import ListedOffset, OffsetSpec, Records
from barnabas.client.cluster import Cluster
from barnabas.client.errors import UnsupportedByNodeError
from barnabas.client.records import TopicPartition
from barnabas.client.routing import node
from barnabas.operations.groups.lag import (
    PartitionPosition,
    lag_in_time,
    partition_owners,
    partitions_of_group,
    scan_batches,
)
from barnabas.operations.groups.reset_plan import Log
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse

MAX_FETCHES = 5
"""Fetches for one offset. If none of them returns a record, the lag in time is not known."""
_FIRST_FETCH_BYTES = 1
"""A broker returns the first batch whole, however small the limit."""
_NEXT_FETCH_BYTES = 64 * 1024
"""Room for many control batches: where there is one, there are often more."""
_LAST_FETCH_WITH_NAMES = 12
_FETCHES_AT_ONCE = 8

OffsetInPartition: TypeAlias = tuple[TopicPartition, int]
"""An offset in a partition."""


async def positions(
    cluster: Cluster,
    groups: Mapping[str, tuple[GroupDescription | None, GroupOffsets]],
    *,
    now_ms: int | None,
    shared_lags: Mapping[str, Mapping[TopicPartition, int | None]] = MappingProxyType({}),
) -> dict[str, list[PartitionPosition]]:
    """Return the position of each group in every partition that it has an offset in or is assigned, by topic and number.

    `now_ms` is the moment at which lag in time is measured; None leaves lag in time out. The end of each partition is asked for
    once, and each offset is fetched once, however many groups share it. `shared_lags` has the lags of share groups.
    """
    partitions = {
        group_id: partitions_of_group(group, {**offsets, **shared_lags.get(group_id, {})})
        for group_id, (group, offsets) in groups.items()
    }
    wanted = sorted({each for some in partitions.values() for each in some})
    ends = await Records(cluster).list_offsets(dict.fromkeys(wanted, OffsetSpec.LATEST))
    places = {
        (each, value.offset)
        for group_id, (_, offsets) in groups.items()
        if group_id not in shared_lags
        for each, value in offsets.items()
        if isinstance(value, CommittedOffset)
    }
    lags = {} if now_ms is None else await lags_in_time_ms(cluster, places, ends, now_ms)

    def of_group(group_id: str) -> list[PartitionPosition]:
        description, offsets = groups[group_id]
        owners = partition_owners(description)
        found = [
            _position(each, offsets.get(each), ends.get(each), owners.get(each), lags) for each in partitions[group_id]
        ]
        shared = shared_lags.get(group_id)
        if shared is None:
            return found
        return [_shared(each, shared.get(TopicPartition(each.topic, each.partition))) for each in found]

    return {group_id: of_group(group_id) for group_id in groups}


def _shared(position: PartitionPosition, lag: int | None) -> PartitionPosition:
    """Return the position of a share group. It belongs to all members, and the oldest record to be done is not known."""
    return replace(position, is_shared=True, shared_lag=lag, member=None, lag_ms=0 if lag == 0 else None)


def _position(
    each: TopicPartition,
    committed: CommittedOffset | KafkaError | None,
    end: ListedOffset | KafkaError | None,
    member: GroupMember | None,
    lags: Mapping[OffsetInPartition, int | None],
) -> PartitionPosition:
    committed_error = committed if isinstance(committed, KafkaError) else None
    value = None if isinstance(committed, KafkaError) else committed
    return PartitionPosition(
        *each,
        committed=value,
        log_end_offset=_offset(end),
        member=member,
        lag_ms=None if value is None else lags.get((each, value.offset)),
        committed_error=committed_error,
        log_end_error=end if isinstance(end, KafkaError) else None,
    )


async def lags_in_time_ms(
    cluster: Cluster,
    places: Iterable[OffsetInPartition],
    ends: Mapping[TopicPartition, ListedOffset | KafkaError],
    now_ms: int,
) -> dict[OffsetInPartition, int | None]:
    """Return the lag in time of each committed offset. None, or no entry: it is not known."""
    lags: dict[OffsetInPartition, int | None] = {}
    behind: list[tuple[TopicPartition, int, int]] = []
    for each, offset in places:
        end = _offset(ends.get(each))
        if end is None:
            continue
        if offset < end:
            behind.append((each, offset, end))
        else:
            lags[each, offset] = 0
    starts = await Records(cluster).list_offsets(
        dict.fromkeys(sorted({each for each, _, _ in behind}), OffsetSpec.EARLIEST)
    )
    reads: dict[TopicPartition, dict[int, int]] = {}
    first_offsets = {(each, offset): max(offset, _offset(starts.get(each)) or 0) for each, offset, _ in behind}
    for each, offset, end in behind:
        reads.setdefault(each, {})[first_offsets[each, offset]] = end
    found = await _ages_ms(cluster, reads, now_ms)
    return lags | {place: found.get(place[0], {}).get(first) for place, first in first_offsets.items()}


async def _ages_ms(
    cluster: Cluster, reads: Mapping[TopicPartition, Mapping[int, int]], now_ms: int
) -> dict[TopicPartition, dict[int, int | None]]:
    """Return the age of the oldest record from each offset to the end that belongs to it; 0 if there is none."""
    at_once = asyncio.Semaphore(_FETCHES_AT_ONCE)

    async def ask(node_id: int, asked: list[TopicPartition], wait_ms: float) -> Answers[dict[int, int | None]]:
        best = (await cluster.versions(node(node_id))).best("Fetch")
        version = None if best is None else min(best, _LAST_FETCH_WITH_NAMES)

        async def fetch(each: TopicPartition, offset: int, max_bytes: int) -> FetchResponse.PartitionData | None:
            request = _fetch_request(each, offset, max_bytes)
            async with at_once:
                response = await cluster.send(
                    request, node(node_id), version=version, timeout_ms=wait_ms, lane="batches"
                )
            return next((row for topic in response.responses for row in topic.partitions), None)

        async def age_ms(each: TopicPartition, offset: int, end: int) -> int | KafkaError | None:
            max_bytes = _FIRST_FETCH_BYTES
            for _ in range(MAX_FETCHES):
                if offset >= end:
                    return 0
                row = await fetch(each, offset, max_bytes)
                if row is None:
                    return None
                if error := failed(row.error_code):
                    return error
                if not row.records:
                    return 0 if row.high_watermark > offset and await _is_local(cluster, each, offset) else None
                scan = scan_batches(bytes(row.records), offset)
                if scan is None:
                    return None
                if scan.record is not None:
                    # A record at or past the end was written after the end was listed.
                    return lag_in_time(now_ms, scan.record.timestamp) if scan.record.offset < end else 0
                offset, max_bytes = scan.next_offset, _NEXT_FETCH_BYTES
            return 0 if offset >= end else None

        # One request for each: a broker returns a whole batch only for the first partition of a request.
        wanted = [(each, offset, end) for each in asked for offset, end in sorted(reads[each].items())]
        ages = await asyncio.gather(*(age_ms(*place) for place in wanted))
        found: dict[TopicPartition, dict[int, int | None]] = {each: {} for each in asked}
        errors: dict[TopicPartition, KafkaError] = {}
        for (each, offset, _), age in zip(wanted, ages, strict=True):
            if isinstance(age, KafkaError):
                errors[each] = age
            else:
                found[each][offset] = age
        return {each: ages_of or errors[each] for each, ages_of in found.items()}

    found = await ask_leaders(cluster, reads, ask)
    return {each: ages for each, ages in found.items() if not isinstance(ages, KafkaError)}


async def _is_local(cluster: Cluster, each: TopicPartition, offset: int) -> bool:
    """Check that the leader has the offset on its own disk: only then an empty answer means that no record follows it."""
    try:
        start = (await Records(cluster).list_offsets({each: OffsetSpec.EARLIEST_LOCAL}))[each]
    except UnsupportedByNodeError:  # Brokers that are older than remote storage have everything on their own disk.
        return True
    return isinstance(start, ListedOffset) and 0 <= start.offset <= offset


def _fetch_request(each: TopicPartition, offset: int, max_bytes: int) -> FetchRequest:
    partition = FetchRequest.FetchPartition(
        partition=each.partition, fetch_offset=offset, partition_max_bytes=max_bytes
    )
    topic = FetchRequest.FetchTopic(topic=each.topic, partitions=[partition])
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, topics=[topic])


async def logs_of(
    cluster: Cluster, partitions: Iterable[TopicPartition], time_ms: int | None = None
) -> dict[TopicPartition, Log | KafkaError]:
    """Return the start and the end of each partition, and its first offset at or after `time_ms` if that is not None."""
    wanted = list(dict.fromkeys(partitions))
    specs = [OffsetSpec.EARLIEST, OffsetSpec.LATEST, *([] if time_ms is None else [time_ms])]
    found = await asyncio.gather(*(Records(cluster).list_offsets(dict.fromkeys(wanted, spec)) for spec in specs))
    logs: dict[TopicPartition, Log | KafkaError] = {}
    for each in wanted:
        answers = [answer[each] for answer in found]
        error = next((answer for answer in answers if isinstance(answer, KafkaError)), None)
        logs[each] = error or Log(*(_offset(answer) for answer in answers))  # type: ignore[arg-type]
    return logs


def _offset(found: ListedOffset | KafkaError | None) -> int | None:
    return found.offset if isinstance(found, ListedOffset) and found.offset >= 0 else None
