"""Where the metadata of a cluster is read from: a snapshot, the directory of a metadata log, or a quorum that runs; up to
an offset or a time.

Its one rule: a source is shown as it is, and what is wrong with it is said beside. Files are neither written nor locked, and a
quorum does not notice who reads: only what it has committed is shown, while of a file nobody knows how much of it was.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from barnabas.batches import BatchError, ControlType, decode_control_key
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.failures import Failure, failures
from barnabas.metadata.errors import ReplayError
from barnabas.metadata.image import MetadataImage, Provenance
from barnabas.metadata.loader import MetadataBatch, MetadataLoader
from barnabas.offline.metadata import EVERYTHING, AsOf, load
from barnabas.storage.log_dirs import CLUSTER_METADATA
from barnabas.storage.snapshots import BOOTSTRAP_CHECKPOINT, SnapshotReader, parse_snapshot_name
from barnabas.wire import MalformedError, Message, UnsupportedVersionError, decode_record
from barnabas.wire.records.control import SnapshotHeaderRecord

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.metadata_log import LogBatch, LogSnapshot

Source = Path | Connection
"""A file or a directory, or how to reach controllers."""


class Loaded(NamedTuple):
    """An image, and what is wrong with its source, if something is."""

    image: MetadataImage
    problem: str | None = None


def load_source(source: Source, as_of: AsOf = EVERYTHING) -> Loaded:
    """The metadata that a file, a directory or a quorum has. Raises Failure."""
    if isinstance(source, Connection):
        return load_live(source, as_of)
    try:
        with failures():
            if source.is_dir():
                return _load_directory(source, as_of)
            if as_of != EVERYTHING:
                raise Failure(
                    "a snapshot is of one moment", resource=str(source), advice="give the directory of the metadata log"
                )
            return _load_snapshot(source)
    except (ReplayError, MalformedError, UnsupportedVersionError) as error:
        raise Failure(str(error), resource=str(source)) from error


def _load_directory(source: Path, as_of: AsOf) -> Loaded:
    """The directory of the log, or a log dir that has it."""
    below = source / str(CLUSTER_METADATA)
    directory = below if below.is_dir() else source
    if not any(directory.glob("*.log")) and not any(directory.glob("*.checkpoint")):
        advice = f"give a snapshot (*.checkpoint), {CLUSTER_METADATA}, or a log dir that has it"
        raise Failure("there is no metadata log", resource=str(source), advice=advice)
    found = load(directory, as_of)
    return Loaded(found.image, found.problem)


def _load_snapshot(path: Path) -> Loaded:
    loader = MetadataLoader()
    with SnapshotReader(path) as reader:
        records = [decode_record(value).record for value in reader.values()]
        snapshot_id = None if path.name == BOOTSTRAP_CHECKPOINT else parse_snapshot_name(path.name)
        end_offset, epoch = snapshot_id if snapshot_id is not None else (0, 0)
        loader.load_snapshot(records, Provenance(end_offset - 1, epoch, reader.last_contained_log_timestamp))
    return Loaded(loader.image)


# --- a quorum that runs


def load_live(connection: Connection, as_of: AsOf = EVERYTHING) -> Loaded:
    """What the quorum behind these controllers has committed. Raises Failure."""
    from barnabas.cli.connection.connecting import run  # brings the event loop

    try:
        return Loaded(run(connection, lambda cluster: read_image(cluster, as_of)))
    except (ReplayError, MalformedError) as error:
        raise Failure(str(error), resource=connection.address) from error


async def read_image(cluster: Cluster, as_of: AsOf = EVERYTHING) -> MetadataImage:
    """The image after all that is committed, up to an offset or a time."""
    from barnabas.client.metadata_log import LogSnapshot, read_metadata_log

    loader = MetadataLoader()
    async for part in read_metadata_log(cluster):
        if isinstance(part, LogSnapshot):
            timestamp_ms = last_contained_log_timestamp(part)
            if not as_of.includes(part.end_offset - 1, timestamp_ms):
                text = f"the log begins at offset {part.end_offset}: what was before is known only in sum"
                raise Failure(text, advice="an older snapshot or log of a controller may be at hand, in its log dir")
            records = [record for batch in part.batches for record in _records(batch)]
            loader.load_snapshot(records, Provenance(part.end_offset - 1, part.epoch, timestamp_ms))
        elif not as_of.includes(part.last_offset, part.header.max_timestamp):
            break
        else:
            batch = MetadataBatch(
                part.base_offset, part.last_offset, part.epoch, part.header.max_timestamp, _records(part)
            )
            loader.load([batch])
    return loader.image


def _records(batch: LogBatch) -> list[Message]:
    return [] if batch.is_control else [decode_record(record.value or b"").record for record in batch.records]


def last_contained_log_timestamp(snapshot: LogSnapshot) -> int:
    """The time of the last record that a snapshot stands for."""
    for record in snapshot.batches[0].records if snapshot.batches else ():
        try:
            if decode_control_key(record.key) is ControlType.SNAPSHOT_HEADER:
                header: SnapshotHeaderRecord = decode_record(record.value or b"", SnapshotHeaderRecord).record
                return header.last_contained_log_timestamp
        except BatchError:
            break
    raise MalformedError(f"the snapshot at offset {snapshot.end_offset} does not begin with its header")
