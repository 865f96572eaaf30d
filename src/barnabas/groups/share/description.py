"""The description of a committed share group in ShareGroupDescribe."""

from __future__ import annotations

from barnabas.config.hash_order import text_hash
from barnabas.groups.hash_tables import copied, timeline_order
from barnabas.groups.share import assignor
from barnabas.groups.share.group import Member, ShareGroup
from barnabas.metadata.topics import Topics
from barnabas.steps import Slices
from barnabas.wire.messages.share_group_describe import ShareGroupDescribeResponse

Row = ShareGroupDescribeResponse.DescribedGroup


def described(group: ShareGroup, topics: Topics) -> Slices[Row]:
    """Return the description of a group. Topics that do not exist are left out."""
    hashes = {}
    for member_id in group.members:  # an id may be long
        hashes[member_id] = text_hash(member_id)
        yield
    members = []
    for member_id in timeline_order(group.members, hashes.__getitem__):
        members.append(_member(group.members[member_id], topics))
        yield
    return Row(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor.NAME,
        members=members,
    )


def _member(member: Member, topics: Topics) -> ShareGroupDescribeResponse.Member:
    rows = [
        ShareGroupDescribeResponse.TopicPartitions(
            topic_id=topic_id, topic_name=topics.by_id[topic_id].name, partitions=list(partitions)
        )
        for topic_id, partitions in member.assigned.items()
        if topic_id in topics.by_id
    ]
    return ShareGroupDescribeResponse.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(copied(text_hash, sorted(member.subscribed_topic_names))),
        assignment=ShareGroupDescribeResponse.Assignment(topic_partitions=rows),
    )
