"""Streams groups (KIP-1071): StreamsGroupDescribe.

Its one rule: what a member has are tasks; a task is one partition of all source topics of a subtopology. Streams groups commit
offsets as consumer groups do, so `Groups` lists, alters and deletes their offsets, and lists and deletes the groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.client.admin.coordinators import ask_coordinators, coordinator_of
from barnabas.client.admin.part import Part, failed
from barnabas.client.records import TopicPartition
from barnabas.client.routing import coordinator
from barnabas.client.state import Node
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

STREAMS = "streams"
"""Protocol type of streams groups."""


@dataclass(frozen=True, slots=True, order=True)
class TaskId:
    """A task: a subtopology and a partition."""

    subtopology_id: str
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology_id}_{self.partition}"


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    """The tasks of a member."""

    active: tuple[TaskId, ...]
    standby: tuple[TaskId, ...]
    warmup: tuple[TaskId, ...]


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """An internal topic of an application. `partitions` is 0 if the number follows from the source topics."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Subtopology:
    """A part of a topology, with its topics."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: tuple[InternalTopic, ...]
    repartition_source_topics: tuple[InternalTopic, ...]


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """A member of a streams group. `user_endpoint` is where it answers queries: host and port."""

    member_id: str
    member_epoch: int
    group_instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topology_epoch: int
    process_id: str
    user_endpoint: tuple[str, int] | None
    client_tags: Mapping[str, str]
    task_offsets: Mapping[TaskId, int]
    task_end_offsets: Mapping[TaskId, int]
    tasks: TaskAssignment
    target_tasks: TaskAssignment
    is_classic: bool


@dataclass(frozen=True, slots=True)
class StreamsGroupDescription:
    """A streams group with its topology and its members."""

    group_id: str
    state: str
    coordinator: Node | None
    group_epoch: int
    assignment_epoch: int
    topology_epoch: int | None
    subtopologies: tuple[Subtopology, ...]
    members: tuple[StreamsMember, ...]

    def partitions(self, tasks: Iterable[TaskId]) -> list[TopicPartition]:
        """Return the partitions of the source topics of tasks."""
        by_id = {each.subtopology_id: each for each in self.subtopologies}
        return [
            TopicPartition(topic, task.partition)
            for task in tasks
            if (found := by_id.get(task.subtopology_id)) is not None
            for topic in (*found.source_topics, *(each.name for each in found.repartition_source_topics))
        ]


class StreamsGroups(Part):
    """Streams groups."""

    async def describe_streams_groups(
        self, group_ids: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, StreamsGroupDescription | KafkaError]:
        """Describe streams groups. The result of a missing group, or of another type, is GROUP_ID_NOT_FOUND."""

        async def ask(some: list[str], left_ms: float) -> dict[str, StreamsGroupDescription | KafkaError]:
            response: StreamsGroupDescribeResponse = await self.cluster.call(
                StreamsGroupDescribeRequest(group_ids=some),
                coordinator(some[0]),
                feature="streams groups",
                timeout_ms=left_ms,
            )
            where = await coordinator_of(self.cluster, some[0])
            return {
                row.group_id: failed(row.error_code, row.error_message) or _description(row, where)
                for row in response.groups
            }

        return await ask_coordinators(self.cluster, group_ids, ask, timeout_ms=timeout_ms)


def _description(row: StreamsGroupDescribeResponse.DescribedGroup, where: Node | None) -> StreamsGroupDescription:
    topology = row.topology
    return StreamsGroupDescription(
        group_id=row.group_id,
        state=row.group_state,
        coordinator=where,
        group_epoch=row.group_epoch,
        assignment_epoch=row.assignment_epoch,
        topology_epoch=None if topology is None else topology.epoch,
        subtopologies=() if topology is None else tuple(map(_subtopology, topology.subtopologies or ())),
        members=tuple(map(_member, row.members)),
    )


def _subtopology(row: StreamsGroupDescribeResponse.Subtopology) -> Subtopology:
    return Subtopology(
        row.subtopology_id,
        tuple(row.source_topics),
        tuple(row.repartition_sink_topics),
        tuple(map(_internal_topic, row.state_changelog_topics)),
        tuple(map(_internal_topic, row.repartition_source_topics)),
    )


def _internal_topic(row: StreamsGroupDescribeResponse.TopicInfo) -> InternalTopic:
    configs = {each.key: each.value for each in row.topic_configs}
    return InternalTopic(row.name, row.partitions, row.replication_factor, configs)


def _member(row: StreamsGroupDescribeResponse.Member) -> StreamsMember:
    endpoint = row.user_endpoint
    return StreamsMember(
        member_id=row.member_id,
        member_epoch=row.member_epoch,
        group_instance_id=row.instance_id,
        rack_id=row.rack_id,
        client_id=row.client_id,
        client_host=row.client_host,
        topology_epoch=row.topology_epoch,
        process_id=row.process_id,
        user_endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        client_tags={each.key: each.value for each in row.client_tags},
        task_offsets={TaskId(each.subtopology_id, each.partition): each.offset for each in row.task_offsets},
        task_end_offsets={TaskId(each.subtopology_id, each.partition): each.offset for each in row.task_end_offsets},
        tasks=_tasks(row.assignment),
        target_tasks=_tasks(row.target_assignment),
        is_classic=row.is_classic,
    )


def _tasks(row: StreamsGroupDescribeResponse.Assignment) -> TaskAssignment:
    def ids(rows: Iterable[StreamsGroupDescribeResponse.TaskIds]) -> tuple[TaskId, ...]:
        return tuple(TaskId(each.subtopology_id, index) for each in rows for index in each.partitions)

    return TaskAssignment(ids(row.active_tasks), ids(row.standby_tasks), ids(row.warmup_tasks))
