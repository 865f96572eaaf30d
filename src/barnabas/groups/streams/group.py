"""A streams group as its records have it, with the indexes that decisions need.

An immutable value: only replay makes a new one (`streams.replay`). The indexes of processes are derived from the members.
What is not in records (the configured topology, a requested shutdown, the epoch of the endpoints) is soft state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.groups.consumer_group import FIRST_EPOCH, JOIN_EPOCH
from barnabas.groups.image import MEMBER_BYTES, CheckPartition, CommittedOffset, GroupType
from barnabas.groups.streams import records
from barnabas.groups.streams.tasks import NO_TARGET, NOTHING_OWNED, AssignedTasks, Task, Tasks, each_task
from barnabas.groups.streams.topology import Topology
from barnabas.metadata.pmap import PMap
from barnabas.wire import ErrorCode, KafkaError, Uuid

if TYPE_CHECKING:
    from barnabas.replicated.decision import Records

STREAMS_PROTOCOL: Final = "streams"
_OFFSET_COMMIT_VERSION: Final = 9  # the first version with member epochs


class State(StrEnum):
    """State of a streams group, with the name that ListGroups returns."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"  # topics are missing, or have wrong numbers of partitions
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class MemberState(IntEnum):
    """Progress of a member towards the target. Records contain these values, which are not those of consumer groups."""

    STABLE = 1
    UNREVOKED_TASKS = 2  # it has to give up tasks first
    UNRELEASED_TASKS = 3  # other members still have tasks of its target
    UNKNOWN = 127  # written by a later version of Kafka


class Endpoint(NamedTuple):
    """Where an instance answers interactive queries."""

    host: str
    port: int


class Member(NamedTuple):
    member_id: str
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = {}
    assigned: AssignedTasks = NOTHING_OWNED
    pending_revocation: AssignedTasks = NOTHING_OWNED

    @property
    def held_bytes(self) -> int:
        """About the memory of the member."""
        tags = sum(MEMBER_BYTES // 4 + len(key) + len(value) for key, value in self.client_tags.items())
        texts = len(self.member_id) + len(self.client_id) + len(self.process_id)
        return MEMBER_BYTES + texts + tags + self.assigned.held_bytes + self.pending_revocation.held_bytes

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch


class StreamsGroup(NamedTuple):
    """A streams group. Implements `image.Group`."""

    group_id: str
    group_epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    validated_topology_epoch: int = 0
    assignment_configs: Mapping[str, str] = {}
    assignment_epoch: int = FIRST_EPOCH
    assignment_timestamp_ms: int = 0
    members: PMap[str, Member] = PMap()
    target_assignment: PMap[str, Tasks] = PMap()
    topology: Topology | None = None
    # Derived from the members: processes that have a task now.
    active_processes: PMap[Task, str] = PMap()
    standby_processes: PMap[Task, frozenset[str]] = PMap()
    warmup_processes: PMap[Task, frozenset[str]] = PMap()

    # --- facts

    @property
    def type(self) -> GroupType:
        return GroupType.STREAMS

    @property
    def protocol_type(self) -> str:
        return STREAMS_PROTOCOL

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def held_bytes(self) -> int:
        """About the memory of its members, assignments and topology."""
        return (
            sum(member.held_bytes for member in self.members.values())
            + sum(tasks.held_bytes for tasks in self.target_assignment.values())
            + (0 if self.topology is None else self.topology.held_bytes)
        )

    @property
    def pattern_count(self) -> int:
        return 0

    @property
    def state(self) -> State:
        if not self.members:
            return State.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return State.NOT_READY
        if self.group_epoch > self.assignment_epoch:
            return State.ASSIGNING
        is_stable = all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values())
        return State.STABLE if is_stable else State.RECONCILING

    def member(self, member_id: str) -> Member:
        """Return a member. Raises UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            message = f"Member {member_id} is not a member of group {self.group_id}."
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return member

    def target(self, member_id: str) -> Tasks:
        return self.target_assignment.get(member_id, NO_TARGET)

    def is_subscribed_to(self, topic: str) -> bool:
        return bool(self.members) and self.topology is not None and topic in self.topology.subtopology_of

    # --- checks for offsets, lists and deletions

    def check_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, is_transactional: bool, version: int
    ) -> CheckPartition | None:
        if generation < 0 and not self.members:
            return None  # an administrator
        if is_transactional and generation == -1 and member_id == "" and group_instance_id is None:
            return None
        member = self.member(member_id)
        if not is_transactional and version < _OFFSET_COMMIT_VERSION:
            message = "OffsetCommit version 9 or above must be used by members using the streams group protocol"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
        if generation == member.member_epoch:
            return None
        if generation > member.member_epoch:
            raise _stale(
                f"Received member epoch {generation} is newer than current member epoch {member.member_epoch}."
            )
        if self.topology is None:
            raise _stale("Topology is not available for offset commit validation.")
        return _assigned_since(member, generation, self.topology)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        expected = self.member(member_id or "").member_epoch
        if member_epoch != expected:
            raise _stale(
                f"The received member epoch {member_epoch} does not match the expected member epoch {expected}."
            )

    def check_offset_delete(self) -> None:
        pass

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def expires_from(self) -> Callable[[CommittedOffset], int] | None:
        return lambda offset: offset.commit_timestamp_ms

    def tombstones(self, group_id: str) -> Records:
        return records.group_tombstones(self)


def _stale(message: str) -> KafkaError:
    return KafkaError(ErrorCode.STALE_MEMBER_EPOCH, message)


def _assigned_since(member: Member, generation: int, topology: Topology) -> CheckPartition:
    """Return a check that allows commits with an older epoch for tasks that were assigned by then."""

    def check(topic: str, topic_id: Uuid, partition: int) -> None:
        subtopology_id = topology.subtopology_of.get(topic)
        if subtopology_id is None:
            raise _stale(f"Topic {topic} is not in the topology.")
        epoch = member.assigned.active.get(subtopology_id, {}).get(partition)
        if epoch is None:
            epoch = member.pending_revocation.active.get(subtopology_id, {}).get(partition)
        if epoch is None:
            raise _stale(f"Task {subtopology_id}-{partition} is not assigned or pending revocation for member.")
        if generation < epoch:
            raise _stale(
                f"Received member epoch {generation} is older than assignment epoch {epoch} for task "
                f"{subtopology_id}-{partition}."
            )

    return check


# --- changes, for replay only


def with_member(group: StreamsGroup, member: Member) -> StreamsGroup:
    """Return the group with a new or changed member."""
    changed = group._replace(members=group.members.set(member.member_id, member))
    return _with_processes(changed, group.members.get(member.member_id), member)


def without_member(group: StreamsGroup, member_id: str) -> StreamsGroup:
    changed = group._replace(members=group.members.delete(member_id))
    return _with_processes(changed, group.members[member_id], None)


def _with_processes(group: StreamsGroup, old: Member | None, new: Member | None) -> StreamsGroup:
    if old is not None and new is not None and _has_same(old, new):
        return group
    active = group.active_processes.mutate()
    standby = group.standby_processes.mutate()
    warmup = group.warmup_processes.mutate()
    roles = ((1, standby), (2, warmup))
    if old is not None:
        for tasks in (old.assigned, old.pending_revocation):
            for task in each_task(tasks.active):
                if active.get(task) == old.process_id:  # otherwise another process has it already
                    del active[task]
            for role, draft in roles:
                for task in each_task(tasks[role]):
                    rest = draft.get(task, frozenset()) - {old.process_id}
                    if rest:
                        draft[task] = rest
                    else:
                        draft.pop(task, None)
    if new is not None:
        for tasks in (new.assigned, new.pending_revocation):
            active.update(dict.fromkeys(each_task(tasks.active), new.process_id))
            for role, draft in roles:
                for task in each_task(tasks[role]):
                    draft[task] = draft.get(task, frozenset()) | {new.process_id}
    return group._replace(
        active_processes=active.finish(), standby_processes=standby.finish(), warmup_processes=warmup.finish()
    )


def _has_same(old: Member, new: Member) -> bool:
    return (
        old.process_id == new.process_id
        and old.assigned == new.assigned
        and old.pending_revocation == new.pending_revocation
    )
