"""Formatting log dirs for a node: what Kafka's storage tool writes before a node can start.

Its one rule: nothing is written before everything has been checked, and a directory that has its `meta.properties` is left
alone. The records of `bootstrap.checkpoint` are what the first controller of a cluster begins its log with; a controller of a
dynamic quorum also gets a first snapshot with the voters.
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
from barnabas.storage.files import create_directory
from barnabas.storage.log_dirs import MetaProperties, write_meta_properties
from barnabas.storage.snapshots import SnapshotId, SnapshotWriter, write_bootstrap
from barnabas.wire import Message, Uuid, encode_record
from barnabas.wire.records.metadata import FeatureLevelRecord


class Formatting(NamedTuple):
    """Everything that is written."""

    cluster_id: str
    node_id: int
    metadata_log_dir: Path
    directory_ids: Mapping[Path, Uuid]  # of each log dir that is new
    bootstrap: Sequence[Message]
    voters: VoterSet | None  # of a dynamic quorum that begins here; None for a static one and for those who join


def effective_features(
    version: MetadataVersion = LATEST_VERSION, chosen: Mapping[str, int] | None = None
) -> dict[str, int]:
    """The level of each feature in a new cluster: those that were chosen, and the release's own for the others."""
    levels = {name: default_feature_level(name, version) for name in sorted(FEATURES)}
    return {METADATA_VERSION: version.value, **levels, **(chosen or {})}


def bootstrap_records(features: Mapping[str, int], more: Iterable[Message] = ()) -> list[Message]:
    """metadata.version first, then the others by name; kraft.version is in the snapshot of the voters instead."""
    levels: list[Message] = [FeatureLevelRecord(name=METADATA_VERSION, feature_level=features[METADATA_VERSION])]
    levels += [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in sorted(features.items())
        if name not in (METADATA_VERSION, KRAFT_VERSION) and level > 0
    ]
    return [*levels, *more]


def write_format(formatting: Formatting, clock: Callable[[], int]) -> None:
    """The metadata log dir comes last, so that a node whose formatting was cut short is not taken for a whole one."""
    for log_dir, directory_id in formatting.directory_ids.items():
        if log_dir != formatting.metadata_log_dir:
            _write_meta(formatting, log_dir, directory_id, clock)
    own_id = formatting.directory_ids.get(formatting.metadata_log_dir)
    if own_id is None:
        return
    create_directory(formatting.metadata_log_dir)
    write_bootstrap(formatting.metadata_log_dir, [encode_record(record, 0) for record in formatting.bootstrap], clock)
    if formatting.voters is not None:
        _write_first_snapshot(formatting, clock)
    _write_meta(formatting, formatting.metadata_log_dir, own_id, clock)


def _write_meta(formatting: Formatting, log_dir: Path, directory_id: Uuid, clock: Callable[[], int]) -> None:
    create_directory(log_dir)
    meta = MetaProperties(formatting.cluster_id, formatting.node_id, directory_id)
    write_meta_properties(log_dir, meta, clock())


def _write_first_snapshot(formatting: Formatting, clock: Callable[[], int]) -> None:
    assert formatting.voters is not None
    directory = metadata_log_directory(formatting.metadata_log_dir)
    create_directory(directory)
    with SnapshotWriter.create(
        directory,
        SnapshotId(0, 0),
        clock,
        last_contained_log_timestamp=0,
        kraft_version=1,
        voters=formatting.voters.to_record(),
    ) as writer:
        writer.freeze()
