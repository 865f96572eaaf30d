"""Produce: very many small requests, and batches that are expensive to check."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from confluent_kafka import Producer
from tools.apache_kafka import Node

from barnabas.batches import Compression, Record, build_batch
from bench.stall_causes import Load, cause
from bench.stall_causes.preparing import (
    BASE_TIMESTAMP,
    MANY,
    TIMEOUT_S,
    asking,
    create_spread,
    create_topics,
    next_moment,
    of_size,
    produce,
    spread,
)

FRAMES = 60_000
MESSAGES = 100_000
NINE_BYTES = bytes((16, 0, 0, 0, 1, 4, 0, 0, 0))  # a record: null key, two bytes of value
FEW, MOST = 2_000_000, 14_800_000  # of which the last is just below 128 MiB
LARGE_TOPIC = {"max.message.bytes": str(16 << 20)}


@cause("60,000 small Produce requests, pipelined on one connection")
def small_frames(node: Node) -> Iterator[None]:
    create_topics(node, ["small"], 1)
    frames = produce({"small": [0]}) * FRAMES
    with asking(node) as client:
        yield
        sending = threading.Thread(target=client.send, args=(frames,))
        sending.start()
        for _ in range(FRAMES):
            client.receive()
        sending.join()


@cause("100,000 messages of librdkafka, acks=1, no linger")
def librdkafka(node: Node) -> Iterator[None]:
    create_topics(node, ["librdkafka"], 1)
    settings = {"bootstrap.servers": node.bootstrap, "acks": 1, "linger.ms": 0, "batch.num.messages": 10}
    producer = Producer({**settings, "queue.buffering.max.messages": 2 * MESSAGES})
    yield
    for _ in range(MESSAGES):
        producer.produce("librdkafka", b"x" * 10)
        producer.poll(0)
    if producer.flush(TIMEOUT_S):
        raise RuntimeError("librdkafka could not send all messages")


def _bomb(compression: Compression, count: int) -> Load:
    def load(node: Node) -> Iterator[None]:
        create_topics(node, ["bomb"], 1, LARGE_TOPIC)
        batch = of_size(NINE_BYTES, count, compression, max_timestamp=BASE_TIMESTAMP - 1)
        with asking(node) as client:
            yield
            client.send(produce({"bomb": [0]}, batch))
            client.receive()

    load.__module__ = __name__
    return load


for codec in (Compression.ZSTD, Compression.GZIP, Compression.LZ4, Compression.SNAPPY):
    cause(f"{codec.name.lower()} batch of {FEW:,} records, max timestamp below base timestamp")(_bomb(codec, FEW))
cause(f"zstd batch of {MOST:,} records, max timestamp below base timestamp")(_bomb(Compression.ZSTD, MOST))


@cause("batch of 9 MB to a compacted topic")
def to_compacted(node: Node) -> Iterator[None]:
    create_topics(node, ["compacted"], 1, {**LARGE_TOPIC, "cleanup.policy": "compact"})
    batch = build_batch(Record(0, BASE_TIMESTAMP, b"%07d" % number, b"value") for number in range(450_000))
    with asking(node) as client:
        yield
        client.send(produce({"compacted": [0]}, batch))
        client.receive()


@cause("zstd batch of 2,000,000 records to a topic with compression.type=lz4")
def recompressed(node: Node) -> Iterator[None]:
    create_topics(node, ["recompressed"], 1, {**LARGE_TOPIC, "compression.type": "lz4"})
    batch = of_size(NINE_BYTES, FEW, Compression.ZSTD)
    with asking(node) as client:
        yield
        client.send(produce({"recompressed": [0]}, batch))
        client.receive()


@cause("Produce of 50 MB to 500 partitions")
def many_megabytes(node: Node) -> Iterator[None]:
    topics = spread(500)
    create_spread(node, topics)
    batch = build_batch(Record(0, BASE_TIMESTAMP, None, b"x" * 1000) for _ in range(100))
    request = produce(topics, batch)
    with asking(node) as client:
        yield
        client.send(request)
        client.receive()


@cause(f"Produce of one record to each of {MANY:,} partitions")
def many_partitions(node: Node) -> Iterator[None]:
    topics = spread(MANY)
    create_spread(node, topics)
    request = produce(topics)
    with asking(node) as client:
        yield
        client.send(request)
        client.receive()


@cause(f"Produce of one record to each of {MANY:,} partitions whose segments roll", {"log.roll.ms": "1"})
def rolling(node: Node) -> Iterator[None]:
    topics = spread(MANY)
    create_spread(node, topics)
    with asking(node) as client:
        for is_measured in (False, True):
            request = produce(topics, build_batch([Record(0, next_moment(), None, b"x")]))
            if is_measured:
                yield
            client.send(request)
            client.receive()
