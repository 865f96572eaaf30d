"""ShareGroupDescribeRequest and ShareGroupDescribeResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["ShareGroupDescribeRequest", "ShareGroupDescribeResponse"]


class ShareGroupDescribeRequest(Message):
    """ShareGroupDescribe request, API key 77, versions 1, flexible 0+."""

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
ShareGroupDescribeRequest request key=77 versions=1 flexible=0+ listeners=broker
  group_ids []string
  include_authorized_operations bool
"""


class ShareGroupDescribeResponse(Message):
    """ShareGroupDescribe response, API key 77, versions 1, flexible 0+."""

    __slots__ = ("throttle_time_ms", "groups")

    throttle_time_ms: int
    groups: list[ShareGroupDescribeResponse.DescribedGroup]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[ShareGroupDescribeResponse.DescribedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY else groups
        self.unknown_tagged_fields = None

    SCHEMA = """
ShareGroupDescribeResponse response key=77 versions=1 flexible=0+
  throttle_time_ms int32
  groups []DescribedGroup
    error_code int16
    error_message string nullable default=null
    group_id string
    group_state string
    group_epoch int32
    assignment_epoch int32
    assignor_name string
    members []Member
      member_id string
      rack_id string nullable default=null
      member_epoch int32
      client_id string
      client_host string
      subscribed_topic_names []string
      assignment Assignment
    authorized_operations int32 default=-2147483648
  struct TopicPartitions
    topic_id uuid
    topic_name string
    partitions []int32
  struct Assignment
    topic_partitions []TopicPartitions
"""

    class Member(Struct):
        __slots__ = ("member_id", "rack_id", "member_epoch", "client_id", "client_host", "subscribed_topic_names", "assignment")

        member_id: str
        rack_id: str | None
        member_epoch: int
        client_id: str
        client_host: str
        subscribed_topic_names: list[str]
        assignment: ShareGroupDescribeResponse.Assignment

        def __init__(
            self,
            *,
            member_id: str = "",
            rack_id: str | None = None,
            member_epoch: int = 0,
            client_id: str = "",
            client_host: str = "",
            subscribed_topic_names: list[str] = EMPTY,
            assignment: ShareGroupDescribeResponse.Assignment | None = None,
        ) -> None:
            self.member_id = member_id
            self.rack_id = rack_id
            self.member_epoch = member_epoch
            self.client_id = client_id
            self.client_host = client_host
            self.subscribed_topic_names = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
            self.assignment = ShareGroupDescribeResponse.Assignment() if assignment is None else assignment
            self.unknown_tagged_fields = None

    class DescribedGroup(Struct):
        __slots__ = ("error_code", "error_message", "group_id", "group_state", "group_epoch", "assignment_epoch", "assignor_name", "members", "authorized_operations")

        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        assignor_name: str
        members: list[ShareGroupDescribeResponse.Member]
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
            assignor_name: str = "",
            members: list[ShareGroupDescribeResponse.Member] = EMPTY,
            authorized_operations: int = -2147483648,
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.group_id = group_id
            self.group_state = group_state
            self.group_epoch = group_epoch
            self.assignment_epoch = assignment_epoch
            self.assignor_name = assignor_name
            self.members = [] if members is EMPTY else members
            self.authorized_operations = authorized_operations
            self.unknown_tagged_fields = None

    class TopicPartitions(Struct):
        __slots__ = ("topic_id", "topic_name", "partitions")

        topic_id: Uuid
        topic_name: str
        partitions: list[int]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            topic_name: str = "",
            partitions: list[int] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.topic_name = topic_name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class Assignment(Struct):
        __slots__ = ("topic_partitions",)

        topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions]

        def __init__(
            self,
            *,
            topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = EMPTY,
        ) -> None:
            self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions
            self.unknown_tagged_fields = None
