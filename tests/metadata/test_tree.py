"""The image as paths."""

from __future__ import annotations

import json

import pytest

from barnabas.metadata import tree
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.wire.records.metadata import ConfigRecord
from tests.metadata.test_changes import START, TOPIC, partition


def image() -> MetadataImage:
    odd = ConfigRecord(resource_type=32, resource_name="a/b%", name="x", value="1")
    return replay(EMPTY_IMAGE, [*START, *(partition(n) for n in range(1, 12)), odd], Provenance(7, 2, 5))


def test_directories_are_listed_in_order() -> None:
    assert tree.ls(image()) == ["image"]
    assert tree.ls(image(), "/image/") == [
        "acls",
        "clientQuotas",
        "cluster",
        "configs",
        "delegationToken",
        "features",
        "producerIds",
        "provenance",
        "scram",
        "topics",
    ]
    assert tree.ls(image(), "image/topics/byName/orders") == [*map(str, range(12)), "id", "name"]
    assert tree.ls(image(), "image/topics/byId") == [str(TOPIC)]
    assert tree.ls(image(), "image/clientQuotas") == ["clientId(<default>)_user(u)"]
    assert tree.ls(image(), "image/scram/SCRAM-SHA-512") == ["alice"]
    assert tree.ls(image(), "image/topics/byName/orders/3") == ["3"]


def test_files_hold_text_or_json() -> None:
    assert tree.cat(image(), "image/features/metadataVersion") == "4.2-IV1"
    assert tree.cat(image(), "image/configs/TOPIC:orders/retention.ms") == "1"
    assert tree.cat(image(), "image/configs/GROUP:a%2Fb%25/x") == "1"
    assert tree.cat(image(), "image/producerIds/nextProducerId") == "1000"
    assert json.loads(tree.cat(image(), "image/topics/byName/orders/3"))["isr"] == [1, 2]
    assert json.loads(tree.cat(image(), "image/cluster/brokers/1"))["listeners"] == {}
    assert json.loads(tree.cat(image(), "image/provenance"))["last_contained_offset"] == 7


def test_every_file_that_is_found_can_be_shown_and_none_shows_a_secret() -> None:
    paths = list(tree.find(image()))
    shown = {}
    for path in paths:
        try:
            shown[path] = tree.cat(image(), path)
        except tree.NoSuchPathError:
            assert tree.ls(image(), path) or path in ("image/scram/SCRAM-SHA-256",)
    assert len(shown) > 30
    assert shown["image/scram/SCRAM-SHA-512/alice"] == "8192 iterations"
    hidden = tree.cat(image(), "image/configs/TOPIC:orders/retention.ms", lambda resource, name: name == "retention.ms")
    assert hidden == "[redacted]"


def test_paths_are_found_by_their_last_name() -> None:
    assert list(tree.find(image(), "image/topics/byName", "1*")) == [
        f"image/topics/byName/orders/{n}" for n in (1, 10, 11)
    ]
    assert list(tree.find(image(), pattern="retention.*")) == ["image/configs/TOPIC:orders/retention.ms"]


@pytest.mark.parametrize(
    "path", ["x", "image/x", "image/topics/byName/orders/12", "image/provenance/x", "image/topics"]
)
def test_what_is_not_a_file_cannot_be_shown(path: str) -> None:
    with pytest.raises(tree.NoSuchPathError):
        tree.cat(image(), path)
