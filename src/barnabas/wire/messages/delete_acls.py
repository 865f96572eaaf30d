"""DeleteAclsRequest and DeleteAclsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["DeleteAclsRequest", "DeleteAclsResponse"]


class DeleteAclsRequest(Message):
    """DeleteAcls request, API key 31, versions 0-3, flexible 2+."""

    __slots__ = ("filters",)

    filters: list[DeleteAclsRequest.DeleteAclsFilter]

    def __init__(
        self,
        *,
        filters: list[DeleteAclsRequest.DeleteAclsFilter] = EMPTY,
    ) -> None:
        self.filters = [] if filters is EMPTY else filters
        self.unknown_tagged_fields = None

    SCHEMA = """
DeleteAclsRequest request key=31 versions=0-3 kafka=1-3 flexible=2+ listeners=broker,controller
  filters []DeleteAclsFilter
    resource_type_filter int8
    resource_name_filter string nullable
    pattern_type_filter int8 1+ default=3
    principal_filter string nullable
    host_filter string nullable
    operation int8
    permission_type int8
"""

    class DeleteAclsFilter(Struct):
        __slots__ = ("resource_type_filter", "resource_name_filter", "pattern_type_filter", "principal_filter", "host_filter", "operation", "permission_type")

        resource_type_filter: int
        resource_name_filter: str | None
        pattern_type_filter: int
        principal_filter: str | None
        host_filter: str | None
        operation: int
        permission_type: int

        def __init__(
            self,
            *,
            resource_type_filter: int = 0,
            resource_name_filter: str | None = "",
            pattern_type_filter: int = 3,
            principal_filter: str | None = "",
            host_filter: str | None = "",
            operation: int = 0,
            permission_type: int = 0,
        ) -> None:
            self.resource_type_filter = resource_type_filter
            self.resource_name_filter = resource_name_filter
            self.pattern_type_filter = pattern_type_filter
            self.principal_filter = principal_filter
            self.host_filter = host_filter
            self.operation = operation
            self.permission_type = permission_type
            self.unknown_tagged_fields = None


class DeleteAclsResponse(Message):
    """DeleteAcls response, API key 31, versions 0-3, flexible 2+."""

    __slots__ = ("throttle_time_ms", "filter_results")

    throttle_time_ms: int
    filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.filter_results = [] if filter_results is EMPTY else filter_results
        self.unknown_tagged_fields = None

    SCHEMA = """
DeleteAclsResponse response key=31 versions=0-3 kafka=1-3 flexible=2+
  throttle_time_ms int32
  filter_results []DeleteAclsFilterResult
    error_code int16
    error_message string nullable
    matching_acls []DeleteAclsMatchingAcl
      error_code int16
      error_message string nullable
      resource_type int8
      resource_name string
      pattern_type int8 1+ default=3
      principal string
      host string
      operation int8
      permission_type int8
"""

    class DeleteAclsMatchingAcl(Struct):
        __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type")

        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        pattern_type: int
        principal: str
        host: str
        operation: int
        permission_type: int

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            resource_type: int = 0,
            resource_name: str = "",
            pattern_type: int = 3,
            principal: str = "",
            host: str = "",
            operation: int = 0,
            permission_type: int = 0,
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.pattern_type = pattern_type
            self.principal = principal
            self.host = host
            self.operation = operation
            self.permission_type = permission_type
            self.unknown_tagged_fields = None

    class DeleteAclsFilterResult(Struct):
        __slots__ = ("error_code", "error_message", "matching_acls")

        error_code: int
        error_message: str | None
        matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl]

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = EMPTY,
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.matching_acls = [] if matching_acls is EMPTY else matching_acls
            self.unknown_tagged_fields = None
