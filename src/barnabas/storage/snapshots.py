"""Snapshots of the metadata log: all records of an image, as batches in one file that never changes again.

Its one rule: a file with the name of a snapshot is complete. It is written under another name (`.part`), made durable
and read-only, and renamed. It starts with a control batch that has the timestamp of the last record in the image and,
with kraft.version 1, the voters. It ends with another control batch. Offsets count from zero.

Records are passed as the bytes of their values; this module does not interpret them. Whoever replaces the log by a
snapshot deletes the older ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from barnabas.batches import (
    BatchError,
    BatchHeader,
    ControlType,
    Record,
    build_batch,
    build_control_batch,
    check_crc,
    decode_control_key,
    decode_records,
)
from barnabas.batches.format import HEADER_SIZE, Buffer
from barnabas.batches.varint import encode_varint
from barnabas.storage.batch_file import WholeBatch, walk_whole
from barnabas.storage.errors import CorruptLogError, StorageError
from barnabas.storage.files import (
    FILE_MODE,
    File,
    change_mode,
    create_empty,
    delete_file,
    entries_of,
    exists,
    fsync_directory,
    rename,
)
from barnabas.wire import decode_record, encode
from barnabas.wire.errors import ErrorCode, KafkaError, MalformedError
from barnabas.wire.records.control import KRaftVersionRecord, SnapshotFooterRecord, SnapshotHeaderRecord, VotersRecord

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
SUFFIX = ".checkpoint"
PART_SUFFIX = ".checkpoint.part"
DELETED_SUFFIX = ".checkpoint.deleted"
MAX_BATCH_BYTES = 8 * 1024 * 1024

_PART_MODE = 0o600
_FROZEN_MODE = 0o400
_NAME = re.compile(r"(\d{20})-(\d{10})(?:-\d+)?(\.checkpoint|\.checkpoint\.part|\.checkpoint\.deleted)")


class SnapshotId(NamedTuple):
    """The end offset (exclusive) of the records in a snapshot, and the epoch of the last one."""

    end_offset: int
    epoch: int

    def __str__(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}"


class RawSnapshotWriter:
    """Writes a snapshot received as bytes from a leader: append, then freeze. Closing it before that deletes it."""

    def __init__(self, path: Path, part_path: Path, part_mode: int = _PART_MODE, mode: int = _FROZEN_MODE) -> None:
        self.path = path
        self.size = 0
        self._mode = mode
        self._part = part_path
        create_empty(part_path, part_mode)
        self._file: File | None = File(part_path)

    @classmethod
    def create(cls, directory: Path, snapshot_id: SnapshotId) -> RawSnapshotWriter:
        """Create one in the directory of the metadata log."""
        parts = (directory / f"{snapshot_id}-{number}{PART_SUFFIX}" for number in count())
        return cls(snapshot_path(directory, snapshot_id), next(part for part in parts if not exists(part)))

    def append(self, data: Buffer) -> None:
        """Append the next bytes, which need not be whole batches."""
        if self._file is None:
            raise ValueError(f"{self.path} is complete")
        self._file.write((data,), self.size)
        self.size += len(data)

    def freeze(self) -> Path:
        """Complete the snapshot durably."""
        if self._file is None:
            raise ValueError(f"{self.path} is complete")
        self._file.fsync()
        self._file.let_go()
        self._file = None
        change_mode(self._part, self._mode)
        rename(self._part, self.path)
        fsync_directory(self.path.parent)
        return self.path

    def close(self) -> None:
        """Delete the file unless it was frozen."""
        if self._file is not None:
            self._file.unlink()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SnapshotWriter:
    """Writes a snapshot from records: append all of them, then freeze. At most one batch is in memory."""

    def __init__(
        self,
        raw: RawSnapshotWriter,
        epoch: int,
        clock: Callable[[], int],
        head: Sequence[tuple[ControlType, bytes]],
        max_batch_bytes: int = MAX_BATCH_BYTES,
    ) -> None:
        self._raw = raw
        self._epoch = epoch
        self._clock = clock
        self._max_batch_bytes = max_batch_bytes
        self._next_offset = 0
        self._values: list[bytes] = []
        self._batch_bytes = HEADER_SIZE
        self._timestamp = 0
        self._append_control(head)

    @classmethod
    def create(
        cls,
        directory: Path,
        snapshot_id: SnapshotId,
        clock: Callable[[], int],
        *,
        last_contained_log_timestamp: int,
        kraft_version: int = 0,
        voters: VotersRecord | None = None,
        max_batch_bytes: int = MAX_BATCH_BYTES,
    ) -> SnapshotWriter:
        """Create one in the directory of the metadata log.

        `clock` returns milliseconds; voters need kraft.version 1.
        """
        head = _head(last_contained_log_timestamp, kraft_version, voters)
        return cls(RawSnapshotWriter.create(directory, snapshot_id), snapshot_id.epoch, clock, head, max_batch_bytes)

    def append(self, values: Iterable[bytes]) -> None:
        """Add records. A batch is written when the next record does not fit into it."""
        for value in values:
            size = _record_size(value, len(self._values))
            if self._batch_bytes + size > self._max_batch_bytes:
                self._write_batch()
                size = _record_size(value, 0)
                if HEADER_SIZE + size > self._max_batch_bytes:
                    message = f"a record of {len(value)} bytes is larger than a batch of {self._max_batch_bytes}"
                    raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, message)
            if not self._values:
                self._timestamp = self._clock()
            self._values.append(value)
            self._batch_bytes += size

    def freeze(self) -> Path:
        """Complete the snapshot durably."""
        self._write_batch()
        self._append_control([(ControlType.SNAPSHOT_FOOTER, encode(SnapshotFooterRecord(), 0))])
        return self._raw.freeze()

    def close(self) -> None:
        """Delete the file unless it was frozen."""
        self._raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_batch(self) -> None:
        if self._values:
            timestamp = self._timestamp
            records = (Record(0, timestamp, None, value) for value in self._values)
            self._raw.append(build_batch(records, base_offset=self._next_offset, partition_leader_epoch=self._epoch))
            self._next_offset += len(self._values)
            self._values = []
            self._batch_bytes = HEADER_SIZE

    def _append_control(self, controls: Sequence[tuple[ControlType, bytes]]) -> None:
        self._raw.append(
            build_control_batch(
                controls,
                timestamp=self._clock(),
                base_offset=self._next_offset,
                partition_leader_epoch=self._epoch,
            )
        )
        self._next_offset += len(controls)


class SnapshotReader:
    """Reads an existing snapshot: its first batch at once, its records on demand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last_contained_log_timestamp = 0
        self.kraft_version = 0
        self.voters: VotersRecord | None = None
        self._file = File(path, writable=False)
        self.size = self._file.size()
        try:
            self._read_head()
        except BaseException:
            self.close()
            raise

    def read(self, position: int, max_bytes: int) -> bytes:
        """Return bytes of the file, as a follower fetches them."""
        return self._file.read(max_bytes, position)

    def batches(self) -> Iterator[tuple[BatchHeader, list[Record]]]:
        """Yield the batches of records, without control batches.

        Raises CorruptLogError if the file is damaged or incomplete.
        """
        ended = False
        for position, header, records in self._all():
            if ended:
                raise CorruptLogError(self.path, position, "there is data after the end of the snapshot")
            if not header.is_control:
                yield header, records
            ended = header.is_control and _is_footer(records)
        if not ended:
            raise CorruptLogError(self.path, self.size, "the snapshot has no footer", truncated=True)

    def values(self) -> Iterator[bytes]:
        """Yield the values of all records."""
        for _, records in self.batches():
            for record in records:
                yield record.value or b""

    def verify(self) -> None:
        """Check all batches and the footer, without decoding records. Raises CorruptLogError."""
        last: WholeBatch | None = None
        for last in walk_whole(self._file, 0, self.size):
            try:
                check_crc(last.header, last.data, last.start)
            except BatchError as error:
                raise CorruptLogError(self.path, last.position, str(error)) from error
        assert last is not None, "the head was read"
        try:
            records = decode_records(last.data, last.start, last.header) if last.header.is_control else []
        except BatchError as error:
            raise CorruptLogError(self.path, last.position, str(error)) from error
        if not _is_footer(records):
            raise CorruptLogError(self.path, self.size, "the snapshot has no footer", truncated=True)

    def close(self) -> None:
        self._file.let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read_head(self) -> None:
        first = next(self._all(), None)
        if first is None or not first[1].is_control:
            raise CorruptLogError(self.path, 0, "a snapshot begins with a control batch")
        records = first[2]
        if not records or _control_type(records[0]) is not ControlType.SNAPSHOT_HEADER:
            raise CorruptLogError(self.path, 0, "a snapshot begins with a snapshot header")
        try:
            for record in records:
                value = record.value or b""
                match _control_type(record):
                    case ControlType.SNAPSHOT_HEADER:
                        header: SnapshotHeaderRecord = decode_record(value, SnapshotHeaderRecord).record
                        self.last_contained_log_timestamp = header.last_contained_log_timestamp
                    case ControlType.KRAFT_VERSION:
                        self.kraft_version = decode_record(value, KRaftVersionRecord).record.k_raft_version
                    case ControlType.KRAFT_VOTERS:
                        self.voters = decode_record(value, VotersRecord).record
        except MalformedError as error:
            raise CorruptLogError(self.path, 0, str(error)) from error

    def _all(self) -> Iterator[tuple[int, BatchHeader, list[Record]]]:
        for batch in walk_whole(self._file, 0, self.size):
            try:
                check_crc(batch.header, batch.data, batch.start)
                records = decode_records(batch.data, batch.start, batch.header)
            except BatchError as error:
                raise CorruptLogError(self.path, batch.position, str(error)) from error
            yield batch.position, batch.header, records


def snapshot_path(directory: Path, snapshot_id: SnapshotId) -> Path:
    return directory / f"{snapshot_id}{SUFFIX}"


def parse_snapshot_name(name: str) -> SnapshotId | None:
    """Return the id of a complete snapshot with this file name, or None."""
    match = _NAME.fullmatch(name)
    return SnapshotId(int(match[1]), int(match[2])) if match and name == f"{match[1]}-{match[2]}{SUFFIX}" else None


def list_snapshots(directory: Path) -> list[SnapshotId]:
    """Return the complete snapshots of a directory, oldest first."""
    return sorted(found for entry in entries_of(directory) if (found := parse_snapshot_name(entry.name)))


def delete_snapshot(directory: Path, snapshot_id: SnapshotId) -> None:
    """Delete a snapshot. It is renamed first, so that it is gone even after a crash; open readers may continue."""
    path = snapshot_path(directory, snapshot_id)
    marked = path.with_name(f"{snapshot_id}{DELETED_SUFFIX}")
    if exists(path):
        rename(path, marked)
    delete_file(marked)


def clean_snapshots(directory: Path, log_start_offset: int) -> list[SnapshotId]:
    """Delete incomplete snapshots and those before the start of the log. Return the remaining ones.

    A log that does not start at zero needs a snapshot of what is before it. Without one, this raises StorageError and
    deletes nothing.
    """
    remaining = [found for found in list_snapshots(directory) if found.end_offset >= log_start_offset]
    if log_start_offset > 0 and not remaining:
        raise StorageError(
            f"the log in {directory} starts at offset {log_start_offset}, but no snapshot covers what is before it: "
            "copy one from another node, or empty the directory to fetch everything again"
        )
    for name, _ in entries_of(directory):
        if _NAME.fullmatch(name) and parse_snapshot_name(name) not in remaining:
            delete_file(directory / name)
    return remaining


def write_bootstrap(log_dir: Path, values: Iterable[bytes], clock: Callable[[], int]) -> Path:
    """Write `bootstrap.checkpoint`: the first records that the first leader of a cluster writes to its log."""
    path = log_dir / BOOTSTRAP_CHECKPOINT
    raw = RawSnapshotWriter(path, path.with_name(path.name + ".tmp"), FILE_MODE, FILE_MODE)
    with SnapshotWriter(raw, 0, clock, _head(last_contained_log_timestamp=0)) as writer:
        writer.append(values)
        return writer.freeze()


def _head(
    last_contained_log_timestamp: int, kraft_version: int = 0, voters: VotersRecord | None = None
) -> list[tuple[ControlType, bytes]]:
    """Return the control records at the start of a snapshot."""
    header = SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_log_timestamp)
    head = [(ControlType.SNAPSHOT_HEADER, encode(header, 0))]
    if kraft_version > 0:
        head.append((ControlType.KRAFT_VERSION, encode(KRaftVersionRecord(k_raft_version=kraft_version), 0)))
    if voters is not None:
        if kraft_version == 0:
            raise ValueError("a snapshot with kraft.version 0 has no voters")
        head.append((ControlType.KRAFT_VOTERS, encode(voters, 0)))
    return head


def _is_footer(records: Sequence[Record]) -> bool:
    return bool(records) and _control_type(records[-1]) is ControlType.SNAPSHOT_FOOTER


def _control_type(record: Record) -> ControlType:
    try:
        return decode_control_key(record.key)
    except BatchError:
        return ControlType.UNKNOWN


def _record_size(value: bytes, offset_delta: int) -> int:
    """Return the size of a record in a batch: without key and headers, with the timestamp of the batch."""
    body = 4 + len(encode_varint(offset_delta)) + len(encode_varint(len(value))) + len(value)
    return len(encode_varint(body)) + body
