"""BrokerRegistrationRequest and BrokerRegistrationResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["BrokerRegistrationRequest", "BrokerRegistrationResponse"]


class BrokerRegistrationRequest(Message):
    """BrokerRegistration request, API key 62, versions 0-4, flexible 0+."""

    __slots__ = ("broker_id", "cluster_id", "incarnation_id", "listeners", "features", "rack", "is_migrating_zk_broker", "log_dirs", "previous_broker_epoch")

    broker_id: int
    cluster_id: str
    incarnation_id: Uuid
    listeners: list[BrokerRegistrationRequest.Listener]
    features: list[BrokerRegistrationRequest.Feature]
    rack: str | None
    is_migrating_zk_broker: bool
    log_dirs: list[Uuid]
    previous_broker_epoch: int

    def __init__(
        self,
        *,
        broker_id: int = 0,
        cluster_id: str = "",
        incarnation_id: Uuid = ZERO_UUID,
        listeners: list[BrokerRegistrationRequest.Listener] = EMPTY,
        features: list[BrokerRegistrationRequest.Feature] = EMPTY,
        rack: str | None = "",
        is_migrating_zk_broker: bool = False,
        log_dirs: list[Uuid] = EMPTY,
        previous_broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        self.incarnation_id = incarnation_id
        self.listeners = [] if listeners is EMPTY else listeners
        self.features = [] if features is EMPTY else features
        self.rack = rack
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.log_dirs = [] if log_dirs is EMPTY else log_dirs
        self.previous_broker_epoch = previous_broker_epoch
        self.unknown_tagged_fields = None

    SCHEMA = """
BrokerRegistrationRequest request key=62 versions=0-4 flexible=0+ listeners=controller
  broker_id int32
  cluster_id string
  incarnation_id uuid
  listeners []Listener
    name string key
    host string
    port uint16
    security_protocol int16
  features []Feature
    name string key
    min_supported_version int16
    max_supported_version int16
  rack string nullable
  is_migrating_zk_broker bool 1+
  log_dirs []uuid 2+ ignorable
  previous_broker_epoch int64 3+ default=-1 ignorable
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


class BrokerRegistrationResponse(Message):
    """BrokerRegistration response, API key 62, versions 0-4, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "broker_epoch")

    throttle_time_ms: int
    error_code: int
    broker_epoch: int

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.broker_epoch = broker_epoch
        self.unknown_tagged_fields = None

    SCHEMA = """
BrokerRegistrationResponse response key=62 versions=0-4 flexible=0+
  throttle_time_ms int32
  error_code int16
  broker_epoch int64 default=-1
"""
