"""AssignReplicasToDirsRequest and AssignReplicasToDirsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["AssignReplicasToDirsRequest", "AssignReplicasToDirsResponse"]


class AssignReplicasToDirsRequest(Message):
    """AssignReplicasToDirs request, API key 73, versions 0, flexible 0+."""

    __slots__ = ("broker_id", "broker_epoch", "directories")

    broker_id: int
    broker_epoch: int
    directories: list[AssignReplicasToDirsRequest.DirectoryData]

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        directories: list[AssignReplicasToDirsRequest.DirectoryData] = EMPTY,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.directories = [] if directories is EMPTY else directories
        self.unknown_tagged_fields = None

    SCHEMA = """
AssignReplicasToDirsRequest request key=73 versions=0 flexible=0+ listeners=controller
  broker_id int32
  broker_epoch int64 default=-1
  directories []DirectoryData
    id uuid
    topics []TopicData
      topic_id uuid
      partitions []PartitionData
        partition_index int32
"""

    class PartitionData(Struct):
        __slots__ = ("partition_index",)

        partition_index: int

        def __init__(
            self,
            *,
            partition_index: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.unknown_tagged_fields = None

    class TopicData(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[AssignReplicasToDirsRequest.PartitionData]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[AssignReplicasToDirsRequest.PartitionData] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class DirectoryData(Struct):
        __slots__ = ("id", "topics")

        id: Uuid
        topics: list[AssignReplicasToDirsRequest.TopicData]

        def __init__(
            self,
            *,
            id: Uuid = ZERO_UUID,
            topics: list[AssignReplicasToDirsRequest.TopicData] = EMPTY,
        ) -> None:
            self.id = id
            self.topics = [] if topics is EMPTY else topics
            self.unknown_tagged_fields = None


class AssignReplicasToDirsResponse(Message):
    """AssignReplicasToDirs response, API key 73, versions 0, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "directories")

    throttle_time_ms: int
    error_code: int
    directories: list[AssignReplicasToDirsResponse.DirectoryData]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        directories: list[AssignReplicasToDirsResponse.DirectoryData] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.directories = [] if directories is EMPTY else directories
        self.unknown_tagged_fields = None

    SCHEMA = """
AssignReplicasToDirsResponse response key=73 versions=0 flexible=0+
  throttle_time_ms int32
  error_code int16
  directories []DirectoryData
    id uuid
    topics []TopicData
      topic_id uuid
      partitions []PartitionData
        partition_index int32
        error_code int16
"""

    class PartitionData(Struct):
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

    class TopicData(Struct):
        __slots__ = ("topic_id", "partitions")

        topic_id: Uuid
        partitions: list[AssignReplicasToDirsResponse.PartitionData]

        def __init__(
            self,
            *,
            topic_id: Uuid = ZERO_UUID,
            partitions: list[AssignReplicasToDirsResponse.PartitionData] = EMPTY,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class DirectoryData(Struct):
        __slots__ = ("id", "topics")

        id: Uuid
        topics: list[AssignReplicasToDirsResponse.TopicData]

        def __init__(
            self,
            *,
            id: Uuid = ZERO_UUID,
            topics: list[AssignReplicasToDirsResponse.TopicData] = EMPTY,
        ) -> None:
            self.id = id
            self.topics = [] if topics is EMPTY else topics
            self.unknown_tagged_fields = None
