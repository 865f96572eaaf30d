"""ControllerRegistrationRequest and ControllerRegistrationResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["ControllerRegistrationRequest", "ControllerRegistrationResponse"]


class ControllerRegistrationRequest(Message):
    """ControllerRegistration request, API key 70, versions 0, flexible 0+."""

    __slots__ = ("controller_id", "incarnation_id", "zk_migration_ready", "listeners", "features")

    controller_id: int
    incarnation_id: Uuid
    zk_migration_ready: bool
    listeners: list[ControllerRegistrationRequest.Listener]
    features: list[ControllerRegistrationRequest.Feature]

    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: Uuid = ZERO_UUID,
        zk_migration_ready: bool = False,
        listeners: list[ControllerRegistrationRequest.Listener] = EMPTY,
        features: list[ControllerRegistrationRequest.Feature] = EMPTY,
    ) -> None:
        self.controller_id = controller_id
        self.incarnation_id = incarnation_id
        self.zk_migration_ready = zk_migration_ready
        self.listeners = [] if listeners is EMPTY else listeners
        self.features = [] if features is EMPTY else features
        self.unknown_tagged_fields = None

    SCHEMA = """
ControllerRegistrationRequest request key=70 versions=0 flexible=0+ listeners=controller
  controller_id int32
  incarnation_id uuid
  zk_migration_ready bool
  listeners []Listener
    name string key
    host string
    port uint16
    security_protocol int16
  features []Feature
    name string key
    min_supported_version int16
    max_supported_version int16
"""

    class Listener(Struct):
        __slots__ = ("name", "host", "port", "security_protocol")

        name: str
        host: str
        port: int
        security_protocol: int

        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            security_protocol: int = 0,
        ) -> None:
            self.name = name
            self.host = host
            self.port = port
            self.security_protocol = security_protocol
            self.unknown_tagged_fields = None

    class Feature(Struct):
        __slots__ = ("name", "min_supported_version", "max_supported_version")

        name: str
        min_supported_version: int
        max_supported_version: int

        def __init__(
            self,
            *,
            name: str = "",
            min_supported_version: int = 0,
            max_supported_version: int = 0,
        ) -> None:
            self.name = name
            self.min_supported_version = min_supported_version
            self.max_supported_version = max_supported_version
            self.unknown_tagged_fields = None


class ControllerRegistrationResponse(Message):
    """ControllerRegistration response, API key 70, versions 0, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message")

    throttle_time_ms: int
    error_code: int
    error_message: str | None

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tagged_fields = None

    SCHEMA = """
ControllerRegistrationResponse response key=70 versions=0 flexible=0+
  throttle_time_ms int32
  error_code int16
  error_message string nullable
"""
