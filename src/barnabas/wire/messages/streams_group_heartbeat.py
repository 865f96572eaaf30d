"""StreamsGroupHeartbeatRequest and StreamsGroupHeartbeatResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["StreamsGroupHeartbeatRequest", "StreamsGroupHeartbeatResponse"]


class StreamsGroupHeartbeatRequest(Message):
    """StreamsGroupHeartbeat request, API key 88, versions 0, flexible 0+."""

    __slots__ = ("group_id", "member_id", "member_epoch", "endpoint_information_epoch", "instance_id", "rack_id", "rebalance_timeout_ms", "topology", "active_tasks", "standby_tasks", "warmup_tasks", "process_id", "user_endpoint", "client_tags", "task_offsets", "task_end_offsets", "shutdown_application")

    group_id: str
    member_id: str
    member_epoch: int
    endpoint_information_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    topology: StreamsGroupHeartbeatRequest.Topology | None
    active_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    standby_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    warmup_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    process_id: str | None
    user_endpoint: StreamsGroupHeartbeatRequest.Endpoint | None
    client_tags: list[StreamsGroupHeartbeatRequest.KeyValue] | None
    task_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None
    task_end_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None
    shutdown_application: bool

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: StreamsGroupHeartbeatRequest.Topology | None = None,
        active_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = None,
        standby_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = None,
        warmup_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = None,
        process_id: str | None = None,
        user_endpoint: StreamsGroupHeartbeatRequest.Endpoint | None = None,
        client_tags: list[StreamsGroupHeartbeatRequest.KeyValue] | None = None,
        task_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = None,
        task_end_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = None,
        shutdown_application: bool = False,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.endpoint_information_epoch = endpoint_information_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology = topology
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = client_tags
        self.task_offsets = task_offsets
        self.task_end_offsets = task_end_offsets
        self.shutdown_application = shutdown_application
        self.unknown_tagged_fields = None

    SCHEMA = """
StreamsGroupHeartbeatRequest request key=88 versions=0 flexible=0+ listeners=broker
  group_id string
  member_id string
  member_epoch int32
  endpoint_information_epoch int32
  instance_id string nullable default=null
  rack_id string nullable default=null
  rebalance_timeout_ms int32 default=-1
  topology Topology nullable default=null
    epoch int32
    subtopologies []Subtopology
      subtopology_id string
      source_topics []string
      source_topic_regex []string
      state_changelog_topics []TopicInfo
      repartition_sink_topics []string
      repartition_source_topics []TopicInfo
      copartition_groups []CopartitionGroup
        source_topics []int16
        source_topic_regex []int16
        repartition_source_topics []int16
  active_tasks []TaskIds nullable default=null
  standby_tasks []TaskIds nullable default=null
  warmup_tasks []TaskIds nullable default=null
  process_id string nullable default=null
  user_endpoint Endpoint nullable default=null
  client_tags []KeyValue nullable default=null
  task_offsets []TaskOffset nullable default=null
  task_end_offsets []TaskOffset nullable default=null
  shutdown_application bool
  struct KeyValue
    key string
    value string
  struct TopicInfo
    name string
    partitions int32
    replication_factor int16
    topic_configs []KeyValue
  struct Endpoint
    host string
    port uint16
  struct TaskOffset
    subtopology_id string
    partition int32
    offset int64
  struct TaskIds
    subtopology_id string
    partitions []int32
"""

    class CopartitionGroup(Struct):
        __slots__ = ("source_topics", "source_topic_regex", "repartition_source_topics")

        source_topics: list[int]
        source_topic_regex: list[int]
        repartition_source_topics: list[int]

        def __init__(
            self,
            *,
            source_topics: list[int] = EMPTY,
            source_topic_regex: list[int] = EMPTY,
            repartition_source_topics: list[int] = EMPTY,
        ) -> None:
            self.source_topics = [] if source_topics is EMPTY else source_topics
            self.source_topic_regex = [] if source_topic_regex is EMPTY else source_topic_regex
            self.repartition_source_topics = [] if repartition_source_topics is EMPTY else repartition_source_topics
            self.unknown_tagged_fields = None

    class Subtopology(Struct):
        __slots__ = ("subtopology_id", "source_topics", "source_topic_regex", "state_changelog_topics", "repartition_sink_topics", "repartition_source_topics", "copartition_groups")

        subtopology_id: str
        source_topics: list[str]
        source_topic_regex: list[str]
        state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo]
        repartition_sink_topics: list[str]
        repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo]
        copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup]

        def __init__(
            self,
            *,
            subtopology_id: str = "",
            source_topics: list[str] = EMPTY,
            source_topic_regex: list[str] = EMPTY,
            state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = EMPTY,
            repartition_sink_topics: list[str] = EMPTY,
            repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = EMPTY,
            copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup] = EMPTY,
        ) -> None:
            self.subtopology_id = subtopology_id
            self.source_topics = [] if source_topics is EMPTY else source_topics
            self.source_topic_regex = [] if source_topic_regex is EMPTY else source_topic_regex
            self.state_changelog_topics = [] if state_changelog_topics is EMPTY else state_changelog_topics
            self.repartition_sink_topics = [] if repartition_sink_topics is EMPTY else repartition_sink_topics
            self.repartition_source_topics = [] if repartition_source_topics is EMPTY else repartition_source_topics
            self.copartition_groups = [] if copartition_groups is EMPTY else copartition_groups
            self.unknown_tagged_fields = None

    class Topology(Struct):
        __slots__ = ("epoch", "subtopologies")

        epoch: int
        subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology]

        def __init__(
            self,
            *,
            epoch: int = 0,
            subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology] = EMPTY,
        ) -> None:
            self.epoch = epoch
            self.subtopologies = [] if subtopologies is EMPTY else subtopologies
            self.unknown_tagged_fields = None

    class KeyValue(Struct):
        __slots__ = ("key", "value")

        key: str
        value: str

        def __init__(
            self,
            *,
            key: str = "",
            value: str = "",
        ) -> None:
            self.key = key
            self.value = value
            self.unknown_tagged_fields = None

    class TopicInfo(Struct):
        __slots__ = ("name", "partitions", "replication_factor", "topic_configs")

        name: str
        partitions: int
        replication_factor: int
        topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: int = 0,
            replication_factor: int = 0,
            topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = partitions
            self.replication_factor = replication_factor
            self.topic_configs = [] if topic_configs is EMPTY else topic_configs
            self.unknown_tagged_fields = None

    class Endpoint(Struct):
        __slots__ = ("host", "port")

        host: str
        port: int

        def __init__(
            self,
            *,
            host: str = "",
            port: int = 0,
        ) -> None:
            self.host = host
            self.port = port
            self.unknown_tagged_fields = None

    class TaskOffset(Struct):
        __slots__ = ("subtopology_id", "partition", "offset")

        subtopology_id: str
        partition: int
        offset: int

        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partition: int = 0,
            offset: int = 0,
        ) -> None:
            self.subtopology_id = subtopology_id
            self.partition = partition
            self.offset = offset
            self.unknown_tagged_fields = None

    class TaskIds(Struct):
        __slots__ = ("subtopology_id", "partitions")

        subtopology_id: str
        partitions: list[int]

        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partitions: list[int] = EMPTY,
        ) -> None:
            self.subtopology_id = subtopology_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class StreamsGroupHeartbeatResponse(Message):
    """StreamsGroupHeartbeat response, API key 88, versions 0, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "member_id", "member_epoch", "heartbeat_interval_ms", "acceptable_recovery_lag", "task_offset_interval_ms", "status", "active_tasks", "standby_tasks", "warmup_tasks", "endpoint_information_epoch", "partitions_by_user_endpoint")

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    acceptable_recovery_lag: int
    task_offset_interval_ms: int
    status: list[StreamsGroupHeartbeatResponse.Status] | None
    active_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    standby_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    warmup_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    endpoint_information_epoch: int
    partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponse.EndpointToPartitions] | None

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag: int = 0,
        task_offset_interval_ms: int = 0,
        status: list[StreamsGroupHeartbeatResponse.Status] | None = EMPTY,
        active_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = None,
        standby_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = None,
        warmup_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = None,
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponse.EndpointToPartitions] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.acceptable_recovery_lag = acceptable_recovery_lag
        self.task_offset_interval_ms = task_offset_interval_ms
        self.status = [] if status is EMPTY else status
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.endpoint_information_epoch = endpoint_information_epoch
        self.partitions_by_user_endpoint = partitions_by_user_endpoint
        self.unknown_tagged_fields = None

    SCHEMA = """
StreamsGroupHeartbeatResponse response key=88 versions=0 flexible=0+
  throttle_time_ms int32
  error_code int16
  error_message string nullable default=null
  member_id string
  member_epoch int32
  heartbeat_interval_ms int32
  acceptable_recovery_lag int32
  task_offset_interval_ms int32
  status []Status nullable
  active_tasks []TaskIds nullable default=null
  standby_tasks []TaskIds nullable default=null
  warmup_tasks []TaskIds nullable default=null
  endpoint_information_epoch int32
  partitions_by_user_endpoint []EndpointToPartitions nullable default=null
    user_endpoint Endpoint
    active_partitions []TopicPartition
    standby_partitions []TopicPartition
  struct Status
    status_code int8
    status_detail string
  struct TopicPartition
    topic string
    partitions []int32
  struct TaskIds
    subtopology_id string
    partitions []int32
  struct Endpoint
    host string
    port uint16
"""

    class EndpointToPartitions(Struct):
        __slots__ = ("user_endpoint", "active_partitions", "standby_partitions")

        user_endpoint: StreamsGroupHeartbeatResponse.Endpoint
        active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition]
        standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition]

        def __init__(
            self,
            *,
            user_endpoint: StreamsGroupHeartbeatResponse.Endpoint | None = None,
            active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = EMPTY,
            standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = EMPTY,
        ) -> None:
            self.user_endpoint = StreamsGroupHeartbeatResponse.Endpoint() if user_endpoint is None else user_endpoint
            self.active_partitions = [] if active_partitions is EMPTY else active_partitions
            self.standby_partitions = [] if standby_partitions is EMPTY else standby_partitions
            self.unknown_tagged_fields = None

    class Status(Struct):
        __slots__ = ("status_code", "status_detail")

        status_code: int
        status_detail: str

        def __init__(
            self,
            *,
            status_code: int = 0,
            status_detail: str = "",
        ) -> None:
            self.status_code = status_code
            self.status_detail = status_detail
            self.unknown_tagged_fields = None

    class TopicPartition(Struct):
        __slots__ = ("topic", "partitions")

        topic: str
        partitions: list[int]

        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[int] = EMPTY,
        ) -> None:
            self.topic = topic
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class TaskIds(Struct):
        __slots__ = ("subtopology_id", "partitions")

        subtopology_id: str
        partitions: list[int]

        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partitions: list[int] = EMPTY,
        ) -> None:
            self.subtopology_id = subtopology_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class Endpoint(Struct):
        __slots__ = ("host", "port")

        host: str
        port: int

        def __init__(
            self,
            *,
            host: str = "",
            port: int = 0,
        ) -> None:
            self.host = host
            self.port = port
            self.unknown_tagged_fields = None
