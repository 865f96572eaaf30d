"""ListGroupsRequest and ListGroupsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["ListGroupsRequest", "ListGroupsResponse"]


class ListGroupsRequest(Message):
    """ListGroups request, API key 16, versions 0-5, flexible 3+."""

    __slots__ = ("states_filter", "types_filter")

    states_filter: list[str]
    types_filter: list[str]

    def __init__(
        self,
        *,
        states_filter: list[str] = EMPTY,
        types_filter: list[str] = EMPTY,
    ) -> None:
        self.states_filter = [] if states_filter is EMPTY else states_filter
        self.types_filter = [] if types_filter is EMPTY else types_filter
        self.unknown_tagged_fields = None

    SCHEMA = """
ListGroupsRequest request key=16 versions=0-5 flexible=3+ listeners=broker
  states_filter []string 4+
  types_filter []string 5+
"""


class ListGroupsResponse(Message):
    """ListGroups response, API key 16, versions 0-5, flexible 3+."""

    __slots__ = ("throttle_time_ms", "error_code", "groups")

    throttle_time_ms: int
    error_code: int
    groups: list[ListGroupsResponse.ListedGroup]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListGroupsResponse.ListedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.groups = [] if groups is EMPTY else groups
        self.unknown_tagged_fields = None

    SCHEMA = """
ListGroupsResponse response key=16 versions=0-5 flexible=3+
  throttle_time_ms int32 1+ ignorable
  error_code int16
  groups []ListedGroup
    group_id string
    protocol_type string
    group_state string 4+ ignorable
    group_type string 5+ ignorable
"""

    class ListedGroup(Struct):
        __slots__ = ("group_id", "protocol_type", "group_state", "group_type")

        group_id: str
        protocol_type: str
        group_state: str
        group_type: str

        def __init__(
            self,
            *,
            group_id: str = "",
            protocol_type: str = "",
            group_state: str = "",
            group_type: str = "",
        ) -> None:
            self.group_id = group_id
            self.protocol_type = protocol_type
            self.group_state = group_state
            self.group_type = group_type
            self.unknown_tagged_fields = None
