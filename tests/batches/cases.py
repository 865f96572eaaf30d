"""Batches for a validator to judge, each with a name and the rules of its topic; printed for KafkaCases.java to read."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from barnabas.batches import (
    Compression,
    Record,
    batch_crc,
    build_batch,
    decode_header,
    decode_payload,
    encode_batch,
)
from tests.batches.samples import NOW_MS

DEFAULT_RULES = {
    "compacted": False,
    "timestamp_type": "CreateTime",
    "timestamp_before_max_ms": 2**63 - 1,
    "timestamp_after_max_ms": 3_600_000,
    "compression": "",
    "max_message_bytes": 1048588,
}
APPEND_TIME = "LogAppendTime"
APPEND_TIME_BIT = 8
BASE_OFFSET, LENGTH, MAGIC, CRC, ATTRIBUTES, LAST_OFFSET_DELTA, MAX_TIMESTAMP, RECORDS_COUNT = (
    0,
    8,
    16,
    17,
    21,
    23,
    35,
    57,
)


class Case(NamedTuple):
    name: str
    data: bytes
    rules: Mapping[str, Any] = MappingProxyType({})
    version: int = 9


def records(*timestamps: int, keyless: tuple[int, ...] = ()) -> list[Record]:
    return [
        Record(index, timestamp, None if index in keyless else b"k%d" % index, b"value %d" % index)
        for index, timestamp in enumerate(timestamps)
    ]


def put(batch: bytes, *changes: tuple[str, int, int], crc: bool = True) -> bytes:
    """The batch with fields changed, given as format, position and value, and with a checksum that is right again."""
    changed = bytearray(batch)
    for fmt, position, value in changes:
        struct.pack_into(">" + fmt, changed, position, value)
    if crc:
        struct.pack_into(">I", changed, CRC, batch_crc(changed, len(changed)))
    return bytes(changed)


GOOD = records(NOW_MS, NOW_MS - 5, NOW_MS + 3)
PLAIN = build_batch(GOOD)


def cases_of_codec(codec: Compression) -> Iterator[Case]:
    def batch(*timestamps: int, keyless: tuple[int, ...] = ()) -> bytes:
        return build_batch(records(*timestamps, keyless=keyless), compression=codec)

    good = build_batch(GOOD, compression=codec)
    append_time = ("h", ATTRIBUTES, codec | APPEND_TIME_BIT)
    swapped = decode_payload(PLAIN).replace(b"\x00\x09\x02\x04k1", b"\x00\x09\x04\x04k1")
    compacted = {"compacted": True}
    yield Case("good", good)
    yield Case("compacted", good, compacted)
    yield Case("append time", good, {"timestamp_type": APPEND_TIME})
    yield Case("wrong crc", put(good, ("I", CRC, 1), crc=False))
    yield Case("two without a key, compacted", batch(*[NOW_MS] * 3, keyless=(1, 2)), compacted)
    yield Case("five without a key, compacted", batch(*[NOW_MS] * 5, keyless=(0, 1, 2, 3, 4)), compacted)
    yield Case("two without a key", batch(*[NOW_MS] * 3, keyless=(1, 2)))
    yield Case("no key and a late one, compacted", batch(NOW_MS, NOW_MS + 10**7, NOW_MS, keyless=(0,)), compacted)
    yield Case("late", batch(NOW_MS, NOW_MS + 3_600_001))
    yield Case("just not late", batch(NOW_MS, NOW_MS + 3_600_000))
    yield Case("early", batch(NOW_MS, NOW_MS - 1001, NOW_MS - 1000), {"timestamp_before_max_ms": 1000})
    no_bounds = {"timestamp_before_max_ms": 0, "timestamp_after_max_ms": 0}
    yield Case("late, append time", batch(NOW_MS + 10**9, NOW_MS), {"timestamp_type": APPEND_TIME, **no_bounds})
    yield Case("no timestamps", batch(-1, -1), no_bounds)
    yield Case("client sets append time", put(good, append_time))
    yield Case("client sets append time, append time", put(good, append_time), {"timestamp_type": APPEND_TIME})
    yield Case("client sets append time to none", put(good, append_time, ("q", MAX_TIMESTAMP, -1)))
    yield Case("largest timestamp not set", put(good, ("q", MAX_TIMESTAMP, -1)))
    for count in (2, 4):
        changes = ("i", RECORDS_COUNT, count), ("i", LAST_OFFSET_DELTA, count - 1)
        yield Case(f"count {count} of 3, compacted", put(good, *changes), compacted)
    yield Case("offsets out of order, compacted", encode_batch(decode_header(PLAIN), swapped, codec), compacted)
    for target in Compression:
        if target is not codec:
            yield Case(f"to {target.name.lower()}", good, {"compression": target.name.lower()})
            yield Case(
                f"client sets append time, to {target.name.lower()}",
                put(good, append_time),
                {"compression": target.name.lower()},
            )


def cases_of_header() -> Iterator[Case]:
    for count in (2, 4):
        yield Case(f"count {count} of 3", put(PLAIN, ("i", RECORDS_COUNT, count), ("i", LAST_OFFSET_DELTA, count - 1)))
    for count in (-1, 0, 2):
        yield Case(f"count {count} with a last offset delta of 2", put(PLAIN, ("i", RECORDS_COUNT, count)))
    for delta in (-1, 5):
        yield Case(f"last offset delta {delta}", put(PLAIN, ("i", LAST_OFFSET_DELTA, delta)))
    moved, bad_crc = ("q", BASE_OFFSET, 1), ("I", CRC, 3)
    yield Case("base offset 1", put(PLAIN, moved, crc=False))
    yield Case("base offset 1, wrong crc", put(PLAIN, moved, bad_crc, crc=False))
    yield Case("base offset 1, too large", put(PLAIN, moved, crc=False), {"max_message_bytes": 70})
    yield Case("too large", PLAIN, {"max_message_bytes": len(PLAIN) - 1})
    yield Case("just not too large", PLAIN, {"max_message_bytes": len(PLAIN)})
    yield Case("too large, wrong crc", put(PLAIN, bad_crc, crc=False), {"max_message_bytes": 70})
    packed = build_batch([Record(0, NOW_MS, b"k", b"a" * 500)], compression=Compression.ZSTD)
    yield Case("too large once unpacked", packed, {"max_message_bytes": 200, "compression": "none"})
    for magic in (-1, 0, 1, 3, 127):
        yield Case(f"magic {magic}", put(PLAIN, ("b", MAGIC, magic), crc=False))
    for length in (-1, 0, 13, 48, len(PLAIN) - 11):
        yield Case(f"length {length} of {len(PLAIN) - 12}", put(PLAIN, ("i", LENGTH, length), crc=False))
    yield Case("control", build_batch(GOOD, is_control=True))
    yield Case("control, last offset delta 5", put(build_batch(GOOD, is_control=True), ("i", LAST_OFFSET_DELTA, 5)))
    producer = {"producer_id": 4, "producer_epoch": 0}
    yield Case("producer", build_batch(GOOD, **producer, base_sequence=0))  # type: ignore[arg-type]
    yield Case("producer without a sequence", build_batch(GOOD, **producer))  # type: ignore[arg-type]
    yield Case("sequence without a producer", build_batch(GOOD, base_sequence=5))
    transactional = build_batch(GOOD, **producer, base_sequence=7, is_transactional=True)  # type: ignore[arg-type]
    yield Case("transactional", transactional)
    yield Case("transactional, to zstd", transactional, {"compression": "zstd"})


def cases_of_request() -> Iterator[Case]:
    zstd = build_batch(GOOD, compression=Compression.ZSTD)
    bad_crc = ("I", CRC, 1)
    yield Case("two batches", PLAIN * 2)
    yield Case("two batches, the first with a wrong crc", put(PLAIN, bad_crc, crc=False) + PLAIN)
    yield Case("one batch and half of one", PLAIN + PLAIN[:40])
    yield Case("one batch and the beginning of one", PLAIN + PLAIN[:9])
    yield Case("one batch and ones", PLAIN + b"\xff" * 20)
    yield Case("one batch and zeros", PLAIN + bytes(20))
    for size in (0, 10, 100):
        yield Case(f"{size} zeros", bytes(size))
    yield Case("a byte missing", PLAIN[:-1])
    yield Case("half a header", PLAIN[:40])
    yield Case("zstd in version 6", zstd, version=6)
    yield Case("zstd in version 7", zstd, version=7)
    yield Case("zstd in version 6, wrong crc", put(zstd, bad_crc, crc=False), version=6)
    yield Case("two batches of zstd in version 6", zstd * 2, version=6)
    yield Case("a record longer than the batch", put(PLAIN, ("B", 61, 0x7E)))
    yield Case("a record of a negative length", put(PLAIN, ("B", 61, 0x01)))


def all_cases() -> Iterator[Case]:
    for codec in Compression:
        for case in cases_of_codec(codec):
            yield case._replace(name=f"{codec.name.lower()}, {case.name}")
    yield from cases_of_header()
    yield from cases_of_request()


if __name__ == "__main__":
    for case in all_cases():
        rules = json.dumps(dict(case.rules), separators=(",", ":"))
        print(case.name, case.version, rules, *({**DEFAULT_RULES, **case.rules}.values()), case.data.hex(), sep="\t")
