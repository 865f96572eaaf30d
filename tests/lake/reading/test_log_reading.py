"""Pieces of logs that change after they were planned: what stays is read once, what is gone is said, damage is passed by."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.batches import Record, build_batch
from barnabas.lake.reading import log_reading
from barnabas.lake.reading.batch_arrays import Bad, Records
from barnabas.lake.reading.log_planning import Share, plan
from barnabas.lake.reading.log_reading import Read, Removed, read_share
from barnabas.lake.reading.options import parse_log_options
from barnabas.storage import LogConfig, write_topic_id
from barnabas.wire.primitives import Uuid
from tests.lake.reading.test_log_planning import add_batch, make_log, make_log_dir
from tests.storage.compacting import CONFIG as COMPACTED
from tests.storage.compacting import append, clean_all, open_compacted, seen
from tests.storage.made import Clock


def plan_shares(log_dir: Path, **options: str) -> list[Share]:
    given = {"path": str(log_dir), "maxPartitionBytes": "600", **options}
    return [share for task in plan(parse_log_options("kafka_log", given)) for share in task]


def read_all(shares: list[Share], between: Callable[[], object] = lambda: None) -> list[Read]:
    found: list[Read] = []
    for share in shares:
        found += read_share(share)
        between()
    return found


def offsets_of(reads: list[Read]) -> list[int]:
    return [offset for read in reads if isinstance(read.item, Records) for offset in read.item.offset.tolist()]


def faults_of(reads: list[Read]) -> list[Bad | Removed]:
    return [read.item for read in reads if isinstance(read.item, Bad | Removed)]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return make_log_dir(tmp_path / "d")


def test_what_is_written_and_rolled_after_planning_is_left_for_later(log_dir: Path) -> None:
    log = make_log(log_dir, batches=5)
    shares = plan_shares(log_dir)
    numbers = iter(range(5, 100))

    def write() -> None:
        add_batch(log, next(numbers))
        log.roll()

    reads = read_all(shares, write)

    assert offsets_of(reads) == list(range(15)) and faults_of(reads) == []


def test_a_segment_that_waits_to_be_deleted_is_read_and_one_that_is_gone_is_reported(log_dir: Path) -> None:
    log = make_log(log_dir)
    shares = plan_shares(log_dir)
    log.advance_log_start_offset(60)
    first = log.segments[0].base_offset
    log.delete_old_segments()
    start = log.segments[0].base_offset
    assert first < start <= 60

    assert offsets_of(read_all(shares)) == list(range(120))
    log.delete_files()
    reads = read_all(shares)
    assert offsets_of(reads) == list(range(start, 120))
    removed = faults_of(reads)
    assert all(isinstance(each, Removed) for each in removed)
    assert [number for each in removed for number in range(each.start, each.end)] == list(range(start))  # type: ignore[union-attr]


def test_after_a_compaction_what_is_left_is_read_once_and_the_rest_is_reported(log_dir: Path) -> None:
    clock = Clock()
    log = open_compacted(log_dir / "t-0", clock)
    for number in range(60):
        append(log, (b"%d" % (number % 7), b"v" * 40), (None if number % 2 else b"x", b"w"))
    shares = plan_shares(log_dir)
    begun = read_share(shares[0])
    first = next(begun)
    clean_all(log, clock)
    log.delete_files()

    rest = [*begun, *read_all(shares[1:])]
    left = seen(log)
    assert len(left) < 60
    found = offsets_of([first, *rest])
    assert len(found) == len(set(found))
    assert [offset for offset in found if offset >= shares[1].pieces[0].start_offset] == [
        offset for offset in left if offset >= shares[1].pieces[0].start_offset
    ]
    assert all(isinstance(each, Removed) and "compaction" in each.reason for each in faults_of(rest))
    assert faults_of(rest)


def test_a_log_that_was_truncated_and_written_again_is_read_as_it_is(log_dir: Path) -> None:
    log = make_log(log_dir, config=LogConfig(segment_bytes=1 << 20, index_interval_bytes=200))
    shares = plan_shares(log_dir)
    log.truncate_to(60)
    log.append_as_leader(build_batch([Record(0, 0, None, b"n" * 50_000)]), 1)

    reads = read_all(shares)

    found = offsets_of(reads)
    assert found == sorted(set(found)) and set(range(60)) <= set(found) <= set(range(61))
    assert any(isinstance(each, Removed) for each in faults_of(reads))


def test_a_topic_that_was_created_again_is_not_read_in_the_place_of_the_old_one(log_dir: Path) -> None:
    log = make_log(log_dir, batches=3)
    write_topic_id(log_dir / "t-0", Uuid.parse("yZpx8IkwSUm-bTxJFLsHWg"))
    shares = plan_shares(log_dir)
    log.delete()
    assert [each.reason for each in faults_of(read_all(shares))] == ["the directory does not exist any more"]
    make_log(log_dir, batches=3)
    write_topic_id(log_dir / "t-0", Uuid.parse("jcRWXqC-RgugvYEx2qKmjw"))

    reads = read_all(shares)

    assert offsets_of(reads) == []
    assert [each.reason for each in faults_of(reads)] == [
        "the directory now belongs to another topic, jcRWXqC-RgugvYEx2qKmjw"
    ]


@pytest.mark.parametrize("wrong", ["length", "magic", "records", "base offset", "lower base offset"])
def test_damage_is_reported_and_reading_goes_on_behind_it(log_dir: Path, wrong: str) -> None:
    log = make_log(log_dir, config=LogConfig(segment_bytes=1 << 20, index_interval_bytes=200))
    path = log.segments[0].log.path
    places = [position for position, _ in log.segments[0].headers()]
    data = bytearray(path.read_bytes())
    at = places[10]
    for place, value in {
        "length": ((at + 8, 0x7F),),
        "magic": ((at + 16, 9),),
        "records": ((at + 70, data[at + 70] ^ 1),),
        "base offset": ((at + 5, 1),),
        "lower base offset": ((at + 7, 1),),
    }[wrong]:
        data[place] = value
    path.write_bytes(data)

    for options in ({"maxPartitionBytes": "600"}, {"maxPartitionBytes": "1g"}):
        reads = read_all(plan_shares(log_dir, **options))
        found = offsets_of(reads)
        assert found == sorted(set(found)) and set(range(30)) | set(range(45, 120)) <= set(found)
        assert not set(range(30, 33)) & set(found)
        [bad] = faults_of(reads)
        assert isinstance(bad, Bad) and bad.position == at


def test_reading_is_bounded_by_a_chunk_and_a_batch_may_be_larger(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(log_dir, batches=10, config=LogConfig(segment_bytes=1 << 20, index_interval_bytes=200))
    log.append_as_leader(build_batch([Record(0, 0, None, b"n" * 50_000)]), 0)
    add_batch(log, 11)
    shares = plan_shares(log_dir, maxPartitionBytes="1g")
    monkeypatch.setattr(log_reading, "READ_BYTES", 500)

    assert offsets_of(read_all(shares)) == list(range(34))


def test_a_log_that_is_written_compacted_and_deleted_by_another_thread_gives_what_stays_once(log_dir: Path) -> None:
    clock = Clock()
    config = LogConfig(**{**{name: getattr(COMPACTED, name) for name in COMPACTED.__slots__}, "segment_bytes": 4000})
    log = open_compacted(log_dir / "t-0", clock, config)
    kept = {append(log, (b"kept-%d" % number, b"v" * 20)) for number in range(50)}
    stop = threading.Event()
    errors: list[BaseException] = []

    def churn() -> None:
        chance = random.Random(7)
        try:
            while not stop.is_set():
                for _ in range(30):
                    append(log, (b"%d" % chance.randrange(9), b"w" * chance.randrange(200)))
                clean_all(log, clock)
                log.delete_files()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(12):
            reads = read_all(plan_shares(log_dir, maxPartitionBytes="900"))
            found = offsets_of(reads)
            assert len(found) == len(set(found))
            assert kept <= set(found)
            assert all(isinstance(each, Removed) for each in faults_of(reads)), faults_of(reads)
    finally:
        stop.set()
        thread.join()
    assert errors == []


def test_a_file_is_known_by_its_inode_and_its_size(log_dir: Path) -> None:
    make_log(log_dir, batches=2)
    [share] = plan_shares(log_dir)
    [piece] = share.pieces

    file = log_reading.open_planned(log_dir / "t-0", piece)
    assert file is not None
    file.close()
    other = piece._replace(segment=piece.segment._replace(inode=piece.segment.inode + 1))
    assert log_reading.open_planned(log_dir / "t-0", other) is None
