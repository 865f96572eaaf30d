"""ShareFetchRequest and ShareFetchResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["ShareFetchRequest", "ShareFetchResponse"]


class ShareFetchRequest(Message):
    """ShareFetch request, API key 78, versions 1-2, flexible 0+."""

    __slots__ = ("group_id", "member_id", "share_session_epoch", "max_wait_ms", "min_bytes", "max_bytes", "max_records", "batch_size", "share_acquire_mode", "is_renew_ack", "topics", "forgotten_topics_data")

    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    share_acquire_mode: int
    is_renew_ack: bool
    topics: list[ShareFetchRequest.FetchTopic]
    forgotten_topics_data: list[ShareFetchRequest.ForgottenTopic]

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,
        is_renew_ack: bool = False,
        topics: list[ShareFetchRequest.FetchTopic] = EMPTY,
        forgotten_topics_data: list[ShareFetchRequest.ForgottenTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.max_records = max_records
        self.batch_size = batch_size
        self.share_acquire_mode = share_acquire_mode
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is EMPTY else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is EMPTY else forgotten_topics_data
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareFetchRequest request key=78 versions=1-2 flexible=0+ listeners=broker
  group_id string nullable default=null
  member_id string nullable
  share_session_epoch int32
  max_wait_ms int32
  min_bytes int32
  max_bytes int32 default=2147483647
  max_records int32 1+
  batch_size int32 1+
  share_acquire_mode int8 2+ ignorable
  is_renew_ack bool 2+
  topics []FetchTopic
    topic_id uuid key
    partitions []FetchPartition
      partition_index int32 key
      partition_max_bytes int32 0
      acknowledgement_batches []AcknowledgementBatch
        first_offset int64
        last_offset int64
        acknowledge_types []int8
  forgotten_topics_data []ForgottenTopic
    topic_id uuid
    partitions []int32
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

    class FetchPartition(Struct):
        __slots__ = ("partition_index", "partition_max_bytes", "acknowledgement_batches")

        partition_index: int
        partition_max_bytes: int
        acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch]

        def __init__(
            self,
            *,
            partition_index: int = 0,
            partition_max_bytes: int = 0,
            acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch] = EMPTY,
        ) -> None:
            self.partition_index = partition_index
            self.partition_max_bytes = partition_max_bytes
            self.acknowledgement_batches = [] if acknowledgement_batches is EMPTY else acknowledgement_batches
            self.unknown_tagged_fields = None

    class FetchTopic(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[ShareFetchRequest.FetchPartition]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[ShareFetchRequest.FetchPartition] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class ForgottenTopic(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[int]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[int] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class ShareFetchResponse(Message):
    """ShareFetch response, API key 78, versions 1-2, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "acquisition_lock_timeout_ms", "responses", "node_endpoints")

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: list[ShareFetchResponse.ShareFetchableTopicResponse]
    node_endpoints: list[ShareFetchResponse.NodeEndpoint]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareFetchResponse.ShareFetchableTopicResponse] = EMPTY,
        node_endpoints: list[ShareFetchResponse.NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses = [] if responses is EMPTY else responses
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareFetchResponse response key=78 versions=1-2 flexible=0+
  throttle_time_ms int32
  error_code int16
  error_message string nullable default=null
  acquisition_lock_timeout_ms int32 1+
  responses []ShareFetchableTopicResponse
    topic_id uuid key
    partitions []PartitionData
      partition_index int32
      error_code int16
      error_message string nullable default=null
      acknowledge_error_code int16
      acknowledge_error_message string nullable default=null
      current_leader LeaderIdAndEpoch
        leader_id int32
        leader_epoch int32
      records records nullable=0
      acquired_records []AcquiredRecords
        first_offset int64
        last_offset int64
        delivery_count int16
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

    class AcquiredRecords(Struct):
        __slots__ = ("first_offset", "last_offset", "delivery_count")

        first_offset: int
        last_offset: int
        delivery_count: int

        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_count: int = 0,
        ) -> None:
            self.first_offset = first_offset
            self.last_offset = last_offset
            self.delivery_count = delivery_count
            self.unknown_tagged_fields = None

    class PartitionData(Struct):
        __slots__ = ("partition_index", "error_code", "error_message", "acknowledge_error_code", "acknowledge_error_message", "current_leader", "records", "acquired_records")

        partition_index: int
        error_code: int
        error_message: str | None
        acknowledge_error_code: int
        acknowledge_error_message: str | None
        current_leader: ShareFetchResponse.LeaderIdAndEpoch
        records: bytes | None
        acquired_records: list[ShareFetchResponse.AcquiredRecords]

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            acknowledge_error_code: int = 0,
            acknowledge_error_message: str | None = None,
            current_leader: ShareFetchResponse.LeaderIdAndEpoch | None = None,
            records: bytes | None = None,
            acquired_records: list[ShareFetchResponse.AcquiredRecords] = EMPTY,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.error_message = error_message
            self.acknowledge_error_code = acknowledge_error_code
            self.acknowledge_error_message = acknowledge_error_message
            self.current_leader = ShareFetchResponse.LeaderIdAndEpoch() if current_leader is None else current_leader
            self.records = records
            self.acquired_records = [] if acquired_records is EMPTY else acquired_records
            self.unknown_tagged_fields = None

    class ShareFetchableTopicResponse(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[ShareFetchResponse.PartitionData]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[ShareFetchResponse.PartitionData] = EMPTY,
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
