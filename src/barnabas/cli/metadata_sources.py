"""Where the metadata of a cluster is read from: a snapshot, or the directory of a metadata log, up to an offset or a time.

Its one rule: a source is shown as it lies there, and what is wrong with it is said beside. Nothing is written or locked.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from barnabas.cli.failures import Failure, failures
from barnabas.metadata.errors import ReplayError
from barnabas.metadata.image import MetadataImage, Provenance
from barnabas.metadata.loader import MetadataLoader
from barnabas.raft.offline_metadata import EVERYTHING, AsOf, load
from barnabas.storage.log_dirs import CLUSTER_METADATA
from barnabas.storage.snapshots import BOOTSTRAP_CHECKPOINT, SnapshotReader, parse_snapshot_name
from barnabas.wire import MalformedError, UnsupportedVersionError, decode_record

_FIRST_TIME_MS = 100_000_000_000


class Loaded(NamedTuple):
    """An image, and what is wrong with its source, if something is."""

    image: MetadataImage
    problem: str | None = None


def parse_as_of(text: str) -> AsOf:
    """An offset, milliseconds since 1970, or a time as in ISO 8601, which is UTC unless it says otherwise.

    Whole numbers from a hundred billion on are times: no metadata log has as many records. Raises ValueError.
    """
    if text.isdecimal():
        number = int(text)
        return AsOf(timestamp_ms=number) if number >= _FIRST_TIME_MS else AsOf(offset=number)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no offset, no milliseconds, and no time such as 2026-01-31T12:30:00Z") from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return AsOf(timestamp_ms=int(moment.timestamp() * 1000))


def load_source(source: Path, as_of: AsOf = EVERYTHING) -> Loaded:
    """The metadata that a file or directory has. Raises Failure."""
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
