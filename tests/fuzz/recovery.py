"""Directories with damaged files: everything before the damage is there, or an error names the file.

An input is which directory, how it was shut down, and changes to its files: a kind, a file, a position and an argument
each. The directories are a partition's log with transactions in several segments, a metadata log with snapshots, and the
small files of a log dir.
"""

from __future__ import annotations

import logging
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from barnabas import wire
from barnabas.batches import BatchError, Compression, Record, build_batch, iterate_batches
from barnabas.raft import records as raft_records
from barnabas.raft.log import OffsetAndEpoch
from barnabas.raft.stored_log import StoredLog, check_files
from barnabas.storage import (
    Log,
    LogConfig,
    OffsetOutOfRangeError,
    SnapshotId,
    SnapshotReader,
    SnapshotWriter,
    StorageError,
    TopicPartition,
    list_snapshots,
    read_offset_checkpoint,
    read_quorum_state,
    read_topic_id,
    snapshot_path,
    write_offset_checkpoint,
    write_quorum_state,
    write_topic_id,
)
from barnabas.storage.log_dirs import (
    MetaProperties,
    list_partitions,
    read_clean_shutdown_epoch,
    read_meta_properties,
    write_clean_shutdown,
    write_meta_properties,
)
from barnabas.storage.offline import check_indexes, read_partition
from barnabas.storage.segment import LOG_SUFFIX
from barnabas.wire import MalformedError, Uuid
from barnabas.wire.records.metadata import FeatureLevelRecord, TopicRecord
from barnabas.wire.records.raft import QuorumStateData
from tests.broker.test_fuzz_produce import repair
from tests.storage.looking import seen
from tests.storage.made import NOW_MS, SMALL, Clock, batch, produced, whole_log

IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # where flushing costs nothing
METADATA = LogConfig(segment_bytes=1000, index_interval_bytes=100, metadata=True)
CHANGE = struct.Struct(">BBHB")
MAX_CHANGES = 8
BOUNDARIES = (0, 1, 0x7F, 0x80, 0xFF)

Files = dict[str, bytes]


class Shutdown(NamedTuple):
    """How the directory was left, and how it is opened."""

    is_clean: bool
    is_read_only: bool
    recovery_point: int
    log_start_offset: int


# --- directories


@cache
def directories() -> tuple[Files, Files, Files]:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as where:
        root = Path(where)
        write_partition(root / "t-0")
        write_metadata(root / "m")
        write_log_dir(root / "d")
        return read_files(root / "t-0"), read_files(root / "m"), read_files(root / "d")


def write_partition(directory: Path) -> None:
    unverified = replace(SMALL, transaction_partition_verification_enable=False)
    log = Log.open(directory, unverified, clock=Clock())
    for number in range(12):
        epoch, codec = number // 3, list(Compression)[number % 5]
        log.append_as_leader(batch(b"v" * 40, b"w" * (number + 1), compression=codec), leader_epoch=epoch)
        written = produced(7, number, b"x" * 30)
        log.append_as_leader(written, leader_epoch=epoch)
        if number % 4 == 1:
            log.append_as_leader(produced(9, number // 4, b"in a transaction", transactional=True), leader_epoch=epoch)
        elif number % 4 == 3:
            log.append_marker(
                producer_id=9,
                producer_epoch=0,
                commit=number == 3,
                coordinator_epoch=1,
                leader_epoch=epoch,
                now_ms=NOW_MS,
                transaction_version=1,
            )
    write_topic_id(directory, Uuid(bytes([5]) * 16))
    log.close()


def write_metadata(directory: Path) -> None:
    log = StoredLog(directory, METADATA, Clock())
    for number in range(9):
        record = TopicRecord(name=f"t{number}", topic_id=Uuid(bytes([number + 1]) * 16))
        value = wire.encode_record(record, 0)
        log.append(
            build_batch([Record(0, NOW_MS, None, value)], base_offset=number, partition_leader_epoch=number // 4)
        )
    log.flush()
    write_quorum_state(directory, QuorumStateData(leader_id=1, leader_epoch=2, voted_id=1), 1)
    for end, epoch in ((3, 0), (6, 1)):
        with SnapshotWriter.create(
            directory, SnapshotId(end, epoch), clock=Clock(), last_contained_log_timestamp=NOW_MS, kraft_version=1
        ) as writer:
            writer.append(wire.encode_record(FeatureLevelRecord(name=f"f{n}", feature_level=n), 0) for n in range(4))
            writer.freeze()
    log.close()


def write_log_dir(directory: Path) -> None:
    directory.mkdir()
    write_meta_properties(directory, MetaProperties("Z29sZC1jbHVzdGVyLTAwMQ", 1, Uuid(bytes([3]) * 16)), NOW_MS)
    offsets = {TopicPartition("t", 0): 12, TopicPartition("with.dots", 3): 5}
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        write_offset_checkpoint(directory / name, offsets)
    write_clean_shutdown(directory, 17)


def read_files(directory: Path) -> Files:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir()) if path.is_file()}


# --- changes


def seeds() -> Iterator[bytes]:
    draw = Random("recovery")
    for which, files in enumerate(directories()):
        for how in (0, 1, 2, 4):
            for number in range(len(files)):
                for kind in range(len(KINDS)):
                    yield bytes((which, how)) + CHANGE.pack(kind, number, draw.randrange(1200), draw.randrange(256))


def check(data: bytes) -> None:
    if len(data) < 2:
        return
    which, how = data[0] % 3, data[1]
    files = directories()[which]
    changed = dict(files)
    for kind, number, position, argument in CHANGE.iter_unpack(changes_in(data[2:])):
        names = sorted(changed)
        if names:
            KINDS[kind % len(KINDS)](changed, names[number % len(names)], position, argument)
    directory = Path(tempfile.mkdtemp(dir=IN_MEMORY))
    try:
        for name, content in changed.items():
            (directory / name).write_bytes(content)
        logging.disable(logging.WARNING)  # about the damage
        CHECKS[which](directory, files, changed, how)
    finally:
        logging.disable(logging.NOTSET)
        shutil.rmtree(directory)


def changes_in(data: bytes) -> bytes:
    return data[: min(len(data) // CHANGE.size, MAX_CHANGES) * CHANGE.size]


def _flip(files: Files, name: str, position: int, argument: int) -> None:
    content = bytearray(files[name])
    if content:
        content[position % len(content)] ^= argument or 1
        files[name] = bytes(content)


def _fill(files: Files, name: str, position: int, argument: int) -> None:
    """Overwrite a few bytes with a boundary value."""
    content = bytearray(files[name])
    at = position % (len(content) + 1)
    content[at : at + argument // 8] = bytes([BOUNDARIES[argument % 5]]) * (argument // 8)
    files[name] = bytes(content)


def _cut(files: Files, name: str, position: int, argument: int) -> None:
    files[name] = files[name][: position % (len(files[name]) + 1)]


def _extend(files: Files, name: str, position: int, argument: int) -> None:
    files[name] += bytes([argument]) * (position % 300)


def _repeat(files: Files, name: str, position: int, argument: int) -> None:
    """Insert a piece of the file once more."""
    content = files[name]
    at = position % (len(content) + 1)
    files[name] = content[:at] + content[max(0, at - argument) :]


def _remove(files: Files, name: str, position: int, argument: int) -> None:
    del files[name]


def _rename(files: Files, name: str, position: int, argument: int) -> None:
    files[name + (".swap", ".cleaned", ".deleted")[argument % 3]] = files.pop(name)


def _swap(files: Files, name: str, position: int, argument: int) -> None:
    other = sorted(files)[argument % len(files)]
    files[name], files[other] = files[other], files[name]


def _refit(files: Files, name: str, position: int, argument: int) -> None:
    """Change a byte of a batch and give the batch a checksum that fits."""
    content = bytearray(files[name])
    with suppress(BatchError):
        for start, header in iterate_batches(bytes(content), tolerate_truncated=True):
            end = start + header.size_in_bytes
            if position % max(len(content), 1) < end:
                content[max(start, position % len(content))] = argument
                one = content[start:end]
                repair(one, length=False)
                content[start:end] = one
                break
    files[name] = bytes(content)


KINDS: tuple[Callable[[Files, str, int, int], None], ...] = (
    _flip,
    _fill,
    _cut,
    _extend,
    _repeat,
    _remove,
    _rename,
    _swap,
    _refit,
)


# --- what is promised


def check_partition(directory: Path, files: Files, changed: Files, how: int) -> None:
    shutdown = Shutdown(how & 1 > 0, how & 2 > 0, how >> 4, (0, 0, 0, 9)[how >> 2 & 3])
    check_offline(directory)
    options: dict[str, Any] = {"clean_shutdown": shutdown.is_clean, "log_start_offset": shutdown.log_start_offset}
    try:
        log = Log.open(
            directory,
            SMALL,
            clock=Clock(),
            recovery_point=shutdown.recovery_point,
            read_only=shutdown.is_read_only,
            **options,
        )
    except StorageError:
        return
    try:
        with suppress(wire.KafkaError, BatchError):
            seen(log)
        trusted = shutdown.is_clean or shutdown.recovery_point > 0
        if not trusted and not shutdown.is_read_only:
            check_recovered(log, files, changed, shutdown)
    finally:
        log.abandon()


def check_offline(directory: Path) -> None:
    """The same files, read without a node."""
    with suppress(StorageError):
        for _ in read_partition(directory):
            pass
        for path in directory.glob("*.log"):
            for _ in check_indexes(directory, int(path.stem)):
                pass


def check_recovered(log: Log, files: Files, changed: Files, shutdown: Shutdown) -> None:
    try:
        batches = whole_log(log)
    except OffsetOutOfRangeError:
        # Offsets are outside of the checksum: as in Kafka, a wrong one may be beyond the start of the next segment.
        assert logs_of(files) != logs_of(changed)
        return
    if shutdown.log_start_offset == 0 and not any(name.endswith((".swap", ".cleaned", ".deleted")) for name in changed):
        intact = intact_batches(files, changed)
        assert batches[: len(intact)] == intact, f"{len(batches)} batches are left, {len(intact)} were intact"
    end = log.log_end_offset
    try:
        info = log.append_as_leader(batch(b"after"), leader_epoch=log.epochs.latest_epoch or 0)
    except wire.KafkaError:
        return  # as at the last offset there is
    assert info.base_offset == end
    written = whole_log(log)
    assert len(written) == len(batches) + 1 and written[:-1] == batches
    log.close()
    again = Log.open(log.directory, SMALL, clock=Clock(), clean_shutdown=True, log_start_offset=log.log_start_offset)
    assert whole_log(again) == written, "another start finds another log"
    again.abandon()


def logs_of(files: Files) -> Files:
    return {name: content for name, content in files.items() if name.endswith(LOG_SUFFIX)}


def intact_batches(files: Files, changed: Files) -> list[bytes]:
    """The batches before the first byte that changed, in the order of the segments."""
    found: list[bytes] = []
    for name in sorted(name for name in {*files, *changed} if name.endswith(LOG_SUFFIX)):
        before, after = files.get(name, b""), changed.get(name, b"")
        same = next(
            (n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
        )
        for start, header in iterate_batches(before):
            if start + header.size_in_bytes > same:
                return found
            found.append(before[start : start + header.size_in_bytes])
        if before != after:
            return found
    return found


def check_metadata_log(directory: Path, files: Files, changed: Files, how: int) -> None:
    try:
        check_files(directory)
        log = StoredLog(directory, METADATA, Clock())
    except StorageError:
        return
    try:
        with suppress(StorageError, BatchError, MalformedError, wire.UnsupportedVersionError):
            raft_records.load(log)
            offset = log.start_offset
            while data := log.read(offset, 500):
                for _, header in iterate_batches(data):
                    offset = header.next_offset
        with suppress(StorageError):
            for found in list_snapshots(directory):
                with SnapshotReader(snapshot_path(directory, found)) as reader:
                    list(reader.values())
                log.open_snapshot(OffsetAndEpoch(found.end_offset, found.epoch))
    finally:
        log.close()


def check_log_dir(directory: Path, files: Files, changed: Files, how: int) -> None:
    reads: tuple[Callable[[Path], object], ...] = (
        read_meta_properties,
        read_clean_shutdown_epoch,
        list_partitions,
        read_topic_id,
        read_quorum_state,
        lambda path: read_offset_checkpoint(path / "recovery-point-offset-checkpoint"),
        lambda path: read_offset_checkpoint(path / "replication-offset-checkpoint"),
    )
    for read in reads:
        with suppress(StorageError):
            read(directory)


CHECKS = (check_partition, check_metadata_log, check_log_dir)
