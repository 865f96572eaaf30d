"""VoteRequest and VoteResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["VoteRequest", "VoteResponse"]


class VoteRequest(Message):
    """Vote request, API key 52, versions 0-2, flexible 0+."""

    __slots__ = ("cluster_id", "voter_id", "topics")

    cluster_id: str | None
    voter_id: int
    topics: list[VoteRequest.TopicData]

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[VoteRequest.TopicData] = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
VoteRequest request key=52 versions=0-2 flexible=0+ listeners=controller
  cluster_id string nullable default=null
  voter_id int32 1+ default=-1 ignorable
  topics []TopicData
    topic_name string
    partitions []PartitionData
      partition_index int32
      replica_epoch int32
      replica_id int32
      replica_directory_id uuid 1+ ignorable
      voter_directory_id uuid 1+ ignorable
      last_offset_epoch int32
      last_offset int64
      pre_vote bool 2+
"""

    class PartitionData(Struct):
        __slots__ = ("partition_index", "replica_epoch", "replica_id", "replica_directory_id", "voter_directory_id", "last_offset_epoch", "last_offset", "pre_vote")

        partition_index: int
        replica_epoch: int
        replica_id: int
        replica_directory_id: Uuid
        voter_directory_id: Uuid
        last_offset_epoch: int
        last_offset: int
        pre_vote: bool

        def __init__(
            self,
            *,
            partition_index: int = 0,
            replica_epoch: int = 0,
            replica_id: int = 0,
            replica_directory_id: Uuid = ZERO_UUID,
            voter_directory_id: Uuid = ZERO_UUID,
            last_offset_epoch: int = 0,
            last_offset: int = 0,
            pre_vote: bool = False,
        ) -> None:
            self.partition_index = partition_index
            self.replica_epoch = replica_epoch
            self.replica_id = replica_id
            self.replica_directory_id = replica_directory_id
            self.voter_directory_id = voter_directory_id
            self.last_offset_epoch = last_offset_epoch
            self.last_offset = last_offset
            self.pre_vote = pre_vote
            self.unknown_tagged_fields = None

    class TopicData(Struct):
        __slots__ = ("topic_name", "partitions")

        topic_name: str
        partitions: list[VoteRequest.PartitionData]

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[VoteRequest.PartitionData] = EMPTY,
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class VoteResponse(Message):
    """Vote response, API key 52, versions 0-2, flexible 0+."""

    __slots__ = ("error_code", "topics", "node_endpoints")

    error_code: int
    topics: list[VoteResponse.TopicData]
    node_endpoints: list[VoteResponse.NodeEndpoint]

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[VoteResponse.TopicData] = EMPTY,
        node_endpoints: list[VoteResponse.NodeEndpoint] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.topics = [] if topics is EMPTY else topics
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tagged_fields = None

    SCHEMA = """
VoteResponse response key=52 versions=0-2 flexible=0+
  error_code int16
  topics []TopicData
    topic_name string
    partitions []PartitionData
      partition_index int32
      error_code int16
      leader_id int32
      leader_epoch int32
      vote_granted bool
  node_endpoints []NodeEndpoint 1+ tag=0
    node_id int32 1+ key
    host string 1+
    port uint16 1+
"""

    class PartitionData(Struct):
        __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch", "vote_granted")

        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        vote_granted: bool

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            vote_granted: bool = False,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.vote_granted = vote_granted
            self.unknown_tagged_fields = None

    class TopicData(Struct):
        __slots__ = ("topic_name", "partitions")

        topic_name: str
        partitions: list[VoteResponse.PartitionData]

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[VoteResponse.PartitionData] = EMPTY,
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
