"""The table of metadata.version against that of Apache Kafka 4.3.1."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.metadata.versions import (
    FEATURES,
    MetadataVersion,
    default_feature_level,
    metadata_changed,
    metadata_version,
    parse_metadata_version,
)
from tests.metadata.golden import DATA

ROWS: list[dict[str, Any]] = json.loads((DATA / "metadata_versions.json").read_text())


def test_the_levels_are_those_of_kafka() -> None:
    assert [(version.value, str(version)) for version in MetadataVersion] == [
        (row["level"], row["name"]) for row in ROWS
    ]


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_what_follows_from_a_level_is_what_follows_in_kafka(row: dict[str, Any]) -> None:
    row = dict(row)
    version = metadata_version(row.pop("level"))
    assert parse_metadata_version(row.pop("name")) is version
    assert {name: default_feature_level(name, version) for name in FEATURES} == row.pop("default_feature_levels")
    assert [other.value for other in MetadataVersion if metadata_changed(version, other)] == row.pop("changed_from")
    assert {name: getattr(version, name) for name in row} == row


def test_a_release_stands_for_its_last_version() -> None:
    assert parse_metadata_version("3.7") is parse_metadata_version("3.7.2") is MetadataVersion.IBP_3_7_IV4
    assert parse_metadata_version("4.3") is MetadataVersion.IBP_4_3_IV0


@pytest.mark.parametrize("text", ["", "3", "3.2", "4.3-IV1", "4.4-IV0", "x"])
def test_a_version_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"3\.3-IV3"):
        parse_metadata_version(text)
