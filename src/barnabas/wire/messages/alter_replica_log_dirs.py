"""AlterReplicaLogDirsRequest and AlterReplicaLogDirsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["AlterReplicaLogDirsRequest", "AlterReplicaLogDirsResponse"]


class AlterReplicaLogDirsRequest(Message):
    """AlterReplicaLogDirs request, API key 34, versions 0-2, flexible 2+."""

    __slots__ = ("dirs",)

    dirs: list[AlterReplicaLogDirsRequest.AlterReplicaLogDir]

    def __init__(
        self,
        *,
        dirs: list[AlterReplicaLogDirsRequest.AlterReplicaLogDir] = EMPTY,
    ) -> None:
        self.dirs = [] if dirs is EMPTY else dirs
        self.unknown_tagged_fields = None

    SCHEMA = """
AlterReplicaLogDirsRequest request key=34 versions=0-2 kafka=1-2 flexible=2+ listeners=broker
  dirs []AlterReplicaLogDir
    path string key
    topics []AlterReplicaLogDirTopic
      name string key
      partitions []int32
"""

    class AlterReplicaLogDirTopic(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[int]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[int] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class AlterReplicaLogDir(Struct):
        __slots__ = ("path", "topics")

        path: str
        topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic]

        def __init__(
            self,
            *,
            path: str = "",
            topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = EMPTY,
        ) -> None:
            self.path = path
            self.topics = [] if topics is EMPTY else topics
            self.unknown_tagged_fields = None


class AlterReplicaLogDirsResponse(Message):
    """AlterReplicaLogDirs response, API key 34, versions 0-2, flexible 2+."""

    __slots__ = ("throttle_time_ms", "results")

    throttle_time_ms: int
    results: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
        self.unknown_tagged_fields = None

    SCHEMA = """
AlterReplicaLogDirsResponse response key=34 versions=0-2 kafka=1-2 flexible=2+
  throttle_time_ms int32
  results []AlterReplicaLogDirTopicResult
    topic_name string
    partitions []AlterReplicaLogDirPartitionResult
      partition_index int32
      error_code int16
"""

    class AlterReplicaLogDirPartitionResult(Struct):
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

    class AlterReplicaLogDirTopicResult(Struct):
        __slots__ = ("topic_name", "partitions")

        topic_name: str
        partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult]

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = EMPTY,
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None
