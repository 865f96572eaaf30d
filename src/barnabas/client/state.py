"""What a client knows of the cluster, as a value: nodes, the controller, topics, partitions and who leads them. Pure.

Answers to Metadata of every version, and to DescribeCluster, are merged into it. The rule: a partition's leader epoch never
goes back, for a broker that lags behind may be asked after one that does not; a topic that was made anew under its name
begins anew. Nothing changes in place: whoever holds a state may keep it.
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
"""Endpoint types, as DescribeCluster has them (KIP-919)."""

Asked: TypeAlias = frozenset[str] | None
"""Names of topics; None is all of them."""

_NOT_ASKED = -2147483648
_FIRST_WITH_RELIABLE_EPOCHS = 9
_FIRST_WITHOUT_AUTO_CREATION = 4
_FIRST_WITH_NO_TOPICS = 1
_FIRST_WITH_IDS = 12


class Node(NamedTuple):
    """A broker, or a controller where those were asked for."""

    id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False

    def __str__(self) -> str:
        return f"{self.id} ({address_text(self.host, self.port)})"


class Partition(NamedTuple):
    """A partition; no leader is -1, and so is an epoch that was not told."""

    partition_index: int
    leader_id: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()
    error: ErrorCode = ErrorCode.NONE


class Topic(NamedTuple):
    """A topic; the id is zero where the broker is too old to tell."""

    name: str
    id: Uuid
    is_internal: bool
    partitions: Mapping[int, Partition]
    authorized_operations: frozenset[AclOperation] | None = None  # None: was not asked


class ClusterState(NamedTuple):
    """`topics` has those that were asked for and exist, `errors` why others are not there, by name or by the text of an id."""

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
        """The node that leads a partition, if it is known."""
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


# --- what to ask


class Question(NamedTuple):
    """A request, and which topics its answer tells about; `only` are those that are wanted of them."""

    request: MetadataRequest
    asked: Asked
    only: Asked = None
    least_version: int = 0


def metadata_question(version: int, asked: Asked, *, allow_auto_topic_creation: bool = False) -> Question:
    """How to ask for topics in this version, and none by an empty set.

    Version 0 cannot ask for none, and versions before 4 create what they are asked for: there, all are asked for instead.
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
    """How to ask for topics by their ids, which needs version 12."""
    rows = [MetadataRequest.MetadataRequestTopic(topic_id=each, name=None) for each in ids]
    request = MetadataRequest(topics=rows, allow_auto_topic_creation=False)
    return Question(request, frozenset(), least_version=_FIRST_WITH_IDS)


# --- what is answered


def merge_metadata(
    old: ClusterState, response: MetadataResponse, version: int, asked: Asked, *, only: Asked = None, now_s: float = 0.0
) -> ClusterState:
    """The state after an answer that tells about the topics in `asked`; topics outside of `only` are left out."""
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
    """The state after an answer that tells about nodes, and about no topics."""
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
    """The state without these topics."""
    return state._replace(
        topics=MappingProxyType({name: topic for name, topic in state.topics.items() if name not in names}),
        errors=MappingProxyType({name: code for name, code in state.errors.items() if name not in names}),
    )


def learn_leaders(
    state: ClusterState, leaders: Iterable[tuple[str, int, int, int]], nodes: Iterable[Node] = ()
) -> ClusterState:
    """The state after a broker has told, beside an error, who leads now (KIP-951): topic, partition, leader id, epoch."""
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
    """
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
    """The new topic, with the old row of each partition of which the old one knows a newer epoch."""
    if old == new:
        return old  # so that states share what has not changed
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
