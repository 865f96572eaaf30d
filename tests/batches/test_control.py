"""Control records: their keys, and the ends of transactions."""

from __future__ import annotations

import pytest

from barnabas.batches import (
    BatchError,
    ControlType,
    Record,
    build_end_txn_marker,
    decode_control_key,
    decode_end_txn_marker,
    decode_header,
    decode_records,
    encode_control_key,
)
from tests.batches.samples import NOW_MS


@pytest.mark.parametrize("number", range(7))
def test_a_key_is_a_version_and_a_type(number: int) -> None:
    assert encode_control_key(ControlType(number)) == bytes([0, 0, 0, number])
    assert decode_control_key(bytes([0, 0, 0, number])) is ControlType(number)


def test_later_versions_and_types_are_no_errors() -> None:
    assert decode_control_key(b"\x00\x05\x00\x01later") is ControlType.COMMIT
    for key in (b"\x00\x00\x00\x07", b"\x00\x00\x7f\xff", b"\x00\x00\xff\xff"):
        assert decode_control_key(key) is ControlType.UNKNOWN


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x00"])
def test_a_key_that_is_none_is_refused(key: bytes | None) -> None:
    with pytest.raises(BatchError):
        decode_control_key(key)


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_says_how_the_transaction_of_a_producer_ended(commit: bool) -> None:
    batch = build_end_txn_marker(commit=commit, producer_id=7, producer_epoch=2, coordinator_epoch=11, timestamp=NOW_MS)
    header = decode_header(batch)
    [record] = decode_records(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, -1)
    assert decode_end_txn_marker(record) == (ControlType.COMMIT if commit else ControlType.ABORT, 11)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\x00\x00\x00\x02", b"\x00\x00\x00\x00\x00\x01"),
        (b"\x00\x00\x00\x63", b"\x00\x00\x00\x00\x00\x01"),
        (b"\x00\x00\x00\x01", None),
        (b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00"),
        (b"\x00\x00\x00\x01", b"\xff\xff\x00\x00\x00\x01"),
    ],
)
def test_what_ends_no_transaction_is_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(BatchError):
        decode_end_txn_marker(Record(0, NOW_MS, key, value))


def test_a_marker_of_a_later_version_is_read_as_far_as_it_is_known() -> None:
    record = Record(0, NOW_MS, b"\x00\x00\x00\x00", b"\x00\x09\x00\x00\x00\x2alater")
    assert decode_end_txn_marker(record) == (ControlType.ABORT, 42)
