"""Groups of any type in one form: classic, consumer, share and streams groups.

Its one rule: the type that the list of groups tells decides which API is asked. A group that is not listed is asked for as a
consumer group, whose API has the best error for a missing one. What a share group has in a partition, its start offset, takes
the place of the committed offset, and its lag is what its coordinator says, because records behind the start may be done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from barnabas.client.admin.groups import (
    CONSUMER,
    CommittedOffset,
    GroupDescription,
    GroupListing,
    GroupMember,
    GroupOffsets,
    Groups,
)
from barnabas.client.admin.part import checked
from barnabas.client.admin.share_groups import ShareGroups, ShareOffset, ShareOffsets
from barnabas.client.admin.streams_groups import STREAMS, StreamsGroupDescription, StreamsGroups, StreamsMember
from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.operations.groups.lag import PartitionPosition
from barnabas.operations.groups.positions import positions
from barnabas.wire.errors import KafkaError

SHARE_TYPE, STREAMS_TYPE = "Share", "Streams"

Types: TypeAlias = Mapping[str, str | None]
"""The types of groups by id; None, or no entry, is a consumer group of either protocol."""


class AnyOffsets(NamedTuple):
    """The offsets of a group, and for share groups its lags; None for other groups, whose lag follows from the offsets."""

    offsets: GroupOffsets
    lags: Mapping[TopicPartition, int | None] | None = None


def commits_offsets(listed: GroupListing) -> bool:
    """Return whether a group may have offsets: classic groups are also those of Kafka Connect and others, which have none."""
    return listed.type not in ("Classic", None) or listed.protocol_type in (CONSUMER, "")


async def types_of(cluster: Cluster, group_ids: Iterable[str]) -> dict[str, str | None]:
    """Return the types of groups. Those that are not listed have none."""
    wanted = set(group_ids)
    listed = await Groups(cluster).list_groups()
    return {each.group_id: each.type for each in listed if each.group_id in wanted}


async def describe(
    cluster: Cluster, group_ids: Sequence[str], types: Types
) -> dict[str, GroupDescription | KafkaError]:
    """Describe groups, in their order."""
    share, streams, others = _by_type(group_ids, types)
    found: dict[str, GroupDescription | KafkaError] = {}
    if others:
        found |= await Groups(cluster).describe_consumer_groups(others)
    if share:
        found |= await ShareGroups(cluster).describe_share_groups(share)
    if streams:
        results = await StreamsGroups(cluster).describe_streams_groups(streams)
        found |= {
            group_id: each if isinstance(each, KafkaError) else common_form(each) for group_id, each in results.items()
        }
    return {group_id: found[group_id] for group_id in dict.fromkeys(group_ids)}


async def offsets_of(cluster: Cluster, group_ids: Sequence[str], types: Types) -> dict[str, AnyOffsets | KafkaError]:
    """Return the offsets of groups, in their order."""
    share, streams, others = _by_type(group_ids, types)
    found: dict[str, AnyOffsets | KafkaError] = {}
    if committing := [*others, *streams]:
        results = await Groups(cluster).list_consumer_group_offsets(committing)
        found |= {key: each if isinstance(each, KafkaError) else AnyOffsets(each) for key, each in results.items()}
    if share:
        shares = await ShareGroups(cluster).list_share_group_offsets(share)
        found |= {key: each if isinstance(each, KafkaError) else _of_share(each) for key, each in shares.items()}
    return {group_id: found[group_id] for group_id in dict.fromkeys(group_ids)}


async def positions_of(
    cluster: Cluster,
    described: Mapping[str, GroupDescription],
    offsets: Mapping[str, AnyOffsets],
    *,
    now_ms: int | None,
) -> dict[str, list[PartitionPosition]]:
    """Return the positions of groups, whose offsets were asked for; see `positions`."""
    return await positions(
        cluster,
        {group_id: (described[group_id], found.offsets) for group_id, found in offsets.items()},
        now_ms=now_ms,
        shared_lags={group_id: found.lags for group_id, found in offsets.items() if found.lags is not None},
    )


async def source_topics(cluster: Cluster, group_id: str) -> set[str]:
    """Return the topics that the application of a streams group reads, without those that it fills itself.

    Raises KafkaError if the group cannot be described.
    """
    group = checked(await StreamsGroups(cluster).describe_streams_groups([group_id]))[group_id]
    return {topic for each in group.subtopologies for topic in each.source_topics}


async def set_offsets(
    cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, int], type: str | None
) -> dict[TopicPartition, KafkaError | None]:
    """Set the offsets of a group without members."""
    if type == SHARE_TYPE:
        return await ShareGroups(cluster).alter_share_group_offsets(group_id, offsets)
    return await Groups(cluster).alter_consumer_group_offsets(group_id, {**offsets})


def common_form(group: StreamsGroupDescription) -> GroupDescription:
    """Return a streams group as other groups are: members have the partitions of the source topics of their active tasks."""

    def member(each: StreamsMember) -> GroupMember:
        return GroupMember(
            member_id=each.member_id,
            group_instance_id=each.group_instance_id,
            client_id=each.client_id,
            client_host=each.client_host,
            assignment=tuple(group.partitions(each.tasks.active)),
            target_assignment=tuple(group.partitions(each.target_tasks.active)),
            member_epoch=each.member_epoch,
            rack_id=each.rack_id,
        )

    return GroupDescription(
        group_id=group.group_id,
        type=STREAMS_TYPE,
        protocol_type=STREAMS,
        state=group.state,
        coordinator=group.coordinator,
        assignor="",
        members=tuple(map(member, group.members)),
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
    )


def _by_type(group_ids: Iterable[str], types: Types) -> tuple[list[str], list[str], list[str]]:
    """Return the share groups, the streams groups, and all others."""
    share: list[str] = []
    streams: list[str] = []
    others: list[str] = []
    for group_id in dict.fromkeys(group_ids):
        kind = types.get(group_id)
        (share if kind == SHARE_TYPE else streams if kind == STREAMS_TYPE else others).append(group_id)
    return share, streams, others


def _of_share(found: ShareOffsets) -> AnyOffsets:
    offsets: GroupOffsets = {}
    lags: dict[TopicPartition, int | None] = {}
    for place, each in found.items():
        if isinstance(each, ShareOffset):
            lags[place] = each.lag
            if each.start_offset is not None:
                offsets[place] = CommittedOffset(each.start_offset, each.leader_epoch)
        else:
            offsets[place] = each
    return AnyOffsets(offsets, lags)
