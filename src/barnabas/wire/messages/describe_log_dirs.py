"""DescribeLogDirsRequest and DescribeLogDirsResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct

__all__ = ["DescribeLogDirsRequest", "DescribeLogDirsResponse"]


class DescribeLogDirsRequest(Message):
    """DescribeLogDirs request, API key 35, versions 0-5, flexible 2+."""

    __slots__ = ("topics",)

    topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None

    def __init__(
        self,
        *,
        topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None = EMPTY,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeLogDirsRequest request key=35 versions=0-5 kafka=1-5 flexible=2+ listeners=broker
  topics []DescribableLogDirTopic nullable
    topic string key
    partitions []int32
"""

    class DescribableLogDirTopic(Struct):
        __slots__ = ("topic", "partitions")

        topic: str
        partitions: list[int]

        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[int] = EMPTY,
        ) -> None:
            self.topic = topic
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class DescribeLogDirsResponse(Message):
    """DescribeLogDirs response, API key 35, versions 0-5, flexible 2+."""

    __slots__ = ("throttle_time_ms", "error_code", "results")

    throttle_time_ms: int
    error_code: int
    results: list[DescribeLogDirsResponse.DescribeLogDirsResult]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResponse.DescribeLogDirsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results = [] if results is EMPTY else results
        self.unknown_tagged_fields = None

    SCHEMA = """
DescribeLogDirsResponse response key=35 versions=0-5 kafka=1-5 flexible=2+
  throttle_time_ms int32
  error_code int16 3+ ignorable
  results []DescribeLogDirsResult
    error_code int16
    log_dir string
    topics []DescribeLogDirsTopic
      name string
      partitions []DescribeLogDirsPartition
        partition_index int32
        partition_size int64
        offset_lag int64
        is_future_key bool
    total_bytes int64 4+ default=-1 ignorable
    usable_bytes int64 4+ default=-1 ignorable
    is_cordoned bool 5+ ignorable
"""

    class DescribeLogDirsPartition(Struct):
        __slots__ = ("partition_index", "partition_size", "offset_lag", "is_future_key")

        partition_index: int
        partition_size: int
        offset_lag: int
        is_future_key: bool

        def __init__(
            self,
            *,
            partition_index: int = 0,
            partition_size: int = 0,
            offset_lag: int = 0,
            is_future_key: bool = False,
        ) -> None:
            self.partition_index = partition_index
            self.partition_size = partition_size
            self.offset_lag = offset_lag
            self.is_future_key = is_future_key
            self.unknown_tagged_fields = None

    class DescribeLogDirsTopic(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class DescribeLogDirsResult(Struct):
        __slots__ = ("error_code", "log_dir", "topics", "total_bytes", "usable_bytes", "is_cordoned")

        error_code: int
        log_dir: str
        topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic]
        total_bytes: int
        usable_bytes: int
        is_cordoned: bool

        def __init__(
            self,
            *,
            error_code: int = 0,
            log_dir: str = "",
            topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = EMPTY,
            total_bytes: int = -1,
            usable_bytes: int = -1,
            is_cordoned: bool = False,
        ) -> None:
            self.error_code = error_code
            self.log_dir = log_dir
            self.topics = [] if topics is EMPTY else topics
            self.total_bytes = total_bytes
            self.usable_bytes = usable_bytes
            self.is_cordoned = is_cordoned
            self.unknown_tagged_fields = None
