"""ShareAcknowledgeRequest and ShareAcknowledgeResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["ShareAcknowledgeRequest", "ShareAcknowledgeResponse"]


class ShareAcknowledgeRequest(Message):
    """ShareAcknowledge request, API key 79, versions 1-2, flexible 0+."""

    __slots__ = ("group_id", "member_id", "share_session_epoch", "is_renew_ack", "topics")

    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    is_renew_ack: bool
    topics: list[ShareAcknowledgeRequest.AcknowledgeTopic]

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        is_renew_ack: bool = False,
        topics: list[ShareAcknowledgeRequest.AcknowledgeTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareAcknowledgeRequest request key=79 versions=1-2 flexible=0+ listeners=broker
  group_id string nullable default=null
  member_id string nullable
  share_session_epoch int32
  is_renew_ack bool 2+
  topics []AcknowledgeTopic
    topic_id uuid key
    partitions []AcknowledgePartition
      partition_index int32 key
      acknowledgement_batches []AcknowledgementBatch
        first_offset int64
        last_offset int64
        acknowledge_types []int8
"""

    class AcknowledgementBatch(Struct):
        __slots__ = ("first_offset", "last_offset", "acknowledge_types")

        first_offset: int
        last_offset: int
        acknowledge_types: list[int]

        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            acknowledge_types: list[int] = EMPTY,
        ) -> None:
            self.first_offset = first_offset
            self.last_offset = last_offset
            self.acknowledge_types = [] if acknowledge_types is EMPTY else acknowledge_types
            self.unknown_tagged_fields = None

    class AcknowledgePartition(Struct):
        __slots__ = ("partition_index", "acknowledgement_batches")

        partition_index: int
        acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch]

        def __init__(
            self,
            *,
            partition_index: int = 0,
            acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = EMPTY,
        ) -> None:
            self.partition_index = partition_index
            self.acknowledgement_batches = [] if acknowledgement_batches is EMPTY else acknowledgement_batches
            self.unknown_tagged_fields = None

    class AcknowledgeTopic(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[ShareAcknowledgeRequest.AcknowledgePartition]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[ShareAcknowledgeRequest.AcknowledgePartition] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class ShareAcknowledgeResponse(Message):
    """ShareAcknowledge response, API key 79, versions 1-2, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "acquisition_lock_timeout_ms", "responses", "node_endpoints")

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: list[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse]
    node_endpoints: list[ShareAcknowledgeResponse.NodeEndpoint]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = EMPTY,
        node_endpoints: list[ShareAcknowledgeResponse.NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses = [] if responses is EMPTY else responses
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareAcknowledgeResponse response key=79 versions=1-2 flexible=0+
  throttle_time_ms int32
  error_code int16
  error_message string nullable default=null
  acquisition_lock_timeout_ms int32 2+ ignorable
  responses []ShareAcknowledgeTopicResponse
    topic_id uuid key
    partitions []PartitionData
      partition_index int32
      error_code int16
      error_message string nullable default=null
      current_leader LeaderIdAndEpoch
        leader_id int32
        leader_epoch int32
  node_endpoints []NodeEndpoint
    node_id int32 key
    host string
    port int32
    rack string nullable default=null
"""

    class LeaderIdAndEpoch(Struct):
        __slots__ = ("leader_id", "leader_epoch")

        leader_id: int
        leader_epoch: int

        def __init__(
            self,
            *,
            leader_id: int = 0,
            leader_epoch: int = 0,
        ) -> None:
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.unknown_tagged_fields = None

    class PartitionData(Struct):
        __slots__ = ("partition_index", "error_code", "error_message", "current_leader")

        partition_index: int
        error_code: int
        error_message: str | None
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch | None = None,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.error_message = error_message
            self.current_leader = ShareAcknowledgeResponse.LeaderIdAndEpoch() if current_leader is None else current_leader
            self.unknown_tagged_fields = None

    class ShareAcknowledgeTopicResponse(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[ShareAcknowledgeResponse.PartitionData]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[ShareAcknowledgeResponse.PartitionData] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class NodeEndpoint(Struct):
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
