"""Decisions on the state of share partitions: one request for one share partition in, records and a row out.

They are pure. A row has the error of its partition, with Kafka's codes and messages. Fencing compares with the highest
epochs that the coordinator has seen; an epoch of -1 is never fenced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple, TypeVar

from barnabas.metadata.image import MetadataImage
from barnabas.replicated.decision import KeyValue, Result
from barnabas.share_state.state import (
    UNKNOWN,
    SharePartitionKey,
    ShareState,
    ShareStateImage,
    combined,
    rows_of,
    snapshot_record,
    state_batches,
    tombstone,
    update_record,
)
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse
from barnabas.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from barnabas.wire.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from barnabas.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from barnabas.wire.messages.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse

P = TypeVar("P")
Row = TypeVar("Row")
Record = tuple[KeyValue, int]


class ShareSituation(NamedTuple):
    """What a decision sees: the head of the partition, the cluster's metadata, the time, and the settings."""

    image: ShareStateImage
    metadata: MetadataImage
    now_ms: int
    updates_per_snapshot: int


# Decides on one share partition, and returns the record to append, if any, and the row of the response.
Decide = Callable[[ShareSituation, SharePartitionKey, P], Slices[tuple[Record | None, Row]]]


def decided(
    decide: Decide[P, Row],
    failed: Callable[[int, KafkaError], Row],
    partitions: Iterable[tuple[SharePartitionKey, P]],
    situation: ShareSituation,
) -> Slices[Result[dict[SharePartitionKey, Row]]]:
    """Decide on several share partitions, each once, and return the rows by partition. One that fails has an error."""
    records: list[Record] = []
    rows: dict[SharePartitionKey, Row] = {}
    for key, asked in partitions:
        try:
            record, rows[key] = yield from decide(situation, key, asked)
        except KafkaError as error:
            rows[key] = failed(key.partition, error)
        else:
            if record is not None:
                records.append(record)
        yield
    return Result(records, rows)


# --- checks


def _check_partition(key: SharePartitionKey) -> None:
    if key.partition < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")


def _check_exists(situation: ShareSituation, key: SharePartitionKey) -> None:
    if situation.metadata.topics.partition(key.topic_id, key.partition) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _initialized(situation: ShareSituation, key: SharePartitionKey, operation: str) -> ShareState:
    state = situation.image.states.get(key)
    if state is None:
        text = f"{operation} operation on uninitialized share partition not allowed."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    return state


def _fence_leader(state: ShareState, leader_epoch: int) -> None:
    if leader_epoch != UNKNOWN and state.max_leader_epoch > leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)


def _fence_state(state: ShareState | None, state_epoch: int) -> None:
    if state is not None and state_epoch != UNKNOWN and state.max_state_epoch > state_epoch:
        raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)


# --- the five requests


def initialize(
    situation: ShareSituation, key: SharePartitionKey, asked: InitializeShareGroupStateRequest.PartitionData
) -> Slices[tuple[Record | None, InitializeShareGroupStateResponse.PartitionResult]]:
    """Set start offset and state epoch. Delivery states are forgotten."""
    _check_partition(key)
    state = situation.image.states.get(key)
    _fence_state(state, asked.state_epoch)
    _check_exists(situation, key)
    new = ShareState(
        0 if state is None else state.snapshot_epoch + 1,
        asked.state_epoch,
        0,
        asked.start_offset,
        UNKNOWN if asked.start_offset == UNKNOWN else 0,
        situation.now_ms,
        situation.now_ms,
    )
    yield
    return snapshot_record(key, new), InitializeShareGroupStateResponse.PartitionResult(partition=key.partition)


def read(
    situation: ShareSituation, key: SharePartitionKey, asked: ReadShareGroupStateRequest.PartitionData
) -> Slices[tuple[Record | None, ReadShareGroupStateResponse.PartitionResult]]:
    """Return the state. A newer leader epoch is recorded, so that leaders before it are fenced."""
    _check_partition(key)
    state = _initialized(situation, key, "Read")
    _fence_leader(state, asked.leader_epoch)
    _check_exists(situation, key)
    row = ReadShareGroupStateResponse.PartitionResult(
        partition=key.partition,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=rows_of(state.batches, ReadShareGroupStateResponse.StateBatch),
    )
    if asked.leader_epoch in (UNKNOWN, state.max_leader_epoch):
        return None, row
    led = state._replace(leader_epoch=asked.leader_epoch)
    written = WriteShareGroupStateRequest.PartitionData(
        start_offset=state.start_offset, delivery_complete_count=state.delivery_complete_count
    )
    return (yield from _written(situation, key, led, written)), row


def write(
    situation: ShareSituation, key: SharePartitionKey, asked: WriteShareGroupStateRequest.PartitionData
) -> Slices[tuple[Record | None, WriteShareGroupStateResponse.PartitionResult]]:
    """Merge delivery states into the state: with an update, or a snapshot if enough updates were written."""
    _check_partition(key)
    state = _initialized(situation, key, "Write")
    _fence_leader(state, asked.leader_epoch)
    _fence_state(state, asked.state_epoch)
    _check_exists(situation, key)
    record = yield from _written(situation, key, state, asked)
    return record, WriteShareGroupStateResponse.PartitionResult(partition=key.partition)


def _written(
    situation: ShareSituation,
    key: SharePartitionKey,
    state: ShareState,
    asked: WriteShareGroupStateRequest.PartitionData,
) -> Slices[Record]:
    new = state_batches(asked.state_batches)
    if state.updates < situation.updates_per_snapshot:
        batches = yield from combined((), new, asked.start_offset)
        return update_record(key, state, asked.start_offset, asked.delivery_complete_count, batches)
    start_offset = state.start_offset if asked.start_offset == UNKNOWN else asked.start_offset
    batches = yield from combined(state.batches, new, start_offset)
    snapshot = state._replace(
        snapshot_epoch=state.snapshot_epoch + 1,
        start_offset=start_offset,
        delivery_complete_count=asked.delivery_complete_count,
        create_timestamp_ms=situation.now_ms,
        write_timestamp_ms=situation.now_ms,
        batches=batches,
    )
    return snapshot_record(key, snapshot)


def delete(
    situation: ShareSituation, key: SharePartitionKey, asked: DeleteShareGroupStateRequest.PartitionData
) -> Slices[tuple[Record | None, DeleteShareGroupStateResponse.PartitionResult]]:
    """Delete the state, if there is one."""
    _check_partition(key)
    _check_exists(situation, key)
    yield
    record = tombstone(key) if key in situation.image.states else None
    return record, DeleteShareGroupStateResponse.PartitionResult(partition=key.partition)


def read_summary(
    situation: ShareSituation, key: SharePartitionKey, asked: ReadShareGroupStateSummaryRequest.PartitionData
) -> Slices[tuple[Record | None, ReadShareGroupStateSummaryResponse.PartitionResult]]:
    """Return start offset and epochs: those of a new share partition if it is not initialized."""
    _check_partition(key)
    _check_exists(situation, key)
    yield
    state = situation.image.states.get(key)
    row = ReadShareGroupStateSummaryResponse.PartitionResult(partition=key.partition)
    if state is None:
        row.start_offset = UNKNOWN
    else:
        row.start_offset, row.delivery_complete_count = state.start_offset, state.delivery_complete_count
        row.leader_epoch, row.state_epoch = state.leader_epoch, state.state_epoch
    return None, row


# --- what the coordinator does by itself


def snapshot_cold(situation: ShareSituation, interval_ms: int) -> Slices[Result[None]]:
    """Write a snapshot of each share partition that had none for the interval, so that older records can be deleted.

    Nothing is written if all states have such a snapshot already.
    """
    states = situation.image.states
    records: list[Any] = []
    has_new = False
    for key, state in states.items():
        has_new = has_new or state.create_timestamp_ms == state.write_timestamp_ms
        if situation.now_ms - state.write_timestamp_ms >= interval_ms:
            again = state._replace(snapshot_epoch=state.snapshot_epoch + 1, write_timestamp_ms=situation.now_ms)
            records.append(snapshot_record(key, again))
        yield
    return Result(records if has_new else [], None)


def forget_topics(situation: ShareSituation, topic_ids: Collection[Uuid]) -> Slices[Result[None]]:
    """Delete the states of deleted topics."""
    records: list[Any] = []
    for key in situation.image.states:
        if key.topic_id in topic_ids:
            records.append(tombstone(key))
        yield
    return Result(records, None)
