"""Records of the group storage.

Generated from schema/records.txt by `make generate`; do not edit.
"""

from __future__ import annotations

from barnabas.wire.message import EMPTY, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid

__all__ = ["ProducerSnapshot", "RemoteLogSegmentMetadataRecord", "RemoteLogSegmentMetadataUpdateRecord", "RemotePartitionDeleteMetadataRecord", "RemoteLogSegmentMetadataSnapshotRecord"]


class ProducerSnapshot(Message):
    """Record, versions 1, flexible none."""

    __slots__ = ("crc", "producer_entries")

    crc: int
    producer_entries: list[ProducerSnapshot.ProducerEntry]

    def __init__(
        self,
        *,
        crc: int = 0,
        producer_entries: list[ProducerSnapshot.ProducerEntry] = EMPTY,
    ) -> None:
        self.crc = crc
        self.producer_entries = [] if producer_entries is EMPTY else producer_entries
        self.unknown_tagged_fields = None

    SCHEMA = """
ProducerSnapshot record group=storage versions=1 flexible=none
  crc uint32 1
  producer_entries []ProducerEntry 1
    producer_id int64 1
    epoch int16 1
    last_sequence int32 1
    last_offset int64 1
    offset_delta int32 1
    timestamp int64 1
    coordinator_epoch int32 1
    current_txn_first_offset int64 1
"""

    class ProducerEntry(Struct):
        __slots__ = ("producer_id", "epoch", "last_sequence", "last_offset", "offset_delta", "timestamp", "coordinator_epoch", "current_txn_first_offset")

        producer_id: int
        epoch: int
        last_sequence: int
        last_offset: int
        offset_delta: int
        timestamp: int
        coordinator_epoch: int
        current_txn_first_offset: int

        def __init__(
            self,
            *,
            producer_id: int = 0,
            epoch: int = 0,
            last_sequence: int = 0,
            last_offset: int = 0,
            offset_delta: int = 0,
            timestamp: int = 0,
            coordinator_epoch: int = 0,
            current_txn_first_offset: int = 0,
        ) -> None:
            self.producer_id = producer_id
            self.epoch = epoch
            self.last_sequence = last_sequence
            self.last_offset = last_offset
            self.offset_delta = offset_delta
            self.timestamp = timestamp
            self.coordinator_epoch = coordinator_epoch
            self.current_txn_first_offset = current_txn_first_offset
            self.unknown_tagged_fields = None


class RemoteLogSegmentMetadataRecord(Message):
    """Record type 0, versions 0, flexible 0+."""

    __slots__ = ("remote_log_segment_id", "start_offset", "end_offset", "broker_id", "max_timestamp_ms", "event_timestamp_ms", "segment_leader_epochs", "segment_size_in_bytes", "custom_metadata", "remote_log_segment_state", "txn_index_empty")

    remote_log_segment_id: RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry
    start_offset: int
    end_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    segment_leader_epochs: list[RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry]
    segment_size_in_bytes: int
    custom_metadata: bytes | None
    remote_log_segment_state: int
    txn_index_empty: bool

    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry | None = None,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: list[RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry] = EMPTY,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = False,
    ) -> None:
        self.remote_log_segment_id = RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry() if remote_log_segment_id is None else remote_log_segment_id
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.broker_id = broker_id
        self.max_timestamp_ms = max_timestamp_ms
        self.event_timestamp_ms = event_timestamp_ms
        self.segment_leader_epochs = [] if segment_leader_epochs is EMPTY else segment_leader_epochs
        self.segment_size_in_bytes = segment_size_in_bytes
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self.txn_index_empty = txn_index_empty
        self.unknown_tagged_fields = None

    SCHEMA = """
RemoteLogSegmentMetadataRecord record group=storage key=0 versions=0 flexible=0+
  remote_log_segment_id RemoteLogSegmentIdEntry
    topic_id_partition TopicIdPartitionEntry
      name string
      id uuid
      partition int32
    id uuid
  start_offset int64
  end_offset int64
  broker_id int32
  max_timestamp_ms int64
  event_timestamp_ms int64
  segment_leader_epochs []SegmentLeaderEpochEntry
    leader_epoch int32
    offset int64
  segment_size_in_bytes int32
  custom_metadata bytes nullable default=null
  remote_log_segment_state int8
  txn_index_empty bool tag=0
"""

    class TopicIdPartitionEntry(Struct):
        __slots__ = ("name", "id", "partition")

        name: str
        id: Uuid
        partition: int

        def __init__(
            self,
            *,
            name: str = "",
            id: Uuid = ZERO_UUID,
            partition: int = 0,
        ) -> None:
            self.name = name
            self.id = id
            self.partition = partition
            self.unknown_tagged_fields = None

    class RemoteLogSegmentIdEntry(Struct):
        __slots__ = ("topic_id_partition", "id")

        topic_id_partition: RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry
        id: Uuid

        def __init__(
            self,
            *,
            topic_id_partition: RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry | None = None,
            id: Uuid = ZERO_UUID,
        ) -> None:
            self.topic_id_partition = RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry() if topic_id_partition is None else topic_id_partition
            self.id = id
            self.unknown_tagged_fields = None

    class SegmentLeaderEpochEntry(Struct):
        __slots__ = ("leader_epoch", "offset")

        leader_epoch: int
        offset: int

        def __init__(
            self,
            *,
            leader_epoch: int = 0,
            offset: int = 0,
        ) -> None:
            self.leader_epoch = leader_epoch
            self.offset = offset
            self.unknown_tagged_fields = None


class RemoteLogSegmentMetadataUpdateRecord(Message):
    """Record type 1, versions 0, flexible 0+."""

    __slots__ = ("remote_log_segment_id", "broker_id", "event_timestamp_ms", "custom_metadata", "remote_log_segment_state")

    remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry
    broker_id: int
    event_timestamp_ms: int
    custom_metadata: bytes | None
    remote_log_segment_state: int

    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry | None = None,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
    ) -> None:
        self.remote_log_segment_id = RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry() if remote_log_segment_id is None else remote_log_segment_id
        self.broker_id = broker_id
        self.event_timestamp_ms = event_timestamp_ms
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self.unknown_tagged_fields = None

    SCHEMA = """
RemoteLogSegmentMetadataUpdateRecord record group=storage key=1 versions=0 flexible=0+
  remote_log_segment_id RemoteLogSegmentIdEntry
    topic_id_partition TopicIdPartitionEntry
      name string
      id uuid
      partition int32
    id uuid
  broker_id int32
  event_timestamp_ms int64
  custom_metadata bytes nullable default=null
  remote_log_segment_state int8
"""

    class TopicIdPartitionEntry(Struct):
        __slots__ = ("name", "id", "partition")

        name: str
        id: Uuid
        partition: int

        def __init__(
            self,
            *,
            name: str = "",
            id: Uuid = ZERO_UUID,
            partition: int = 0,
        ) -> None:
            self.name = name
            self.id = id
            self.partition = partition
            self.unknown_tagged_fields = None

    class RemoteLogSegmentIdEntry(Struct):
        __slots__ = ("topic_id_partition", "id")

        topic_id_partition: RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry
        id: Uuid

        def __init__(
            self,
            *,
            topic_id_partition: RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry | None = None,
            id: Uuid = ZERO_UUID,
        ) -> None:
            self.topic_id_partition = RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry() if topic_id_partition is None else topic_id_partition
            self.id = id
            self.unknown_tagged_fields = None


class RemotePartitionDeleteMetadataRecord(Message):
    """Record type 2, versions 0, flexible 0+."""

    __slots__ = ("topic_id_partition", "broker_id", "event_timestamp_ms", "remote_partition_delete_state")

    topic_id_partition: RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry
    broker_id: int
    event_timestamp_ms: int
    remote_partition_delete_state: int

    def __init__(
        self,
        *,
        topic_id_partition: RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry | None = None,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        remote_partition_delete_state: int = 0,
    ) -> None:
        self.topic_id_partition = RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry() if topic_id_partition is None else topic_id_partition
        self.broker_id = broker_id
        self.event_timestamp_ms = event_timestamp_ms
        self.remote_partition_delete_state = remote_partition_delete_state
        self.unknown_tagged_fields = None

    SCHEMA = """
RemotePartitionDeleteMetadataRecord record group=storage key=2 versions=0 flexible=0+
  topic_id_partition TopicIdPartitionEntry
    name string
    id uuid
    partition int32
  broker_id int32
  event_timestamp_ms int64
  remote_partition_delete_state int8
"""

    class TopicIdPartitionEntry(Struct):
        __slots__ = ("name", "id", "partition")

        name: str
        id: Uuid
        partition: int

        def __init__(
            self,
            *,
            name: str = "",
            id: Uuid = ZERO_UUID,
            partition: int = 0,
        ) -> None:
            self.name = name
            self.id = id
            self.partition = partition
            self.unknown_tagged_fields = None


class RemoteLogSegmentMetadataSnapshotRecord(Message):
    """Record type 3, versions 0, flexible 0+."""

    __slots__ = ("segment_id", "start_offset", "end_offset", "broker_id", "max_timestamp_ms", "event_timestamp_ms", "segment_leader_epochs", "segment_size_in_bytes", "custom_metadata", "remote_log_segment_state", "txn_index_empty")

    segment_id: Uuid
    start_offset: int
    end_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    segment_leader_epochs: list[RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry]
    segment_size_in_bytes: int
    custom_metadata: bytes | None
    remote_log_segment_state: int
    txn_index_empty: bool

    def __init__(
        self,
        *,
        segment_id: Uuid = ZERO_UUID,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: list[RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry] = EMPTY,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = False,
    ) -> None:
        self.segment_id = segment_id
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.broker_id = broker_id
        self.max_timestamp_ms = max_timestamp_ms
        self.event_timestamp_ms = event_timestamp_ms
        self.segment_leader_epochs = [] if segment_leader_epochs is EMPTY else segment_leader_epochs
        self.segment_size_in_bytes = segment_size_in_bytes
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self.txn_index_empty = txn_index_empty
        self.unknown_tagged_fields = None

    SCHEMA = """
RemoteLogSegmentMetadataSnapshotRecord record group=storage key=3 versions=0 flexible=0+
  segment_id uuid
  start_offset int64
  end_offset int64
  broker_id int32
  max_timestamp_ms int64
  event_timestamp_ms int64
  segment_leader_epochs []SegmentLeaderEpochEntry
    leader_epoch int32
    offset int64
  segment_size_in_bytes int32
  custom_metadata bytes nullable default=null
  remote_log_segment_state int8
  txn_index_empty bool tag=0
"""

    class SegmentLeaderEpochEntry(Struct):
        __slots__ = ("leader_epoch", "offset")

        leader_epoch: int
        offset: int

        def __init__(
            self,
            *,
            leader_epoch: int = 0,
            offset: int = 0,
        ) -> None:
            self.leader_epoch = leader_epoch
            self.offset = offset
            self.unknown_tagged_fields = None
