"""Formats log dirs for a node: writes what Kafka's storage tool writes before a node can start.

Its one rule: `meta.properties` is written last, so that an interrupted format does not look complete. The first
controller of a cluster starts its log with the records of `bootstrap.checkpoint`. The metadata log of a dynamic quorum
also gets a first snapshot with the voters. The caller validates the input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.metadata.versions import (
    FEATURES,
    KRAFT_VERSION,
    LATEST_VERSION,
    METADATA_VERSION,
    MetadataVersion,
    default_feature_level,
)
from barnabas.raft.stored_log import metadata_log_directory
from barnabas.raft.voters import VoterSet
from barnabas.storage.errors import CorruptLogError, StorageError
from barnabas.storage.files import create_directory, exists
from barnabas.storage.log_dirs import MetaProperties, write_meta_properties
from barnabas.storage.snapshots import BOOTSTRAP_CHECKPOINT, SnapshotId, SnapshotReader, SnapshotWriter, write_bootstrap
from barnabas.wire import Message, Uuid, decode_record, encode_record
from barnabas.wire.errors import MalformedError
from barnabas.wire.records.metadata import FeatureLevelRecord


class Formatting(NamedTuple):
    """Everything that formatting writes."""

    cluster_id: str
    node_id: int
    metadata_log_dir: Path
    directory_ids: Mapping[Path, Uuid]  # ids of the new log dirs, in the order of writing
    bootstrap: Sequence[Message]
    voters: VoterSet | None  # of a new dynamic quorum; None for a static quorum and for a node that joins


def effective_features(
    version: MetadataVersion = LATEST_VERSION, chosen: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Return the level of each feature in a new cluster: the chosen one, or the default of the release."""
    levels = {name: default_feature_level(name, version) for name in sorted(FEATURES)}
    return {METADATA_VERSION: version.value, **levels, **(chosen or {})}


def bootstrap_records(features: Mapping[str, int], more: Iterable[Message] = ()) -> list[Message]:
    """Return metadata.version first, then the others by name. kraft.version is in the snapshot of the voters."""
    levels: list[Message] = [FeatureLevelRecord(name=METADATA_VERSION, feature_level=features[METADATA_VERSION])]
    levels += [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in sorted(features.items())
        if name not in (METADATA_VERSION, KRAFT_VERSION) and level > 0
    ]
    return [*levels, *more]


def write_format(
    formatting: Formatting, clock: Callable[[], int], before: Callable[[Path], None] | None = None
) -> None:
    """Format the new log dirs. `before` is called with each of them first."""
    bootstrap = [encode_record(record, 0) for record in formatting.bootstrap]
    for log_dir, directory_id in formatting.directory_ids.items():
        if before is not None:
            before(log_dir)
        create_directory(log_dir)
        write_bootstrap(log_dir, bootstrap, clock)
        if log_dir == formatting.metadata_log_dir and formatting.voters is not None:
            _write_first_snapshot(formatting.metadata_log_dir, formatting.voters, clock)
        meta = MetaProperties(formatting.cluster_id, formatting.node_id, directory_id)
        write_meta_properties(log_dir, meta, clock())


def _write_first_snapshot(log_dir: Path, voters: VoterSet, clock: Callable[[], int]) -> None:
    directory = metadata_log_directory(log_dir)
    create_directory(directory)
    with SnapshotWriter.create(
        directory,
        SnapshotId(0, 0),
        clock,
        last_contained_log_timestamp=clock(),
        kraft_version=1,
        voters=voters.to_record(),
    ) as writer:
        writer.freeze()


def read_bootstrap(metadata_log_dir: Path) -> list[Message]:
    """Return the records that a new cluster starts with. Raises StorageError if their file is damaged."""
    path = metadata_log_dir / BOOTSTRAP_CHECKPOINT
    if not exists(path):
        return bootstrap_records(effective_features())
    try:
        with SnapshotReader(path) as reader:
            return [decode_record(value).record for value in reader.values()]
    except (CorruptLogError, MalformedError) as error:
        raise StorageError(
            f"{path} is damaged: {error}; restore it from a backup, or delete it if the cluster was started before"
        ) from error
