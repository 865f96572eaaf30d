"""AlterShareGroupOffsetsRequest and AlterShareGroupOffsetsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["AlterShareGroupOffsetsRequest", "AlterShareGroupOffsetsResponse"]


class AlterShareGroupOffsetsRequest(Message):
    """AlterShareGroupOffsets request, API key 91, versions 0, flexible 0+."""

    __slots__ = ("group_id", "topics")

    group_id: str
    topics: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic]

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
AlterShareGroupOffsetsRequest request key=91 versions=0 flexible=0+ listeners=broker
  group_id string
  topics []AlterShareGroupOffsetsRequestTopic
    topic_name string key
    partitions []AlterShareGroupOffsetsRequestPartition
      partition_index int32
      start_offset int64
"""

    class AlterShareGroupOffsetsRequestPartition(Struct):
        __slots__ = ("partition_index", "start_offset")

        partition_index: int
        start_offset: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
            start_offset: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.start_offset = start_offset
            self.unknown_tagged_fields = None

    class AlterShareGroupOffsetsRequestTopic(Struct):
        __slots__ = ("topic_name", "partitions")

        topic_name: str
        partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition]

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition] = EMPTY,
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class AlterShareGroupOffsetsResponse(Message):
    """AlterShareGroupOffsets response, API key 91, versions 0, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses")

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is EMPTY else responses
        self.unknown_tagged_fields = None

    SCHEMA = """
AlterShareGroupOffsetsResponse response key=91 versions=0 flexible=0+
  throttle_time_ms int32
  error_code int16
  error_message string nullable default=null
  responses []AlterShareGroupOffsetsResponseTopic
    topic_name string key
    topic_id uuid
    partitions []AlterShareGroupOffsetsResponsePartition
      partition_index int32
      error_code int16
      error_message string nullable default=null
"""

    class AlterShareGroupOffsetsResponsePartition(Struct):
        __slots__ = ("partition_index", "error_code", "error_message")

        partition_index: int
        error_code: int
        error_message: str | None

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None

    class AlterShareGroupOffsetsResponseTopic(Struct):
        __slots__ = ("topic_name", "topic_id", "partitions")

        topic_name: str
        topic_id: Uuid
        partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition]

        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: Uuid = ZERO_UUID,
            partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition] = EMPTY,
        ) -> None:
            self.topic_name = topic_name
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
