"""One member of a classic group, with the callbacks of the requests it waits for."""

from __future__ import annotations

from collections.abc import Container

from barnabas.groups.classic.requests import AnswerJoin, AnswerSync, Protocols

NO_ASSIGNMENT = b""
NEVER = float("inf")


class ClassicMember:
    """A member. `answer_join` and `answer_sync` are set while a JoinGroup or a SyncGroup waits for its response."""

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
        self.is_new = False  # it does not know its member id yet and cannot send heartbeats
        self.deadline_ms: float = NEVER  # end of its session, on the monotonic clock

    @property
    def may_expire(self) -> bool:
        """Whether its session can expire: a member that waits for a response need not send heartbeats."""
        return self.is_new or (self.answer_join is None and self.answer_sync is None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """Return its metadata for a protocol."""
        return next(metadata for name, metadata in self.protocols if name == protocol_name)

    def vote(self, candidates: Container[str]) -> str:
        """Return the candidate protocol that it prefers."""
        return next(name for name, _ in self.protocols if name in candidates)

    def renamed(self, member_id: str) -> ClassicMember:
        """Return a copy with another member id, and without callbacks and deadline."""
        return ClassicMember(
            member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.protocols,
            self.assignment,
        )
