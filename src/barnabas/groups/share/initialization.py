"""Which share partitions have a state at the share coordinator, and the changes of that.

Pure. A heartbeat finds the partitions of subscribed topics that have no state and writes them as initializing. When the
share coordinator has initialized them, they become initialized and may be assigned; if it has not, they are forgotten, and
a later heartbeat tries again. Those that stay initializing, because a broker died, are tried again after
`group.share.initialize.retry.interval.ms`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from barnabas.groups.share.group import ShareGroup, StatePartitions, StateTopics, TopicPartitions
from barnabas.groups.share.records import Record, state_partitions_record
from barnabas.metadata.topics import Topics
from barnabas.steps import Slices
from barnabas.wire import Uuid
from barnabas.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest

UNINITIALIZED_OFFSET: Final = -1  # the leader of the partition chooses it
UNKNOWN_NAME: Final = "<UNKNOWN>"
PartitionsById = Mapping[Uuid, Collection[int]]


def uninitialized(
    group: ShareGroup, names: Iterable[str], topics: Topics, *, retries: bool
) -> Slices[dict[Uuid, TopicPartitions]]:
    """Return the partitions of subscribed topics that need a state. `retries` includes those that are initializing."""
    state = group.state_partitions or StatePartitions()
    found: dict[Uuid, TopicPartitions] = {}
    for name in names:
        yield
        topic = topics.get(name)
        if topic is None:
            continue
        known = _partitions(state.initialized, topic.topic_id)
        if not retries:
            known |= _partitions(state.initializing, topic.topic_id)
        if not known or len(known) < len(topic.partitions):
            found[topic.topic_id] = TopicPartitions(name, frozenset(range(len(topic.partitions))) - known)
    return found


def _partitions(topics: StateTopics, topic_id: Uuid) -> frozenset[int]:
    topic = topics.get(topic_id)
    return frozenset() if topic is None else topic.partitions


def initializing_record(group: ShareGroup, new: StateTopics, topics: Topics) -> Record:
    """Return the record that says that partitions are to be initialized."""
    state = group.state_partitions or StatePartitions()
    initializing = combined(state.initializing, new)
    deleting = state.deleting - initializing.keys()
    return state_partitions_record(group.group_id, initializing, state.initialized, named(deleting, topics))


def initialize_request(group_id: str, state_epoch: int, new: StateTopics) -> InitializeShareGroupStateRequest:
    kind = InitializeShareGroupStateRequest
    return kind(
        group_id=group_id,
        topics=[
            kind.InitializeStateData(
                topic_id=topic_id,
                partitions=[
                    kind.PartitionData(partition=index, state_epoch=state_epoch, start_offset=UNINITIALIZED_OFFSET)
                    for index in sorted(topic.partitions)
                ],
            )
            for topic_id, topic in new.items()
        ],
    )


def initialized_record(group: ShareGroup, done: PartitionsById, topics: Topics) -> Record:
    """Return the record after the share coordinator has initialized partitions."""
    state = group.state_partitions or StatePartitions()
    names = named(done, topics)
    new = {topic_id: TopicPartitions(names[topic_id], frozenset(done[topic_id])) for topic_id in done}
    initializing = without(state.initializing, done)
    return state_partitions_record(
        group.group_id, initializing, combined(state.initialized, new), named(state.deleting, topics)
    )


def failed_record(group: ShareGroup, failed: PartitionsById, topics: Topics) -> Record | None:
    """Return the record after the share coordinator has not initialized partitions, or None if nothing changes."""
    state = group.state_partitions
    if state is None or not state.initializing or not failed:
        return None
    initializing = without(state.initializing, failed)
    return state_partitions_record(group.group_id, initializing, state.initialized, named(state.deleting, topics))


def forgotten_record(group: ShareGroup, deleted: Collection[Uuid], topics: Topics) -> Record | None:
    """Return the record after topics were deleted, or None if the group has none of them."""
    state = group.state_partitions
    if state is None:
        return None
    known = {*state.initializing, *state.initialized, *state.deleting}
    if known.isdisjoint(deleted):
        return None
    initializing = {each: topic for each, topic in state.initializing.items() if each not in deleted}
    initialized = {each: topic for each, topic in state.initialized.items() if each not in deleted}
    return state_partitions_record(
        group.group_id, initializing, initialized, named(state.deleting.difference(deleted), topics)
    )


def combined(some: StateTopics, others: StateTopics) -> dict[Uuid, TopicPartitions]:
    """Return the partitions of both. The names are those of the second."""
    return {
        **some,
        **{each: TopicPartitions(new.name, new.partitions | _partitions(some, each)) for each, new in others.items()},
    }


def without(topics: StateTopics, partitions: PartitionsById) -> dict[Uuid, TopicPartitions]:
    """Return the other partitions. A topic that has none stays, as in Kafka, unless the last ones were taken out now."""
    rest = {}
    for topic_id, topic in topics.items():
        left = topic.partitions.difference(partitions.get(topic_id, ()))
        if left or topic_id not in partitions:
            rest[topic_id] = topic._replace(partitions=left)
    return rest


def named(topic_ids: Iterable[Uuid], topics: Topics) -> dict[Uuid, str]:
    found = {}
    for topic_id in topic_ids:
        topic = topics.by_id.get(topic_id)
        found[topic_id] = UNKNOWN_NAME if topic is None else topic.name
    return found
