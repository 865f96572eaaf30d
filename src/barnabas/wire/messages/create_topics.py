"""CreateTopicsRequest and CreateTopicsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["CreateTopicsRequest", "CreateTopicsResponse"]


class CreateTopicsRequest(Message):
    """CreateTopics request, API key 19, versions 0-7, flexible 5+."""

    __slots__ = ("topics", "timeout_ms", "validate_only")

    topics: list[CreateTopicsRequest.CreatableTopic]
    timeout_ms: int
    validate_only: bool

    def __init__(
        self,
        *,
        topics: list[CreateTopicsRequest.CreatableTopic] = EMPTY,
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only
        self.unknown_tagged_fields = None

    SCHEMA = """
CreateTopicsRequest request key=19 versions=0-7 kafka=2-7 flexible=5+ listeners=broker,controller
  topics []CreatableTopic
    name string key
    num_partitions int32
    replication_factor int16
    assignments []CreatableReplicaAssignment
      partition_index int32 key
      broker_ids []int32
    configs []CreatableTopicConfig
      name string key
      value string nullable
  timeout_ms int32 default=60000
  validate_only bool 1+
"""

    class CreatableReplicaAssignment(Struct):
        __slots__ = ("partition_index", "broker_ids")

        partition_index: int
        broker_ids: list[int]

        def __init__(
            self,
            *,
            partition_index: int = 0,
            broker_ids: list[int] = EMPTY,
        ) -> None:
            self.partition_index = partition_index
            self.broker_ids = [] if broker_ids is EMPTY else broker_ids
            self.unknown_tagged_fields = None

    class CreatableTopicConfig(Struct):
        __slots__ = ("name", "value")

        name: str
        value: str | None

        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
        ) -> None:
            self.name = name
            self.value = value
            self.unknown_tagged_fields = None

    class CreatableTopic(Struct):
        __slots__ = ("name", "num_partitions", "replication_factor", "assignments", "configs")

        name: str
        num_partitions: int
        replication_factor: int
        assignments: list[CreateTopicsRequest.CreatableReplicaAssignment]
        configs: list[CreateTopicsRequest.CreatableTopicConfig]

        def __init__(
            self,
            *,
            name: str = "",
            num_partitions: int = 0,
            replication_factor: int = 0,
            assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = EMPTY,
            configs: list[CreateTopicsRequest.CreatableTopicConfig] = EMPTY,
        ) -> None:
            self.name = name
            self.num_partitions = num_partitions
            self.replication_factor = replication_factor
            self.assignments = [] if assignments is EMPTY else assignments
            self.configs = [] if configs is EMPTY else configs
            self.unknown_tagged_fields = None


class CreateTopicsResponse(Message):
    """CreateTopics response, API key 19, versions 0-7, flexible 5+."""

    __slots__ = ("throttle_time_ms", "topics")

    throttle_time_ms: int
    topics: list[CreateTopicsResponse.CreatableTopicResult]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[CreateTopicsResponse.CreatableTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
CreateTopicsResponse response key=19 versions=0-7 kafka=2-7 flexible=5+
  throttle_time_ms int32 2+ ignorable
  topics []CreatableTopicResult
    name string key
    topic_id uuid 7+ ignorable
    error_code int16
    error_message string 1+ nullable=0+ ignorable
    topic_config_error_code int16 5+ tag=0 ignorable
    num_partitions int32 5+ default=-1 ignorable
    replication_factor int16 5+ default=-1 ignorable
    configs []CreatableTopicConfigs 5+ nullable ignorable
      name string 5+
      value string 5+ nullable
      read_only bool 5+
      config_source int8 5+ default=-1 ignorable
      is_sensitive bool 5+
"""

    class CreatableTopicConfigs(Struct):
        __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive")

        name: str
        value: str | None
        read_only: bool
        config_source: int
        is_sensitive: bool

        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
            read_only: bool = False,
            config_source: int = -1,
            is_sensitive: bool = False,
        ) -> None:
            self.name = name
            self.value = value
            self.read_only = read_only
            self.config_source = config_source
            self.is_sensitive = is_sensitive
            self.unknown_tagged_fields = None

    class CreatableTopicResult(Struct):
        __slots__ = ("name", "topic_id", "error_code", "error_message", "topic_config_error_code", "num_partitions", "replication_factor", "configs")

        name: str
        topic_id: Uuid
        error_code: int
        error_message: str | None
        topic_config_error_code: int
        num_partitions: int
        replication_factor: int
        configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: Uuid = ZERO_UUID,
            error_code: int = 0,
            error_message: str | None = "",
            topic_config_error_code: int = 0,
            num_partitions: int = -1,
            replication_factor: int = -1,
            configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = EMPTY,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.error_code = error_code
            self.error_message = error_message
            self.topic_config_error_code = topic_config_error_code
            self.num_partitions = num_partitions
            self.replication_factor = replication_factor
            self.configs = [] if configs is EMPTY else configs
            self.unknown_tagged_fields = None
