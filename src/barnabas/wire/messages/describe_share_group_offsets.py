"""DescribeShareGroupOffsetsRequest and DescribeShareGroupOffsetsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["DescribeShareGroupOffsetsRequest", "DescribeShareGroupOffsetsResponse"]


class DescribeShareGroupOffsetsRequest(Message):
    """DescribeShareGroupOffsets request, API key 90, versions 0-1, flexible 0+."""

    __slots__ = ("groups",)

    groups: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup]

    def __init__(
        self,
        *,
        groups: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup] = EMPTY,
    ) -> None:
        self.groups = [] if groups is EMPTY else groups
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeShareGroupOffsetsRequest request key=90 versions=0-1 flexible=0+ listeners=broker
  groups []DescribeShareGroupOffsetsRequestGroup
    group_id string
    topics []DescribeShareGroupOffsetsRequestTopic nullable
      topic_name string
      partitions []int32
"""

    class DescribeShareGroupOffsetsRequestTopic(Struct):
        __slots__ = ("topic_name", "partitions")

        topic_name: str
        partitions: list[int]

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[int] = EMPTY,
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class DescribeShareGroupOffsetsRequestGroup(Struct):
        __slots__ = ("group_id", "topics")

        group_id: str
        topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None

        def __init__(
            self,
            *,
            group_id: str = "",
            topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None = EMPTY,
        ) -> None:
            self.group_id = group_id
            self.topics = [] if topics is EMPTY else topics
            self.unknown_tagged_fields = None


class DescribeShareGroupOffsetsResponse(Message):
    """DescribeShareGroupOffsets response, API key 90, versions 0-1, flexible 0+."""

    __slots__ = ("throttle_time_ms", "groups")

    throttle_time_ms: int
    groups: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY else groups
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeShareGroupOffsetsResponse response key=90 versions=0-1 flexible=0+
  throttle_time_ms int32
  groups []DescribeShareGroupOffsetsResponseGroup
    group_id string
    topics []DescribeShareGroupOffsetsResponseTopic
      topic_name string
      topic_id uuid
      partitions []DescribeShareGroupOffsetsResponsePartition
        partition_index int32
        start_offset int64
        leader_epoch int32
        lag int64 1+ default=-1 ignorable
        error_code int16
        error_message string nullable default=null
    error_code int16
    error_message string nullable default=null
"""

    class DescribeShareGroupOffsetsResponsePartition(Struct):
        __slots__ = ("partition_index", "start_offset", "leader_epoch", "lag", "error_code", "error_message")

        partition_index: int
        start_offset: int
        leader_epoch: int
        lag: int
        error_code: int
        error_message: str | None

        def __init__(
            self,
            *,
            partition_index: int = 0,
            start_offset: int = 0,
            leader_epoch: int = 0,
            lag: int = -1,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.partition_index = partition_index
            self.start_offset = start_offset
            self.leader_epoch = leader_epoch
            self.lag = lag
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None

    class DescribeShareGroupOffsetsResponseTopic(Struct):
        __slots__ = ("topic_name", "topic_id", "partitions")

        topic_name: str
        topic_id: Uuid
        partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition]

        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: Uuid = ZERO_UUID,
            partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition] = EMPTY,
        ) -> None:
            self.topic_name = topic_name
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class DescribeShareGroupOffsetsResponseGroup(Struct):
        __slots__ = ("group_id", "topics", "error_code", "error_message")

        group_id: str
        topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic]
        error_code: int
        error_message: str | None

        def __init__(
            self,
            *,
            group_id: str = "",
            topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = EMPTY,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.group_id = group_id
            self.topics = [] if topics is EMPTY else topics
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
