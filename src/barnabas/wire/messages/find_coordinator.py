"""FindCoordinatorRequest and FindCoordinatorResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["FindCoordinatorRequest", "FindCoordinatorResponse"]


class FindCoordinatorRequest(Message):
    """FindCoordinator request, API key 10, versions 0-6, flexible 3+."""

    __slots__ = ("key", "key_type", "coordinator_keys")

    key: str
    key_type: int
    coordinator_keys: list[str]

    def __init__(
        self,
        *,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: list[str] = EMPTY,
    ) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys = [] if coordinator_keys is EMPTY else coordinator_keys
        self.unknown_tagged_fields = None

    SCHEMA = """
FindCoordinatorRequest request key=10 versions=0-6 flexible=3+ listeners=broker
  key string 0-3
  key_type int8 1+
  coordinator_keys []string 4+
"""


class FindCoordinatorResponse(Message):
    """FindCoordinator response, API key 10, versions 0-6, flexible 3+."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "node_id", "host", "port", "coordinators")

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    node_id: int
    host: str
    port: int
    coordinators: list[FindCoordinatorResponse.Coordinator]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: list[FindCoordinatorResponse.Coordinator] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators = [] if coordinators is EMPTY else coordinators
        self.unknown_tagged_fields = None

    SCHEMA = """
FindCoordinatorResponse response key=10 versions=0-6 flexible=3+
  throttle_time_ms int32 1+ ignorable
  error_code int16 0-3
  error_message string 1-3 nullable ignorable
  node_id int32 0-3
  host string 0-3
  port int32 0-3
  coordinators []Coordinator 4+
    key string 4+
    node_id int32 4+
    host string 4+
    port int32 4+
    error_code int16 4+
    error_message string 4+ nullable ignorable
"""

    class Coordinator(Struct):
        __slots__ = ("key", "node_id", "host", "port", "error_code", "error_message")

        key: str
        node_id: int
        host: str
        port: int
        error_code: int
        error_message: str | None

        def __init__(
            self,
            *,
            key: str = "",
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            error_code: int = 0,
            error_message: str | None = "",
        ) -> None:
            self.key = key
            self.node_id = node_id
            self.host = host
            self.port = port
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
