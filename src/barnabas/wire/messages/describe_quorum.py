"""DescribeQuorumRequest and DescribeQuorumResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["DescribeQuorumRequest", "DescribeQuorumResponse"]


class DescribeQuorumRequest(Message):
    """DescribeQuorum request, API key 55, versions 0-2, flexible 0+."""

    __slots__ = ("topics",)

    topics: list[DescribeQuorumRequest.TopicData]

    def __init__(
        self,
        *,
        topics: list[DescribeQuorumRequest.TopicData] = EMPTY,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeQuorumRequest request key=55 versions=0-2 flexible=0+ listeners=broker,controller
  topics []TopicData
    topic_name string
    partitions []PartitionData
      partition_index int32
"""

    class PartitionData(Struct):
        __slots__ = ("partition_index",)

        partition_index: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.unknown_tagged_fields = None

    class TopicData(Struct):
        __slots__ = ("topic_name", "partitions")

        topic_name: str
        partitions: list[DescribeQuorumRequest.PartitionData]

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[DescribeQuorumRequest.PartitionData] = EMPTY,
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class DescribeQuorumResponse(Message):
    """DescribeQuorum response, API key 55, versions 0-2, flexible 0+."""

    __slots__ = ("error_code", "error_message", "topics", "nodes")

    error_code: int
    error_message: str | None
    topics: list[DescribeQuorumResponse.TopicData]
    nodes: list[DescribeQuorumResponse.Node]

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[DescribeQuorumResponse.TopicData] = EMPTY,
        nodes: list[DescribeQuorumResponse.Node] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is EMPTY else topics
        self.nodes = [] if nodes is EMPTY else nodes
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeQuorumResponse response key=55 versions=0-2 flexible=0+
  error_code int16
  error_message string 2+ nullable ignorable
  topics []TopicData
    topic_name string
    partitions []PartitionData
      partition_index int32
      error_code int16
      error_message string 2+ nullable ignorable
      leader_id int32
      leader_epoch int32
      high_watermark int64
      current_voters []ReplicaState
      observers []ReplicaState
  nodes []Node 2+
    node_id int32 2+ key
    listeners []Listener 2+
      name string 2+ key
      host string 2+
      port uint16 2+
  struct ReplicaState
    replica_id int32
    replica_directory_id uuid 2+
    log_end_offset int64
    last_fetch_timestamp int64 1+ default=-1 ignorable
    last_caught_up_timestamp int64 1+ default=-1 ignorable
"""

    class PartitionData(Struct):
        __slots__ = ("partition_index", "error_code", "error_message", "leader_id", "leader_epoch", "high_watermark", "current_voters", "observers")

        partition_index: int
        error_code: int
        error_message: str | None
        leader_id: int
        leader_epoch: int
        high_watermark: int
        current_voters: list[DescribeQuorumResponse.ReplicaState]
        observers: list[DescribeQuorumResponse.ReplicaState]

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = "",
            leader_id: int = 0,
            leader_epoch: int = 0,
            high_watermark: int = 0,
            current_voters: list[DescribeQuorumResponse.ReplicaState] = EMPTY,
            observers: list[DescribeQuorumResponse.ReplicaState] = EMPTY,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.error_message = error_message
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.high_watermark = high_watermark
            self.current_voters = [] if current_voters is EMPTY else current_voters
            self.observers = [] if observers is EMPTY else observers
            self.unknown_tagged_fields = None

    class TopicData(Struct):
        __slots__ = ("topic_name", "partitions")

        topic_name: str
        partitions: list[DescribeQuorumResponse.PartitionData]

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[DescribeQuorumResponse.PartitionData] = EMPTY,
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class Listener(Struct):
        __slots__ = ("name", "host", "port")

        name: str
        host: str
        port: int

        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
        ) -> None:
            self.name = name
            self.host = host
            self.port = port
            self.unknown_tagged_fields = None

    class Node(Struct):
        __slots__ = ("node_id", "listeners")

        node_id: int
        listeners: list[DescribeQuorumResponse.Listener]

        def __init__(
            self,
            *,
            node_id: int = 0,
            listeners: list[DescribeQuorumResponse.Listener] = EMPTY,
        ) -> None:
            self.node_id = node_id
            self.listeners = [] if listeners is EMPTY else listeners
            self.unknown_tagged_fields = None

    class ReplicaState(Struct):
        __slots__ = ("replica_id", "replica_directory_id", "log_end_offset", "last_fetch_timestamp", "last_caught_up_timestamp")

        replica_id: int
        replica_directory_id: Uuid
        log_end_offset: int
        last_fetch_timestamp: int
        last_caught_up_timestamp: int

        def __init__(
            self,
            *,
            replica_id: int = 0,
            replica_directory_id: Uuid = ZERO_UUID,
            log_end_offset: int = 0,
            last_fetch_timestamp: int = -1,
            last_caught_up_timestamp: int = -1,
        ) -> None:
            self.replica_id = replica_id
            self.replica_directory_id = replica_directory_id
            self.log_end_offset = log_end_offset
            self.last_fetch_timestamp = last_fetch_timestamp
            self.last_caught_up_timestamp = last_caught_up_timestamp
            self.unknown_tagged_fields = None
