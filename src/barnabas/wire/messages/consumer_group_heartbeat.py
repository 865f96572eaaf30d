"""ConsumerGroupHeartbeatRequest and ConsumerGroupHeartbeatResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["ConsumerGroupHeartbeatRequest", "ConsumerGroupHeartbeatResponse"]


class ConsumerGroupHeartbeatRequest(Message):
    """ConsumerGroupHeartbeat request, API key 68, versions 0-1, flexible 0+."""

    __slots__ = ("group_id", "member_id", "member_epoch", "instance_id", "rack_id", "rebalance_timeout_ms", "subscribed_topic_names", "subscribed_topic_regex", "server_assignor", "topic_partitions")

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    subscribed_topic_names: list[str] | None
    subscribed_topic_regex: str | None
    server_assignor: str | None
    topic_partitions: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        topic_partitions: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.server_assignor = server_assignor
        self.topic_partitions = topic_partitions
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerGroupHeartbeatRequest request key=68 versions=0-1 flexible=0+ listeners=broker
  group_id string
  member_id string
  member_epoch int32
  instance_id string nullable default=null
  rack_id string nullable default=null
  rebalance_timeout_ms int32 default=-1
  subscribed_topic_names []string nullable default=null
  subscribed_topic_regex string 1+ nullable default=null
  server_assignor string nullable default=null
  topic_partitions []TopicPartitions nullable default=null
    topic_id uuid
    partitions []int32
"""

    class TopicPartitions(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[int]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[int] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class ConsumerGroupHeartbeatResponse(Message):
    """ConsumerGroupHeartbeat response, API key 68, versions 0-1, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "member_id", "member_epoch", "heartbeat_interval_ms", "assignment")

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: ConsumerGroupHeartbeatResponse.Assignment | None

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: ConsumerGroupHeartbeatResponse.Assignment | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment
        self.unknown_tagged_fields = None

    SCHEMA = """
ConsumerGroupHeartbeatResponse response key=68 versions=0-1 flexible=0+
  throttle_time_ms int32
  error_code int16
  error_message string nullable default=null
  member_id string nullable default=null
  member_epoch int32
  heartbeat_interval_ms int32
  assignment Assignment nullable default=null
    topic_partitions []TopicPartitions
  struct TopicPartitions
    topic_id uuid
    partitions []int32
"""

    class Assignment(Struct):
        __slots__ = ("topic_partitions",)

        topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions]

        def __init__(
            self,
            *,
            topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = EMPTY,
        ) -> None:
            self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions
            self.unknown_tagged_fields = None

    class TopicPartitions(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[int]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[int] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
