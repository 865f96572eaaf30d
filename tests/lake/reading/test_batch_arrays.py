"""Batches into columns: the compiled way, the plain one and the reader of batches agree on everything, damaged or not."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.batches import (
    BatchError,
    Compression,
    Record,
    TimestampType,
    build_batch,
    decode_records,
    iterate_batches,
)
from barnabas.lake.reading import batch_arrays
from barnabas.lake.reading.batch_arrays import Bad, Records, read_batches, walk

texts = st.binary(max_size=40)
maybe_bytes = st.none() | texts
records = st.builds(
    Record,
    st.integers(0, 100),
    st.integers(-1, 2**41),
    maybe_bytes,
    maybe_bytes | st.just(b"v" * 70_000),
    st.lists(st.tuples(st.text(max_size=5), maybe_bytes), max_size=3).map(tuple),
)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Some batches, one after the other, of all codecs, with gaps as a compaction leaves them."""
    made = []
    offset = draw(st.integers(0, 2**40))
    for _ in range(draw(st.integers(0, 4))):
        some = draw(st.lists(records, min_size=1, max_size=6))
        numbered = []
        for record in some:
            numbered.append(record._replace(offset=offset))
            offset += draw(st.integers(1, 300))
        made.append(
            build_batch(
                numbered,
                keep_offsets=True,
                base_offset=numbered[0].offset,
                compression=draw(st.sampled_from(Compression)),
                timestamp_type=draw(st.sampled_from(TimestampType)),
                partition_leader_epoch=draw(st.integers(-1, 9)),
                producer_id=draw(st.integers(-1, 2**40)),
            )
        )
    return b"".join(made)


def rows(items: Sequence[Records | Bad]) -> list[tuple[object, ...]]:
    """What is in columns, as rows, with the place of the batch of each."""
    found: list[tuple[object, ...]] = []
    for item in items:
        if isinstance(item, Records):
            headers = item.headers()
            assert headers.type == batch_arrays.HEADERS_TYPE
            found += zip(
                item.offset.tolist(),
                item.timestamp.tolist(),
                item.keys().to_pylist(),
                item.values().to_pylist(),
                [None if each is None else [(h["key"], h["value"]) for h in each] for each in headers.to_pylist()],
                item.batches.positions[item.batch_of].tolist(),
                item.of_batch("producer_id").tolist(),
                strict=True,
            )
    return found


def places_of_bad(items: Sequence[Records | Bad]) -> list[tuple[int, int | None]]:
    return sorted((item.position, item.base_offset) for item in items if isinstance(item, Bad))


def read(data: bytes, *, plain: bool, check_crcs: bool = True) -> list[Records | Bad]:
    return list(read_batches(memoryview(data), 7, plain=plain, check_crcs=check_crcs))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs())
def test_both_ways_give_the_records_that_the_reader_of_batches_gives(data: bytes) -> None:
    expected = [
        (
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            [(key, value) for key, value in record.headers] or None,
            position + 7,
            header.producer_id,
        )
        for position, header in iterate_batches(data)
        for record in decode_records(data, position, header)
    ]

    assert rows(read(data, plain=True)) == expected
    assert rows(read(data, plain=False)) == expected


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs(), st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), min_size=1, max_size=4))
def test_both_ways_agree_on_bytes_that_are_wrong(data: bytes, faults: list[tuple[int, int]]) -> None:
    broken = bytearray(data)
    for at, flip in faults:
        if broken:
            broken[at % len(broken)] ^= flip

    for check_crcs in (True, False):
        plain = read(bytes(broken), plain=True, check_crcs=check_crcs)
        compiled = read(bytes(broken), plain=False, check_crcs=check_crcs)
        assert rows(plain) == rows(compiled)
        assert places_of_bad(plain) == places_of_bad(compiled)


def test_a_wrong_checksum_is_bad_and_the_next_batch_is_read() -> None:
    first = bytearray(build_batch([Record(0, 0, None, b"first")], base_offset=0))
    first[-2] ^= 1
    second = build_batch([Record(1, 0, None, b"second")], base_offset=1)

    for plain in (True, False):
        bad, good = read(bytes(first) + second, plain=plain)
        assert isinstance(bad, Bad) and bad[:2] == (7, 0) and "checksum" in bad.reason
        assert rows([good])[0][3] == b"second"


def test_a_torn_tail_is_left_alone_and_garbage_is_not() -> None:
    whole = build_batch([Record(0, 0, None, b"v")], base_offset=0)

    assert walk(memoryview(whole + whole[:30])) == ([0], len(whole), None)
    assert walk(memoryview(whole + whole[:-1])) == ([0], len(whole), None)
    fault = walk(memoryview(whole + b"\x07" * 100)).fault
    assert fault is not None and "magic 7" in fault


def test_a_batch_that_opens_to_more_than_the_room_for_many_is_read_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_arrays, "CHUNK_BYTES", 1000)
    large = [Record(number, 0, None, bytes(900)) for number in range(9)]
    data = b"".join(
        build_batch(
            [record._replace(offset=base + record.offset) for record in large], base_offset=base, compression=codec
        )
        for base, codec in ((0, Compression.ZSTD), (9, Compression.LZ4), (18, Compression.GZIP), (27, Compression.NONE))
    )

    for plain in (True, False):
        assert [row[0] for row in rows(read(data, plain=plain))] == list(range(36))


def test_a_header_key_that_is_no_text_is_mended_as_java_does() -> None:
    key = b"\xff\xfe".decode("utf-8", "surrogateescape")
    data = build_batch([Record(0, 0, None, None, ((key, b"x"),))], base_offset=0)

    for plain in (True, False):
        assert rows(read(data, plain=plain))[0][4] == [("\ufffd\ufffd", b"x")]


def test_what_compaction_leaves_of_a_batch_is_no_record_and_not_bad() -> None:
    from barnabas.batches.spans import empty_batch

    [(_, header)] = iterate_batches(
        build_batch([Record(0, 0, None, b"v")], base_offset=0, producer_id=5, producer_epoch=0, base_sequence=0)
    )

    for plain in (True, False):
        assert read(empty_batch(header), plain=plain) == []


def test_only_batches_with_offsets_in_the_range_are_opened() -> None:
    data = b"".join(build_batch([Record(n, 0, None, b"v")], base_offset=n) for n in range(5))

    found = list(read_batches(memoryview(data), start=2, end=4, plain=True))

    assert [row[0] for row in rows(found)] == [2, 3]


def test_columns_are_plain_arrow_types() -> None:
    [item] = read(build_batch([Record(0, 0, b"k", b"v", (("h", None),))], base_offset=0), plain=False)
    assert isinstance(item, Records)
    assert (item.keys().type, item.values().type) == (pa.binary(), pa.binary())
    with pytest.raises(BatchError):
        decode_records(b"x" * 61)
