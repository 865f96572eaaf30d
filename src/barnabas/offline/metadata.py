"""The metadata image of a metadata log, read from its files alone. Nothing is sent, written or locked.

Its one rule: the log is read as it is on disk. Files do not say which records the quorum committed, so all records count, up
to the requested offset or time. Reading ends at the first incomplete or corrupt batch, which `problem` then describes. A batch
is applied as a whole: an offset within it stands for its end. Records of a transaction that has no end record are not applied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from barnabas.batches import BatchError, ControlType, decode_control_key, decode_records
from barnabas.metadata.as_of import EVERYTHING, AsOf
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.loader import MetadataBatch, MetadataLoader, Published
from barnabas.raft.records import apply_control_batch
from barnabas.raft.voters import VoterHistory, VoterSet
from barnabas.storage.errors import StorageError
from barnabas.storage.loading import segment_offsets
from barnabas.storage.offline import Damage, OfflineBatch, read_partition
from barnabas.storage.quorum_state import read_quorum_state
from barnabas.storage.snapshots import SnapshotId, SnapshotReader, list_snapshots, snapshot_path
from barnabas.wire import decode_record
from barnabas.wire.records.control import LeaderChangeMessage


@dataclass
class OfflineMetadata:
    """The image, and the state of the quorum as the control records have it."""

    image: MetadataImage = EMPTY_IMAGE
    end_offset: int = 0
    leader_id: int = -1
    leader_epoch: int = -1
    history: VoterHistory = field(default_factory=VoterHistory)
    problem: str | None = None

    @property
    def kraft_version(self) -> int:
        return self.history.kraft_version

    @property
    def voters(self) -> VoterSet:
        return self.history.current


class Step(NamedTuple):
    """An image after a record or a snapshot. `offset` is the base offset of the batch, or the last one in the snapshot."""

    published: Published
    offset: int


def load(directory: Path, as_of: AsOf = EVERYTHING, static_voters: VoterSet | None = None) -> OfflineMetadata:
    """Load the latest snapshot that is not after `as_of`, and the log behind it.

    Raises ReplayError if a record contradicts the image.
    """
    found = OfflineMetadata(history=VoterHistory(static_voters))
    loader = MetadataLoader()
    _load_snapshot(directory, as_of, found, loader)
    for batch in _batches(directory, as_of, found):
        loader.load([batch])
    found.image = loader.image
    if found.leader_id < 0:
        _take_leader(directory, found)
    return found


def follow(directory: Path, found: OfflineMetadata) -> Iterator[Step]:
    """Yield one image per record or transaction, from the oldest one in the files. All else goes to `found`.

    If the log does not go back to offset 0, the first image is that of a snapshot and has no predecessor.
    """
    loader = MetadataLoader()
    segments, snapshots = segment_offsets(directory), list_snapshots(directory)
    if not segments or segments[0]:
        usable = [each for each in snapshots if not segments or each.end_offset >= segments[0]]
        for oldest in usable[:1] if segments else usable[-1:]:
            _load_snapshot(directory, AsOf(offset=oldest.end_offset - 1), found, loader)
            yield Step(Published(EMPTY_IMAGE, loader.image, None), oldest.end_offset - 1)
    for batch in _batches(directory, EVERYTHING, found):
        yield from steps(loader, batch)
    found.image = loader.image


def steps(loader: MetadataLoader, batch: MetadataBatch, *, by_record: bool = True) -> Iterator[Step]:
    """Apply a batch, and yield one image per record, or per transaction that ends in it; or one for the batch."""
    for one in batch.by_record() if by_record else (batch,):
        for published in loader.load([one]):
            yield Step(published, batch.base_offset)


def _load_snapshot(directory: Path, as_of: AsOf, found: OfflineMetadata, loader: MetadataLoader) -> None:
    for snapshot_id in reversed(list_snapshots(directory)):
        try:
            with SnapshotReader(snapshot_path(directory, snapshot_id)) as reader:
                if not as_of.includes(snapshot_id.end_offset - 1, reader.last_contained_log_timestamp):
                    continue
                records = [decode_record(value).record for value in reader.values()]
                _take_voters(found.history, snapshot_id, reader)
        except StorageError as error:
            found.problem = f"a snapshot cannot be read, an older one is used: {error}"
            continue
        end_offset, epoch = snapshot_id
        if end_offset:
            loader.load_snapshot(records, Provenance(end_offset - 1, epoch, reader.last_contained_log_timestamp))
        found.end_offset, found.leader_epoch = end_offset, epoch
        return


def _take_leader(directory: Path, found: OfflineMetadata) -> None:
    """Set the last leader if it was elected before the snapshot: from the log if it is still there, or from quorum-state."""
    for item in read_partition(directory, 0, found.end_offset):
        if isinstance(item, OfflineBatch) and item.header.is_control and item.error is None:
            leader_id = _leader_of(item)
            if leader_id is not None and item.header.partition_leader_epoch == found.leader_epoch:
                found.leader_id = leader_id
                return
    try:
        state = read_quorum_state(directory)
    except StorageError:
        return
    if state is not None and state.leader_epoch == found.leader_epoch:
        found.leader_id = state.leader_id


def _leader_of(item: OfflineBatch) -> int | None:
    for record in decode_records(item.data, 0, item.header):
        if decode_control_key(record.key) is ControlType.LEADER_CHANGE:
            message: LeaderChangeMessage = decode_record(record.value or b"", LeaderChangeMessage).record
            return message.leader_id
    return None


def _take_voters(history: VoterHistory, snapshot_id: SnapshotId, reader: SnapshotReader) -> None:
    if reader.kraft_version:
        history.append_kraft_version(snapshot_id.end_offset - 1, reader.kraft_version)
    if reader.voters is not None:
        history.append_voters(snapshot_id.end_offset - 1, VoterSet.from_record(reader.voters))


def _batches(directory: Path, as_of: AsOf, found: OfflineMetadata) -> Iterator[MetadataBatch]:
    """Yield the batches behind the snapshot, and collect the state of the quorum from their control records."""
    for item in read_partition(directory, found.end_offset):
        if isinstance(item, Damage):
            found.problem = f"{item.path} is readable up to byte {item.position}: {item.reason}"
            return
        header = item.header
        if header.base_offset < found.end_offset:
            continue  # already in the snapshot or in the batch before
        if item.error is not None:
            found.problem = f"the log is readable up to offset {header.base_offset}: {item.error}"
            return
        if not as_of.includes(header.base_offset, header.max_timestamp):
            return
        records = []
        try:
            if header.is_control:
                _take_control(item, found)
            else:
                decoded = decode_records(item.data, 0, header)
                records = [decode_record(record.value or b"").record for record in decoded]
        except BatchError as error:
            found.problem = f"the log is readable up to offset {header.base_offset}: {error}"
            return
        found.end_offset = header.last_offset + 1
        epoch = header.partition_leader_epoch
        yield MetadataBatch(header.base_offset, header.last_offset, epoch, header.max_timestamp, records)


def _take_control(item: OfflineBatch, found: OfflineMetadata) -> None:
    apply_control_batch(found.history, bytes(item.data), 0, item.header)
    leader_id = _leader_of(item)
    if leader_id is not None:
        found.leader_id, found.leader_epoch = leader_id, item.header.partition_leader_epoch
