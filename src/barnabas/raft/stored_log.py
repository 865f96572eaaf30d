"""The metadata log on disk: implements `raft.log.RaftLog` with `storage`, with its snapshots in the same directory.

Its one rule: opening it makes it consistent. An incomplete last batch is truncated, incomplete snapshots are deleted,
and a log that ends before its latest snapshot is emptied to continue after it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from barnabas.raft.log import EpochStart, OffsetAndEpoch
from barnabas.storage import snapshots
from barnabas.storage.checkpoints import LEADER_EPOCH_CHECKPOINT
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.errors import CorruptLogError, StorageError
from barnabas.storage.files import File, entries_of, exists, is_directory
from barnabas.storage.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_dirs import CLUSTER_METADATA, directory_name
from barnabas.storage.partition_metadata import read_topic_id, write_topic_id
from barnabas.storage.quorum_state import read_quorum_state
from barnabas.storage.segment import Recovery
from barnabas.storage.snapshots import RawSnapshotWriter, SnapshotId, SnapshotReader, snapshot_path
from barnabas.wire import Uuid

_log = logging.getLogger(__name__)

METADATA_TOPIC_ID = Uuid((1).to_bytes(16))

_FILE_NAME = re.compile(r"\d{20}[-.]|leader-epoch-checkpoint$|partition\.metadata$|quorum-state$")


def metadata_log_directory(log_dir: Path) -> Path:
    return log_dir / directory_name(CLUSTER_METADATA)


def check_files(directory: Path) -> None:
    """Raise StorageError if a small file or a snapshot in the directory of the metadata log is damaged."""
    for error in damaged_files(directory):
        raise error


def damaged_files(directory: Path) -> Iterator[StorageError]:
    """Yield an error for each damaged small file and snapshot in the directory of the metadata log.

    Nothing is changed. The segments are checked when the log is opened.
    """
    if not is_directory(directory):
        return
    entries = entries_of(directory)
    folders = [directory / entry.name for entry in entries if _FILE_NAME.match(entry.name) and entry.is_directory]
    for path in folders:
        yield StorageError(f"{path} is a directory, but Kafka has a file of this name: move it away")
    readers: tuple[Callable[[Path], object], ...] = (
        read_topic_id,
        read_quorum_state,
        lambda path: LeaderEpochs(path / LEADER_EPOCH_CHECKPOINT),
    )
    for read in readers:
        try:
            read(directory)
        except StorageError as error:
            yield error
    found = snapshots.list_snapshots(directory)
    for snapshot_id in sorted({*found[:1], *found[-1:]}):  # the others are not read
        try:
            with SnapshotReader(snapshot_path(directory, snapshot_id)) as reader:
                reader.verify()
        except CorruptLogError as error:
            yield StorageError(f"the metadata snapshot {error}; restore it from a backup or from another controller")
        except StorageError as error:
            yield error


class StoredLog:
    """The log in one directory. Opening it recovers it."""

    def __init__(self, directory: Path, config: LogConfig, clock: Callable[[], int]) -> None:
        self.directory = directory
        self._log = Log.open(directory, config, clock=clock)
        if read_topic_id(directory) is None:
            write_topic_id(directory, METADATA_TOPIC_ID)
        found = snapshots.clean_snapshots(directory, self._log.log_start_offset)
        if found and found[-1].end_offset > self._log.log_end_offset:
            _log.warning(
                "the metadata log in %s ends at offset %d, before its snapshot %s: it continues from the snapshot, "
                "and records after it are lost if there were any",
                directory,
                self._log.log_end_offset,
                found[-1],
            )
            self._log.truncate_fully_and_start_at(found[-1].end_offset)
        elif found and self._log.log_start_offset > 0:
            # The first segment may start before the first snapshot. Its records before the snapshot's end are
            # incomplete.
            self._log.advance_log_start_offset(found[0].end_offset)
        self._log.flush()

    @property
    def recoveries(self) -> tuple[Recovery, ...]:
        """The segments that were repaired."""
        return self._log.recoveries

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def size_in_bytes(self) -> int:
        return self._log.size_in_bytes

    def epochs(self) -> list[EpochStart]:
        start = self.start_offset
        return [EpochStart(entry.epoch, max(entry.start_offset, start)) for entry in self._log.epochs.entries]

    def append(self, batches: bytes) -> None:
        self._log.append_as_follower(batches)

    def read(self, offset: int, max_bytes: int, end_offset: int | None = None) -> bytes:
        return self._log.read(offset, max_bytes, end_offset)

    def truncate(self, end_offset: int) -> None:
        self._log.truncate_to(end_offset)

    def flush(self) -> None:
        self._log.flush()

    def snapshot_ids(self) -> Sequence[OffsetAndEpoch]:
        return [OffsetAndEpoch(*found) for found in snapshots.list_snapshots(self.directory)]

    def create_snapshot(self, snapshot_id: OffsetAndEpoch) -> StoredSnapshotWriter:
        return StoredSnapshotWriter(snapshot_id, RawSnapshotWriter.create(self.directory, SnapshotId(*snapshot_id)))

    def open_snapshot(self, snapshot_id: OffsetAndEpoch) -> StoredSnapshot | None:
        path = snapshot_path(self.directory, SnapshotId(*snapshot_id))
        return StoredSnapshot(snapshot_id, path) if exists(path) else None

    def replace_by_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        self._log.truncate_fully_and_start_at(snapshot_id.offset)
        self.trim(snapshot_id)

    def trim(self, snapshot_id: OffsetAndEpoch) -> None:
        self._log.advance_log_start_offset(snapshot_id.offset)
        self._log.delete_old_segments()
        for old in snapshots.list_snapshots(self.directory):
            if old.end_offset < snapshot_id.offset:
                snapshots.delete_snapshot(self.directory, old)

    def close(self) -> None:
        self._log.close()


class StoredSnapshot:
    """A snapshot file. It is opened for each read, so that a deleted one frees its space soon."""

    def __init__(self, snapshot_id: OffsetAndEpoch, path: Path) -> None:
        self.snapshot_id = snapshot_id
        self.path = path
        self.size_in_bytes = File(path, writable=False).size()

    def read(self, position: int, max_bytes: int) -> bytes:
        file = File(self.path, writable=False)
        try:
            return file.read(max_bytes, position)
        finally:
            file.let_go()


class StoredSnapshotWriter:
    def __init__(self, snapshot_id: OffsetAndEpoch, raw: RawSnapshotWriter) -> None:
        self.snapshot_id = snapshot_id
        self._raw = raw

    @property
    def size_in_bytes(self) -> int:
        return self._raw.size

    def append(self, data: bytes) -> None:
        self._raw.append(data)

    def freeze(self) -> None:
        self._raw.freeze()

    def close(self) -> None:
        self._raw.close()
