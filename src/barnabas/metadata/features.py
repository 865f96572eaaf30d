"""Finalized feature levels, including metadata.version but not kraft.version, which is in the control records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.metadata.errors import ReplayError
from barnabas.metadata.pmap import PMap
from barnabas.metadata.versions import KRAFT_VERSION, METADATA_VERSION, MetadataVersion, metadata_version
from barnabas.wire.records.metadata import FeatureLevelRecord

if TYPE_CHECKING:
    from barnabas.metadata.image import Draft

Features = PMap[str, int]


def replay_feature_level(draft: Draft, record: FeatureLevelRecord) -> None:
    if record.name == KRAFT_VERSION:
        return
    if record.name == METADATA_VERSION:
        try:
            metadata_version(record.feature_level)
        except ValueError as error:
            raise ReplayError(str(error)) from error
    if record.feature_level == 0:
        draft.features.remove(record.name)
    else:
        draft.features.set(record.name, record.feature_level)


def to_records(features: Features, version: MetadataVersion) -> Iterator[tuple[FeatureLevelRecord, int]]:
    """Yield metadata.version first, because it determines how the following records are read."""
    yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=version.value), 0
    for name, level in sorted(features.items()):
        if name != METADATA_VERSION:
            yield FeatureLevelRecord(name=name, feature_level=level), 0
