"""Options, partitions and pieces: what is to be read of log directories, without reading it."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest

from barnabas.batches import Record, build_batch
from barnabas.lake.reading.batch_arrays import Records
from barnabas.lake.reading.log_planning import Bounds, LogPartition, find_partitions, pack, plan, split
from barnabas.lake.reading.log_reading import read_share
from barnabas.lake.reading.log_stable import stable_end
from barnabas.lake.reading.options import EARLIEST, LATEST, OffsetBounds, OptionError, parse_log_options
from barnabas.storage import Log, LogConfig, TopicPartition, write_offset_checkpoint, write_topic_id
from barnabas.storage.log_dirs import MetaProperties, write_meta_properties
from barnabas.wire.primitives import Uuid
from tests.storage.compacting import append, end_transaction, open_compacted
from tests.storage.made import Clock

CONFIG = LogConfig(segment_bytes=2000, index_interval_bytes=200)
START_MS = 1_700_000_000_000


def make_log_dir(path: Path, node_id: int = 1, cluster_id: str = "made") -> Path:
    path.mkdir()
    write_meta_properties(path, MetaProperties(cluster_id, node_id), START_MS)
    return path


def make_log(log_dir: Path, name: str = "t-0", batches: int = 40, epoch: int = 0, config: LogConfig = CONFIG) -> Log:
    """Batches of three records of 30 bytes, a second apart; several to a segment."""
    log = Log.open(log_dir / name, config, clock=Clock())
    for number in range(batches):
        add_batch(log, number, epoch)
    return log


def add_batch(log: Log, number: int, epoch: int = 0) -> None:
    time = START_MS + number * 1000
    log.append_as_leader(build_batch([Record(0, time + n, b"k", b"v" * 30) for n in range(3)]), epoch)


def only_partition(log_dir: Path, **options: str) -> LogPartition:
    [partition] = find_partitions(parse_log_options("kafka_log", {"path": str(log_dir), **options}))
    return partition


def planned_offsets(log_dir: Path, bounds: Bounds = Bounds(), **options: str) -> list[int]:  # noqa: B008
    tasks = plan(parse_log_options("kafka_log", {"path": str(log_dir), **options}), bounds)
    reads = [read for task in tasks for share in task for read in read_share(share, isolation=options.get("isolation"))]
    assert all(isinstance(read.item, Records) for read in reads), reads
    return [offset for read in reads for offset in read.item.offset.tolist()]  # type: ignore[union-attr]


# Options


def test_an_unknown_option_is_refused_with_the_names_of_those_that_are_known() -> None:
    with pytest.raises(OptionError, match=r"no option topic; known options are .*topicsPattern"):
        parse_log_options("kafka_log", {"path": "x", "topic": "t"})


def test_options_are_read_whatever_their_case() -> None:
    options = parse_log_options(
        "kafka_log",
        {
            "PATH": "a, b",
            "STARTINGOFFSETS": '{"t": {"0": 12, "1": -1}}',
            "endingoffsets": "7",
            "startingTimestamp": "",
            "endingTimestamp": "",
            "maxpartitionbytes": "2m",
            "partitions": "0,2",
            "mode": "failfast",
        },
    )

    assert options.paths == (Path("a"), Path("b"))
    assert [options.starting_offsets.of(*place) for place in (("t", 0), ("t", 1), ("t", 2))] == [12, LATEST, EARLIEST]
    assert options.ending_offsets == OffsetBounds(7)
    assert (options.max_partition_bytes, options.partitions, options.fail_fast) == (2 << 20, frozenset({0, 2}), True)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("startingOffsets", "soon", "earliest, latest, a number"),
        ("endingTimestamp", "yesterday", "milliseconds"),
        ("maxPartitionBytes", "0", "a size in bytes"),
        ("partitions", "0,x", "numbers"),
        ("topicsPattern", "(", "regular expression"),
        ("mode", "fast", "PERMISSIVE, FAILFAST"),
        ("isolation", "none", "read_committed, read_uncommitted"),
        ("failOnDataLoss", "maybe", "true, false"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_the_reason(name: str, value: str, reason: str) -> None:
    with pytest.raises(OptionError, match=f"{name} is .*, but must be .*{reason}"):
        parse_log_options("kafka_log", {"path": "x", name: value})


@pytest.mark.parametrize(
    "text", ["1700000000000", "2023-11-14T22:13:20Z", "2023-11-14T23:13:20+01:00", "2023-11-14 22:13:20"]
)
def test_a_time_is_in_milliseconds_or_iso_8601_and_utc_where_it_does_not_say(text: str) -> None:
    assert parse_log_options("kafka_log", {"path": "x", "startingTimestamp": text}).starting_timestamp == START_MS


def test_a_path_is_needed_and_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="needs a path"):
        parse_log_options("kafka_log", {})
    with pytest.raises(OptionError, match="does not exist"):
        plan(parse_log_options("kafka_log", {"path": str(tmp_path / "no")}))


def test_paths_may_be_a_list_of_json_have_stars_or_begin_with_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    paths = (tmp_path / "a", tmp_path / "b")
    for given in (
        {"paths": f'["{paths[0]}", "{paths[1]}"]'},
        {"path": f"{tmp_path}/*"},
        {"path": f"file://{paths[0]},{paths[1]}"},
    ):
        assert parse_log_options("kafka_log", given).paths == paths


# Partitions


def test_partitions_are_chosen_by_topic_pattern_and_number(tmp_path: Path) -> None:
    log_dir = make_log_dir(tmp_path / "d")
    for name in ("orders-0", "orders-1", "old-orders-0", "__cluster_metadata-0", "t-0.5f0a-delete"):
        make_log(log_dir, name, 1)

    def found(**options: str) -> list[str]:
        return [
            str(each.place)
            for each in find_partitions(parse_log_options("kafka_log", {"path": str(log_dir), **options}))
        ]

    assert found() == ["old-orders-0", "orders-0", "orders-1"]
    assert found(topics="orders") == ["orders-0", "orders-1"]
    assert found(topicsPattern=".*orders", partitions="0") == ["old-orders-0", "orders-0"]


def test_the_metadata_log_is_read_here_only_with_its_secrets(tmp_path: Path) -> None:
    log_dir = make_log_dir(tmp_path / "d")
    make_log(log_dir, "__cluster_metadata-0", 1)

    with pytest.raises(OptionError, match="kafka_metadata"):
        only_partition(log_dir / "__cluster_metadata-0")
    assert only_partition(log_dir / "__cluster_metadata-0", includeSecrets="true").end_offset == 3


def test_a_partitions_own_directory_says_whose_it_is_or_the_options_do(tmp_path: Path) -> None:
    log_dir = make_log_dir(tmp_path / "d", node_id=7)
    make_log(log_dir)
    topic_id = Uuid.parse("yZpx8IkwSUm-bTxJFLsHWg")
    write_topic_id(log_dir / "t-0", topic_id)

    place = only_partition(log_dir / "t-0").place
    assert (place.cluster_id, place.node_id, place.topic_id) == ("made", 7, str(topic_id))

    shutil.copytree(log_dir / "t-0", tmp_path / "t-0")
    assert only_partition(tmp_path / "t-0", clusterId="c", nodeId="3").place[:4] == ("c", 3, "t", 0)


def test_of_several_copies_the_one_of_the_latest_epoch_is_read_and_then_the_longest(tmp_path: Path) -> None:
    for node_id, (batches, epoch) in enumerate([(9, 0), (4, 1), (5, 1)]):
        make_log(make_log_dir(tmp_path / str(node_id), node_id), batches=batches, epoch=epoch)
    given = {"path": f"{tmp_path}/*"}

    assert [each.place.node_id for each in find_partitions(parse_log_options("kafka_log", given))] == [2]
    all_of_them = find_partitions(parse_log_options("kafka_log", {**given, "copies": "all"}))
    assert [each.place.node_id for each in all_of_them] == [0, 1, 2]


def test_a_torn_tail_is_not_part_of_the_log(tmp_path: Path) -> None:
    log_dir = make_log_dir(tmp_path / "d")
    log = make_log(log_dir, batches=3)
    with log.segments[-1].log.path.open("ab") as file:
        file.write(build_batch([Record(0, 0, None, b"half")], base_offset=9)[:-3])

    assert only_partition(log_dir).end_offset == 9
    assert planned_offsets(log_dir) == list(range(9))


# Pieces


def test_pieces_are_of_about_the_size_that_is_asked_for_and_hold_every_offset_once(tmp_path: Path) -> None:
    log_dir = make_log_dir(tmp_path / "d")
    log = make_log(log_dir, config=LogConfig(segment_bytes=1 << 20, index_interval_bytes=200))
    partition = only_partition(log_dir)

    pieces = split(partition, 0, log.log_end_offset, 700)

    assert len(pieces) > 5 and all(piece.size <= 700 + 400 for piece in pieces)
    ends = [piece.end_offset for piece in pieces]
    assert [piece.start_offset for piece in pieces] == [0, *ends[:-1]] and ends[-1] == log.log_end_offset
    assert planned_offsets(log_dir, maxPartitionBytes="700") == list(range(120))


def test_a_range_of_offsets_needs_only_the_bytes_around_it(tmp_path: Path) -> None:
    log_dir = make_log_dir(tmp_path / "d")
    make_log(log_dir)
    partition = only_partition(log_dir)

    [piece] = split(partition, 50, 52, 1 << 20)

    assert piece.size < 1000 and (piece.start_offset, piece.end_offset) == (50, 52)
    assert planned_offsets(log_dir, startingOffsets="50", endingOffsets="52") == [50, 51]
    assert planned_offsets(log_dir, Bounds(start_offset=50, end_offset=52)) == [50, 51]
    assert planned_offsets(log_dir, startingOffsets="latest") == []
    assert planned_offsets(log_dir, startingOffsets="1000") == []


@pytest.mark.parametrize("remove", [".index", ".timeindex", None])
def test_times_are_offsets_of_the_first_record_that_is_not_earlier(tmp_path: Path, remove: str | None) -> None:
    log_dir = make_log_dir(tmp_path / "d")
    make_log(log_dir)
    for path in (log_dir / "t-0").glob(f"*{remove}") if remove else ():
        path.unlink()

    found = planned_offsets(log_dir, startingTimestamp=str(START_MS + 5001), endingTimestamp=str(START_MS + 7000))
    assert found == [16, 17, 18, 19, 20]
    assert planned_offsets(log_dir, startingTimestamp=str(START_MS + 10**9)) == []
    assert planned_offsets(log_dir, endingTimestamp=str(START_MS - 1)) == []


def test_a_bound_of_time_prunes_what_an_index_knows_to_be_earlier(tmp_path: Path) -> None:
    log_dir = make_log_dir(tmp_path / "d")
    make_log(log_dir)
    options = parse_log_options("kafka_log", {"path": str(log_dir)})
    whole = sum(share.size for task in plan(options) for share in task)

    late = plan(options, Bounds(start_timestamp=START_MS + 38_000))

    assert sum(share.size for task in late for share in task) < whole / 4
    read = [o for task in late for share in task for r in read_share(share) for o in r.item.offset.tolist()]  # type: ignore[union-attr]
    assert set(range(114, 120)) <= set(read)


def test_an_index_that_lies_costs_time_and_no_record(tmp_path: Path) -> None:
    log_dir = make_log_dir(tmp_path / "d")
    make_log(log_dir)
    for path in (log_dir / "t-0").glob("*.index"):
        path.write_bytes(bytes(byte ^ 3 for byte in path.read_bytes()))

    assert planned_offsets(log_dir, maxPartitionBytes="500") == list(range(120))
    assert planned_offsets(log_dir, startingOffsets="77") == list(range(77, 120))


def test_small_pieces_are_read_by_one_task_and_tasks_pickle_small(tmp_path: Path) -> None:
    log_dir = make_log_dir(tmp_path / "d")
    for number in range(30):
        make_log(log_dir, f"t-{number}", 1)

    tasks = plan(parse_log_options("kafka_log", {"path": str(log_dir)}))

    assert [len(task) for task in tasks] == [15, 15]
    assert len(pickle.dumps(tasks[0])) < 400 * 15
    assert len(pack((share for task in tasks for share in task), 100)) == 30


def test_what_delete_records_deleted_is_read_only_without_isolation(tmp_path: Path) -> None:
    log_dir = make_log_dir(tmp_path / "d")
    make_log(log_dir, batches=4)
    write_offset_checkpoint(log_dir / "log-start-offset-checkpoint", {TopicPartition("t", 0): 5})

    assert planned_offsets(log_dir) == list(range(12))
    assert planned_offsets(log_dir, isolation="read_uncommitted") == list(range(5, 12))


def test_only_what_is_stable_and_was_not_aborted_is_committed(tmp_path: Path) -> None:
    log_dir = make_log_dir(tmp_path / "d")
    clock = Clock()
    log = open_compacted(log_dir / "t-0", clock)
    for producer_id, commit in ((1, True), (2, False), (3, None)):
        append(log, (b"k", b"%d" % producer_id), producer=(producer_id, 0, 0), is_transactional=True)
        append(log, (b"k", b"plain"))
        if commit is not None:
            end_transaction(log, clock, producer_id, commit=commit)

    assert planned_offsets(log_dir) == list(range(8))
    assert planned_offsets(log_dir, isolation="read_uncommitted") == [0, 1, 3, 4, 6, 7]
    assert planned_offsets(log_dir, isolation="read_committed") == [0, 1, 4]
    log.roll()  # which takes a snapshot of the producers
    append(log, (b"k", b"later"))
    assert planned_offsets(log_dir, isolation="read_committed") == [0, 1, 4]
    end_transaction(log, clock, 3, commit=False)
    assert planned_offsets(log_dir, isolation="read_committed") == [0, 1, 4, 7, 8]
    assert stable_end(only_partition(log_dir), "read_committed")[0] == log.last_stable_offset(log.log_end_offset)
