"""The state of topics: partitions, settings, ongoing reassignments, and live brokers.

Its one rule: judging is pure. `look_at` asks the cluster, in as few requests as possible. `PartitionFacts` judges a partition
by the criteria of Kafka's own tool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from barnabas.client.admin.reassignments import PartitionReassignment
    from barnabas.client.admin.topics import PartitionDescription, TopicDescription
    from barnabas.client.cluster import Cluster
    from barnabas.wire.errors import KafkaError

MIN_ISR = "min.insync.replicas"
OF_THE_TOPIC, DEFAULT = 1, 5
"""The source of a setting, by its number in DescribeConfigs."""
_TOPIC = 2
_TOPICS_IN_A_REQUEST = 250
OK, UNDER_REPLICATED, UNDER_MIN_ISR, OFFLINE = "ok", "under-replicated", "under-min-isr", "offline"


class PartitionFacts(NamedTuple):
    """A partition, its reassignment if there is one, and `min_isr` if it is known."""

    partition: PartitionDescription
    reassignment: PartitionReassignment | None
    min_isr: int | None
    live: frozenset[int]

    @property
    def replication_factor(self) -> int:
        """The number of replicas, without those that are still being added."""
        moving = self.reassignment
        if moving is None or not {*moving.adding_replicas, *moving.removing_replicas} & set(self.partition.replicas):
            return len(self.partition.replicas)
        return len(moving.replicas) - len(moving.adding_replicas)

    @property
    def is_under_replicated(self) -> bool:
        return self.replication_factor > len(self.partition.isr)

    @property
    def is_unavailable(self) -> bool:
        """True if there is no live leader."""
        return self.partition.leader_id not in self.live

    @property
    def is_under_min_isr(self) -> bool:
        return self.is_unavailable or (self.min_isr is not None and len(self.partition.isr) < self.min_isr)

    @property
    def is_at_min_isr(self) -> bool:
        return len(self.partition.isr) == self.min_isr

    @property
    def status(self) -> str:
        """The most severe of its problems."""
        if self.is_unavailable:
            return OFFLINE
        if self.is_under_min_isr:
            return UNDER_MIN_ISR
        return UNDER_REPLICATED if self.is_under_replicated else OK


class Settings(NamedTuple):
    """The settings of a topic that differ from Kafka's defaults, with their sources. `names` has the names of all settings."""

    names: tuple[str, ...]
    changed: dict[str, tuple[str | None, int]]
    min_isr: int | None

    def overrides(self) -> dict[str, str | None]:
        """The settings of the topic itself, by name."""
        return {name: value for name, (value, source) in sorted(self.changed.items()) if source == OF_THE_TOPIC}


class TopicFacts(NamedTuple):
    """A topic. `settings` is an error if access to them is denied, and None if they were not requested."""

    topic: TopicDescription
    partitions: tuple[PartitionFacts, ...]
    settings: Settings | KafkaError | None


class Found(NamedTuple):
    """Topics by name, and those that could not be described."""

    topics: list[TopicFacts]
    errors: dict[str, KafkaError]


async def look_at(
    cluster: Cluster,
    names: Iterable[str] | None,
    *,
    with_configs: bool = True,
    config_keys: Sequence[str] | None = None,
    partition_limit: int = 2_000,
) -> Found:
    """Describe these topics, or all if `names` is None; with all settings, or only those in `config_keys`."""
    from barnabas.client.admin.topics import Topics
    from barnabas.wire.errors import KafkaError

    described: list[TopicDescription] = []
    errors: dict[str, KafkaError] = {}
    asking: list[asyncio.Task[dict[str, Settings | KafkaError]]] = []
    asked = 0
    pages = Topics(cluster).describe_topic_partitions(names, response_partition_limit=partition_limit)
    try:
        async for name, topic in pages:
            if isinstance(topic, KafkaError):
                errors[name] = topic
                continue
            described.append(topic)
            if with_configs and len(described) - asked == _TOPICS_IN_A_REQUEST:
                # The broker prepares this answer while the next page is read here.
                some = [topic.name for topic in described[asked:]]
                asking.append(asyncio.create_task(topic_settings(cluster, some, config_keys)))
                asked = len(described)
        early = {name: each for found in await asyncio.gather(*asking) for name, each in found.items()}
    finally:
        for task in asking:
            task.cancel()
    facts = await facts_of(cluster, described, with_configs=with_configs, config_keys=config_keys, known=early)
    return Found(facts, errors)


async def facts_of(
    cluster: Cluster,
    described: Iterable[TopicDescription],
    *,
    with_configs: bool = True,
    config_keys: Sequence[str] | None = None,
    known: Mapping[str, Settings | KafkaError] = MappingProxyType({}),
) -> list[TopicFacts]:
    """Add settings, reassignments and live brokers to these topics. Settings that are `known` are not requested."""
    topics = list(described)
    live = frozenset((await cluster.metadata([])).nodes)
    settings = dict(known)
    if with_configs:
        settings |= await topic_settings(cluster, [each.name for each in topics if each.name not in known], config_keys)
    moving = await _reassignments(cluster) if topics else {}
    return [_facts(topic, settings.get(topic.name), moving, live) for topic in topics]


def _facts(
    topic: TopicDescription,
    settings: Settings | KafkaError | None,
    moving: Mapping[tuple[str, int], PartitionReassignment],
    live: frozenset[int],
) -> TopicFacts:
    min_isr = settings.min_isr if isinstance(settings, Settings) else None
    partitions = tuple(
        PartitionFacts(each, moving.get((topic.name, each.partition_index)) if moving else None, min_isr, live)
        for each in topic.partitions
    )
    return TopicFacts(topic, partitions, settings)


async def topic_settings(
    cluster: Cluster, names: list[str], keys: Sequence[str] | None
) -> dict[str, Settings | KafkaError]:
    """Return the settings of each topic, or its error: all settings, or only these `keys`.

    Does not use `client.admin.Configs`, which creates an object for each of thousands of defaults.
    """
    from barnabas.client.admin.part import failed, pieces
    from barnabas.wire.messages.describe_configs import DescribeConfigsRequest

    resource = DescribeConfigsRequest.DescribeConfigsResource
    found: dict[str, Settings | KafkaError] = {}

    async def ask(some: list[str]) -> None:
        wanted = None if keys is None else list(keys)
        rows = [resource(resource_type=_TOPIC, resource_name=name, configuration_keys=wanted) for name in some]
        response = await cluster.call(DescribeConfigsRequest(resources=rows), least_version=1)
        for result in response.results:
            error = failed(result.error_code, result.error_message)
            found[result.resource_name] = error or _settings_of(result.configs)

    # All at once: the broker prepares the next answer while one is read here.
    await asyncio.gather(*(ask(some) for some in pieces(names, _TOPICS_IN_A_REQUEST)))
    return found


def _settings_of(configs: list[Any]) -> Settings:
    changed = {row.name: (row.value, row.config_source) for row in configs if row.config_source != DEFAULT}
    min_isr = next((int(row.value) for row in configs if row.name == MIN_ISR and row.value), None)
    return Settings(tuple([row.name for row in configs]), changed, min_isr)


async def _reassignments(cluster: Cluster) -> dict[tuple[str, int], PartitionReassignment]:
    """Return the ongoing reassignments; empty if access is denied or the broker is too old."""
    from barnabas.client.admin.reassignments import Reassignments
    from barnabas.client.errors import UnsupportedByNodeError
    from barnabas.wire.errors import ErrorCode, KafkaError

    try:
        return await Reassignments(cluster).list_partition_reassignments()
    except UnsupportedByNodeError:
        return {}
    except KafkaError as error:
        if error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return {}
        raise
