"""A partition's log on disk in the format of Apache Kafka: segments, indexes, checkpoints, snapshots and log dirs.

log (append, read, truncate, roll), segment, index, batch_file (iteration), loading (opening and recovery), epochs,
producers, producer_snapshots, aborted (transactions), retention (pure), cleanable (which log is compacted; pure),
compaction, log_config (the settings of a log), checkpoints, partition_metadata, log_dirs, quorum_state, snapshots,
offline (reading logs that another process owns), files (descriptors, fsync), errors.

This package knows batches but no clusters. Everything is synchronous: the caller decides what runs in a thread.
"""

from barnabas.storage.aborted import AbortedTxn
from barnabas.storage.checkpoints import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    EpochEntry,
    TopicPartition,
    read_offset_checkpoint,
    write_offset_checkpoint,
)
from barnabas.storage.cleanable import CleanerOffsets, DirtyLog, choose_filthiest
from barnabas.storage.compaction import CleanerStats, Compaction
from barnabas.storage.epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET, EpochEndOffset, LeaderEpochs
from barnabas.storage.errors import CorruptLogError, OffsetOutOfRangeError, StorageError, UnexpectedOffsetError
from barnabas.storage.log import AppendInfo, FileRange, Log, LogStatistics
from barnabas.storage.log_config import LogConfig
from barnabas.storage.partition_metadata import read_topic_id, write_topic_id
from barnabas.storage.producers import AppendOrigin, ProducerState
from barnabas.storage.quorum_state import read_quorum_state, write_quorum_state
from barnabas.storage.retention import Expired
from barnabas.storage.segment import FoundOffset, Recovery, Segment
from barnabas.storage.snapshots import (
    RawSnapshotWriter,
    SnapshotId,
    SnapshotReader,
    SnapshotWriter,
    clean_snapshots,
    delete_snapshot,
    list_snapshots,
    snapshot_path,
    write_bootstrap,
)

__all__ = [
    "CLEANER_OFFSET_CHECKPOINT",
    "HIGH_WATERMARK_CHECKPOINT",
    "LOG_START_OFFSET_CHECKPOINT",
    "RECOVERY_POINT_CHECKPOINT",
    "UNDEFINED_EPOCH",
    "UNDEFINED_OFFSET",
    "AbortedTxn",
    "AppendInfo",
    "AppendOrigin",
    "CleanerOffsets",
    "CleanerStats",
    "Compaction",
    "CorruptLogError",
    "DirtyLog",
    "EpochEndOffset",
    "EpochEntry",
    "Expired",
    "FileRange",
    "FoundOffset",
    "LeaderEpochs",
    "Log",
    "LogConfig",
    "LogStatistics",
    "OffsetOutOfRangeError",
    "ProducerState",
    "RawSnapshotWriter",
    "Recovery",
    "Segment",
    "SnapshotId",
    "SnapshotReader",
    "SnapshotWriter",
    "StorageError",
    "TopicPartition",
    "UnexpectedOffsetError",
    "choose_filthiest",
    "clean_snapshots",
    "delete_snapshot",
    "list_snapshots",
    "read_offset_checkpoint",
    "read_quorum_state",
    "read_topic_id",
    "snapshot_path",
    "write_bootstrap",
    "write_offset_checkpoint",
    "write_quorum_state",
    "write_topic_id",
]
