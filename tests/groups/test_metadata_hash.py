"""The hash of a group's topics, compared with Apache Kafka's."""

from __future__ import annotations

import pytest

from barnabas.groups.metadata_hash import TopicHashes, group_hash, topic_hash
from barnabas.groups.xxh3 import xxh3_64
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.wire import Message, Uuid
from barnabas.wire.records.metadata import PartitionRecord, TopicRecord
from tests.broker.harness import register_broker
from tests.groups.harness import topic, topic_id_of

PATTERN = bytes(number * 7 % 256 for number in range(1200))
# Of the first bytes of the pattern, as hash4j 0.22.0 has them.
HASHES = {
    0: 3244421341483603138,
    1: -4302098779834749733,
    3: -4375086123124740706,
    4: -3182342801937314167,
    8: -5148196600006350464,
    9: 245602082024904742,
    16: -7088041056029983202,
    17: -915289979429514543,
    32: -7364622543436570690,
    33: -4577992220865291042,
    64: 7997116401300239713,
    65: 2756348719807272299,
    96: 8524519550243914463,
    97: 538966849049581888,
    128: 7346429547323666821,
    129: 2884094242154568485,
    160: -3721893423642697132,
    240: 5266862303063109335,
    241: 6060465359239009000,
    256: -46693030393586759,
    512: -648991930387029524,
    1023: 3225680456247628671,
    1024: -2568512991238798245,
    1025: -2172479308038689242,
    1089: 1039738380187108053,
    1200: -1095298298296682110,
}


@pytest.mark.parametrize("size", HASHES)
def test_the_hash_of_some_bytes(size: int) -> None:
    assert xxh3_64(PATTERN[:size]) == HASHES[size] % 2**64


def golden_image() -> MetadataImage:
    """A topic of the golden cluster, where group g-consumer-empty had it."""
    topic_id = Uuid.parse("Xf17xGJXQNu3XUjyOjR6hg")
    records: list[Message] = [register_broker(1, rack="a"), register_broker(2, rack="b")]
    records.append(TopicRecord(name="d-snappy", topic_id=topic_id))
    records.append(PartitionRecord(partition_id=0, topic_id=topic_id, replicas=[1, 2], isr=[1, 2], leader=1))
    return replay(EMPTY_IMAGE, records, Provenance(3, 1, 0))


def test_the_hash_in_kafka_s_record_of_a_group() -> None:
    image = golden_image()
    found = image.topics.get("d-snappy")
    assert found is not None
    assert group_hash([topic_hash(found, image.brokers)]) == 5329963547413214496
    assert TopicHashes().of_group({"d-snappy", "missing"}, image) == 5329963547413214496


def test_a_group_without_topics_that_exist_has_the_hash_zero() -> None:
    assert TopicHashes().of_group(["missing"], EMPTY_IMAGE) == 0


def test_a_topic_that_changes_changes_the_hash() -> None:
    hashes = TopicHashes()
    image = replay(EMPTY_IMAGE, topic("a", 2), Provenance(3, 1, 0))
    before = hashes.of_group(["a"], image)
    grown = PartitionRecord(partition_id=2, topic_id=topic_id_of("a"), replicas=[1], isr=[1], leader=1)
    image = replay(image, [grown], Provenance(4, 1, 0))
    assert hashes.of_group(["a"], image) != before
