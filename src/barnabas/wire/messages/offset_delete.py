"""OffsetDeleteRequest and OffsetDeleteResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["OffsetDeleteRequest", "OffsetDeleteResponse"]


class OffsetDeleteRequest(Message):
    """OffsetDelete request, API key 47, versions 0, flexible none."""

    __slots__ = ("group_id", "topics")

    group_id: str
    topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic]

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
OffsetDeleteRequest request key=47 versions=0 flexible=none listeners=broker
  group_id string
  topics []OffsetDeleteRequestTopic
    name string key
    partitions []OffsetDeleteRequestPartition
      partition_index int32
"""

    class OffsetDeleteRequestPartition(Struct):
        __slots__ = ("partition_index",)

        partition_index: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.unknown_tagged_fields = None

    class OffsetDeleteRequestTopic(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class OffsetDeleteResponse(Message):
    """OffsetDelete response, API key 47, versions 0, flexible none."""

    __slots__ = ("error_code", "throttle_time_ms", "topics")

    error_code: int
    throttle_time_ms: int
    topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic]

    def __init__(
        self,
        *,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
OffsetDeleteResponse response key=47 versions=0 flexible=none
  error_code int16
  throttle_time_ms int32 ignorable
  topics []OffsetDeleteResponseTopic
    name string key
    partitions []OffsetDeleteResponsePartition
      partition_index int32 key
      error_code int16
"""

    class OffsetDeleteResponsePartition(Struct):
        __slots__ = ("partition_index", "error_code")

        partition_index: int
        error_code: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.unknown_tagged_fields = None

    class OffsetDeleteResponseTopic(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
