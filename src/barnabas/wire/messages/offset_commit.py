"""OffsetCommitRequest and OffsetCommitResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["OffsetCommitRequest", "OffsetCommitResponse"]


class OffsetCommitRequest(Message):
    """OffsetCommit request, API key 8, versions 0-10, flexible 8+."""

    __slots__ = ("group_id", "generation_id_or_member_epoch", "member_id", "group_instance_id", "retention_time_ms", "topics")

    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    retention_time_ms: int
    topics: list[OffsetCommitRequest.OffsetCommitRequestTopic]

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: list[OffsetCommitRequest.OffsetCommitRequestTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.retention_time_ms = retention_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
OffsetCommitRequest request key=8 versions=0-10 kafka=2-10 flexible=8+ listeners=broker
  group_id string
  generation_id_or_member_epoch int32 1+ default=-1 ignorable
  member_id string 1+ ignorable
  group_instance_id string 7+ nullable default=null
  retention_time_ms int64 2-4 default=-1 ignorable
  topics []OffsetCommitRequestTopic
    name string 0-9 ignorable
    topic_id uuid 10+ ignorable
    partitions []OffsetCommitRequestPartition
      partition_index int32
      committed_offset int64
      committed_leader_epoch int32 6+ default=-1 ignorable
      commit_timestamp int64 1 default=-1
      committed_metadata string nullable
"""

    class OffsetCommitRequestPartition(Struct):
        __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "commit_timestamp", "committed_metadata")

        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        commit_timestamp: int
        committed_metadata: str | None

        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            commit_timestamp: int = -1,
            committed_metadata: str | None = "",
        ) -> None:
            self.partition_index = partition_index
            self.committed_offset = committed_offset
            self.committed_leader_epoch = committed_leader_epoch
            self.commit_timestamp = commit_timestamp
            self.committed_metadata = committed_metadata
            self.unknown_tagged_fields = None

    class OffsetCommitRequestTopic(Struct):
        __slots__ = ("name", "topic_id", "partitions")

        name: str
        topic_id: Uuid
        partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition]

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: Uuid = ZERO_UUID,
            partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = EMPTY,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class OffsetCommitResponse(Message):
    """OffsetCommit response, API key 8, versions 0-10, flexible 8+."""

    __slots__ = ("throttle_time_ms", "topics")

    throttle_time_ms: int
    topics: list[OffsetCommitResponse.OffsetCommitResponseTopic]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetCommitResponse.OffsetCommitResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
OffsetCommitResponse response key=8 versions=0-10 kafka=2-10 flexible=8+
  throttle_time_ms int32 3+ ignorable
  topics []OffsetCommitResponseTopic
    name string 0-9 ignorable
    topic_id uuid 10+ ignorable
    partitions []OffsetCommitResponsePartition
      partition_index int32
      error_code int16
"""

    class OffsetCommitResponsePartition(Struct):
        __slots__ = ("partition_index", "error_code")

        partition_index: int
        error_code: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.unknown_tagged_fields = None

    class OffsetCommitResponseTopic(Struct):
        __slots__ = ("name", "topic_id", "partitions")

        name: str
        topic_id: Uuid
        partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition]

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: Uuid = ZERO_UUID,
            partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = EMPTY,
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
