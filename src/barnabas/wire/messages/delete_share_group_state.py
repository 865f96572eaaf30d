"""DeleteShareGroupStateRequest and DeleteShareGroupStateResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["DeleteShareGroupStateRequest", "DeleteShareGroupStateResponse"]


class DeleteShareGroupStateRequest(Message):
    """DeleteShareGroupState request, API key 86, versions 0, flexible 0+."""

    __slots__ = ("group_id", "topics")

    group_id: str
    topics: list[DeleteShareGroupStateRequest.DeleteStateData]

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DeleteShareGroupStateRequest.DeleteStateData] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
DeleteShareGroupStateRequest request key=86 versions=0 flexible=0+ listeners=broker
  group_id string
  topics []DeleteStateData
    topic_id uuid
    partitions []PartitionData
      partition int32
"""

    class PartitionData(Struct):
        __slots__ = ("partition",)

        partition: int

        def __init__(
            self,
            *,
            partition: int = 0,
        ) -> None:
            self.partition = partition
            self.unknown_tagged_fields = None

    class DeleteStateData(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[DeleteShareGroupStateRequest.PartitionData]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[DeleteShareGroupStateRequest.PartitionData] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class DeleteShareGroupStateResponse(Message):
    """DeleteShareGroupState response, API key 86, versions 0, flexible 0+."""

    __slots__ = ("results",)

    results: list[DeleteShareGroupStateResponse.DeleteStateResult]

    def __init__(
        self,
        *,
        results: list[DeleteShareGroupStateResponse.DeleteStateResult] = EMPTY,
    ) -> None:
        self.results = [] if results is EMPTY else results
        self.unknown_tagged_fields = None

    SCHEMA = """
DeleteShareGroupStateResponse response key=86 versions=0 flexible=0+
  results []DeleteStateResult
    topic_id uuid
    partitions []PartitionResult
      partition int32
      error_code int16
      error_message string nullable default=null
"""

    class PartitionResult(Struct):
        __slots__ = ("partition", "error_code", "error_message")

        partition: int
        error_code: int
        error_message: str | None

        def __init__(
            self,
            *,
            partition: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.partition = partition
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None

    class DeleteStateResult(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[DeleteShareGroupStateResponse.PartitionResult]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[DeleteShareGroupStateResponse.PartitionResult] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
