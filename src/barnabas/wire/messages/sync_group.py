"""SyncGroupRequest and SyncGroupResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["SyncGroupRequest", "SyncGroupResponse"]


class SyncGroupRequest(Message):
    """SyncGroup request, API key 14, versions 0-5, flexible 4+."""

    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id", "protocol_type", "protocol_name", "assignments")

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: list[SyncGroupRequest.SyncGroupRequestAssignment]

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequest.SyncGroupRequestAssignment] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments = [] if assignments is EMPTY else assignments
        self.unknown_tagged_fields = None

    SCHEMA = """
SyncGroupRequest request key=14 versions=0-5 flexible=4+ listeners=broker
  group_id string
  generation_id int32
  member_id string
  group_instance_id string 3+ nullable default=null
  protocol_type string 5+ nullable default=null ignorable
  protocol_name string 5+ nullable default=null ignorable
  assignments []SyncGroupRequestAssignment
    member_id string
    assignment bytes
"""

    class SyncGroupRequestAssignment(Struct):
        __slots__ = ("member_id", "assignment")

        member_id: str
        assignment: bytes

        def __init__(
            self,
            *,
            member_id: str = "",
            assignment: bytes = b"",
        ) -> None:
            self.member_id = member_id
            self.assignment = assignment
            self.unknown_tagged_fields = None


class SyncGroupResponse(Message):
    """SyncGroup response, API key 14, versions 0-5, flexible 4+."""

    __slots__ = ("throttle_time_ms", "error_code", "protocol_type", "protocol_name", "assignment")

    throttle_time_ms: int
    error_code: int
    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment
        self.unknown_tagged_fields = None

    SCHEMA = """
SyncGroupResponse response key=14 versions=0-5 flexible=4+
  throttle_time_ms int32 1+ ignorable
  error_code int16
  protocol_type string 5+ nullable default=null ignorable
  protocol_name string 5+ nullable default=null ignorable
  assignment bytes
"""
