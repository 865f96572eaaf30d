"""OffsetForLeaderEpochRequest and OffsetForLeaderEpochResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["OffsetForLeaderEpochRequest", "OffsetForLeaderEpochResponse"]


class OffsetForLeaderEpochRequest(Message):
    """OffsetForLeaderEpoch request, API key 23, versions 0-4, flexible 4+."""

    __slots__ = ("replica_id", "topics")

    replica_id: int
    topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic]

    def __init__(
        self,
        *,
        replica_id: int = -2,
        topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = EMPTY,
    ) -> None:
        self.replica_id = replica_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
OffsetForLeaderEpochRequest request key=23 versions=0-4 kafka=2-4 flexible=4+ listeners=broker
  replica_id int32 3+ default=-2 ignorable
  topics []OffsetForLeaderTopic
    topic string key
    partitions []OffsetForLeaderPartition
      partition int32
      current_leader_epoch int32 2+ default=-1 ignorable
      leader_epoch int32
"""

    class OffsetForLeaderPartition(Struct):
        __slots__ = ("partition", "current_leader_epoch", "leader_epoch")

        partition: int
        current_leader_epoch: int
        leader_epoch: int

        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = -1,
            leader_epoch: int = 0,
        ) -> None:
            self.partition = partition
            self.current_leader_epoch = current_leader_epoch
            self.leader_epoch = leader_epoch
            self.unknown_tagged_fields = None

    class OffsetForLeaderTopic(Struct):
        __slots__ = ("topic", "partitions")

        topic: str
        partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition]

        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = EMPTY,
        ) -> None:
            self.topic = topic
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class OffsetForLeaderEpochResponse(Message):
    """OffsetForLeaderEpoch response, API key 23, versions 0-4, flexible 4+."""

    __slots__ = ("throttle_time_ms", "topics")

    throttle_time_ms: int
    topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
OffsetForLeaderEpochResponse response key=23 versions=0-4 kafka=2-4 flexible=4+
  throttle_time_ms int32 2+ ignorable
  topics []OffsetForLeaderTopicResult
    topic string key
    partitions []EpochEndOffset
      error_code int16
      partition int32
      leader_epoch int32 1+ default=-1 ignorable
      end_offset int64 default=-1
"""

    class EpochEndOffset(Struct):
        __slots__ = ("error_code", "partition", "leader_epoch", "end_offset")

        error_code: int
        partition: int
        leader_epoch: int
        end_offset: int

        def __init__(
            self,
            *,
            error_code: int = 0,
            partition: int = 0,
            leader_epoch: int = -1,
            end_offset: int = -1,
        ) -> None:
            self.error_code = error_code
            self.partition = partition
            self.leader_epoch = leader_epoch
            self.end_offset = end_offset
            self.unknown_tagged_fields = None

    class OffsetForLeaderTopicResult(Struct):
        __slots__ = ("topic", "partitions")

        topic: str
        partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset]

        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = EMPTY,
        ) -> None:
            self.topic = topic
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
