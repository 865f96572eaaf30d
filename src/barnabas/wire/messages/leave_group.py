"""LeaveGroupRequest and LeaveGroupResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["LeaveGroupRequest", "LeaveGroupResponse"]


class LeaveGroupRequest(Message):
    """LeaveGroup request, API key 13, versions 0-5, flexible 4+."""

    __slots__ = ("group_id", "member_id", "members")

    group_id: str
    member_id: str
    members: list[LeaveGroupRequest.MemberIdentity]

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        members: list[LeaveGroupRequest.MemberIdentity] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members = [] if members is EMPTY else members
        self.unknown_tagged_fields = None

    SCHEMA = """
LeaveGroupRequest request key=13 versions=0-5 flexible=4+ listeners=broker
  group_id string
  member_id string 0-2
  members []MemberIdentity 3+
    member_id string 3+
    group_instance_id string 3+ nullable default=null
    reason string 5+ nullable default=null ignorable
"""

    class MemberIdentity(Struct):
        __slots__ = ("member_id", "group_instance_id", "reason")

        member_id: str
        group_instance_id: str | None
        reason: str | None

        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            reason: str | None = None,
        ) -> None:
            self.member_id = member_id
            self.group_instance_id = group_instance_id
            self.reason = reason
            self.unknown_tagged_fields = None


class LeaveGroupResponse(Message):
    """LeaveGroup response, API key 13, versions 0-5, flexible 4+."""

    __slots__ = ("throttle_time_ms", "error_code", "members")

    throttle_time_ms: int
    error_code: int
    members: list[LeaveGroupResponse.MemberResponse]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[LeaveGroupResponse.MemberResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members = [] if members is EMPTY else members
        self.unknown_tagged_fields = None

    SCHEMA = """
LeaveGroupResponse response key=13 versions=0-5 flexible=4+
  throttle_time_ms int32 1+ ignorable
  error_code int16
  members []MemberResponse 3+
    member_id string 3+
    group_instance_id string 3+ nullable
    error_code int16 3+
"""

    class MemberResponse(Struct):
        __slots__ = ("member_id", "group_instance_id", "error_code")

        member_id: str
        group_instance_id: str | None
        error_code: int

        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = "",
            error_code: int = 0,
        ) -> None:
            self.member_id = member_id
            self.group_instance_id = group_instance_id
            self.error_code = error_code
            self.unknown_tagged_fields = None
