"""Groups and their offsets: ListGroups, DescribeGroups, ConsumerGroupDescribe, OffsetFetch, OffsetCommit, OffsetDelete,
DeleteGroups, LeaveGroup.

Its one rule: groups have the same form for both protocols and all broker versions. Fields that only KIP-848 has, such as epochs
and target assignments, are None in a classic group. Streams groups commit offsets as consumer groups do; `share_groups` and
`streams_groups` have what only those types have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from barnabas import wire
from barnabas.client.admin.coordinators import (
    MAX_IN_REQUEST,
    Deadline,
    ask_coordinators,
    coordinator_of,
    coordinator_versions,
)
from barnabas.client.admin.leaders import by_topic
from barnabas.client.admin.part import Part, change, failed, pieces
from barnabas.client.cluster import Cluster
from barnabas.client.errors import UnsupportedByNodeError
from barnabas.client.records import TopicPartition
from barnabas.client.routing import coordinator, node
from barnabas.client.state import Node
from barnabas.client.versions import NodeVersions
from barnabas.wire.errors import ErrorCode, KafkaError, MalformedError
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from barnabas.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

CONSUMER = "consumer"
"""Protocol type of consumers. Groups that only have offsets have an empty one."""

_FIRST_WITH_TYPES = 5
_FIRST_WITH_MANY_GROUPS = 8
_LAST_WITH_NAMES = 9  # from 10 on topics are given by id, which deleted topics no longer have
_FIRST_WITH_NOT_FOUND = 6
_FIRST_WITH_MANY_MEMBERS = 3
_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A listed group. `state` and `type` are Kafka's names (`Stable`, `Classic`), or None if the broker is too old."""

    group_id: str
    protocol_type: str
    state: str | None
    type: str | None
    coordinator_id: int


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group. A field is None if classic members do not have it, or the broker is too old."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    assignment: tuple[TopicPartition, ...]
    target_assignment: tuple[TopicPartition, ...] | None = None
    member_epoch: int | None = None
    rack_id: str | None = None
    subscribed_topics: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    is_upgraded: bool | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group with its members; `type` is `Classic`, `Consumer` or `Share`."""

    group_id: str
    type: str
    protocol_type: str
    state: str
    coordinator: Node | None
    assignor: str
    members: tuple[GroupMember, ...]
    group_epoch: int | None = None
    assignment_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A committed offset: the next one that the group will read."""

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class MemberToRemove:
    """A member by its id, or a static one by its `group.instance.id`."""

    member_id: str = ""
    group_instance_id: str | None = None


GroupOffsets: TypeAlias = dict[TopicPartition, CommittedOffset | KafkaError]
_Described: TypeAlias = dict[str, GroupDescription | KafkaError]


class Groups(Part):
    """Groups and their committed offsets."""

    async def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = (), timeout_ms: float | None = None
    ) -> list[GroupListing]:
        """List the groups of all brokers, optionally only those in these states (Kafka 2.6) and of these types.

        >>> import asyncio
        >>> from barnabas.client import Cluster
        >>> from barnabas.testing import Broker
        >>> async def main() -> None:
        ...     async with Broker({"orders": 1}) as broker, Cluster({"bootstrap.servers": broker.bootstrap_servers}) as it:
        ...         groups = Groups(it)
        ...         print(await groups.alter_consumer_group_offsets("app", {TopicPartition("orders", 0): 0}))
        ...         print([(group.group_id, group.state) for group in await groups.list_groups()])
        >>> asyncio.run(main())
        {TopicPartition(topic='orders', partition=0): None}
        [('app', 'Empty')]
        """
        deadline = Deadline(self.cluster, timeout_ms)
        states, types = list(states), list(types)
        brokers = (await self.cluster.refresh(timeout_ms=deadline.left_ms)).brokers

        async def ask(broker_id: int) -> list[GroupListing]:
            versions = await self.cluster.versions(node(broker_id))
            response: ListGroupsResponse = await self.cluster.call(
                ListGroupsRequest(states_filter=states, types_filter=_types_to_ask_for(types, versions)),
                node(broker_id),
                feature="listing groups by state or type",
                timeout_ms=deadline.left_ms,
            )
            return [
                GroupListing(
                    each.group_id,
                    each.protocol_type,
                    each.group_state or None,
                    each.group_type.capitalize() or None,
                    broker_id,
                )
                for each in response.groups
            ]

        answers = await asyncio.gather(*(ask(broker_id) for broker_id in sorted(brokers)))
        return [listing for answer in answers for listing in answer]

    async def describe_consumer_groups(
        self, group_ids: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, GroupDescription | KafkaError]:
        """Describe consumer groups of either protocol. The result of a missing group is GROUP_ID_NOT_FOUND."""
        deadline = Deadline(self.cluster, timeout_ms)
        results = await ask_coordinators(self.cluster, group_ids, self._ask_consumer_protocol, timeout_ms=timeout_ms)
        others = {group_id: result for group_id, result in results.items() if _may_be_classic(result)}
        if not others:
            return results
        classic = await self.describe_groups(others, timeout_ms=deadline.left_ms)
        for group_id, result in classic.items():
            not_found = isinstance(result, KafkaError) and result.code == ErrorCode.GROUP_ID_NOT_FOUND
            told = others[group_id]
            # The newer API has the better error message for a missing group.
            knows_more = isinstance(told, KafkaError) and told.code == ErrorCode.GROUP_ID_NOT_FOUND
            results[group_id] = told if not_found and knows_more else result
        return results

    async def describe_groups(
        self, group_ids: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, GroupDescription | KafkaError]:
        """Describe classic groups of any kind: consumers, Kafka Connect, schema registries."""

        async def ask(some: list[str], left_ms: float) -> _Described:
            to = coordinator(some[0])
            versions = await coordinator_versions(self.cluster, some[0], timeout_ms=left_ms)
            response: DescribeGroupsResponse = await self.cluster.call(
                DescribeGroupsRequest(groups=some), to, timeout_ms=left_ms
            )
            where = await coordinator_of(self.cluster, some[0])
            is_old = not versions.serves("DescribeGroups", _FIRST_WITH_NOT_FOUND)
            return {row.group_id: _classic_description(row, where, is_old=is_old) for row in response.groups}

        return await ask_coordinators(self.cluster, group_ids, ask, timeout_ms=timeout_ms)

    async def _ask_consumer_protocol(self, group_ids: list[str], timeout_ms: float) -> _Described:
        to = coordinator(group_ids[0])
        try:
            response: ConsumerGroupDescribeResponse = await self.cluster.call(
                ConsumerGroupDescribeRequest(group_ids=group_ids), to, timeout_ms=timeout_ms
            )
        except UnsupportedByNodeError:
            return dict.fromkeys(group_ids, KafkaError(ErrorCode.UNSUPPORTED_VERSION))
        where = await coordinator_of(self.cluster, group_ids[0])
        return {
            row.group_id: failed(row.error_code, row.error_message) or _consumer_description(row, where)
            for row in response.groups
        }

    async def list_consumer_group_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, GroupOffsets | KafkaError]:
        """Return the committed offsets of groups: of all partitions, or of those given in a mapping.

        Partitions without a committed offset are left out; a missing group has none. With `require_stable`, the result of a
        partition is UNSTABLE_OFFSET_COMMIT while an open transaction has pending offsets for it.
        """
        wanted = {
            group_id: None if partitions is None else [TopicPartition(*each) for each in partitions]
            for group_id, partitions in (groups if isinstance(groups, Mapping) else dict.fromkeys(groups)).items()
        }

        async def ask(some: list[str], left_ms: float) -> dict[str, GroupOffsets | KafkaError]:
            to = coordinator(some[0])
            best = (await coordinator_versions(self.cluster, some[0], timeout_ms=left_ms)).best("OffsetFetch")
            version = None if best is None else min(best, _LAST_WITH_NAMES)
            if version is None or version >= _FIRST_WITH_MANY_GROUPS:
                request = OffsetFetchRequest(
                    groups=[_offsets_asked(group_id, wanted[group_id]) for group_id in some],
                    require_stable=require_stable,
                )
                response = await self.cluster.call(request, to, version=version, timeout_ms=left_ms)
                return {row.group_id: failed(row.error_code) or _offsets(row.topics) for row in response.groups}
            results: dict[str, GroupOffsets | KafkaError] = {}
            for group_id in some:
                try:
                    old = await self.cluster.call(
                        _old_offsets_asked(group_id, wanted[group_id], require_stable),
                        coordinator(group_id),
                        feature="asking for stable offsets" if require_stable else "listing all offsets of a group",
                        timeout_ms=left_ms,
                    )
                    results[group_id] = _offsets(old.topics)
                except KafkaError as error:
                    results[group_id] = error
            return results

        return await ask_coordinators(self.cluster, wanted, ask, timeout_ms=timeout_ms)

    async def alter_consumer_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
        *,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, KafkaError | None]:
        """Commit offsets for a group without members; with members, the result is UNKNOWN_MEMBER_ID. Creates the group if it
        does not exist.
        """
        values = {
            TopicPartition(*key): CommittedOffset(each) if isinstance(each, int) else each
            for key, each in offsets.items()
        }

        async def ask() -> dict[TopicPartition, KafkaError | None]:
            deadline, to = Deadline(self.cluster, timeout_ms), coordinator(group_id)
            versions = await coordinator_versions(self.cluster, group_id, timeout_ms=timeout_ms)
            best = versions.best("OffsetCommit")
            version = None if best is None else min(best, _LAST_WITH_NAMES)
            results: dict[TopicPartition, KafkaError | None] = {}
            for some in pieces(values, MAX_IN_REQUEST):
                request = OffsetCommitRequest(group_id=group_id, topics=_offsets_to_commit(some, values))
                response: OffsetCommitResponse = await self.cluster.call(
                    request, to, version=version, timeout_ms=deadline.left_ms
                )
                for topic in response.topics:
                    results.update(
                        (TopicPartition(topic.name, row.partition_index), failed(row.error_code))
                        for row in topic.partitions
                    )
            return results

        async def look(keys: list[TopicPartition]) -> dict[TopicPartition, bool]:
            found = await _offsets_of(self, group_id, keys)
            return {
                key: isinstance(now := found.get(key), CommittedOffset) and now.offset == values[key].offset
                for key in keys
            }

        return await change(list(values), ask, look, lambda key: f"altering the offset of {group_id} in {key}")

    async def delete_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, KafkaError | None]:
        """Delete committed offsets of topics that no member is subscribed to. Raises `KafkaError` for the whole group, such as
        GROUP_ID_NOT_FOUND.
        """
        wanted = list(dict.fromkeys(TopicPartition(*each) for each in partitions))

        async def ask() -> dict[TopicPartition, KafkaError | None]:
            request = OffsetDeleteRequest(
                group_id=group_id,
                topics=[
                    OffsetDeleteRequest.OffsetDeleteRequestTopic(
                        name=topic,
                        partitions=[
                            OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=i) for i in indexes
                        ],
                    )
                    for topic, indexes in by_topic(wanted).items()
                ],
            )
            response: OffsetDeleteResponse = await self.cluster.call(
                request, coordinator(group_id), feature="deleting offsets of a group", timeout_ms=timeout_ms
            )
            return {
                TopicPartition(topic.name, row.partition_index): failed(row.error_code)
                for topic in response.topics
                for row in topic.partitions
            }

        async def look(keys: list[TopicPartition]) -> dict[TopicPartition, bool]:
            found = await _offsets_of(self, group_id, keys)
            return {key: key not in found for key in keys}

        return await change(wanted, ask, look, lambda key: f"deleting the offset of {group_id} in {key}")

    async def delete_groups(
        self, group_ids: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, KafkaError | None]:
        """Delete groups of any type without members, and their offsets."""
        wanted = list(dict.fromkeys(group_ids))

        async def ask(some: list[str], left_ms: float) -> dict[str, KafkaError | None]:
            response: DeleteGroupsResponse = await self.cluster.call(
                DeleteGroupsRequest(groups_names=some),
                coordinator(some[0]),
                feature="deleting groups",
                timeout_ms=left_ms,
            )
            return {row.group_id: failed(row.error_code) for row in response.results}

        async def look(keys: list[str]) -> dict[str, bool]:
            there = {listing.group_id for listing in await self.list_groups()}
            return {key: key not in there for key in keys}

        return await change(
            wanted,
            lambda: ask_coordinators(self.cluster, wanted, ask, timeout_ms=timeout_ms),
            look,
            lambda key: f"deleting group {key}",
        )

    async def remove_members(
        self,
        group_id: str,
        members: Iterable[MemberToRemove] | None = None,
        *,
        reason: str | None = None,
        timeout_ms: float | None = None,
    ) -> dict[MemberToRemove, KafkaError | None]:
        """Remove these members, or all members, from a group. Meant for members that are gone but keep their partitions until
        the session times out; a running member joins again. Raises `KafkaError` for the whole group.
        """
        deadline = Deadline(self.cluster, timeout_ms)
        if members is None:
            found = (await self.describe_consumer_groups([group_id], timeout_ms=deadline.left_ms))[group_id]
            if isinstance(found, KafkaError):
                raise found
            members = [_to_remove(member) for member in found.members]
        wanted = list(dict.fromkeys(members))
        if not wanted:
            return {}

        async def look(keys: list[MemberToRemove]) -> dict[MemberToRemove, bool]:
            described = (await self.describe_consumer_groups([group_id]))[group_id]
            if isinstance(described, KafkaError):
                raise described
            ids = {member.member_id for member in described.members}
            instances = {member.group_instance_id for member in described.members}
            return {
                key: key.member_id not in ids if key.member_id else key.group_instance_id not in instances
                for key in keys
            }

        return await change(
            wanted,
            lambda: _leave(self.cluster, group_id, wanted, reason, deadline.left_ms),
            look,
            lambda key: f"removing {key.group_instance_id or key.member_id} from group {group_id}",
        )


# --- listing and describing


def _types_to_ask_for(types: list[str], versions: NodeVersions) -> list[str]:
    """Return the types to filter by. Brokers that do not support the filter have only classic groups."""
    if versions.serves("ListGroups", _FIRST_WITH_TYPES):
        return types
    asked = {each.lower() for each in types}
    return [] if "classic" in asked and asked <= {"classic", "consumer"} else types


def _may_be_classic(result: GroupDescription | KafkaError) -> bool:
    codes = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
    return isinstance(result, KafkaError) and result.code in codes


def _classic_description(
    row: DescribeGroupsResponse.DescribedGroup, where: Node | None, *, is_old: bool
) -> GroupDescription | KafkaError:
    if (error := failed(row.error_code, row.error_message)) is not None:
        return error
    if is_old and row.group_state == "Dead":
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {row.group_id} not found.")
    is_consumer = row.protocol_type == CONSUMER
    members = tuple(
        GroupMember(
            member_id=each.member_id,
            group_instance_id=each.group_instance_id,
            client_id=each.client_id,
            client_host=each.client_host,
            assignment=_classic_assignment(each.member_assignment) if is_consumer else (),
        )
        for each in row.members
    )
    return GroupDescription(
        row.group_id, "Classic", row.protocol_type, row.group_state, where, row.protocol_data, members
    )


def _classic_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """Decode an assignment of the classic protocol. Data in another format yields no partitions."""
    if len(data) < 2:
        return ()
    version = max(0, min(int.from_bytes(data[:2], "big", signed=True), 3))
    try:
        decoded, _ = wire.decode_from(ConsumerProtocolAssignment, version, data, 2)
    except MalformedError:
        return ()
    return tuple(TopicPartition(each.topic, index) for each in decoded.assigned_partitions for index in each.partitions)


def _consumer_description(row: ConsumerGroupDescribeResponse.DescribedGroup, where: Node | None) -> GroupDescription:
    members = tuple(
        GroupMember(
            member_id=each.member_id,
            group_instance_id=each.instance_id,
            client_id=each.client_id,
            client_host=each.client_host,
            assignment=_assignment(each.assignment),
            target_assignment=_assignment(each.target_assignment),
            member_epoch=each.member_epoch,
            rack_id=each.rack_id,
            subscribed_topics=tuple(each.subscribed_topic_names),
            subscribed_topic_regex=each.subscribed_topic_regex or None,
            is_upgraded={_CLASSIC_MEMBER: False, _CONSUMER_MEMBER: True}.get(each.member_type),
        )
        for each in row.members
    )
    return GroupDescription(
        group_id=row.group_id,
        type="Consumer",
        protocol_type=CONSUMER,
        state=row.group_state,
        coordinator=where,
        assignor=row.assignor_name,
        members=members,
        group_epoch=row.group_epoch,
        assignment_epoch=row.assignment_epoch,
    )


def _assignment(assignment: ConsumerGroupDescribeResponse.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(each.topic_name, index) for each in assignment.topic_partitions for index in each.partitions
    )


# --- offsets


def _offsets_asked(
    group_id: str, partitions: list[TopicPartition] | None
) -> OffsetFetchRequest.OffsetFetchRequestGroup:
    topics = None
    if partitions is not None:
        topics = [
            OffsetFetchRequest.OffsetFetchRequestTopics(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    return OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group_id, topics=topics)


def _old_offsets_asked(
    group_id: str, partitions: list[TopicPartition] | None, require_stable: bool
) -> OffsetFetchRequest:
    topics = None
    if partitions is not None:
        topics = [
            OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    return OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=require_stable)


def _offsets(
    topics: Iterable[OffsetFetchResponse.OffsetFetchResponseTopics | OffsetFetchResponse.OffsetFetchResponseTopic],
) -> GroupOffsets:
    offsets: GroupOffsets = {}
    for topic in topics:
        for row in topic.partitions:
            if (error := failed(row.error_code)) is not None:
                offsets[TopicPartition(topic.name, row.partition_index)] = error
            elif row.committed_offset >= 0:
                epoch = row.committed_leader_epoch if row.committed_leader_epoch >= 0 else None
                offsets[TopicPartition(topic.name, row.partition_index)] = CommittedOffset(
                    row.committed_offset, epoch, row.metadata or ""
                )
    return offsets


def _offsets_to_commit(
    partitions: Iterable[TopicPartition], values: Mapping[TopicPartition, CommittedOffset]
) -> list[OffsetCommitRequest.OffsetCommitRequestTopic]:
    return [
        OffsetCommitRequest.OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequest.OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=values[TopicPartition(topic, index)].offset,
                    committed_leader_epoch=_or(values[TopicPartition(topic, index)].leader_epoch, -1),
                    committed_metadata=values[TopicPartition(topic, index)].metadata,
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(partitions).items()
    ]


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


async def _offsets_of(groups: Groups, group_id: str, partitions: list[TopicPartition]) -> GroupOffsets:
    found = (await groups.list_consumer_group_offsets({group_id: partitions}))[group_id]
    if isinstance(found, KafkaError):
        raise found
    return found


# --- members


def _to_remove(member: GroupMember) -> MemberToRemove:
    if member.group_instance_id is not None:
        return MemberToRemove(group_instance_id=member.group_instance_id)
    return MemberToRemove(member.member_id)


async def _leave(
    cluster: Cluster, group_id: str, members: list[MemberToRemove], reason: str | None, timeout_ms: float
) -> dict[MemberToRemove, KafkaError | None]:
    to = coordinator(group_id)
    versions = await coordinator_versions(cluster, group_id, timeout_ms=timeout_ms)
    if not versions.serves("LeaveGroup", _FIRST_WITH_MANY_MEMBERS):
        return {each: await _leave_alone(cluster, group_id, each, timeout_ms) for each in members}
    response: LeaveGroupResponse = await cluster.call(
        LeaveGroupRequest(
            group_id=group_id,
            members=[
                LeaveGroupRequest.MemberIdentity(
                    member_id=each.member_id, group_instance_id=each.group_instance_id, reason=reason
                )
                for each in members
            ],
        ),
        to,
        timeout_ms=timeout_ms,
    )
    return {
        MemberToRemove("" if row.group_instance_id is not None else row.member_id, row.group_instance_id): failed(
            row.error_code
        )
        for row in response.members
    }


async def _leave_alone(cluster: Cluster, group_id: str, member: MemberToRemove, timeout_ms: float) -> KafkaError | None:
    """Remove one member by its id, as brokers before Kafka 2.4 require."""
    if not member.member_id:
        return KafkaError(ErrorCode.UNSUPPORTED_VERSION, "removing static members came with Kafka 2.4")
    try:
        await cluster.call(
            LeaveGroupRequest(group_id=group_id, member_id=member.member_id),
            coordinator(group_id),
            timeout_ms=timeout_ms,
        )
    except KafkaError as error:
        return error
    return None
