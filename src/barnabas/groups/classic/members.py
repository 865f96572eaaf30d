"""The members of a classic group, its leader, and the members that wait at the join and sync barriers."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.groups.classic.member import ClassicMember
from barnabas.groups.classic.protocols import SupportedProtocols
from barnabas.groups.classic.requests import AnswerJoin, Join, Protocols, join_failed, sync_failed
from barnabas.groups.image import MEMBER_BYTES
from barnabas.wire import ErrorCode
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupResponse


class Members:
    """Members by id, and everything that is derived from them.

    Its one rule: instance ids, the leader, the supported protocols, the number of members that wait to join and their
    memory always agree with `by_id` and `pending`. So members are changed only by methods of this class.
    """

    __slots__ = ("awaiting_join", "by_id", "held_bytes", "leader_id", "pending", "pending_sync", "protocols", "static")

    def __init__(self, leader_id: str | None = None) -> None:
        self.by_id: dict[str, ClassicMember] = {}
        self.static: dict[str, str] = {}  # instance id -> member id
        self.leader_id = leader_id
        self.pending: dict[str, float] = {}  # member ids that were assigned and have not joined yet -> deadline
        self.protocols = SupportedProtocols()
        self.awaiting_join = 0  # members at the join barrier
        self.pending_sync: set[str] = set()  # members that have not reached the sync barrier yet
        self.held_bytes = 0  # about the memory of members and pending members, without assignments

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[ClassicMember]:
        return iter(self.by_id.values())

    # --- membership

    def add(self, member: ClassicMember, answer: AnswerJoin | None = None) -> None:
        """Add a member, which waits to join if it has a callback. The first member becomes the leader."""
        self.by_id[member.member_id] = member
        self.held_bytes += _bytes_of(member)
        if member.group_instance_id is not None:
            self.static[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.protocols.add(member.protocols)
        self.await_join(member, answer)
        self._stop_expecting(member.member_id)

    def expect(self, member_id: str, deadline_ms: float) -> None:
        """Add a pending member, which has to join with this id before the deadline."""
        self.pending[member_id] = deadline_ms
        self.held_bytes += MEMBER_BYTES + len(member_id)

    def _stop_expecting(self, member_id: str) -> None:
        if self.pending.pop(member_id, None) is not None:
            self.held_bytes -= MEMBER_BYTES + len(member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending member. Requests it waits for fail with UNKNOWN_MEMBER_ID."""
        member = self.by_id.pop(member_id, None)
        if member is not None:
            self.held_bytes -= _bytes_of(member)
            self.protocols.remove(member.protocols)
            self.answer_join(member, join_failed(ErrorCode.UNKNOWN_MEMBER_ID))
            self.answer_sync(member, sync_failed(ErrorCode.UNKNOWN_MEMBER_ID))
            if member.group_instance_id is not None:
                self.static.pop(member.group_instance_id, None)
        if member_id == self.leader_id:
            self.leader_id = next(iter(self.by_id), None)
        self._stop_expecting(member_id)
        self.pending_sync.discard(member_id)

    def update(self, member: ClassicMember, request: Join, answer: AnswerJoin) -> None:
        """Update a member that joins again; it waits to join from now on."""
        self.set_protocols(member, request.protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
        self.await_join(member, answer)

    def set_protocols(
        self, member: ClassicMember, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        """Replace the protocols and timeouts of a member."""
        self.protocols.remove(member.protocols)
        self.held_bytes += protocols_bytes(protocols) - protocols_bytes(member.protocols)
        member.protocols = protocols
        self.protocols.add(protocols)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def rename(self, old: ClassicMember, new_id: str) -> ClassicMember:
        """Replace a static member by a copy with a new id. Requests that wait under the old id are fenced."""
        del self.by_id[old.member_id]
        self.answer_join(old, join_failed(ErrorCode.FENCED_INSTANCE_ID, old.member_id))
        self.answer_sync(old, sync_failed(ErrorCode.FENCED_INSTANCE_ID))
        member = self.by_id[new_id] = old.renamed(new_id)
        self.held_bytes += len(new_id) - len(old.member_id)
        if old.member_id in self.pending_sync:
            self.pending_sync.remove(old.member_id)
            self.pending_sync.add(new_id)
        if self.leader_id == old.member_id:
            self.leader_id = new_id
        if old.group_instance_id is not None:
            self.static[old.group_instance_id] = new_id
        return member

    def error(self, member_id: str, group_instance_id: str | None) -> ErrorCode | None:
        """Return the error for a request with these ids, or None if they are those of a member."""
        if group_instance_id is not None:
            known_id = self.static.get(group_instance_id)
            if known_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return None if member_id in self.by_id else ErrorCode.UNKNOWN_MEMBER_ID

    # --- the group as a whole

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of any member."""
        return max((member.rebalance_timeout_ms for member in self), default=0)

    @property
    def have_all_joined(self) -> bool:
        """Whether all members wait at the join barrier and no pending member is missing."""
        return len(self.by_id) == self.awaiting_join and not self.pending

    def select_protocol(self) -> str:
        """Return the protocol of the next generation. Needs at least one member."""
        return self.protocols.select(self.by_id.values())

    def elect_joined_leader(self) -> bool:
        """Make a member that waits to join the leader, unless the leader does. Returns False if no member waits."""
        if self.leader_id is None:
            return False
        if self.by_id[self.leader_id].answer_join is None:
            joined = next((member.member_id for member in self if member.answer_join is not None), None)
            if joined is None:
                return False
            self.leader_id = joined
        return True

    # --- callbacks of waiting members

    def await_join(self, member: ClassicMember, answer: AnswerJoin | None) -> None:
        """Set the callback of a member that waits to join. A request that waits already fails: its client gave up."""
        self.answer_join(member, join_failed(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        self.awaiting_join += answer is not None
        member.answer_join = answer

    def answer_join(self, member: ClassicMember, response: JoinGroupResponse) -> None:
        """Answer the JoinGroup that a member waits for, if any."""
        answer, member.answer_join = member.answer_join, None
        if answer is not None:
            self.awaiting_join -= 1
            answer(response)

    def answer_sync(self, member: ClassicMember, response: SyncGroupResponse) -> bool:
        """Answer the SyncGroup that a member waits for. Returns False if it waits for none."""
        answer, member.answer_sync = member.answer_sync, None
        if answer is None:
            return False
        answer(response)
        return True

    def fail_all(self, code: ErrorCode) -> None:
        """Answer all requests that wait with an error."""
        for member in self:
            self.answer_join(member, join_failed(code, member.member_id))
            self.answer_sync(member, sync_failed(code))


def protocols_bytes(protocols: Protocols) -> int:
    return sum(len(name) + len(metadata) for name, metadata in protocols)


def _bytes_of(member: ClassicMember) -> int:
    return MEMBER_BYTES + len(member.member_id) + len(member.client_id) + protocols_bytes(member.protocols)
