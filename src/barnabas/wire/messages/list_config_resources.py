"""ListConfigResourcesRequest and ListConfigResourcesResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["ListConfigResourcesRequest", "ListConfigResourcesResponse"]


class ListConfigResourcesRequest(Message):
    """ListConfigResources request, API key 74, versions 0-1, flexible 0+."""

    __slots__ = ("resource_types",)

    resource_types: list[int]

    def __init__(
        self,
        *,
        resource_types: list[int] = EMPTY,
    ) -> None:
        self.resource_types = [] if resource_types is EMPTY else resource_types
        self.unknown_tagged_fields = None

    SCHEMA = """
ListConfigResourcesRequest request key=74 versions=0-1 flexible=0+ listeners=broker
  resource_types []int8 1+
"""


class ListConfigResourcesResponse(Message):
    """ListConfigResources response, API key 74, versions 0-1, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "config_resources")

    throttle_time_ms: int
    error_code: int
    config_resources: list[ListConfigResourcesResponse.ConfigResource]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ListConfigResourcesResponse.ConfigResource] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.config_resources = [] if config_resources is EMPTY else config_resources
        self.unknown_tagged_fields = None

    SCHEMA = """
ListConfigResourcesResponse response key=74 versions=0-1 flexible=0+
  throttle_time_ms int32
  error_code int16
  config_resources []ConfigResource
    resource_name string
    resource_type int8 1+ default=16 ignorable
"""

    class ConfigResource(Struct):
        __slots__ = ("resource_name", "resource_type")

        resource_name: str
        resource_type: int

        def __init__(
            self,
            *,
            resource_name: str = "",
            resource_type: int = 16,
        ) -> None:
            self.resource_name = resource_name
            self.resource_type = resource_type
            self.unknown_tagged_fields = None
