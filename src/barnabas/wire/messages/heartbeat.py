"""HeartbeatRequest and HeartbeatResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import Message

__all__ = ["HeartbeatRequest", "HeartbeatResponse"]


class HeartbeatRequest(Message):
    """Heartbeat request, API key 12, versions 0-4, flexible 4+."""

    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id")

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.unknown_tagged_fields = None

    SCHEMA = """
HeartbeatRequest request key=12 versions=0-4 flexible=4+ listeners=broker
  group_id string
  generation_id int32
  member_id string
  group_instance_id string 3+ nullable default=null
"""


class HeartbeatResponse(Message):
    """Heartbeat response, API key 12, versions 0-4, flexible 4+."""

    __slots__ = ("throttle_time_ms", "error_code")

    throttle_time_ms: int
    error_code: int

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_tagged_fields = None

    SCHEMA = """
HeartbeatResponse response key=12 versions=0-4 flexible=4+
  throttle_time_ms int32 1+ ignorable
  error_code int16
"""
