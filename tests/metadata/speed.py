"""How fast records become images, and what an image weighs. Not a test: run it, read it.

python tests/metadata/speed.py
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable

from barnabas.metadata.changes import changes
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.metadata.snapshot import to_records
from barnabas.steps import at_once
from barnabas.wire import Uuid
from barnabas.wire.message import Message
from barnabas.wire.records.metadata import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

BROKERS = 12
DIRECTORIES = [Uuid((1000 + n).to_bytes(16)) for n in range(BROKERS)]


def topic_id(number: int) -> Uuid:
    return Uuid((number + 1).to_bytes(16))


def partition(number: int, index: int) -> PartitionRecord:
    replicas = [(number + index + n) % BROKERS for n in range(3)]
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id(number),
        replicas=replicas,
        isr=list(replicas),
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[Uuid(DIRECTORIES[n]) for n in replicas],
    )


def cluster(topics: int, partitions_each: int) -> list[Message]:
    records: list[Message] = [FeatureLevelRecord(name="metadata.version", feature_level=30)]
    for number in range(topics):
        records.append(TopicRecord(name=f"topic-{number:06}", topic_id=topic_id(number)))
        records += [partition(number, index) for index in range(partitions_each)]
    return records


def seconds(work: Callable[[], object], repeat: int = 1) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        for _ in range(repeat):
            work()
        best = min(best, (time.process_time() - start) / repeat)
    return best


def show_replay(topics: int, partitions_each: int) -> None:
    total = topics * partitions_each
    records = cluster(topics, partitions_each)
    gc.collect()
    gc.freeze()  # a node has no list of all records, so the collector should not walk this one
    took = seconds(lambda: replay(EMPTY_IMAGE, records, Provenance(1, 1, 1)))
    gc.collect()
    tracemalloc.start()
    image = replay(EMPTY_IMAGE, records, Provenance(1, 1, 1))
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    written = seconds(lambda: sum(1 for _ in to_records(image)))
    print(
        f"{topics:>7} topics x {partitions_each:>6}: replay {took:.2f} s ({len(records) / took:,.0f} records/s),"
        f" {size / total:.0f} bytes a partition, to records {written:.2f} s"
    )


def show_change(topics: int, partitions_each: int) -> None:
    image = replay(EMPTY_IMAGE, cluster(topics, partitions_each), Provenance(1, 1, 1))

    def one(*records: Message) -> Callable[[], MetadataImage]:
        return lambda: replay(image, records, Provenance(2, 1, 1))

    some = topic_id(topics // 2)
    isr = one(PartitionChangeRecord(partition_id=0, topic_id=some, isr=[1], leader=1))
    config = one(ConfigRecord(resource_type=2, resource_name="topic-000000", name="retention.ms", value="1"))
    created = one(TopicRecord(name="new", topic_id=topic_id(topics)), partition(topics, 0))
    removed = one(RemoveTopicRecord(topic_id=some))
    after = isr()
    parts = {
        "leader and isr": seconds(isr, 20),
        "config": seconds(config, 20),
        "create": seconds(created, 20),
        "delete": seconds(removed, 20),
        "changes by keys": seconds(lambda: changes(image, after, {"topics": frozenset({some})}), 20),
        "changes by scan": seconds(lambda: changes(image, after)),
        "partitions of a broker": seconds(lambda: at_once(image.topics.on_broker(1))),
    }
    text = ", ".join(f"{name} {took * 1e6:,.0f}" for name, took in parts.items())
    print(f"{topics:>7} topics x {partitions_each:>6}, microseconds: {text}")


if __name__ == "__main__":
    for shape in ((100_000, 1), (10_000, 10), (1_000, 100), (1, 100_000)):
        show_replay(*shape)
    for shape in ((1_000, 1), (10_000, 1), (100_000, 1), (1, 1_000), (1, 10_000), (1, 100_000)):
        show_change(*shape)
