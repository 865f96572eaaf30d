"""The image of one partition of `__consumer_offsets`: groups, committed offsets, and pending offsets of open
transactions.

An immutable value: only replay makes a new one. It has a classic group as its last record has it; members that join,
wait or expire are soft state (`classic.group.ClassicGroup`), as in Kafka. A group that has offsets but no record of its
own is a simple group: SIMPLE_GROUP.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from barnabas.metadata.pmap import PMap
from barnabas.replicated.decision import Records
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError, Uuid

if TYPE_CHECKING:
    from barnabas.groups.consumer_group import ConsumerGroup
    from barnabas.groups.share.group import ShareGroup
    from barnabas.groups.streams.group import StreamsGroup


class GroupType(StrEnum):
    """Types of groups, with the names that ListGroups returns."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


MEMBER_BYTES = 512  # a member, beside what its client has sent


class MemberMetadata(NamedTuple):
    """A member of a classic group in the last record of the group."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadata(NamedTuple):
    """A classic group in its last record."""

    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    state_timestamp_ms: int | None = None
    members: tuple[MemberMetadata, ...] = ()

    @property
    def held_bytes(self) -> int:
        """About the memory of its members."""
        return sum(
            MEMBER_BYTES
            + len(member.member_id)
            + len(member.client_id)
            + len(member.subscription)
            + len(member.assignment)
            for member in self.members
        )

    @property
    def pattern_count(self) -> int:
        return 0


SIMPLE_GROUP = GroupMetadata()


class CommittedOffset(NamedTuple):
    """A committed offset of a partition, and the offset of its record in the log."""

    record_offset: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int  # -1: the retention of its group applies
    topic_id: Uuid


Offsets = PMap[str, PMap[int, CommittedOffset]]  # by topic and partition
GroupTopicPartition = tuple[str, str, int]
TopicPartition = tuple[str, int]
CheckPartition = Callable[[str, Uuid, int], None]
NO_OFFSETS: Offsets = PMap()


class GroupsImage(NamedTuple):
    """The groups of one partition of `__consumer_offsets`."""

    groups: PMap[str, GroupMetadata | ConsumerGroup | ShareGroup | StreamsGroup] = PMap()
    offsets: PMap[str, Offsets] = PMap()  # by group; groups and topics without offsets are not here
    pending: PMap[int, PMap[GroupTopicPartition, CommittedOffset]] = PMap()  # by producer id
    open_transactions: PMap[str, PMap[TopicPartition, frozenset[int]]] = (
        PMap()
    )  # by group: producers that have pending offsets
    held_bytes: int = 0  # about the memory of the members of all groups
    pattern_count: int = 0  # regular expressions of all groups

    def with_group(
        self,
        group_id: str,
        group: GroupMetadata | ConsumerGroup | ShareGroup | StreamsGroup | None,
        growth_bytes: int | None = None,
    ) -> GroupsImage:
        """Return the image with a new or changed group, or without it. `growth_bytes` saves summing up its members."""
        old = self.groups.get(group_id)
        if group is None and old is None:
            return self
        if growth_bytes is None:
            growth_bytes = (0 if group is None else group.held_bytes) - (0 if old is None else old.held_bytes)
        patterns = (0 if group is None else group.pattern_count) - (0 if old is None else old.pattern_count)
        return self._replace(
            groups=self.groups.delete(group_id) if group is None else self.groups.set(group_id, group),
            held_bytes=self.held_bytes + growth_bytes,
            pattern_count=self.pattern_count + patterns,
        )

    def offset(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self.offsets.get(group_id, NO_OFFSETS).get(topic, PMap()).get(partition)

    def has_open_transaction(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has a pending offset for this partition."""
        return (topic, partition) in self.open_transactions.get(group_id, PMap())


EMPTY_IMAGE = GroupsImage()


class RecordPosition(NamedTuple):
    """Position of a record: its offset, and the producer if it is part of a transaction."""

    offset: int
    producer_id: int | None


Replay = Callable[[GroupsImage, Any, Any, RecordPosition], GroupsImage | Slices[GroupsImage]]


class Group(Protocol):
    """Common interface of groups of all types, for offsets, lists and deletions. `check_` methods raise KafkaError."""

    @property
    def type(self) -> GroupType: ...
    @property
    def state(self) -> str:
        """State as ListGroups returns it."""
        ...

    @property
    def protocol_type(self) -> str | None: ...
    @property
    def is_empty(self) -> bool: ...

    def check_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, is_transactional: bool, version: int
    ) -> CheckPartition | None:
        """Check a commit. Returns a check for each of its partitions, or None if there is none."""
        ...

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None: ...
    def check_offset_delete(self) -> None: ...
    def check_delete(self) -> None: ...
    def is_subscribed_to(self, topic: str) -> bool: ...

    def expires_from(self) -> Callable[[CommittedOffset], int] | None:
        """Return a function from an offset to the start of its retention in ms, or None while offsets do not expire."""
        ...

    def tombstones(self, group_id: str) -> Records:
        """Return the records that remove the group. Its offsets are removed separately."""
        ...


def group_not_found(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
