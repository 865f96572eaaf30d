"""The state of share partitions, and its records in `__share_group_state`.

Its one rule: an image changes only by `apply`. A snapshot replaces the state of a share partition, an update is merged
into it. The highest epochs seen are kept beside the state, because an initialization sets the state's leader epoch back
to zero and must not let older leaders in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Final, NamedTuple

from barnabas.config.internal_topics import SHARE_GROUP_STATE_TOPIC
from barnabas.metadata.pmap import PMap
from barnabas.replicated.decision import KeyValue
from barnabas.replicated.loop import Batch
from barnabas.steps import Slices
from barnabas.wire import Uuid
from barnabas.wire.records.share import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue

TOPIC: Final = SHARE_GROUP_STATE_TOPIC
UNKNOWN: Final = -1  # an offset, an epoch or a count that is not given
_STEP: Final = 500


class SharePartitionKey(NamedTuple):
    group_id: str
    topic_id: Uuid
    partition: int

    @property
    def coordinator_key(self) -> str:
        """The key that decides which partition of the topic keeps the state."""
        return f"{self.group_id}:{self.topic_id}:{self.partition}"


class StateBatch(NamedTuple):
    """Consecutive records with the same delivery state and count. The order of the fields is that of Kafka's sorting."""

    first_offset: int
    last_offset: int
    delivery_count: int
    delivery_state: int

    @property
    def delivery(self) -> tuple[int, int]:
        """The later of two deliveries is the greater."""
        return self.delivery_count, self.delivery_state


class ShareState(NamedTuple):
    """The state of one share partition. `updates` is the number of updates that count towards the next snapshot."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    create_timestamp_ms: int
    write_timestamp_ms: int
    batches: tuple[StateBatch, ...] = ()
    updates: int = 0
    max_leader_epoch: int = 0
    max_state_epoch: int = 0
    snapshot_offset: int = 0


class ShareStateImage(NamedTuple):
    """The states of one partition of the topic. `last_offset` is that of the last snapshot or tombstone."""

    states: PMap[SharePartitionKey, ShareState]
    last_offset: int


EMPTY_IMAGE: Final = ShareStateImage(PMap(), 0)


def redundant_offset(image: ShareStateImage) -> Slices[int]:
    """Return the offset before which no record is needed: that of the oldest snapshot in use, or 0."""
    least = image.last_offset
    for number, state in enumerate(image.states.values()):
        least = min(least, state.snapshot_offset)
        if number % _STEP == 0:
            yield
    return least


# --- merging


def _pieces(before: StateBatch, after: StateBatch) -> Iterable[StateBatch]:
    """Return what two overlapping or adjoining batches become. `before` sorts first."""
    if after.delivery == before.delivery:
        return (before._replace(last_offset=max(after.last_offset, before.last_offset)),)
    if after.delivery > before.delivery:
        left = before._replace(last_offset=after.first_offset - 1)
        right = before._replace(first_offset=after.last_offset + 1)
        return [each for each in (left, after, right) if each.first_offset <= each.last_offset]
    rest = after._replace(first_offset=before.last_offset + 1)
    return (before, rest) if rest.first_offset <= rest.last_offset else (before,)


def combined(
    known: Sequence[StateBatch], new: Sequence[StateBatch], start_offset: int
) -> Slices[tuple[StateBatch, ...]]:
    """Return the batches from the start offset on, in order and without overlaps: the later delivery wins."""
    waiting = [
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in (*known, *new)
        if start_offset == UNKNOWN or batch.last_offset >= start_offset
    ]
    if len(waiting) < 2:
        return tuple(waiting)
    heapify(waiting)
    found: list[StateBatch] = []
    before = heappop(waiting)
    steps = 0
    while waiting:
        after = heappop(waiting)
        adjoins = before.last_offset + 1 == after.first_offset and before.delivery == after.delivery
        if after.first_offset <= before.last_offset or adjoins:
            for piece in _pieces(before, after):
                heappush(waiting, piece)
            before = heappop(waiting)
        else:
            found.append(before)
            before = after
        steps += 1
        if steps % _STEP == 0:
            yield
    found.append(before)
    return tuple(found)


def state_batches(rows: Iterable[Any]) -> tuple[StateBatch, ...]:
    """Return the batches of a request or a record."""
    return tuple(StateBatch(row.first_offset, row.last_offset, row.delivery_count, row.delivery_state) for row in rows)


def rows_of(batches: Iterable[StateBatch], row: Any) -> list[Any]:
    """Return the batches as structs of a record or a response."""
    return [
        row(
            first_offset=batch.first_offset,
            last_offset=batch.last_offset,
            delivery_state=batch.delivery_state,
            delivery_count=batch.delivery_count,
        )
        for batch in batches
    ]


# --- records


def snapshot_record(key: SharePartitionKey, state: ShareState) -> tuple[KeyValue, int]:
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.create_timestamp_ms,
        write_timestamp=state.write_timestamp_ms,
        state_batches=rows_of(state.batches, ShareSnapshotValue.StateBatch),
    )
    return KeyValue(_snapshot_key(key), value), 0


def update_record(
    key: SharePartitionKey, state: ShareState, start_offset: int, count: int, batches: Iterable[StateBatch]
) -> tuple[KeyValue, int]:
    value = ShareUpdateValue(
        snapshot_epoch=state.snapshot_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=count,
        state_batches=rows_of(batches, ShareUpdateValue.StateBatch),
    )
    return KeyValue(ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition), value), 0


def tombstone(key: SharePartitionKey) -> tuple[KeyValue, int]:
    return KeyValue(_snapshot_key(key), None), 0


def _snapshot_key(key: SharePartitionKey) -> ShareSnapshotKey:
    return ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)


# --- replay


def apply(updates_per_snapshot: int, image: ShareStateImage, batch: Batch) -> Slices[ShareStateImage]:
    """Return the image after a batch of the topic."""
    states, last_offset = image
    is_whole = len(batch.records) == batch.last_offset - batch.base_offset + 1
    for number, (key, value) in enumerate(batch.records):
        place = SharePartitionKey(key.group_id, key.topic_id, key.partition)
        known = states.get(place)
        if isinstance(key, ShareSnapshotKey):
            # Records of unknown types are left out, and then offsets are not known. An earlier one keeps more records.
            last_offset = batch.base_offset + (number if is_whole else 0)
            if value is not None:
                states = states.set(place, _after_snapshot(known, value, last_offset, updates_per_snapshot))
            elif known is not None:
                states = states.delete(place)
        elif value is not None:
            states = states.set(place, (yield from _after_update(known, value, batch.base_offset)))
        yield
    return ShareStateImage(states, last_offset)


def _after_snapshot(
    known: ShareState | None, value: ShareSnapshotValue, offset: int, updates_per_snapshot: int
) -> ShareState:
    updates = 0 if known is None or known.updates >= updates_per_snapshot else known.updates
    return ShareState(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        value.create_timestamp,
        value.write_timestamp,
        state_batches(value.state_batches),
        updates,
        value.leader_epoch if known is None else max(known.max_leader_epoch, value.leader_epoch),
        value.state_epoch if known is None else max(known.max_state_epoch, value.state_epoch),
        offset,
    )


def _after_update(known: ShareState | None, value: ShareUpdateValue, offset: int) -> Slices[ShareState]:
    batches = state_batches(value.state_batches)
    if known is None:  # its snapshot was deleted; Kafka takes such an update as the state
        return ShareState(
            value.snapshot_epoch,
            0,
            value.leader_epoch,
            value.start_offset,
            value.delivery_complete_count,
            0,
            0,
            batches,
            1,
            value.leader_epoch,
            0,
            offset,
        )
    start_offset = known.start_offset if value.start_offset == UNKNOWN else value.start_offset
    merged = yield from combined(known.batches, batches, start_offset)
    return known._replace(
        start_offset=start_offset,
        leader_epoch=known.leader_epoch if value.leader_epoch == UNKNOWN else value.leader_epoch,
        delivery_complete_count=value.delivery_complete_count,
        batches=merged,
        updates=known.updates + 1,
        max_leader_epoch=max(known.max_leader_epoch, value.leader_epoch),
    )
