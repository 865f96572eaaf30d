"""Decisions about members of a consumer group that speak the classic protocol, while their group migrates.

To such a member the group looks like a classic group with the coordinator as its leader. Its generation is its member
epoch. A JoinGroup is answered at once, SyncGroup returns the assignment of the coordinator, and Heartbeat tells it when to
join again.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.groups.classic.requests import UNKNOWN_MEMBER_ID, Join, Leaver, Sync, join_failed
from barnabas.groups.consumer_decision import (
    ConsumerSituation,
    Decided,
    Draft,
    Outcome,
    RegexUpdate,
    Timer,
    TimerChange,
)
from barnabas.groups.consumer_group import (
    CONSUMER_PROTOCOL,
    ClassicMetadata,
    ConsumerGroup,
    Member,
    MemberState,
)
from barnabas.groups.consumer_heartbeat import check_instance, check_size, fence, join_static, known_static
from barnabas.groups.current_assignment import Owned
from barnabas.groups.migration import (
    decode_subscription,
    downgrade,
    encode_assignment,
    may_downgrade_with,
    protocol_version,
)
from barnabas.metadata.topics import Topics
from barnabas.replicated.decision import Result
from barnabas.steps import Slices, stepwise
from barnabas.wire import ErrorCode, KafkaError, MalformedError
from barnabas.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupResponse

NOT_GIVEN = -1


def join(
    group: ConsumerGroup, request: Join, new_member_id: str, situation: ConsumerSituation
) -> Slices[Decided[JoinGroupResponse]]:
    """Handle the JoinGroup of a member that is new or joins again."""
    settings = situation.settings
    if not settings.can_migrate:
        message = (
            f"Cannot join the consumer group {group.group_id} with the classic protocol because the group migration is "
            "disabled."
        )
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
    is_unknown = request.member_id == UNKNOWN_MEMBER_ID
    member_id = new_member_id if is_unknown else request.member_id
    check_size(group, member_id, settings)
    yield from _check_protocols(group, member_id, request)
    if request.needs_known_member_id and is_unknown and request.group_instance_id is None:
        return Result((), Outcome(join_failed(ErrorCode.MEMBER_ID_REQUIRED, member_id)))
    draft = Draft(group, situation)
    if request.group_instance_id is None:
        member = group.members.get(member_id) or Member(member_id)
    elif is_unknown:
        member = join_static(draft, member_id, request.group_instance_id, speaks_classic=True)
    else:
        member = known_static(group, member_id, request.group_instance_id)
    subscription = _subscription(request)
    updated = _updated(member, request, subscription)
    names_changed = draft.update_member(member, updated)
    changed = draft.update_regex(member, updated) is not RegexUpdate.NO_CHANGE or names_changed
    yield from draft.update_epoch(member, updated, bump=changed)
    owned = _owned(subscription, situation.metadata.topics)
    if may_downgrade_with(group, group.static_member(request.group_instance_id), settings):
        return (yield from _join_and_downgrade(draft, updated, owned, subscription_changed=changed))
    target_epoch, target = yield from draft.update_target(member, updated)
    updated = yield from draft.reconcile(updated, target_epoch, target, owned, subscription_changed=changed)
    draft.timers += (
        TimerChange(updated.member_id, Timer.JOIN),
        TimerChange(updated.member_id, Timer.SESSION, request.session_timeout_ms),
        TimerChange(updated.member_id, Timer.SYNC, request.rebalance_timeout_ms),
    )
    return draft.decided(_joined(updated))


def _join_and_downgrade(
    draft: Draft, updated: Member, owned: Owned, *, subscription_changed: bool
) -> Slices[Decided[JoinGroupResponse]]:
    """Let the last member of the consumer protocol join with the classic one: the group becomes a classic group."""
    group = draft.group
    rebalance = group.assignment_epoch < draft.group_epoch
    if not rebalance:
        target = group.target(updated.member_id, updated.instance_id)
        updated = yield from draft.reconcile(
            updated, group.assignment_epoch, target, owned, subscription_changed=subscription_changed
        )
    return (
        yield from downgrade(
            group, (), updated, _joined(updated), draft.situation, rebalance=rebalance, records=draft.records
        )
    )


def _joined(member: Member) -> JoinGroupResponse:
    assert member.classic is not None
    return JoinGroupResponse(
        generation_id=member.member_epoch,
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=member.classic.protocols[0][0],
        member_id=member.member_id,
    )


def _check_protocols(group: ConsumerGroup, member_id: str, request: Join) -> Slices[None]:
    """Check that all classic members support one of its protocols. Raises INCONSISTENT_GROUP_PROTOCOL."""
    supported = {name for name, _ in request.protocols}
    for some in stepwise(group.members.values()):
        yield
        for member in some:
            if member.classic is not None:
                supported.intersection_update([name for name, _ in member.classic.protocols])
    if request.protocol_type != CONSUMER_PROTOCOL or not supported:
        message = f"Member {member_id}'s protocols are not supported."
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)


def _subscription(request: Join) -> ConsumerProtocolSubscription:
    try:
        return decode_subscription(request.protocols[0][1])
    except MalformedError as error:
        message = "Malformed embedded consumer protocol in subscription deserialization."
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message) from error


def _updated(member: Member, request: Join, subscription: ConsumerProtocolSubscription) -> Member:
    timeout_ms, instance_id = request.rebalance_timeout_ms, request.group_instance_id
    return member._replace(
        instance_id=member.instance_id if instance_id is None else instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NOT_GIVEN else timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicMetadata(request.session_timeout_ms, request.protocols),
    )


def _owned(subscription: ConsumerProtocolSubscription, topics: Topics) -> Owned:
    rows = subscription.owned_partitions
    return {topics.ids[row.topic]: row.partitions for row in rows if row.topic in topics.ids}


# --- sync and heartbeat


def sync(group: ConsumerGroup, request: Sync, situation: ConsumerSituation) -> Decided[SyncGroupResponse]:
    """Handle a SyncGroup: return the assignment, or REBALANCE_IN_PROGRESS if there is a newer target already."""
    member = _find(group, request.member_id, request.group_instance_id)
    classic = _classic(member)
    _check_generation(member, request.generation)
    protocol_name = classic.protocols[0][0]
    if request.protocol_type is not None and request.protocol_type != CONSUMER_PROTOCOL:
        message = (
            f"The protocol type {request.protocol_type} from member {member.member_id} request is not equal to the group "
            f"protocol type {CONSUMER_PROTOCOL}."
        )
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
    if request.protocol_name is not None and request.protocol_name != protocol_name:
        message = (
            f"The protocol name {request.protocol_name} from member {member.member_id} request is not equal to the protocol "
            f"name {protocol_name} returned in the join response."
        )
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
    if _must_rejoin(group, member):
        return Result((), Outcome(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), [_join_timer(member)]))
    partitions = {topic_id: tuple(epochs) for topic_id, epochs in member.assigned.items()}
    response = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=encode_assignment(partitions, protocol_version(classic.protocols[0][1]), situation.metadata.topics),
    )
    timers = [
        TimerChange(member.member_id, Timer.SYNC),
        TimerChange(member.member_id, Timer.SESSION, classic.session_timeout_ms),
    ]
    return Result((), Outcome(response, timers))


def _must_rejoin(group: ConsumerGroup, member: Member) -> bool:
    """Whether there is a newer target. A member that still has partitions to revoke does that first."""
    is_behind = group.assignment_epoch > member.member_epoch
    return is_behind and member.state is not MemberState.UNREVOKED_PARTITIONS


def heartbeat(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> Outcome[ErrorCode]:
    """Handle a Heartbeat.

    REBALANCE_IN_PROGRESS makes the member join again: for a new target, to revoke partitions, or to get partitions that
    others released.
    """
    member = _find(group, member_id, instance_id)
    classic = _classic(member)
    _check_generation(member, generation)
    timers = [TimerChange(member_id, Timer.SESSION, classic.session_timeout_ms)]
    is_waiting = _waits_for_others(group, member)
    is_unreleased = member.state is MemberState.UNRELEASED_PARTITIONS
    if (
        member.member_epoch < group.assignment_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (is_unreleased and not is_waiting)
    ):
        return Outcome(ErrorCode.REBALANCE_IN_PROGRESS, [*timers, _join_timer(member)])
    return Outcome(ErrorCode.NONE, timers)


def _waits_for_others(group: ConsumerGroup, member: Member) -> bool:
    """Whether other members still own a partition of its target."""
    return any(
        partition not in member.assigned.get(topic_id, ()) and group.partition_epoch(topic_id, partition) != -1
        for topic_id, partitions in group.target(member.member_id).items()
        for partition in partitions
    )


def _join_timer(member: Member) -> TimerChange:
    return TimerChange(member.member_id, Timer.JOIN, member.rebalance_timeout_ms, if_absent=True)


def _find(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member:
    if instance_id is None:
        return group.member(member_id)
    member = group.static_member(instance_id)
    if member is None:
        message = f"Member with instance id {instance_id} is not a member of group {group.group_id}."
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)
    check_instance(member, member_id, instance_id)
    return member


def _classic(member: Member) -> ClassicMetadata:
    if member.classic is None:
        message = f"Member {member.member_id} does not use the classic protocol."
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)
    return member.classic


def _check_generation(member: Member, generation: int) -> None:
    if member.member_epoch != generation:
        message = (
            f"The request generation id {generation} is not equal to the member epoch {member.member_epoch} of member "
            f"{member.member_id}."
        )
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION, message)


# --- leave


def leave(
    group: ConsumerGroup, leavers: Sequence[Leaver], situation: ConsumerSituation
) -> Slices[Decided[list[ErrorCode]]]:
    """Remove members of either protocol, and return an error code for each."""
    errors = []
    leaving = []
    for leaver in leavers:
        yield
        try:
            leaving.append(_leaving(group, leaver))
            errors.append(ErrorCode.NONE)
        except KafkaError as error:
            errors.append(error.code)
    return (yield from fence(group, leaving, errors, situation))


def _leaving(group: ConsumerGroup, leaver: Leaver) -> Member:
    member_id, instance_id = leaver
    if instance_id is None:
        return group.member(member_id)
    if member_id != UNKNOWN_MEMBER_ID:
        return known_static(group, member_id, instance_id)
    member = group.static_member(instance_id)  # an administrator removes the instance
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    return member
