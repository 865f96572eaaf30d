"""Columns of metadata records are the same whether compiled code has written them or not."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.lake.reading import kernels
from barnabas.lake.reading.decoding import metadata_columns
from barnabas.lake.reading.decoding.metadata_columns import Columns, decode_columns, raw
from barnabas.lake.reading.decoding.metadata_records import KEY_COLUMNS, TYPES, classify
from barnabas.lake.reading.json_kernels import plan, write
from barnabas.wire import Message, Uuid, encode_record, message_class
from barnabas.wire.records.metadata import (
    AccessControlEntryRecord,
    ConfigRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from tests.lake.metadata_golden import values_of
from tests.lake.reading.decoding.test_metadata_records import fields

ALL = {*KEY_COLUMNS, "payload"}


def both(encoded: list[bytes], *, include_secrets: bool = False) -> tuple[Columns, Columns]:
    """By compiled code, which this test has loaded, and as in a process that has not."""
    assert kernels is not None
    values = values_of(encoded)
    types, versions = classify(values)
    compiled = decode_columns(values, types, versions, ALL, include_secrets=include_secrets)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata_columns, "sys", SimpleNamespace(modules={}))
        plain = decode_columns(values, types, versions, ALL, include_secrets=include_secrets)
        assert raw(values, plain.masked).equals(pa.array([plain.masked.get(n, e) for n, e in enumerate(encoded)]))
    assert raw(values, compiled.masked).equals(raw(values, plain.masked))
    return compiled, plain


@pytest.mark.parametrize("name", TYPES.values())
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_record_is_written_as_without_compiled_code(name: str, data: st.DataObject) -> None:
    cls = message_class(name)
    versions = cls.schema().versions
    version = data.draw(st.integers(versions.first, versions.last))
    records = data.draw(st.lists(fields(cls, cls.schema().root, version), min_size=1, max_size=4))
    compiled, plain = both([encode_record(record, version) for record in records])
    assert compiled == plain


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_damage_is_judged_as_without_compiled_code(data: st.DataObject) -> None:
    ids = [Uuid(bytes([each] * 16)) for each in range(2)]
    records: list[tuple[Any, int]] = [
        (PartitionChangeRecord(partition_id=1, topic_id=ids[0], isr=[1, 2, 3], leader=4, directories=ids), 2),
        (PartitionRecord(partition_id=-1, replicas=[1, -2], isr=[], directories=ids, eligible_leader_replicas=[]), 2),
        (AccessControlEntryRecord(id=ids[1], resource_type=2, resource_name="a", principal="User:b", host="*"), 0),
    ]
    record, version = data.draw(st.sampled_from(records))
    bad = bytearray(encode_record(record, version))
    for _ in range(data.draw(st.integers(1, 3))):
        bad[data.draw(st.integers(3, len(bad) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(3, len(bad)))
    good = encode_record(TopicRecord(name="orders"), 0)
    compiled, plain = both([good, bytes(bad[:cut]), bytes(bad), good])
    assert compiled == plain


def test_rows_of_all_kinds_stay_in_their_order_and_secrets_are_masked() -> None:
    source = random.Random(1)
    makers: list[Callable[[int], Message]] = [
        lambda number: TopicRecord(name=f"topic {number}", topic_id=Uuid(source.randbytes(16))),
        lambda number: TopicRecord(name=f'"\\é{number}'),
        lambda number: PartitionChangeRecord(partition_id=number, isr=list(range(number % 5)), leader=number % 3),
        lambda number: NoOpRecord(),
        lambda number: ConfigRecord(
            resource_type=4, resource_name="1", name="ssl.key.password", value=f"secret{number}"
        ),
        lambda number: UserScramCredentialRecord(name=f"user {number}", salt=b"secret", iterations=number),
    ]
    encoded = [encode_record(source.choice(makers)(number), 0) for number in range(2000)]
    compiled, plain = both([*encoded, b"\x01\x63\x00abc", b"", b"\x05"])
    assert compiled == plain
    assert "secret" not in "".join(filter(None, compiled.payload.to_pylist()))


def test_room_for_texts_grows() -> None:
    cls, count = PartitionChangeRecord, 3000
    value = encode_record(cls(partition_id=-(1 << 31), isr=[-(1 << 31)] * 60, leader=-(1 << 31)), 0)
    data = np.frombuffer(value * count, dtype=np.uint8)
    starts = np.arange(count, dtype=np.int64) * len(value)
    made = plan(cls, 0, [])
    assert made is not None
    texts = write(data, starts + 3, starts + len(value), np.zeros(count, dtype=np.int32), [made], 0)
    assert (
        len({texts.out[start : start + size].tobytes() for start, size in zip(texts.start, texts.size, strict=True)})
        == 1
    )
    assert texts.size.min() > 60 * 11
