"""The metadata of a cluster from a snapshot, the directory of a metadata log, or a running quorum, up to an offset or a time.

Its one rule: a source is read as it is, and a problem with it is returned beside the image. Files are neither written nor
locked. A quorum hands out committed records only; a file may end with records that were never committed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from barnabas.batches import BatchError, ControlType, decode_control_key
from barnabas.metadata.as_of import EVERYTHING, AsOf
from barnabas.metadata.errors import ReplayError
from barnabas.metadata.image import MetadataImage, Provenance
from barnabas.metadata.loader import MetadataBatch, MetadataLoader
from barnabas.offline.metadata import Step, load, steps
from barnabas.operations.errors import OperationError
from barnabas.raft.stored_log import METADATA_TOPIC_ID
from barnabas.storage.errors import StorageError
from barnabas.storage.loading import segment_offsets
from barnabas.storage.log_dirs import CLUSTER_METADATA
from barnabas.storage.partition_metadata import read_topic_id
from barnabas.storage.snapshots import BOOTSTRAP_CHECKPOINT, SnapshotReader, list_snapshots, parse_snapshot_name
from barnabas.wire import MalformedError, Message, UnsupportedVersionError, decode_record
from barnabas.wire.records.control import SnapshotHeaderRecord

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.metadata_log import LogBatch, LogSnapshot


MAX_WHOLE_LOG = 100_000
"""A log with so many records is read from its beginning; of a longer one, the last snapshot and what follows, which is faster.
Apache Kafka writes two NoOpRecords in a second, so that this is half a day of it."""
_BEGIN = 1
"""Leaders send their last snapshot to who reads from 0, and the log, as far back as it goes, to who reads from 1."""
_SOURCES = f"give a snapshot (*.checkpoint), {CLUSTER_METADATA} of a controller, or the log dir that has it"


class Loaded(NamedTuple):
    """An image, and the problem with its source, if any."""

    image: MetadataImage
    problem: str | None = None


# --- files


def load_files(source: Path, as_of: AsOf = EVERYTHING) -> Loaded:
    """Read a snapshot, the directory of a metadata log, or a log dir that has one. Raises OperationError."""
    try:
        if source.is_dir():
            found = load(log_directory(source), as_of)
            return Loaded(found.image, found.problem)
        if as_of != EVERYTHING:
            raise OperationError(
                "a snapshot has no history", resource=str(source), advice="give the directory of the metadata log"
            )
        return _load_snapshot(source)
    except (ReplayError, MalformedError, UnsupportedVersionError, StorageError) as error:
        raise OperationError(str(error), resource=str(source)) from error


def log_directory(source: Path) -> Path:
    """Return the directory of the metadata log, given that directory or its log dir. Raises OperationError."""
    below = source / str(CLUSTER_METADATA)
    directory = below if below.is_dir() else source
    if directory.is_dir() and read_topic_id(directory) not in (None, METADATA_TOPIC_ID):
        raise OperationError("this is the log of a topic, not a metadata log", resource=str(source), advice=_SOURCES)
    if not directory.is_dir() or not (segment_offsets(directory) or list_snapshots(directory)):
        bootstrap = source / BOOTSTRAP_CHECKPOINT
        advice = f"give {bootstrap}: the log has not begun yet" if bootstrap.is_file() else _SOURCES
        raise OperationError("there is no metadata log", resource=str(source), advice=advice)
    return directory


def _load_snapshot(path: Path) -> Loaded:
    loader = MetadataLoader()
    with SnapshotReader(path) as reader:
        records = [decode_record(value).record for value in reader.values()]
        snapshot_id = None if path.name == BOOTSTRAP_CHECKPOINT else parse_snapshot_name(path.name)
        end_offset, epoch = snapshot_id if snapshot_id is not None else (0, 0)
        loader.load_snapshot(records, Provenance(end_offset - 1, epoch, reader.last_contained_log_timestamp))
    return Loaded(loader.image)


# --- a running quorum


async def read_image(cluster: Cluster, as_of: AsOf = EVERYTHING) -> MetadataImage:
    """Read the committed metadata up to an offset or a time. Raises OperationError if the log begins after it."""
    image: MetadataImage | None = None
    async for step in follow_live(cluster, as_of, by_record=False):
        image = step.published.image
    return MetadataLoader().image if image is None else image


async def begin_of_log(cluster: Cluster) -> int:
    """Return the offset to read the history of a quorum from: its begin, unless the log is long."""
    from barnabas.client.admin.quorum import Quorum

    found = await Quorum(cluster).describe_quorum()
    return _BEGIN if _BEGIN < found.high_watermark <= MAX_WHOLE_LOG else 0


async def follow_live(
    cluster: Cluster, as_of: AsOf = EVERYTHING, *, by_record: bool = True, offset: int = 0
) -> AsyncIterator[Step]:
    """Yield one image per committed record or transaction, up to an offset or a time; the first may be a snapshot's.

    Without `by_record`, there is one image per batch, which is faster. A snapshot that is later than `as_of` is passed over
    for the log before it. Raises OperationError if that is gone, or if the log cannot be replayed.
    """
    from barnabas.client.metadata_log import LogSnapshot, read_metadata_log

    loader = MetadataLoader()
    try:
        async for part in read_metadata_log(cluster, offset):
            if isinstance(part, LogSnapshot):
                timestamp_ms = last_contained_log_timestamp(part)
                if not as_of.includes(part.end_offset - 1, timestamp_ms):
                    if offset == 0:
                        async for step in follow_live(cluster, as_of, by_record=by_record, offset=_BEGIN):
                            yield step
                        return
                    raise OperationError(
                        f"the log begins at offset {part.end_offset}: earlier changes are merged into a snapshot",
                        advice="look for an older snapshot or log in the log dir of a controller",
                    )
                records = [record for batch in part.batches for record in records_of(batch)]
                provenance = Provenance(part.end_offset - 1, part.epoch, timestamp_ms)
                yield Step(loader.load_snapshot(records, provenance), part.end_offset - 1)
            elif not as_of.includes(part.base_offset, part.header.max_timestamp):
                break
            else:
                batch = MetadataBatch(
                    part.base_offset, part.last_offset, part.epoch, part.header.max_timestamp, records_of(part)
                )
                for step in steps(loader, batch, by_record=by_record):
                    yield step
    except (ReplayError, MalformedError) as error:
        raise OperationError(str(error), resource=str(cluster.state.cluster_id)) from error


def records_of(batch: LogBatch) -> list[Message]:
    """Return the metadata records of a batch; none of a control batch."""
    return [] if batch.is_control else [decode_record(record.value or b"").record for record in batch.records]


def last_contained_log_timestamp(snapshot: LogSnapshot) -> int:
    """Timestamp of the last record that a snapshot covers."""
    for record in snapshot.batches[0].records if snapshot.batches else ():
        try:
            if decode_control_key(record.key) is ControlType.SNAPSHOT_HEADER:
                header: SnapshotHeaderRecord = decode_record(record.value or b"", SnapshotHeaderRecord).record
                return header.last_contained_log_timestamp
        except BatchError:
            break
    raise MalformedError(f"the snapshot at offset {snapshot.end_offset} does not begin with its header")
