"""DescribeClientQuotasRequest and DescribeClientQuotasResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["DescribeClientQuotasRequest", "DescribeClientQuotasResponse"]


class DescribeClientQuotasRequest(Message):
    """DescribeClientQuotas request, API key 48, versions 0-1, flexible 1+."""

    __slots__ = ("components", "strict")

    components: list[DescribeClientQuotasRequest.ComponentData]
    strict: bool

    def __init__(
        self,
        *,
        components: list[DescribeClientQuotasRequest.ComponentData] = EMPTY,
        strict: bool = False,
    ) -> None:
        self.components = [] if components is EMPTY else components
        self.strict = strict
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeClientQuotasRequest request key=48 versions=0-1 flexible=1+ listeners=broker
  components []ComponentData
    entity_type string
    match_type int8
    match string nullable
  strict bool
"""

    class ComponentData(Struct):
        __slots__ = ("entity_type", "match_type", "match")

        entity_type: str
        match_type: int
        match: str | None

        def __init__(
            self,
            *,
            entity_type: str = "",
            match_type: int = 0,
            match: str | None = "",
        ) -> None:
            self.entity_type = entity_type
            self.match_type = match_type
            self.match = match
            self.unknown_tagged_fields = None


class DescribeClientQuotasResponse(Message):
    """DescribeClientQuotas response, API key 48, versions 0-1, flexible 1+."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "entries")

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    entries: list[DescribeClientQuotasResponse.EntryData] | None

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: list[DescribeClientQuotasResponse.EntryData] | None = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.entries = [] if entries is EMPTY else entries
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeClientQuotasResponse response key=48 versions=0-1 flexible=1+
  throttle_time_ms int32
  error_code int16
  error_message string nullable
  entries []EntryData nullable
    entity []EntityData
      entity_type string
      entity_name string nullable
    values []ValueData
      key string
      value float64
"""

    class EntityData(Struct):
        __slots__ = ("entity_type", "entity_name")

        entity_type: str
        entity_name: str | None

        def __init__(
            self,
            *,
            entity_type: str = "",
            entity_name: str | None = "",
        ) -> None:
            self.entity_type = entity_type
            self.entity_name = entity_name
            self.unknown_tagged_fields = None

    class ValueData(Struct):
        __slots__ = ("key", "value")

        key: str
        value: float

        def __init__(
            self,
            *,
            key: str = "",
            value: float = 0,
        ) -> None:
            self.key = key
            self.value = value
            self.unknown_tagged_fields = None

    class EntryData(Struct):
        __slots__ = ("entity", "values")

        entity: list[DescribeClientQuotasResponse.EntityData]
        values: list[DescribeClientQuotasResponse.ValueData]

        def __init__(
            self,
            *,
            entity: list[DescribeClientQuotasResponse.EntityData] = EMPTY,
            values: list[DescribeClientQuotasResponse.ValueData] = EMPTY,
        ) -> None:
            self.entity = [] if entity is EMPTY else entity
            self.values = [] if values is EMPTY else values
            self.unknown_tagged_fields = None
