"""JoinGroup: members join a classic group, join again, or replace their static instance.

A join that does not change the group is answered at once. Every other join waits at the join barrier (`rebalancing`).
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.member import ClassicMember
from barnabas.groups.classic.rebalancing import (
    complete_if_all_joined,
    joined,
    prepare_rebalance,
    rebalance_or_complete,
)
from barnabas.groups.classic.records import group_record
from barnabas.groups.classic.requests import (
    UNKNOWN_MEMBER_ID,
    AnswerJoin,
    Join,
    Moment,
    Protocols,
    Write,
    join_failed,
)
from barnabas.groups.classic.state import COMPLETING, DEAD, EMPTY, PREPARING, STABLE
from barnabas.replicated.errors import response_error
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.join_group import JoinGroupResponse


def join(
    group: ClassicGroup, request: Join, make_member_id: Callable[[], str], now: Moment, answer: AnswerJoin
) -> Write | None:
    """Handle a JoinGroup. `answer` is called with the response, now or when the rebalance completes."""
    member_id = request.member_id
    if not _accepts(group, member_id):
        group.members.remove(member_id)
        answer(join_failed(ErrorCode.GROUP_MAX_SIZE_REACHED))
    elif group.state is DEAD:
        answer(join_failed(ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id))
    elif not _supports(group, request.protocol_type, request.protocols):
        answer(join_failed(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id))
    elif member_id == UNKNOWN_MEMBER_ID:
        return _join_new(group, request, make_member_id(), now, answer)
    elif member_id in group.members.pending:
        if request.group_instance_id is not None:  # a pending member is never a static one
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return _add_and_rebalance(group, request, member_id, now, answer)
    else:
        return _join_again(group, request, now, answer)
    return None


def _accepts(group: ClassicGroup, member_id: str) -> bool:
    """Whether the group has room for this member."""
    members = group.members
    if group.state is PREPARING:
        # Waiting members are counted, not all members: the group may exceed a limit that was lowered.
        member = members.by_id.get(member_id)
        is_waiting = member is not None and member.answer_join is not None
        return is_waiting or members.awaiting_join < group.settings.max_size
    if group.state in (COMPLETING, STABLE):
        return member_id in members.by_id or len(members) < group.settings.max_size
    return True


def _supports(group: ClassicGroup, protocol_type: str, protocols: Protocols) -> bool:
    """Whether the protocol type is the group's and all members support one of the protocols."""
    if group.state is EMPTY:
        return bool(protocol_type and protocols)
    members = group.members
    return protocol_type == group.protocol_type and members.protocols.has_common(protocols, len(members))


def _join_new(group: ClassicGroup, request: Join, member_id: str, now: Moment, answer: AnswerJoin) -> Write | None:
    if request.group_instance_id is not None:
        known_id = group.members.static.get(request.group_instance_id)
        if known_id is not None:
            return _replace_static(group, request, known_id, member_id, now, answer)
    elif request.needs_known_member_id:
        group.members.expect(member_id, group.due(now.steady_ms + request.session_timeout_ms))
        answer(join_failed(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        return None
    return _add_and_rebalance(group, request, member_id, now, answer)


def _join_again(group: ClassicGroup, request: Join, now: Moment, answer: AnswerJoin) -> Write | None:
    member_id = request.member_id
    error = group.members.error(member_id, request.group_instance_id)
    if error is not None:
        answer(join_failed(error, member_id))
        return None
    member = group.members.by_id[member_id]
    is_leader = member_id == group.members.leader_id
    is_same = member.protocols == request.protocols
    if group.state is EMPTY:
        answer(join_failed(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
    elif (group.state is COMPLETING and is_same) or (group.state is STABLE and is_same and not is_leader):
        # It may have missed the response. A leader of a stable group joins again to get a new assignment.
        answer(joined(group, member_id))
    else:
        group.members.update(member, request, answer)
        return rebalance_or_complete(group, now)
    return None


def _add_and_rebalance(
    group: ClassicGroup, request: Join, member_id: str, now: Moment, answer: AnswerJoin
) -> Write | None:
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
    if group.state is PREPARING and group.previous_state is EMPTY:
        group.new_member_added = True
    if not group.members:
        group.protocol_type = request.protocol_type
    group.members.add(member, answer)
    # It cannot send heartbeats before it is answered. This deadline removes it if its client gave up.
    member.deadline_ms = group.due(now.steady_ms + group.settings.new_member_join_timeout_ms)
    return rebalance_or_complete(group, now)


# --- static members


def _replace_static(
    group: ClassicGroup, request: Join, old_id: str, new_id: str, now: Moment, answer: AnswerJoin
) -> Write | None:
    """Replace the member id of a static member that joins without one. The old id is fenced; the assignment is kept."""
    old_leader = group.members.leader_id
    old = group.members.by_id[old_id]
    member = group.members.rename(old, new_id)
    group.reset_session(member, now.steady_ms)
    group.members.update(member, request, answer)
    if group.state is not STABLE:
        if group.state is COMPLETING:
            # The leader may know the old member id only, and would assign to that.
            return prepare_rebalance(group, now)
        return complete_if_all_joined(group, now)
    if group.members.select_protocol() != group.protocol_name:
        return rebalance_or_complete(group, now)

    def done(error: KafkaError | None, later: Moment) -> None:
        if group.state is not STABLE or group.members.by_id.get(new_id) is not member:
            return  # the member waits in a rebalance that started meanwhile
        if error is not None:
            _take_back(group, member, old, later, old_leader, response_error(error.code))
            return
        response = joined(group, new_id)
        if request.knows_skip_assignment:
            response.skip_assignment = new_id == group.members.leader_id
        else:
            # Older clients assign again when the response says that they lead.
            response.leader, response.members = old_leader or "", []
        group.members.answer_join(member, response)

    return Write([group_record(group.group_id, group.stored())], done)


def _take_back(
    group: ClassicGroup,
    member: ClassicMember,
    old: ClassicMember,
    now: Moment,
    leader_id: str | None,
    error: ErrorCode,
) -> None:
    """Undo the replacement of a static member whose new id could not be written."""
    response = JoinGroupResponse(
        error_code=error,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=leader_id or "",
    )
    group.members.answer_join(member, response)
    group.members.set_protocols(member, old.protocols, old.rebalance_timeout_ms, old.session_timeout_ms)
    group.reset_session(group.members.rename(member, old.member_id), now.steady_ms)
