"""CreatePartitionsRequest and CreatePartitionsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["CreatePartitionsRequest", "CreatePartitionsResponse"]


class CreatePartitionsRequest(Message):
    """CreatePartitions request, API key 37, versions 0-3, flexible 2+."""

    __slots__ = ("topics", "timeout_ms", "validate_only")

    topics: list[CreatePartitionsRequest.CreatePartitionsTopic]
    timeout_ms: int
    validate_only: bool

    def __init__(
        self,
        *,
        topics: list[CreatePartitionsRequest.CreatePartitionsTopic] = EMPTY,
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only
        self.unknown_tagged_fields = None

    SCHEMA = """
CreatePartitionsRequest request key=37 versions=0-3 flexible=2+ listeners=broker,controller
  topics []CreatePartitionsTopic
    name string key
    count int32
    assignments []CreatePartitionsAssignment nullable
      broker_ids []int32
  timeout_ms int32
  validate_only bool
"""

    class CreatePartitionsAssignment(Struct):
        __slots__ = ("broker_ids",)

        broker_ids: list[int]

        def __init__(
            self,
            *,
            broker_ids: list[int] = EMPTY,
        ) -> None:
            self.broker_ids = [] if broker_ids is EMPTY else broker_ids
            self.unknown_tagged_fields = None

    class CreatePartitionsTopic(Struct):
        __slots__ = ("name", "count", "assignments")

        name: str
        count: int
        assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None

        def __init__(
            self,
            *,
            name: str = "",
            count: int = 0,
            assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = EMPTY,
        ) -> None:
            self.name = name
            self.count = count
            self.assignments = [] if assignments is EMPTY else assignments
            self.unknown_tagged_fields = None


class CreatePartitionsResponse(Message):
    """CreatePartitions response, API key 37, versions 0-3, flexible 2+."""

    __slots__ = ("throttle_time_ms", "results")

    throttle_time_ms: int
    results: list[CreatePartitionsResponse.CreatePartitionsTopicResult]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsResponse.CreatePartitionsTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
        self.unknown_tagged_fields = None

    SCHEMA = """
CreatePartitionsResponse response key=37 versions=0-3 flexible=2+
  throttle_time_ms int32
  results []CreatePartitionsTopicResult
    name string
    error_code int16
    error_message string nullable default=null
"""

    class CreatePartitionsTopicResult(Struct):
        __slots__ = ("name", "error_code", "error_message")

        name: str
        error_code: int
        error_message: str | None

        def __init__(
            self,
            *,
            name: str = "",
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.name = name
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
