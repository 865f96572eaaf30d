"""ListOffsetsRequest and ListOffsetsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["ListOffsetsRequest", "ListOffsetsResponse"]


class ListOffsetsRequest(Message):
    """ListOffsets request, API key 2, versions 0-11, flexible 6+."""

    __slots__ = ("replica_id", "isolation_level", "topics", "timeout_ms")

    replica_id: int
    isolation_level: int
    topics: list[ListOffsetsRequest.ListOffsetsTopic]
    timeout_ms: int

    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsRequest.ListOffsetsTopic] = EMPTY,
        timeout_ms: int = 0,
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
        self.unknown_tagged_fields = None

    SCHEMA = """
ListOffsetsRequest request key=2 versions=0-11 kafka=1-11 flexible=6+ listeners=broker
  replica_id int32
  isolation_level int8 2+
  topics []ListOffsetsTopic
    name string
    partitions []ListOffsetsPartition
      partition_index int32
      current_leader_epoch int32 4+ default=-1 ignorable
      timestamp int64
      max_num_offsets int32 0 default=1
  timeout_ms int32 10+ ignorable
"""

    class ListOffsetsPartition(Struct):
        __slots__ = ("partition_index", "current_leader_epoch", "timestamp", "max_num_offsets")

        partition_index: int
        current_leader_epoch: int
        timestamp: int
        max_num_offsets: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
            current_leader_epoch: int = -1,
            timestamp: int = 0,
            max_num_offsets: int = 1,
        ) -> None:
            self.partition_index = partition_index
            self.current_leader_epoch = current_leader_epoch
            self.timestamp = timestamp
            self.max_num_offsets = max_num_offsets
            self.unknown_tagged_fields = None

    class ListOffsetsTopic(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[ListOffsetsRequest.ListOffsetsPartition]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[ListOffsetsRequest.ListOffsetsPartition] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class ListOffsetsResponse(Message):
    """ListOffsets response, API key 2, versions 0-11, flexible 6+."""

    __slots__ = ("throttle_time_ms", "topics")

    throttle_time_ms: int
    topics: list[ListOffsetsResponse.ListOffsetsTopicResponse]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsResponse.ListOffsetsTopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
ListOffsetsResponse response key=2 versions=0-11 kafka=1-11 flexible=6+
  throttle_time_ms int32 2+ ignorable
  topics []ListOffsetsTopicResponse
    name string
    partitions []ListOffsetsPartitionResponse
      partition_index int32
      error_code int16
      old_style_offsets []int64 0
      timestamp int64 1+ default=-1
      offset int64 1+ default=-1
      leader_epoch int32 4+ default=-1
"""

    class ListOffsetsPartitionResponse(Struct):
        __slots__ = ("partition_index", "error_code", "old_style_offsets", "timestamp", "offset", "leader_epoch")

        partition_index: int
        error_code: int
        old_style_offsets: list[int]
        timestamp: int
        offset: int
        leader_epoch: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            old_style_offsets: list[int] = EMPTY,
            timestamp: int = -1,
            offset: int = -1,
            leader_epoch: int = -1,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.old_style_offsets = [] if old_style_offsets is EMPTY else old_style_offsets
            self.timestamp = timestamp
            self.offset = offset
            self.leader_epoch = leader_epoch
            self.unknown_tagged_fields = None

    class ListOffsetsTopicResponse(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
