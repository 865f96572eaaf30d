"""SyncGroup: members wait at the sync barrier until the leader's assignments are committed, and then get theirs."""

from __future__ import annotations

from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.member import NEVER, NO_ASSIGNMENT, ClassicMember
from barnabas.groups.classic.rebalancing import fail_syncs, rebalance_or_complete
from barnabas.groups.classic.records import group_record
from barnabas.groups.classic.requests import AnswerSync, Moment, Sync, Write, sync_failed
from barnabas.groups.classic.state import COMPLETING, DEAD, EMPTY, PREPARING, STABLE
from barnabas.replicated.errors import response_error
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.sync_group import SyncGroupResponse


def sync(group: ClassicGroup, request: Sync, now: Moment, answer: AnswerSync) -> Write | None:
    """Handle a SyncGroup. `answer` is called with the response, now or when the assignments are committed."""
    error = _error(group, request)
    if error is not None:
        answer(sync_failed(error))
        return None
    members = group.members
    member = members.by_id[request.member_id]
    members.pending_sync.discard(request.member_id)
    if not members.pending_sync:
        group.sync_deadline_ms = NEVER
    if group.state is STABLE:
        answer(_synced(group, member))
        return None
    members.answer_sync(member, sync_failed(ErrorCode.REBALANCE_IN_PROGRESS))
    member.answer_sync = answer
    if request.member_id != members.leader_id:
        return None
    assignments = {member_id: request.assignments.get(member_id, NO_ASSIGNMENT) for member_id in members.by_id}
    generation = group.generation

    def done(failure: KafkaError | None, later: Moment) -> None:
        if group.state is not COMPLETING or group.generation != generation:
            return  # another rebalance started meanwhile
        if failure is not None:
            fail_syncs(group, response_error(failure.code), later)
            rebalance_or_complete(group, later)
            return
        for assigned in members:
            assigned.assignment = assignments.get(assigned.member_id, NO_ASSIGNMENT)
            if members.answer_sync(assigned, _synced(group, assigned)):
                group.reset_session(assigned, later.steady_ms)
        group.enter(STABLE, later)

    return Write([group_record(group.group_id, group.stored(assignments))], done)


def _error(group: ClassicGroup, request: Sync) -> ErrorCode | None:
    if group.state is EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state is DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = group.members.error(request.member_id, request.group_instance_id)
    if error is not None:
        return error
    if request.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differ(request.protocol_type, group.protocol_type) or _differ(request.protocol_name, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is PREPARING else None


def _differ(requested: str | None, known: str | None) -> bool:
    return requested is not None and known is not None and requested != known


def _synced(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )
