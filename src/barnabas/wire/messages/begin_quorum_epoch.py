"""BeginQuorumEpochRequest and BeginQuorumEpochResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["BeginQuorumEpochRequest", "BeginQuorumEpochResponse"]


class BeginQuorumEpochRequest(Message):
    """BeginQuorumEpoch request, API key 53, versions 0-1, flexible 1+."""

    __slots__ = ("cluster_id", "voter_id", "topics", "leader_endpoints")

    cluster_id: str | None
    voter_id: int
    topics: list[BeginQuorumEpochRequest.TopicData]
    leader_endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint]

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[BeginQuorumEpochRequest.TopicData] = EMPTY,
        leader_endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint] = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.topics = [] if topics is EMPTY else topics
        self.leader_endpoints = [] if leader_endpoints is EMPTY else leader_endpoints
        self.unknown_tagged_fields = None

    SCHEMA = """
BeginQuorumEpochRequest request key=53 versions=0-1 flexible=1+ listeners=controller
  cluster_id string nullable default=null
  voter_id int32 1+ default=-1 ignorable
  topics []TopicData
    topic_name string
    partitions []PartitionData
      partition_index int32
      voter_directory_id uuid 1+ ignorable
      leader_id int32
      leader_epoch int32
  leader_endpoints []LeaderEndpoint 1+ ignorable
    name string 1+ key
    host string 1+
    port uint16 1+
"""

    class PartitionData(Struct):
        __slots__ = ("partition_index", "voter_directory_id", "leader_id", "leader_epoch")

        partition_index: int
        voter_directory_id: Uuid
        leader_id: int
        leader_epoch: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
            voter_directory_id: Uuid = ZERO_UUID,
            leader_id: int = 0,
            leader_epoch: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.voter_directory_id = voter_directory_id
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.unknown_tagged_fields = None

    class TopicData(Struct):
        __slots__ = ("topic_name", "partitions")

        topic_name: str
        partitions: list[BeginQuorumEpochRequest.PartitionData]

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[BeginQuorumEpochRequest.PartitionData] = EMPTY,
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class LeaderEndpoint(Struct):
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


class BeginQuorumEpochResponse(Message):
    """BeginQuorumEpoch response, API key 53, versions 0-1, flexible 1+."""

    __slots__ = ("error_code", "topics", "node_endpoints")

    error_code: int
    topics: list[BeginQuorumEpochResponse.TopicData]
    node_endpoints: list[BeginQuorumEpochResponse.NodeEndpoint]

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[BeginQuorumEpochResponse.TopicData] = EMPTY,
        node_endpoints: list[BeginQuorumEpochResponse.NodeEndpoint] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.topics = [] if topics is EMPTY else topics
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tagged_fields = None

    SCHEMA = """
BeginQuorumEpochResponse response key=53 versions=0-1 flexible=1+
  error_code int16
  topics []TopicData
    topic_name string
    partitions []PartitionData
      partition_index int32
      error_code int16
      leader_id int32
      leader_epoch int32
  node_endpoints []NodeEndpoint 1+ tag=0
    node_id int32 1+ key
    host string 1+
    port uint16 1+
"""

    class PartitionData(Struct):
        __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch")

        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.unknown_tagged_fields = None

    class TopicData(Struct):
        __slots__ = ("topic_name", "partitions")

        topic_name: str
        partitions: list[BeginQuorumEpochResponse.PartitionData]

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[BeginQuorumEpochResponse.PartitionData] = EMPTY,
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class NodeEndpoint(Struct):
        __slots__ = ("node_id", "host", "port")

        node_id: int
        host: str
        port: int

        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
        ) -> None:
            self.node_id = node_id
            self.host = host
            self.port = port
            self.unknown_tagged_fields = None
