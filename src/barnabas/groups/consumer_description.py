"""The description of a committed consumer group in ConsumerGroupDescribe."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from barnabas.config.hash_order import text_hash
from barnabas.groups.consumer_group import ConsumerGroup, Member
from barnabas.groups.hash_tables import HashTable, copied, timeline_order, uuid_hash
from barnabas.groups.target_assignment import preferred_assignor
from barnabas.metadata.topics import Topics
from barnabas.steps import Slices
from barnabas.wire import Uuid
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeResponse

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def described(
    group: ConsumerGroup, default_assignor: str, topics: Topics
) -> Slices[ConsumerGroupDescribeResponse.DescribedGroup]:
    """Return the description of a group. Topics that do not exist are left out."""
    hashes = {}
    for member_id in group.members:  # an id may be long
        hashes[member_id] = text_hash(member_id)
        yield
    members = []
    for member_id in timeline_order(group.members, hashes.__getitem__):
        members.append(_member(group, group.members[member_id], topics))
        yield
    return ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group) or default_assignor,
        members=members,
    )


def _member(group: ConsumerGroup, member: Member, topics: Topics) -> ConsumerGroupDescribeResponse.Member:
    # Partitions to be revoked still belong to the member until it has revoked them.
    order = HashTable(uuid_hash)
    has: dict[Uuid, list[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, epochs in partitions.items():
            order.compute(topic_id)
            has.setdefault(topic_id, []).extend(epochs)
    return ConsumerGroupDescribeResponse.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(copied(text_hash, sorted(member.subscribed_topic_names))),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment({topic_id: has[topic_id] for topic_id in order}, topics),
        target_assignment=_assignment(group.target(member.member_id), topics),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(partitions: Mapping[Uuid, Collection[int]], topics: Topics) -> ConsumerGroupDescribeResponse.Assignment:
    rows = []
    for topic_id, numbers in partitions.items():
        topic = topics.by_id.get(topic_id)
        if topic is not None:
            rows.append(
                ConsumerGroupDescribeResponse.TopicPartitions(
                    topic_id=topic_id, topic_name=topic.name, partitions=list(numbers)
                )
            )
    return ConsumerGroupDescribeResponse.Assignment(topic_partitions=rows)
