"""ReadShareGroupStateSummaryRequest and ReadShareGroupStateSummaryResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["ReadShareGroupStateSummaryRequest", "ReadShareGroupStateSummaryResponse"]


class ReadShareGroupStateSummaryRequest(Message):
    """ReadShareGroupStateSummary request, API key 87, versions 0-1, flexible 0+."""

    __slots__ = ("group_id", "topics")

    group_id: str
    topics: list[ReadShareGroupStateSummaryRequest.ReadStateSummaryData]

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[ReadShareGroupStateSummaryRequest.ReadStateSummaryData] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
ReadShareGroupStateSummaryRequest request key=87 versions=0-1 flexible=0+ listeners=broker
  group_id string
  topics []ReadStateSummaryData
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

    class ReadStateSummaryData(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[ReadShareGroupStateSummaryRequest.PartitionData]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[ReadShareGroupStateSummaryRequest.PartitionData] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class ReadShareGroupStateSummaryResponse(Message):
    """ReadShareGroupStateSummary response, API key 87, versions 0-1, flexible 0+."""

    __slots__ = ("results",)

    results: list[ReadShareGroupStateSummaryResponse.ReadStateSummaryResult]

    def __init__(
        self,
        *,
        results: list[ReadShareGroupStateSummaryResponse.ReadStateSummaryResult] = EMPTY,
    ) -> None:
        self.results = [] if results is EMPTY else results
        self.unknown_tagged_fields = None

    SCHEMA = """
ReadShareGroupStateSummaryResponse response key=87 versions=0-1 flexible=0+
  results []ReadStateSummaryResult
    topic_id uuid
    partitions []PartitionResult
      partition int32
      error_code int16
      error_message string nullable default=null
      state_epoch int32
      leader_epoch int32
      start_offset int64
      delivery_complete_count int32 1+ default=-1 ignorable
"""

    class PartitionResult(Struct):
        __slots__ = ("partition", "error_code", "error_message", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count")

        partition: int
        error_code: int
        error_message: str | None
        state_epoch: int
        leader_epoch: int
        start_offset: int
        delivery_complete_count: int

        def __init__(
            self,
            *,
            partition: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            state_epoch: int = 0,
            leader_epoch: int = 0,
            start_offset: int = 0,
            delivery_complete_count: int = -1,
        ) -> None:
            self.partition = partition
            self.error_code = error_code
            self.error_message = error_message
            self.state_epoch = state_epoch
            self.leader_epoch = leader_epoch
            self.start_offset = start_offset
            self.delivery_complete_count = delivery_complete_count
            self.unknown_tagged_fields = None

    class ReadStateSummaryResult(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
