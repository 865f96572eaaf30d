"""ProduceRequest and ProduceResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["ProduceRequest", "ProduceResponse"]


class ProduceRequest(Message):
    """Produce request, API key 0, versions 0-13, flexible 9+."""

    __slots__ = ("transactional_id", "acks", "timeout_ms", "topic_data")

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topic_data: list[ProduceRequest.TopicProduceData]

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[ProduceRequest.TopicProduceData] = EMPTY,
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data = [] if topic_data is EMPTY else topic_data
        self.unknown_tagged_fields = None

    SCHEMA = """
ProduceRequest request key=0 versions=0-13 kafka=3-13 flexible=9+ listeners=broker
  transactional_id string 3+ nullable default=null
  acks int16
  timeout_ms int32
  topic_data []TopicProduceData
    name string 0-12 ignorable key
    topic_id uuid 13+ ignorable key
    partition_data []PartitionProduceData
      index int32
      records records nullable
"""

    class PartitionProduceData(Struct):
        __slots__ = ("index", "records")

        index: int
        records: bytes | None

        def __init__(
            self,
            *,
            index: int = 0,
            records: bytes | None = None,
        ) -> None:
            self.index = index
            self.records = records
            self.unknown_tagged_fields = None

    class TopicProduceData(Struct):
        __slots__ = ("name", "topic_id", "partition_data")

        name: str
        topic_id: Uuid
        partition_data: list[ProduceRequest.PartitionProduceData]

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: Uuid = ZERO_UUID,
            partition_data: list[ProduceRequest.PartitionProduceData] = EMPTY,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partition_data = [] if partition_data is EMPTY else partition_data
            self.unknown_tagged_fields = None


class ProduceResponse(Message):
    """Produce response, API key 0, versions 0-13, flexible 9+."""

    __slots__ = ("responses", "throttle_time_ms", "node_endpoints")

    responses: list[ProduceResponse.TopicProduceResponse]
    throttle_time_ms: int
    node_endpoints: list[ProduceResponse.NodeEndpoint]

    def __init__(
        self,
        *,
        responses: list[ProduceResponse.TopicProduceResponse] = EMPTY,
        throttle_time_ms: int = 0,
        node_endpoints: list[ProduceResponse.NodeEndpoint] = EMPTY,
    ) -> None:
        self.responses = [] if responses is EMPTY else responses
        self.throttle_time_ms = throttle_time_ms
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tagged_fields = None

    SCHEMA = """
ProduceResponse response key=0 versions=0-13 kafka=3-13 flexible=9+
  responses []TopicProduceResponse
    name string 0-12 ignorable key
    topic_id uuid 13+ ignorable key
    partition_responses []PartitionProduceResponse
      index int32
      error_code int16
      base_offset int64
      log_append_time_ms int64 2+ default=-1 ignorable
      log_start_offset int64 5+ default=-1 ignorable
      record_errors []BatchIndexAndErrorMessage 8+ ignorable
        batch_index int32 8+
        batch_index_error_message string 8+ nullable default=null
      error_message string 8+ nullable default=null ignorable
      current_leader LeaderIdAndEpoch 10+ tag=0
        leader_id int32 10+ default=-1
        leader_epoch int32 10+ default=-1
  throttle_time_ms int32 1+ ignorable
  node_endpoints []NodeEndpoint 10+ tag=0
    node_id int32 10+ key
    host string 10+
    port int32 10+
    rack string 10+ nullable default=null
"""

    class BatchIndexAndErrorMessage(Struct):
        __slots__ = ("batch_index", "batch_index_error_message")

        batch_index: int
        batch_index_error_message: str | None

        def __init__(
            self,
            *,
            batch_index: int = 0,
            batch_index_error_message: str | None = None,
        ) -> None:
            self.batch_index = batch_index
            self.batch_index_error_message = batch_index_error_message
            self.unknown_tagged_fields = None

    class LeaderIdAndEpoch(Struct):
        __slots__ = ("leader_id", "leader_epoch")

        leader_id: int
        leader_epoch: int

        def __init__(
            self,
            *,
            leader_id: int = -1,
            leader_epoch: int = -1,
        ) -> None:
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.unknown_tagged_fields = None

    class PartitionProduceResponse(Struct):
        __slots__ = ("index", "error_code", "base_offset", "log_append_time_ms", "log_start_offset", "record_errors", "error_message", "current_leader")

        index: int
        error_code: int
        base_offset: int
        log_append_time_ms: int
        log_start_offset: int
        record_errors: list[ProduceResponse.BatchIndexAndErrorMessage]
        error_message: str | None
        current_leader: ProduceResponse.LeaderIdAndEpoch

        def __init__(
            self,
            *,
            index: int = 0,
            error_code: int = 0,
            base_offset: int = 0,
            log_append_time_ms: int = -1,
            log_start_offset: int = -1,
            record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = EMPTY,
            error_message: str | None = None,
            current_leader: ProduceResponse.LeaderIdAndEpoch | None = None,
        ) -> None:
            self.index = index
            self.error_code = error_code
            self.base_offset = base_offset
            self.log_append_time_ms = log_append_time_ms
            self.log_start_offset = log_start_offset
            self.record_errors = [] if record_errors is EMPTY else record_errors
            self.error_message = error_message
            self.current_leader = ProduceResponse.LeaderIdAndEpoch() if current_leader is None else current_leader
            self.unknown_tagged_fields = None

    class TopicProduceResponse(Struct):
        __slots__ = ("name", "topic_id", "partition_responses")

        name: str
        topic_id: Uuid
        partition_responses: list[ProduceResponse.PartitionProduceResponse]

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: Uuid = ZERO_UUID,
            partition_responses: list[ProduceResponse.PartitionProduceResponse] = EMPTY,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partition_responses = [] if partition_responses is EMPTY else partition_responses
            self.unknown_tagged_fields = None

    class NodeEndpoint(Struct):
        __slots__ = ("node_id", "host", "port", "rack")

        node_id: int
        host: str
        port: int
        rack: str | None

        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
        ) -> None:
            self.node_id = node_id
            self.host = host
            self.port = port
            self.rack = rack
            self.unknown_tagged_fields = None
