"""DescribeAclsRequest and DescribeAclsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["DescribeAclsRequest", "DescribeAclsResponse"]


class DescribeAclsRequest(Message):
    """DescribeAcls request, API key 29, versions 0-3, flexible 2+."""

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

    SCHEMA = """
DescribeAclsRequest request key=29 versions=0-3 kafka=1-3 flexible=2+ listeners=broker,controller
  resource_type_filter int8
  resource_name_filter string nullable
  pattern_type_filter int8 1+ default=3
  principal_filter string nullable
  host_filter string nullable
  operation int8
  permission_type int8
"""


class DescribeAclsResponse(Message):
    """DescribeAcls response, API key 29, versions 0-3, flexible 2+."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "resources")

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    resources: list[DescribeAclsResponse.DescribeAclsResource]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: list[DescribeAclsResponse.DescribeAclsResource] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.resources = [] if resources is EMPTY else resources
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeAclsResponse response key=29 versions=0-3 kafka=1-3 flexible=2+
  throttle_time_ms int32
  error_code int16
  error_message string nullable
  resources []DescribeAclsResource
    resource_type int8
    resource_name string
    pattern_type int8 1+ default=3
    acls []AclDescription
      principal string
      host string
      operation int8
      permission_type int8
"""

    class AclDescription(Struct):
        __slots__ = ("principal", "host", "operation", "permission_type")

        principal: str
        host: str
        operation: int
        permission_type: int

        def __init__(
            self,
            *,
            principal: str = "",
            host: str = "",
            operation: int = 0,
            permission_type: int = 0,
        ) -> None:
            self.principal = principal
            self.host = host
            self.operation = operation
            self.permission_type = permission_type
            self.unknown_tagged_fields = None

    class DescribeAclsResource(Struct):
        __slots__ = ("resource_type", "resource_name", "pattern_type", "acls")

        resource_type: int
        resource_name: str
        pattern_type: int
        acls: list[DescribeAclsResponse.AclDescription]

        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            pattern_type: int = 3,
            acls: list[DescribeAclsResponse.AclDescription] = EMPTY,
        ) -> None:
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.pattern_type = pattern_type
            self.acls = [] if acls is EMPTY else acls
            self.unknown_tagged_fields = None
