"""Share groups (KIP-932) and their offsets: ShareGroupDescribe, DescribeShareGroupOffsets, AlterShareGroupOffsets,
DeleteShareGroupOffsets.

Its one rule: a share group has the same form as other groups; what it has in a partition is a start offset, from which on
records are delivered, and a lag, the number of records that are still to be processed. `Groups.list_groups` lists share
groups, and `Groups.delete_groups` deletes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from barnabas.client.admin.coordinators import ask_coordinators, coordinator_of
from barnabas.client.admin.groups import GroupDescription, GroupMember
from barnabas.client.admin.leaders import by_topic
from barnabas.client.admin.part import Part, change, failed
from barnabas.client.records import TopicPartition
from barnabas.client.routing import coordinator
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from barnabas.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from barnabas.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from barnabas.wire.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse

SHARE = "share"
"""Protocol type of share groups."""

_FEATURE = "share groups"


@dataclass(frozen=True, slots=True)
class ShareOffset:
    """What a share group has in a partition. A field is None if it is unknown; brokers before Kafka 4.2 have no lag."""

    start_offset: int | None
    lag: int | None = None
    leader_epoch: int | None = None


ShareOffsets: TypeAlias = dict[TopicPartition, ShareOffset | KafkaError]


class ShareGroups(Part):
    """Share groups and their offsets."""

    async def describe_share_groups(
        self, group_ids: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, GroupDescription | KafkaError]:
        """Describe share groups. The result of a missing group, or of another type, is GROUP_ID_NOT_FOUND."""

        async def ask(some: list[str], left_ms: float) -> dict[str, GroupDescription | KafkaError]:
            response: ShareGroupDescribeResponse = await self.cluster.call(
                ShareGroupDescribeRequest(group_ids=some), coordinator(some[0]), feature=_FEATURE, timeout_ms=left_ms
            )
            where = await coordinator_of(self.cluster, some[0])
            return {
                row.group_id: failed(row.error_code, row.error_message)
                or GroupDescription(
                    group_id=row.group_id,
                    type="Share",
                    protocol_type=SHARE,
                    state=row.group_state,
                    coordinator=where,
                    assignor=row.assignor_name,
                    members=tuple(map(_member, row.members)),
                    group_epoch=row.group_epoch,
                    assignment_epoch=row.assignment_epoch,
                )
                for row in response.groups
            }

        return await ask_coordinators(self.cluster, group_ids, ask, timeout_ms=timeout_ms)

    async def list_share_group_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        timeout_ms: float | None = None,
    ) -> dict[str, ShareOffsets | KafkaError]:
        """Return the start offsets and lags of groups: in all partitions, or in those given in a mapping."""
        wanted = {
            group_id: None if partitions is None else [TopicPartition(*each) for each in partitions]
            for group_id, partitions in (groups if isinstance(groups, Mapping) else dict.fromkeys(groups)).items()
        }

        async def ask(some: list[str], left_ms: float) -> dict[str, ShareOffsets | KafkaError]:
            request = DescribeShareGroupOffsetsRequest(groups=[_asked(each, wanted[each]) for each in some])
            response: DescribeShareGroupOffsetsResponse = await self.cluster.call(
                request, coordinator(some[0]), feature=_FEATURE, timeout_ms=left_ms
            )
            return {row.group_id: failed(row.error_code, row.error_message) or _offsets(row) for row in response.groups}

        return await ask_coordinators(self.cluster, wanted, ask, timeout_ms=timeout_ms)

    async def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, KafkaError | None]:
        """Set start offsets of a group without members, and forget what became of single records. Creates the group if it
        does not exist. Raises `KafkaError` for the whole group, such as NON_EMPTY_GROUP.
        """
        values = {TopicPartition(*key): each for key, each in offsets.items()}

        async def ask() -> dict[TopicPartition, KafkaError | None]:
            topics = [
                AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic(
                    topic_name=topic,
                    partitions=[
                        AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition(
                            partition_index=index, start_offset=values[TopicPartition(topic, index)]
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(values).items()
            ]
            response: AlterShareGroupOffsetsResponse = await self.cluster.call(
                AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics),
                coordinator(group_id),
                feature=_FEATURE,
                timeout_ms=timeout_ms,
            )
            results: dict[TopicPartition, KafkaError | None] = {}
            for topic in response.responses:
                for row in topic.partitions:
                    results[TopicPartition(topic.topic_name, row.partition_index)] = failed(
                        row.error_code, row.error_message
                    )
            return results

        async def look(keys: list[TopicPartition]) -> dict[TopicPartition, bool]:
            found = await self._offsets_now(group_id)
            return {
                key: isinstance(now := found.get(key), ShareOffset) and now.start_offset == values[key] for key in keys
            }

        return await change(list(values), ask, look, lambda key: f"altering the start offset of {group_id} in {key}")

    async def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, KafkaError | None]:
        """Delete what a group without members has in topics. It then begins where `share.auto.offset.reset` says. Raises
        `KafkaError` for the whole group, such as GROUP_ID_NOT_FOUND.
        """
        wanted = list(dict.fromkeys(topics))

        async def ask() -> dict[str, KafkaError | None]:
            rows = [
                DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic(topic_name=each) for each in wanted
            ]
            response: DeleteShareGroupOffsetsResponse = await self.cluster.call(
                DeleteShareGroupOffsetsRequest(group_id=group_id, topics=rows),
                coordinator(group_id),
                feature=_FEATURE,
                timeout_ms=timeout_ms,
            )
            return {row.topic_name: failed(row.error_code, row.error_message) for row in response.responses}

        async def look(keys: list[str]) -> dict[str, bool]:
            there = {place.topic for place in await self._offsets_now(group_id)}
            return {key: key not in there for key in keys}

        return await change(wanted, ask, look, lambda key: f"deleting the offsets of {group_id} in {key}")

    async def _offsets_now(self, group_id: str) -> ShareOffsets:
        found = (await self.list_share_group_offsets([group_id]))[group_id]
        if isinstance(found, KafkaError):
            if found.code is ErrorCode.GROUP_ID_NOT_FOUND:
                return {}
            raise found
        return found


def _member(row: ShareGroupDescribeResponse.Member) -> GroupMember:
    return GroupMember(
        member_id=row.member_id,
        group_instance_id=None,
        client_id=row.client_id,
        client_host=row.client_host,
        assignment=tuple(
            TopicPartition(each.topic_name, index)
            for each in row.assignment.topic_partitions
            for index in each.partitions
        ),
        member_epoch=row.member_epoch,
        rack_id=row.rack_id,
        subscribed_topics=tuple(row.subscribed_topic_names),
    )


def _asked(
    group_id: str, partitions: list[TopicPartition] | None
) -> DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup:
    topics = None
    if partitions is not None:
        topics = [
            DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    return DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=topics)


def _offsets(group: DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup) -> ShareOffsets:
    offsets: ShareOffsets = {}
    for topic in group.topics:
        for row in topic.partitions:
            offsets[TopicPartition(topic.topic_name, row.partition_index)] = failed(
                row.error_code, row.error_message
            ) or ShareOffset(_known(row.start_offset), _known(row.lag), _known(row.leader_epoch))
    return offsets


def _known(number: int) -> int | None:
    return number if number >= 0 else None
