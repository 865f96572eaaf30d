"""What the log of one partition of `__consumer_offsets` says: its groups, their offsets, and offsets of open transactions.

A value: only replay makes a new one. A classic group stands here as its last record has it; who is joining, waiting or
late is soft state (`classic.ClassicGroup`), as it is in Kafka. A group without any record of its own but with offsets is
a simple group: SIMPLE_GROUP.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from barnabas.metadata.pmap import PMap
from barnabas.replicated.decision import Records
from barnabas.wire import ErrorCode, KafkaError, Uuid

if TYPE_CHECKING:
    from barnabas.groups.consumer_group import ConsumerGroup


class GroupType(StrEnum):
    """The protocols of groups, as ListGroups names them."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class MemberMetadata(NamedTuple):
    """A member of a classic group, as it was when its group was last written."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadata(NamedTuple):
    """A classic group, as it was last written."""

    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    state_timestamp_ms: int | None = None
    members: tuple[MemberMetadata, ...] = ()


SIMPLE_GROUP = GroupMetadata()


class CommittedOffset(NamedTuple):
    """What a group committed for a partition, and where in the log it did."""

    record_offset: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int  # -1: when the retention of its group says so
    topic_id: Uuid


Offsets = PMap[str, PMap[int, CommittedOffset]]  # by topic and partition
GroupTopicPartition = tuple[str, str, int]
TopicPartition = tuple[str, int]
CheckPartition = Callable[[str, Uuid, int], None]
NO_OFFSETS: Offsets = PMap()


class GroupsImage(NamedTuple):
    """The groups of one partition of `__consumer_offsets`."""

    groups: PMap[str, GroupMetadata | ConsumerGroup] = PMap()
    offsets: PMap[str, Offsets] = PMap()  # by group; neither a group nor a topic stands here without an offset
    pending: PMap[int, PMap[GroupTopicPartition, CommittedOffset]] = PMap()  # by the producer whose transaction is open
    open_transactions: PMap[str, PMap[TopicPartition, frozenset[int]]] = (
        PMap()
    )  # by group: producers with pending offsets

    def offset(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self.offsets.get(group_id, NO_OFFSETS).get(topic, PMap()).get(partition)

    def has_open_transaction(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a transaction that is not decided yet has an offset for this partition."""
        return (topic, partition) in self.open_transactions.get(group_id, PMap())


EMPTY_IMAGE = GroupsImage()


class Place(NamedTuple):
    """Where a record stands: its offset, and the producer whose transaction it is part of."""

    offset: int
    producer_id: int | None


Replay = Callable[[GroupsImage, Any, Any, Place], GroupsImage]


class Group(Protocol):
    """What offsets, lists and deletions ask of a group of any type; `check_` methods raise KafkaError."""

    @property
    def type(self) -> GroupType: ...
    @property
    def state(self) -> str:
        """As ListGroups names it."""
        ...

    @property
    def protocol_type(self) -> str | None: ...
    @property
    def is_empty(self) -> bool: ...

    def check_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, is_transactional: bool, version: int
    ) -> CheckPartition | None:
        """What each partition has still to pass, if there is anything."""
        ...

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None: ...
    def check_offset_delete(self) -> None: ...
    def check_delete(self) -> None: ...
    def is_subscribed_to(self, topic: str) -> bool: ...

    def expires_from(self) -> Callable[[CommittedOffset], int] | None:
        """From when on the retention of an offset counts, in ms; None while offsets do not expire."""
        ...

    def tombstones(self, group_id: str) -> Records:
        """The records that remove the group; its offsets are not its own."""
        ...


def group_not_found(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
