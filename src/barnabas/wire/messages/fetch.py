"""FetchRequest and FetchResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["FetchRequest", "FetchResponse"]


class FetchRequest(Message):
    """Fetch request, API key 1, versions 0-18, flexible 12+."""

    __slots__ = ("cluster_id", "replica_id", "replica_state", "max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "session_id", "session_epoch", "topics", "forgotten_topics_data", "rack_id")

    cluster_id: str | None
    replica_id: int
    replica_state: FetchRequest.ReplicaState
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[FetchRequest.FetchTopic]
    forgotten_topics_data: list[FetchRequest.ForgottenTopic]
    rack_id: str

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: FetchRequest.ReplicaState | None = None,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchRequest.FetchTopic] = EMPTY,
        forgotten_topics_data: list[FetchRequest.ForgottenTopic] = EMPTY,
        rack_id: str = "",
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.replica_state = FetchRequest.ReplicaState() if replica_state is None else replica_state
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = [] if topics is EMPTY else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is EMPTY else forgotten_topics_data
        self.rack_id = rack_id
        self.unknown_tagged_fields = None

    SCHEMA = """
FetchRequest request key=1 versions=0-18 kafka=4-18 flexible=12+ listeners=broker,controller
  cluster_id string 12+ nullable tag=0 default=null ignorable
  replica_id int32 0-14 default=-1
  replica_state ReplicaState 15+ tag=1
    replica_id int32 15+ default=-1
    replica_epoch int64 15+ default=-1
  max_wait_ms int32
  min_bytes int32
  max_bytes int32 3+ default=2147483647 ignorable
  isolation_level int8 4+ ignorable
  session_id int32 7+ ignorable
  session_epoch int32 7+ default=-1 ignorable
  topics []FetchTopic
    topic string 0-12 ignorable
    topic_id uuid 13+ ignorable
    partitions []FetchPartition
      partition int32
      current_leader_epoch int32 9+ default=-1 ignorable
      fetch_offset int64
      last_fetched_epoch int32 12+ default=-1
      log_start_offset int64 5+ default=-1 ignorable
      partition_max_bytes int32
      replica_directory_id uuid 17+ tag=0 ignorable
      high_watermark int64 18+ tag=1 default=9223372036854775807 ignorable
  forgotten_topics_data []ForgottenTopic 7+
    topic string 7-12 ignorable
    topic_id uuid 13+ ignorable
    partitions []int32 7+
  rack_id string 11+ ignorable
"""

    class ReplicaState(Struct):
        __slots__ = ("replica_id", "replica_epoch")

        replica_id: int
        replica_epoch: int

        def __init__(
            self,
            *,
            replica_id: int = -1,
            replica_epoch: int = -1,
        ) -> None:
            self.replica_id = replica_id
            self.replica_epoch = replica_epoch
            self.unknown_tagged_fields = None

    class FetchPartition(Struct):
        __slots__ = ("partition", "current_leader_epoch", "fetch_offset", "last_fetched_epoch", "log_start_offset", "partition_max_bytes", "replica_directory_id", "high_watermark")

        partition: int
        current_leader_epoch: int
        fetch_offset: int
        last_fetched_epoch: int
        log_start_offset: int
        partition_max_bytes: int
        replica_directory_id: Uuid
        high_watermark: int

        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = -1,
            fetch_offset: int = 0,
            last_fetched_epoch: int = -1,
            log_start_offset: int = -1,
            partition_max_bytes: int = 0,
            replica_directory_id: Uuid = ZERO_UUID,
            high_watermark: int = 9223372036854775807,
        ) -> None:
            self.partition = partition
            self.current_leader_epoch = current_leader_epoch
            self.fetch_offset = fetch_offset
            self.last_fetched_epoch = last_fetched_epoch
            self.log_start_offset = log_start_offset
            self.partition_max_bytes = partition_max_bytes
            self.replica_directory_id = replica_directory_id
            self.high_watermark = high_watermark
            self.unknown_tagged_fields = None

    class FetchTopic(Struct):
        __slots__ = ("topic", "topic_id", "partitions")

        topic: str
        topic_id: Uuid
        partitions: list[FetchRequest.FetchPartition]

        def __init__(
            self,
            *,
            topic: str = "",
            topic_id: Uuid = ZERO_UUID,
            partitions: list[FetchRequest.FetchPartition] = EMPTY,
        ) -> None:
            self.topic = topic
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class ForgottenTopic(Struct):
        __slots__ = ("topic", "topic_id", "partitions")

        topic: str
        topic_id: Uuid
        partitions: list[int]

        def __init__(
            self,
            *,
            topic: str = "",
            topic_id: Uuid = ZERO_UUID,
            partitions: list[int] = EMPTY,
        ) -> None:
            self.topic = topic
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class FetchResponse(Message):
    """Fetch response, API key 1, versions 0-18, flexible 12+."""

    __slots__ = ("throttle_time_ms", "error_code", "session_id", "responses", "node_endpoints")

    throttle_time_ms: int
    error_code: int
    session_id: int
    responses: list[FetchResponse.FetchableTopicResponse]
    node_endpoints: list[FetchResponse.NodeEndpoint]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchResponse.FetchableTopicResponse] = EMPTY,
        node_endpoints: list[FetchResponse.NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.session_id = session_id
        self.responses = [] if responses is EMPTY else responses
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tagged_fields = None

    SCHEMA = """
FetchResponse response key=1 versions=0-18 kafka=4-18 flexible=12+
  throttle_time_ms int32 1+ ignorable
  error_code int16 7+ ignorable
  session_id int32 7+
  responses []FetchableTopicResponse
    topic string 0-12 ignorable
    topic_id uuid 13+ ignorable
    partitions []PartitionData
      partition_index int32
      error_code int16
      high_watermark int64
      last_stable_offset int64 4+ default=-1 ignorable
      log_start_offset int64 5+ default=-1 ignorable
      diverging_epoch EpochEndOffset 12+ tag=0
        epoch int32 12+ default=-1
        end_offset int64 12+ default=-1
      current_leader LeaderIdAndEpoch 12+ tag=1
        leader_id int32 12+ default=-1
        leader_epoch int32 12+ default=-1
      snapshot_id SnapshotId 12+ tag=2
        end_offset int64 default=-1
        epoch int32 default=-1
      aborted_transactions []AbortedTransaction 4+ nullable ignorable
        producer_id int64 4+
        first_offset int64 4+
      preferred_read_replica int32 11+ default=-1
      records records nullable
  node_endpoints []NodeEndpoint 16+ tag=0
    node_id int32 16+ key
    host string 16+
    port int32 16+
    rack string 16+ nullable default=null
"""

    class EpochEndOffset(Struct):
        __slots__ = ("epoch", "end_offset")

        epoch: int
        end_offset: int

        def __init__(
            self,
            *,
            epoch: int = -1,
            end_offset: int = -1,
        ) -> None:
            self.epoch = epoch
            self.end_offset = end_offset
            self.unknown_tagged_fields = None

    class LeaderIdAndEpoch(Struct):
        __slots__ = ("leader_id", "leader_epoch")

        leader_id: int
        leader_epoch: int

        def __init__(
            self,
            *,
            leader_id: int = -1,
            leader_epoch: int = -1,
        ) -> None:
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.unknown_tagged_fields = None

    class SnapshotId(Struct):
        __slots__ = ("end_offset", "epoch")

        end_offset: int
        epoch: int

        def __init__(
            self,
            *,
            end_offset: int = -1,
            epoch: int = -1,
        ) -> None:
            self.end_offset = end_offset
            self.epoch = epoch
            self.unknown_tagged_fields = None

    class AbortedTransaction(Struct):
        __slots__ = ("producer_id", "first_offset")

        producer_id: int
        first_offset: int

        def __init__(
            self,
            *,
            producer_id: int = 0,
            first_offset: int = 0,
        ) -> None:
            self.producer_id = producer_id
            self.first_offset = first_offset
            self.unknown_tagged_fields = None

    class PartitionData(Struct):
        __slots__ = ("partition_index", "error_code", "high_watermark", "last_stable_offset", "log_start_offset", "diverging_epoch", "current_leader", "snapshot_id", "aborted_transactions", "preferred_read_replica", "records")

        partition_index: int
        error_code: int
        high_watermark: int
        last_stable_offset: int
        log_start_offset: int
        diverging_epoch: FetchResponse.EpochEndOffset
        current_leader: FetchResponse.LeaderIdAndEpoch
        snapshot_id: FetchResponse.SnapshotId
        aborted_transactions: list[FetchResponse.AbortedTransaction] | None
        preferred_read_replica: int
        records: bytes | None

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            high_watermark: int = 0,
            last_stable_offset: int = -1,
            log_start_offset: int = -1,
            diverging_epoch: FetchResponse.EpochEndOffset | None = None,
            current_leader: FetchResponse.LeaderIdAndEpoch | None = None,
            snapshot_id: FetchResponse.SnapshotId | None = None,
            aborted_transactions: list[FetchResponse.AbortedTransaction] | None = EMPTY,
            preferred_read_replica: int = -1,
            records: bytes | None = None,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.high_watermark = high_watermark
            self.last_stable_offset = last_stable_offset
            self.log_start_offset = log_start_offset
            self.diverging_epoch = FetchResponse.EpochEndOffset() if diverging_epoch is None else diverging_epoch
            self.current_leader = FetchResponse.LeaderIdAndEpoch() if current_leader is None else current_leader
            self.snapshot_id = FetchResponse.SnapshotId() if snapshot_id is None else snapshot_id
            self.aborted_transactions = [] if aborted_transactions is EMPTY else aborted_transactions
            self.preferred_read_replica = preferred_read_replica
            self.records = records
            self.unknown_tagged_fields = None

    class FetchableTopicResponse(Struct):
        __slots__ = ("topic", "topic_id", "partitions")

        topic: str
        topic_id: Uuid
        partitions: list[FetchResponse.PartitionData]

        def __init__(
            self,
            *,
            topic: str = "",
            topic_id: Uuid = ZERO_UUID,
            partitions: list[FetchResponse.PartitionData] = EMPTY,
        ) -> None:
            self.topic = topic
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
