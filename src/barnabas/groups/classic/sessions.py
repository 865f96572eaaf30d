"""Sessions of members of a classic group: heartbeats and commits keep them alive, LeaveGroup ends them."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.rebalancing import complete_if_all_joined, prepare_rebalance, rebalance_or_complete
from barnabas.groups.classic.requests import UNKNOWN_MEMBER_ID, Leaver, Moment, Write
from barnabas.groups.classic.state import COMPLETING, DEAD, EMPTY, PREPARING, STABLE
from barnabas.wire import ErrorCode


def heartbeat(
    group: ClassicGroup, member_id: str, group_instance_id: str | None, generation: int, steady_ms: float
) -> ErrorCode:
    """Handle a Heartbeat and return the error code of its response."""
    if group.state is DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    member = group.members.by_id.get(member_id)
    if member is None or group_instance_id is not None:
        error = group.members.error(member_id, group_instance_id)
        if error is not None:
            return error
    if generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if member is None or group.state is EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    group.reset_session(member, steady_ms)
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is PREPARING else ErrorCode.NONE


def keep_session(group: ClassicGroup, member_id: str, steady_ms: float) -> None:
    """Restart the session of a member after a commit of offsets, which counts as a heartbeat."""
    member = group.members.by_id.get(member_id)
    if member is not None and group.state in (STABLE, PREPARING):
        group.reset_session(member, steady_ms)


def begin_sessions(group: ClassicGroup, now: Moment) -> Write | None:
    """Start the sessions of all members of a group that was just loaded. A group that is too large rebalances."""
    for member in group.members:
        group.reset_session(member, now.steady_ms)
    if len(group.members) > group.settings.max_size:
        return prepare_rebalance(group, now)
    return None


def leave(group: ClassicGroup, leavers: Iterable[Leaver], now: Moment) -> tuple[list[ErrorCode], Write | None]:
    """Remove members and return an error code for each. If one was removed, the others rebalance."""
    errors = [_leave(group, leaver) for leaver in leavers]
    if ErrorCode.NONE not in errors:
        return errors, None
    if group.state in (STABLE, COMPLETING):
        return errors, rebalance_or_complete(group, now)
    return errors, complete_if_all_joined(group, now)


def _leave(group: ClassicGroup, leaver: Leaver) -> ErrorCode:
    members = group.members
    member_id, instance_id = leaver
    if member_id == UNKNOWN_MEMBER_ID:
        member_id = members.static.get(instance_id, "") if instance_id is not None else ""
        if not member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
    elif member_id not in members.pending:
        error = members.error(member_id, instance_id)
        if error is not None:
            return error
    members.remove(member_id)
    return ErrorCode.NONE
