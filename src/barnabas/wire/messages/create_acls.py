"""CreateAclsRequest and CreateAclsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["CreateAclsRequest", "CreateAclsResponse"]


class CreateAclsRequest(Message):
    """CreateAcls request, API key 30, versions 0-3, flexible 2+."""

    __slots__ = ("creations",)

    creations: list[CreateAclsRequest.AclCreation]

    def __init__(
        self,
        *,
        creations: list[CreateAclsRequest.AclCreation] = EMPTY,
    ) -> None:
        self.creations = [] if creations is EMPTY else creations
        self.unknown_tagged_fields = None

    SCHEMA = """
CreateAclsRequest request key=30 versions=0-3 kafka=1-3 flexible=2+ listeners=broker,controller
  creations []AclCreation
    resource_type int8
    resource_name string
    resource_pattern_type int8 1+ default=3
    principal string
    host string
    operation int8
    permission_type int8
"""

    class AclCreation(Struct):
        __slots__ = ("resource_type", "resource_name", "resource_pattern_type", "principal", "host", "operation", "permission_type")

        resource_type: int
        resource_name: str
        resource_pattern_type: int
        principal: str
        host: str
        operation: int
        permission_type: int

        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            resource_pattern_type: int = 3,
            principal: str = "",
            host: str = "",
            operation: int = 0,
            permission_type: int = 0,
        ) -> None:
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.resource_pattern_type = resource_pattern_type
            self.principal = principal
            self.host = host
            self.operation = operation
            self.permission_type = permission_type
            self.unknown_tagged_fields = None


class CreateAclsResponse(Message):
    """CreateAcls response, API key 30, versions 0-3, flexible 2+."""

    __slots__ = ("throttle_time_ms", "results")

    throttle_time_ms: int
    results: list[CreateAclsResponse.AclCreationResult]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreateAclsResponse.AclCreationResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
        self.unknown_tagged_fields = None

    SCHEMA = """
CreateAclsResponse response key=30 versions=0-3 kafka=1-3 flexible=2+
  throttle_time_ms int32
  results []AclCreationResult
    error_code int16
    error_message string nullable
"""

    class AclCreationResult(Struct):
        __slots__ = ("error_code", "error_message")

        error_code: int
        error_message: str | None

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
