"""The topology of a streams application as its members send it, and as the record of the group has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.groups.consumer_group import TOPIC_BYTES
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from barnabas.wire.records.group import StreamsGroupTopologyValue

Subtopology = StreamsGroupTopologyValue.Subtopology
TopicInfo = StreamsGroupTopologyValue.TopicInfo


class Topology(NamedTuple):
    """A topology. `subtopology_of` has the subtopology that reads a topic."""

    epoch: int
    subtopologies: Mapping[str, Subtopology]  # by id, in the order of the record
    subtopology_of: Mapping[str, str]
    required_topics: frozenset[str]  # those it reads and its changelogs
    held_bytes: int

    def record_value(self) -> StreamsGroupTopologyValue:
        return StreamsGroupTopologyValue(epoch=self.epoch, subtopologies=list(self.subtopologies.values()))


def topology_of_record(value: StreamsGroupTopologyValue) -> Topology:
    subtopologies = {each.subtopology_id: each for each in value.subtopologies}
    subtopology_of = {name: each.subtopology_id for each in value.subtopologies for name in read_topics(each)}
    changelogs = {info.name for each in value.subtopologies for info in each.state_changelog_topics}
    held_bytes = sum(map(_bytes_of, value.subtopologies))
    return Topology(value.epoch, subtopologies, subtopology_of, frozenset(subtopology_of) | changelogs, held_bytes)


def topology_of_request(given: StreamsGroupHeartbeatRequest.Topology) -> Topology:
    """Return the topology of a member that joins. Raises KafkaError if two of its subtopologies have the same id."""
    value = StreamsGroupTopologyValue(
        epoch=given.epoch, subtopologies=[_subtopology(each) for each in given.subtopologies]
    )
    topology = topology_of_record(value)
    if len(topology.subtopologies) != len(given.subtopologies):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "two subtopologies have the same id")  # Kafka's code
    return topology


def read_topics(subtopology: Subtopology) -> Iterator[str]:
    """Yield the topics that a subtopology reads."""
    yield from subtopology.source_topics
    for info in subtopology.repartition_source_topics:
        yield info.name


def _subtopology(given: StreamsGroupHeartbeatRequest.Subtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=given.subtopology_id,
        source_topics=given.source_topics,
        source_topic_regex=given.source_topic_regex,
        state_changelog_topics=[_topic_info(info) for info in given.state_changelog_topics],
        repartition_sink_topics=given.repartition_sink_topics,
        repartition_source_topics=[_topic_info(info) for info in given.repartition_source_topics],
        copartition_groups=[
            StreamsGroupTopologyValue.CopartitionGroup(
                source_topics=group.source_topics,
                source_topic_regex=group.source_topic_regex,
                repartition_source_topics=group.repartition_source_topics,
            )
            for group in given.copartition_groups
        ],
    )


def _topic_info(given: StreamsGroupHeartbeatRequest.TopicInfo) -> TopicInfo:
    return TopicInfo(
        name=given.name,
        partitions=given.partitions,
        replication_factor=given.replication_factor,
        topic_configs=[
            StreamsGroupTopologyValue.TopicConfig(key=config.key, value=config.value) for config in given.topic_configs
        ],
    )


def _bytes_of(subtopology: Subtopology) -> int:
    infos = [*subtopology.state_changelog_topics, *subtopology.repartition_source_topics]
    names = [*subtopology.source_topics, *subtopology.repartition_sink_topics, *(info.name for info in infos)]
    configs = [config for info in infos for config in info.topic_configs]
    return (
        TOPIC_BYTES * (1 + len(names) + len(configs) + len(subtopology.copartition_groups))
        + sum(map(len, names))
        + sum(len(config.key) + len(config.value) for config in configs)
    )
