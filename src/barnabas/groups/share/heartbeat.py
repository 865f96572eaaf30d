"""Decisions about members of share groups: heartbeats, leaving, fencing.

Pure. The steps have Kafka's order, which is the order of the records: the member, the group epoch, the target assignment,
the current assignment of the member, and the share partitions that are to be initialized. A decision pauses where a client
decides the size of the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Generic, NamedTuple, TypeVar

from barnabas.config.hash_order import text_hash
from barnabas.groups.assignors import Assignment
from barnabas.groups.consumer_decision import Asker, Timer, TimerChange
from barnabas.groups.consumer_group import JOIN_EPOCH, LEAVE_EPOCH, MemberState
from barnabas.groups.hash_tables import HashTable, name_order, room_for, timeline_order, uuid_hash
from barnabas.groups.image import Group, group_not_found
from barnabas.groups.share import assignor
from barnabas.groups.share.assignor import MemberSpecification, ShareSpecification
from barnabas.groups.share.group import Member, ShareGroup, subscriptions_with
from barnabas.groups.share.initialization import initialize_request, initializing_record, uninitialized
from barnabas.groups.share.records import (
    Record,
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    target_epoch_record,
    target_record,
)
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import Topics
from barnabas.replicated.decision import Result
from barnabas.share_state.settings import ShareSettings
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

R = TypeVar("R")
NOTHING: AbstractSet[int] = frozenset()
Response = ShareGroupHeartbeatResponse


class ShareSituation(NamedTuple):
    """Input of a decision beside the group and the request."""

    metadata: MetadataImage
    settings: ShareSettings
    now_ms: int
    metadata_hash: Callable[[Iterable[str]], int]  # returns the hash of topics, given by name
    is_metadata_checked: bool = False  # the hash of the group was already compared with this metadata
    is_settled: bool = False  # an earlier heartbeat found nothing to initialize and nothing that waits for assignment
    retries_initialization: bool = False  # partitions are initializing for too long


class Outcome(NamedTuple, Generic[R]):
    """The response to a request, and the tasks of the coordinator beside writing the records."""

    response: R
    timers: Sequence[TimerChange] = ()
    checked_epoch: int | None = None  # group epoch in which the hash was compared with the metadata
    settled: ShareGroup | None = None  # the group as it was found settled with this metadata
    initialize: InitializeShareGroupStateRequest | None = None  # for the share coordinator, after the commit


Decided = Result[Outcome[R]]


def check_request(request: ShareGroupHeartbeatRequest) -> None:
    """Check the fields of a request. Raises INVALID_REQUEST."""
    _refuse(not request.member_id.strip(), "MemberId can't be empty.")
    _refuse(not request.group_id.strip(), "GroupId can't be empty.")
    _refuse(request.rack_id is not None and not request.rack_id.strip(), "RackId can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        _refuse(not request.subscribed_topic_names, "SubscribedTopicNames must be set in first request.")
    _refuse(request.member_epoch < LEAVE_EPOCH, "MemberEpoch is invalid.")


def _refuse(is_wrong: bool, message: str) -> None:
    if is_wrong:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def not_a_share_group(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")


def share_group(known: Group | None, group_id: str) -> ShareGroup:
    """Return a group that must be a share group. Raises GROUP_ID_NOT_FOUND."""
    if known is None:
        raise group_not_found(group_id)
    if not isinstance(known, ShareGroup):
        raise not_a_share_group(group_id)
    return known


def is_leaving(request: ShareGroupHeartbeatRequest) -> bool:
    return request.member_epoch == LEAVE_EPOCH


# --- heartbeats


def heartbeat(
    known: Group | None, request: ShareGroupHeartbeatRequest, asker: Asker, situation: ShareSituation
) -> Slices[Decided[Response]]:
    """Handle the heartbeat of a member that joins or stays."""
    is_joining = request.member_epoch == JOIN_EPOCH
    group, settings, topics = _group_to_join(known, request), situation.settings, situation.metadata.topics
    known_member = group.members.get(request.member_id)
    if known_member is None and len(group.members) >= settings.max_size:
        message = f"The share group has reached its maximum capacity of {settings.max_size} members."
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
    member = Member(request.member_id) if known_member is None and is_joining else group.member(request.member_id)
    _check_epoch(member, request.member_epoch)
    updated = _updated(member, request, asker)
    records: list[Record] = []
    if updated != member:
        records.append(member_record(group.group_id, updated))
    # The group epoch.
    bump = updated.subscribed_topic_names != member.subscribed_topic_names
    is_assigned = group.assignment_epoch >= group.group_epoch
    if is_assigned and not situation.is_settled:
        bump |= yield from _has_unassigned(group)
    subscriptions = subscriptions_with(group, known_member, updated)
    group_epoch, checked_epoch = group.group_epoch, None
    if bump or not situation.is_metadata_checked:
        metadata_hash = situation.metadata_hash(subscriptions)
        bump |= metadata_hash != group.metadata_hash
        if bump:
            group_epoch += 1
            records.append(epoch_record(group.group_id, group_epoch, metadata_hash))
        checked_epoch = group_epoch
    # The target, and the partitions of the member.
    target_epoch, target = group.assignment_epoch, group.target(updated.member_id)
    if target_epoch < group_epoch and _may_assign(group, situation):
        member_count = len(group.members) + (known_member is None)
        is_homogeneous = all(count == member_count for count in subscriptions.values())
        targets = yield from _assign(group, updated, topics, is_homogeneous=is_homogeneous)
        records += _target_records(group, targets, group_epoch, situation.now_ms)
        target_epoch, target = group_epoch, targets[updated.member_id]
    reconciled = _reconciled(updated, target_epoch, target, topics, force=bump)
    if not _is_same_member(reconciled, updated):
        records.append(current_record(group.group_id, reconciled))
    # Share partitions without a state.
    initialize, settled = None, None
    if not situation.is_settled or bump:
        names = name_order(sorted(subscriptions))
        new = yield from uninitialized(group, names, topics, retries=situation.retries_initialization)
        if new:
            records.append(initializing_record(group, new, topics))
            initialize = initialize_request(group.group_id, group_epoch, new)
        elif is_assigned and not bump and not group.is_initializing:
            settled = group
    response = Response(
        member_id=reconciled.member_id,
        member_epoch=reconciled.member_epoch,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
    )
    if is_joining or request.subscribed_topic_names is not None or not _same(reconciled.assigned, member.assigned):
        response.assignment = _assignment(reconciled.assigned)
    timers = [TimerChange(reconciled.member_id, Timer.SESSION, settings.session_timeout_ms)]
    return Result(records, Outcome(response, timers, checked_epoch, settled, initialize))


def _group_to_join(known: Group | None, request: ShareGroupHeartbeatRequest) -> ShareGroup:
    if known is not None:
        return share_group(known, request.group_id)
    if request.member_epoch != JOIN_EPOCH:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {request.group_id} not found.")
    return ShareGroup(request.group_id)


def _check_epoch(member: Member, epoch: int) -> None:
    """Check the member epoch of a request: the current one, or the one before if the last response was lost."""
    if epoch in (JOIN_EPOCH, member.member_epoch):
        return
    known = f"the one known by the group coordinator ({member.member_epoch})"
    if epoch > member.member_epoch:
        what = f"has a greater member epoch ({epoch}) than {known}"
    elif epoch != member.previous_member_epoch:
        what = (
            f"has a smaller member epoch ({epoch}) than {known}, and it does not match the previous member epoch "
            f"({member.previous_member_epoch})"
        )
    else:
        return
    message = f"The share group member {what}. The member must abandon all its partitions and rejoin."
    raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _updated(member: Member, request: ShareGroupHeartbeatRequest, asker: Asker) -> Member:
    """Return the member with the fields of a request. Fields that the request leaves out stay unchanged."""
    names = request.subscribed_topic_names
    return member._replace(
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
        client_id=asker.client_id,
        client_host=asker.client_host,
    )


def _has_unassigned(group: ShareGroup) -> Slices[bool]:
    """Return whether the target has other partitions of a subscribed topic than those that are initialized."""
    if group.is_empty or not group.initialized or not group.subscriptions:
        return False
    assigned: dict[Uuid, set[int]] = {}
    for target in group.target_assignment.values():
        yield
        for topic_id, partitions in target.items():
            assigned.setdefault(topic_id, set()).update(partitions)
    return any(
        topic.name in group.subscriptions and topic.partitions != assigned.get(topic_id, NOTHING)
        for topic_id, topic in group.initialized.items()
    )


# --- the target assignment, and the partitions of a member


def _may_assign(group: ShareGroup, situation: ShareSituation) -> bool:
    """Whether the minimum interval since the last assignment is over."""
    last_ms, interval_ms = group.assignment_timestamp_ms, situation.settings.assignment_interval_ms
    return not last_ms or not interval_ms or situation.now_ms >= last_ms + interval_ms


def _assign(
    group: ShareGroup, updated: Member, topics: Topics, *, is_homogeneous: bool
) -> Slices[dict[str, Assignment]]:
    """Return the new target of every member, in the order of Kafka's table."""
    table = HashTable(text_hash, members=timeline_order(group.members))
    table.add(updated.member_id)
    known_ids: dict[frozenset[str], Sequence[Uuid]] = {}
    members = {}
    for member_id in table:
        yield
        names = (updated if member_id == updated.member_id else group.members[member_id]).subscribed_topic_names
        if names not in known_ids:
            known_ids[names] = [topics.ids[name] for name in name_order(sorted(names)) if name in topics.ids]
        members[member_id] = MemberSpecification(len(names), known_ids[names], group.target(member_id))
    initialized = group.initialized if group.state_partitions is not None else {}

    def partitions(topic_id: Uuid) -> Sequence[int]:
        count, known = len(topics.by_id[topic_id].partitions), initialized.get(topic_id)
        return [] if known is None else [index for index in range(count) if index in known.partitions]

    found = yield from assignor.assign(ShareSpecification(members, is_homogeneous, partitions))
    return {member_id: found.get(member_id, {}) for member_id in members}


def _target_records(
    group: ShareGroup, targets: Mapping[str, Assignment], group_epoch: int, now_ms: int
) -> list[Record]:
    """Return the records of changed targets, and of the epoch."""
    records = []
    for member_id, target in targets.items():
        before = group.target_assignment.get(member_id)
        if before is None or not _same(before, target):
            records.append(target_record(group.group_id, member_id, target))
    records.append(target_epoch_record(group.group_id, group_epoch, now_ms))
    return records


def _reconciled(member: Member, target_epoch: int, target: Assignment, topics: Topics, *, force: bool) -> Member:
    """Return the member with its target: nothing is revoked first, because partitions are shared.

    `force` filters the target again by what the member subscribes to.
    """
    if member.is_reconciled_to(target_epoch) and not force:
        return member
    names = member.subscribed_topic_names
    gone = {each for each in target if each not in topics.by_id or topics.by_id[each].name not in names}
    assigned = target
    if gone:  # Kafka takes them out of a copy, which may have another order
        order = HashTable(uuid_hash, room_for(len(target)), target)
        assigned = {topic_id: target[topic_id] for topic_id in order if topic_id not in gone}
    changed = member._replace(assigned=assigned)
    if member.member_epoch == target_epoch:
        return changed
    return changed._replace(
        state=MemberState.STABLE, member_epoch=target_epoch, previous_member_epoch=member.member_epoch
    )


def _is_same_member(before: Member, after: Member) -> bool:
    return before._replace(assigned={}) == after._replace(assigned={}) and _same(before.assigned, after.assigned)


def _same(before: Assignment, after: Assignment) -> bool:
    return before.keys() == after.keys() and all(set(before[topic]) == set(after[topic]) for topic in before)


def _assignment(assigned: Assignment) -> ShareGroupHeartbeatResponse.Assignment:
    return Response.Assignment(
        topic_partitions=[
            Response.TopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )


# --- leaving


def leave(known: Group | None, request: ShareGroupHeartbeatRequest, situation: ShareSituation) -> Decided[Response]:
    """Handle the heartbeat of a member that leaves."""
    group = share_group(known, request.group_id)
    response = Response(member_id=request.member_id, member_epoch=request.member_epoch)
    return fence(group, group.member(request.member_id), response, situation)


def fence(group: ShareGroup, member: Member, response: R, situation: ShareSituation) -> Decided[R]:
    """Remove a member."""
    metadata_hash = situation.metadata_hash(subscriptions_with(group, member, None))
    records = [
        *member_tombstones(group.group_id, member.member_id),
        epoch_record(group.group_id, group.group_epoch + 1, metadata_hash),
    ]
    return Result(records, Outcome(response, [TimerChange(member.member_id, Timer.SESSION)]))
