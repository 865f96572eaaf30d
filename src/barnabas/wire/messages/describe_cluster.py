"""DescribeClusterRequest and DescribeClusterResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["DescribeClusterRequest", "DescribeClusterResponse"]


class DescribeClusterRequest(Message):
    """DescribeCluster request, API key 60, versions 0-2, flexible 0+."""

    __slots__ = ("include_cluster_authorized_operations", "endpoint_type", "include_fenced_brokers")

    include_cluster_authorized_operations: bool
    endpoint_type: int
    include_fenced_brokers: bool

    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
    ) -> None:
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.endpoint_type = endpoint_type
        self.include_fenced_brokers = include_fenced_brokers
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeClusterRequest request key=60 versions=0-2 flexible=0+ listeners=broker,controller
  include_cluster_authorized_operations bool
  endpoint_type int8 1+ default=1
  include_fenced_brokers bool 2+
"""


class DescribeClusterResponse(Message):
    """DescribeCluster response, API key 60, versions 0-2, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "endpoint_type", "cluster_id", "controller_id", "brokers", "cluster_authorized_operations")

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    endpoint_type: int
    cluster_id: str
    controller_id: int
    brokers: list[DescribeClusterResponse.DescribeClusterBroker]
    cluster_authorized_operations: int

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterResponse.DescribeClusterBroker] = EMPTY,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.endpoint_type = endpoint_type
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = [] if brokers is EMPTY else brokers
        self.cluster_authorized_operations = cluster_authorized_operations
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeClusterResponse response key=60 versions=0-2 flexible=0+
  throttle_time_ms int32
  error_code int16
  error_message string nullable default=null
  endpoint_type int8 1+ default=1
  cluster_id string
  controller_id int32 default=-1
  brokers []DescribeClusterBroker
    broker_id int32 key
    host string
    port int32
    rack string nullable default=null
    is_fenced bool 2+
  cluster_authorized_operations int32 default=-2147483648
"""

    class DescribeClusterBroker(Struct):
        __slots__ = ("broker_id", "host", "port", "rack", "is_fenced")

        broker_id: int
        host: str
        port: int
        rack: str | None
        is_fenced: bool

        def __init__(
            self,
            *,
            broker_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
            is_fenced: bool = False,
        ) -> None:
            self.broker_id = broker_id
            self.host = host
            self.port = port
            self.rack = rack
            self.is_fenced = is_fenced
            self.unknown_tagged_fields = None
