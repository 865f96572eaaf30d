"""TxnOffsetCommitRequest and TxnOffsetCommitResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["TxnOffsetCommitRequest", "TxnOffsetCommitResponse"]


class TxnOffsetCommitRequest(Message):
    """TxnOffsetCommit request, API key 28, versions 0-5, flexible 3+."""

    __slots__ = ("transactional_id", "group_id", "producer_id", "producer_epoch", "generation_id", "member_id", "group_instance_id", "topics")

    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int
    member_id: str
    group_instance_id: str | None
    topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic]

    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = EMPTY,
    ) -> None:
        self.transactional_id = transactional_id
        self.group_id = group_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
TxnOffsetCommitRequest request key=28 versions=0-5 flexible=3+ listeners=broker
  transactional_id string
  group_id string
  producer_id int64
  producer_epoch int16
  generation_id int32 3+ default=-1
  member_id string 3+
  group_instance_id string 3+ nullable default=null
  topics []TxnOffsetCommitRequestTopic
    name string
    partitions []TxnOffsetCommitRequestPartition
      partition_index int32
      committed_offset int64
      committed_leader_epoch int32 2+ default=-1 ignorable
      committed_metadata string nullable
"""

    class TxnOffsetCommitRequestPartition(Struct):
        __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")

        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        committed_metadata: str | None

        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            committed_metadata: str | None = "",
        ) -> None:
            self.partition_index = partition_index
            self.committed_offset = committed_offset
            self.committed_leader_epoch = committed_leader_epoch
            self.committed_metadata = committed_metadata
            self.unknown_tagged_fields = None

    class TxnOffsetCommitRequestTopic(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class TxnOffsetCommitResponse(Message):
    """TxnOffsetCommit response, API key 28, versions 0-5, flexible 3+."""

    __slots__ = ("throttle_time_ms", "topics")

    throttle_time_ms: int
    topics: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
TxnOffsetCommitResponse response key=28 versions=0-5 flexible=3+
  throttle_time_ms int32
  topics []TxnOffsetCommitResponseTopic
    name string
    partitions []TxnOffsetCommitResponsePartition
      partition_index int32
      error_code int16
"""

    class TxnOffsetCommitResponsePartition(Struct):
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

    class TxnOffsetCommitResponseTopic(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
