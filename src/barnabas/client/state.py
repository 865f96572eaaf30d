"""The cluster as known to a client: nodes, controller, topics, partitions and leaders. Pure.

Responses to Metadata, in every version, and to DescribeCluster are merged into it. Its one rule: a partition's leader epoch
never goes back, because a broker that lags behind may answer last; a topic that was deleted and created again starts anew. A
state is immutable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from barnabas.client.errors import error_code
from barnabas.config.endpoints import address_text
from barnabas.wire import ZERO_UUID, ErrorCode, Uuid
from barnabas.wire.messages.describe_cluster import DescribeClusterResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from barnabas.security.acl import AclOperation

NO_LEADER = -1
NO_EPOCH = -1
BROKERS, CONTROLLERS = 1, 2
"""Endpoint types of DescribeCluster (KIP-919)."""

Asked: TypeAlias = frozenset[str] | None
"""Names of topics, or None for all topics."""

_NOT_ASKED = -2147483648
_FIRST_WITH_RELIABLE_EPOCHS = 9
_FIRST_WITHOUT_AUTO_CREATION = 4
_FIRST_WITH_NO_TOPICS = 1
_FIRST_WITH_IDS = 12


class Node(NamedTuple):
    """A broker, or a controller if controllers were asked for."""

    id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False

    def __str__(self) -> str:
        return f"{self.id} ({address_text(self.host, self.port)})"


class Partition(NamedTuple):
    """A partition. `leader_id` is -1 if there is no leader, `leader_epoch` is -1 if it is unknown."""

    partition_index: int
    leader_id: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()
    error: ErrorCode = ErrorCode.NONE


class Topic(NamedTuple):
    """A topic. The id is zero if the broker is too old to return it."""

    name: str
    id: Uuid
    is_internal: bool
    partitions: Mapping[int, Partition]
    authorized_operations: frozenset[AclOperation] | None = None  # None: not asked for


class ClusterState(NamedTuple):
    """`topics` has the topics that exist, `errors` the errors of the others, by name or by the text of the id."""

    cluster_id: str | None = None
    controller_id: int = -1
    nodes: Mapping[int, Node] = MappingProxyType({})
    topics: Mapping[str, Topic] = MappingProxyType({})
    errors: Mapping[str, ErrorCode] = MappingProxyType({})
    authorized_operations: frozenset[AclOperation] | None = None
    endpoint_type: int = BROKERS
    generation: int = 0
    updated_at_s: float = float("-inf")

    def partition(self, topic: str, partition: int) -> Partition | None:
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(partition)

    def leader(self, topic: str, partition: int) -> Node | None:
        """Return the leader of a partition, or None if it is unknown."""
        found = self.partition(topic, partition)
        return None if found is None else self.nodes.get(found.leader_id)

    @property
    def controller(self) -> Node | None:
        return self.nodes.get(self.controller_id)

    @property
    def brokers(self) -> Mapping[int, Node]:
        return self.nodes if self.endpoint_type == BROKERS else MappingProxyType({})

    def says_the_same_as(self, other: ClusterState) -> bool:
        return self[:-2] == other[:-2]


EMPTY_STATE = ClusterState()


# --- requests


class Question(NamedTuple):
    """A request, the topics its response covers, and the topics wanted of them (`only`)."""

    request: MetadataRequest
    asked: Asked
    only: Asked = None
    least_version: int = 0


def metadata_question(version: int, asked: Asked, *, allow_auto_topic_creation: bool = False) -> Question:
    """Return the request for these topics in this version; an empty set asks for none.

    Version 0 cannot ask for none, and versions before 4 create missing topics. In these cases all topics are asked for.
    """
    creates = version < _FIRST_WITHOUT_AUTO_CREATION and not allow_auto_topic_creation
    if version < _FIRST_WITH_NO_TOPICS:
        if not asked or creates:
            return Question(MetadataRequest(topics=[]), None, asked)
    elif asked is not None and asked and creates:
        return Question(MetadataRequest(topics=None), None, asked)
    rows = None if asked is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in sorted(asked)]
    if version < _FIRST_WITHOUT_AUTO_CREATION:
        return Question(MetadataRequest(topics=rows), asked)
    return Question(MetadataRequest(topics=rows, allow_auto_topic_creation=allow_auto_topic_creation), asked)


def metadata_question_by_id(version: int, ids: Iterable[Uuid]) -> Question:
    """Return the request for topics by id, which needs version 12."""
    rows = [MetadataRequest.MetadataRequestTopic(topic_id=each, name=None) for each in ids]
    request = MetadataRequest(topics=rows, allow_auto_topic_creation=False)
    return Question(request, frozenset(), least_version=_FIRST_WITH_IDS)


# --- responses


def merge_metadata(
    old: ClusterState, response: MetadataResponse, version: int, asked: Asked, *, only: Asked = None, now_s: float = 0.0
) -> ClusterState:
    """Merge a response that covers the topics in `asked`; topics not in `only` are left out."""
    told = response.topics if only is None else [row for row in response.topics if row.name in only]
    reliable = version >= _FIRST_WITH_RELIABLE_EPOCHS
    topics: dict[str, Topic] = {}
    errors: dict[str, ErrorCode] = {}
    for row in told:
        if row.error_code or row.name is None:
            errors[row.name or str(row.topic_id)] = error_code(row.error_code)
        else:
            topics[row.name] = _newer(old.topics.get(row.name), _topic(row, reliable))
    wanted = only if only is not None else asked
    for name in (wanted or frozenset()) - topics.keys() - errors.keys():
        errors[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if wanted is not None:
        topics = {name: topic for name, topic in old.topics.items() if name not in wanted} | topics
        errors = {name: code for name, code in old.errors.items() if name not in wanted} | errors
    return ClusterState(
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        nodes=MappingProxyType(
            {row.node_id: Node(row.node_id, row.host, row.port, row.rack) for row in response.brokers}
        ),
        topics=MappingProxyType(topics),
        errors=MappingProxyType(errors),
        authorized_operations=operations_of(response.cluster_authorized_operations),
        endpoint_type=BROKERS,
        generation=old.generation + 1,
        updated_at_s=now_s,
    )


def merge_describe_cluster(old: ClusterState, response: DescribeClusterResponse, *, now_s: float = 0.0) -> ClusterState:
    """Merge a response that has nodes, and no topics."""
    return old._replace(
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        nodes=MappingProxyType(
            {
                row.broker_id: Node(row.broker_id, row.host, row.port, row.rack, row.is_fenced)
                for row in response.brokers
            }
        ),
        authorized_operations=operations_of(response.cluster_authorized_operations),
        endpoint_type=response.endpoint_type,
        generation=old.generation + 1,
        updated_at_s=now_s,
    )


def forget(state: ClusterState, names: Collection[str]) -> ClusterState:
    """Return the state without these topics."""
    return state._replace(
        topics=MappingProxyType({name: topic for name, topic in state.topics.items() if name not in names}),
        errors=MappingProxyType({name: code for name, code in state.errors.items() if name not in names}),
    )


def learn_leaders(
    state: ClusterState, leaders: Iterable[tuple[str, int, int, int]], nodes: Iterable[Node] = ()
) -> ClusterState:
    """Merge new leaders that came with an error (KIP-951): topic, partition, leader id, leader epoch."""
    topics = dict(state.topics)
    for name, index, leader_id, leader_epoch in leaders:
        topic = topics.get(name)
        partition = None if topic is None else topic.partitions.get(index)
        if topic is None or partition is None or leader_epoch <= partition.leader_epoch:
            continue
        moved = partition._replace(leader_id=leader_id, leader_epoch=leader_epoch, error=ErrorCode.NONE)
        topics[name] = topic._replace(partitions=MappingProxyType({**topic.partitions, index: moved}))
    known = {**state.nodes, **{node.id: node for node in nodes}}
    return state._replace(
        topics=MappingProxyType(topics), nodes=MappingProxyType(known), generation=state.generation + 1
    )


def operations_of(bits: int) -> frozenset[AclOperation] | None:
    """Decode the bits of authorized operations; None if they were not asked for.

    >>> sorted(operation.name for operation in operations_of(0b1000_0000_1000))
    ['ALTER_CONFIGS', 'READ']
    """
    if bits == _NOT_ASKED:
        return None
    from barnabas.security.acl import AclOperation  # noqa: PLC0415  (few ask for this, and it takes long to import)

    return frozenset(operation for operation in AclOperation if operation > AclOperation.ALL and bits >> operation & 1)


def _topic(row: MetadataResponse.MetadataResponseTopic, reliable: bool) -> Topic:
    partitions = {
        each.partition_index: Partition(
            each.partition_index,
            each.leader_id,
            each.leader_epoch if reliable else NO_EPOCH,
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
            tuple(each.offline_replicas),
            error_code(each.error_code) if each.error_code else ErrorCode.NONE,
        )
        for each in row.partitions
    }
    return Topic(
        row.name or "",
        row.topic_id,
        row.is_internal,
        MappingProxyType(dict(sorted(partitions.items()))),
        operations_of(row.topic_authorized_operations),
    )


def _newer(old: Topic | None, new: Topic) -> Topic:
    """Return the new topic, but keep each old partition that has a newer leader epoch."""
    if old == new:
        return old  # states share topics that have not changed
    if old is None or (old.id != new.id and ZERO_UUID not in (old.id, new.id)):
        return new
    kept = {
        index: before
        for index, partition in new.partitions.items()
        if partition.leader_epoch != NO_EPOCH
        and (before := old.partitions.get(index)) is not None
        and before.leader_epoch > partition.leader_epoch
    }
    return new._replace(partitions=MappingProxyType({**new.partitions, **kept})) if kept else new
