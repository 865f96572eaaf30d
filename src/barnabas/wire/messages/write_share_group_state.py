"""WriteShareGroupStateRequest and WriteShareGroupStateResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["WriteShareGroupStateRequest", "WriteShareGroupStateResponse"]


class WriteShareGroupStateRequest(Message):
    """WriteShareGroupState request, API key 85, versions 0-1, flexible 0+."""

    __slots__ = ("group_id", "topics")

    group_id: str
    topics: list[WriteShareGroupStateRequest.WriteStateData]

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[WriteShareGroupStateRequest.WriteStateData] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
WriteShareGroupStateRequest request key=85 versions=0-1 flexible=0+ listeners=broker
  group_id string
  topics []WriteStateData
    topic_id uuid
    partitions []PartitionData
      partition int32
      state_epoch int32
      leader_epoch int32
      start_offset int64
      delivery_complete_count int32 1+ default=-1 ignorable
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

    class PartitionData(Struct):
        __slots__ = ("partition", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "state_batches")

        partition: int
        state_epoch: int
        leader_epoch: int
        start_offset: int
        delivery_complete_count: int
        state_batches: list[WriteShareGroupStateRequest.StateBatch]

        def __init__(
            self,
            *,
            partition: int = 0,
            state_epoch: int = 0,
            leader_epoch: int = 0,
            start_offset: int = 0,
            delivery_complete_count: int = -1,
            state_batches: list[WriteShareGroupStateRequest.StateBatch] = EMPTY,
        ) -> None:
            self.partition = partition
            self.state_epoch = state_epoch
            self.leader_epoch = leader_epoch
            self.start_offset = start_offset
            self.delivery_complete_count = delivery_complete_count
            self.state_batches = [] if state_batches is EMPTY else state_batches
            self.unknown_tagged_fields = None

    class WriteStateData(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[WriteShareGroupStateRequest.PartitionData]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[WriteShareGroupStateRequest.PartitionData] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class WriteShareGroupStateResponse(Message):
    """WriteShareGroupState response, API key 85, versions 0-1, flexible 0+."""

    __slots__ = ("results",)

    results: list[WriteShareGroupStateResponse.WriteStateResult]

    def __init__(
        self,
        *,
        results: list[WriteShareGroupStateResponse.WriteStateResult] = EMPTY,
    ) -> None:
        self.results = [] if results is EMPTY else results
        self.unknown_tagged_fields = None

    SCHEMA = """
WriteShareGroupStateResponse response key=85 versions=0-1 flexible=0+
  results []WriteStateResult
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

    class WriteStateResult(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[WriteShareGroupStateResponse.PartitionResult]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[WriteShareGroupStateResponse.PartitionResult] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
