"""ApiVersionsRequest and ApiVersionsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["ApiVersionsRequest", "ApiVersionsResponse"]


class ApiVersionsRequest(Message):
    """ApiVersions request, API key 18, versions 0-4, flexible 3+."""

    __slots__ = ("client_software_name", "client_software_version")

    client_software_name: str
    client_software_version: str

    def __init__(
        self,
        *,
        client_software_name: str = "",
        client_software_version: str = "",
    ) -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version
        self.unknown_tagged_fields = None

    SCHEMA = """
ApiVersionsRequest request key=18 versions=0-4 flexible=3+ listeners=broker,controller
  client_software_name string 3+ ignorable
  client_software_version string 3+ ignorable
"""


class ApiVersionsResponse(Message):
    """ApiVersions response, API key 18, versions 0-4, flexible 3+."""

    __slots__ = ("error_code", "api_keys", "throttle_time_ms", "supported_features", "finalized_features_epoch", "finalized_features", "zk_migration_ready")

    error_code: int
    api_keys: list[ApiVersionsResponse.ApiVersion]
    throttle_time_ms: int
    supported_features: list[ApiVersionsResponse.SupportedFeatureKey]
    finalized_features_epoch: int
    finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey]
    zk_migration_ready: bool

    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: list[ApiVersionsResponse.ApiVersion] = EMPTY,
        throttle_time_ms: int = 0,
        supported_features: list[ApiVersionsResponse.SupportedFeatureKey] = EMPTY,
        finalized_features_epoch: int = -1,
        finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey] = EMPTY,
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code = error_code
        self.api_keys = [] if api_keys is EMPTY else api_keys
        self.throttle_time_ms = throttle_time_ms
        self.supported_features = [] if supported_features is EMPTY else supported_features
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features = [] if finalized_features is EMPTY else finalized_features
        self.zk_migration_ready = zk_migration_ready
        self.unknown_tagged_fields = None

    SCHEMA = """
ApiVersionsResponse response key=18 versions=0-4 flexible=3+
  error_code int16
  api_keys []ApiVersion
    api_key int16 key
    min_version int16
    max_version int16
  throttle_time_ms int32 1+ ignorable
  supported_features []SupportedFeatureKey 3+ tag=0 ignorable
    name string 3+ key
    min_version int16 3+
    max_version int16 3+
  finalized_features_epoch int64 3+ tag=1 default=-1 ignorable
  finalized_features []FinalizedFeatureKey 3+ tag=2 ignorable
    name string 3+ key
    max_version_level int16 3+
    min_version_level int16 3+
  zk_migration_ready bool 3+ tag=3 ignorable
"""

    class ApiVersion(Struct):
        __slots__ = ("api_key", "min_version", "max_version")

        api_key: int
        min_version: int
        max_version: int

        def __init__(
            self,
            *,
            api_key: int = 0,
            min_version: int = 0,
            max_version: int = 0,
        ) -> None:
            self.api_key = api_key
            self.min_version = min_version
            self.max_version = max_version
            self.unknown_tagged_fields = None

    class SupportedFeatureKey(Struct):
        __slots__ = ("name", "min_version", "max_version")

        name: str
        min_version: int
        max_version: int

        def __init__(
            self,
            *,
            name: str = "",
            min_version: int = 0,
            max_version: int = 0,
        ) -> None:
            self.name = name
            self.min_version = min_version
            self.max_version = max_version
            self.unknown_tagged_fields = None

    class FinalizedFeatureKey(Struct):
        __slots__ = ("name", "max_version_level", "min_version_level")

        name: str
        max_version_level: int
        min_version_level: int

        def __init__(
            self,
            *,
            name: str = "",
            max_version_level: int = 0,
            min_version_level: int = 0,
        ) -> None:
            self.name = name
            self.max_version_level = max_version_level
            self.min_version_level = min_version_level
            self.unknown_tagged_fields = None
