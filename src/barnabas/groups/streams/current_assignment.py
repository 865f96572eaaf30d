"""Reconciliation: the way of a member to its target, one step per heartbeat.

A member first gives up tasks that are not in its target, and confirms that by no longer reporting them as owned. Then it
moves to the epoch of the target and gets the free tasks of it. An active task is free when nobody has it, and no other
task of the same state is in the member's process. A standby is free when its process has no task of the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.groups.streams.group import Member, MemberState, StreamsGroup
from barnabas.groups.streams.tasks import NOTHING_OWNED, AssignedTasks, TaskEpochs, Tasks, TaskSets, have_common
from barnabas.wire import ErrorCode, KafkaError

IsTaken = Callable[[str, int], bool]


def reconcile(group: StreamsGroup, member: Member, target_epoch: int, target: Tasks, owned: Tasks | None) -> Member:
    """Return the member after its next step, or unchanged. `owned` is None if it did not report its tasks.

    Raises FENCED_MEMBER_EPOCH if its state was written by a later version and it still owns tasks.
    """
    if member.state is MemberState.UNKNOWN:
        if owned is None or not owned.is_empty:
            message = (
                "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin."
            )
            raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, message)
        return _next(group, member, target_epoch, target_epoch, target, owned)
    if member.state is MemberState.STABLE and member.member_epoch == target_epoch:
        return member
    if member.state is MemberState.UNREVOKED_TASKS:
        if owned is None or have_common(owned, member.pending_revocation):
            return member
        return _next(group, member, member.member_epoch + 1, target_epoch, target, owned)
    return _next(group, member, member.member_epoch, target_epoch, target, owned)


class _Difference(NamedTuple):
    kept: TaskEpochs
    revoked: TaskEpochs
    gained: TaskEpochs
    has_unreleased: bool


def _next(
    group: StreamsGroup, member: Member, member_epoch: int, target_epoch: int, target: Tasks, owned: Tasks | None
) -> Member:
    process_id = member.process_id

    def is_in_process(subtopology_id: str, partition: int) -> bool:
        task = (subtopology_id, partition)
        return process_id in group.standby_processes.get(task, ()) or process_id in group.warmup_processes.get(task, ())

    def is_active_taken(subtopology_id: str, partition: int) -> bool:
        return (subtopology_id, partition) in group.active_processes or is_in_process(subtopology_id, partition)

    def is_standby_taken(subtopology_id: str, partition: int) -> bool:
        is_active = group.active_processes.get((subtopology_id, partition)) == process_id
        return is_active or is_in_process(subtopology_id, partition)

    assigned = member.assigned
    active = _difference(assigned.active, target.active, target_epoch, is_active_taken)
    standby = _difference(_with_epoch(assigned.standby), target.standby, 0, is_standby_taken)
    warmup = _difference(_with_epoch(assigned.warmup), target.warmup, 0, is_standby_taken)
    kept = AssignedTasks(active.kept, _sets(standby.kept), _sets(warmup.kept))
    revoked = AssignedTasks(active.revoked, _sets(standby.revoked), _sets(warmup.revoked))
    if not revoked.is_empty and (owned is None or have_common(owned, revoked)):
        return member._replace(
            state=MemberState.UNREVOKED_TASKS,
            member_epoch=member_epoch,
            previous_member_epoch=member.member_epoch,
            assigned=kept,
            pending_revocation=revoked,
        )
    has_unreleased = active.has_unreleased or standby.has_unreleased or warmup.has_unreleased
    return member._replace(
        state=MemberState.UNRELEASED_TASKS if has_unreleased else MemberState.STABLE,
        member_epoch=target_epoch,
        previous_member_epoch=member.member_epoch,
        assigned=AssignedTasks(
            _merged(active.kept, active.gained),
            _sets(_merged(standby.kept, standby.gained)),
            _sets(_merged(warmup.kept, warmup.gained)),
        ),
        pending_revocation=NOTHING_OWNED,
    )


def _difference(current: TaskEpochs, target: TaskSets, epoch: int, is_taken: IsTaken) -> _Difference:
    kept: dict[str, Mapping[int, int]] = {}
    revoked: dict[str, Mapping[int, int]] = {}
    gained: dict[str, Mapping[int, int]] = {}
    has_unreleased = False
    for subtopology_id in dict.fromkeys([*target, *current]):
        has, wanted = current.get(subtopology_id, {}), target.get(subtopology_id, frozenset())
        free = {partition for partition in wanted - has.keys() if not is_taken(subtopology_id, partition)}
        has_unreleased |= len(free) < len(wanted - has.keys())
        if some := {partition: each for partition, each in has.items() if partition in wanted}:
            kept[subtopology_id] = some
        if some := {partition: each for partition, each in has.items() if partition not in wanted}:
            revoked[subtopology_id] = some
        if free:
            gained[subtopology_id] = dict.fromkeys(free, epoch)
    return _Difference(kept, revoked, gained, has_unreleased)


def _with_epoch(tasks: TaskSets) -> TaskEpochs:
    return {subtopology_id: dict.fromkeys(partitions, 0) for subtopology_id, partitions in tasks.items()}


def _sets(tasks: TaskEpochs) -> TaskSets:
    return {subtopology_id: frozenset(partitions) for subtopology_id, partitions in tasks.items()}


def _merged(some: TaskEpochs, others: TaskEpochs) -> TaskEpochs:
    return {each: {**some.get(each, {}), **others.get(each, {})} for each in dict.fromkeys([*some, *others])}
