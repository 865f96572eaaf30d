"""A member of a classic group while it lives, and what is asked of and answered to it."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import NamedTuple

from barnabas.groups.image import MemberMetadata
from barnabas.wire import ErrorCode
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupResponse

UNKNOWN_MEMBER_ID = ""
NO_ASSIGNMENT = b""
NEVER = float("inf")

Protocols = tuple[tuple[str, bytes], ...]
AnswerJoin = Callable[[JoinGroupResponse], None]
AnswerSync = Callable[[SyncGroupResponse], None]


class Moment(NamedTuple):
    """Now, twice: as records carry it, and on a clock that nobody sets."""

    now_ms: int
    steady_ms: float


class Join(NamedTuple):
    """What a JoinGroup asks for."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    protocol_type: str
    protocols: Protocols
    rebalance_timeout_ms: int
    session_timeout_ms: int
    needs_known_member_id: bool = False  # it is new, and is to join again with the id that it is told
    knows_skip_assignment: bool = False


class Sync(NamedTuple):
    """What a SyncGroup asks for."""

    member_id: str
    group_instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]


class Leaver(NamedTuple):
    """One that a LeaveGroup takes out: by its member id, or by its instance id alone."""

    member_id: str
    group_instance_id: str | None


class ClassicMember:
    """A member; its callbacks are there while it waits for the answer to a JoinGroup or a SyncGroup."""

    __slots__ = (
        "answer_join",
        "answer_sync",
        "assignment",
        "client_host",
        "client_id",
        "deadline_ms",
        "group_instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = NO_ASSIGNMENT,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.answer_join: AnswerJoin | None = None
        self.answer_sync: AnswerSync | None = None
        self.is_new = False  # it does not know its member id yet, and cannot send heartbeats
        self.deadline_ms: float = NEVER

    @property
    def may_expire(self) -> bool:
        """Who waits for a rebalance need not send heartbeats."""
        return self.is_new or (self.answer_join is None and self.answer_sync is None)

    def metadata(self, protocol_name: str | None) -> bytes:
        return next(metadata for name, metadata in self.protocols if name == protocol_name)

    def vote(self, candidates: Container[str]) -> str:
        """The first of its protocols that all members have."""
        return next(name for name, _ in self.protocols if name in candidates)

    def stored(self, protocol_name: str | None, assignment: bytes) -> MemberMetadata:
        return MemberMetadata(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol_name),
            assignment,
        )


def restored(member: MemberMetadata, protocol_name: str | None) -> ClassicMember:
    """A member as it was written: it has the one protocol that its group had."""
    return ClassicMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.session_timeout_ms,
        ((protocol_name or "", member.subscription),),
        member.assignment,
    )


def join_failed(code: ErrorCode, member_id: str = UNKNOWN_MEMBER_ID) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id)


def sync_failed(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)
