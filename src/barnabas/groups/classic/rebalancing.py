"""The rebalance of a classic group: all members join again, and those that did form the next generation.

The join barrier opens when all members wait to join or the join phase is over. Members that did not join by then are
removed. Then all members have to reach the sync barrier (`syncing`), where they wait for the leader's assignments.
"""

from __future__ import annotations

import logging

from barnabas.groups.classic.group import ClassicGroup, JoinTimer
from barnabas.groups.classic.member import NEVER, NO_ASSIGNMENT
from barnabas.groups.classic.records import group_record
from barnabas.groups.classic.requests import Moment, Write, sync_failed
from barnabas.groups.classic.state import COMPLETING, EMPTY, FOLLOWS, PREPARING
from barnabas.wire import ErrorCode
from barnabas.wire.messages.join_group import JoinGroupResponse

_log = logging.getLogger(__name__)

MAX_GENERATION = 2**31 - 1
MIN_GENERATION = -(2**31)


def rebalance_or_complete(group: ClassicGroup, now: Moment) -> Write | None:
    """Start a rebalance if the state allows it; otherwise complete the one in progress if all have joined."""
    if PREPARING in FOLLOWS[group.state]:
        return prepare_rebalance(group, now)
    return complete_if_all_joined(group, now)


def prepare_rebalance(group: ClassicGroup, now: Moment) -> Write | None:
    """Start a join phase: all members have to join again. The first one of a group waits longer, for more members."""
    if group.state is COMPLETING:
        fail_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS, now)
    group.members.pending_sync.clear()
    group.sync_deadline_ms = NEVER
    is_first = group.state is EMPTY
    group.enter(PREPARING, now)
    if is_first:
        delay_ms = group.settings.initial_rebalance_delay_ms
        remaining_ms = max(group.members.rebalance_timeout_ms - delay_ms, 0)
        group.join_timer = JoinTimer(group.due(now.steady_ms + delay_ms), delay_ms, remaining_ms)
        return None
    if group.members.have_all_joined:
        return complete_join(group, now)
    _start_join_timer(group, now)
    return None


def fail_syncs(group: ClassicGroup, code: ErrorCode, now: Moment) -> None:
    """Drop the assignments of all members. A SyncGroup that waits fails with the error."""
    for member in group.members:
        member.assignment = NO_ASSIGNMENT
        if group.members.answer_sync(member, sync_failed(code)):
            group.reset_session(member, now.steady_ms)


def _start_join_timer(group: ClassicGroup, now: Moment) -> None:
    group.join_timer = JoinTimer(group.due(now.steady_ms + group.members.rebalance_timeout_ms))


def complete_if_all_joined(group: ClassicGroup, now: Moment) -> Write | None:
    """Complete the join phase if all members have joined, unless it is the first one of the group."""
    if group.state is PREPARING and group.previous_state is not EMPTY and group.members.have_all_joined:
        return complete_join(group, now)
    return None


def join_timer_expired(group: ClassicGroup, timer: JoinTimer, now: Moment) -> Write | None:
    """Complete the join phase. The first one of a group is extended if members were added meanwhile."""
    if timer.remaining_ms and group.new_member_added:
        group.new_member_added = False
        delay_ms = min(group.settings.initial_rebalance_delay_ms, timer.remaining_ms)
        remaining_ms = max(timer.remaining_ms - timer.delay_ms, 0)
        group.join_timer = JoinTimer(group.due(now.steady_ms + delay_ms), delay_ms, remaining_ms)
        return None
    return complete_join(group, now)


def complete_join(group: ClassicGroup, now: Moment) -> Write | None:
    """End the join phase: the members that joined form the next generation."""
    group.join_timer = None
    members = group.members
    for member_id in [m.member_id for m in members if m.answer_join is None and m.group_instance_id is None]:
        members.remove(member_id)
    if not members.elect_joined_leader() and members:
        # Only static members are left, none of which joined. They are kept until their sessions expire.
        _start_join_timer(group, now)
        return None
    _next_generation(group, now)
    if group.state is EMPTY:
        return Write([group_record(group.group_id, group.stored())])
    for member in members:
        members.answer_join(member, joined(group, member.member_id))
        group.reset_session(member, now.steady_ms)
        member.is_new = False
        members.pending_sync.add(member.member_id)
    group.sync_deadline_ms = group.due(now.steady_ms + members.rebalance_timeout_ms)
    return None


def _next_generation(group: ClassicGroup, now: Moment) -> None:
    group.generation = group.generation + 1 if group.generation < MAX_GENERATION else MIN_GENERATION
    group.select_protocol()
    group.enter(COMPLETING if group.members else EMPTY, now)
    group.members.pending_sync.clear()
    _log.info("group %s: generation %d with %d members", group.group_id, group.generation, len(group.members))


def joined(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """Return the response for a member of the generation. Only the leader's lists the members."""
    members = []
    if member_id == group.members.leader_id:
        members = [
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(group.protocol_name),
            )
            for member in group.members
        ]
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.members.leader_id or "",
        member_id=member_id,
        members=members,
    )
