"""Records as rows: how large batches of them are, which columns they have, and what cannot be read."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest

from barnabas.batches import Record, build_batch
from barnabas.lake.reading import log_rows
from barnabas.lake.reading.log_planning import Bounds, Share
from barnabas.lake.reading.log_rows import LogReadError, read_rows
from tests.lake.reading.test_log_planning import START_MS, make_log, make_log_dir
from tests.lake.reading.test_log_reading import plan_shares

PLACE = [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return make_log_dir(tmp_path / "d")


def rows_of(shares: list[Share], schema: pa.Schema, **options: bool) -> list[dict[str, object]]:
    return [row for batch in read_rows(shares, schema, **options) for row in batch.to_pylist()]  # type: ignore[arg-type]


def test_what_was_removed_after_planning_is_a_row_or_a_warning_and_never_an_exception(
    log_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = make_log(log_dir, batches=4)
    shares = plan_shares(log_dir, maxPartitionBytes="1g")
    path = str(log.segments[0].log.path)
    log.truncate_fully_and_start_at(100)
    log.delete_files()

    [row] = rows_of(shares, pa.schema([*PLACE, ("segment", pa.string()), ("error", pa.string())]), fail_fast=True)

    assert row["error"] == "removed after planning: offsets 0 to 11 of t-0 (12): they were deleted"
    assert (row["topic"], row["partition"], row["offset"], row["segment"]) == ("t", 0, 0, path)
    with caplog.at_level(logging.WARNING):
        assert rows_of(shares, pa.schema(PLACE)) == []
    assert "offsets 0 to 11 of t-0" in caplog.text


def test_batches_of_rows_are_bounded_by_rows_and_bytes(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_log(log_dir, batches=20)
    shares = plan_shares(log_dir, maxPartitionBytes="1g")
    schema = pa.schema([("value", pa.binary()), ("offset", pa.int64())])

    for name, most in (("MAX_ROWS", 7), ("MAX_BYTES", 320)):
        with monkeypatch.context() as patch:
            patch.setattr(log_rows, name, most)
            batches = list(read_rows(shares, schema))
        assert max(len(batch) for batch in batches) <= 10
        assert [row["offset"] for batch in batches for row in batch.to_pylist()] == list(range(60))


def test_records_of_another_time_are_left_out(log_dir: Path) -> None:
    make_log(log_dir, batches=4)
    bounds = Bounds(start_timestamp=START_MS + 1001, end_timestamp=START_MS + 2001)

    batches = read_rows(plan_shares(log_dir, maxPartitionBytes="1g"), pa.schema(PLACE), bounds=bounds)

    assert [row["offset"] for batch in batches for row in batch.to_pylist()] == [4, 5, 6]


def test_a_time_beyond_what_a_column_can_say_is_the_last_it_can(log_dir: Path) -> None:
    log = make_log(log_dir, batches=0)
    log.append_as_leader(build_batch([Record(0, 2**62, None, None), Record(0, -1, None, None)]), 0)
    schema = pa.schema([("timestamp", pa.timestamp("us", "UTC"))])

    [batch] = read_rows(plan_shares(log_dir), schema)

    assert batch.column(0).cast(pa.int64()).to_pylist() == [(2**63 - 1) // 1000 * 1000, -1000]


def test_damage_is_an_exception_with_its_place_if_that_is_asked_for(log_dir: Path) -> None:
    log = make_log(log_dir, batches=2)
    path = log.segments[0].log.path
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    at = [position for position, _ in log.segments[0].headers()][1]

    with pytest.raises(LogReadError, match=f"{path} at position {at}, batch with offset 3: wrong checksum"):
        rows_of(plan_shares(log_dir), pa.schema(PLACE), fail_fast=True)
