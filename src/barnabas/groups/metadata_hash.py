"""The hash of the topics that a group subscribes to. When it changes, the group needs a new assignment.

It equals Kafka's, because the record of the group epoch contains it. The hash of a topic covers its id, its name, the
number of partitions, and the racks of the replicas of each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from barnabas.groups.xxh3 import xxh3_64
from barnabas.metadata.brokers import Brokers
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import Topic
from barnabas.steps import ROWS_PER_STEP, Slices, at_once

MAX_CACHED = 100_000
_MAGIC = b"\0"
_INT = struct.Struct("<i")
_LONG = struct.Struct("<q")


def topic_hash(topic: Topic, brokers: Brokers) -> int:
    return at_once(topic_hash_in_slices(topic, brokers))


def topic_hash_in_slices(topic: Topic, brokers: Brokers) -> Slices[int]:
    """Return the hash of a topic."""
    high, low = struct.unpack(">qq", topic.topic_id)
    parts = [_MAGIC, _LONG.pack(high), _LONG.pack(low), _text(topic.name), _INT.pack(len(topic.partitions))]
    for number, partition in enumerate(topic.partitions):
        if number and number % ROWS_PER_STEP == 0:
            yield
        parts.append(_INT.pack(number))
        replicas = (brokers.get(replica) for replica in partition.replicas)
        for rack in sorted(broker.rack for broker in replicas if broker is not None and broker.rack is not None):
            parts += (_INT.pack(_utf16_length(rack)), _text(rack))
    return _signed(xxh3_64(b"".join(parts)))


def group_hash(topic_hashes: Iterable[int]) -> int:
    """Return the hash of a group from the hashes of its topics, sorted by name. 0 without topics."""
    data = b"".join(map(_LONG.pack, topic_hashes))
    return _signed(xxh3_64(data)) if data else 0


class TopicHashes:
    """A cache of the hashes of topics."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Topic, int]] = {}

    def of_group(self, topic_names: Iterable[str], image: MetadataImage) -> int:
        """Return the hash of a group with these topics. Topics that do not exist are ignored."""
        return at_once(self.of_group_in_slices(topic_names, image))

    def of_group_in_slices(self, topic_names: Iterable[str], image: MetadataImage) -> Slices[int]:
        """Return `of_group`."""
        found = []
        for number, name in enumerate(sorted(topic_names)):
            if number and number % ROWS_PER_STEP == 0:
                yield
            topic = image.topics.get(name)
            if topic is not None:
                found.append((yield from self._of_topic(topic, image)))
        yield
        value = group_hash(found)
        yield
        return value

    def _of_topic(self, topic: Topic, image: MetadataImage) -> Slices[int]:
        known = self._known.get(topic.name)
        if known is not None and known[0] is topic:
            return known[1]
        if len(self._known) >= MAX_CACHED:
            self._known.clear()
        value = yield from topic_hash_in_slices(topic, image.brokers)
        self._known[topic.name] = (topic, value)
        return value


def _text(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass") + _INT.pack(_utf16_length(text))


def _utf16_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
