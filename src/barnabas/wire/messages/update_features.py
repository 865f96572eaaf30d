"""UpdateFeaturesRequest and UpdateFeaturesResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["UpdateFeaturesRequest", "UpdateFeaturesResponse"]


class UpdateFeaturesRequest(Message):
    """UpdateFeatures request, API key 57, versions 0-2, flexible 0+."""

    __slots__ = ("timeout_ms", "feature_updates", "validate_only")

    timeout_ms: int
    feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey]
    validate_only: bool

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey] = EMPTY,
        validate_only: bool = False,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.feature_updates = [] if feature_updates is EMPTY else feature_updates
        self.validate_only = validate_only
        self.unknown_tagged_fields = None

    SCHEMA = """
UpdateFeaturesRequest request key=57 versions=0-2 flexible=0+ listeners=broker,controller
  timeout_ms int32 default=60000
  feature_updates []FeatureUpdateKey
    feature string key
    max_version_level int16
    allow_downgrade bool 0
    upgrade_type int8 1+ default=1
  validate_only bool 1+
"""

    class FeatureUpdateKey(Struct):
        __slots__ = ("feature", "max_version_level", "allow_downgrade", "upgrade_type")

        feature: str
        max_version_level: int
        allow_downgrade: bool
        upgrade_type: int

        def __init__(
            self,
            *,
            feature: str = "",
            max_version_level: int = 0,
            allow_downgrade: bool = False,
            upgrade_type: int = 1,
        ) -> None:
            self.feature = feature
            self.max_version_level = max_version_level
            self.allow_downgrade = allow_downgrade
            self.upgrade_type = upgrade_type
            self.unknown_tagged_fields = None


class UpdateFeaturesResponse(Message):
    """UpdateFeatures response, API key 57, versions 0-2, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results")

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: list[UpdateFeaturesResponse.UpdatableFeatureResult]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[UpdateFeaturesResponse.UpdatableFeatureResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is EMPTY else results
        self.unknown_tagged_fields = None

    SCHEMA = """
UpdateFeaturesResponse response key=57 versions=0-2 flexible=0+
  throttle_time_ms int32
  error_code int16
  error_message string nullable
  results []UpdatableFeatureResult 0-1 ignorable
    feature string key
    error_code int16
    error_message string nullable
"""

    class UpdatableFeatureResult(Struct):
        __slots__ = ("feature", "error_code", "error_message")

        feature: str
        error_code: int
        error_message: str | None

        def __init__(
            self,
            *,
            feature: str = "",
            error_code: int = 0,
            error_message: str | None = "",
        ) -> None:
            self.feature = feature
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
