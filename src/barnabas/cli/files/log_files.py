"""Log files as rows: recognizes the kind of a file by its name and reads its contents.

Its one rule: damage is a value. Rows are yielded up to the first damaged place; then a `Problem` says where and why. Nothing
is written or locked. `cli.terminal.output` formats rows, `operations.records.log_records` interprets records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.batches import BatchError, BatchHeader, Record, UnknownCompressionError, decode_records
from barnabas.cli.terminal.output import Column, columns, utc_time
from barnabas.config import properties
from barnabas.operations.records.log_records import Fields, LogKind, describe, describe_control, kind_of, show_bytes
from barnabas.storage.aborted import TransactionIndex
from barnabas.storage.checkpoints import read_epoch_checkpoint, read_offset_checkpoint
from barnabas.storage.errors import StorageError
from barnabas.storage.files import File
from barnabas.storage.loading import segment_offsets
from barnabas.storage.log_dirs import META_PROPERTIES, list_partitions
from barnabas.storage.offline import (
    Damage,
    OfflineBatch,
    end_offset_of,
    read_batches,
    read_offset_index,
    read_partition,
    read_time_index,
)
from barnabas.storage.partition_metadata import PARTITION_METADATA, read_topic_id
from barnabas.storage.producer_snapshots import CorruptSnapshotError, decode_producers
from barnabas.storage.quorum_state import QUORUM_STATE

Row = dict[str, Any]


class Problem(NamedTuple):
    """A problem in a file: its place and a description."""

    path: Path
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.where}: {self.what}" if self.where else f"{self.path}: {self.what}"


Item = Row | Problem
Chunk = Callable[[], Iterator[Item]]
CHUNK_BYTES = 1 << 18


class FileKind(Enum):
    """The kind of a file, by its name."""

    SEGMENT = "segment"
    SNAPSHOT = "snapshot"
    OFFSET_INDEX = "index"
    TIME_INDEX = "timeindex"
    TRANSACTION_INDEX = "txnindex"
    PRODUCERS = "producers"
    OFFSET_CHECKPOINT = "offset-checkpoint"
    EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
    META_PROPERTIES = "meta.properties"
    PARTITION_METADATA = "partition.metadata"
    QUORUM_STATE = "quorum-state"


_AFTER = r"(?:\.(?:deleted|cleaned|swap))?"
_NAMES = [
    (re.compile(rf"\d{{20}}\.log{_AFTER}"), FileKind.SEGMENT),
    (re.compile(rf"\d{{20}}\.index{_AFTER}"), FileKind.OFFSET_INDEX),
    (re.compile(rf"\d{{20}}\.timeindex{_AFTER}"), FileKind.TIME_INDEX),
    (re.compile(rf"\d{{20}}\.txnindex{_AFTER}"), FileKind.TRANSACTION_INDEX),
    (re.compile(rf"\d{{20}}\.snapshot{_AFTER}"), FileKind.PRODUCERS),
    (re.compile(r"(?:bootstrap|\d{20}-\d{10}(?:-\d+)?)\.checkpoint(?:\.part|\.deleted)?"), FileKind.SNAPSHOT),
    (re.compile(r"[a-z-]+-offset-checkpoint"), FileKind.OFFSET_CHECKPOINT),
    (re.compile("leader-epoch-checkpoint"), FileKind.EPOCH_CHECKPOINT),
    (re.compile(re.escape(META_PROPERTIES)), FileKind.META_PROPERTIES),
    (re.compile(re.escape(PARTITION_METADATA)), FileKind.PARTITION_METADATA),
    (re.compile(QUORUM_STATE), FileKind.QUORUM_STATE),
]


def file_kind(path: Path) -> FileKind | None:
    return next((kind for pattern, kind in _NAMES if pattern.fullmatch(path.name)), None)


class Wanted(NamedTuple):
    """The part of a log to show: offsets from `start` to before `end`, batches without records, keys without values."""

    start: int = 0
    end: int | None = None
    shallow: bool = False
    keys_only: bool = False
    kind: LogKind | None = None
    with_secrets: bool = False


EVERYTHING = Wanted()


class Section(NamedTuple):
    """A file, or a log of several files, as rows with the same columns."""

    path: Path
    kind: str
    columns: tuple[Column, ...]
    items: Iterator[Item]
    chunks: Iterator[Chunk] | None = None
    """Used instead of `items` for a log: its rows in chunks, each made when it is called."""


# --- sections --------------------------------------------------------------------------------------------------------


def sections(path: Path, wanted: Wanted) -> Iterator[Section]:
    """Yield the sections of a file, the log of a partition, or a log dir. Raises StorageError for any other path."""
    if not path.is_dir():
        yield open_file(path, wanted)
    elif (path / META_PROPERTIES).exists():
        for each in sorted(path.iterdir()):
            if each.is_file() and file_kind(each) is not None:
                yield open_file(each, wanted)
        yield Section(path, "logs", _LOG_COLUMNS, _logs(path))
    elif segment_offsets(path):
        items = (each for each in read_partition(path, wanted.start, wanted.end))
        yield _log_section(path, kind_of(path / "any.log"), items, wanted)
    else:
        names = [each for each in sorted(path.iterdir()) if each.is_file() and file_kind(each) is not None]
        if not names:
            raise StorageError(f"{path} has no log files")
        for each in names:
            yield open_file(each, wanted)


def open_file(path: Path, wanted: Wanted = EVERYTHING) -> Section:
    """Return the section of one file. The file is opened only when its rows are read."""
    kind = file_kind(path)
    if kind is None:
        raise StorageError(f"{path}: this is not the name of a log file; use --kind to name the kind of its records")
    if kind in (FileKind.SEGMENT, FileKind.SNAPSHOT):
        return _log_section(path, kind_of(path), read_batches(path), wanted)
    shown, read = _FILES[kind]
    return Section(path, kind.value, shown, read(path))


def open_as_log(path: Path, wanted: Wanted) -> Section:
    """Return the section of a file of batches, whatever its name."""
    return _log_section(path, LogKind.DATA, read_batches(path), wanted)


# --- logs ------------------------------------------------------------------------------------------------------------


_TIMESTAMP = Column("timestamp", show=utc_time)
_BATCH_COLUMNS = columns(
    "baseOffset",
    "lastOffset",
    Column("count"),
    Column("maxTimestamp", show=utc_time),
    Column("partitionLeaderEpoch", "EPOCH"),
    Column("producerId"),
    Column("producerEpoch"),
    Column("baseSequence"),
    "position",
    "size",
    "compression",
    Column("isTransactional", "TXN"),
    Column("isControl", "CONTROL"),
    Column("isValid", "VALID", style=lambda value: None if value else "red"),
)


def _log_section(path: Path, found: LogKind, batches: Iterator[OfflineBatch | Damage], wanted: Wanted) -> Section:
    kind = wanted.kind or found
    if wanted.shallow:
        return Section(path, "batches", _BATCH_COLUMNS, _batch_items(path, batches, wanted))
    named: Sequence[str | Column] = () if kind is LogKind.DATA else ("type",)
    has_key = kind not in (LogKind.METADATA, LogKind.REMOTE_LOGS)
    keys: Sequence[str] = ("key",) if has_key else ()
    values: Sequence[str] = () if wanted.keys_only else ("value",)
    shown = columns("offset", _TIMESTAMP, *named, *keys, *values)
    chunks = _record_chunks(path, kind, batches, wanted)
    return Section(path, "records", shown, (item for chunk in chunks for item in chunk()), chunks)


def _chosen(path: Path, batches: Iterator[OfflineBatch | Damage], wanted: Wanted) -> Iterator[OfflineBatch | Problem]:
    """Yield the batches with wanted offsets, each followed by its problem if it has one."""
    for item in batches:
        if isinstance(item, Damage):
            yield Problem(item.path, f"byte {item.position}", f"{item.reason}; {item.size} bytes are left")
            return
        if wanted.end is not None and item.header.base_offset >= wanted.end:
            return
        if item.header.last_offset < wanted.start:
            continue
        yield item
        if item.error is not None:
            yield Problem(path, f"byte {item.position}, offset {item.header.base_offset}", error_of(item))


def error_of(batch: OfflineBatch) -> str:
    """Return the error of a batch without its position, which is shown beside it."""
    return (batch.error or "").replace("the batch at 0 ", "the batch ")


def _batch_items(path: Path, batches: Iterator[OfflineBatch | Damage], wanted: Wanted) -> Iterator[Item]:
    for item in _chosen(path, batches, wanted):
        yield item if isinstance(item, Problem) else batch_row(item)


def batch_row(batch: OfflineBatch) -> Row:
    header = batch.header
    row: Row = {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.records_count,
        "position": batch.position,
        "size": header.size_in_bytes,
        "magic": header.magic,
        "crc": header.crc,
        "isValid": batch.error is None,
        "compression": _codec(header),
        "timestampType": header.timestamp_type.name,
        "baseTimestamp": header.base_timestamp,
        "maxTimestamp": header.max_timestamp,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "deleteHorizonMs": header.delete_horizon_ms,
    }
    return row if batch.error is None else row | {"error": error_of(batch)}


def _codec(header: BatchHeader) -> str:
    try:
        return header.compression.name.lower()
    except UnknownCompressionError as error:
        return str(error)


def _record_chunks(
    path: Path, kind: LogKind, batches: Iterator[OfflineBatch | Damage], wanted: Wanted
) -> Iterator[Chunk]:
    gathered: list[OfflineBatch | Problem] = []
    size = 0
    for item in _chosen(path, batches, wanted):
        gathered.append(item)
        size += 0 if isinstance(item, Problem) else item.header.size_in_bytes
        if size >= CHUNK_BYTES:
            yield partial(_record_items, path, kind, gathered, wanted)
            gathered, size = [], 0
    if gathered:
        yield partial(_record_items, path, kind, gathered, wanted)


def _record_items(path: Path, kind: LogKind, chosen: list[OfflineBatch | Problem], wanted: Wanted) -> Iterator[Item]:
    start, end = wanted.start, wanted.end
    for item in chosen:
        if isinstance(item, Problem):
            yield item
            continue
        header = item.header
        try:
            records = decode_records(item.data, 0, header)
        except BatchError as error:
            if item.error is None:
                yield Problem(path, f"byte {item.position}, offset {header.base_offset}", str(error))
            continue
        of_batch: Fields = {"baseOffset": header.base_offset, "partitionLeaderEpoch": header.partition_leader_epoch}
        if header.has_producer_id:
            of_batch |= {"producerId": header.producer_id, "producerEpoch": header.producer_epoch}
        if header.base_offset < start or (end is not None and header.last_offset >= end):
            records = [record for record in records if start <= record.offset and (end is None or record.offset < end)]
        if kind is LogKind.DATA and not header.is_control and not wanted.keys_only:
            yield from _plain_items(records, of_batch)
            continue
        for record in records:
            fields = (
                describe_control(record)
                if header.is_control
                else describe(kind, record, with_secrets=wanted.with_secrets)
            )
            row = {"offset": record.offset, "timestamp": record.timestamp, **fields}
            if wanted.keys_only:
                row.pop("value", None)
            elif record.headers:
                row["headers"] = [{"key": key, "value": show_bytes(value)} for key, value in record.headers]
            row.update(of_batch)
            yield row
            if "error" in fields:
                yield Problem(path, f"offset {record.offset}", fields["error"])


def _plain_items(records: list[Record], of_batch: Fields) -> Iterator[Item]:
    """Yield the records of a user's log, as `describe` does but without a call per record: there are many."""
    for offset, timestamp, key, value, headers in records:
        try:
            shown_key = None if key is None else key.decode()
            shown_value = None if value is None else value.decode()
        except UnicodeDecodeError:
            shown_key, shown_value = show_bytes(key), show_bytes(value)
        if headers:
            shown = [{"key": name, "value": show_bytes(text)} for name, text in headers]
            yield {
                **{"offset": offset, "timestamp": timestamp, "key": shown_key, "value": shown_value},
                **{"headers": shown, **of_batch},
            }
        else:
            yield {"offset": offset, "timestamp": timestamp, "key": shown_key, "value": shown_value, **of_batch}


_LOG_COLUMNS = columns("partition", "state", "topicId", "segments", "size", "startOffset", "endOffset")


def _logs(log_dir: Path) -> Iterator[Item]:
    """Yield the logs of a log dir, without their records."""
    for each in sorted(list_partitions(log_dir).partitions, key=lambda each: each.partition):
        try:
            offsets = segment_offsets(each.path)
            yield {
                "partition": str(each.partition),
                "state": each.state.name.lower(),
                "topicId": None if (topic_id := read_topic_id(each.path)) is None else str(topic_id),
                "segments": len(offsets),
                "size": sum(file.stat().st_size for file in each.path.glob("*.log")),
                "startOffset": offsets[0] if offsets else None,
                "endOffset": end_offset_of(each.path),
            }
        except StorageError as error:
            yield Problem(each.path, "", str(error))


# --- other files -----------------------------------------------------------------------------------------------------


def _offset_index(path: Path) -> Iterator[Item]:
    for entry in read_offset_index(path):
        yield {"offset": entry.offset, "position": entry.position}
    yield from _odd_size(path, 8)


def _time_index(path: Path) -> Iterator[Item]:
    for entry in read_time_index(path):
        yield {"timestamp": entry.timestamp, "offset": entry.offset}
    yield from _odd_size(path, 12)


def _transaction_index(path: Path) -> Iterator[Item]:
    index = TransactionIndex(File(path, writable=False), int(path.name[:20]))
    try:
        for each in index.transactions():
            yield {
                "producerId": each.producer_id,
                "firstOffset": each.first_offset,
                "lastOffset": each.last_offset,
                "lastStableOffset": each.last_stable_offset,
            }
        fault = index.fault()
        if fault is not None:
            yield Problem(path, "", fault.replace(f"{path} ", "it "))
    finally:
        index.file.let_go()


def _odd_size(path: Path, entry_size: int) -> Iterator[Item]:
    size = path.stat().st_size
    if size % entry_size:
        yield Problem(
            path, f"byte {size // entry_size * entry_size}", f"the last {size % entry_size} bytes are not an entry"
        )


def _producers(path: Path) -> Iterator[Item]:
    try:
        states = decode_producers(path.read_bytes())
    except CorruptSnapshotError as error:
        yield Problem(path, "", str(error))
        return
    for state in states:
        last = state.batches[-1] if state.batches else None
        open_at = state.current_txn_first_offset
        yield {
            "producerId": state.producer_id,
            "producerEpoch": state.producer_epoch,
            "coordinatorEpoch": state.coordinator_epoch,
            "currentTxnFirstOffset": open_at if open_at >= 0 else None,
            "lastTimestamp": state.last_timestamp,
            "lastSequence": last and last.last_sequence,
            "lastOffset": last and last.last_offset,
            "offsetDelta": last and last.offset_delta,
        }


def _offset_checkpoint(path: Path) -> Iterator[Item]:
    for (topic, partition), offset in read_offset_checkpoint(path).items():
        yield {"topic": topic, "partition": partition, "offset": offset}


def _epoch_checkpoint(path: Path) -> Iterator[Item]:
    for entry in read_epoch_checkpoint(path):
        yield {"epoch": entry.epoch, "startOffset": entry.start_offset}


def _properties(path: Path) -> Iterator[Item]:
    for name, value in properties.loads(path.read_bytes().decode("latin-1")).items():
        yield {"name": name, "value": value}


def _partition_metadata(path: Path) -> Iterator[Item]:
    topic_id = read_topic_id(path.parent)
    yield {"name": "topicId", "value": None if topic_id is None else str(topic_id)}


def _quorum_state(path: Path) -> Iterator[Item]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        yield Problem(path, "", f"this is not JSON: {error}")
        return
    for name, value in content.items():
        yield {"name": name, "value": value}


_NAME_AND_VALUE = columns("name", "value")
_FILES: dict[FileKind, tuple[tuple[Column, ...], Callable[[Path], Iterator[Item]]]] = {
    FileKind.OFFSET_INDEX: (columns("offset", "position"), _offset_index),
    FileKind.TIME_INDEX: (columns(_TIMESTAMP, "offset"), _time_index),
    FileKind.TRANSACTION_INDEX: (
        columns("producerId", "firstOffset", "lastOffset", "lastStableOffset"),
        _transaction_index,
    ),
    FileKind.PRODUCERS: (
        columns(
            "producerId",
            "producerEpoch",
            "coordinatorEpoch",
            "currentTxnFirstOffset",
            Column("lastTimestamp", show=utc_time),
            "lastSequence",
            "lastOffset",
            "offsetDelta",
        ),
        _producers,
    ),
    FileKind.OFFSET_CHECKPOINT: (columns("topic", "partition", "offset"), _offset_checkpoint),
    FileKind.EPOCH_CHECKPOINT: (columns("epoch", "startOffset"), _epoch_checkpoint),
    FileKind.META_PROPERTIES: (_NAME_AND_VALUE, _properties),
    FileKind.PARTITION_METADATA: (_NAME_AND_VALUE, _partition_metadata),
    FileKind.QUORUM_STATE: (_NAME_AND_VALUE, _quorum_state),
}
