"""OffsetFetchRequest and OffsetFetchResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["OffsetFetchRequest", "OffsetFetchResponse"]


class OffsetFetchRequest(Message):
    """OffsetFetch request, API key 9, versions 0-10, flexible 6+."""

    __slots__ = ("group_id", "topics", "groups", "require_stable")

    group_id: str
    topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None
    groups: list[OffsetFetchRequest.OffsetFetchRequestGroup]
    require_stable: bool

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None = EMPTY,
        groups: list[OffsetFetchRequest.OffsetFetchRequestGroup] = EMPTY,
        require_stable: bool = False,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.groups = [] if groups is EMPTY else groups
        self.require_stable = require_stable
        self.unknown_tagged_fields = None

    SCHEMA = """
OffsetFetchRequest request key=9 versions=0-10 kafka=1-10 flexible=6+ listeners=broker
  group_id string 0-7
  topics []OffsetFetchRequestTopic 0-7 nullable=2-7
    name string 0-7
    partition_indexes []int32 0-7
  groups []OffsetFetchRequestGroup 8+
    group_id string 8+
    member_id string 9+ nullable default=null ignorable
    member_epoch int32 9+ default=-1 ignorable
    topics []OffsetFetchRequestTopics 8+ nullable
      name string 8-9 ignorable
      topic_id uuid 10+ ignorable
      partition_indexes []int32 8+
  require_stable bool 7+
"""

    class OffsetFetchRequestTopic(Struct):
        __slots__ = ("name", "partition_indexes")

        name: str
        partition_indexes: list[int]

        def __init__(
            self,
            *,
            name: str = "",
            partition_indexes: list[int] = EMPTY,
        ) -> None:
            self.name = name
            self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes
            self.unknown_tagged_fields = None

    class OffsetFetchRequestTopics(Struct):
        __slots__ = ("name", "topic_id", "partition_indexes")

        name: str
        topic_id: Uuid
        partition_indexes: list[int]

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: Uuid = ZERO_UUID,
            partition_indexes: list[int] = EMPTY,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes
            self.unknown_tagged_fields = None

    class OffsetFetchRequestGroup(Struct):
        __slots__ = ("group_id", "member_id", "member_epoch", "topics")

        group_id: str
        member_id: str | None
        member_epoch: int
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None

        def __init__(
            self,
            *,
            group_id: str = "",
            member_id: str | None = None,
            member_epoch: int = -1,
            topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = EMPTY,
        ) -> None:
            self.group_id = group_id
            self.member_id = member_id
            self.member_epoch = member_epoch
            self.topics = [] if topics is EMPTY else topics
            self.unknown_tagged_fields = None


class OffsetFetchResponse(Message):
    """OffsetFetch response, API key 9, versions 0-10, flexible 6+."""

    __slots__ = ("throttle_time_ms", "topics", "error_code", "groups")

    throttle_time_ms: int
    topics: list[OffsetFetchResponse.OffsetFetchResponseTopic]
    error_code: int
    groups: list[OffsetFetchResponse.OffsetFetchResponseGroup]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopic] = EMPTY,
        error_code: int = 0,
        groups: list[OffsetFetchResponse.OffsetFetchResponseGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.error_code = error_code
        self.groups = [] if groups is EMPTY else groups
        self.unknown_tagged_fields = None

    SCHEMA = """
OffsetFetchResponse response key=9 versions=0-10 kafka=1-10 flexible=6+
  throttle_time_ms int32 3+ ignorable
  topics []OffsetFetchResponseTopic 0-7
    name string 0-7
    partitions []OffsetFetchResponsePartition 0-7
      partition_index int32 0-7
      committed_offset int64 0-7
      committed_leader_epoch int32 5-7 default=-1 ignorable
      metadata string 0-7 nullable
      error_code int16 0-7
  error_code int16 2-7 ignorable
  groups []OffsetFetchResponseGroup 8+
    group_id string 8+
    topics []OffsetFetchResponseTopics 8+
      name string 8-9 ignorable
      topic_id uuid 10+ ignorable
      partitions []OffsetFetchResponsePartitions 8+
        partition_index int32 8+
        committed_offset int64 8+
        committed_leader_epoch int32 8+ default=-1 ignorable
        metadata string 8+ nullable
        error_code int16 8+
    error_code int16 8+
"""

    class OffsetFetchResponsePartition(Struct):
        __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")

        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        metadata: str | None
        error_code: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            metadata: str | None = "",
            error_code: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.committed_offset = committed_offset
            self.committed_leader_epoch = committed_leader_epoch
            self.metadata = metadata
            self.error_code = error_code
            self.unknown_tagged_fields = None

    class OffsetFetchResponseTopic(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class OffsetFetchResponsePartitions(Struct):
        __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")

        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        metadata: str | None
        error_code: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            metadata: str | None = "",
            error_code: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.committed_offset = committed_offset
            self.committed_leader_epoch = committed_leader_epoch
            self.metadata = metadata
            self.error_code = error_code
            self.unknown_tagged_fields = None

    class OffsetFetchResponseTopics(Struct):
        __slots__ = ("name", "topic_id", "partitions")

        name: str
        topic_id: Uuid
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions]

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: Uuid = ZERO_UUID,
            partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = EMPTY,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class OffsetFetchResponseGroup(Struct):
        __slots__ = ("group_id", "topics", "error_code")

        group_id: str
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopics]
        error_code: int

        def __init__(
            self,
            *,
            group_id: str = "",
            topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = EMPTY,
            error_code: int = 0,
        ) -> None:
            self.group_id = group_id
            self.topics = [] if topics is EMPTY else topics
            self.error_code = error_code
            self.unknown_tagged_fields = None
