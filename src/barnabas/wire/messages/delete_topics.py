"""DeleteTopicsRequest and DeleteTopicsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["DeleteTopicsRequest", "DeleteTopicsResponse"]


class DeleteTopicsRequest(Message):
    """DeleteTopics request, API key 20, versions 0-6, flexible 4+."""

    __slots__ = ("topics", "topic_names", "timeout_ms")

    topics: list[DeleteTopicsRequest.DeleteTopicState]
    topic_names: list[str]
    timeout_ms: int

    def __init__(
        self,
        *,
        topics: list[DeleteTopicsRequest.DeleteTopicState] = EMPTY,
        topic_names: list[str] = EMPTY,
        timeout_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.topic_names = [] if topic_names is EMPTY else topic_names
        self.timeout_ms = timeout_ms
        self.unknown_tagged_fields = None

    SCHEMA = """
DeleteTopicsRequest request key=20 versions=0-6 kafka=1-6 flexible=4+ listeners=broker,controller
  topics []DeleteTopicState 6+
    name string 6+ nullable default=null
    topic_id uuid 6+
  topic_names []string 0-5 ignorable
  timeout_ms int32
"""

    class DeleteTopicState(Struct):
        __slots__ = ("name", "topic_id")

        name: str | None
        topic_id: Uuid

        def __init__(
            self,
            *,
            name: str | None = None,
            topic_id: Uuid = ZERO_UUID,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.unknown_tagged_fields = None


class DeleteTopicsResponse(Message):
    """DeleteTopics response, API key 20, versions 0-6, flexible 4+."""

    __slots__ = ("throttle_time_ms", "responses")

    throttle_time_ms: int
    responses: list[DeleteTopicsResponse.DeletableTopicResult]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[DeleteTopicsResponse.DeletableTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is EMPTY else responses
        self.unknown_tagged_fields = None

    SCHEMA = """
DeleteTopicsResponse response key=20 versions=0-6 kafka=1-6 flexible=4+
  throttle_time_ms int32 1+ ignorable
  responses []DeletableTopicResult
    name string nullable=6+ key
    topic_id uuid 6+ ignorable
    error_code int16
    error_message string 5+ nullable default=null ignorable
"""

    class DeletableTopicResult(Struct):
        __slots__ = ("name", "topic_id", "error_code", "error_message")

        name: str | None
        topic_id: Uuid
        error_code: int
        error_message: str | None

        def __init__(
            self,
            *,
            name: str | None = "",
            topic_id: Uuid = ZERO_UUID,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
