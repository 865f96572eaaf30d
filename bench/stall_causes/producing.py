"""Produce: very many small requests, and batches that are expensive to check."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator

from confluent_kafka import Producer
from tools.apache_kafka import Node

from barnabas.batches import BatchHeader, Compression, Record, build_batch
from barnabas.batches.builder import encode_batch
from barnabas.batches.checksum import crc32c
from barnabas.batches.format import ATTRIBUTES_POSITION, CRC_POSITION, HEADER_SIZE, LENGTH_OVERHEAD
from bench.stall_causes import Load, cause
from bench.stall_causes.preparing import (
    BASE_TIMESTAMP,
    MANY,
    TIMEOUT_S,
    ask,
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
HEADER = BatchHeader(0, 0, -1, 2, 0, 0, 0, BASE_TIMESTAMP, BASE_TIMESTAMP, -1, -1, -1, 1)
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
            ask(client, produce({"bomb": [0]}, batch))

    load.__module__ = __name__
    return load


for codec in (Compression.ZSTD, Compression.GZIP, Compression.LZ4, Compression.SNAPPY):
    cause(f"{codec.name.lower()} batch of {FEW:,} records, max timestamp below base timestamp")(_bomb(codec, FEW))
cause(f"zstd batch of {MOST:,} records, max timestamp below base timestamp")(_bomb(Compression.ZSTD, MOST))


def _blocks(compression: Compression) -> Load:
    """As many blocks without content as fit into a batch of 15 MB: a client can have each of them looked at."""
    block = {Compression.ZSTD: bytes(3), Compression.LZ4: (1 << 31 | 1).to_bytes(4, "little") + b"x"}[compression]
    start = encode_batch(HEADER, NINE_BYTES, compression)
    head, end = {
        Compression.ZSTD: (b"\x28\xb5\x2f\xfd\x00\x58", bytes((1, 0, 0))),
        Compression.LZ4: (b"\x04\x22\x4d\x18\x40\x40\xc0", bytes(4)),
    }[compression]

    def load(node: Node) -> Iterator[None]:
        create_topics(node, ["blocks"], 1, LARGE_TOPIC)
        payload = head + block * (15_000_000 // len(block)) + end
        batch = bytearray(start[:HEADER_SIZE] + payload)
        struct.pack_into(">i", batch, 8, len(batch) - LENGTH_OVERHEAD)
        struct.pack_into(">I", batch, CRC_POSITION, crc32c(memoryview(batch)[ATTRIBUTES_POSITION:]))
        request = produce({"blocks": [0]}, bytes(batch))
        with asking(node) as client:
            yield
            ask(client, request)

    load.__module__ = __name__
    return load


for codec in (Compression.ZSTD, Compression.LZ4):
    cause(f"{codec.name.lower()} batch of 15 MB in blocks of a few bytes")(_blocks(codec))


@cause("batch of 9 MB to a compacted topic")
def to_compacted(node: Node) -> Iterator[None]:
    create_topics(node, ["compacted"], 1, {**LARGE_TOPIC, "cleanup.policy": "compact"})
    batch = build_batch(Record(0, BASE_TIMESTAMP, b"%07d" % number, b"value") for number in range(450_000))
    with asking(node) as client:
        yield
        ask(client, produce({"compacted": [0]}, batch))


@cause("zstd batch of 2,000,000 records to a topic with compression.type=lz4")
def recompressed(node: Node) -> Iterator[None]:
    create_topics(node, ["recompressed"], 1, {**LARGE_TOPIC, "compression.type": "lz4"})
    batch = of_size(NINE_BYTES, FEW, Compression.ZSTD)
    with asking(node) as client:
        yield
        ask(client, produce({"recompressed": [0]}, batch))


def _many_megabytes(records: int) -> Load:
    def load(node: Node) -> Iterator[None]:
        topics = spread(500)
        create_spread(node, topics)
        batch = build_batch(Record(0, BASE_TIMESTAMP, None, b"x" * 1000) for _ in range(records))
        request = produce(topics, batch)
        with asking(node) as client:
            yield
            ask(client, request)

    return load


cause("Produce of 50 MB to 500 partitions")(_many_megabytes(100))
cause("Produce of 95 MB to 500 partitions")(_many_megabytes(190))


@cause(f"Produce of one record to each of {MANY:,} partitions")
def many_partitions(node: Node) -> Iterator[None]:
    topics = spread(MANY)
    create_spread(node, topics)
    request = produce(topics)
    with asking(node) as client:
        yield
        ask(client, request)


@cause(f"Produce of one record to each of {MANY:,} partitions whose segments roll", {"log.roll.ms": "1"})
def rolling(node: Node) -> Iterator[None]:
    topics = spread(MANY)
    create_spread(node, topics)
    with asking(node) as client:
        for is_measured in (False, True):
            request = produce(topics, build_batch([Record(0, next_moment(), None, b"x")]))
            if is_measured:
                yield
            ask(client, request)
