"""DescribeGroupsRequest and DescribeGroupsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["DescribeGroupsRequest", "DescribeGroupsResponse"]


class DescribeGroupsRequest(Message):
    """DescribeGroups request, API key 15, versions 0-6, flexible 5+."""

    __slots__ = ("groups", "include_authorized_operations")

    groups: list[str]
    include_authorized_operations: bool

    def __init__(
        self,
        *,
        groups: list[str] = EMPTY,
        include_authorized_operations: bool = False,
    ) -> None:
        self.groups = [] if groups is EMPTY else groups
        self.include_authorized_operations = include_authorized_operations
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeGroupsRequest request key=15 versions=0-6 flexible=5+ listeners=broker
  groups []string
  include_authorized_operations bool 3+
"""


class DescribeGroupsResponse(Message):
    """DescribeGroups response, API key 15, versions 0-6, flexible 5+."""

    __slots__ = ("throttle_time_ms", "groups")

    throttle_time_ms: int
    groups: list[DescribeGroupsResponse.DescribedGroup]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribeGroupsResponse.DescribedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY else groups
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeGroupsResponse response key=15 versions=0-6 flexible=5+
  throttle_time_ms int32 1+ ignorable
  groups []DescribedGroup
    error_code int16
    error_message string 6+ nullable default=null
    group_id string
    group_state string
    protocol_type string
    protocol_data string
    members []DescribedGroupMember
      member_id string
      group_instance_id string 4+ nullable default=null ignorable
      client_id string
      client_host string
      member_metadata bytes
      member_assignment bytes
    authorized_operations int32 3+ default=-2147483648
"""

    class DescribedGroupMember(Struct):
        __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "member_metadata", "member_assignment")

        member_id: str
        group_instance_id: str | None
        client_id: str
        client_host: str
        member_metadata: bytes
        member_assignment: bytes

        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            client_id: str = "",
            client_host: str = "",
            member_metadata: bytes = b"",
            member_assignment: bytes = b"",
        ) -> None:
            self.member_id = member_id
            self.group_instance_id = group_instance_id
            self.client_id = client_id
            self.client_host = client_host
            self.member_metadata = member_metadata
            self.member_assignment = member_assignment
            self.unknown_tagged_fields = None

    class DescribedGroup(Struct):
        __slots__ = ("error_code", "error_message", "group_id", "group_state", "protocol_type", "protocol_data", "members", "authorized_operations")

        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        protocol_type: str
        protocol_data: str
        members: list[DescribeGroupsResponse.DescribedGroupMember]
        authorized_operations: int

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            group_id: str = "",
            group_state: str = "",
            protocol_type: str = "",
            protocol_data: str = "",
            members: list[DescribeGroupsResponse.DescribedGroupMember] = EMPTY,
            authorized_operations: int = -2147483648,
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.group_id = group_id
            self.group_state = group_state
            self.protocol_type = protocol_type
            self.protocol_data = protocol_data
            self.members = [] if members is EMPTY else members
            self.authorized_operations = authorized_operations
            self.unknown_tagged_fields = None
