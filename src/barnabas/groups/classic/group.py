"""The soft state of a classic group: its members, state and deadlines.

Its one rule: a group is changed only by its own methods and by the decisions of this package (`joining`, `syncing`,
`rebalancing`, `sessions`, `expiry`). They take the time as an argument, do no I/O, and return the records to write. A
member that waits has left a callback. Deadlines are only noted: `wake_ms` is a lower bound of the next one, and the
shell calls `expiry.tick` then. So a heartbeat costs one assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from barnabas.groups.classic.member import NEVER, ClassicMember
from barnabas.groups.classic.members import Members
from barnabas.groups.classic.protocols import CONSUMER_PROTOCOL, subscribed_topics
from barnabas.groups.classic.records import group_tombstone, restored_member, stored_member
from barnabas.groups.classic.requests import Moment
from barnabas.groups.classic.settings import ClassicSettings
from barnabas.groups.classic.state import COMPLETING, DEAD, EMPTY, FOLLOWS, STABLE, State
from barnabas.groups.image import CheckPartition, CommittedOffset, GroupMetadata, GroupType
from barnabas.replicated.decision import Records
from barnabas.wire import ErrorCode, KafkaError


class JoinTimer(NamedTuple):
    """End of a join phase. The first one of a group is extended while new members join, until no time remains."""

    deadline_ms: float
    delay_ms: int = 0
    remaining_ms: int | None = None  # set for the first join phase only


class ClassicGroup:
    """One classic group. Implements `image.Group`."""

    type = GroupType.CLASSIC

    __slots__ = (
        "generation",
        "group_id",
        "join_timer",
        "members",
        "new_member_added",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "settings",
        "state",
        "state_timestamp_ms",
        "subscribed_topics",
        "sync_deadline_ms",
        "wake_ms",
    )

    def __init__(self, group_id: str, settings: ClassicSettings, stored: GroupMetadata) -> None:
        self.group_id = group_id
        self.settings = settings
        self.generation = stored.generation
        self.protocol_type = stored.protocol_type
        self.protocol_name = stored.protocol_name
        self.state = STABLE if stored.members else EMPTY
        self.previous_state = DEAD
        self.state_timestamp_ms = stored.state_timestamp_ms
        self.members = Members(stored.leader_id)
        self.new_member_added = False  # since the first join phase was started or extended
        self.join_timer: JoinTimer | None = None
        self.sync_deadline_ms: float = NEVER
        self.wake_ms: float = NEVER
        for member in stored.members:
            self.members.add(restored_member(member, stored.protocol_name))
        self.subscribed_topics = self._subscribed_topics()

    @classmethod
    def of_members(
        cls, group_id: str, settings: ClassicSettings, generation: int, members: Iterable[ClassicMember], now_ms: int
    ) -> ClassicGroup:
        """Return a stable group of consumers that did not go through a rebalance: it was a consumer group."""
        group = cls(group_id, settings, GroupMetadata(generation, CONSUMER_PROTOCOL, state_timestamp_ms=now_ms))
        for member in members:
            group.members.add(member)
        group.state = STABLE
        group.select_protocol()
        return group

    # --- facts

    @property
    def is_empty(self) -> bool:
        return self.state is EMPTY

    @property
    def is_simple(self) -> bool:
        """Whether it only ever held offsets and never had a member."""
        return self.protocol_type is None and self.is_empty and not self.members.pending

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads a topic. True for a group of consumers whose subscriptions cannot be read."""
        return self.uses_consumer_protocol if self.subscribed_topics is None else topic in self.subscribed_topics

    def stored(self, assignments: Mapping[str, bytes] | None = None) -> GroupMetadata:
        """Return the group as its record has it, with the assignments of its members or with other ones."""
        members = tuple(
            stored_member(
                member, self.protocol_name, member.assignment if assignments is None else assignments[member.member_id]
            )
            for member in self.members
        )
        return GroupMetadata(
            self.generation,
            self.protocol_type,
            self.protocol_name,
            self.members.leader_id,
            self.state_timestamp_ms,
            members,
        )

    def tombstones(self, group_id: str) -> Records:
        return [group_tombstone(group_id)]

    # --- changes

    def enter(self, state: State, now: Moment) -> None:
        """Go to another state. Raises AssertionError if the table of transitions does not have it."""
        if state not in FOLLOWS[self.state]:
            raise AssertionError(f"group {self.group_id} cannot go from {self.state} to {state}")
        self.previous_state, self.state = self.state, state
        self.state_timestamp_ms = now.now_ms

    def select_protocol(self) -> None:
        """Select the protocol of the members, and find the topics that they subscribe to with it."""
        self.protocol_name = self.members.select_protocol() if self.members else None
        self.subscribed_topics = self._subscribed_topics()

    def _subscribed_topics(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol or (self.members and self.protocol_name is None):
            return None
        return subscribed_topics(self.group_id, self.protocol_name, self.members)

    def die(self) -> None:
        """Stop: the group was deleted, or this node is no longer its coordinator."""
        self.state = DEAD
        self.wake_ms = NEVER

    # --- deadlines

    def due(self, deadline_ms: float) -> float:
        """Note a deadline, so that the group is woken by then, and return it."""
        if deadline_ms < self.wake_ms:  # noqa: PLR1730  (faster than min, for heartbeats)
            self.wake_ms = deadline_ms
        return deadline_ms

    def reset_session(self, member: ClassicMember, steady_ms: float) -> None:
        """Restart the session of a member."""
        member.deadline_ms = self.due(steady_ms + member.session_timeout_ms)

    # --- checks for offsets and deletions

    def check_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, is_transactional: bool, version: int
    ) -> CheckPartition | None:
        if self.state is DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation < 0 and self.state is EMPTY:
            return None  # an administrator, or a consumer that assigns its partitions itself
        if generation >= 0 or member_id or group_instance_id is not None:
            error = self.members.error(member_id, group_instance_id)
            if error is None and generation != self.generation:
                error = ErrorCode.ILLEGAL_GENERATION
            if error is not None:
                raise KafkaError(error)
        elif not is_transactional and self.state is not EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not is_transactional and self.state is COMPLETING:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        return None

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        self._check_alive()

    def check_offset_delete(self) -> None:
        self._check_alive()
        if self.state is not EMPTY and not self.uses_consumer_protocol:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        self._check_alive()
        if self.state is not EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def _check_alive(self) -> None:
        if self.state is DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is in dead state.")

    def expires_from(self) -> Callable[[CommittedOffset], int] | None:
        if self.protocol_type is None:
            return _commit_timestamp
        if self.state is EMPTY:
            since_ms = self.state_timestamp_ms
            return _commit_timestamp if since_ms is None else lambda _: since_ms
        if self.uses_consumer_protocol and self.subscribed_topics is not None and self.state is STABLE:
            return _commit_timestamp
        return None


def _commit_timestamp(offset: CommittedOffset) -> int:
    return offset.commit_timestamp_ms
