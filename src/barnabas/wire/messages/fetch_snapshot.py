"""FetchSnapshotRequest and FetchSnapshotResponse.

Generated from schema/messages.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["FetchSnapshotRequest", "FetchSnapshotResponse"]


class FetchSnapshotRequest(Message):
    """FetchSnapshot request, API key 59, versions 0-1, flexible 0+."""

    __slots__ = ("cluster_id", "replica_id", "max_bytes", "topics")

    cluster_id: str | None
    replica_id: int
    max_bytes: int
    topics: list[FetchSnapshotRequest.TopicSnapshot]

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        max_bytes: int = 2147483647,
        topics: list[FetchSnapshotRequest.TopicSnapshot] = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.max_bytes = max_bytes
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tagged_fields = None

    SCHEMA = """
FetchSnapshotRequest request key=59 versions=0-1 flexible=0+ listeners=controller
  cluster_id string nullable tag=0 default=null
  replica_id int32 default=-1
  max_bytes int32 default=2147483647
  topics []TopicSnapshot
    name string
    partitions []PartitionSnapshot
      partition int32
      current_leader_epoch int32
      snapshot_id SnapshotId
        end_offset int64
        epoch int32
      position int64
      replica_directory_id uuid 1+ tag=0 ignorable
"""

    class SnapshotId(Struct):
        __slots__ = ("end_offset", "epoch")

        end_offset: int
        epoch: int

        def __init__(
            self,
            *,
            end_offset: int = 0,
            epoch: int = 0,
        ) -> None:
            self.end_offset = end_offset
            self.epoch = epoch
            self.unknown_tagged_fields = None

    class PartitionSnapshot(Struct):
        __slots__ = ("partition", "current_leader_epoch", "snapshot_id", "position", "replica_directory_id")

        partition: int
        current_leader_epoch: int
        snapshot_id: FetchSnapshotRequest.SnapshotId
        position: int
        replica_directory_id: Uuid

        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = 0,
            snapshot_id: FetchSnapshotRequest.SnapshotId | None = None,
            position: int = 0,
            replica_directory_id: Uuid = ZERO_UUID,
        ) -> None:
            self.partition = partition
            self.current_leader_epoch = current_leader_epoch
            self.snapshot_id = FetchSnapshotRequest.SnapshotId() if snapshot_id is None else snapshot_id
            self.position = position
            self.replica_directory_id = replica_directory_id
            self.unknown_tagged_fields = None

    class TopicSnapshot(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[FetchSnapshotRequest.PartitionSnapshot]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[FetchSnapshotRequest.PartitionSnapshot] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None


class FetchSnapshotResponse(Message):
    """FetchSnapshot response, API key 59, versions 0-1, flexible 0+."""

    __slots__ = ("throttle_time_ms", "error_code", "topics", "node_endpoints")

    throttle_time_ms: int
    error_code: int
    topics: list[FetchSnapshotResponse.TopicSnapshot]
    node_endpoints: list[FetchSnapshotResponse.NodeEndpoint]

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[FetchSnapshotResponse.TopicSnapshot] = EMPTY,
        node_endpoints: list[FetchSnapshotResponse.NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics = [] if topics is EMPTY else topics
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tagged_fields = None

    SCHEMA = """
FetchSnapshotResponse response key=59 versions=0-1 flexible=0+
  throttle_time_ms int32 ignorable
  error_code int16
  topics []TopicSnapshot
    name string
    partitions []PartitionSnapshot
      index int32
      error_code int16
      snapshot_id SnapshotId
        end_offset int64
        epoch int32
      current_leader LeaderIdAndEpoch tag=0
        leader_id int32
        leader_epoch int32
      size int64
      position int64
      unaligned_records records
  node_endpoints []NodeEndpoint 1+ tag=0
    node_id int32 1+ key
    host string 1+
    port uint16 1+
"""

    class SnapshotId(Struct):
        __slots__ = ("end_offset", "epoch")

        end_offset: int
        epoch: int

        def __init__(
            self,
            *,
            end_offset: int = 0,
            epoch: int = 0,
        ) -> None:
            self.end_offset = end_offset
            self.epoch = epoch
            self.unknown_tagged_fields = None

    class LeaderIdAndEpoch(Struct):
        __slots__ = ("leader_id", "leader_epoch")

        leader_id: int
        leader_epoch: int

        def __init__(
            self,
            *,
            leader_id: int = 0,
            leader_epoch: int = 0,
        ) -> None:
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.unknown_tagged_fields = None

    class PartitionSnapshot(Struct):
        __slots__ = ("index", "error_code", "snapshot_id", "current_leader", "size", "position", "unaligned_records")

        index: int
        error_code: int
        snapshot_id: FetchSnapshotResponse.SnapshotId
        current_leader: FetchSnapshotResponse.LeaderIdAndEpoch
        size: int
        position: int
        unaligned_records: bytes | None

        def __init__(
            self,
            *,
            index: int = 0,
            error_code: int = 0,
            snapshot_id: FetchSnapshotResponse.SnapshotId | None = None,
            current_leader: FetchSnapshotResponse.LeaderIdAndEpoch | None = None,
            size: int = 0,
            position: int = 0,
            unaligned_records: bytes | None = None,
        ) -> None:
            self.index = index
            self.error_code = error_code
            self.snapshot_id = FetchSnapshotResponse.SnapshotId() if snapshot_id is None else snapshot_id
            self.current_leader = FetchSnapshotResponse.LeaderIdAndEpoch() if current_leader is None else current_leader
            self.size = size
            self.position = position
            self.unaligned_records = unaligned_records
            self.unknown_tagged_fields = None

    class TopicSnapshot(Struct):
        __slots__ = ("name", "partitions")

        name: str
        partitions: list[FetchSnapshotResponse.PartitionSnapshot]

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[FetchSnapshotResponse.PartitionSnapshot] = EMPTY,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is EMPTY else partitions
            self.unknown_tagged_fields = None

    class NodeEndpoint(Struct):
        __slots__ = ("node_id", "host", "port")

        node_id: int
        host: str
        port: int

        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
        ) -> None:
            self.node_id = node_id
            self.host = host
            self.port = port
            self.unknown_tagged_fields = None
