"""MetadataRequest and MetadataResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["MetadataRequest", "MetadataResponse"]


class MetadataRequest(Message):
    """Metadata request, API key 3, versions 0-13, flexible 9+."""

    __slots__ = ("topics", "allow_auto_topic_creation", "include_cluster_authorized_operations", "include_topic_authorized_operations")

    topics: list[MetadataRequest.MetadataRequestTopic] | None
    allow_auto_topic_creation: bool
    include_cluster_authorized_operations: bool
    include_topic_authorized_operations: bool

    def __init__(
        self,
        *,
        topics: list[MetadataRequest.MetadataRequestTopic] | None = EMPTY,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations
        self.unknown_tagged_fields = None

    SCHEMA = """
MetadataRequest request key=3 versions=0-13 flexible=9+ listeners=broker
  topics []MetadataRequestTopic nullable=1+
    topic_id uuid 10+ ignorable
    name string nullable=10+
  allow_auto_topic_creation bool 4+ default=true
  include_cluster_authorized_operations bool 8-10
  include_topic_authorized_operations bool 8+
"""

    class MetadataRequestTopic(Struct):
        __slots__ = ("topic_id", "name")

        topic_id: Uuid
        name: str | None

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            name: str | None = "",
        ) -> None:
            self.topic_id = topic_id
            self.name = name
            self.unknown_tagged_fields = None


class MetadataResponse(Message):
    """Metadata response, API key 3, versions 0-13, flexible 9+."""

    __slots__ = ("throttle_time_ms", "brokers", "cluster_id", "controller_id", "topics", "cluster_authorized_operations", "error_code")

    throttle_time_ms: int
    brokers: list[MetadataResponse.MetadataResponseBroker]
    cluster_id: str | None
    controller_id: int
    topics: list[MetadataResponse.MetadataResponseTopic]
    cluster_authorized_operations: int
    error_code: int

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponse.MetadataResponseBroker] = EMPTY,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponse.MetadataResponseTopic] = EMPTY,
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.brokers = [] if brokers is EMPTY else brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics = [] if topics is EMPTY else topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code
        self.unknown_tagged_fields = None

    SCHEMA = """
MetadataResponse response key=3 versions=0-13 flexible=9+
  throttle_time_ms int32 3+ ignorable
  brokers []MetadataResponseBroker
    node_id int32 key
    host string
    port int32
    rack string 1+ nullable default=null ignorable
  cluster_id string 2+ nullable default=null ignorable
  controller_id int32 1+ default=-1 ignorable
  topics []MetadataResponseTopic
    error_code int16
    name string nullable=12+ key
    topic_id uuid 10+ ignorable
    is_internal bool 1+ ignorable
    partitions []MetadataResponsePartition
      error_code int16
      partition_index int32
      leader_id int32
      leader_epoch int32 7+ default=-1 ignorable
      replica_nodes []int32
      isr_nodes []int32
      offline_replicas []int32 5+ ignorable
    topic_authorized_operations int32 8+ default=-2147483648
  cluster_authorized_operations int32 8-10 default=-2147483648
  error_code int16 13+ ignorable
"""

    class MetadataResponseBroker(Struct):
        __slots__ = ("node_id", "host", "port", "rack")

        node_id: int
        host: str
        port: int
        rack: str | None

        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
        ) -> None:
            self.node_id = node_id
            self.host = host
            self.port = port
            self.rack = rack
            self.unknown_tagged_fields = None

    class MetadataResponsePartition(Struct):
        __slots__ = ("error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes", "offline_replicas")

        error_code: int
        partition_index: int
        leader_id: int
        leader_epoch: int
        replica_nodes: list[int]
        isr_nodes: list[int]
        offline_replicas: list[int]

        def __init__(
            self,
            *,
            error_code: int = 0,
            partition_index: int = 0,
            leader_id: int = 0,
            leader_epoch: int = -1,
            replica_nodes: list[int] = EMPTY,
            isr_nodes: list[int] = EMPTY,
            offline_replicas: list[int] = EMPTY,
        ) -> None:
            self.error_code = error_code
            self.partition_index = partition_index
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.replica_nodes = [] if replica_nodes is EMPTY else replica_nodes
            self.isr_nodes = [] if isr_nodes is EMPTY else isr_nodes
            self.offline_replicas = [] if offline_replicas is EMPTY else offline_replicas
            self.unknown_tagged_fields = None

    class MetadataResponseTopic(Struct):
        __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")

        error_code: int
        name: str | None
        topic_id: Uuid
        is_internal: bool
        partitions: list[MetadataResponse.MetadataResponsePartition]
        topic_authorized_operations: int

        def __init__(
            self,
            *,
            error_code: int = 0,
            name: str | None = "",
            topic_id: Uuid = ZERO_UUID,
            is_internal: bool = False,
            partitions: list[MetadataResponse.MetadataResponsePartition] = EMPTY,
            topic_authorized_operations: int = -2147483648,
        ) -> None:
            self.error_code = error_code
            self.name = name
            self.topic_id = topic_id
            self.is_internal = is_internal
            self.partitions = [] if partitions is EMPTY else partitions
            self.topic_authorized_operations = topic_authorized_operations
            self.unknown_tagged_fields = None
