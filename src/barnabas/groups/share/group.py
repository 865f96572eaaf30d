"""A share group as its records have it, with the indexes that decisions need.

An immutable value: only replay makes a new one (`share.replay`). Members share partitions, so nothing is revoked before
another member gets it. A partition is assigned only when its state was initialized at the share coordinator; which ones
were is part of the group (`StatePartitions`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.groups.assignors import Assignment
from barnabas.groups.consumer_group import FIRST_EPOCH, JOIN_EPOCH, TOPIC_BYTES, MemberState, assignment_bytes
from barnabas.groups.image import MEMBER_BYTES, CheckPartition, CommittedOffset, GroupType
from barnabas.groups.share import records
from barnabas.metadata.pmap import PMap
from barnabas.wire import ErrorCode, KafkaError, Uuid

if TYPE_CHECKING:
    from barnabas.replicated.decision import Records

SHARE_PROTOCOL: Final = "share"
NEVER_IN_EPOCH: Final = -1


NO_PARTITIONS: Final[Assignment] = {}


class State(StrEnum):
    """State of a share group, with the name that ListGroups returns."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"


class Member(NamedTuple):
    member_id: str
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = NEVER_IN_EPOCH
    state: MemberState = MemberState.STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    assigned: Assignment = NO_PARTITIONS

    @property
    def held_bytes(self) -> int:
        """About the memory of the member."""
        topics = self.subscribed_topic_names
        texts = len(self.member_id) + len(self.client_id) + sum(map(len, topics))
        return MEMBER_BYTES + texts + TOPIC_BYTES * len(topics) + assignment_bytes(self.assigned)

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch


class TopicPartitions(NamedTuple):
    """Share partitions of one topic."""

    name: str
    partitions: frozenset[int]


StateTopics = Mapping[Uuid, TopicPartitions]
NO_TOPICS: Final[StateTopics] = {}


class StatePartitions(NamedTuple):
    """The share partitions that have a state, are to get one, and are to lose it."""

    initializing: StateTopics = NO_TOPICS
    initialized: StateTopics = NO_TOPICS
    deleting: frozenset[Uuid] = frozenset()

    @property
    def held_bytes(self) -> int:
        """About the memory of the topics and partitions."""
        topics = [*self.initializing.values(), *self.initialized.values()]
        return TOPIC_BYTES * (len(topics) + len(self.deleting)) + 64 * sum(len(topic.partitions) for topic in topics)


class ShareGroup(NamedTuple):
    """A share group. Implements `image.Group`."""

    group_id: str
    group_epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    assignment_epoch: int = FIRST_EPOCH
    assignment_timestamp_ms: int = 0
    members: PMap[str, Member] = PMap()
    target_assignment: PMap[str, Assignment] = PMap()
    state_partitions: StatePartitions | None = None  # None: there is no record of them
    subscriptions: PMap[str, int] = PMap()  # derived from the members: how many subscribe to a topic

    # --- facts

    @property
    def type(self) -> GroupType:
        return GroupType.SHARE

    @property
    def protocol_type(self) -> str:
        return SHARE_PROTOCOL

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def held_bytes(self) -> int:
        """About the memory of its members, assignments and share partitions."""
        return (
            sum(member.held_bytes for member in self.members.values())
            + sum(map(assignment_bytes, self.target_assignment.values()))
            + (0 if self.state_partitions is None else self.state_partitions.held_bytes)
        )

    @property
    def pattern_count(self) -> int:
        return 0

    @property
    def state(self) -> State:
        return State.STABLE if self.members else State.EMPTY

    def member(self, member_id: str) -> Member:
        """Return a member. Raises UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            message = f"Member {member_id} is not a member of group {self.group_id}."
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return member

    def target(self, member_id: str) -> Assignment:
        return self.target_assignment.get(member_id, {})

    @property
    def initialized(self) -> StateTopics:
        return NO_TOPICS if self.state_partitions is None else self.state_partitions.initialized

    @property
    def is_initializing(self) -> bool:
        """Whether share partitions wait for their state. A topic without partitions, which Kafka keeps, does not."""
        state = self.state_partitions
        return state is not None and any(topic.partitions for topic in state.initializing.values())

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions

    # --- checks for offsets, lists and deletions. Committed offsets do not exist in share groups.

    def check_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, is_transactional: bool, version: int
    ) -> CheckPartition | None:
        raise self._not_a_consumer_group()

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        raise self._not_a_consumer_group()

    def check_offset_delete(self) -> None:
        raise self._not_a_consumer_group()

    def _not_a_consumer_group(self) -> KafkaError:
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def expires_from(self) -> Callable[[CommittedOffset], int] | None:
        return None

    def tombstones(self, group_id: str) -> Records:
        return records.group_tombstones(self)


# --- changes, for replay only


def with_member(group: ShareGroup, member: Member) -> ShareGroup:
    """Return the group with a new or changed member."""
    return group._replace(
        members=group.members.set(member.member_id, member),
        subscriptions=subscriptions_with(group, group.members.get(member.member_id), member),
    )


def without_member(group: ShareGroup, member_id: str) -> ShareGroup:
    return group._replace(
        members=group.members.delete(member_id),
        subscriptions=subscriptions_with(group, group.members[member_id], None),
    )


def subscriptions_with(group: ShareGroup, old: Member | None, new: Member | None) -> PMap[str, int]:
    """Return the subscriptions after the change of one member."""
    before: Iterable[str] = () if old is None else old.subscribed_topic_names
    after: Iterable[str] = () if new is None else new.subscribed_topic_names
    if before == after:
        return group.subscriptions
    draft = group.subscriptions.mutate()
    for name in before:
        count = draft.get(name, 0) - 1
        if count > 0:
            draft[name] = count
        else:
            draft.pop(name, None)
    for name in after:
        draft[name] = draft.get(name, 0) + 1
    return draft.finish()
