"""The stream over logs, driven as Spark drives it: how much at once, what is new, and logs that are not what they were."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows

from barnabas.batches import Record, build_batch
from barnabas.lake.reading.batch_arrays import Records
from barnabas.lake.reading.log_planning import Share
from barnabas.lake.reading.log_progress import DataLossError
from barnabas.lake.reading.log_reading import read_share
from barnabas.lake.reading.options import OptionError, parse_log_options
from barnabas.lake.sources.log_stream import LogStreamReader
from barnabas.storage import write_topic_id
from barnabas.wire.primitives import Uuid
from tests.lake.reading.test_log_planning import add_batch, make_log, make_log_dir
from tests.storage.compacting import append, end_transaction, open_compacted
from tests.storage.made import Clock

ALL = ReadAllAvailable()
FIRST_ID, SECOND_ID = Uuid.parse("yZpx8IkwSUm-bTxJFLsHWg"), Uuid.parse("jcRWXqC-RgugvYEx2qKmjw")


def read_places(shares: tuple[Share, ...]) -> Iterator[pa.RecordBatch]:
    for share in shares:
        for read in read_share(share):
            assert isinstance(read.item, Records), read.item
            yield pa.RecordBatch.from_pydict(
                {"topic": [str(share.place)] * len(read.item), "offset": read.item.offset.tolist()}
            )


def make_reader(log_dir: Path, **options: str) -> LogStreamReader:
    reader = LogStreamReader(parse_log_options("kafka_log", {"path": str(log_dir), **options}), read_places)
    return pickle.loads(pickle.dumps(reader))  # type: ignore[no-any-return]  # as Spark sends it


def through_json(offset: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(offset))  # type: ignore[no-any-return]


def rows_between(reader: LogStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[str, int]]:
    batches = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    return [(row["topic"], row["offset"]) for batch in batches for row in batch.to_pylist()]


def follow(
    reader: LogStreamReader, start: dict[str, Any], limit: ReadLimit = ALL
) -> Iterator[tuple[list[tuple[str, int]], dict[str, Any]]]:
    """Batches until nothing is new, each with the offset behind it."""
    while (end := through_json(reader.latestOffset(start, limit))) != start:
        yield rows_between(reader, start, end), end
        start = end


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return make_log_dir(tmp_path / "d")


def test_every_record_is_given_once_over_many_batches_and_restarts(log_dir: Path) -> None:
    logs = [make_log(log_dir, f"t-{number}", batches) for number, batches in ((0, 20), (1, 3))]
    start = through_json(make_reader(log_dir).initialOffset())
    found = []
    for number in range(4):
        for rows, end in follow(make_reader(log_dir), start, ReadMaxRows(12)):
            assert 0 < len(rows) <= 12
            found += rows
            start = end
        add_batch(logs[number % 2], number)

    assert sorted(found) == [(f"t-{n}", o) for n, end in ((0, 66), (1, 12)) for o in range(end)]
    assert start["made/t-0"] == {"cluster_id": "made", "offset": 66, "leader_epoch": 0}


def test_a_limit_of_bytes_is_kept_in_whole_batches_but_one_is_always_read(log_dir: Path) -> None:
    make_log(log_dir, batches=10)
    reader = make_reader(log_dir, maxBytesPerTrigger="600")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxBytes(600)
    assert make_reader(log_dir, maxRowsPerTrigger="5").getDefaultReadLimit() == ReadMaxRows(5)

    batches = [rows for rows, _ in follow(reader, reader.initialOffset(), limit)]
    assert [len(rows) for rows in batches] == [9, 9, 9, 3]
    tiny = [rows for rows, _ in follow(reader, reader.initialOffset(), ReadMaxBytes(1))]
    assert [len(rows) for rows in tiny] == [3] * 10


def test_available_now_ends_where_the_log_ended_when_it_began(log_dir: Path) -> None:
    log = make_log(log_dir, batches=4)
    reader = make_reader(log_dir)
    reader.prepareForTriggerAvailableNow()
    add_batch(log, 5)
    make_log(log_dir, "new-0", 2)

    found = [row for rows, _ in follow(reader, reader.initialOffset(), ReadMaxRows(6)) for row in rows]

    assert found == [("t-0", offset) for offset in range(12)]


def test_a_batch_that_is_run_again_has_the_same_records(log_dir: Path) -> None:
    log = make_log(log_dir, batches=4)
    reader = make_reader(log_dir)
    start = reader.initialOffset()
    end = through_json(reader.latestOffset(start, ReadMaxRows(7)))
    before = rows_between(reader, start, end)
    for number in range(30):
        add_batch(log, number)

    assert rows_between(make_reader(log_dir), start, end) == before == [("t-0", offset) for offset in range(6)]


def test_where_it_starts_is_said_by_options_and_a_new_partition_is_read_from_its_beginning(log_dir: Path) -> None:
    make_log(log_dir, batches=4)
    reader = make_reader(log_dir, startingOffsets="latest")
    start = reader.initialOffset()
    assert start["made/t-0"]["offset"] == 12
    make_log(log_dir, "t-1", 1)

    [(rows, _)] = follow(reader, start)

    assert rows == [("t-1", 0), ("t-1", 1), ("t-1", 2)]
    with pytest.raises(OptionError, match="ends at 12"):
        make_reader(log_dir, startingOffsets='{"t":{"0":99}}').initialOffset()


def test_a_stream_of_committed_records_waits_for_the_end_of_a_transaction(log_dir: Path) -> None:
    clock = Clock()
    log = open_compacted(log_dir / "t-0", clock)
    append(log, (b"k", b"v"))
    append(log, (b"k", b"v"), producer=(1, 0, 0), is_transactional=True)
    append(log, (b"k", b"v"))
    reader = make_reader(log_dir, isolation="read_committed")
    [(_, end)] = follow(reader, reader.initialOffset())
    assert end["made/t-0"]["offset"] == 1
    end_transaction(log, clock, 1, commit=False)

    assert reader.latestOffset(end, ALL)["made/t-0"]["offset"] == 4
    [part] = reader.partitions(end, reader.latestOffset(end, ALL))
    assert [share.aborted[0].producer_id for share in part.value] == [1]


# Logs that are not what they were


def lost(log_dir: Path, start: dict[str, Any]) -> str:
    """What the stream says that it lost, both when it looks for what is new and when a planned batch is read."""
    with pytest.raises(DataLossError) as error:
        make_reader(log_dir).latestOffset(start, ALL)
    assert "barnabas lake rebuild" in str(error.value) and "failOnDataLoss=false" in str(error.value)
    return str(error.value)


def test_a_topic_that_was_created_again_is_a_loss_and_then_read_from_its_beginning(log_dir: Path) -> None:
    log = make_log(log_dir, batches=4)
    write_topic_id(log_dir / "t-0", FIRST_ID)
    start = through_json(make_reader(log_dir).latestOffset(make_reader(log_dir).initialOffset(), ALL))
    log.delete()
    assert "made/t-0 does not exist any more; it was read up to offset 12" in lost(log_dir, start)
    make_log(log_dir, batches=9)
    write_topic_id(log_dir / "t-0", SECOND_ID)

    assert f"its id was {FIRST_ID} and is {SECOND_ID}" in lost(log_dir, start)
    [(rows, end)] = follow(make_reader(log_dir, failOnDataLoss="false"), start)
    assert rows == [("t-0", offset) for offset in range(27)]
    assert end["made/t-0"]["topic_id"] == str(SECOND_ID)


def test_a_log_that_was_truncated_is_a_loss(log_dir: Path) -> None:
    log = make_log(log_dir, batches=4)
    start = make_reader(log_dir).latestOffset({}, ALL)
    log.truncate_to(6)

    assert "read up to offset 12, and now ends at 6" in lost(log_dir, start)
    reader = make_reader(log_dir, failOnDataLoss="false")
    [(rows, end)] = follow(reader, start)
    assert rows == [] and end["made/t-0"]["offset"] == 6


def test_a_log_that_went_another_way_is_a_loss_and_is_read_from_where_it_did(log_dir: Path) -> None:
    log = make_log(log_dir, batches=4)
    start = make_reader(log_dir).latestOffset({}, ALL)
    log.truncate_to(6)
    for number in range(5):
        add_batch(log, number, epoch=3)

    assert "has leader epoch 3, not 0" in lost(log_dir, start)
    [(rows, _)] = follow(make_reader(log_dir, failOnDataLoss="false"), start)
    assert rows == [("t-0", offset) for offset in range(6, 21)]


def test_what_retention_deleted_before_it_was_read_is_a_loss(log_dir: Path) -> None:
    log = make_log(log_dir)
    reader = make_reader(log_dir)
    start = reader.latestOffset(reader.initialOffset(), ReadMaxRows(6))
    planned = reader.latestOffset(start, ALL)
    log.advance_log_start_offset(60)
    log.delete_old_segments()
    first = log.segments[0].base_offset

    assert f"offsets 6 to {first - 1} were deleted before they were read" in lost(log_dir, start)
    with pytest.raises(DataLossError, match="were deleted"):
        make_reader(log_dir).partitions(start, planned)
    rows = rows_between(make_reader(log_dir, failOnDataLoss="false"), start, planned)
    assert rows == [("t-0", offset) for offset in range(first, 120)]


def test_another_leader_that_goes_on_is_no_loss(log_dir: Path) -> None:
    log = make_log(log_dir, batches=4)
    start = make_reader(log_dir).latestOffset({}, ALL)
    log.append_as_leader(build_batch([Record(0, 0, None, b"v")]), 5)

    [(rows, end)] = follow(make_reader(log_dir), start)

    assert rows == [("t-0", 12)] and end["made/t-0"]["leader_epoch"] == 5
