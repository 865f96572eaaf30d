"""The records of committed offsets, and their replay.

An offset that is part of a transaction is pending until the marker of the producer. A commit marker makes it the
committed offset, unless a later record committed another one meanwhile. An abort marker drops it.
"""

from __future__ import annotations

from barnabas.groups.image import (
    NO_OFFSETS,
    SIMPLE_GROUP,
    CommittedOffset,
    GroupsImage,
    Offsets,
    RecordPosition,
    Replay,
    TopicPartition,
)
from barnabas.metadata.pmap import PMap
from barnabas.replicated.decision import KeyValue
from barnabas.steps import ROWS_PER_STEP, Slices
from barnabas.wire import ZERO_UUID, Message, Uuid
from barnabas.wire.records.group import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

VERSION = 4
VERSION_WITH_EXPIRE_TIMESTAMP = 1
NO_TIMESTAMP = -1


def offset_record(
    group_id: str,
    topic: str,
    partition: int,
    *,
    offset: int,
    leader_epoch: int,
    metadata: str | None,
    now_ms: int,
    expire_timestamp_ms: int = NO_TIMESTAMP,
    topic_id: Uuid = ZERO_UUID,
) -> tuple[KeyValue, int]:
    """Return the record of a commit and its version."""
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata or "",
        commit_timestamp=now_ms,
        expire_timestamp=expire_timestamp_ms,
        topic_id=topic_id,
    )
    version = VERSION if expire_timestamp_ms == NO_TIMESTAMP else VERSION_WITH_EXPIRE_TIMESTAMP
    return KeyValue(OffsetCommitKey(group=group_id, topic=topic, partition=partition), value), version


def offset_tombstone(group_id: str, topic: str, partition: int) -> tuple[KeyValue, int]:
    return KeyValue(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None), VERSION


# --- replay


def _replay_offset(
    image: GroupsImage, key: OffsetCommitKey, value: OffsetCommitValue | None, place: RecordPosition
) -> GroupsImage:
    if value is None:
        return _removed(image, key.group, key.topic, key.partition)
    committed = CommittedOffset(
        place.offset,
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
    )
    groups = image.groups
    if key.group not in groups:
        groups = groups.set(key.group, SIMPLE_GROUP)
    if place.producer_id is None:
        offsets = _with_offset(image.offsets, key.group, key.topic, key.partition, committed)
        return image._replace(groups=groups, offsets=offsets)
    return image._replace(
        groups=groups,
        pending=_with_pending(image, place.producer_id, (key.group, key.topic, key.partition), committed),
        open_transactions=_with_open(image, key.group, (key.topic, key.partition), place.producer_id),
    )


def _replay_legacy_offset(
    image: GroupsImage, key: LegacyOffsetCommitKey, value: LegacyOffsetCommitValue | None, place: RecordPosition
) -> GroupsImage:
    new_key = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
    if value is None:
        return _replay_offset(image, new_key, None, place)
    new_value = OffsetCommitValue(offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp)
    return _replay_offset(image, new_key, new_value, place)


REPLAY: dict[type[Message], Replay] = {
    OffsetCommitKey: _replay_offset,
    LegacyOffsetCommitKey: _replay_legacy_offset,
}


def end_transaction(image: GroupsImage, producer_id: int, *, is_commit: bool) -> Slices[GroupsImage]:
    """Return the image after the marker of a producer."""
    pending = image.pending.get(producer_id)
    if pending is None:
        return image
    offsets, open_transactions = image.offsets, image.open_transactions
    for number, ((group_id, topic, partition), committed) in enumerate(pending.items(), 1):
        if number % ROWS_PER_STEP == 0:
            yield
        open_transactions = _without_open(open_transactions, group_id, (topic, partition), producer_id)
        if is_commit:
            known = image.offset(group_id, topic, partition)
            # A later commit outside of the transaction wins: compaction keeps only one of the two records.
            if known is None or committed.record_offset > known.record_offset:
                offsets = _with_offset(offsets, group_id, topic, partition, committed)
    return image._replace(
        offsets=offsets, pending=image.pending.delete(producer_id), open_transactions=open_transactions
    )


def _with_offset(
    offsets: PMap[str, Offsets], group_id: str, topic: str, partition: int, committed: CommittedOffset
) -> PMap[str, Offsets]:
    of_group = offsets.get(group_id, NO_OFFSETS)
    of_topic = of_group.get(topic, PMap())
    return offsets.set(group_id, of_group.set(topic, of_topic.set(partition, committed)))


def _removed(image: GroupsImage, group_id: str, topic: str, partition: int) -> GroupsImage:
    offsets = image.offsets
    of_group = offsets.get(group_id, NO_OFFSETS)
    of_topic = of_group.get(topic, PMap())
    if partition in of_topic:
        of_topic = of_topic.delete(partition)
        of_group = of_group.set(topic, of_topic) if of_topic else of_group.delete(topic)
        offsets = offsets.set(group_id, of_group) if of_group else offsets.delete(group_id)
    open_transactions, pending = image.open_transactions, image.pending
    for producer_id in open_transactions.get(group_id, PMap()).get((topic, partition), ()):
        open_transactions = _without_open(open_transactions, group_id, (topic, partition), producer_id)
        pending = pending.set(producer_id, pending[producer_id].delete((group_id, topic, partition)))
    return image._replace(offsets=offsets, pending=pending, open_transactions=open_transactions)


def _with_pending(
    image: GroupsImage, producer_id: int, key: tuple[str, str, int], committed: CommittedOffset
) -> PMap[int, PMap[tuple[str, str, int], CommittedOffset]]:
    return image.pending.set(producer_id, image.pending.get(producer_id, PMap()).set(key, committed))


def _with_open(
    image: GroupsImage, group_id: str, partition: TopicPartition, producer_id: int
) -> PMap[str, PMap[TopicPartition, frozenset[int]]]:
    of_group = image.open_transactions.get(group_id, PMap())
    producers = of_group.get(partition, frozenset()) | {producer_id}
    return image.open_transactions.set(group_id, of_group.set(partition, producers))


def _without_open(
    open_transactions: PMap[str, PMap[TopicPartition, frozenset[int]]],
    group_id: str,
    partition: TopicPartition,
    producer_id: int,
) -> PMap[str, PMap[TopicPartition, frozenset[int]]]:
    of_group = open_transactions.get(group_id, PMap())
    producers = of_group.get(partition, frozenset()) - {producer_id}
    if producers:
        return open_transactions.set(group_id, of_group.set(partition, producers))
    if partition in of_group:
        of_group = of_group.delete(partition)
    if of_group:
        return open_transactions.set(group_id, of_group)
    return open_transactions.delete(group_id) if group_id in open_transactions else open_transactions
