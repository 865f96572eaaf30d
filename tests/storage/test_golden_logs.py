"""The logs that Apache Kafka left, opened, checked and written again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from barnabas.batches import BatchHeader, TimestampType, decode_records
from barnabas.storage import Log, read_offset_checkpoint, read_topic_id
from barnabas.storage.checkpoints import read_epoch_checkpoint
from barnabas.storage.offline import OfflineBatch, check_indexes, read_batches
from barnabas.storage.producer_snapshots import decode_producers, encode_producers
from barnabas.storage.producers import Producers
from tests.storage import golden
from tests.storage.made import Clock

# Kafka counts the bytes since the last index entry anew when it opens a segment, so the entries of one that was open during
# a restart lie elsewhere. This one was active when the node was stopped in the middle of it and started again.
OPEN_DURING_A_RESTART = "00000000000000002639"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Not to be written to."""
    return golden.extract_node(tmp_path_factory.mktemp("golden"))


@pytest.fixture
def own_node(tmp_path: Path) -> Path:
    return golden.extract_node(tmp_path)


def described(position: int, header: BatchHeader) -> dict[str, Any]:
    log_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    horizon = {} if header.delete_horizon_ms is None else {"delete_horizon": header.delete_horizon_ms}
    return horizon | {
        "position": position,
        "size": header.size_in_bytes,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.records_count,
        "leader_epoch": header.partition_leader_epoch,
        "magic": header.magic,
        "crc": header.crc,
        "valid": True,
        "codec": header.compression.name.lower(),
        "timestamp_type": "LogAppendTime" if log_append_time else "CreateTime",
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
    }


def open_golden(directory: Path, **options: Any) -> Log:
    return Log.open(directory, golden.config_of(directory), clock=Clock(), **options)


@pytest.mark.parametrize("clean_shutdown", [True, False])
def test_every_batch_of_the_metadata_log_is_where_kafka_says(own_node: Path, clean_shutdown: bool) -> None:
    log = open_golden(own_node / golden.METADATA, clean_shutdown=clean_shutdown)
    assert (log.log_start_offset, log.log_end_offset) == (0, 5244)
    expected = golden.metadata_batches()
    for segment in log.segments:
        found = expected[f"{golden.METADATA}/{segment.base_offset:020d}.log"]
        for (position, header), line in zip(segment.headers(), found, strict=True):
            assert {name: described(position, header)[name] for name in line if name != "records"} == {
                name: value for name, value in line.items() if name != "records"
            }
            data = segment.log.read(header.size_in_bytes, position)
            assert line["records"] == [
                [record.offset, record.timestamp, _size(record.key), _size(record.value)]
                for record in decode_records(data, 0, header)
            ]
    log.abandon()


def _size(field: bytes | None) -> int:
    return -1 if field is None else len(field)


def test_every_record_of_the_data_logs_is_what_kafka_says(own_node: Path) -> None:
    expected = golden.data_batches()
    seen = 0
    for directory in golden.log_directories(own_node):
        if directory.name == "__cluster_metadata-0":
            continue
        log = open_golden(directory, clean_shutdown=True)
        for segment in log.segments:
            lines = expected.get(f"{directory.parent.name}/{directory.name}/{segment.base_offset:020d}.log", [])
            for (position, header), line in zip(segment.headers(), lines, strict=True):
                seen += 1
                assert described(position, header) == {name: line[name] for name in line if name != "records"}
                records = decode_records(segment.log.read(header.size_in_bytes, position), 0, header)
                assert [
                    (
                        record.offset,
                        record.timestamp,
                        _hex(record.key),
                        _hex(record.value),
                    )
                    for record in records
                ] == [
                    (record["offset"], record["timestamp"], record["key"], record["value"])
                    for record in line["records"]
                ]
        log.abandon()
    assert seen == sum(map(len, expected.values()))


def _hex(field: bytes | None) -> str | None:
    return None if field is None else field.hex()


@pytest.mark.parametrize("clean_shutdown", [True, False])
def test_the_ends_of_all_logs_are_those_of_the_checkpoint(own_node: Path, clean_shutdown: bool) -> None:
    for log_dir in (own_node / "d0", own_node / "d1"):
        ends = read_offset_checkpoint(log_dir / "recovery-point-offset-checkpoint")
        starts = read_offset_checkpoint(log_dir / "log-start-offset-checkpoint")
        for partition, end in ends.items():
            directory = log_dir / str(partition)
            start = starts.get(partition, min(int(path.stem) for path in directory.glob("*.log")))
            log = open_golden(directory, clean_shutdown=clean_shutdown, log_start_offset=start)
            assert (log.log_end_offset, log.log_start_offset) == (end, start), partition
            assert not any(recovery.truncated_bytes for recovery in log.recoveries)
            assert read_topic_id(directory) is not None
            log.abandon()


def test_the_leader_epochs_of_the_metadata_log_are_those_of_its_batches(own_node: Path) -> None:
    directory = own_node / golden.METADATA
    checkpoint = directory / "leader-epoch-checkpoint"
    written = checkpoint.read_bytes()
    log = open_golden(directory)
    assert checkpoint.read_bytes() == written
    assert [tuple(entry) for entry in log.epochs.entries] == [
        (1, 0),
        (2, 931),
        (3, 956),
        (4, 2257),
        (5, 4555),
        (6, 5079),
    ]
    log.abandon()
    checkpoint.unlink()
    open_golden(directory, clean_shutdown=True).abandon()
    assert checkpoint.read_bytes() == written


def test_rebuilt_indexes_are_byte_for_byte_those_of_kafka(own_node: Path, node: Path) -> None:
    compared = 0
    for directory in golden.log_directories(own_node):
        for index in (*directory.glob("*.index"), *directory.glob("*.timeindex")):
            index.unlink()
        open_golden(directory, clean_shutdown=True).close()
        for index in (*directory.glob("*.index"), *directory.glob("*.timeindex")):
            if index.stem != OPEN_DURING_A_RESTART:
                theirs = node / index.relative_to(own_node)
                assert index.read_bytes() == theirs.read_bytes(), index
                compared += index.stat().st_size > 0
    assert compared >= 40


def test_opening_and_closing_leaves_kafkas_files_alone(own_node: Path, node: Path) -> None:
    ends = {}
    for directory in golden.log_directories(own_node):
        log = open_golden(directory, clean_shutdown=True, log_start_offset=golden.log_start_offset(directory))
        ends[directory] = log.log_end_offset
        log.close()
    for path in own_node.rglob("*"):
        if path.is_file():
            theirs = node / path.relative_to(own_node)
            if path.name == "leader-epoch-checkpoint":
                # Kafka too forgets, when it opens a log, the epochs that have no record yet.
                kept = [entry for entry in read_epoch_checkpoint(theirs) if entry.start_offset < ends[path.parent]]
                assert read_epoch_checkpoint(path) == kept
            else:
                assert path.read_bytes() == theirs.read_bytes(), path


def test_the_metadata_log_written_again_gives_the_same_files(node: Path, tmp_path: Path) -> None:
    theirs = open_golden(_copy(node / golden.METADATA, tmp_path / "theirs"), clean_shutdown=True)
    log = Log.open(tmp_path / "ours", golden.METADATA_CONFIG, clock=Clock())
    for header, data in theirs.batches():
        log.append_as_leader(bytes(data), header.partition_leader_epoch)
    log.close()
    for path in sorted((tmp_path / "ours").iterdir()):
        if path.stem != OPEN_DURING_A_RESTART or path.suffix in (".log", ".snapshot"):
            assert path.read_bytes() == (node / golden.METADATA / path.name).read_bytes(), path
    assert len(list((tmp_path / "ours").glob("*.log"))) == 4


def test_all_data_logs_written_again_give_the_same_files(node: Path, tmp_path: Path) -> None:
    written = 0
    for directory in golden.log_directories(node):
        # Compaction rewrote the segments of the one, and the other lost its first segment to retention.
        if directory.name in ("__cluster_metadata-0", "d-compact-0", "d-retention-0"):
            continue
        name = f"{directory.parent.name}-{directory.name}"
        theirs = open_golden(_copy(directory, tmp_path / name), clean_shutdown=True)
        log = Log.open(tmp_path / f"{name}-again", golden.DATA_CONFIG, clock=Clock())
        for _, data in theirs.batches():
            log.append_as_follower(data)
        log.close()
        for suffix in ("log", "index", "timeindex"):
            file = f"00000000000000000000.{suffix}"
            assert (log.directory / file).read_bytes() == (directory / file).read_bytes(), directory
        written += log.log_end_offset > 0
    assert written == 20


def test_kafkas_indexes_agree_with_its_logs(node: Path) -> None:
    for directory in golden.log_directories(node):
        for log in directory.glob("*.log"):
            assert list(check_indexes(directory, int(log.stem))) == []


def test_snapshots_are_read_batch_by_batch(node: Path) -> None:
    expected = golden.metadata_batches()
    snapshots = [name for name in expected if name.endswith(".checkpoint")]
    assert len(snapshots) == 4
    for name in snapshots:
        for item, line in zip(read_batches(node / name), expected[name], strict=True):
            assert isinstance(item, OfflineBatch)
            assert item.error is None
            assert (item.position, item.header.base_offset, item.header.crc) == (
                line["position"],
                line["base_offset"],
                line["crc"],
            )


def _copy(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    return target


def test_the_producers_that_kafka_wrote_down_are_written_again_as_they_were(node: Path) -> None:
    counts = []
    for path in sorted(node.rglob("*.snapshot")):
        states = decode_producers(path.read_bytes())
        assert encode_producers(states) == path.read_bytes()
        assert encode_producers(Producers(states).states) == path.read_bytes()
        counts.append(len(states))
    assert max(counts) > 3
    assert len(counts) > 20


@pytest.mark.parametrize("clean_shutdown", [True, False])
def test_snapshots_and_transaction_indexes_made_from_the_log_are_those_that_kafka_wrote(
    own_node: Path, node: Path, clean_shutdown: bool
) -> None:
    for directory in golden.log_directories(own_node):
        made_again = {".snapshot"} if clean_shutdown else {".snapshot", ".txnindex"}
        for path in directory.iterdir():
            if path.suffix in made_again:
                path.unlink()
        start = golden.log_start_offset(directory)
        open_golden(directory, clean_shutdown=clean_shutdown, log_start_offset=start).close()
        theirs = node / directory.relative_to(own_node)
        if directory.name != "__cluster_metadata-0":
            assert files_of_producers(directory) == files_of_producers(theirs), directory


def files_of_producers(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.suffix in (".snapshot", ".txnindex")}


def test_transactions_are_where_kafka_saw_them(own_node: Path) -> None:
    log = open_golden(own_node / "d0" / "d-txn-0", clean_shutdown=True)
    aborted = [(2000, 3), (1, 5), (1001, 13), (2001, 16)]
    assert log.last_stable_offset(18) == 18
    assert [found[:2] for found in log.aborted_transactions(0, 18)] == aborted
    # As it was before the last of them was aborted; what DescribeProducers and Fetch said then.
    log.truncate_to(17)
    assert log.last_stable_offset(17) == 16
    assert [found[:2] for found in log.aborted_transactions(0, 17)] == aborted[:3]
    assert [
        (
            state.producer_id,
            state.producer_epoch,
            state.last_sequence,
            state.last_timestamp,
            state.coordinator_epoch,
            state.current_txn_first_offset,
        )
        for state in log.active_producers()
    ] == [
        (2000, 0, 2, 1794771815197, 0, -1),
        (1, 0, 1, 1794771815462, 0, -1),
        (2001, 0, 0, 1794771816403, -1, 16),
        (1001, 0, 2, 1794771815696, 0, -1),
    ]
