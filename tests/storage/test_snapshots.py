"""Snapshots of the metadata log, read as Kafka wrote them and written as Kafka does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.batches import HEADER_SIZE, Compression, decode_header, encode_batch, iterate_batches
from barnabas.storage import (
    CorruptLogError,
    RawSnapshotWriter,
    SnapshotId,
    SnapshotReader,
    SnapshotWriter,
    StorageError,
    clean_snapshots,
    delete_snapshot,
    list_snapshots,
    snapshot_path,
    write_bootstrap,
)
from barnabas.wire import decode_record
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.control import VotersRecord
from tests.storage import golden
from tests.storage.made import Clock


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden.extract_node(tmp_path_factory.mktemp("golden"))


class ClockOf:
    """Gives, one after the other, the times at which the batches of a snapshot were made."""

    def __init__(self, data: bytes) -> None:
        self._times = iter([header.max_timestamp for _, header in iterate_batches(data)])

    def __call__(self) -> int:
        return next(self._times)


@pytest.mark.parametrize("snapshot_id", [SnapshotId(0, 0), SnapshotId(1568, 3), SnapshotId(3603, 4)])
def test_a_snapshot_written_again_has_the_same_bytes(node: Path, tmp_path: Path, snapshot_id: SnapshotId) -> None:
    theirs = snapshot_path(node / golden.METADATA, snapshot_id)
    with SnapshotReader(theirs) as reader:
        assert reader.kraft_version == 1
        assert reader.voters is not None
        with SnapshotWriter.create(
            tmp_path,
            snapshot_id,
            ClockOf(theirs.read_bytes()),
            last_contained_log_timestamp=reader.last_contained_log_timestamp,
            kraft_version=reader.kraft_version,
            voters=reader.voters,
        ) as writer:
            writer.append(reader.values())
            path = writer.freeze()
    assert path.name == theirs.name
    assert path.read_bytes() == theirs.read_bytes()
    assert path.stat().st_mode & 0o777 == theirs.stat().st_mode & 0o777 == 0o400
    assert [*tmp_path.iterdir()] == [path]


def test_a_bootstrap_checkpoint_written_again_has_the_same_bytes(node: Path, tmp_path: Path) -> None:
    theirs = node / "d0" / "bootstrap.checkpoint"
    with SnapshotReader(theirs) as reader:
        values = list(reader.values())
    assert [type(decode_record(value).record).__name__ for value in values] == [
        "FeatureLevelRecord",
        "UserScramCredentialRecord",
    ]
    path = write_bootstrap(tmp_path, values, ClockOf(theirs.read_bytes()))
    assert path.read_bytes() == theirs.read_bytes()
    assert path.stat().st_mode & 0o777 == theirs.stat().st_mode & 0o777
    assert [*tmp_path.iterdir()] == [path]


def test_every_record_of_a_snapshot_is_read(node: Path) -> None:
    expected = golden.metadata_batches()
    for snapshot_id in list_snapshots(node / golden.METADATA):
        path = snapshot_path(node / golden.METADATA, snapshot_id)
        batches = [line for line in expected[f"{golden.METADATA}/{path.name}"] if not line["control"]]
        with SnapshotReader(path) as reader:
            found = list(reader.batches())
            assert [header.base_offset for header, _ in found] == [line["base_offset"] for line in batches]
            assert [len(value) for value in reader.values()] == [
                record[3] for line in batches for record in line["records"]
            ]
            for value in reader.values():
                decode_record(value)


def test_records_are_cut_into_batches_that_fit(tmp_path: Path) -> None:
    given = [b"%d" % number * (number % 300) for number in range(2000)]
    writer = SnapshotWriter.create(
        tmp_path, SnapshotId(5, 2), Clock(), last_contained_log_timestamp=9, max_batch_bytes=10_000
    )
    most = 0

    def values() -> Iterator[bytes]:
        nonlocal most
        for value in given:
            most = max(most, sum(map(len, writer._values)))
            yield value

    writer.append(values())
    data = writer.freeze().read_bytes()
    headers = [header for _, header in iterate_batches(data)]
    assert most <= 10_000
    assert [header.is_control for header in headers] == [True, *[False] * (len(headers) - 2), True]
    offsets = [(header.base_offset, header.next_offset) for header in headers]
    assert [begin for begin, _ in offsets[1:]] == [end for _, end in offsets[:-1]]
    assert headers[-1].next_offset == 2002
    sizes = [header.size_in_bytes for header in headers[1:-1]]
    assert max(sizes) <= 10_000
    assert min(sizes[:-1]) > 10_000 - 2000
    with SnapshotReader(tmp_path / "00000000000000000005-0000000002.checkpoint") as reader:
        assert list(reader.values()) == given
        assert (reader.last_contained_log_timestamp, reader.kraft_version, reader.voters) == (9, 0, None)


def test_a_batch_is_filled_to_its_last_byte(tmp_path: Path) -> None:
    for limit in range(300, 340):
        with SnapshotWriter.create(
            tmp_path, SnapshotId(limit, 1), Clock(), last_contained_log_timestamp=0, max_batch_bytes=limit
        ) as writer:
            writer.append([b"x"] * 200)
            data = writer.freeze().read_bytes()
        sizes = [header.size_in_bytes for _, header in iterate_batches(data)][1:-2]
        assert all(limit - 8 <= size <= limit for size in sizes)


def test_a_record_that_fits_into_no_batch_is_refused(tmp_path: Path) -> None:
    with (
        SnapshotWriter.create(
            tmp_path, SnapshotId(1, 1), Clock(), last_contained_log_timestamp=0, max_batch_bytes=1000
        ) as writer,
        pytest.raises(KafkaError) as caught,
    ):
        writer.append([b"x" * 1000])
    assert caught.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert not list(tmp_path.iterdir())


def test_voters_need_kraft_version_1(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"kraft\.version 0"):
        SnapshotWriter.create(
            tmp_path, SnapshotId(1, 1), Clock(), last_contained_log_timestamp=0, voters=VotersRecord()
        )
    assert not list(tmp_path.iterdir())


def test_what_is_not_frozen_was_never_there(tmp_path: Path) -> None:
    with RawSnapshotWriter.create(tmp_path, SnapshotId(7, 1)) as writer:
        writer.append(b"half")
        assert list_snapshots(tmp_path) == []
        (part,) = tmp_path.iterdir()
        assert part.name.endswith(".checkpoint.part")
        assert part.stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.iterdir())


def test_a_snapshot_is_on_disk_before_it_has_its_name_and_then_the_name_is(tmp_path: Path, flushed: list[str]) -> None:
    with RawSnapshotWriter.create(tmp_path, SnapshotId(7, 1)) as writer:
        writer.append(b"whole")
        writer.freeze()
    assert flushed == ["00000000000000000007-0000000001-0.checkpoint.part", tmp_path.name]


def test_a_snapshot_is_copied_as_bytes(node: Path, tmp_path: Path) -> None:
    snapshot_id = SnapshotId(3603, 4)
    with (
        SnapshotReader(snapshot_path(node / golden.METADATA, snapshot_id)) as reader,
        RawSnapshotWriter.create(tmp_path, snapshot_id) as writer,
    ):
        while writer.size < reader.size:
            writer.append(reader.read(writer.size, 1000))
        writer.freeze()
        with pytest.raises(ValueError, match="complete"):
            writer.append(b"more")
    theirs = snapshot_path(node / golden.METADATA, snapshot_id)
    assert snapshot_path(tmp_path, snapshot_id).read_bytes() == theirs.read_bytes()


def test_a_snapshot_that_is_cut_or_damaged_anywhere_is_refused(node: Path, tmp_path: Path) -> None:
    whole = (node / "d0" / "bootstrap.checkpoint").read_bytes()
    path = tmp_path / "snapshot"

    def read() -> None:
        with SnapshotReader(path) as reader:
            list(reader.values())

    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptLogError):
            read()
    for position in range(len(whole)):
        start = max(at for at, _ in iterate_batches(whole) if at <= position)
        if position - start in range(8) or position - start in range(12, 16):
            continue  # offset and epoch are not under the checksum
        damaged = bytearray(whole)
        damaged[position] ^= 0x41
        path.write_bytes(damaged)
        with pytest.raises(CorruptLogError):
            read()
    path.write_bytes(whole + whole)
    with pytest.raises(CorruptLogError, match="after the end"):
        read()
    path.write_bytes(whole[decode_header(whole).size_in_bytes :])
    with pytest.raises(CorruptLogError, match="begins with"):
        read()


def test_snapshots_are_listed_and_deleted(tmp_path: Path) -> None:
    ids = [SnapshotId(0, 0), SnapshotId(5, 1), SnapshotId(5, 2), SnapshotId(100, 2)]
    for snapshot_id in reversed(ids):
        RawSnapshotWriter.create(tmp_path, snapshot_id).freeze()
    for name in ("x.checkpoint", "00000000000000000005.log", "00000000000000000005-0000000009.checkpoint.deleted"):
        (tmp_path / name).touch()
    assert list_snapshots(tmp_path) == ids
    delete_snapshot(tmp_path, ids[1])
    delete_snapshot(tmp_path, ids[1])
    assert list_snapshots(tmp_path) == [ids[0], *ids[2:]]


def test_what_a_kill_left_and_what_is_before_the_log_is_cleaned_up(tmp_path: Path) -> None:
    for snapshot_id in (SnapshotId(0, 0), SnapshotId(5, 1), SnapshotId(9, 1)):
        RawSnapshotWriter.create(tmp_path, snapshot_id).freeze()
    others = ["x.checkpoint", "00000000000000000005.log", "quorum-state"]
    left = [
        "00000000000000000009-0000000001-123456.checkpoint.part",
        "00000000000000000020-0000000001-0.checkpoint.part",
        "00000000000000000009-0000000001.checkpoint.deleted",
    ]
    for name in others + left:
        (tmp_path / name).touch()
    assert clean_snapshots(tmp_path, 5) == [SnapshotId(5, 1), SnapshotId(9, 1)]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [*others, "00000000000000000005-0000000001.checkpoint", "00000000000000000009-0000000001.checkpoint"]
    )
    with pytest.raises(StorageError, match="no snapshot covers what is before it"):
        clean_snapshots(tmp_path, 10)
    assert list_snapshots(tmp_path) == [SnapshotId(5, 1), SnapshotId(9, 1)]


@pytest.mark.parametrize("records_count", [0, 2])
def test_a_footer_that_cannot_be_is_damage_although_its_checksum_fits(tmp_path: Path, records_count: int) -> None:
    with SnapshotWriter.create(tmp_path, SnapshotId(3, 1), Clock(), last_contained_log_timestamp=0) as writer:
        path = writer.freeze()
    path.chmod(0o644)
    content = path.read_bytes()
    *_, (start, header) = iterate_batches(content)
    payload = content[start + HEADER_SIZE :] if records_count else b""
    broken = header._replace(records_count=records_count)
    path.write_bytes(content[:start] + encode_batch(broken, payload, Compression.NONE))
    with SnapshotReader(path) as reader:
        with pytest.raises(CorruptLogError):
            reader.verify()
        with pytest.raises(CorruptLogError):
            list(reader.values())
