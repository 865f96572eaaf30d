"""Produce requests that lie: the node answers or hangs up, the log stays whole, and the next good batch goes into it.

A case is a few requests to one node, each with a batch that was good once: fields of its header overwritten, bits flipped, cut
off, doubled, its records not what it says; often with a checksum that fits, so that what comes after the checksum is reached.
Then the log is read from the disk again, as after a kill.
"""

from __future__ import annotations

import logging
import resource
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas import wire
from barnabas.batches import Compression, Record, build_batch, check_crc, iterate_batches
from barnabas.batches.checksum import batch_crc
from barnabas.batches.compression import compress
from barnabas.batches.format import ATTRIBUTES_POSITION, CRC_POSITION, HEADER_SIZE, LENGTH_POSITION
from barnabas.broker.dispatch import Refused
from barnabas.storage import Log
from barnabas.storage.producers import ProducerState, is_expired
from barnabas.wire import APIS, ApiKey, ErrorCode, MalformedError, Message, Uuid
from barnabas.wire.frame import Frame
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.records.metadata import ConfigRecord, PartitionRecord, TopicRecord
from tests.broker.harness import MemoryNode

NOW_MS = 1_700_000_000_000
VERSIONS = range(3, 14)
MAX_REQUEST_BYTES = 1 << 20
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # where flushing costs nothing
# Topics that look at batches in different ways: not at all, for keys, for another codec, for another timestamp.
TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "compacted": {"cleanup.policy": "compact"},
    "recompressed": {"compression.type": "gzip"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "small": {"internal.segment.bytes": "2000", "max.message.bytes": "1500", "index.interval.bytes": "100"},
}
IDS = {name: Uuid(bytes([7, number]) * 8) for number, name in enumerate(TOPICS)}

# Where the fields of a header lie, and how they are written.
FIELDS = {
    "base offset": (0, ">q"),
    "length": (LENGTH_POSITION, ">i"),
    "leader epoch": (12, ">i"),
    "magic": (16, ">b"),
    "crc": (CRC_POSITION, ">I"),
    "attributes": (ATTRIBUTES_POSITION, ">h"),
    "last offset delta": (23, ">i"),
    "base timestamp": (27, ">q"),
    "max timestamp": (35, ">q"),
    "producer id": (43, ">q"),
    "producer epoch": (51, ">h"),
    "base sequence": (53, ">i"),
    "records count": (57, ">i"),
}
BITS = {"q": 64, "i": 32, "I": 32, "h": 16, "b": 8}


def topic_records() -> Iterator[Message]:
    for name, configs in TOPICS.items():
        yield TopicRecord(name=name, topic_id=IDS[name])
        yield PartitionRecord(topic_id=IDS[name], partition_id=0, replicas=[1], isr=[1], leader=1, leader_epoch=3)
        for key, value in configs.items():
            yield ConfigRecord(resource_type=2, resource_name=name, name=key, value=value)


def good_batch(**how: Any) -> bytes:
    return build_batch([Record(0, NOW_MS, b"key", b"good")], **how)


def some_batch(draw: Random) -> bytes:
    """One that a client could have sent."""
    records = [
        Record(
            index,
            draw.choice((NOW_MS, NOW_MS, NOW_MS + draw.randrange(100), -1, draw.randrange(1 << 62))),
            draw.choice((None, b"", b"key", draw.randbytes(8))),
            draw.choice((None, b"", draw.randbytes(draw.randrange(200)), bytes(draw.randrange(500)))),
            tuple((draw.choice(("", "h")), draw.choice((None, b"v"))) for _ in range(draw.choice((0, 0, 2)))),
        )
        for index in range(draw.randint(1, 6))
    ]
    producer: dict[str, Any] = {}
    if draw.random() < 0.5:
        producer = {
            "producer_id": draw.randrange(3),
            "producer_epoch": draw.randrange(3),
            "base_sequence": draw.choice((0, 0, 1, 2, 5, 2**31 - 1)),
            "is_transactional": draw.random() < 0.15,
        }
    return build_batch(records, compression=draw.choice(list(Compression)), **producer)


def mutated(draw: Random, data: bytes) -> bytes:
    """Bytes that were good once."""
    out = bytearray(data)
    for _ in range(draw.choice((0, 1, 1, 2, 3))):
        _mutate(draw, out)
    if draw.random() < 0.6:
        repair(out, length=draw.random() < 0.5)
    return bytes(out)


def _mutate(draw: Random, out: bytearray) -> None:
    at = draw.randrange(len(out) + 1)
    kind = draw.choice(("field", "field", "field", "flip", "noise", "cut", "insert", "double", "tail", "payload"))
    if kind == "field" and len(out) >= HEADER_SIZE:
        position, form = FIELDS[draw.choice(list(FIELDS))]
        bits = BITS[form[1]]
        low, high = (0, (1 << bits) - 1) if form[1] == "I" else (-(1 << bits - 1), (1 << bits - 1) - 1)
        struct.pack_into(form, out, position, draw.choice((low, high, max(low, -1), 0, draw.randrange(70))))
    elif kind == "flip" and at < len(out):
        out[at] ^= 1 << draw.randrange(8)
    elif kind == "noise":
        noise = draw.randbytes(draw.randrange(8))
        out[at : at + len(noise)] = noise
    elif kind == "cut":
        del out[at:]
    elif kind == "insert":
        out[at:at] = draw.randbytes(draw.randint(1, 20))
    elif kind == "double":
        out += bytes(out)
    elif kind == "tail":
        out += draw.randbytes(draw.randrange(70))
    elif kind == "payload" and len(out) > HEADER_SIZE:
        out[HEADER_SIZE:] = draw.randbytes(draw.randrange(60))


def repair(out: bytearray, *, length: bool) -> None:
    """Give it the checksum, and the length, that fit what it is now."""
    if len(out) >= HEADER_SIZE:
        if length:
            struct.pack_into(">i", out, LENGTH_POSITION, len(out) - 12)
        size = struct.unpack_from(">i", out, LENGTH_POSITION)[0] + 12
        if HEADER_SIZE <= size <= len(out):
            struct.pack_into(">I", out, CRC_POSITION, batch_crc(out, size))


def some_request(draw: Random) -> bytes:
    """A frame; in some, what is around the batches is wrong as well."""
    version = draw.choice(VERSIONS)
    topics = []
    for name in draw.choices(list(TOPICS), k=draw.randint(1, 3)):
        rows = [
            ProduceRequest.PartitionProduceData(
                index=0 if draw.random() < 0.9 else draw.choice((1, -1, 2**31 - 1)),
                records=mutated(draw, some_batch(draw)),
            )
            for _ in range(draw.randint(1, 2))
        ]
        topics.append(ProduceRequest.TopicProduceData(name=name, topic_id=IDS[name], partition_data=rows))
    request = ProduceRequest(
        transactional_id=draw.choice((None, None, "", "t")),
        acks=draw.choice((-1, -1, -1, 1, 1, 0, 2)),
        timeout_ms=draw.choice((10, 0, -1)),
        topic_data=topics,
    )
    frame = encoded(request, version)
    if draw.random() < 0.25:
        at = draw.randrange(4, len(frame))
        noise = draw.choice((draw.randbytes(draw.randint(1, 5)), b"\x7f\xff\xff\xff"))
        frame = frame[:at] + noise + frame[at + draw.randrange(6) :]
    return frame


def encoded(request: ProduceRequest, version: int) -> bytes:
    header = RequestHeader(request_api_key=0, request_api_version=version, correlation_id=5, client_id="fuzz")
    return wire.encode(header, APIS[ApiKey.PRODUCE].request_header_version(version)) + wire.encode(request, version)


@contextmanager
def quiet_node() -> Iterator[MemoryNode]:
    """A node that must not be surprised: what no handler expected is written to the log with its traceback."""
    surprises: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: surprises.append(handler.format(record))  # type: ignore[method-assign]
    log = logging.getLogger("barnabas")
    log.addHandler(handler)
    try:
        with tempfile.TemporaryDirectory(dir=IN_MEMORY) as directory:
            (Path(directory) / "log").mkdir()
            yield MemoryNode({"log.dirs": str(Path(directory) / "log")}, records=list(topic_records()), now_ms=NOW_MS)
    finally:
        log.removeHandler(handler)
    assert not surprises, surprises[0]


def produce_good(node: MemoryNode, topic: str) -> None:
    rows = [ProduceRequest.PartitionProduceData(index=0, records=good_batch())]
    topics = [ProduceRequest.TopicProduceData(name=topic, topic_id=IDS[topic], partition_data=rows)]
    response = node.call(ProduceRequest(acks=-1, timeout_ms=50, topic_data=topics), 13)
    row = response.responses[0].partition_responses[0]
    end = node.replicas.partition(topic, 0).log_end_offset
    assert (row.error_code, row.base_offset) == (ErrorCode.NONE, end - 1), topic


def log_bytes(node: MemoryNode, topic: str) -> bytes:
    """All segments, one after the other."""
    directory = node.replicas.partition(topic, 0).log.directory
    return b"".join(each.read_bytes() for each in sorted(directory.glob("*.log")))


def check_log(node: MemoryNode, topic: str) -> None:
    """What is on the disk is what was answered, and every batch of it is whole."""
    partition = node.replicas.partition(topic, 0)
    log = partition.log
    data = log_bytes(node, topic)
    end = 0
    for position, header in iterate_batches(data):
        check_crc(header, data, position)
        assert header.base_offset == end
        assert header.partition_leader_epoch == 3
        end = header.next_offset
    assert end == log.log_end_offset == partition.high_watermark
    states = living(log)
    again = Log.open(log.directory, log.config, clock=lambda: NOW_MS)
    assert (again.log_end_offset, [each.truncated_bytes for each in again.recoveries if each.truncated_bytes]) == (
        end,
        [],
    )
    assert living(again) == states
    again.close()


def living(log: Log) -> dict[int, ProducerState]:
    """Producers of which something is known after a restart: the time of the others was over, or they said so."""
    expiration_ms = log.config.producer_id_expiration_ms
    return {each.producer_id: each for each in log.producers.states if not is_expired(each, NOW_MS, expiration_ms)}


def answer_to(node: MemoryNode, frame: Frame) -> bytes | str | None:
    """The response, None if there is none, or a text if the connection would be closed."""
    try:
        return node.answer(frame)
    except (Refused, MalformedError) as error:
        return type(error).__name__


def answered(node: MemoryNode, frame: Frame) -> bool:
    answer = answer_to(node, frame)
    return answer is None or (isinstance(answer, bytes) and len(answer) >= 4)


def as_view(frame: bytes) -> memoryview:
    """The frame as a connection hands out a large one."""
    return memoryview(bytearray(frame)).toreadonly()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32), st.booleans())
def test_whatever_is_produced_the_log_stays_whole_and_takes_the_next_good_batch(seed: int, is_large: bool) -> None:
    draw = Random(seed)
    with quiet_node() as node:
        for _ in range(draw.randint(1, 30)):
            frame = some_request(draw)
            answered(node, as_view(frame) if is_large else frame)
        for topic in TOPICS:
            produce_good(node, topic)
            check_log(node, topic)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 32))
def test_a_frame_that_is_a_view_is_answered_and_stored_as_its_bytes_are(seed: int) -> None:
    draw = Random(seed)
    frames = [some_request(draw) for _ in range(draw.randint(1, 20))]
    with quiet_node() as node, quiet_node() as other:
        assert [answer_to(other, as_view(each)) for each in frames] == [answer_to(node, each) for each in frames]
        for topic in TOPICS:
            assert log_bytes(other, topic) == log_bytes(node, topic), topic


@cache
def zeros(codec: Compression) -> bytes:
    one = compress(codec, bytes(64 << 20))
    return one * min(8, max(1, MAX_REQUEST_BYTES // len(one)))


@pytest.mark.parametrize("codec", [each for each in Compression if each is not Compression.NONE])
@pytest.mark.parametrize("topic", ["compacted", "recompressed", "stamped", "plain"])
def test_a_bomb_is_refused_without_being_unpacked(codec: Compression, topic: str) -> None:
    """Half a gigabyte of zeros, or as much as a request can hold."""
    bomb = bytearray(good_batch()[:HEADER_SIZE] + zeros(codec))
    struct.pack_into(">h", bomb, ATTRIBUTES_POSITION, codec)
    for count in (1, 2**31 - 1):
        struct.pack_into(">i", bomb, FIELDS["records count"][0], count)
        struct.pack_into(">i", bomb, FIELDS["last offset delta"][0], count - 1)
        repair(bomb, length=True)
        rows = [ProduceRequest.PartitionProduceData(index=0, records=bytes(bomb))]
        topics = [ProduceRequest.TopicProduceData(name=topic, topic_id=IDS[topic], partition_data=rows)]
        with quiet_node() as node:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            assert answered(node, as_view(encoded(ProduceRequest(acks=-1, timeout_ms=50, topic_data=topics), 13)))
            grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            assert grown_kb < 300_000, f"{grown_kb} kB"
            produce_good(node, topic)
            check_log(node, topic)
