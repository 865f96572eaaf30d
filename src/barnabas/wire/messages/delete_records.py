"""DeleteRecordsRequest and DeleteRecordsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["DeleteRecordsRequest", "DeleteRecordsResponse"]


class DeleteRecordsRequest(Message):
    """DeleteRecords request, API key 21, versions 0-2, flexible 2+."""

    __slots__ = ("topics", "timeout_ms")

    topics: list[DeleteRecordsRequest.DeleteRecordsTopic]
    timeout_ms: int

    def __init__(
        self,
        *,
        topics: list[DeleteRecordsRequest.DeleteRecordsTopic] = EMPTY,
        timeout_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
        self.unknown_tagged_fields = None

    SCHEMA = """
DeleteRecordsRequest request key=21 versions=0-2 flexible=2+ listeners=broker
  topics []DeleteRecordsTopic
    name string
    partitions []DeleteRecordsPartition
      partition_index int32
      offset int64
  timeout_ms int32
"""

    class DeleteRecordsPartition(Struct):
        __slots__ = ("partition_index", "offset")

        partition_index: int
        offset: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
            offset: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.offset = offset
            self.unknown_tagged_fields = None

    class DeleteRecordsTopic(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[DeleteRecordsRequest.DeleteRecordsPartition]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class DeleteRecordsResponse(Message):
    """DeleteRecords response, API key 21, versions 0-2, flexible 2+."""

    __slots__ = ("throttle_time_ms", "topics")

    throttle_time_ms: int
    topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
DeleteRecordsResponse response key=21 versions=0-2 flexible=2+
  throttle_time_ms int32
  topics []DeleteRecordsTopicResult
    name string key
    partitions []DeleteRecordsPartitionResult
      partition_index int32 key
      low_watermark int64
      error_code int16
"""

    class DeleteRecordsPartitionResult(Struct):
        __slots__ = ("partition_index", "low_watermark", "error_code")

        partition_index: int
        low_watermark: int
        error_code: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
            low_watermark: int = 0,
            error_code: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.low_watermark = low_watermark
            self.error_code = error_code
            self.unknown_tagged_fields = None

    class DeleteRecordsTopicResult(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
