"""DescribeTopicPartitionsRequest and DescribeTopicPartitionsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["DescribeTopicPartitionsRequest", "DescribeTopicPartitionsResponse"]


class DescribeTopicPartitionsRequest(Message):
    """DescribeTopicPartitions request, API key 75, versions 0, flexible 0+."""

    __slots__ = ("topics", "response_partition_limit", "cursor")

    topics: list[DescribeTopicPartitionsRequest.TopicRequest]
    response_partition_limit: int
    cursor: DescribeTopicPartitionsRequest.Cursor | None

    def __init__(
        self,
        *,
        topics: list[DescribeTopicPartitionsRequest.TopicRequest] = EMPTY,
        response_partition_limit: int = 2000,
        cursor: DescribeTopicPartitionsRequest.Cursor | None = None,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeTopicPartitionsRequest request key=75 versions=0 flexible=0+ listeners=broker
  topics []TopicRequest
    name string
  response_partition_limit int32 default=2000
  cursor Cursor nullable default=null
    topic_name string
    partition_index int32
"""

    class TopicRequest(Struct):
        __slots__ = ("name",)

        name: str

        def __init__(
            self,
            *,
            name: str = "",
        ) -> None:
            self.name = name
            self.unknown_tagged_fields = None

    class Cursor(Struct):
        __slots__ = ("topic_name", "partition_index")

        topic_name: str
        partition_index: int

        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
        ) -> None:
            self.topic_name = topic_name
            self.partition_index = partition_index
            self.unknown_tagged_fields = None


class DescribeTopicPartitionsResponse(Message):
    """DescribeTopicPartitions response, API key 75, versions 0, flexible 0+."""

    __slots__ = ("throttle_time_ms", "topics", "next_cursor")

    throttle_time_ms: int
    topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic]
    next_cursor: DescribeTopicPartitionsResponse.Cursor | None

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = EMPTY,
        next_cursor: DescribeTopicPartitionsResponse.Cursor | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.next_cursor = next_cursor
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeTopicPartitionsResponse response key=75 versions=0 flexible=0+
  throttle_time_ms int32 ignorable
  topics []DescribeTopicPartitionsResponseTopic
    error_code int16
    name string nullable key
    topic_id uuid ignorable
    is_internal bool ignorable
    partitions []DescribeTopicPartitionsResponsePartition
      error_code int16
      partition_index int32
      leader_id int32
      leader_epoch int32 default=-1 ignorable
      replica_nodes []int32
      isr_nodes []int32
      eligible_leader_replicas []int32 nullable default=null
      last_known_elr []int32 nullable default=null
      offline_replicas []int32 ignorable
    topic_authorized_operations int32 default=-2147483648
  next_cursor Cursor nullable default=null
    topic_name string
    partition_index int32
"""

    class DescribeTopicPartitionsResponsePartition(Struct):
        __slots__ = ("error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes", "eligible_leader_replicas", "last_known_elr", "offline_replicas")

        error_code: int
        partition_index: int
        leader_id: int
        leader_epoch: int
        replica_nodes: list[int]
        isr_nodes: list[int]
        eligible_leader_replicas: list[int] | None
        last_known_elr: list[int] | None
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
            eligible_leader_replicas: list[int] | None = None,
            last_known_elr: list[int] | None = None,
            offline_replicas: list[int] = EMPTY,
        ) -> None:
            self.error_code = error_code
            self.partition_index = partition_index
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.replica_nodes = [] if replica_nodes is EMPTY else replica_nodes
            self.isr_nodes = [] if isr_nodes is EMPTY else isr_nodes
            self.eligible_leader_replicas = eligible_leader_replicas
            self.last_known_elr = last_known_elr
            self.offline_replicas = [] if offline_replicas is EMPTY else offline_replicas
            self.unknown_tagged_fields = None

    class DescribeTopicPartitionsResponseTopic(Struct):
        __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")

        error_code: int
        name: str | None
        topic_id: Uuid
        is_internal: bool
        partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition]
        topic_authorized_operations: int

        def __init__(
            self,
            *,
            error_code: int = 0,
            name: str | None = "",
            topic_id: Uuid = ZERO_UUID,
            is_internal: bool = False,
            partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition] = EMPTY,
            topic_authorized_operations: int = -2147483648,
        ) -> None:
            self.error_code = error_code
            self.name = name
            self.topic_id = topic_id
            self.is_internal = is_internal
            self.partitions = [] if partitions is EMPTY else partitions
            self.topic_authorized_operations = topic_authorized_operations
            self.unknown_tagged_fields = None

    class Cursor(Struct):
        __slots__ = ("topic_name", "partition_index")

        topic_name: str
        partition_index: int

        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
        ) -> None:
            self.topic_name = topic_name
            self.partition_index = partition_index
            self.unknown_tagged_fields = None
