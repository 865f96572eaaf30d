"""StreamsGroupDescribeRequest and StreamsGroupDescribeResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["StreamsGroupDescribeRequest", "StreamsGroupDescribeResponse"]


class StreamsGroupDescribeRequest(Message):
    """StreamsGroupDescribe request, API key 89, versions 0, flexible 0+."""

    __slots__ = ("group_ids", "include_authorized_operations")

    group_ids: list[str]
    include_authorized_operations: bool

    def __init__(
        self,
        *,
        group_ids: list[str] = EMPTY,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids = [] if group_ids is EMPTY else group_ids
        self.include_authorized_operations = include_authorized_operations
        self.unknown_tagged_fields = None

    SCHEMA = """
StreamsGroupDescribeRequest request key=89 versions=0 flexible=0+ listeners=broker
  group_ids []string
  include_authorized_operations bool
"""


class StreamsGroupDescribeResponse(Message):
    """StreamsGroupDescribe response, API key 89, versions 0, flexible 0+."""

    __slots__ = ("throttle_time_ms", "groups")

    throttle_time_ms: int
    groups: list[StreamsGroupDescribeResponse.DescribedGroup]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[StreamsGroupDescribeResponse.DescribedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY else groups
        self.unknown_tagged_fields = None

    SCHEMA = """
StreamsGroupDescribeResponse response key=89 versions=0 flexible=0+
  throttle_time_ms int32
  groups []DescribedGroup
    error_code int16
    error_message string nullable default=null
    group_id string
    group_state string
    group_epoch int32
    assignment_epoch int32
    topology Topology nullable default=null
      epoch int32
      subtopologies []Subtopology nullable default=null
        subtopology_id string
        source_topics []string
        repartition_sink_topics []string
        state_changelog_topics []TopicInfo
        repartition_source_topics []TopicInfo
    members []Member
      member_id string
      member_epoch int32
      instance_id string nullable default=null
      rack_id string nullable default=null
      client_id string
      client_host string
      topology_epoch int32
      process_id string
      user_endpoint Endpoint nullable default=null
      client_tags []KeyValue
      task_offsets []TaskOffset
      task_end_offsets []TaskOffset
      assignment Assignment
      target_assignment Assignment
      is_classic bool
    authorized_operations int32 default=-2147483648
  struct Endpoint
    host string
    port uint16
  struct TaskOffset
    subtopology_id string
    partition int32
    offset int64
  struct Assignment
    active_tasks []TaskIds
    standby_tasks []TaskIds
    warmup_tasks []TaskIds
  struct TaskIds
    subtopology_id string
    partitions []int32
  struct KeyValue
    key string
    value string
  struct TopicInfo
    name string
    partitions int32
    replication_factor int16
    topic_configs []KeyValue
"""

    class Subtopology(Struct):
        __slots__ = ("subtopology_id", "source_topics", "repartition_sink_topics", "state_changelog_topics", "repartition_source_topics")

        subtopology_id: str
        source_topics: list[str]
        repartition_sink_topics: list[str]
        state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo]
        repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo]

        def __init__(
            self,
            *,
            subtopology_id: str = "",
            source_topics: list[str] = EMPTY,
            repartition_sink_topics: list[str] = EMPTY,
            state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo] = EMPTY,
            repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo] = EMPTY,
        ) -> None:
            self.subtopology_id = subtopology_id
            self.source_topics = [] if source_topics is EMPTY else source_topics
            self.repartition_sink_topics = [] if repartition_sink_topics is EMPTY else repartition_sink_topics
            self.state_changelog_topics = [] if state_changelog_topics is EMPTY else state_changelog_topics
            self.repartition_source_topics = [] if repartition_source_topics is EMPTY else repartition_source_topics
            self.unknown_tagged_fields = None

    class Topology(Struct):
        __slots__ = ("epoch", "subtopologies")

        epoch: int
        subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None

        def __init__(
            self,
            *,
            epoch: int = 0,
            subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None = None,
        ) -> None:
            self.epoch = epoch
            self.subtopologies = subtopologies
            self.unknown_tagged_fields = None

    class Member(Struct):
        __slots__ = ("member_id", "member_epoch", "instance_id", "rack_id", "client_id", "client_host", "topology_epoch", "process_id", "user_endpoint", "client_tags", "task_offsets", "task_end_offsets", "assignment", "target_assignment", "is_classic")

        member_id: str
        member_epoch: int
        instance_id: str | None
        rack_id: str | None
        client_id: str
        client_host: str
        topology_epoch: int
        process_id: str
        user_endpoint: StreamsGroupDescribeResponse.Endpoint | None
        client_tags: list[StreamsGroupDescribeResponse.KeyValue]
        task_offsets: list[StreamsGroupDescribeResponse.TaskOffset]
        task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset]
        assignment: StreamsGroupDescribeResponse.Assignment
        target_assignment: StreamsGroupDescribeResponse.Assignment
        is_classic: bool

        def __init__(
            self,
            *,
            member_id: str = "",
            member_epoch: int = 0,
            instance_id: str | None = None,
            rack_id: str | None = None,
            client_id: str = "",
            client_host: str = "",
            topology_epoch: int = 0,
            process_id: str = "",
            user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = None,
            client_tags: list[StreamsGroupDescribeResponse.KeyValue] = EMPTY,
            task_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = EMPTY,
            task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = EMPTY,
            assignment: StreamsGroupDescribeResponse.Assignment | None = None,
            target_assignment: StreamsGroupDescribeResponse.Assignment | None = None,
            is_classic: bool = False,
        ) -> None:
            self.member_id = member_id
            self.member_epoch = member_epoch
            self.instance_id = instance_id
            self.rack_id = rack_id
            self.client_id = client_id
            self.client_host = client_host
            self.topology_epoch = topology_epoch
            self.process_id = process_id
            self.user_endpoint = user_endpoint
            self.client_tags = [] if client_tags is EMPTY else client_tags
            self.task_offsets = [] if task_offsets is EMPTY else task_offsets
            self.task_end_offsets = [] if task_end_offsets is EMPTY else task_end_offsets
            self.assignment = StreamsGroupDescribeResponse.Assignment() if assignment is None else assignment
            self.target_assignment = StreamsGroupDescribeResponse.Assignment() if target_assignment is None else target_assignment
            self.is_classic = is_classic
            self.unknown_tagged_fields = None

    class DescribedGroup(Struct):
        __slots__ = ("error_code", "error_message", "group_id", "group_state", "group_epoch", "assignment_epoch", "topology", "members", "authorized_operations")

        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        topology: StreamsGroupDescribeResponse.Topology | None
        members: list[StreamsGroupDescribeResponse.Member]
        authorized_operations: int

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            group_id: str = "",
            group_state: str = "",
            group_epoch: int = 0,
            assignment_epoch: int = 0,
            topology: StreamsGroupDescribeResponse.Topology | None = None,
            members: list[StreamsGroupDescribeResponse.Member] = EMPTY,
            authorized_operations: int = -2147483648,
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.group_id = group_id
            self.group_state = group_state
            self.group_epoch = group_epoch
            self.assignment_epoch = assignment_epoch
            self.topology = topology
            self.members = [] if members is EMPTY else members
            self.authorized_operations = authorized_operations
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

    class Assignment(Struct):
        __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks")

        active_tasks: list[StreamsGroupDescribeResponse.TaskIds]
        standby_tasks: list[StreamsGroupDescribeResponse.TaskIds]
        warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds]

        def __init__(
            self,
            *,
            active_tasks: list[StreamsGroupDescribeResponse.TaskIds] = EMPTY,
            standby_tasks: list[StreamsGroupDescribeResponse.TaskIds] = EMPTY,
            warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds] = EMPTY,
        ) -> None:
            self.active_tasks = [] if active_tasks is EMPTY else active_tasks
            self.standby_tasks = [] if standby_tasks is EMPTY else standby_tasks
            self.warmup_tasks = [] if warmup_tasks is EMPTY else warmup_tasks
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
        topic_configs: list[StreamsGroupDescribeResponse.KeyValue]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: int = 0,
            replication_factor: int = 0,
            topic_configs: list[StreamsGroupDescribeResponse.KeyValue] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = partitions
            self.replication_factor = replication_factor
            self.topic_configs = [] if topic_configs is EMPTY else topic_configs
            self.unknown_tagged_fields = None
