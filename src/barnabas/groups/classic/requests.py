"""The requests of members of classic groups as values, error responses, and records that a group wants written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.replicated.decision import Records
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupResponse

UNKNOWN_MEMBER_ID = ""

Protocols = tuple[tuple[str, bytes], ...]
"""Protocols by preference: name and metadata of each."""

AnswerJoin = Callable[[JoinGroupResponse], None]
AnswerSync = Callable[[SyncGroupResponse], None]


class Moment(NamedTuple):
    """The current time on two clocks: wall clock time for records, monotonic time for deadlines."""

    now_ms: int
    steady_ms: float


class Join(NamedTuple):
    """A JoinGroup request."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    protocol_type: str
    protocols: Protocols
    rebalance_timeout_ms: int
    session_timeout_ms: int
    needs_known_member_id: bool = False  # a new member gets a member id and has to join again with it
    knows_skip_assignment: bool = False


class Sync(NamedTuple):
    """A SyncGroup request."""

    member_id: str
    group_instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]


class Leaver(NamedTuple):
    """One member of a LeaveGroup request: a member id, or an instance id alone."""

    member_id: str
    group_instance_id: str | None


class Write(NamedTuple):
    """Records that a group wants in the log, and a callback for the commit or the failure."""

    records: Records
    done: Callable[[KafkaError | None, Moment], None] | None = None


def join_failed(code: ErrorCode, member_id: str = UNKNOWN_MEMBER_ID) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id)


def sync_failed(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)
