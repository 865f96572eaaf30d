"""Topics: list, describe, create and delete them, and add partitions.

APIs: Metadata, DescribeTopicPartitions (Kafka 3.8, else Metadata), CreateTopics, DeleteTopics, CreatePartitions. Topics can be
described and deleted by name or by id (`Uuid`); ids need Kafka 2.8.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from barnabas.client.admin.part import Part, change, failed, pieces
from barnabas.client.cluster import Cluster
from barnabas.client.errors import error_code
from barnabas.client.routing import controller
from barnabas.client.state import ClusterState, Topic, operations_of
from barnabas.wire import ZERO_UUID, ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)

if TYPE_CHECKING:
    from barnabas.security.acl import AclOperation

K = TypeVar("K")

PARTITIONS_IN_A_PAGE = 2_000
"""Default of the broker's max.request.partition.size.limit."""
_DEFAULT = -1
_MAX_RECORDS = 5_000  # controllers refuse requests that need more than 10,000 records
_MAX_TOPICS = 1_000
_FIRST_WITH_DEFAULTS = 4
_FIRST_DELETE_WITH_IDS = 6


class TopicListing(NamedTuple):
    """A listed topic. The replication factor is that of its first partition."""

    name: str
    topic_id: Uuid
    is_internal: bool
    num_partitions: int
    replication_factor: int


class PartitionDescription(NamedTuple):
    """A partition. `leader_id` is -1 if there is no leader. Eligible leader replicas (KIP-966) are None if unknown."""

    partition_index: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    error: ErrorCode = ErrorCode.NONE


class TopicDescription(NamedTuple):
    """A topic and its partitions, in order. The id is zero if the broker is too old to return it."""

    name: str
    topic_id: Uuid
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]
    authorized_operations: frozenset[AclOperation] | None = None  # None: not asked for

    @property
    def replication_factor(self) -> int:
        """Replication factor of the first partition. Others may differ during a reassignment."""
        return len(self.partitions[0].replicas) if self.partitions else 0


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. Numbers that are None use the cluster's defaults (Kafka 2.4). `assignments` has the replicas of each
    partition, the preferred leader first, and replaces both numbers."""

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    configs: Mapping[str, str | None] = field(default_factory=dict)
    assignments: Sequence[Sequence[int]] | None = None


class TopicConfig(NamedTuple):
    """A config of a new topic. `source` is Kafka's number of its source."""

    value: str | None
    source: int
    read_only: bool
    is_sensitive: bool


class CreatedTopic(NamedTuple):
    """A topic that was created, or would be. Numbers are -1 and configs are None if the broker did not return them."""

    topic_id: Uuid
    num_partitions: int
    replication_factor: int
    configs: Mapping[str, TopicConfig] | None


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """The new total number of partitions of a topic. `assignments` has the replicas of each new partition."""

    total_count: int
    assignments: Sequence[Sequence[int]] | None = None


class Topics(Part):
    """Topics and their partitions."""

    async def list_topics(
        self, *, include_internal: bool = False, timeout_ms: float | None = None
    ) -> list[TopicListing]:
        """List all topics that the principal may describe, sorted by name."""
        state = await self.cluster.metadata(None, timeout_ms=timeout_ms)
        return [
            TopicListing(topic.name, topic.id, topic.is_internal, len(topic.partitions), _replication_factor(topic))
            for _, topic in sorted(state.topics.items())
            if include_internal or not topic.is_internal
        ]

    async def describe_topics(
        self,
        topics: Iterable[str | Uuid],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str | Uuid, TopicDescription | KafkaError]:
        """Describe topics by name or id, with one Metadata request.

        >>> import asyncio
        >>> from barnabas.client import Cluster
        >>> from barnabas.testing import Broker
        >>> async def main() -> None:
        ...     async with Broker({"orders": 3}) as broker, Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
        ...         found = await Topics(cluster).describe_topics(["orders", "missing"])
        ...         print(len(found["orders"].partitions), found["missing"])
        >>> asyncio.run(main())
        3 UNKNOWN_TOPIC_OR_PARTITION
        """
        wanted = list(dict.fromkeys(topics))
        found: dict[str | Uuid, TopicDescription | KafkaError] = {}
        for some in pieces(wanted, _MAX_TOPICS):
            state = await self.cluster.metadata(
                some, authorized_operations=include_authorized_operations, timeout_ms=timeout_ms
            )
            found.update(_described(state, some))
        return found

    async def describe_topic_partitions(
        self,
        topics: Iterable[str] | None = None,
        *,
        response_partition_limit: int = PARTITIONS_IN_A_PAGE,
        timeout_ms: float | None = None,
    ) -> AsyncIterator[tuple[str, TopicDescription | KafkaError]]:
        """Yield the names and descriptions of all topics, or of these, in the order of names. Pages have
        `response_partition_limit` partitions.

        Brokers before Kafka 3.8 get one Metadata request. `timeout_ms` applies to each page.
        """
        names = None if topics is None else sorted(set(topics))
        if names == []:
            return
        if not (await self.cluster.versions()).serves("DescribeTopicPartitions"):
            state = await self.cluster.metadata(names, timeout_ms=timeout_ms)
            for name, result in _described(state, sorted(state.topics) if names is None else names).items():
                yield str(name), result
            return
        async for found in _paged(self.cluster, names, response_partition_limit, timeout_ms):
            yield found

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, timeout_ms: float | None = None
    ) -> dict[str, CreatedTopic | KafkaError]:
        """Create topics, or only validate the request.

        If a creation is not confirmed in time, the result is a `TimedOutError`, which tells whether the topic exists.
        """
        results: dict[str, CreatedTopic | KafkaError] = {}
        for some in _by_weight(topics, lambda topic: 1 + len(topic.configs) + _partition_count(topic), _MAX_RECORDS):
            results |= await self._create_some_topics(some, validate_only, timeout_ms)
        return results

    async def _create_some_topics(
        self, topics: list[NewTopic], validate_only: bool, timeout_ms: float | None
    ) -> dict[str, CreatedTopic | KafkaError]:
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics],
            timeout_ms=_wait_ms(self.cluster, timeout_ms),
            validate_only=validate_only,
        )
        uses_defaults = any(topic.assignments is None and None in _numbers(topic) for topic in topics)

        async def ask() -> dict[str, CreatedTopic | KafkaError]:
            response = await self.cluster.call(
                request,
                controller(),
                least_version=_FIRST_WITH_DEFAULTS if uses_defaults else 0,
                feature="a topic with the cluster's default numbers of partitions and replicas"
                if uses_defaults
                else "",
                timeout_ms=timeout_ms,
            )
            return {row.name: failed(row.error_code, row.error_message) or _created(row) for row in response.topics}

        names = [topic.name for topic in topics]
        if validate_only:
            return await ask()
        return await change(
            names, ask, lambda late: _exist(self.cluster, late, timeout_ms), lambda name: f"creating topic {name}"
        )

    async def delete_topics(
        self, topics: Iterable[str | Uuid], *, timeout_ms: float | None = None
    ) -> dict[str | Uuid, KafkaError | None]:
        """Delete topics by name or id, with their records."""
        results: dict[str | Uuid, KafkaError | None] = {}
        for some in pieces(dict.fromkeys(topics), _MAX_TOPICS):
            results |= await self._delete_some(some, timeout_ms)
        return results

    async def _delete_some(
        self, topics: list[str | Uuid], timeout_ms: float | None
    ) -> dict[str | Uuid, KafkaError | None]:
        ids = {topic for topic in topics if isinstance(topic, bytes)}
        versions = await self.cluster.versions(controller())
        request = DeleteTopicsRequest(timeout_ms=_wait_ms(self.cluster, timeout_ms))
        if ids or versions.serves("DeleteTopics", _FIRST_DELETE_WITH_IDS):
            state = DeleteTopicsRequest.DeleteTopicState
            request.topics = [state(topic_id=each) if isinstance(each, bytes) else state(name=each) for each in topics]
        else:
            request.topic_names = [topic for topic in topics if isinstance(topic, str)]

        async def ask() -> dict[str | Uuid, KafkaError | None]:
            response = await self.cluster.call(
                request, controller(), feature="deleting topics by id", timeout_ms=timeout_ms
            )
            return {
                row.topic_id if row.topic_id in ids else row.name or "": failed(row.error_code, row.error_message)
                for row in response.responses
            }

        async def look(late: list[str | Uuid]) -> Mapping[str | Uuid, bool]:
            return {topic: not exists for topic, exists in (await _exist(self.cluster, late, timeout_ms)).items()}

        return await change(topics, ask, look, lambda topic: f"deleting topic {topic}")

    async def create_partitions(
        self,
        topics: Mapping[str, NewPartitions | int],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, KafkaError | None]:
        """Add partitions up to the given total. From then on, records with keys may go to other partitions than before."""
        wanted = {name: NewPartitions(new) if isinstance(new, int) else new for name, new in topics.items()}
        results: dict[str, KafkaError | None] = {}
        for some in _by_weight(wanted, lambda name: wanted[name].total_count, _MAX_RECORDS):
            results |= await self._add_some_partitions({name: wanted[name] for name in some}, validate_only, timeout_ms)
        return results

    async def _add_some_partitions(
        self, topics: Mapping[str, NewPartitions], validate_only: bool, timeout_ms: float | None
    ) -> dict[str, KafkaError | None]:
        row = CreatePartitionsRequest.CreatePartitionsAssignment
        request = CreatePartitionsRequest(
            topics=[
                CreatePartitionsRequest.CreatePartitionsTopic(
                    name=name,
                    count=new.total_count,
                    assignments=None
                    if new.assignments is None
                    else [row(broker_ids=list(brokers)) for brokers in new.assignments],
                )
                for name, new in topics.items()
            ],
            timeout_ms=_wait_ms(self.cluster, timeout_ms),
            validate_only=validate_only,
        )

        async def ask() -> dict[str, KafkaError | None]:
            response = await self.cluster.call(request, controller(), timeout_ms=timeout_ms)
            return {each.name: failed(each.error_code, each.error_message) for each in response.results}

        async def look(late: list[str]) -> Mapping[str, bool]:
            state = await self.cluster.metadata(late, timeout_ms=timeout_ms)
            return {
                name: len(state.topics[name].partitions) == topics[name].total_count
                for name in late
                if name in state.topics
            }

        if validate_only:
            return await ask()
        return await change(list(topics), ask, look, lambda name: f"adding partitions to topic {name}")


# --- responses


def _replication_factor(topic: Topic) -> int:
    return len(next(iter(topic.partitions.values())).replicas) if topic.partitions else 0


def description_of(topic: Topic) -> TopicDescription:
    """Return the description of a topic in the cluster's state."""
    partitions = tuple(
        PartitionDescription(
            each.partition_index,
            each.leader_id,
            each.leader_epoch,
            each.replicas,
            each.isr,
            each.offline_replicas,
            error=each.error,
        )
        for each in topic.partitions.values()
    )
    return TopicDescription(topic.name, topic.id, topic.is_internal, partitions, topic.authorized_operations)


def _described(state: ClusterState, topics: Iterable[str | Uuid]) -> dict[str | Uuid, TopicDescription | KafkaError]:
    by_id = {topic.id: topic for topic in state.topics.values()}
    found: dict[str | Uuid, TopicDescription | KafkaError] = {}
    for each in topics:
        topic = by_id.get(each) if isinstance(each, Uuid) else state.topics.get(each)
        missing = ErrorCode.UNKNOWN_TOPIC_ID if isinstance(each, Uuid) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        found[each] = description_of(topic) if topic else KafkaError(state.errors.get(str(each), missing))
    return found


async def _paged(
    cluster: Cluster, names: list[str] | None, limit: int, timeout_ms: float | None
) -> AsyncIterator[tuple[str, TopicDescription | KafkaError]]:
    """Yield each topic when it is complete. Names that are done are not sent again, because each page would include them."""
    cursor: DescribeTopicPartitionsRequest.Cursor | None = None
    refused: set[str] = set()
    begun: TopicDescription | None = None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names or ()],
            response_partition_limit=limit,
            cursor=cursor,
        )
        response: DescribeTopicPartitionsResponse = await cluster.call(request, timeout_ms=timeout_ms)
        for row in response.topics:
            name = row.name or ""
            if row.error_code:
                if name not in refused:
                    refused.add(name)
                    yield name, KafkaError(error_code(row.error_code))
                continue
            topic = _of_page(row)
            if begun is not None and begun.name == name:
                begun = begun._replace(partitions=begun.partitions + topic.partitions)
                continue
            if begun is not None:
                yield begun.name, begun
            begun = topic
        following = response.next_cursor
        if begun is not None and (following is None or following.topic_name != begun.name):
            yield begun.name, begun
            begun = None
        if following is None:
            return
        cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=following.topic_name, partition_index=following.partition_index
        )
        if names is not None:
            names = [name for name in names if name >= following.topic_name]


def _of_page(row: DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic) -> TopicDescription:
    partitions = tuple(
        PartitionDescription(
            each.partition_index,
            each.leader_id,
            each.leader_epoch,
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
            tuple(each.offline_replicas),
            None if each.eligible_leader_replicas is None else tuple(each.eligible_leader_replicas),
            None if each.last_known_elr is None else tuple(each.last_known_elr),
            error_code(each.error_code) if each.error_code else ErrorCode.NONE,
        )
        for each in row.partitions
    )
    operations = _operations_of(row.topic_authorized_operations)
    return TopicDescription(row.name or "", row.topic_id, row.is_internal, partitions, operations)


_operations_of = cache(operations_of)  # most topics have the same bits


def _created(row: CreateTopicsResponse.CreatableTopicResult) -> CreatedTopic:
    configs = None
    if row.configs is not None and not row.topic_config_error_code:
        configs = {
            each.name: TopicConfig(each.value, each.config_source, each.read_only, each.is_sensitive)
            for each in row.configs
        }
    return CreatedTopic(row.topic_id, row.num_partitions, row.replication_factor, configs)


# --- requests


def _creatable(topic: NewTopic) -> CreateTopicsRequest.CreatableTopic:
    partitions, replication_factor = _numbers(topic)
    return CreateTopicsRequest.CreatableTopic(
        name=topic.name,
        num_partitions=_DEFAULT if partitions is None else partitions,
        replication_factor=_DEFAULT if replication_factor is None else replication_factor,
        assignments=[
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=number, broker_ids=list(brokers))
            for number, brokers in enumerate(topic.assignments or ())
        ],
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
        ],
    )


def _numbers(topic: NewTopic) -> tuple[int | None, int | None]:
    return topic.partitions, topic.replication_factor


def _partition_count(topic: NewTopic) -> int:
    return len(topic.assignments) if topic.assignments is not None else topic.partitions or 1


def _by_weight(items: Iterable[K], weight: Callable[[K], int], most: int) -> Iterator[list[K]]:
    """Split items into lists with a total weight of at most `most`; a heavier item gets its own list.

    >>> list(_by_weight([5, 5, 1, 9, 20, 1], lambda item: item, 10))
    [[5, 5], [1, 9], [20], [1]]
    """
    piece: list[K] = []
    total = 0
    for item in items:
        heavy = weight(item)
        if piece and total + heavy > most:
            yield piece
            piece, total = [], 0
        piece.append(item)
        total += heavy
    if piece:
        yield piece


def _wait_ms(cluster: Cluster, timeout_ms: float | None) -> int:
    """Return the controller's timeout: less than the client's, so that its response arrives in time."""
    longest_ms = cluster.settings.get_int("request.timeout.ms")
    return int(longest_ms if timeout_ms is None else min(timeout_ms, longest_ms))


async def _exist(cluster: Cluster, topics: Iterable[Any], timeout_ms: float | None) -> dict[Any, bool]:
    """Return for each topic whether it exists."""
    asked = list(topics)
    state = await cluster.metadata(asked, timeout_ms=timeout_ms)
    ids = {topic.id for topic in state.topics.values()} - {ZERO_UUID}
    return {each: each in ids if isinstance(each, Uuid) else each in state.topics for each in asked}
