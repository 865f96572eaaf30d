"""ListOffsets (2), versions 1 to 11.

Needs DESCRIBE on the topic. A timestamp finds the first record that is not earlier. Negative values have special
meanings: -1 is the end visible at the isolation level, -2 the start, and -3 the record with the largest timestamp (from
version 7 on). -4 is the start of local storage, which here is the start of the log (from version 8 on). -5 is the end
of tiered storage (from version 9 on) and -6 the start of what is not uploaded yet (from version 11 on); here both
return offset -1. Any other negative value, or one that the version does not have, is UNSUPPORTED_VERSION. A record that
clients cannot fetch yet is not found: offset -1 without an error. A new leader whose high watermark has not reached the
start of its epoch answers OFFSET_NOT_AVAILABLE, up to version 4 LEADER_NOT_AVAILABLE. A duplicate partition is
INVALID_REQUEST.

Searches by time may read from disk and run in a thread. Rows have the order of the request (Kafka: of a hash table),
with topics that the caller may not DESCRIBE at the end.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from typing import NamedTuple

from barnabas.broker.context import Context
from barnabas.replicas import reading
from barnabas.replicas.partition import Partition
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.slices import Slices
from barnabas.storage import FoundOffset, StorageError
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

Topic = ListOffsetsResponse.ListOffsetsTopicResponse
Row = ListOffsetsResponse.ListOffsetsPartitionResponse

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
FIRST_VERSIONS = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
DEBUGGING_REPLICA = -2
_FIRST_WITH_EPOCHS = 4
_FIRST_WITH_OFFSET_NOT_AVAILABLE = 5


class Search(NamedTuple):
    """A row to fill by a search by time, if the record found can be fetched already."""

    row: Row
    partition: Partition
    timestamp: int
    end: int
    is_lagging: bool


def handle(
    context: Context, request: ListOffsetsRequest
) -> Slices[ListOffsetsResponse | Awaitable[ListOffsetsResponse]]:
    topics: dict[str, Topic] = {}
    refused: list[Topic] = []
    searches: list[Search] = []
    counts: Counter[tuple[str, int]] = Counter()
    for topic in request.topics:
        yield
        for each in topic.partitions:
            counts[topic.name, each.partition_index] += 1
            yield
    for topic in request.topics:
        yield
        if not context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            rows = []
            for each in topic.partitions:
                rows.append(Row(partition_index=each.partition_index, error_code=code))
                yield
            refused.append(Topic(name=topic.name, partitions=rows))
            continue
        answered = topics.setdefault(topic.name, Topic(name=topic.name))
        for each in topic.partitions:
            row = Row(partition_index=each.partition_index)
            count = counts.pop((topic.name, each.partition_index), 0)
            if not count:
                yield
                continue  # a duplicate partition, which has its row already
            answered.partitions.append(row)
            if count > 1:
                row.error_code = ErrorCode.INVALID_REQUEST
            elif each.timestamp < 0 and context.version < FIRST_VERSIONS.get(each.timestamp, context.version + 1):
                row.error_code = ErrorCode.UNSUPPORTED_VERSION
            else:
                yield context.services.replicas.opening_of(topic.name, each.partition_index)
                _look_up(context, request, topic.name, each, row, searches)
    response = ListOffsetsResponse(topics=[*topics.values(), *refused])
    return _search(context, searches, response) if searches else response


def _look_up(
    context: Context,
    request: ListOffsetsRequest,
    name: str,
    asked: ListOffsetsRequest.ListOffsetsPartition,
    row: Row,
    searches: list[Search],
) -> None:
    timestamp = asked.timestamp
    try:
        partition = context.services.replicas.partition(name, asked.partition_index)
        only_leader = request.replica_id != DEBUGGING_REPLICA
        reading.check_leadership(partition, asked.current_leader_epoch, only_leader=only_leader)
        log = partition.log
        is_client = request.replica_id == reading.CONSUMER
        is_lagging = is_client and partition.is_leader and _is_lagging(partition)
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            first = next(iter(log.epochs.entries), None)
            epoch = first.epoch if first is not None and first.start_offset <= log.log_start_offset else -1
            _fill(context, row, -1, log.log_start_offset, epoch)
        elif timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            _fill(context, row, -1, -1, -1)
        else:
            end = log.log_end_offset
            if is_client:
                end = partition.last_stable_offset if request.isolation_level == 1 else partition.high_watermark
            if timestamp != LATEST:
                searches.append(Search(row, partition, timestamp, end, is_lagging))
            elif is_lagging:
                row.error_code = _not_available(context)
            else:
                _fill(context, row, -1, end, partition.leader_epoch)
    except KafkaError as error:
        row.error_code = error.code


def _is_lagging(partition: Partition) -> bool:
    """Return True if the high watermark of a new leader has not reached the start of its epoch."""
    epochs = partition.log.epochs.entries
    return (
        bool(epochs)
        and epochs[-1].epoch == partition.leader_epoch
        and (epochs[-1].start_offset > partition.high_watermark)
    )


def _not_available(context: Context) -> ErrorCode:
    is_known = context.version >= _FIRST_WITH_OFFSET_NOT_AVAILABLE
    return ErrorCode.OFFSET_NOT_AVAILABLE if is_known else ErrorCode.LEADER_NOT_AVAILABLE


def _fill(context: Context, row: Row, timestamp: int, offset: int, leader_epoch: int) -> None:
    row.timestamp = timestamp
    row.offset = offset
    if context.version >= _FIRST_WITH_EPOCHS:
        row.leader_epoch = leader_epoch


async def _search(context: Context, searches: list[Search], response: ListOffsetsResponse) -> ListOffsetsResponse:
    for search, found in zip(searches, await asyncio.to_thread(_search_all, searches), strict=True):
        if isinstance(found, StorageError):
            search.row.error_code = search.partition.read_failed(found)
        elif found is not None and found.offset < search.end:
            _fill(context, search.row, *found)
        elif search.is_lagging:
            search.row.error_code = _not_available(context)
    return response


def _search_all(searches: list[Search]) -> list[FoundOffset | StorageError | None]:
    return [_search_one(search) for search in searches]


def _search_one(search: Search) -> FoundOffset | StorageError | None:
    try:
        log = search.partition.log
        if search.timestamp == MAX_TIMESTAMP:
            return log.offset_for_max_timestamp()
        return log.offset_for_timestamp(search.timestamp)
    except StorageError as error:
        return error
