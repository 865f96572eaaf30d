"""InitializeShareGroupStateRequest and InitializeShareGroupStateResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["InitializeShareGroupStateRequest", "InitializeShareGroupStateResponse"]


class InitializeShareGroupStateRequest(Message):
    """InitializeShareGroupState request, API key 83, versions 0, flexible 0+."""

    __slots__ = ("group_id", "topics")

    group_id: str
    topics: list[InitializeShareGroupStateRequest.InitializeStateData]

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[InitializeShareGroupStateRequest.InitializeStateData] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
InitializeShareGroupStateRequest request key=83 versions=0 flexible=0+ listeners=broker
  group_id string
  topics []InitializeStateData
    topic_id uuid
    partitions []PartitionData
      partition int32
      state_epoch int32
      start_offset int64
"""

    class PartitionData(Struct):
        __slots__ = ("partition", "state_epoch", "start_offset")

        partition: int
        state_epoch: int
        start_offset: int

        def __init__(
            self,
            *,
            partition: int = 0,
            state_epoch: int = 0,
            start_offset: int = 0,
        ) -> None:
            self.partition = partition
            self.state_epoch = state_epoch
            self.start_offset = start_offset
            self.unknown_tagged_fields = None

    class InitializeStateData(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[InitializeShareGroupStateRequest.PartitionData]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[InitializeShareGroupStateRequest.PartitionData] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class InitializeShareGroupStateResponse(Message):
    """InitializeShareGroupState response, API key 83, versions 0, flexible 0+."""

    __slots__ = ("results",)

    results: list[InitializeShareGroupStateResponse.InitializeStateResult]

    def __init__(
        self,
        *,
        results: list[InitializeShareGroupStateResponse.InitializeStateResult] = EMPTY,
    ) -> None:
        self.results = [] if results is EMPTY else results
        self.unknown_tagged_fields = None

    SCHEMA = """
InitializeShareGroupStateResponse response key=83 versions=0 flexible=0+
  results []InitializeStateResult
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

    class InitializeStateResult(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[InitializeShareGroupStateResponse.PartitionResult]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[InitializeShareGroupStateResponse.PartitionResult] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
