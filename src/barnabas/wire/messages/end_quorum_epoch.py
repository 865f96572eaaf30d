"""EndQuorumEpochRequest and EndQuorumEpochResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["EndQuorumEpochRequest", "EndQuorumEpochResponse"]


class EndQuorumEpochRequest(Message):
    """EndQuorumEpoch request, API key 54, versions 0-1, flexible 1+."""

    __slots__ = ("cluster_id", "topics", "leader_endpoints")

    cluster_id: str | None
    topics: list[EndQuorumEpochRequest.TopicData]
    leader_endpoints: list[EndQuorumEpochRequest.LeaderEndpoint]

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        topics: list[EndQuorumEpochRequest.TopicData] = EMPTY,
        leader_endpoints: list[EndQuorumEpochRequest.LeaderEndpoint] = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.topics = [] if topics is EMPTY else topics
        self.leader_endpoints = [] if leader_endpoints is EMPTY else leader_endpoints
        self.unknown_tagged_fields = None

    SCHEMA = """
EndQuorumEpochRequest request key=54 versions=0-1 flexible=1+ listeners=controller
  cluster_id string nullable default=null
  topics []TopicData
    topic_name string
    partitions []PartitionData
      partition_index int32
      leader_id int32
      leader_epoch int32
      preferred_successors []int32 0 ignorable
      preferred_candidates []ReplicaInfo 1+ ignorable
        candidate_id int32 1+
        candidate_directory_id uuid 1+
  leader_endpoints []LeaderEndpoint 1+ ignorable
    name string 1+ key
    host string 1+
    port uint16 1+
"""

    class ReplicaInfo(Struct):
        __slots__ = ("candidate_id", "candidate_directory_id")

        candidate_id: int
        candidate_directory_id: Uuid

        def __init__(
            self,
            *,
            candidate_id: int = 0,
            candidate_directory_id: Uuid = ZERO_UUID,
        ) -> None:
            self.candidate_id = candidate_id
            self.candidate_directory_id = candidate_directory_id
            self.unknown_tagged_fields = None

    class PartitionData(Struct):
        __slots__ = ("partition_index", "leader_id", "leader_epoch", "preferred_successors", "preferred_candidates")

        partition_index: int
        leader_id: int
        leader_epoch: int
        preferred_successors: list[int]
        preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo]

        def __init__(
            self,
            *,
            partition_index: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            preferred_successors: list[int] = EMPTY,
            preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo] = EMPTY,
        ) -> None:
            self.partition_index = partition_index
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.preferred_successors = [] if preferred_successors is EMPTY else preferred_successors
            self.preferred_candidates = [] if preferred_candidates is EMPTY else preferred_candidates
            self.unknown_tagged_fields = None

    class TopicData(Struct):
        __slots__ = ("topic_name", "partitions")

        topic_name: str
        partitions: list[EndQuorumEpochRequest.PartitionData]

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[EndQuorumEpochRequest.PartitionData] = EMPTY,
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


class EndQuorumEpochResponse(Message):
    """EndQuorumEpoch response, API key 54, versions 0-1, flexible 1+."""

    __slots__ = ("error_code", "topics", "node_endpoints")

    error_code: int
    topics: list[EndQuorumEpochResponse.TopicData]
    node_endpoints: list[EndQuorumEpochResponse.NodeEndpoint]

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[EndQuorumEpochResponse.TopicData] = EMPTY,
        node_endpoints: list[EndQuorumEpochResponse.NodeEndpoint] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.topics = [] if topics is EMPTY else topics
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tagged_fields = None

    SCHEMA = """
EndQuorumEpochResponse response key=54 versions=0-1 flexible=1+
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
        partitions: list[EndQuorumEpochResponse.PartitionData]

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[EndQuorumEpochResponse.PartitionData] = EMPTY,
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
