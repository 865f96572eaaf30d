"""Logs: recovery after a kill, the cleaner, retention."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from pathlib import Path

from tools.apache_kafka import ApacheKafka, Barnabas, Node

from barnabas.batches import Record, build_batch
from bench.stall_causes import cause
from bench.stall_causes.preparing import (
    BASE_TIMESTAMP,
    MANY,
    TIMEOUT_S,
    ask,
    asking,
    create_spread,
    create_topics,
    next_moment,
    produce,
    restart,
    spread,
)

SEGMENT_BYTES = 173_000_000
ONE = build_batch([Record(0, BASE_TIMESTAMP, None, b"x" * 10)])
SOON = {
    "log.initial.task.delay.ms": "1000",
    "log.cleaner.backoff.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "0",
}
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
WAIT_S = 10.0


@cause("recovery of a segment of 173 MB in batches of one record, after a kill")
def recovery(node: Node) -> Iterator[None]:
    create_topics(node, ["killed"], 1)
    with asking(node) as client:
        ask(client, produce({"killed": [0]}))
    batches = _batches(SEGMENT_BYTES // len(ONE))
    yield
    node.kill()
    (_log_dir(node) / "killed-0" / "00000000000000000000.log").write_bytes(batches)
    node.start(timeout_s=TIMEOUT_S)
    with asking(node) as client:  # answered when the log is recovered
        ask(client, produce({"killed": [0]}))


def _log_dir(node: Node) -> Path:
    assert isinstance(node, Barnabas | ApacheKafka)
    return Path(node.properties["log.dirs"])


def _batches(count: int) -> bytes:
    """The same batch with growing offsets, which its checksum does not cover."""
    pack, rest = struct.Struct(">q").pack, ONE[8:12] + bytes(4) + ONE[16:]
    return b"".join(pack(offset) + rest for offset in range(count))


@cause(f"the cleaner's first look at {MANY:,} compacted partitions after a start", SOON)
def first_look(node: Node) -> Iterator[None]:
    topics = spread(MANY, "compacted")
    create_spread(node, topics, COMPACTED)
    with asking(node) as client:
        ask(client, produce(topics, _keyed(1)))
    yield
    restart(node)
    time.sleep(WAIT_S)


@cause("compaction of 1,000 partitions with three small segments", SOON)
def many_compactions(node: Node) -> Iterator[None]:
    topics = spread(1_000, "dirty")
    create_spread(node, topics, {**COMPACTED, "segment.ms": "1"})
    with asking(node) as client:
        yield
        for _ in range(3):
            ask(client, produce(topics, _keyed(20)))
    time.sleep(WAIT_S)


@cause("compaction of a log of 100 MB", SOON)
def one_compaction(node: Node) -> Iterator[None]:
    create_topics(node, ["dirty"], 1, {**COMPACTED, "segment.bytes": str(10 << 20)})
    request = produce({"dirty": [0]}, _keyed(5_000, b"x" * 150))
    with asking(node) as client:
        yield
        for _ in range(110):
            ask(client, request)
    time.sleep(WAIT_S)


def _keyed(count: int, value: bytes = b"value") -> bytes:
    moment = next_moment()
    return build_batch(Record(0, moment, b"%07d" % each, value) for each in range(count))


@cause(f"retention of {MANY:,} partitions with two expired segments", {**SOON, "log.roll.ms": "1"})
def retention(node: Node) -> Iterator[None]:
    topics = spread(MANY, "expired")
    create_spread(node, topics, {"retention.ms": "1000"})
    with asking(node) as client:
        yield
        for _ in range(2):
            ask(client, produce(topics, _keyed(1)))
    time.sleep(WAIT_S)
