"""IncrementalAlterConfigsRequest and IncrementalAlterConfigsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["IncrementalAlterConfigsRequest", "IncrementalAlterConfigsResponse"]


class IncrementalAlterConfigsRequest(Message):
    """IncrementalAlterConfigs request, API key 44, versions 0-1, flexible 1+."""

    __slots__ = ("resources", "validate_only")

    resources: list[IncrementalAlterConfigsRequest.AlterConfigsResource]
    validate_only: bool

    def __init__(
        self,
        *,
        resources: list[IncrementalAlterConfigsRequest.AlterConfigsResource] = EMPTY,
        validate_only: bool = False,
    ) -> None:
        self.resources = [] if resources is EMPTY else resources
        self.validate_only = validate_only
        self.unknown_tagged_fields = None

    SCHEMA = """
IncrementalAlterConfigsRequest request key=44 versions=0-1 flexible=1+ listeners=broker,controller
  resources []AlterConfigsResource
    resource_type int8 key
    resource_name string key
    configs []AlterableConfig
      name string key
      config_operation int8 key
      value string nullable
  validate_only bool
"""

    class AlterableConfig(Struct):
        __slots__ = ("name", "config_operation", "value")

        name: str
        config_operation: int
        value: str | None

        def __init__(
            self,
            *,
            name: str = "",
            config_operation: int = 0,
            value: str | None = "",
        ) -> None:
            self.name = name
            self.config_operation = config_operation
            self.value = value
            self.unknown_tagged_fields = None

    class AlterConfigsResource(Struct):
        __slots__ = ("resource_type", "resource_name", "configs")

        resource_type: int
        resource_name: str
        configs: list[IncrementalAlterConfigsRequest.AlterableConfig]

        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            configs: list[IncrementalAlterConfigsRequest.AlterableConfig] = EMPTY,
        ) -> None:
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.configs = [] if configs is EMPTY else configs
            self.unknown_tagged_fields = None


class IncrementalAlterConfigsResponse(Message):
    """IncrementalAlterConfigs response, API key 44, versions 0-1, flexible 1+."""

    __slots__ = ("throttle_time_ms", "responses")

    throttle_time_ms: int
    responses: list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is EMPTY else responses
        self.unknown_tagged_fields = None

    SCHEMA = """
IncrementalAlterConfigsResponse response key=44 versions=0-1 flexible=1+
  throttle_time_ms int32
  responses []AlterConfigsResourceResponse
    error_code int16
    error_message string nullable
    resource_type int8
    resource_name string
"""

    class AlterConfigsResourceResponse(Struct):
        __slots__ = ("error_code", "error_message", "resource_type", "resource_name")

        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            resource_type: int = 0,
            resource_name: str = "",
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.unknown_tagged_fields = None
