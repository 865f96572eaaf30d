"""Decisions about committed offsets: commit, fetch, delete, expire.

Pure. The input is an image (the committed one or the head), the group with its soft state, the request and the time.
The request has only topics that the client is allowed to use, each with its name and id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from barnabas.batches.format import MAX_INT64
from barnabas.groups.image import (
    NO_OFFSETS,
    CheckPartition,
    CommittedOffset,
    Group,
    GroupsImage,
    GroupType,
    group_not_found,
)
from barnabas.groups.offset_records import NO_TIMESTAMP, offset_record, offset_tombstone
from barnabas.metadata.pmap import PMap
from barnabas.replicated.decision import KeyValue, Producer, Result
from barnabas.steps import Slices
from barnabas.wire import ZERO_UUID, ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

NOT_FOUND_FROM = 9  # first version of OffsetCommit that returns GROUP_ID_NOT_FOUND
INVALID_OFFSET = -1
NO_RETENTION_TIME = -1

Record = tuple[KeyValue, int]
FindGroup = Callable[[GroupsImage, str], Group | None]


class OffsetSituation(NamedTuple):
    """Input of a commit beside the group and the request."""

    now_ms: int
    version: int
    max_metadata_size: int


def commit(
    group: Group | None, request: OffsetCommitRequest, situation: OffsetSituation
) -> Slices[Result[OffsetCommitResponse]]:
    """Commit offsets of a member, or of a client that is no member (generation below zero)."""
    check: CheckPartition | None = None
    if group is not None:
        check = group.check_offset_commit(
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            is_transactional=False,
            version=situation.version,
        )
    elif request.generation_id_or_member_epoch >= 0:
        if situation.version >= NOT_FOUND_FROM:
            raise group_not_found(request.group_id)
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    expire_ms = NO_TIMESTAMP
    if request.retention_time_ms != NO_RETENTION_TIME:
        expire_ms = min(situation.now_ms + request.retention_time_ms, MAX_INT64)
    records: list[Record] = []
    topics = []
    for topic in request.topics:
        yield
        rows = []
        for partition in topic.partitions:
            yield
            code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            if not _is_too_long(partition.committed_metadata, situation.max_metadata_size):
                if check is not None:
                    check(topic.name, topic.topic_id, partition.partition_index)
                code = ErrorCode.NONE
                records.append(
                    offset_record(
                        request.group_id,
                        topic.name,
                        partition.partition_index,
                        offset=partition.committed_offset,
                        leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.committed_metadata,
                        now_ms=situation.now_ms,
                        expire_timestamp_ms=expire_ms,
                        topic_id=topic.topic_id,
                    )
                )
            rows.append(
                OffsetCommitResponse.OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=code
                )
            )
        topics.append(
            OffsetCommitResponse.OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=rows)
        )
    return Result(records, OffsetCommitResponse(topics=topics))


def commit_in_transaction(
    group: Group | None,
    request: TxnOffsetCommitRequest,
    producer: Producer,
    topic_id_of: Callable[[str], Uuid],
    situation: OffsetSituation,
) -> Slices[Result[TxnOffsetCommitResponse]]:
    """Commit offsets in the transaction of a producer. They are pending until it is committed."""
    check = _check_transactional(group, request, situation.version)
    records: list[Record] = []
    topics = []
    for topic in request.topics:
        yield
        topic_id = topic_id_of(topic.name)
        if check is not None and topic_id == ZERO_UUID:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        rows = []
        for partition in topic.partitions:
            yield
            code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            if not _is_too_long(partition.committed_metadata, situation.max_metadata_size):
                if check is not None:
                    with _stale_is_illegal():
                        check(topic.name, topic_id, partition.partition_index)
                code = ErrorCode.NONE
                records.append(
                    offset_record(
                        request.group_id,
                        topic.name,
                        partition.partition_index,
                        offset=partition.committed_offset,
                        leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.committed_metadata,
                        now_ms=situation.now_ms,
                    )
                )
            rows.append(
                TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=code
                )
            )
        topics.append(TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(name=topic.name, partitions=rows))
    return Result(records, TxnOffsetCommitResponse(topics=topics), producer)


def _check_transactional(group: Group | None, request: TxnOffsetCommitRequest, version: int) -> CheckPartition | None:
    if group is None:
        if request.generation_id >= 0:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return None
    with _stale_is_illegal():
        return group.check_offset_commit(
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            is_transactional=True,
            version=version,
        )


class _stale_is_illegal:  # noqa: N801  (used like a function)
    """Turns STALE_MEMBER_EPOCH into ILLEGAL_GENERATION: producers do not know member epochs."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, KafkaError) and error.code is ErrorCode.STALE_MEMBER_EPOCH:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION) from error


def _is_too_long(metadata: str | None, max_size: int) -> bool:
    if metadata is None or len(metadata) * 2 <= max_size:
        return False
    return len(metadata) > max_size or len(metadata.encode("utf-16-le", "surrogatepass")) // 2 > max_size


# --- fetch

FetchedPartition = OffsetFetchResponse.OffsetFetchResponsePartitions
FetchedTopic = OffsetFetchResponse.OffsetFetchResponseTopics
FetchedGroup = OffsetFetchResponse.OffsetFetchResponseGroup


def fetch(
    image: GroupsImage, group: Group | None, request: OffsetFetchRequest.OffsetFetchRequestGroup, *, stable: bool
) -> Slices[FetchedGroup]:
    """Return the requested offsets, or all of the group.

    With `stable`, partitions with pending offsets have an error.
    """
    offsets = NO_OFFSETS
    if group is not None:
        try:
            group.check_offset_fetch(request.member_id, request.member_epoch)
            offsets = image.offsets.get(request.group_id, NO_OFFSETS)
        except KafkaError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
    unstable = image.open_transactions.get(request.group_id, PMap()) if stable else PMap()
    topics = []
    if request.topics is None:
        for name in sorted(offsets):
            of_topic = offsets[name]
            rows = []
            for partition in sorted(of_topic):
                is_unstable = (name, partition) in unstable
                rows.append(_unstable(partition) if is_unstable else _fetched(partition, of_topic[partition]))
                yield
            topics.append(FetchedTopic(name=name, partitions=rows))
    else:
        for topic in request.topics:
            yield
            of_topic = offsets.get(topic.name, PMap())
            rows = []
            for partition in topic.partition_indexes:
                yield
                known = of_topic.get(partition)
                if (topic.name, partition) in unstable:
                    rows.append(_unstable(partition))
                elif known is None or _is_of_another(known.topic_id, topic.topic_id):
                    rows.append(FetchedPartition(partition_index=partition, committed_offset=INVALID_OFFSET))
                else:
                    rows.append(_fetched(partition, known))
            topics.append(FetchedTopic(name=topic.name, topic_id=topic.topic_id, partitions=rows))
    return FetchedGroup(group_id=request.group_id, topics=topics)


def _fetched(partition: int, offset: CommittedOffset) -> FetchedPartition:
    return FetchedPartition(
        partition_index=partition,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
    )


def _unstable(partition: int) -> FetchedPartition:
    return FetchedPartition(
        partition_index=partition,
        committed_offset=INVALID_OFFSET,
        error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
    )


def _is_of_another(known: Uuid, asked: Uuid) -> bool:
    """Whether the topic was deleted and created again since the commit. Unknown, so False, if an id is missing."""
    return ZERO_UUID not in (known, asked) and known != asked


# --- delete and expire


def delete(
    image: GroupsImage, group: Group | None, request: OffsetDeleteRequest
) -> Slices[Result[OffsetDeleteResponse]]:
    """Delete offsets of topics that no member subscribes to."""
    if group is None:
        raise group_not_found(request.group_id)
    group.check_offset_delete()
    records: list[Record] = []
    response = OffsetDeleteResponse()
    for topic in request.topics:
        yield
        is_read = group.is_subscribed_to(topic.name)
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read else ErrorCode.NONE
        rows = []
        for partition in topic.partitions:
            yield
            index = partition.partition_index
            rows.append(OffsetDeleteResponse.OffsetDeleteResponsePartition(partition_index=index, error_code=code))
            if not is_read and _has_offset(image, request.group_id, topic.name, index):
                records.append(offset_tombstone(request.group_id, topic.name, index))
        response.topics.append(OffsetDeleteResponse.OffsetDeleteResponseTopic(name=topic.name, partitions=rows))
    return Result(records, response)


def _has_offset(image: GroupsImage, group_id: str, topic: str, partition: int) -> bool:
    is_committed = image.offset(group_id, topic, partition) is not None
    return is_committed or image.has_open_transaction(group_id, topic, partition)


def delete_groups(
    image: GroupsImage, find: FindGroup, group_ids: Iterable[str]
) -> Slices[Result[list[tuple[str, ErrorCode]]]]:
    """Delete empty groups and their offsets. The response has an error code for each group."""
    records: list[Record] = []
    rows = []
    for group_id in group_ids:
        yield
        try:
            group = find(image, group_id)
            if group is None:
                raise group_not_found(group_id)
            group.check_delete()
        except KafkaError as error:
            rows.append((group_id, error.code))
        else:
            records += _all_tombstones(image, group_id)
            records += group.tombstones(group_id)
            rows.append((group_id, ErrorCode.NONE))
    return Result(records, rows)


def _all_tombstones(image: GroupsImage, group_id: str) -> Iterator[Record]:
    for topic, partitions in image.offsets.get(group_id, NO_OFFSETS).items():
        for partition in partitions:
            yield offset_tombstone(group_id, topic, partition)
    for topic, partition in image.open_transactions.get(group_id, PMap()):
        if image.offset(group_id, topic, partition) is None:
            yield offset_tombstone(group_id, topic, partition)


def expire(
    image: GroupsImage, find: FindGroup, group_ids: Iterable[str], now_ms: int, retention_ms: int
) -> Result[list[str]]:
    """Delete expired offsets, and empty groups that have no offset left. The response has the deleted groups."""
    records: list[Record] = []
    removed = []
    for group_id in group_ids:
        group = find(image, group_id)
        if group is None:
            continue
        expired, has_others = _expired(image, group, group_id, now_ms, retention_ms)
        records += (offset_tombstone(group_id, topic, partition) for topic, partition in expired)
        is_kept = group.type is GroupType.SHARE  # its offsets are elsewhere
        if not has_others and not is_kept and group_id not in image.open_transactions and group.is_empty:
            records += group.tombstones(group_id)
            removed.append(group_id)
    return Result(records, removed)


def _expired(
    image: GroupsImage, group: Group, group_id: str, now_ms: int, retention_ms: int
) -> tuple[list[tuple[str, int]], bool]:
    """Return the partitions whose offsets are expired, and whether other offsets are left."""
    offsets = image.offsets.get(group_id, NO_OFFSETS)
    expires_from = group.expires_from()
    if expires_from is None:
        return [], bool(offsets)
    expired = []
    count = 0
    for topic, partitions in offsets.items():
        count += len(partitions)
        if group.is_subscribed_to(topic):
            continue
        for partition, offset in partitions.items():
            has_own_time = offset.expire_timestamp_ms != NO_TIMESTAMP
            end_ms = offset.expire_timestamp_ms if has_own_time else expires_from(offset) + retention_ms
            if now_ms >= end_ms and not image.has_open_transaction(group_id, topic, partition):
                expired.append((topic, partition))
    return expired, len(expired) < count


def forget_topics(image: GroupsImage, deleted: Mapping[str, Uuid]) -> Slices[Result[None]]:
    """Delete offsets of deleted topics, also pending ones. `deleted` has their ids by name."""
    records: dict[tuple[str, str, int], Record] = {}
    for group_id, topics in image.offsets.items():
        yield
        few, many = sorted((topics, deleted), key=len)
        for name in [name for name in few if name in many]:
            for partition, offset in topics[name].items():
                if offset.topic_id in (ZERO_UUID, deleted[name]):
                    records[group_id, name, partition] = offset_tombstone(group_id, name, partition)
    for pending in image.pending.values():
        yield
        for (group_id, name, partition), offset in pending.items():
            if name in deleted and offset.topic_id in (ZERO_UUID, deleted[name]):
                records[group_id, name, partition] = offset_tombstone(group_id, name, partition)
    return Result(list(records.values()), None)
