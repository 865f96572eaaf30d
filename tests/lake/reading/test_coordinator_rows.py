"""Rows of the coordinators' logs without Spark: what is not known keeps its bytes, what is wrong says so."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas import wire
from barnabas.batches import Compression, Record, build_batch, build_end_txn_marker
from barnabas.lake.reading.coordinator_rows import LOGS, TYPES, read_rows
from barnabas.lake.reading.log_planning import plan
from barnabas.lake.reading.log_rows import LogReadError
from barnabas.lake.reading.options import OptionError
from barnabas.lake.sources import consumer_offsets, share_group_state, transaction_state
from barnabas.lake.sources.coordinator_reading import parse_options
from barnabas.wire.records.group import OffsetCommitKey, OffsetCommitValue

TOPIC = consumer_offsets.TOPIC
KEY = wire.encode_record(OffsetCommitKey(group="g", topic="t", partition=0), 0)
VALUE = wire.encode_record(OffsetCommitValue(offset=7), 4)


def write_log(directory: Path, *batches: bytes) -> Path:
    log = directory / f"{TOPIC}-0"
    log.mkdir()
    (log / f"{0:020d}.log").write_bytes(b"".join(batches))
    return log


def read(log: Path, *names: str, fail_fast: bool = False) -> list[dict[str, Any]]:
    schema = pa.schema([pa.field(name, TYPES[name]) for name in names])
    options = parse_options("kafka_consumer_offsets", TOPIC, {"path": str(log)})
    batches = [batch for task in plan(options) for batch in read_rows(task, schema, LOGS[TOPIC], fail_fast=fail_fast)]
    return [row for batch in batches for row in batch.to_pylist()]


def test_unknown_types_and_newer_versions_keep_their_bytes(tmp_path: Path) -> None:
    records = [Record(0, 5, b"\0\x63new", b"\0\0new"), Record(1, 5, KEY, b"\0\x63newer"), Record(2, -1, KEY, None)]
    rows = read(
        write_log(tmp_path, build_batch(records, compression=Compression.ZSTD)),
        *("record_type", "key_version", "record_version", "payload", "raw_key", "raw_value", "is_tombstone", "error"),
    )
    assert [tuple(row.values()) for row in rows] == [
        (None, 99, 0, None, b"\0\x63new", b"\0\0new", False, None),
        ("OffsetCommit", 1, 99, None, KEY, b"\0\x63newer", False, None),
        ("OffsetCommit", 1, None, None, KEY, None, True, None),
    ]


def test_a_record_that_is_not_what_it_says_has_its_place_and_the_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = write_log(tmp_path, build_batch([Record(0, 5, KEY, VALUE), Record(1, 5, KEY, VALUE[:-4])]))
    good, bad = read(log, "offset", "payload", "raw_value", "error")
    assert good["error"] is None and good["payload"] is not None
    assert (bad["offset"], bad["payload"], bad["raw_value"]) == (1, None, VALUE[:-4])
    assert "OffsetCommitValue v4" in bad["error"]
    with pytest.raises(LogReadError, match="at position 0, offset 1: OffsetCommitValue"):
        read(log, "offset", fail_fast=True)
    with caplog.at_level(logging.WARNING):
        assert len(read(log, "offset")) == 2
    assert "offset 1: OffsetCommitValue" in caplog.text


def test_a_marker_is_a_row_of_control(tmp_path: Path) -> None:
    batches = (
        build_batch(
            [Record(0, 5, KEY, VALUE)], producer_id=9, producer_epoch=1, base_sequence=0, is_transactional=True
        ),
        build_end_txn_marker(
            commit=False, producer_id=9, producer_epoch=1, coordinator_epoch=3, timestamp=6, base_offset=1
        ),
    )
    names = ("offset", "is_transactional", "is_control", "control_type", "record_type", "payload", "producer_id", "key")
    commit, marker = (tuple(row.values()) for row in read(write_log(tmp_path, *batches), *names))
    assert commit[:5] == (0, True, False, None, "OffsetCommit")
    assert marker == (1, True, True, "ABORT", "EndTxnMarker", '{"coordinatorEpoch":3}', 9, None)


def test_the_columns_of_all_sources_have_types(tmp_path: Path) -> None:
    sources = (consumer_offsets, transaction_state, share_group_state)
    names = {column.name for source in sources for column in (*source.COLUMNS, source.ERROR)}
    assert names == set(TYPES)


def test_options_that_mean_nothing_here_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="kafka_consumer_offsets has no option topics; known options are "):
        parse_options("kafka_consumer_offsets", TOPIC, {"path": str(tmp_path), "topics": "t"})
