"""Decisions about members that speak the consumer protocol: heartbeats, leaving, fencing, regular expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from barnabas.groups import migration
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.consumer_decision import (
    Asker,
    ConsumerSituation,
    Decided,
    Draft,
    Outcome,
    RegexUpdate,
    Timer,
    TimerChange,
)
from barnabas.groups.consumer_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroup,
    Member,
    PartitionEpochs,
    SubscriptionCounts,
    without_member_in_slices,
)
from barnabas.groups.consumer_records import (
    Record,
    current_record_in_slices,
    epoch_record,
    member_tombstones,
    regular_expression_record,
    regular_expression_tombstone,
)
from barnabas.groups.consumer_settings import ConsumerSettings
from barnabas.groups.current_assignment import Owned
from barnabas.groups.hash_tables import name_order
from barnabas.groups.image import Group, group_not_found
from barnabas.groups.regular_expressions import UNRESOLVED, ResolvedRegularExpression
from barnabas.replicated.decision import Result
from barnabas.steps import Slices, result_of, stepwise
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

R = TypeVar("R")
AnyGroup = Group
NOT_GIVEN: Final = -1


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, settings: ConsumerSettings) -> None:
    """Check the fields of a request. Raises INVALID_REQUEST or UNSUPPORTED_ASSIGNOR."""
    epoch = request.member_epoch
    if version >= 1 or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH:
        _check_text(request.member_id, "MemberId")
    _check_text(request.group_id, "GroupId")
    _check_text(request.instance_id, "InstanceId")
    _check_text(request.rack_id, "RackId")
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == NOT_GIVEN:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    elif epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    assignor = request.server_assignor
    if assignor is not None and assignor not in settings.assignors:
        supported = ", ".join(name_order(settings.assignors))
        message = f"ServerAssignor {assignor} is not supported. Supported assignors: {supported}."
        raise KafkaError(ErrorCode.UNSUPPORTED_ASSIGNOR, message)


def _check_text(text: str | None, name: str) -> None:
    if text is not None and not text.strip():
        raise _invalid(f"{name} can't be empty.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


# --- heartbeats


def heartbeat(
    known: AnyGroup | None,
    request: ConsumerGroupHeartbeatRequest,
    asker: Asker,
    new_member_id: str,
    situation: ConsumerSituation,
) -> Slices[Decided[ConsumerGroupHeartbeatResponse]]:
    """Handle the heartbeat of a member that joins, stays, or changes its subscription.

    A member without an id gets `new_member_id`.
    """
    is_joining = request.member_epoch == JOIN_EPOCH
    group, records, is_upgrade = yield from _group_to_join(known, request.group_id, situation, is_joining=is_joining)
    check_size(group, request.member_id, situation.settings)
    draft = Draft(group, situation, records)
    if is_upgrade:
        draft.timers += session_timers(group)
    owned = _owned(request)
    member = _find_member(draft, request, request.member_id or new_member_id, owned, is_joining=is_joining)
    updated = _updated(member, request, asker)
    names_changed = draft.update_member(member, updated)
    regex = draft.update_regex(member, updated)
    # A new expression bumps the epoch later, when it is resolved.
    yield from draft.update_epoch(member, updated, bump=names_changed or regex is RegexUpdate.RESOLVED)
    target_epoch, target = yield from draft.update_target(member, updated)
    subscription_changed = names_changed or regex is not RegexUpdate.NO_CHANGE
    updated = yield from draft.reconcile(
        updated, target_epoch, target, owned, subscription_changed=subscription_changed
    )
    draft.timers.append(TimerChange(updated.member_id, Timer.SESSION, situation.settings.session_timeout_ms))
    response = ConsumerGroupHeartbeatResponse(
        member_id=updated.member_id,
        member_epoch=updated.member_epoch,
        heartbeat_interval_ms=situation.settings.heartbeat_interval_ms,
    )
    if is_joining or _is_full(request) or updated.assigned != member.assigned:
        response.assignment = yield from _assignment(updated.assigned)
    return draft.decided(response, is_upgrade=is_upgrade)


def _group_to_join(
    known: AnyGroup | None, group_id: str, situation: ConsumerSituation, *, is_joining: bool
) -> Slices[tuple[ConsumerGroup, Sequence[Record], bool]]:
    """Return the group, the records that make it a consumer group, and whether it had classic members."""
    if isinstance(known, ConsumerGroup):
        return known, (), False
    if known is None:
        if not is_joining:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        return ConsumerGroup(group_id), (), False
    if not is_joining or not isinstance(known, ClassicGroup):
        raise not_a_consumer_group(group_id)
    if known.is_empty:
        return ConsumerGroup(group_id), list(known.tombstones(group_id)), False
    group, records = yield from migration.upgrade(known, situation)
    return group, records, True


def not_a_consumer_group(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def check_size(group: ConsumerGroup, member_id: str, settings: ConsumerSettings) -> None:
    if len(group.members) >= settings.max_size and member_id not in group.members:
        message = f"The consumer group has reached its maximum capacity of {settings.max_size} members."
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def session_timers(group: ConsumerGroup) -> list[TimerChange]:
    """Return session timers for the classic members of an upgraded group."""
    return [
        TimerChange(member.member_id, Timer.SESSION, member.classic.session_timeout_ms)
        for member in group.members.values()
        if member.classic is not None
    ]


def _find_member(
    draft: Draft, request: ConsumerGroupHeartbeatRequest, member_id: str, owned: Owned | None, *, is_joining: bool
) -> Member:
    group, instance_id = draft.group, request.instance_id
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            member = Member(member_id) if is_joining else group.member(member_id)
        _check_epoch(member, request.member_epoch, owned)
        return member
    if is_joining:
        return join_static(draft, member_id, instance_id, speaks_classic=False)
    member = known_static(group, member_id, instance_id)
    _check_epoch(member, request.member_epoch, owned)
    return member


def join_static(draft: Draft, member_id: str, instance_id: str, *, speaks_classic: bool) -> Member:
    """Return the static member that joins: a new one, or its instance under a new member id.

    Raises UNRELEASED_INSTANCE_ID if another member has the instance and has not left.
    """
    known = draft.group.static_member(instance_id)
    if known is None:
        return draft.group.members.get(member_id) or Member(member_id)
    if not speaks_classic and known.classic is None and known.member_epoch != STATIC_LEAVE_EPOCH:
        message = (
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id is "
            f"owned by {known.member_id} member."
        )
        raise KafkaError(ErrorCode.UNRELEASED_INSTANCE_ID, message)
    member = known._replace(member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH)
    draft.replace(known, member)
    return member


def known_static(group: ConsumerGroup, member_id: str, instance_id: str) -> Member:
    """Return a static member. Raises UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
    known = group.static_member(instance_id)
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    check_instance(known, member_id, instance_id)
    return known


def check_instance(known: Member, member_id: str, instance_id: str) -> None:
    if known.member_id != member_id:
        message = f"Static member {member_id} with instance id {instance_id} was fenced by member {known.member_id}."
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, message)


def _check_epoch(member: Member, epoch: int, owned: Owned | None) -> None:
    """Check the member epoch of a request. Raises FENCED_MEMBER_EPOCH.

    A member may be one epoch behind if it owns nothing outside of its assignment: it may have missed the last response.
    """
    if epoch in (JOIN_EPOCH, member.member_epoch):
        return
    is_newer = epoch > member.member_epoch
    if not is_newer and epoch == member.previous_member_epoch and _is_subset(owned, member.assigned):
        return
    message = (
        f"The consumer group member has a {'greater' if is_newer else 'smaller'} member epoch ({epoch}) than the one known "
        f"by the group coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin."
    )
    raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _is_subset(owned: Owned | None, assigned: PartitionEpochs) -> bool:
    if owned is None:
        return False
    return all(
        topic_id in assigned and all(partition in assigned[topic_id] for partition in partitions)
        for topic_id, partitions in owned.items()
    )


def _updated(member: Member, request: ConsumerGroupHeartbeatRequest, asker: Asker) -> Member:
    """Return the member with the fields of a request. Fields that the request leaves out stay unchanged."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return member._replace(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NOT_GIVEN else timeout_ms,
        server_assignor=member.server_assignor if request.server_assignor is None else request.server_assignor,
        subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        client_id=asker.client_id,
        client_host=asker.client_host,
        classic=None,
    )


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    if request.topic_partitions is None:
        return None
    owned: dict[Uuid, list[int]] = {}
    for topic in request.topic_partitions:
        owned.setdefault(topic.topic_id, []).extend(topic.partitions)
    return owned


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether a request has all fields.

    A member sends one when it may have missed a response, and gets a full response.
    """
    is_subscribing = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != NOT_GIVEN and is_subscribing and request.topic_partitions is not None


def _assignment(assigned: PartitionEpochs) -> Slices[ConsumerGroupHeartbeatResponse.Assignment]:
    topic = ConsumerGroupHeartbeatResponse.TopicPartitions
    rows = []
    for some in stepwise(assigned.items()):
        rows += [topic(topic_id=topic_id, partitions=list(epochs)) for topic_id, epochs in some]
        yield
    return ConsumerGroupHeartbeatResponse.Assignment(topic_partitions=rows)


# --- leaving


def leave(
    known: AnyGroup | None, request: ConsumerGroupHeartbeatRequest, situation: ConsumerSituation
) -> Slices[Decided[ConsumerGroupHeartbeatResponse]]:
    """Handle the heartbeat of a member that leaves. A static member that leaves temporarily keeps its partitions."""
    if known is None:
        raise group_not_found(request.group_id)
    if not isinstance(known, ConsumerGroup):
        raise not_a_consumer_group(request.group_id)
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    if request.instance_id is None:
        return (yield from fence(known, [known.member(request.member_id)], response, situation))
    member = known_static(known, request.member_id, request.instance_id)
    if request.member_epoch != STATIC_LEAVE_EPOCH:
        return (yield from fence(known, [member], response, situation))
    away = member._replace(
        member_epoch=STATIC_LEAVE_EPOCH,
        pending_revocation={},
        # Epoch 0: a member that joins with this instance may commit them in any epoch.
        assigned={topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()},
    )
    return Result([(yield from current_record_in_slices(known.group_id, away))], Outcome(response))


def fence(
    group: ConsumerGroup, members: Iterable[Member], response: R, situation: ConsumerSituation
) -> Slices[Decided[R]]:
    """Remove members. If only classic members are left, the group is downgraded if the policy allows it."""
    leaving = list({member.member_id: member for member in members}.values())
    if not leaving:
        return Result((), Outcome(response))
    if migration.may_downgrade(group, leaving, situation.settings):
        return (yield from migration.downgrade(group, leaving, None, response, situation, rebalance=True))
    records: list[Record] = []
    rest = group
    for member in leaving:
        records += member_tombstones(group.group_id, member.member_id)
        rest = yield from without_member_in_slices(rest, member.member_id)
    counts = SubscriptionCounts(rest.subscriptions)
    for pattern in name_order(sorted({member.pattern for member in leaving if member.pattern is not None})):
        if pattern not in rest.patterns:
            records.append(regular_expression_tombstone(group.group_id, pattern))
            yield from counts.regex(group.regular_expressions.get(pattern, UNRESOLVED).topics, -1)
    subscriptions = yield from counts.finish(rest.subscriptions)
    metadata_hash = yield from result_of(situation.metadata_hash(subscriptions))
    records.append(epoch_record(group.group_id, group.group_epoch + 1, metadata_hash))
    timers = [TimerChange(member.member_id, timer) for member in leaving for timer in Timer]
    return Result(records, Outcome(response, timers))


# --- regular expressions


def resolved(
    group: ConsumerGroup, expressions: Mapping[str, ResolvedRegularExpression], situation: ConsumerSituation
) -> Slices[Decided[None]]:
    """Write the topics that regular expressions match. A change of them bumps the group epoch."""
    records: list[Record] = []
    counts = SubscriptionCounts(group.subscriptions)
    bump = False
    for pattern in name_order(sorted(expressions)):
        if pattern not in group.patterns:
            continue
        before, after = group.regular_expressions.get(pattern, UNRESOLVED), expressions[pattern]
        if before.topics != after.topics:
            bump = True
            yield from counts.regex(before.topics, -1)
            yield from counts.regex(after.topics, 1)
        records.append(regular_expression_record(group.group_id, pattern, after))
    subscriptions = yield from counts.finish(group.subscriptions)
    metadata_hash = yield from result_of(situation.metadata_hash(subscriptions))
    if not bump and metadata_hash == group.metadata_hash:
        return Result(records, Outcome(None))
    records.append(epoch_record(group.group_id, group.group_epoch + 1, metadata_hash))
    return Result(records, Outcome(None, checked_epoch=group.group_epoch + 1))
