"""The stored form of classic groups: members to and from values, groups to records, and the replay of records."""

from __future__ import annotations

from barnabas.groups.classic.member import ClassicMember
from barnabas.groups.image import GroupMetadata, GroupsImage, MemberMetadata, RecordPosition, Replay
from barnabas.replicated.decision import KeyValue
from barnabas.wire import Message
from barnabas.wire.records.group import GroupMetadataKey, GroupMetadataValue

VERSION = 3
NO_TIMESTAMP = -1


# --- members


def stored_member(member: ClassicMember, protocol_name: str | None, assignment: bytes) -> MemberMetadata:
    """Return a member as it is written: with its metadata for the protocol of the group only."""
    return MemberMetadata(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.session_timeout_ms,
        member.metadata(protocol_name),
        assignment,
    )


def restored_member(member: MemberMetadata, protocol_name: str | None) -> ClassicMember:
    """Return a member as it was written. It supports only the protocol that its group had."""
    return ClassicMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.session_timeout_ms,
        ((protocol_name or "", member.subscription),),
        member.assignment,
    )


# --- groups


def group_record(group_id: str, group: GroupMetadata) -> tuple[KeyValue, int]:
    """Return the record of a group and its version."""
    timestamp_ms = group.state_timestamp_ms
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=NO_TIMESTAMP if timestamp_ms is None else timestamp_ms,
        members=[
            GroupMetadataValue.MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in group.members
        ],
    )
    return KeyValue(GroupMetadataKey(group=group_id), value), VERSION


def group_tombstone(group_id: str) -> tuple[KeyValue, int]:
    return KeyValue(GroupMetadataKey(group=group_id), None), VERSION


# --- replay


def _replay_group(
    image: GroupsImage, key: GroupMetadataKey, value: GroupMetadataValue | None, place: RecordPosition
) -> GroupsImage:
    if value is None:
        return image.with_group(key.group, None)
    timestamp_ms = value.current_state_timestamp
    group = GroupMetadata(
        value.generation,
        value.protocol_type or None,
        value.protocol,
        value.leader,
        None if timestamp_ms == NO_TIMESTAMP else timestamp_ms,
        tuple(_member(member) for member in value.members),
    )
    return image.with_group(key.group, group)


def _member(member: GroupMetadataValue.MemberMetadata) -> MemberMetadata:
    has_rebalance_timeout = member.rebalance_timeout != -1
    return MemberMetadata(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout if has_rebalance_timeout else member.session_timeout,
        member.session_timeout,
        member.subscription,
        member.assignment,
    )


REPLAY: dict[type[Message], Replay] = {GroupMetadataKey: _replay_group}
