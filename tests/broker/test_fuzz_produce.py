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
from pathlib import Path
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
from barnabas.wire import APIS, ApiKey, ErrorCode, MalformedError, Message, Uuid
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.records.metadata import ConfigRecord, PartitionRecord, TopicRecord
from tests.broker.harness import MemoryNode

NOW_MS = 1_700_000_000_000
VERSIONS = range(3, 14)
MAX_REQUEST_BYTES = 1 << 20
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


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """One that a client could have sent."""
    values = st.one_of(st.none(), st.binary(max_size=200))
    keys = st.one_of(st.none(), st.binary(max_size=10))
    headers = st.lists(st.tuples(st.text(max_size=5), values), max_size=2)
    timestamps = st.one_of(st.just(NOW_MS), st.integers(-1, 1 << 62))
    drawn = draw(st.lists(st.tuples(timestamps, keys, values, headers), min_size=1, max_size=6))
    records = [Record(i, when, key, value, tuple(more)) for i, (when, key, value, more) in enumerate(drawn)]
    producer: dict[str, Any] = {}
    if draw(st.booleans()):
        producer = {
            "producer_id": draw(st.integers(0, 3)),
            "producer_epoch": draw(st.integers(0, 2)),
            "base_sequence": draw(st.sampled_from((0, 0, 1, 2, 5, 2**31 - 1))),
            "is_transactional": draw(st.booleans()),
        }
    return build_batch(records, compression=draw(st.sampled_from(Compression)), **producer)


@st.composite
def mutations(draw: st.DrawFn, data: bytes) -> bytes:
    """Bytes that were good once."""
    out = bytearray(data)
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(("field", "field", "flip", "noise", "cut", "insert", "double", "tail", "payload")))
        at = draw(st.integers(0, max(0, len(out) - 1)))
        if kind == "field" and len(out) >= HEADER_SIZE:
            position, form = FIELDS[draw(st.sampled_from(sorted(FIELDS)))]
            bits = BITS[form[1]]
            low, high = (0, (1 << bits) - 1) if form[1] == "I" else (-(1 << bits - 1), (1 << bits - 1) - 1)
            near = st.integers(max(low, -3), min(high, 70))
            struct.pack_into(form, out, position, draw(st.one_of(near, st.sampled_from((low, high)))))
        elif kind == "flip" and out:
            out[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "noise":
            noise = draw(st.binary(max_size=8))
            out[at : at + len(noise)] = noise
        elif kind == "cut":
            del out[at:]
        elif kind == "insert":
            out[at:at] = draw(st.binary(min_size=1, max_size=20))
        elif kind == "double":
            out += out
        elif kind == "tail":
            out += draw(st.binary(max_size=70))
        elif kind == "payload" and len(out) > HEADER_SIZE:
            out[HEADER_SIZE:] = draw(st.binary(max_size=60))
    if draw(st.booleans()):
        repair(out, length=draw(st.booleans()))
    return bytes(out)


def repair(out: bytearray, *, length: bool) -> None:
    """Give it the checksum, and the length, that fit what it is now."""
    if len(out) >= HEADER_SIZE:
        if length:
            struct.pack_into(">i", out, LENGTH_POSITION, len(out) - 12)
        size = struct.unpack_from(">i", out, LENGTH_POSITION)[0] + 12
        if HEADER_SIZE <= size <= len(out):
            struct.pack_into(">I", out, CRC_POSITION, batch_crc(out, size))


@st.composite
def requests(draw: st.DrawFn) -> tuple[bytes, int]:
    """A frame, and its version."""
    version = draw(st.sampled_from(VERSIONS))
    topics = []
    for name in draw(st.lists(st.sampled_from(sorted(TOPICS)), min_size=1, max_size=3)):
        rows = []
        for _ in range(draw(st.integers(1, 2))):
            data = draw(batches().flatmap(mutations))
            index = draw(st.sampled_from((0, 0, 0, 0, 1, -1, 2**31 - 1)))
            rows.append(ProduceRequest.PartitionProduceData(index=index, records=data))
        topics.append(ProduceRequest.TopicProduceData(name=name, topic_id=IDS[name], partition_data=rows))
    request = ProduceRequest(
        transactional_id=draw(st.sampled_from((None, None, "", "t"))),
        acks=draw(st.sampled_from((-1, -1, 1, 0, 2))),
        timeout_ms=draw(st.sampled_from((10, 0, -1))),
        topic_data=topics,
    )
    frame = encoded(request, version)
    if draw(st.sampled_from((False, False, False, True))):
        at = draw(st.integers(4, len(frame) - 1))
        noise = draw(st.one_of(st.binary(min_size=1, max_size=5), st.just(b"\x7f\xff\xff\xff")))
        frame = frame[:at] + noise + frame[at + draw(st.integers(0, 5)) :]
    return frame, version


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
        with tempfile.TemporaryDirectory() as directory:
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


def check_log(node: MemoryNode, topic: str) -> None:
    """What is on the disk is what was answered, and every batch of it is whole."""
    partition = node.replicas.partition(topic, 0)
    log = partition.log
    data = b"".join(each.read_bytes() for each in sorted(log.directory.glob("*.log")))
    end = 0
    for position, header in iterate_batches(data):
        check_crc(header, data, position)
        assert header.base_offset == end
        assert header.partition_leader_epoch == 3
        end = header.next_offset
    assert end == log.log_end_offset == partition.high_watermark
    states = {state.producer_id: state for state in log.producers.states}
    again = Log.open(log.directory, log.config, clock=lambda: NOW_MS)
    assert (again.log_end_offset, [each.truncated_bytes for each in again.recoveries if each.truncated_bytes]) == (end, [])
    assert {state.producer_id: state for state in again.producers.states} == states
    again.close()


def answered(node: MemoryNode, frame: bytes) -> bool:
    try:
        answer = node.answer(frame)
    except (Refused, MalformedError):
        return False
    return answer is None or len(answer) >= 4


@settings(max_examples=150, deadline=None)
@given(st.lists(requests(), min_size=1, max_size=6))
def test_whatever_is_produced_the_log_stays_whole_and_takes_the_next_good_batch(
    frames: list[tuple[bytes, int]],
) -> None:
    with quiet_node() as node:
        for frame, _ in frames:
            answered(node, frame)
        for topic in TOPICS:
            produce_good(node, topic)
            check_log(node, topic)


@pytest.mark.parametrize("codec", [each for each in Compression if each is not Compression.NONE])
@pytest.mark.parametrize("topic", ["compacted", "recompressed", "stamped", "plain"])
def test_a_bomb_is_refused_without_being_unpacked(codec: Compression, topic: str) -> None:
    """Half a gigabyte of zeros, or as much as a request can hold."""
    payload = compress(codec, bytes(64 << 20))
    payload = payload * min(8, max(1, MAX_REQUEST_BYTES // len(payload)))
    bomb = bytearray(good_batch()[:HEADER_SIZE] + payload)
    struct.pack_into(">h", bomb, ATTRIBUTES_POSITION, codec)
    for count in (1, 2**31 - 1):
        struct.pack_into(">i", bomb, FIELDS["records count"][0], count)
        struct.pack_into(">i", bomb, FIELDS["last offset delta"][0], count - 1)
        repair(bomb, length=True)
        rows = [ProduceRequest.PartitionProduceData(index=0, records=bytes(bomb))]
        topics = [ProduceRequest.TopicProduceData(name=topic, topic_id=IDS[topic], partition_data=rows)]
        with quiet_node() as node:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            assert answered(node, encoded(ProduceRequest(acks=-1, timeout_ms=50, topic_data=topics), 13))
            grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            assert grown_kb < 300_000, f"{grown_kb} kB"
            produce_good(node, topic)
            check_log(node, topic)
