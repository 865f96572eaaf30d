"""ElectLeadersRequest and ElectLeadersResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["ElectLeadersRequest", "ElectLeadersResponse"]


class ElectLeadersRequest(Message):
    """ElectLeaders request, API key 43, versions 0-2, flexible 2+."""

    __slots__ = ("election_type", "topic_partitions", "timeout_ms")

    election_type: int
    topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None
    timeout_ms: int

    def __init__(
        self,
        *,
        election_type: int = 0,
        topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None = EMPTY,
        timeout_ms: int = 60000,
    ) -> None:
        self.election_type = election_type
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions
        self.timeout_ms = timeout_ms
        self.unknown_tagged_fields = None

    SCHEMA = """
ElectLeadersRequest request key=43 versions=0-2 flexible=2+ listeners=broker,controller
  election_type int8 1+
  topic_partitions []TopicPartitions nullable
    topic string key
    partitions []int32
  timeout_ms int32 default=60000
"""

    class TopicPartitions(Struct):
        __slots__ = ("topic", "partitions")

        topic: str
        partitions: list[int]

        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[int] = EMPTY,
        ) -> None:
            self.topic = topic
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class ElectLeadersResponse(Message):
    """ElectLeaders response, API key 43, versions 0-2, flexible 2+."""

    __slots__ = ("throttle_time_ms", "error_code", "replica_election_results")

    throttle_time_ms: int
    error_code: int
    replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.replica_election_results = [] if replica_election_results is EMPTY else replica_election_results
        self.unknown_tagged_fields = None

    SCHEMA = """
ElectLeadersResponse response key=43 versions=0-2 flexible=2+
  throttle_time_ms int32
  error_code int16 1+
  replica_election_results []ReplicaElectionResult
    topic string
    partition_result []PartitionResult
      partition_id int32
      error_code int16
      error_message string nullable
"""

    class PartitionResult(Struct):
        __slots__ = ("partition_id", "error_code", "error_message")

        partition_id: int
        error_code: int
        error_message: str | None

        def __init__(
            self,
            *,
            partition_id: int = 0,
            error_code: int = 0,
            error_message: str | None = "",
        ) -> None:
            self.partition_id = partition_id
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None

    class ReplicaElectionResult(Struct):
        __slots__ = ("topic", "partition_result")

        topic: str
        partition_result: list[ElectLeadersResponse.PartitionResult]

        def __init__(
            self,
            *,
            topic: str = "",
            partition_result: list[ElectLeadersResponse.PartitionResult] = EMPTY,
        ) -> None:
            self.topic = topic
            self.partition_result = [] if partition_result is EMPTY else partition_result
            self.unknown_tagged_fields = None
