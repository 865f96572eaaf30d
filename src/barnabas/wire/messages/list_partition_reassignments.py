"""ListPartitionReassignmentsRequest and ListPartitionReassignmentsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["ListPartitionReassignmentsRequest", "ListPartitionReassignmentsResponse"]


class ListPartitionReassignmentsRequest(Message):
    """ListPartitionReassignments request, API key 46, versions 0, flexible 0+."""

    __slots__ = ("timeout_ms", "topics")

    timeout_ms: int
    topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.topics = topics
        self.unknown_tagged_fields = None

    SCHEMA = """
ListPartitionReassignmentsRequest request key=46 versions=0 flexible=0+ listeners=broker,controller
  timeout_ms int32 default=60000
  topics []ListPartitionReassignmentsTopics nullable default=null
    name string
    partition_indexes []int32
"""

    class ListPartitionReassignmentsTopics(Struct):
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


class ListPartitionReassignmentsResponse(Message):
    """ListPartitionReassignments response, API key 46, versions 0, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "topics")

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
ListPartitionReassignmentsResponse response key=46 versions=0 flexible=0+
  throttle_time_ms int32
  error_code int16
  error_message string nullable
  topics []OngoingTopicReassignment
    name string
    partitions []OngoingPartitionReassignment
      partition_index int32
      replicas []int32
      adding_replicas []int32
      removing_replicas []int32
"""

    class OngoingPartitionReassignment(Struct):
        __slots__ = ("partition_index", "replicas", "adding_replicas", "removing_replicas")

        partition_index: int
        replicas: list[int]
        adding_replicas: list[int]
        removing_replicas: list[int]

        def __init__(
            self,
            *,
            partition_index: int = 0,
            replicas: list[int] = EMPTY,
            adding_replicas: list[int] = EMPTY,
            removing_replicas: list[int] = EMPTY,
        ) -> None:
            self.partition_index = partition_index
            self.replicas = [] if replicas is EMPTY else replicas
            self.adding_replicas = [] if adding_replicas is EMPTY else adding_replicas
            self.removing_replicas = [] if removing_replicas is EMPTY else removing_replicas
            self.unknown_tagged_fields = None

    class OngoingTopicReassignment(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
