"""The levels of metadata.version with their names, and what each level supports.

The one rule: only this module decides what may be written and in which record version. The other features are listed
with the metadata.version since which new clusters have them. Nothing here changes a level.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
ELIGIBLE_LEADER_REPLICAS_VERSION: Final = "eligible.leader.replicas.version"


class MetadataVersion(IntEnum):
    """A level of metadata.version, comparable with plain integers. `str` returns its name, such as 4.3-IV0."""

    IBP_3_3_IV3 = 7
    IBP_3_4_IV0 = 8
    IBP_3_5_IV0 = 9
    IBP_3_5_IV1 = 10
    IBP_3_5_IV2 = 11
    IBP_3_6_IV0 = 12
    IBP_3_6_IV1 = 13
    IBP_3_6_IV2 = 14
    IBP_3_7_IV0 = 15
    IBP_3_7_IV1 = 16
    IBP_3_7_IV2 = 17
    IBP_3_7_IV3 = 18
    IBP_3_7_IV4 = 19
    IBP_3_8_IV0 = 20
    IBP_3_9_IV0 = 21
    IBP_4_0_IV0 = 22
    IBP_4_0_IV1 = 23
    IBP_4_0_IV2 = 24
    IBP_4_0_IV3 = 25
    IBP_4_1_IV0 = 26
    IBP_4_1_IV1 = 27
    IBP_4_2_IV0 = 28
    IBP_4_2_IV1 = 29
    IBP_4_3_IV0 = 30

    def __str__(self) -> str:
        major, minor, sub_version = self.name.removeprefix("IBP_").split("_")
        return f"{major}.{minor}-{sub_version}"

    @property
    def release(self) -> str:
        return str(self).partition("-")[0]

    @property
    def did_metadata_change(self) -> bool:
        """Whether this level added records, or fields of records, that the previous level cannot read."""
        return self in _METADATA_CHANGED

    @property
    def is_migration_supported(self) -> bool:
        return self >= MetadataVersion.IBP_3_4_IV0

    @property
    def is_scram_supported(self) -> bool:
        return self >= MetadataVersion.IBP_3_5_IV2

    @property
    def is_leader_epoch_bump_required_on_isr_shrink(self) -> bool:
        return self < MetadataVersion.IBP_3_6_IV0

    @property
    def is_metadata_transaction_supported(self) -> bool:
        return self >= MetadataVersion.IBP_3_6_IV1

    @property
    def is_delegation_token_supported(self) -> bool:
        return self >= MetadataVersion.IBP_3_6_IV2

    @property
    def is_controller_registration_supported(self) -> bool:
        return self >= MetadataVersion.IBP_3_7_IV0

    @property
    def is_directory_assignment_supported(self) -> bool:
        return self >= MetadataVersion.IBP_3_7_IV2

    @property
    def is_elr_supported(self) -> bool:
        return self >= MetadataVersion.IBP_4_0_IV1

    @property
    def is_cordoned_log_dirs_supported(self) -> bool:
        return self >= MetadataVersion.IBP_4_3_IV0

    @property
    def register_broker_record_version(self) -> int:
        return 1 + self.is_migration_supported + self.is_directory_assignment_supported + (
            self.is_cordoned_log_dirs_supported
        )  # fmt: skip

    @property
    def partition_record_version(self) -> int:
        return self.is_directory_assignment_supported + self.is_elr_supported

    @property
    def partition_change_record_version(self) -> int:
        return self.is_directory_assignment_supported + self.is_elr_supported

    @property
    def fetch_request_version(self) -> int:
        """The version that followers use for Fetch."""
        return 13 + _count_reached(self, _FETCH_STEPS)

    @property
    def list_offsets_request_version(self) -> int:
        """The version that followers use for ListOffsets."""
        return 7 + _count_reached(self, _LIST_OFFSETS_STEPS)


MINIMUM_VERSION: Final = MetadataVersion.IBP_3_3_IV3
LATEST_VERSION: Final = MetadataVersion.IBP_4_3_IV0

_METADATA_CHANGED: Final = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})
_FETCH_STEPS: Final = (
    MetadataVersion.IBP_3_5_IV0,
    MetadataVersion.IBP_3_5_IV1,
    MetadataVersion.IBP_3_7_IV4,
    MetadataVersion.IBP_3_9_IV0,
    MetadataVersion.IBP_4_1_IV1,
)
_LIST_OFFSETS_STEPS: Final = (
    MetadataVersion.IBP_3_5_IV0,
    MetadataVersion.IBP_3_9_IV0,
    MetadataVersion.IBP_4_0_IV3,
    MetadataVersion.IBP_4_2_IV1,
)


def _count_reached(version: MetadataVersion, steps: tuple[MetadataVersion, ...]) -> int:
    return sum(version >= step for step in steps)


def metadata_version(level: int) -> MetadataVersion:
    """Return the version of a level. Raises ValueError for an unknown one."""
    try:
        return MetadataVersion(level)
    except ValueError:
        raise ValueError(
            f"metadata.version {level} is not supported; the levels are {MINIMUM_VERSION.value} ({MINIMUM_VERSION})"
            f" to {LATEST_VERSION.value} ({LATEST_VERSION})"
        ) from None


def parse_metadata_version(text: str) -> MetadataVersion:
    """Parse a name (4.0-IV1) or a release (4.0, 4.0.2), which means its last version. Raises ValueError."""
    wanted = ".".join(text.split(".")[:2])
    for version in reversed(MetadataVersion):
        if wanted in (str(version), version.release):
            return version
    raise ValueError(f"there is no metadata.version {text!r}; known are {', '.join(map(str, MetadataVersion))}")


def metadata_changed(one: MetadataVersion, other: MetadataVersion) -> bool:
    """Whether the record formats of the two versions differ, so that a downgrade may lose data."""
    low, high = sorted((one, other))
    return any(low < level <= high for level in _METADATA_CHANGED)


class FeatureLevel(NamedTuple):
    """A feature level. New clusters have it since `bootstrap_version`; `needs` are other features that it requires."""

    level: int
    bootstrap_version: MetadataVersion
    needs: tuple[tuple[str, int], ...] = ()


_FIRST: Final = FeatureLevel(0, MINIMUM_VERSION)

FEATURES: Final[dict[str, tuple[FeatureLevel, ...]]] = {
    KRAFT_VERSION: (_FIRST, FeatureLevel(1, MetadataVersion.IBP_3_9_IV0)),
    "transaction.version": (
        _FIRST,
        FeatureLevel(1, MetadataVersion.IBP_4_0_IV2),
        FeatureLevel(2, MetadataVersion.IBP_4_0_IV2),
    ),
    "group.version": (_FIRST, FeatureLevel(1, MetadataVersion.IBP_4_0_IV0)),
    ELIGIBLE_LEADER_REPLICAS_VERSION: (
        _FIRST,
        FeatureLevel(1, MetadataVersion.IBP_4_1_IV0, ((METADATA_VERSION, MetadataVersion.IBP_4_0_IV1.value),)),
    ),
    "share.version": (_FIRST, FeatureLevel(1, MetadataVersion.IBP_4_2_IV0)),
    "streams.version": (_FIRST, FeatureLevel(1, MetadataVersion.IBP_4_2_IV1)),
}
"""The features other than metadata.version, with all their levels in order."""


def default_feature_level(name: str, version: MetadataVersion) -> int:
    """Return the level of a feature in a new cluster of this version."""
    return max(level.level for level in FEATURES[name] if level.bootstrap_version <= version)
