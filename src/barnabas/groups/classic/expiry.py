"""Deadlines of a classic group: sessions, pending members, the sync barrier and the join phase."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.member import NEVER, ClassicMember
from barnabas.groups.classic.rebalancing import (
    complete_join,
    join_timer_expired,
    prepare_rebalance,
    rebalance_or_complete,
)
from barnabas.groups.classic.requests import Moment, Write
from barnabas.groups.classic.state import COMPLETING, PREPARING, STABLE

_log = logging.getLogger(__name__)


def tick(group: ClassicGroup, now: Moment) -> list[Write]:
    """Handle all deadlines that have passed, and set `wake_ms` to the next one."""
    writes = [write for write in _expire_due(group, now) if write is not None]
    deadlines = [member.deadline_ms for member in group.members]
    deadlines += group.members.pending.values()
    if group.join_timer is not None:
        deadlines.append(group.join_timer.deadline_ms)
    group.wake_ms = min(*deadlines, group.sync_deadline_ms, NEVER)
    return writes


def _expire_due(group: ClassicGroup, now: Moment) -> Iterator[Write | None]:
    steady_ms = now.steady_ms
    for member_id in [m for m, deadline_ms in group.members.pending.items() if deadline_ms <= steady_ms]:
        group.members.remove(member_id)
        yield _complete_if_waiting(group, now)
    for member in [m for m in group.members if m.deadline_ms <= steady_ms]:
        yield _expire_session(group, member, now)
    if group.sync_deadline_ms <= steady_ms:
        group.sync_deadline_ms = NEVER
        yield _expire_sync(group, now)
    timer = group.join_timer
    if timer is not None and timer.deadline_ms <= steady_ms:
        group.join_timer = None
        yield join_timer_expired(group, timer, now)


def _complete_if_waiting(group: ClassicGroup, now: Moment) -> Write | None:
    """Complete a join phase that waited only for members that were removed."""
    if group.state is PREPARING and group.members.have_all_joined:
        return complete_join(group, now)
    return None


def _expire_session(group: ClassicGroup, member: ClassicMember, now: Moment) -> Write | None:
    if group.members.by_id.get(member.member_id) is not member or member.deadline_ms > now.steady_ms:
        return None
    if not member.may_expire:
        member.deadline_ms = NEVER  # the response it waits for starts a new session
        return None
    _log.info("group %s: the session of member %s expired", group.group_id, member.member_id)
    group.members.remove(member.member_id)
    if group.state in (STABLE, COMPLETING):
        return rebalance_or_complete(group, now)
    return _complete_if_waiting(group, now)


def _expire_sync(group: ClassicGroup, now: Moment) -> Write | None:
    late = list(group.members.pending_sync)
    if group.state not in (COMPLETING, STABLE) or not late:
        return None
    _log.info("group %s: %d members did not sync in time", group.group_id, len(late))
    for member_id in late:
        group.members.remove(member_id)
    return prepare_rebalance(group, now)
