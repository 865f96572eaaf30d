"""DeleteGroupsRequest and DeleteGroupsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["DeleteGroupsRequest", "DeleteGroupsResponse"]


class DeleteGroupsRequest(Message):
    """DeleteGroups request, API key 42, versions 0-2, flexible 2+."""

    __slots__ = ("groups_names",)

    groups_names: list[str]

    def __init__(
        self,
        *,
        groups_names: list[str] = EMPTY,
    ) -> None:
        self.groups_names = [] if groups_names is EMPTY else groups_names
        self.unknown_tagged_fields = None

    SCHEMA = """
DeleteGroupsRequest request key=42 versions=0-2 flexible=2+ listeners=broker
  groups_names []string
"""


class DeleteGroupsResponse(Message):
    """DeleteGroups response, API key 42, versions 0-2, flexible 2+."""

    __slots__ = ("throttle_time_ms", "results")

    throttle_time_ms: int
    results: list[DeleteGroupsResponse.DeletableGroupResult]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DeleteGroupsResponse.DeletableGroupResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
        self.unknown_tagged_fields = None

    SCHEMA = """
DeleteGroupsResponse response key=42 versions=0-2 flexible=2+
  throttle_time_ms int32
  results []DeletableGroupResult
    group_id string key
    error_code int16
"""

    class DeletableGroupResult(Struct):
        __slots__ = ("group_id", "error_code")

        group_id: str
        error_code: int

        def __init__(
            self,
            *,
            group_id: str = "",
            error_code: int = 0,
        ) -> None:
            self.group_id = group_id
            self.error_code = error_code
            self.unknown_tagged_fields = None
