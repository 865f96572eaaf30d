"""DescribeConfigsRequest and DescribeConfigsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["DescribeConfigsRequest", "DescribeConfigsResponse"]


class DescribeConfigsRequest(Message):
    """DescribeConfigs request, API key 32, versions 0-4, flexible 4+."""

    __slots__ = ("resources", "include_synonyms", "include_documentation")

    resources: list[DescribeConfigsRequest.DescribeConfigsResource]
    include_synonyms: bool
    include_documentation: bool

    def __init__(
        self,
        *,
        resources: list[DescribeConfigsRequest.DescribeConfigsResource] = EMPTY,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources = [] if resources is EMPTY else resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeConfigsRequest request key=32 versions=0-4 kafka=1-4 flexible=4+ listeners=broker,controller
  resources []DescribeConfigsResource
    resource_type int8
    resource_name string
    configuration_keys []string nullable
  include_synonyms bool 1+
  include_documentation bool 3+
"""

    class DescribeConfigsResource(Struct):
        __slots__ = ("resource_type", "resource_name", "configuration_keys")

        resource_type: int
        resource_name: str
        configuration_keys: list[str] | None

        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            configuration_keys: list[str] | None = EMPTY,
        ) -> None:
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.configuration_keys = [] if configuration_keys is EMPTY else configuration_keys
            self.unknown_tagged_fields = None


class DescribeConfigsResponse(Message):
    """DescribeConfigs response, API key 32, versions 0-4, flexible 4+."""

    __slots__ = ("throttle_time_ms", "results")

    throttle_time_ms: int
    results: list[DescribeConfigsResponse.DescribeConfigsResult]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResponse.DescribeConfigsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeConfigsResponse response key=32 versions=0-4 kafka=1-4 flexible=4+
  throttle_time_ms int32
  results []DescribeConfigsResult
    error_code int16
    error_message string nullable
    resource_type int8
    resource_name string
    configs []DescribeConfigsResourceResult
      name string
      value string nullable
      read_only bool
      is_default bool 0
      config_source int8 1+ default=-1 ignorable
      is_sensitive bool
      synonyms []DescribeConfigsSynonym 1+ ignorable
        name string 1+
        value string 1+ nullable=0+
        source int8 1+
      config_type int8 3+ ignorable
      documentation string 3+ nullable=0+ ignorable
"""

    class DescribeConfigsSynonym(Struct):
        __slots__ = ("name", "value", "source")

        name: str
        value: str | None
        source: int

        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
            source: int = 0,
        ) -> None:
            self.name = name
            self.value = value
            self.source = source
            self.unknown_tagged_fields = None

    class DescribeConfigsResourceResult(Struct):
        __slots__ = ("name", "value", "read_only", "is_default", "config_source", "is_sensitive", "synonyms", "config_type", "documentation")

        name: str
        value: str | None
        read_only: bool
        is_default: bool
        config_source: int
        is_sensitive: bool
        synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym]
        config_type: int
        documentation: str | None

        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
            read_only: bool = False,
            is_default: bool = False,
            config_source: int = -1,
            is_sensitive: bool = False,
            synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = EMPTY,
            config_type: int = 0,
            documentation: str | None = "",
        ) -> None:
            self.name = name
            self.value = value
            self.read_only = read_only
            self.is_default = is_default
            self.config_source = config_source
            self.is_sensitive = is_sensitive
            self.synonyms = [] if synonyms is EMPTY else synonyms
            self.config_type = config_type
            self.documentation = documentation
            self.unknown_tagged_fields = None

    class DescribeConfigsResult(Struct):
        __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "configs")

        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult]

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            resource_type: int = 0,
            resource_name: str = "",
            configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = EMPTY,
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.configs = [] if configs is EMPTY else configs
            self.unknown_tagged_fields = None
