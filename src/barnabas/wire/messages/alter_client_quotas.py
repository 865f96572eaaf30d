"""AlterClientQuotasRequest and AlterClientQuotasResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["AlterClientQuotasRequest", "AlterClientQuotasResponse"]


class AlterClientQuotasRequest(Message):
    """AlterClientQuotas request, API key 49, versions 0-1, flexible 1+."""

    __slots__ = ("entries", "validate_only")

    entries: list[AlterClientQuotasRequest.EntryData]
    validate_only: bool

    def __init__(
        self,
        *,
        entries: list[AlterClientQuotasRequest.EntryData] = EMPTY,
        validate_only: bool = False,
    ) -> None:
        self.entries = [] if entries is EMPTY else entries
        self.validate_only = validate_only
        self.unknown_tagged_fields = None

    SCHEMA = """
AlterClientQuotasRequest request key=49 versions=0-1 flexible=1+ listeners=broker,controller
  entries []EntryData
    entity []EntityData
      entity_type string
      entity_name string nullable
    ops []OpData
      key string
      value float64
      remove bool
  validate_only bool
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

    class OpData(Struct):
        __slots__ = ("key", "value", "remove")

        key: str
        value: float
        remove: bool

        def __init__(
            self,
            *,
            key: str = "",
            value: float = 0,
            remove: bool = False,
        ) -> None:
            self.key = key
            self.value = value
            self.remove = remove
            self.unknown_tagged_fields = None

    class EntryData(Struct):
        __slots__ = ("entity", "ops")

        entity: list[AlterClientQuotasRequest.EntityData]
        ops: list[AlterClientQuotasRequest.OpData]

        def __init__(
            self,
            *,
            entity: list[AlterClientQuotasRequest.EntityData] = EMPTY,
            ops: list[AlterClientQuotasRequest.OpData] = EMPTY,
        ) -> None:
            self.entity = [] if entity is EMPTY else entity
            self.ops = [] if ops is EMPTY else ops
            self.unknown_tagged_fields = None


class AlterClientQuotasResponse(Message):
    """AlterClientQuotas response, API key 49, versions 0-1, flexible 1+."""

    __slots__ = ("throttle_time_ms", "entries")

    throttle_time_ms: int
    entries: list[AlterClientQuotasResponse.EntryData]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        entries: list[AlterClientQuotasResponse.EntryData] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.entries = [] if entries is EMPTY else entries
        self.unknown_tagged_fields = None

    SCHEMA = """
AlterClientQuotasResponse response key=49 versions=0-1 flexible=1+
  throttle_time_ms int32
  entries []EntryData
    error_code int16
    error_message string nullable
    entity []EntityData
      entity_type string
      entity_name string nullable
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

    class EntryData(Struct):
        __slots__ = ("error_code", "error_message", "entity")

        error_code: int
        error_message: str | None
        entity: list[AlterClientQuotasResponse.EntityData]

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            entity: list[AlterClientQuotasResponse.EntityData] = EMPTY,
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.entity = [] if entity is EMPTY else entity
            self.unknown_tagged_fields = None
