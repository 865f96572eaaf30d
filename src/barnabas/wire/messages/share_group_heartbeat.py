"""ShareGroupHeartbeatRequest and ShareGroupHeartbeatResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["ShareGroupHeartbeatRequest", "ShareGroupHeartbeatResponse"]


class ShareGroupHeartbeatRequest(Message):
    """ShareGroupHeartbeat request, API key 76, versions 1, flexible 0+."""

    __slots__ = ("group_id", "member_id", "member_epoch", "rack_id", "subscribed_topic_names")

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    subscribed_topic_names: list[str] | None

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.rack_id = rack_id
        self.subscribed_topic_names = subscribed_topic_names
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareGroupHeartbeatRequest request key=76 versions=1 flexible=0+ listeners=broker
  group_id string
  member_id string
  member_epoch int32
  rack_id string nullable default=null
  subscribed_topic_names []string nullable default=null
"""


class ShareGroupHeartbeatResponse(Message):
    """ShareGroupHeartbeat response, API key 76, versions 1, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "member_id", "member_epoch", "heartbeat_interval_ms", "assignment")

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: ShareGroupHeartbeatResponse.Assignment | None

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: ShareGroupHeartbeatResponse.Assignment | None = None,
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
ShareGroupHeartbeatResponse response key=76 versions=1 flexible=0+
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

        topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions]

        def __init__(
            self,
            *,
            topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions] = EMPTY,
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
