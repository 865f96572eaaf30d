"""DescribeProducersRequest and DescribeProducersResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["DescribeProducersRequest", "DescribeProducersResponse"]


class DescribeProducersRequest(Message):
    """DescribeProducers request, API key 61, versions 0, flexible 0+."""

    __slots__ = ("topics",)

    topics: list[DescribeProducersRequest.TopicRequest]

    def __init__(
        self,
        *,
        topics: list[DescribeProducersRequest.TopicRequest] = EMPTY,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeProducersRequest request key=61 versions=0 flexible=0+ listeners=broker
  topics []TopicRequest
    name string
    partition_indexes []int32
"""

    class TopicRequest(Struct):
        __slots__ = ("name", "partition_indexes")

        name: str
        partition_indexes: list[int]

        def __init__(
            self,
            *,
            name: str = "",
            partition_indexes: list[int] = EMPTY,
        ) -> None:
            self.name = name
            self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes
            self.unknown_tagged_fields = None


class DescribeProducersResponse(Message):
    """DescribeProducers response, API key 61, versions 0, flexible 0+."""

    __slots__ = ("throttle_time_ms", "topics")

    throttle_time_ms: int
    topics: list[DescribeProducersResponse.TopicResponse]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeProducersResponse.TopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeProducersResponse response key=61 versions=0 flexible=0+
  throttle_time_ms int32
  topics []TopicResponse
    name string
    partitions []PartitionResponse
      partition_index int32
      error_code int16
      error_message string nullable default=null
      active_producers []ProducerState
        producer_id int64
        producer_epoch int32
        last_sequence int32 default=-1
        last_timestamp int64 default=-1
        coordinator_epoch int32
        current_txn_start_offset int64 default=-1
"""

    class ProducerState(Struct):
        __slots__ = ("producer_id", "producer_epoch", "last_sequence", "last_timestamp", "coordinator_epoch", "current_txn_start_offset")

        producer_id: int
        producer_epoch: int
        last_sequence: int
        last_timestamp: int
        coordinator_epoch: int
        current_txn_start_offset: int

        def __init__(
            self,
            *,
            producer_id: int = 0,
            producer_epoch: int = 0,
            last_sequence: int = -1,
            last_timestamp: int = -1,
            coordinator_epoch: int = 0,
            current_txn_start_offset: int = -1,
        ) -> None:
            self.producer_id = producer_id
            self.producer_epoch = producer_epoch
            self.last_sequence = last_sequence
            self.last_timestamp = last_timestamp
            self.coordinator_epoch = coordinator_epoch
            self.current_txn_start_offset = current_txn_start_offset
            self.unknown_tagged_fields = None

    class PartitionResponse(Struct):
        __slots__ = ("partition_index", "error_code", "error_message", "active_producers")

        partition_index: int
        error_code: int
        error_message: str | None
        active_producers: list[DescribeProducersResponse.ProducerState]

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            active_producers: list[DescribeProducersResponse.ProducerState] = EMPTY,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.error_message = error_message
            self.active_producers = [] if active_producers is EMPTY else active_producers
            self.unknown_tagged_fields = None

    class TopicResponse(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[DescribeProducersResponse.PartitionResponse]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[DescribeProducersResponse.PartitionResponse] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
