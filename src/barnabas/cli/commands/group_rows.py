"""Groups as rows: the fields of commands that show them, by Kafka's names. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from barnabas.client.admin.groups import GroupDescription, GroupMember
from barnabas.client.records import TopicPartition
from barnabas.operations.groups.positions import PartitionPosition


def headline(group: GroupDescription, rows: Iterable[PartitionPosition]) -> str:
    count = len(group.members)
    lag = sum(row.lag or 0 for row in rows)
    by = f" by {group.assignor}" if group.assignor else ""
    return (
        f"{group.group_id}: {group.state}, {group.type.lower()}{by}, {count} member{'' if count == 1 else 's'}, "
        f"lag {lag:,}, coordinator {group.coordinator or '-'}"
    )


def position_row(group_id: str, at: PartitionPosition) -> dict[str, Any]:
    committed, member = at.committed, at.member
    return {
        "groupId": group_id,
        "topic": at.topic,
        "partition": at.partition,
        "currentOffset": committed.offset if committed else None,
        "logEndOffset": at.log_end_offset,
        "lag": at.lag,
        "lagMs": at.lag_ms,
        "memberId": member.member_id if member else None,
        "groupInstanceId": member.group_instance_id if member else None,
        "clientId": member.client_id if member else None,
        "clientHost": member.client_host if member else None,
        "leaderEpoch": committed.leader_epoch if committed else None,
        "metadata": committed.metadata if committed else None,
    }


def member_row(group: GroupDescription, member: GroupMember) -> dict[str, Any]:
    return {
        "groupId": group.group_id,
        "memberId": member.member_id,
        "groupInstanceId": member.group_instance_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "memberEpoch": member.member_epoch,
        "partitions": len(member.assignment),
        "assignment": _topics(member.assignment),
        "targetAssignment": None if member.target_assignment is None else _topics(member.target_assignment),
        "rackId": member.rack_id,
        "subscribedTopics": member.subscribed_topics,
        "subscribedTopicRegex": member.subscribed_topic_regex,
    }


def _topics(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        found.setdefault(topic, []).append(partition)
    return [{"topic": topic, "partitions": numbers} for topic, numbers in found.items()]


def state_row(group: GroupDescription) -> dict[str, Any]:
    return {
        "groupId": group.group_id,
        "type": group.type,
        "state": group.state,
        "coordinator": str(group.coordinator) if group.coordinator else None,
        "assignor": group.assignor or None,
        "groupEpoch": group.group_epoch,
        "assignmentEpoch": group.assignment_epoch,
        "members": len(group.members),
    }
