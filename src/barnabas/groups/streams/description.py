"""The description of a committed streams group in StreamsGroupDescribe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.config.hash_order import text_hash
from barnabas.groups.hash_tables import name_order, timeline_order
from barnabas.groups.streams.group import Member, StreamsGroup
from barnabas.groups.streams.internal_topics import ConfiguredTopology, InternalTopic
from barnabas.groups.streams.tasks import AssignedTasks, Tasks
from barnabas.groups.streams.topology import Topology
from barnabas.steps import Slices
from barnabas.wire.messages.streams_group_describe import StreamsGroupDescribeResponse

Row = StreamsGroupDescribeResponse.DescribedGroup
TopicInfo = StreamsGroupDescribeResponse.TopicInfo


def described(group: StreamsGroup, configured: ConfiguredTopology | None) -> Slices[Row]:
    """Return the description of a group. A topology that is ready has the partitions of its internal topics."""
    hashes = {}
    for member_id in group.members:  # an id may be long
        hashes[member_id] = text_hash(member_id)
        yield
    members = []
    for member_id in timeline_order(group.members, hashes.__getitem__):
        members.append(_member(group, group.members[member_id]))
        yield
    topology = None if group.topology is None else _raw_topology(group.topology)
    if configured is not None and configured.is_ready:
        topology = _configured_topology(configured)
    return Row(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology=topology,
        members=members,
    )


def _raw_topology(topology: Topology) -> StreamsGroupDescribeResponse.Topology:
    rows = []
    for subtopology_id, each in sorted(topology.subtopologies.items()):
        repartition = {
            info.name: InternalTopic(info.name, info.partitions, info.replication_factor, _configs(info.topic_configs))
            for info in each.repartition_source_topics
        }
        changelogs = {
            info.name: InternalTopic(info.name, info.partitions, info.replication_factor, _configs(info.topic_configs))
            for info in each.state_changelog_topics
        }
        rows.append(
            _subtopology(subtopology_id, each.source_topics, each.repartition_sink_topics, repartition, changelogs)
        )
    return StreamsGroupDescribeResponse.Topology(epoch=topology.epoch, subtopologies=rows)


def _configs(rows: Iterable[object]) -> dict[str, str]:
    return {row.key: row.value for row in rows}  # type: ignore[attr-defined]


def _configured_topology(configured: ConfiguredTopology) -> StreamsGroupDescribeResponse.Topology:
    rows = [
        _subtopology(
            subtopology_id,
            each.source_topics,
            each.repartition_sink_topics,
            each.repartition_source_topics,
            each.changelog_topics,
        )
        for subtopology_id, each in (configured.subtopologies or {}).items()
    ]
    return StreamsGroupDescribeResponse.Topology(epoch=configured.topology.epoch, subtopologies=rows)


def _subtopology(
    subtopology_id: str,
    sources: Iterable[str],
    sinks: Iterable[str],
    repartition: Mapping[str, InternalTopic],
    changelogs: Mapping[str, InternalTopic],
) -> StreamsGroupDescribeResponse.Subtopology:
    return StreamsGroupDescribeResponse.Subtopology(
        subtopology_id=subtopology_id,
        source_topics=sorted(sources),
        repartition_sink_topics=sorted(sinks),
        repartition_source_topics=_topic_infos(repartition),
        state_changelog_topics=_topic_infos(changelogs),
    )


def _topic_infos(topics: Mapping[str, InternalTopic]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[
                StreamsGroupDescribeResponse.KeyValue(key=key, value=value) for key, value in topic.configs.items()
            ],
        )
        for name, topic in sorted(topics.items())
    ]


def _member(group: StreamsGroup, member: Member) -> StreamsGroupDescribeResponse.Member:
    endpoint = member.user_endpoint
    return StreamsGroupDescribeResponse.Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else StreamsGroupDescribeResponse.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[
            StreamsGroupDescribeResponse.KeyValue(key=key, value=member.client_tags[key])
            for key in name_order(sorted(member.client_tags))
        ],
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(group.target(member.member_id)),
    )


def _assignment(tasks: Tasks | AssignedTasks) -> StreamsGroupDescribeResponse.Assignment:
    return StreamsGroupDescribeResponse.Assignment(
        active_tasks=_task_ids(tasks.active),
        standby_tasks=_task_ids(tasks.standby),
        warmup_tasks=_task_ids(tasks.warmup),
    )


def _task_ids(tasks: Mapping[str, Iterable[int]]) -> list[StreamsGroupDescribeResponse.TaskIds]:
    return [
        StreamsGroupDescribeResponse.TaskIds(subtopology_id=each, partitions=sorted(partitions))
        for each, partitions in sorted(tasks.items())
    ]
