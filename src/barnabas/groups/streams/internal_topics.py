"""Configures a topology: numbers of tasks, and the internal topics that it needs.

Pure. A repartition topic has the number of partitions that the topology states, or else the largest number of the topics
that the subtopologies writing to it read. Topics that are joined must have the same number: repartition topics are
adapted, and a mismatch of others is reported. A changelog has as many partitions as its subtopology has tasks. Loops
pause, because a client decides their length.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple, TypeVar

from barnabas.groups.hash_tables import name_order
from barnabas.groups.streams.topology import Subtopology, TopicInfo, Topology, read_topics
from barnabas.metadata.topics import Topics
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError

T = TypeVar("T")

MAX_SHOWN = 3  # topics in a status


class Status(IntEnum):
    """Statuses in responses to heartbeats."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class StatusDetail(NamedTuple):
    status: Status
    detail: str


class InternalTopic(NamedTuple):
    """A repartition or changelog topic as the application needs it."""

    name: str
    partitions: int
    replication_factor: int  # 0: the default of the cluster
    configs: Mapping[str, str]


class ConfiguredSubtopology(NamedTuple):
    task_count: int
    source_topics: frozenset[str]
    repartition_source_topics: Mapping[str, InternalTopic]
    repartition_sink_topics: frozenset[str]
    changelog_topics: Mapping[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        return bool(self.changelog_topics)


class ConfiguredTopology(NamedTuple):
    """A topology after it was compared with the topics that exist. It is ready if it has no problem."""

    topology: Topology
    metadata_hash: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None  # sorted by id
    missing: Mapping[str, InternalTopic]  # internal topics to be created
    problem: StatusDetail | None

    @property
    def is_ready(self) -> bool:
        return self.problem is None


class _Problem(Exception):  # noqa: N818 - becomes a status, not an error
    def __init__(self, status: Status, detail: str) -> None:
        self.found = StatusDetail(status, detail)


def configure(topology: Topology, metadata_hash: int, topics: Topics) -> Slices[ConfiguredTopology]:
    """Return the configured topology. Raises STREAMS_INVALID_TOPOLOGY if no topics could make it work."""
    try:
        counts = _PartitionCounts(topics)
        ids = name_order(topology.subtopologies)
        subtopologies = [topology.subtopologies[each] for each in ids]
        _check_source_topics(subtopologies, topics)
        yield
        yield from _decide_repartition_topics(subtopologies, counts)
        yield from _enforce_copartitioning(subtopologies, counts)
        yield from _decide_changelogs(subtopologies, counts)
        configured = {}
        for each in sorted(ids):
            configured[each] = _configured(topology.subtopologies[each], counts)
            yield
        missing = yield from _missing(configured, topology, topics)
    except _Problem as problem:
        return ConfiguredTopology(topology, metadata_hash, None, {}, problem.found)
    detail = None
    if missing:
        shown = _summary(missing)
        detail = StatusDetail(Status.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {shown}")
    return ConfiguredTopology(topology, metadata_hash, configured, missing, detail)


class _PartitionCounts:
    """Numbers of partitions: of topics that exist, and of others as they are decided."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self.decided: dict[str, int] = {}

    def get(self, name: str) -> int | None:
        topic = self._topics.get(name)
        return self.decided.get(name) if topic is None else len(topic.partitions)

    def of(self, name: str) -> int:
        count = self.get(name)
        if count is None:
            raise _impossible(f"the number of partitions of {name} is unknown")
        return count


def _impossible(message: str) -> KafkaError:
    """An error of a topology that no honest client sends, with Kafka's code."""
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _summary(names: Collection[str]) -> str:
    more = f" and {len(names) - MAX_SHOWN} additional topics" if len(names) > MAX_SHOWN else ""
    return ", ".join(list(names)[:MAX_SHOWN]) + more


def _check_source_topics(subtopologies: Iterable[Subtopology], topics: Topics) -> None:
    missing = {name for each in subtopologies for name in each.source_topics if name not in topics.ids}
    if missing:
        raise _Problem(Status.MISSING_SOURCE_TOPICS, f"Source topics {_summary(sorted(missing))} are missing.")


# --- repartition topics


def _decide_repartition_topics(subtopologies: list[Subtopology], counts: _PartitionCounts) -> Slices[None]:
    found = {
        info.name: info.partitions
        for each in subtopologies
        for info in each.repartition_source_topics
        if info.partitions
    }
    undecided = [each for each in subtopologies if each.repartition_sink_topics]
    while undecided:
        progress = False
        waiting = []
        for each in undecided:
            yield
            sinks = [name for name in each.repartition_sink_topics if name not in found]
            if not sinks:
                continue
            for name in sinks:
                # A sink that was decided just now may be a source of the same subtopology.
                count = _largest_source(each, found, counts)
                if count is None:
                    waiting.append(each)
                    break
                found[name] = count
                progress = True
        if waiting and not progress:
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics. There may be loops in the topology that "
                "cannot be resolved."
            )
        undecided = waiting
    if any(info.name not in found for each in subtopologies for info in each.repartition_source_topics):
        raise _invalid(
            "Failed to compute number of partitions for all repartition topics, because a repartition source topic is never "
            "used as a sink topic."
        )
    counts.decided.update(found)


def _largest_source(subtopology: Subtopology, found: Mapping[str, int], counts: _PartitionCounts) -> int | None:
    known = [found.get(info.name) for info in subtopology.repartition_source_topics]
    known += [counts.get(name) for name in subtopology.source_topics]
    return max((count for count in known if count is not None), default=None)


# --- copartitioning


def _enforce_copartitioning(subtopologies: list[Subtopology], counts: _PartitionCounts) -> Slices[None]:
    infos = [info for each in subtopologies for info in each.repartition_source_topics]
    fixed = dict.fromkeys(name_order(dict.fromkeys(info.name for info in infos if info.partitions)))
    flexible = {info.name for info in infos if not info.partitions}
    for each in subtopologies:
        for group in each.copartition_groups:
            yield
            sources, repartition = each.source_topics, each.repartition_source_topics
            names = [_at(sources, index) for index in group.source_topics]
            names += [_at(repartition, index).name for index in group.repartition_source_topics]
            if names:
                _enforce(name_order(dict.fromkeys(names)), fixed, flexible, counts)


def _at(rows: list[T], index: int) -> T:
    if not 0 <= index < len(rows):
        raise _impossible("a copartition group names a topic that its subtopology does not have")
    return rows[index]


def _enforce(names: list[str], fixed: Mapping[str, None], flexible: Collection[str], counts: _PartitionCounts) -> None:
    """Give the repartition topics of a copartition group the number of partitions of the group."""
    repartition = {name: counts.of(name) for name in names if name in fixed or name in flexible}
    others = {name: counts.of(name) for name in names if name not in repartition}
    if others:
        wanted = _same_count(others, others)
    elif fixed:
        wanted = _same_count({name: counts.of(name) for name in fixed}, repartition)
    else:
        wanted = max(repartition.values())
    for name, count in repartition.items():
        if name in fixed and count != wanted:
            detail = (
                f"Number of partitions [{count}] of repartition topic [{name}] doesn't match number of partitions [{wanted}] "
                "of the source topic."
            )
            raise _Problem(Status.INCORRECTLY_PARTITIONED_TOPICS, detail)
        counts.decided[name] = wanted


def _same_count(compared: Mapping[str, int], shown: Mapping[str, int]) -> int:
    found = next(iter(compared.values()))
    if any(count != found for count in compared.values()):
        text = ", ".join(f"{name}={count}" for name, count in sorted(shown.items()))
        detail = f"Following topics do not have the same number of partitions: [{{{text}}}]"
        raise _Problem(Status.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return found


# --- changelogs and tasks


def _decide_changelogs(subtopologies: list[Subtopology], counts: _PartitionCounts) -> Slices[None]:
    found = {}
    for each in subtopologies:
        yield
        largest = max(map(counts.of, read_topics(each)), default=None)
        if largest is None:
            raise _invalid(f"No source topics found for subtopology {each.subtopology_id}")
        found.update({info.name: largest for info in each.state_changelog_topics})
    counts.decided.update(found)


def _configured(subtopology: Subtopology, counts: _PartitionCounts) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        max(map(counts.of, read_topics(subtopology))),
        frozenset(subtopology.source_topics),
        {info.name: _internal_topic(info, counts) for info in subtopology.repartition_source_topics},
        frozenset(subtopology.repartition_sink_topics),
        {info.name: _internal_topic(info, counts) for info in subtopology.state_changelog_topics},
    )


def _internal_topic(info: TopicInfo, counts: _PartitionCounts) -> InternalTopic:
    partitions = info.partitions or counts.decided[info.name]
    if partitions < 1:
        raise _impossible(f"{info.name} needs at least one partition")
    configs = {config.key: config.value for config in info.topic_configs}
    return InternalTopic(
        info.name, partitions, info.replication_factor, {key: configs[key] for key in name_order(configs)}
    )


def _missing(
    configured: Mapping[str, ConfiguredSubtopology], topology: Topology, topics: Topics
) -> Slices[dict[str, InternalTopic]]:
    """Return the internal topics that do not exist, in the order of Kafka's table."""
    wanted: dict[str, InternalTopic] = {}
    for each in configured.values():
        wanted.update(each.repartition_source_topics)
        wanted.update(each.changelog_topics)
        yield
    for name in name_order(sorted(topology.required_topics)):
        topic, expected = topics.get(name), wanted.get(name)
        if topic is None or expected is None:
            continue
        if len(topic.partitions) != expected.partitions:
            detail = (
                f"Existing topic {name} has different number of partitions: expected {expected.partitions}, found "
                f"{len(topic.partitions)}"
            )
            raise _Problem(Status.INCORRECTLY_PARTITIONED_TOPICS, detail)
    order = name_order(wanted)  # the table has grown for all of them
    return {name: wanted[name] for name in order if name not in topics.ids}
