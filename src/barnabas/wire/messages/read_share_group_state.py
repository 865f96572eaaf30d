"""ReadShareGroupStateRequest and ReadShareGroupStateResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["ReadShareGroupStateRequest", "ReadShareGroupStateResponse"]


class ReadShareGroupStateRequest(Message):
    """ReadShareGroupState request, API key 84, versions 0, flexible 0+."""

    __slots__ = ("group_id", "topics")

    group_id: str
    topics: list[ReadShareGroupStateRequest.ReadStateData]

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[ReadShareGroupStateRequest.ReadStateData] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
ReadShareGroupStateRequest request key=84 versions=0 flexible=0+ listeners=broker
  group_id string
  topics []ReadStateData
    topic_id uuid
    partitions []PartitionData
      partition int32
      leader_epoch int32
"""

    class PartitionData(Struct):
        __slots__ = ("partition", "leader_epoch")

        partition: int
        leader_epoch: int

        def __init__(
            self,
            *,
            partition: int = 0,
            leader_epoch: int = 0,
        ) -> None:
            self.partition = partition
            self.leader_epoch = leader_epoch
            self.unknown_tagged_fields = None

    class ReadStateData(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[ReadShareGroupStateRequest.PartitionData]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[ReadShareGroupStateRequest.PartitionData] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class ReadShareGroupStateResponse(Message):
    """ReadShareGroupState response, API key 84, versions 0, flexible 0+."""

    __slots__ = ("results",)

    results: list[ReadShareGroupStateResponse.ReadStateResult]

    def __init__(
        self,
        *,
        results: list[ReadShareGroupStateResponse.ReadStateResult] = EMPTY,
    ) -> None:
        self.results = [] if results is EMPTY else results
        self.unknown_tagged_fields = None

    SCHEMA = """
ReadShareGroupStateResponse response key=84 versions=0 flexible=0+
  results []ReadStateResult
    topic_id uuid
    partitions []PartitionResult
      partition int32
      error_code int16
      error_message string nullable default=null
      state_epoch int32
      start_offset int64
      state_batches []StateBatch
        first_offset int64
        last_offset int64
        delivery_state int8
        delivery_count int16
"""

    class StateBatch(Struct):
        __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")

        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int

        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_state: int = 0,
            delivery_count: int = 0,
        ) -> None:
            self.first_offset = first_offset
            self.last_offset = last_offset
            self.delivery_state = delivery_state
            self.delivery_count = delivery_count
            self.unknown_tagged_fields = None

    class PartitionResult(Struct):
        __slots__ = ("partition", "error_code", "error_message", "state_epoch", "start_offset", "state_batches")

        partition: int
        error_code: int
        error_message: str | None
        state_epoch: int
        start_offset: int
        state_batches: list[ReadShareGroupStateResponse.StateBatch]

        def __init__(
            self,
            *,
            partition: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            state_epoch: int = 0,
            start_offset: int = 0,
            state_batches: list[ReadShareGroupStateResponse.StateBatch] = EMPTY,
        ) -> None:
            self.partition = partition
            self.error_code = error_code
            self.error_message = error_message
            self.state_epoch = state_epoch
            self.start_offset = start_offset
            self.state_batches = [] if state_batches is EMPTY else state_batches
            self.unknown_tagged_fields = None

    class ReadStateResult(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[ReadShareGroupStateResponse.PartitionResult]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[ReadShareGroupStateResponse.PartitionResult] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
