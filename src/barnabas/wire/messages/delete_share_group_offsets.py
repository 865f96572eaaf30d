"""DeleteShareGroupOffsetsRequest and DeleteShareGroupOffsetsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["DeleteShareGroupOffsetsRequest", "DeleteShareGroupOffsetsResponse"]


class DeleteShareGroupOffsetsRequest(Message):
    """DeleteShareGroupOffsets request, API key 92, versions 0, flexible 0+."""

    __slots__ = ("group_id", "topics")

    group_id: str
    topics: list[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic]

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
DeleteShareGroupOffsetsRequest request key=92 versions=0 flexible=0+ listeners=broker
  group_id string
  topics []DeleteShareGroupOffsetsRequestTopic
    topic_name string
"""

    class DeleteShareGroupOffsetsRequestTopic(Struct):
        __slots__ = ("topic_name",)

        topic_name: str

        def __init__(
            self,
            *,
            topic_name: str = "",
        ) -> None:
            self.topic_name = topic_name
            self.unknown_tagged_fields = None


class DeleteShareGroupOffsetsResponse(Message):
    """DeleteShareGroupOffsets response, API key 92, versions 0, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses")

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is EMPTY else responses
        self.unknown_tagged_fields = None

    SCHEMA = """
DeleteShareGroupOffsetsResponse response key=92 versions=0 flexible=0+
  throttle_time_ms int32
  error_code int16
  error_message string nullable default=null
  responses []DeleteShareGroupOffsetsResponseTopic
    topic_name string
    topic_id uuid
    error_code int16
    error_message string nullable default=null
"""

    class DeleteShareGroupOffsetsResponseTopic(Struct):
        __slots__ = ("topic_name", "topic_id", "error_code", "error_message")

        topic_name: str
        topic_id: Uuid
        error_code: int
        error_message: str | None

        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: Uuid = ZERO_UUID,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.topic_name = topic_name
            self.topic_id = topic_id
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
