"""A classic group while it lives: who joins, who waits, what was assigned. Soft state, beside what its last record says.

Its one rule: it changes only by its methods, which are given the time, do no I/O, and return what has to be written.
A member that waits has left a callback; it is called when its answer is known. Deadlines are only noted: `wake_ms` is a
lower bound of the next one, and whoever has a timer calls `tick` then. So a heartbeat is one assignment.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from barnabas import wire
from barnabas.config.hash_order import hash_order
from barnabas.groups.classic_member import (
    NEVER,
    NO_ASSIGNMENT,
    UNKNOWN_MEMBER_ID,
    AnswerJoin,
    AnswerSync,
    ClassicMember,
    Join,
    Leaver,
    Moment,
    Protocols,
    Sync,
    join_failed,
    restored,
    sync_failed,
)
from barnabas.groups.group_metadata import group_record, group_tombstone
from barnabas.groups.image import CheckPartition, CommittedOffset, GroupMetadata, GroupType
from barnabas.replicated.decision import Records
from barnabas.wire import ErrorCode, KafkaError, MalformedError
from barnabas.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupResponse

log = logging.getLogger(__name__)

CONSUMER_PROTOCOL = "consumer"


class State(StrEnum):
    """Of a classic group, as it is shown."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, PREPARING, COMPLETING, STABLE, DEAD = State

FOLLOWS: Final = {
    EMPTY: frozenset({PREPARING, DEAD}),
    PREPARING: frozenset({COMPLETING, EMPTY, DEAD}),
    COMPLETING: frozenset({STABLE, PREPARING, DEAD}),
    STABLE: frozenset({PREPARING, DEAD}),
    DEAD: frozenset({DEAD}),
}


class ClassicSettings(NamedTuple):
    """What the broker's configuration says of all classic groups."""

    initial_rebalance_delay_ms: int = 3000
    max_size: int = 2**31 - 1
    new_member_join_timeout_ms: int = 300_000


class Write(NamedTuple):
    """What a group wants to have in the log, and whom to tell when it is committed, or that it failed."""

    records: Records
    done: Callable[[KafkaError | None, Moment], None] | None = None


class _JoinTimer(NamedTuple):
    """When a join phase ends. The first one of a group is prolonged while members come, for as long as there is time left."""

    deadline_ms: float
    delay_ms: int = 0
    remaining_ms: int | None = None  # of the first one only


class ClassicGroup:
    """One classic group. Implements `image.Group`."""

    type = GroupType.CLASSIC

    __slots__ = (
        "_awaiting_join",
        "_join_timer",
        "_new_member_added",
        "_pending_members",
        "_pending_sync",
        "_previous_state",
        "_settings",
        "_supported",
        "_sync_deadline_ms",
        "generation",
        "group_id",
        "leader_id",
        "members",
        "protocol_name",
        "protocol_type",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscribed_topics",
        "wake_ms",
    )

    def __init__(self, group_id: str, settings: ClassicSettings, stored: GroupMetadata) -> None:
        self.group_id = group_id
        self.generation = stored.generation
        self.protocol_type = stored.protocol_type
        self.protocol_name = stored.protocol_name
        self.leader_id = stored.leader_id
        self.state = State.STABLE if stored.members else State.EMPTY
        self.state_timestamp_ms = stored.state_timestamp_ms
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.wake_ms: float = NEVER
        self._settings = settings
        self._previous_state = DEAD
        self._awaiting_join = 0
        self._new_member_added = False
        self._pending_members: dict[str, float] = {}  # got a member id and have not joined with it; their deadlines
        self._supported: dict[str, int] = {}  # how many members have a protocol
        self._pending_sync: set[str] = set()
        self._join_timer: _JoinTimer | None = None
        self._sync_deadline_ms: float = NEVER
        for member in stored.members:
            self.add(restored(member, stored.protocol_name))
        self.subscribed_topics = self._compute_subscribed_topics()

    @classmethod
    def of_members(
        cls, group_id: str, settings: ClassicSettings, generation: int, members: Iterable[ClassicMember], now_ms: int
    ) -> ClassicGroup:
        """A stable group of consumers that came about without a rebalance: it was a consumer group."""
        group = cls(group_id, settings, GroupMetadata(generation, CONSUMER_PROTOCOL, state_timestamp_ms=now_ms))
        for member in members:
            group.add(member)
        group.state = STABLE
        group.protocol_name = group._select_protocol()
        group.subscribed_topics = group._compute_subscribed_topics()
        return group

    # --- what it is

    @property
    def is_empty(self) -> bool:
        return self.state is EMPTY

    @property
    def is_simple(self) -> bool:
        """Whether it never was more than the holder of offsets."""
        return self.protocol_type is None and self.is_empty and not self._pending_members

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads a topic; if that cannot be known, a group of consumers may."""
        return self.uses_consumer_protocol if self.subscribed_topics is None else topic in self.subscribed_topics

    def stored(self, assignments: Mapping[str, bytes] | None = None) -> GroupMetadata:
        """The group as its record has it, with what the members have assigned or with other assignments."""
        members = tuple(
            member.stored(
                self.protocol_name, member.assignment if assignments is None else assignments[member.member_id]
            )
            for member in self.members.values()
        )
        return GroupMetadata(
            self.generation, self.protocol_type, self.protocol_name, self.leader_id, self.state_timestamp_ms, members
        )

    def tombstones(self, group_id: str) -> Records:
        return [group_tombstone(group_id)]

    # --- joining

    def join(self, request: Join, make_member_id: Callable[[], str], now: Moment, answer: AnswerJoin) -> Write | None:
        member_id = request.member_id
        if not self._accepts(member_id):
            self.remove(member_id)
            answer(join_failed(ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif self.state is DEAD:
            answer(join_failed(ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id))
        elif not self._supports(request.protocol_type, request.protocols):
            answer(join_failed(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id))
        elif member_id == UNKNOWN_MEMBER_ID:
            return self._join_new(request, make_member_id(), now, answer)
        elif member_id in self._pending_members:
            if request.group_instance_id is not None:  # a pending member is never a static one
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            return self._add_and_rebalance(request, member_id, now, answer)
        else:
            return self._join_again(request, now, answer)
        return None

    def _accepts(self, member_id: str) -> bool:
        if self.state is PREPARING:
            # Who waits already is counted, not who is known: the group may be too large since its limit was lowered.
            member = self.members.get(member_id)
            is_waiting = member is not None and member.answer_join is not None
            return is_waiting or self._awaiting_join < self._settings.max_size
        if self.state in (COMPLETING, STABLE):
            return member_id in self.members or len(self.members) < self._settings.max_size
        return True

    def _supports(self, protocol_type: str, protocols: Protocols) -> bool:
        if self.state is EMPTY:
            return bool(protocol_type and protocols)
        count = len(self.members)
        return protocol_type == self.protocol_type and any(self._supported.get(n, 0) == count for n, _ in protocols)

    def _join_new(self, request: Join, member_id: str, now: Moment, answer: AnswerJoin) -> Write | None:
        if request.group_instance_id is not None:
            known_id = self.static_members.get(request.group_instance_id)
            if known_id is not None:
                return self._replace_static(request, known_id, member_id, now, answer)
        elif request.needs_known_member_id:
            self._pending_members[member_id] = self._due(now.steady_ms + request.session_timeout_ms)
            answer(join_failed(ErrorCode.MEMBER_ID_REQUIRED, member_id))
            return None
        return self._add_and_rebalance(request, member_id, now, answer)

    def _join_again(self, request: Join, now: Moment, answer: AnswerJoin) -> Write | None:
        member_id = request.member_id
        error = self._member_error(member_id, request.group_instance_id)
        if error is not None:
            answer(join_failed(error, member_id))
            return None
        member = self.members[member_id]
        is_leader = member_id == self.leader_id
        is_same = member.protocols == request.protocols
        if self.state is EMPTY:
            answer(join_failed(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
        elif (self.state is COMPLETING and is_same) or (self.state is STABLE and is_same and not is_leader):
            # It may have missed the answer. A leader of a stable group that joins again wants a new assignment.
            answer(self._joined(member_id))
        else:
            self._update(member, request, answer)
            return self._rebalance_or_complete(now)
        return None

    def _joined(self, member_id: str) -> JoinGroupResponse:
        """The answer of the generation; its leader is told who the members are."""
        members = []
        if member_id == self.leader_id:
            members = [
                JoinGroupResponse.JoinGroupResponseMember(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    metadata=member.metadata(self.protocol_name),
                )
                for member in self.members.values()
            ]
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader_id or "",
            member_id=member_id,
            members=members,
        )

    def _add_and_rebalance(self, request: Join, member_id: str, now: Moment, answer: AnswerJoin) -> Write | None:
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            request.client_id,
            request.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocols,
        )
        member.is_new = True
        if self.state is PREPARING and self._previous_state is EMPTY:
            self._new_member_added = True
        if not self.members:
            self.protocol_type = request.protocol_type
        self.add(member, answer)
        # It cannot send heartbeats before it is answered; one that gave up is not waited for for ever.
        member.deadline_ms = self._due(now.steady_ms + self._settings.new_member_join_timeout_ms)
        return self._rebalance_or_complete(now)

    def add(self, member: ClassicMember, answer: AnswerJoin | None = None) -> None:
        """Make it a member; the first one leads."""
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self._count(member, 1)
        self._await_join(member, answer)
        self._pending_members.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Take out a member, or one that was about to become one; if it waits, it is told."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member, -1)
            self._answer_join(member, join_failed(ErrorCode.UNKNOWN_MEMBER_ID))
            self._answer_sync(member, sync_failed(ErrorCode.UNKNOWN_MEMBER_ID))
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if member_id == self.leader_id:
            self.leader_id = next(iter(self.members), None)
        self._pending_members.pop(member_id, None)
        self._pending_sync.discard(member_id)

    def _update(self, member: ClassicMember, request: Join, answer: AnswerJoin | None) -> None:
        self._count(member, -1)
        member.protocols = request.protocols
        self._count(member, 1)
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms
        self._await_join(member, answer)

    def _count(self, member: ClassicMember, by: int) -> None:
        for name, _ in member.protocols:
            self._supported[name] = self._supported.get(name, 0) + by

    def _await_join(self, member: ClassicMember, answer: AnswerJoin | None) -> None:
        """It waits with this callback from now on; whoever asked before for the same member has given up by then."""
        self._answer_join(member, join_failed(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        self._awaiting_join += answer is not None
        member.answer_join = answer

    # --- static members

    def _replace_static(self, request: Join, old_id: str, new_id: str, now: Moment, answer: AnswerJoin) -> Write | None:
        """The instance is there again under a new member id: the old one is fenced, and what it had assigned passes on."""
        old_leader = self.leader_id
        old = self.members[old_id]
        member = self._rename(old, new_id)
        self._reset_session(member, now.steady_ms)
        self._update(member, request, answer)
        if self.state is not STABLE:
            if self.state is COMPLETING:
                # The leader may have been told of the old member id, and would assign to that.
                return self.prepare_rebalance(now)
            return self._complete_if_all_joined(now)
        if self._select_protocol() != self.protocol_name:
            return self._rebalance_or_complete(now)

        def done(error: KafkaError | None, later: Moment) -> None:
            if self.state is not STABLE or self.members.get(new_id) is not member:
                return  # a rebalance has begun meanwhile: it has joined that
            if error is not None:
                self._take_back(member, old, later, old_leader, response_error(error.code))
                return
            response = self._joined(new_id)
            if request.knows_skip_assignment:
                response.skip_assignment = new_id == self.leader_id
            else:
                # Older leaders would assign again when they see themselves lead.
                response.leader, response.members = old_leader or "", []
            self._answer_join(member, response)

        return Write([group_record(self.group_id, self.stored())], done)

    def _rename(self, old: ClassicMember, new_id: str) -> ClassicMember:
        """Replace a static member by one with another id; who waits under the old id is fenced."""
        del self.members[old.member_id]
        self._answer_join(old, join_failed(ErrorCode.FENCED_INSTANCE_ID, old.member_id))
        self._answer_sync(old, sync_failed(ErrorCode.FENCED_INSTANCE_ID))
        member = ClassicMember(
            new_id,
            old.group_instance_id,
            old.client_id,
            old.client_host,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
            old.protocols,
            old.assignment,
        )
        self.members[new_id] = member
        if old.member_id in self._pending_sync:
            self._pending_sync.remove(old.member_id)
            self._pending_sync.add(new_id)
        if self.leader_id == old.member_id:
            self.leader_id = new_id
        if old.group_instance_id is not None:
            self.static_members[old.group_instance_id] = new_id
        return member

    def _take_back(
        self, member: ClassicMember, old: ClassicMember, now: Moment, leader_id: str | None, error: ErrorCode
    ) -> None:
        response = JoinGroupResponse(
            error_code=error,
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=leader_id or "",
        )
        self._answer_join(member, response)
        self._count(member, -1)
        member.protocols = old.protocols
        member.rebalance_timeout_ms, member.session_timeout_ms = old.rebalance_timeout_ms, old.session_timeout_ms
        self._count(member, 1)
        self._reset_session(self._rename(member, old.member_id), now.steady_ms)

    # --- rebalancing

    def _rebalance_or_complete(self, now: Moment) -> Write | None:
        if PREPARING in FOLLOWS[self.state]:
            return self.prepare_rebalance(now)
        return self._complete_if_all_joined(now)

    def prepare_rebalance(self, now: Moment) -> Write | None:
        """All members have to join again. A group's first members are waited for a little longer."""
        if self.state is COMPLETING:
            self._propagate_failure(ErrorCode.REBALANCE_IN_PROGRESS, now)
        self._pending_sync.clear()
        self._sync_deadline_ms = NEVER
        is_first = self.state is EMPTY
        self._enter(PREPARING, now)
        if is_first:
            delay_ms = self._settings.initial_rebalance_delay_ms
            remaining_ms = max(self._rebalance_timeout_ms() - delay_ms, 0)
            self._join_timer = _JoinTimer(self._due(now.steady_ms + delay_ms), delay_ms, remaining_ms)
            return None
        if self._have_all_joined:
            return self._complete_join(now)
        self._join_timer = _JoinTimer(self._due(now.steady_ms + self._rebalance_timeout_ms()))
        return None

    @property
    def _have_all_joined(self) -> bool:
        return len(self.members) == self._awaiting_join and not self._pending_members

    def _complete_if_all_joined(self, now: Moment) -> Write | None:
        if self.state is PREPARING and self._previous_state is not EMPTY and self._have_all_joined:
            return self._complete_join(now)
        return None

    def _join_due(self, timer: _JoinTimer, now: Moment) -> Write | None:
        if timer.remaining_ms and self._new_member_added:
            self._new_member_added = False
            delay_ms = min(self._settings.initial_rebalance_delay_ms, timer.remaining_ms)
            remaining_ms = max(timer.remaining_ms - timer.delay_ms, 0)
            self._join_timer = _JoinTimer(self._due(now.steady_ms + delay_ms), delay_ms, remaining_ms)
            return None
        return self._complete_join(now)

    def _complete_join(self, now: Moment) -> Write | None:
        """The join phase is over: those that joined make the next generation."""
        self._join_timer = None
        late = [m.member_id for m in self.members.values() if m.answer_join is None and m.group_instance_id is None]
        for member_id in late:
            self.remove(member_id)
        if not self._elect_joined_leader() and self.members:
            # Static members that did not come back are kept until their sessions end.
            self._join_timer = _JoinTimer(self._due(now.steady_ms + self._rebalance_timeout_ms()))
            return None
        self._next_generation(now)
        if self.state is EMPTY:
            return Write([group_record(self.group_id, self.stored())])
        for member in self.members.values():
            self._answer_join(member, self._joined(member.member_id))
            self._reset_session(member, now.steady_ms)
            member.is_new = False
            self._pending_sync.add(member.member_id)
        self._sync_deadline_ms = self._due(now.steady_ms + self._rebalance_timeout_ms())
        return None

    def _elect_joined_leader(self) -> bool:
        """Whether a leader has joined; another one leads if the one that was has not."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].answer_join is None:
            joined = next((m.member_id for m in self.members.values() if m.answer_join is not None), None)
            if joined is None:
                return False
            self.leader_id = joined
        return True

    def _next_generation(self, now: Moment) -> None:
        self.generation = self.generation + 1 if self.generation < 2**31 - 1 else -(2**31)
        self.protocol_name = self._select_protocol() if self.members else None
        self.subscribed_topics = self._compute_subscribed_topics()
        self._enter(COMPLETING if self.members else EMPTY, now)
        self._pending_sync.clear()
        log.info("group %s: generation %d with %d members", self.group_id, self.generation, len(self.members))

    def _select_protocol(self) -> str:
        """The protocol that most members like best, among those that all have."""
        count = len(self.members)
        candidates = {name for name, having in self._supported.items() if having == count}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(hash_order(votes), key=votes.__getitem__)

    def _compute_subscribed_topics(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER_PROTOCOL or (self.members and self.protocol_name is None):
            return None
        topics: set[str] = set()
        try:
            for member in self.members.values():
                # Every version begins as version 0 does; two bytes say which it is.
                metadata = member.metadata(self.protocol_name)
                topics.update(wire.decode_from(ConsumerProtocolSubscription, 0, metadata, 2)[0].topics)
        except MalformedError as error:
            log.warning("group %s: the subscription of a member cannot be read: %s", self.group_id, error)
            return None
        return frozenset(topics)

    def _rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def _enter(self, state: State, now: Moment) -> None:
        if state not in FOLLOWS[self.state]:
            raise AssertionError(f"group {self.group_id} cannot go from {self.state} to {state}")
        self._previous_state, self.state = self.state, state
        self.state_timestamp_ms = now.now_ms

    # --- syncing

    def sync(self, request: Sync, now: Moment, answer: AnswerSync) -> Write | None:
        error = self._sync_error(request)
        if error is not None:
            answer(sync_failed(error))
            return None
        member = self.members[request.member_id]
        self._pending_sync.discard(request.member_id)
        if not self._pending_sync:
            self._sync_deadline_ms = NEVER
        if self.state is STABLE:
            answer(self._synced(member))
            return None
        self._answer_sync(member, sync_failed(ErrorCode.REBALANCE_IN_PROGRESS))
        member.answer_sync = answer
        if request.member_id != self.leader_id:
            return None
        assignments = {member_id: request.assignments.get(member_id, NO_ASSIGNMENT) for member_id in self.members}
        generation = self.generation

        def done(failure: KafkaError | None, later: Moment) -> None:
            if self.state is not COMPLETING or self.generation != generation:
                return  # another rebalance has begun meanwhile
            if failure is not None:
                self._propagate_failure(response_error(failure.code), later)
                self._rebalance_or_complete(later)
                return
            for assigned in self.members.values():
                assigned.assignment = assignments.get(assigned.member_id, NO_ASSIGNMENT)
                if self._answer_sync(assigned, self._synced(assigned)):
                    self._reset_session(assigned, later.steady_ms)
            self._enter(STABLE, later)

        return Write([group_record(self.group_id, self.stored(assignments))], done)

    def _sync_error(self, request: Sync) -> ErrorCode | None:
        if self.state is EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if self.state is DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = self._member_error(request.member_id, request.group_instance_id)
        if error is not None:
            return error
        if request.generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if _differ(request.protocol_type, self.protocol_type) or _differ(request.protocol_name, self.protocol_name):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is PREPARING else None

    def _synced(self, member: ClassicMember) -> SyncGroupResponse:
        return SyncGroupResponse(
            protocol_type=self.protocol_type, protocol_name=self.protocol_name, assignment=member.assignment
        )

    def _propagate_failure(self, code: ErrorCode, now: Moment) -> None:
        for member in self.members.values():
            member.assignment = NO_ASSIGNMENT
            if self._answer_sync(member, sync_failed(code)):
                self._reset_session(member, now.steady_ms)

    def _answer_join(self, member: ClassicMember, response: JoinGroupResponse) -> None:
        answer, member.answer_join = member.answer_join, None
        if answer is not None:
            self._awaiting_join -= 1
            answer(response)

    def _answer_sync(self, member: ClassicMember, response: SyncGroupResponse) -> bool:
        answer, member.answer_sync = member.answer_sync, None
        if answer is None:
            return False
        answer(response)
        return True

    def fail_all(self, code: ErrorCode) -> None:
        """Everyone who waits is told the same."""
        for member in self.members.values():
            self._answer_join(member, join_failed(code, member.member_id))
            self._answer_sync(member, sync_failed(code))

    def die(self) -> None:
        """The group is no more, or not here: nothing is waited for."""
        self.state = DEAD
        self.wake_ms = NEVER

    # --- staying and leaving

    def heartbeat(self, member_id: str, group_instance_id: str | None, generation: int, steady_ms: float) -> ErrorCode:
        if self.state is DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        member = self.members.get(member_id)
        if member is None or group_instance_id is not None:
            error = self._member_error(member_id, group_instance_id)
            if error is not None:
                return error
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if member is None or self.state is EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._reset_session(member, steady_ms)
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is PREPARING else ErrorCode.NONE

    def keep_session(self, member_id: str, steady_ms: float) -> None:
        """A commit of offsets is as good as a heartbeat."""
        member = self.members.get(member_id)
        if member is not None and self.state in (STABLE, PREPARING):
            self._reset_session(member, steady_ms)

    def begin_sessions(self, now: Moment) -> Write | None:
        """The group was just loaded: everybody has the time of a session to come."""
        for member in self.members.values():
            self._reset_session(member, now.steady_ms)
        if len(self.members) > self._settings.max_size:
            return self.prepare_rebalance(now)
        return None

    def leave(self, leavers: Iterable[Leaver], now: Moment) -> tuple[list[ErrorCode], Write | None]:
        """For each whether it is out; and then those that stay rebalance."""
        errors = [self._leave(leaver) for leaver in leavers]
        if ErrorCode.NONE not in errors:
            return errors, None
        if self.state in (STABLE, COMPLETING):
            return errors, self._rebalance_or_complete(now)
        return errors, self._complete_if_all_joined(now)

    def _leave(self, leaver: Leaver) -> ErrorCode:
        member_id, instance_id = leaver
        if member_id == UNKNOWN_MEMBER_ID:
            member_id = self.static_members.get(instance_id, "") if instance_id is not None else ""
            if not member_id:
                return ErrorCode.UNKNOWN_MEMBER_ID
        elif member_id not in self._pending_members:
            error = self._member_error(member_id, instance_id)
            if error is not None:
                return error
        self.remove(member_id)
        return ErrorCode.NONE

    def _member_error(self, member_id: str, group_instance_id: str | None) -> ErrorCode | None:
        if group_instance_id is not None:
            known_id = self.static_members.get(group_instance_id)
            if known_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return None if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    # --- time

    def _due(self, deadline_ms: float) -> float:
        if deadline_ms < self.wake_ms:  # noqa: PLR1730  (a heartbeat costs less so)
            self.wake_ms = deadline_ms
        return deadline_ms

    def _reset_session(self, member: ClassicMember, steady_ms: float) -> None:
        member.deadline_ms = self._due(steady_ms + member.session_timeout_ms)

    def tick(self, now: Moment) -> list[Write]:
        """Do what is due, and say by `wake_ms` when the next thing may be."""
        writes = [write for write in self._do_due(now) if write is not None]
        deadlines = [member.deadline_ms for member in self.members.values()]
        deadlines += self._pending_members.values()
        if self._join_timer is not None:
            deadlines.append(self._join_timer.deadline_ms)
        self.wake_ms = min((*deadlines, self._sync_deadline_ms), default=NEVER)
        return writes

    def _do_due(self, now: Moment) -> Iterator[Write | None]:
        steady_ms = now.steady_ms
        for member_id in [m for m, deadline_ms in self._pending_members.items() if deadline_ms <= steady_ms]:
            self.remove(member_id)
            if self.state is PREPARING and self._have_all_joined:
                yield self._complete_join(now)
        for member in [m for m in self.members.values() if m.deadline_ms <= steady_ms]:
            yield self._expire(member, now)
        if self._sync_deadline_ms <= steady_ms:
            self._sync_deadline_ms = NEVER
            yield self._expire_pending_sync(now)
        timer = self._join_timer
        if timer is not None and timer.deadline_ms <= steady_ms:
            self._join_timer = None
            yield self._join_due(timer, now)

    def _expire(self, member: ClassicMember, now: Moment) -> Write | None:
        if self.members.get(member.member_id) is not member or member.deadline_ms > now.steady_ms:
            return None
        if not member.may_expire:
            member.deadline_ms = NEVER  # its next answer begins a new session
            return None
        log.info("group %s: member %s was not heard of in time", self.group_id, member.member_id)
        self.remove(member.member_id)
        if self.state in (STABLE, COMPLETING):
            return self._rebalance_or_complete(now)
        if self.state is PREPARING and self._have_all_joined:
            return self._complete_join(now)
        return None

    def _expire_pending_sync(self, now: Moment) -> Write | None:
        if self.state not in (COMPLETING, STABLE) or not self._pending_sync:
            return None
        log.info("group %s: %d members did not sync in time", self.group_id, len(self._pending_sync))
        for member_id in list(self._pending_sync):
            self.remove(member_id)
        return self.prepare_rebalance(now)

    # --- what offsets ask

    def check_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, is_transactional: bool, version: int
    ) -> CheckPartition | None:
        if self.state is DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation < 0 and self.state is EMPTY:
            return None  # an administrator, or a consumer that assigns to itself
        if generation >= 0 or member_id or group_instance_id is not None:
            error = self._member_error(member_id, group_instance_id)
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


def _differ(asked: str | None, known: str | None) -> bool:
    return asked is not None and known is not None and asked != known


_RESPONSE_ERRORS = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,  # of a transaction that could not be verified
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def response_error(code: ErrorCode) -> ErrorCode:
    """What a failure of the log is called towards the clients of a coordinator."""
    return _RESPONSE_ERRORS.get(code, code)
