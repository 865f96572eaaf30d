"""Reconciliation: the way of a member to its target assignment, one step per heartbeat.

A member first revokes partitions that are not in its target, and confirms that by no longer reporting them as owned.
Then it moves to the epoch of the target and gets the free partitions of it. It gets the others when their owners have
revoked them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from barnabas.groups.assignors import Assignment
from barnabas.groups.consumer_group import NOT_OWNED, ConsumerGroup, Member, MemberState, PartitionEpochs
from barnabas.groups.hash_tables import (
    MIN_CAPACITY,
    HashTable,
    copied,
    number_hash,
    room_for,
    topic_order_in_slices,
    uuid_hash,
)
from barnabas.steps import Slices, at_once, stepwise
from barnabas.wire import ErrorCode, KafkaError, Uuid

PARTITIONS_PER_STEP = 1000  # of one topic

Owned = Mapping[Uuid, Collection[int]]
"""Partitions that a member reports as owned."""


def reconcile(
    group: ConsumerGroup,
    member: Member,
    target_epoch: int,
    target: Assignment,
    topic_ids: Collection[Uuid],
    owned: Owned | None,
    *,
    subscription_changed: bool,
) -> Member:
    """Return the member after its next step, or unchanged. `topic_ids` are the subscribed topics that exist.

    Raises FENCED_MEMBER_EPOCH if its state was written by a later version and it still owns partitions.
    """
    work = reconcile_in_slices(
        group, member, target_epoch, target, topic_ids, owned, subscription_changed=subscription_changed
    )
    return at_once(work)


def reconcile_in_slices(
    group: ConsumerGroup,
    member: Member,
    target_epoch: int,
    target: Assignment,
    topic_ids: Collection[Uuid],
    owned: Owned | None,
    *,
    subscription_changed: bool,
) -> Slices[Member]:
    """Return `reconcile`."""
    if member.state is MemberState.UNKNOWN:
        if owned is None or owned:
            message = "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."
            raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, message)
        return (yield from _next(group, member, target_epoch, target_epoch, target, topic_ids, owned))
    if member.state is MemberState.STABLE and member.member_epoch == target_epoch:
        return (yield from _without_unsubscribed(member, topic_ids, owned)) if subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS and _owns_any(owned, member.pending_revocation):
        return (yield from _without_unsubscribed(member, topic_ids, owned)) if subscription_changed else member
    return (yield from _next(group, member, member.member_epoch, target_epoch, target, topic_ids, owned))


def _owns_any(owned: Owned | None, partitions: PartitionEpochs) -> bool:
    """Whether a member owns some of these partitions. True if it did not report what it owns."""
    if owned is None:
        return True
    return any(
        partition in partitions.get(topic_id, ()) for topic_id, numbers in owned.items() for partition in numbers
    )


def _without_unsubscribed(member: Member, topic_ids: Collection[Uuid], owned: Owned | None) -> Slices[Member]:
    """Return the member with topics that it no longer subscribes to moved to pending revocation."""
    unwanted = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in topic_ids}
    if not unwanted and (topic_ids or member.pending_revocation):
        return member
    had = HashTable(uuid_hash, room_for(len(member.assigned)), member.assigned)
    kept = {topic_id: member.assigned[topic_id] for topic_id in (yield from had.in_order()) if topic_id in topic_ids}
    order = HashTable(uuid_hash, room_for(len(member.pending_revocation)), member.pending_revocation)
    for topic_id in unwanted:
        order.compute(topic_id)
    pending = {
        topic_id: {**member.pending_revocation.get(topic_id, {}), **unwanted.get(topic_id, {})}
        for topic_id in (yield from order.in_order())
    }
    moved = member.moved_to(member.member_epoch)._replace(assigned=kept)
    if pending and _owns_any(owned, pending):
        return moved._replace(state=MemberState.UNREVOKED_PARTITIONS, pending_revocation=pending)
    return moved


def _next(
    group: ConsumerGroup,
    member: Member,
    member_epoch: int,
    target_epoch: int,
    target: Assignment,
    topic_ids: Collection[Uuid],
    owned: Owned | None,
) -> Slices[Member]:
    kept: dict[Uuid, Mapping[int, int]] = {}
    revoked: dict[Uuid, Mapping[int, int]] = {}
    gained: dict[Uuid, Sequence[int]] = {}
    has_unreleased = False
    order = yield from topic_order_in_slices([*target, *(each for each in member.assigned if each not in target)])
    for topic_id in order:
        yield
        wanted = set(target.get(topic_id, ())) if topic_id in topic_ids else set()
        current = member.assigned.get(topic_id, {})
        if some := _copy(current, current.keys() & wanted):
            kept[topic_id] = some
        if some := _copy(current, current.keys() - wanted):
            revoked[topic_id] = some
        yield
        # Partitions that this member has to revoke are not free for others, but it may keep them itself.
        own = member.pending_revocation.get(topic_id, {})
        missing = wanted - current.keys()
        free = set()
        for some_missing in stepwise(missing, PARTITIONS_PER_STEP):
            free |= {p for p in some_missing if p in own or group.partition_epoch(topic_id, p) == NOT_OWNED}
            yield
        has_unreleased |= len(free) < len(missing)
        if free:
            gained[topic_id] = [p for p in copied(number_hash, target[topic_id]) if p in free]
    if revoked and _owns_any(owned, revoked):
        return member._replace(
            state=MemberState.UNREVOKED_PARTITIONS,
            member_epoch=member_epoch,
            previous_member_epoch=member.member_epoch,
            assigned=kept,
            pending_revocation=revoked,
        )
    state = MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE
    assigned = yield from _with(member, kept, gained, target_epoch)
    return member.moved_to(target_epoch)._replace(state=state, assigned=assigned, pending_revocation={})


def _copy(partitions: Mapping[int, int], some: Collection[int]) -> Mapping[int, int]:
    """Return some partitions, in the order of a table that was made for all of them."""
    table = HashTable(number_hash, room_for(len(partitions)), partitions)
    return {partition: partitions[partition] for partition in table if partition in some}


def _with(
    member: Member, kept: PartitionEpochs, gained: Mapping[Uuid, Collection[int]], epoch: int
) -> Slices[PartitionEpochs]:
    """Return kept and gained partitions, in the order of the tables of the last assignment."""
    topics = HashTable(uuid_hash, members=kept)
    assigned = dict(kept)
    for topic_id, partitions in gained.items():
        yield
        topics.compute(topic_id)
        capacity = room_for(len(member.assigned[topic_id])) if topic_id in kept else MIN_CAPACITY
        before = kept.get(topic_id, {})
        table = HashTable(number_hash, capacity, [*before, *partitions])
        assigned[topic_id] = {partition: before.get(partition, epoch) for partition in table}
    return {topic_id: assigned[topic_id] for topic_id in (yield from topics.in_order())}
