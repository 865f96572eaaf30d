"""Parsing of feature levels: `group.version=1`, or a release that sets all features. Pure.

Its one rule: a wrong level is a ValueError with the message of Kafka's tools. `parse_named_level` also accepts
`metadata.version` by name (4.3-IV0), where Kafka's tool accepts only numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from barnabas.client.admin.features import FeatureUpdate, UpgradeType
from barnabas.metadata.versions import (
    FEATURES,
    METADATA_VERSION,
    MetadataVersion,
    default_feature_level,
    metadata_version,
    parse_metadata_version,
)

_NOT_FOR_PRODUCTION = ("4.4-IV0",)  # Kafka's tools list it as supported, too


def parse_level(text: str) -> tuple[str, int]:
    """Parse `NAME=LEVEL`. Raises ValueError.

    >>> parse_level("group.version=1")
    ('group.version', 1)
    """
    name, equals, level = (part.strip() for part in text.partition("="))
    if not equals:
        raise ValueError(f"Can't parse feature=level string {text}: equals sign not found.")
    if not re.fullmatch(r"[+-]?[0-9]{1,5}", level) or not -(2**15) <= int(level) < 2**15:
        raise ValueError(f"Can't parse feature=level string {text}: unable to parse {level} as a short.")
    return name, int(level)


def parse_named_level(text: str) -> tuple[str, int]:
    """Parse `NAME=LEVEL` as `parse_level` does; the level of metadata.version may also be a name.

    >>> parse_named_level("metadata.version=4.3-IV0")
    ('metadata.version', 30)
    """
    name, equals, level = (part.strip() for part in text.partition("="))
    if equals and name == METADATA_VERSION and not level.isdecimal():
        return name, parse_release(level).value
    return parse_level(text)


def parse_release(text: str) -> MetadataVersion:
    try:
        return parse_metadata_version(text)
    except ValueError:
        known = ", ".join((*map(str, MetadataVersion), *_NOT_FOR_PRODUCTION))
        raise ValueError(f"Unknown {METADATA_VERSION} '{text}'. Supported {METADATA_VERSION} are: {known}") from None


def updates_of(levels: Iterable[tuple[str, int]], upgrade_type: UpgradeType) -> dict[str, FeatureUpdate]:
    updates: dict[str, FeatureUpdate] = {}
    for name, level in levels:
        if level == 0 and upgrade_type is UpgradeType.UPGRADE:
            raise ValueError(
                "The upgradeType flag should be set to SAFE_DOWNGRADE or UNSAFE_DOWNGRADE when the provided "
                "maxVersionLevel:0 is < 1."
            )
        if level < 0:
            raise ValueError("Cannot specify a negative version level.")
        if name in updates:
            raise ValueError(f"Feature {name} was specified more than once.")
        updates[name] = FeatureUpdate(level, upgrade_type)
    return updates


def updates_for_release(version: MetadataVersion, upgrade_type: UpgradeType) -> dict[str, FeatureUpdate]:
    """Return updates of all features to the levels of a new cluster of this release. Upgrades to level 0 are left out."""
    levels = {METADATA_VERSION: version.value, **{name: default_feature_level(name, version) for name in FEATURES}}
    return {
        name: FeatureUpdate(level, upgrade_type)
        for name, level in levels.items()
        if level > 0 or upgrade_type is not UpgradeType.UPGRADE
    }


def level_text(feature: str, level: int) -> str:
    """Format a level as Kafka's tool does: metadata.version by its name.

    >>> level_text("metadata.version", 30), level_text("group.version", 1), level_text("metadata.version", 99)
    ('4.3-IV0', '1', 'UNKNOWN 99')
    """
    if feature != METADATA_VERSION:
        return str(level)
    try:
        return str(metadata_version(level))
    except ValueError:
        return f"UNKNOWN {level}"
