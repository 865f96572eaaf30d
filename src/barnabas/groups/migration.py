"""Migration of groups between the two protocols.

A classic group becomes a consumer group when a member of the consumer protocol joins it. A consumer group becomes a
classic one when its last member of the consumer protocol leaves. Both happen only if the broker's migration policy
allows it. In between, members of both protocols are in one consumer group (`consumer_classic_members`). An empty group
is simply replaced. Only groups of consumers can migrate, because the coordinator has to read the assignments of their
members.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from barnabas import wire
from barnabas.groups import consumer_records
from barnabas.groups.assignors import Assignment
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.member import NO_ASSIGNMENT, ClassicMember
from barnabas.groups.classic.records import group_record
from barnabas.groups.consumer_decision import ConsumerSituation, Decided, Outcome
from barnabas.groups.consumer_group import ClassicMetadata, ConsumerGroup, Member, with_member_in_slices
from barnabas.groups.consumer_records import Record
from barnabas.groups.consumer_settings import ConsumerSettings
from barnabas.groups.hash_tables import copied, number_hash, timeline_order, topic_order
from barnabas.metadata.topics import Topics
from barnabas.replicated.decision import Result
from barnabas.steps import Slices, result_of
from barnabas.wire import ErrorCode, KafkaError, MalformedError, Uuid
from barnabas.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

R = TypeVar("R")
HIGHEST_PROTOCOL_VERSION = 3
_INT16 = struct.Struct(">h")


# --- the embedded consumer protocol of classic members


def protocol_version(data: bytes) -> int:
    """Return the version of an encoded subscription or assignment. Raises MalformedError."""
    if len(data) < _INT16.size:
        raise MalformedError("the version of the consumer protocol is missing")
    version = int(_INT16.unpack_from(data)[0])
    if version < 0:
        raise MalformedError(f"the consumer protocol has no version {version}")
    return min(version, HIGHEST_PROTOCOL_VERSION)  # later versions start with the same fields


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription:
    return wire.decode_from(ConsumerProtocolSubscription, protocol_version(data), data, _INT16.size)[0]


def encode_assignment(partitions: Assignment, version: int, topics: Topics) -> bytes:
    """Return an assignment in the form of the classic protocol. Topics that do not exist are left out."""
    rows = []
    for topic_id in topic_order(partitions):
        topic = topics.by_id.get(topic_id)
        if topic is not None:
            order = list(copied(number_hash, partitions[topic_id]))
            rows.append(ConsumerProtocolAssignment.TopicPartition(topic=topic.name, partitions=order))
    message = ConsumerProtocolAssignment(assigned_partitions=rows)
    return _INT16.pack(version) + wire.encode(message, version)


def _decode_assignment(data: bytes, topics: Topics) -> dict[Uuid, tuple[int, ...]]:
    if data == NO_ASSIGNMENT:
        return {}
    version = protocol_version(data)
    message = wire.decode_from(ConsumerProtocolAssignment, version, data, _INT16.size)[0]
    if message.user_data:
        raise _UserDataError
    return {
        topics.ids[row.topic]: tuple(row.partitions) for row in message.assigned_partitions if row.topic in topics.ids
    }


class _UserDataError(Exception):
    """A custom assignor stores user data in the assignment, which a consumer group would lose."""


# --- from classic to consumer


def upgrade(classic: ClassicGroup, situation: ConsumerSituation) -> Slices[tuple[ConsumerGroup, list[Record]]]:
    """Return a classic group as a consumer group, and its records.

    Raises GROUP_ID_NOT_FOUND if that is not possible.
    """
    _check_upgrade(classic, situation.settings)
    try:
        group = yield from _upgraded(classic, situation)
    except MalformedError:
        raise _cannot_upgrade(classic, "the embedded consumer protocol is malformed.") from None
    except _UserDataError:
        reason = (
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor "
            "before re-attempting the upgrade."
        )
        raise _cannot_upgrade(classic, reason) from None
    records = yield from consumer_records.group_records_in_slices(group)
    return group, [*classic.tombstones(classic.group_id), *records]


def _check_upgrade(classic: ClassicGroup, settings: ConsumerSettings) -> None:
    if not settings.can_upgrade:
        raise _cannot_upgrade(classic, "online upgrade is disabled.")
    if not classic.uses_consumer_protocol:
        raise _cannot_upgrade(classic, "the group does not use the consumer embedded protocol.")
    if len(classic.members) > settings.max_size:
        raise _cannot_upgrade(classic, "the group size exceeds the consumer group maximum size.")


def _cannot_upgrade(classic: ClassicGroup, reason: str) -> KafkaError:
    message = f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}"
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _upgraded(classic: ClassicGroup, situation: ConsumerSituation) -> Slices[ConsumerGroup]:
    epoch, topics = classic.generation, situation.metadata.topics
    group = ConsumerGroup(classic.group_id, group_epoch=epoch, assignment_epoch=epoch)
    for member in classic.members:
        yield
        assignment = _decode_assignment(member.assignment, topics)
        subscription = decode_subscription(_metadata(member, classic.protocol_name))
        group = yield from with_member_in_slices(
            group,
            Member(
                member.member_id,
                epoch,
                epoch,
                instance_id=member.group_instance_id,
                rack_id=subscription.rack_id or None,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=frozenset(subscription.topics),
                assigned={topic_id: dict.fromkeys(partitions, epoch) for topic_id, partitions in assignment.items()},
                classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
            ),
        )
        group = group._replace(target_assignment=group.target_assignment.set(member.member_id, assignment))
    return group._replace(metadata_hash=(yield from result_of(situation.metadata_hash(group.subscriptions))))


def _metadata(member: ClassicMember, protocol_name: str | None) -> bytes:
    """Return the metadata of a member for the protocol of its group, or for its first one if none is selected."""
    return dict(member.protocols).get(protocol_name or "", member.protocols[0][1])


# --- from consumer to classic


def may_downgrade(group: ConsumerGroup, leaving: Collection[Member], settings: ConsumerSettings) -> bool:
    """Whether only classic members are left when these leave, and the policy allows to downgrade the group."""
    left = len(group.members) - len(leaving)
    classic_left = group.classic_member_count - sum(member.classic is not None for member in leaving)
    return left > 0 and classic_left == left and settings.can_downgrade and left <= settings.classic.max_size


def may_downgrade_with(group: ConsumerGroup, replaced: Member | None, settings: ConsumerSettings) -> bool:
    """Whether the group may be downgraded because its last consumer member joins with the classic protocol."""
    count = len(group.members)
    is_last = replaced is not None and replaced.classic is None and group.classic_member_count == count - 1
    return is_last and settings.can_downgrade and count <= settings.classic.max_size


def downgrade(
    group: ConsumerGroup,
    leaving: Sequence[Member],
    joining: Member | None,
    response: R,
    situation: ConsumerSituation,
    *,
    rebalance: bool,
    records: Iterable[Record] = (),
) -> Slices[Decided[R]]:
    """Return the group as a classic group, without the members that leave.

    A static member in `joining` replaces the one that has its instance.
    """
    replaced = None if joining is None else group.static_member(joining.instance_id)
    renamed = {replaced.member_id: joining.member_id} if replaced is not None and joining is not None else {}
    out = {member.member_id for member in leaving} | renamed.keys()
    staying = [group.members[member_id] for member_id in timeline_order(group.members) if member_id not in out]
    if joining is not None:
        staying.append(joining)
    old_ids = {new: old for old, new in renamed.items()}
    members = [_classic_member(member) for member in staying if member.classic is not None]
    classic = ClassicGroup.of_members(
        group.group_id,
        situation.settings.classic,
        group.group_epoch,
        members,
        situation.now_ms,
    )
    try:
        for member in members:
            yield
            target = group.target(old_ids.get(member.member_id, member.member_id))
            version = protocol_version(member.metadata(classic.protocol_name))
            member.assignment = encode_assignment(target, version, situation.metadata.topics)
    except MalformedError as error:
        message = f"Cannot downgrade the classic group {group.group_id}: {error}."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message) from error
    all_records = [
        *records,
        *consumer_records.group_tombstones(group, renamed),
        group_record(group.group_id, classic.stored()),
    ]
    return Result(all_records, Outcome(response, downgraded=classic, rebalance=rebalance))


def _classic_member(member: Member) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        member.classic.protocols,
    )
