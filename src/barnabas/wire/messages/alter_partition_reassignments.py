"""AlterPartitionReassignmentsRequest and AlterPartitionReassignmentsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["AlterPartitionReassignmentsRequest", "AlterPartitionReassignmentsResponse"]


class AlterPartitionReassignmentsRequest(Message):
    """AlterPartitionReassignments request, API key 45, versions 0-1, flexible 0+."""

    __slots__ = ("timeout_ms", "allow_replication_factor_change", "topics")

    timeout_ms: int
    allow_replication_factor_change: bool
    topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic]

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic] = EMPTY,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
AlterPartitionReassignmentsRequest request key=45 versions=0-1 flexible=0+ listeners=broker,controller
  timeout_ms int32 default=60000
  allow_replication_factor_change bool 1+ default=true
  topics []ReassignableTopic
    name string
    partitions []ReassignablePartition
      partition_index int32
      replicas []int32 nullable default=null
"""

    class ReassignablePartition(Struct):
        __slots__ = ("partition_index", "replicas")

        partition_index: int
        replicas: list[int] | None

        def __init__(
            self,
            *,
            partition_index: int = 0,
            replicas: list[int] | None = None,
        ) -> None:
            self.partition_index = partition_index
            self.replicas = replicas
            self.unknown_tagged_fields = None

    class ReassignableTopic(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class AlterPartitionReassignmentsResponse(Message):
    """AlterPartitionReassignments response, API key 45, versions 0-1, flexible 0+."""

    __slots__ = ("throttle_time_ms", "allow_replication_factor_change", "error_code", "error_message", "responses")

    throttle_time_ms: int
    allow_replication_factor_change: bool
    error_code: int
    error_message: str | None
    responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = "",
        responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is EMPTY else responses
        self.unknown_tagged_fields = None

    SCHEMA = """
AlterPartitionReassignmentsResponse response key=45 versions=0-1 flexible=0+
  throttle_time_ms int32
  allow_replication_factor_change bool 1+ default=true ignorable
  error_code int16
  error_message string nullable
  responses []ReassignableTopicResponse
    name string
    partitions []ReassignablePartitionResponse
      partition_index int32
      error_code int16
      error_message string nullable
"""

    class ReassignablePartitionResponse(Struct):
        __slots__ = ("partition_index", "error_code", "error_message")

        partition_index: int
        error_code: int
        error_message: str | None

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = "",
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None

    class ReassignableTopicResponse(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
