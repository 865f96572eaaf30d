"""Random logs, replayed by Apache Kafka 4.3.1 record by record: its image, written by it as records, is ours."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from barnabas import wire
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.metadata.snapshot import from_records, to_records
from barnabas.metadata.versions import MetadataVersion
from barnabas.wire.message import Message
from tests.metadata.golden import DATA
from tests.metadata.stories import check_derived
from tests.metadata.test_golden_cluster import encoded

HERE = Provenance(1, 1, 1)
VECTORS: list[dict[str, Any]] = [
    json.loads(line) for line in gzip.decompress((DATA / "kafka_images.jsonl.gz").read_bytes()).splitlines()
]


def decoded(frames: list[str]) -> list[tuple[Message, int]]:
    return [tuple(wire.decode_record(bytes.fromhex(frame))) for frame in frames]


def image_of(frames: list[str]) -> MetadataImage:
    return replay(EMPTY_IMAGE, (record for record, _ in decoded(frames)), HERE)


@pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
def test_the_image_is_the_one_that_kafka_makes(vector: dict[str, Any]) -> None:
    image, theirs = image_of(vector["log"]), decoded(vector["image"])
    check_derived(image)
    assert image == from_records((record for record, _ in theirs), HERE)
    mine = list(to_records(image))
    assert sorted(encoded(*item) for item in mine) == sorted(encoded(*item) for item in theirs)
    assert list(dict.fromkeys(type(record) for record, _ in mine)) == list(
        dict.fromkeys(type(record) for record, _ in theirs)
    )


LEVELS = [vector for vector in VECTORS if "level" in vector]


@pytest.mark.parametrize("vector", LEVELS, ids=[vector["level"] for vector in LEVELS])
def test_at_another_metadata_version_the_same_is_written_and_lost_as_in_kafka(vector: dict[str, Any]) -> None:
    lost: list[str] = []
    version = MetadataVersion(vector["level"])
    mine = sorted(encoded(*item) for item in to_records(image_of(vector["log"]), version, lost.append))
    assert mine == sorted(encoded(*item) for item in decoded(vector["at_level"]))
    # Kafka drops eligible leader replicas without a word.
    assert any("eligible" not in what for what in lost) == vector["lossy"]
