"""The lines of Kafka's kafka-dump-log: segments, snapshots and indexes of a log, as its script prints them.

Its one rule: the output is Kafka's to the character, as far as a file can be read. A file that cannot be read further raises
DumpError, with one line. Mismatches between indexes and log are collected and printed at the end. Files are only read.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.batches import (
    BatchError,
    BatchHeader,
    ControlType,
    Record,
    TimestampType,
    batch_crc,
    decode_records,
)
from barnabas.batches.format import LENGTH_OVERHEAD, MAGIC_POSITION, MAX_INT32
from barnabas.operations.records.log_records import (
    LogKind,
    UnknownRecordTypeError,
    decode_control,
    decode_entry,
    decode_framed,
    upper_name,
)
from barnabas.storage.aborted import TransactionIndex
from barnabas.storage.batch_file import walk_headers, walk_whole
from barnabas.storage.errors import CorruptLogError, StorageError
from barnabas.storage.files import File
from barnabas.storage.index import OffsetIndex, TimeIndex
from barnabas.storage.producer_snapshots import CorruptSnapshotError, decode_producers
from barnabas.storage.snapshots import BOOTSTRAP_CHECKPOINT
from barnabas.wire.errors import MalformedError, UnsupportedVersionError

Write = Callable[[str], None]
Decode = Callable[[bytes], str]
Contents = Callable[[Record], tuple[str | None, str | None]]

_TIMESTAMP_NAMES = {TimestampType.CREATE_TIME: "CreateTime", TimestampType.LOG_APPEND_TIME: "LogAppendTime"}
_CONTROL_NAMES = {
    ControlType.LEADER_CHANGE: "LeaderChange:",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlType.KRAFT_VERSION: "KRaftVersion",
    ControlType.KRAFT_VOTERS: "KRaftVoters",
}
_SNAPSHOT_NAME = re.compile(r"(\d{20})-(\d{10})")
_MIN_BATCH = LENGTH_OVERHEAD + 14


class DumpError(Exception):
    """A file that cannot be read further."""


class Options(NamedTuple):
    """The options, with Kafka's names."""

    kind: LogKind = LogKind.DATA
    print_data_log: bool = False
    deep_iteration: bool = False
    skip_record_metadata: bool = False
    verify_index_only: bool = False
    index_sanity_check: bool = False
    max_message_size: int = 5 * 1024 * 1024
    max_bytes: int = MAX_INT32
    decode_key: Decode = lambda data: data.decode("utf-8", "replace")
    decode_value: Decode = lambda data: data.decode("utf-8", "replace")


class Mismatches:
    """Mismatches between indexes and log, by file, in the order they were found. Paths are absolute, as in Kafka."""

    def __init__(self) -> None:
        self.offsets: dict[Path, list[tuple[int, int]]] = {}
        self.timestamps: dict[Path, list[tuple[int, int]]] = {}
        self.out_of_order: dict[Path, list[tuple[int, int]]] = {}
        self.not_found: dict[Path, list[tuple[int, int]]] = {}
        self.not_consecutive: dict[Path, list[tuple[int, int]]] = {}

    def lines(self) -> Iterator[str]:
        for path, pairs in self.offsets.items():
            yield f"Mismatches in :{path.absolute()}"
            yield from (f"  Index offset: {index}, log offset: {log}" for index, log in pairs)
        for path, pairs in self.timestamps.items():
            yield f"Found timestamp mismatch in :{path.absolute()}"
            yield from (f"  Index timestamp: {index}, log timestamp: {log}" for index, log in pairs)
        for path, pairs in self.out_of_order.items():
            yield f"Found out of order timestamp in :{path.absolute()}"
            yield from (
                f"  Index timestamp: {index}, Previously indexed timestamp: {before}" for index, before in pairs
            )
        for path, pairs in self.not_found.items():
            yield f"The following indexed offsets are not found in :{path.absolute()}"
            yield from (f"Indexed offset: {index}, found log offset: {log}" for index, log in pairs)
        for path, pairs in self.not_consecutive.items():
            yield f"Non-consecutive offsets in {path.absolute()}"
            yield from (f"  {before} is followed by {after}" for before, after in pairs)


def dump_file(path: Path, options: Options, write: Write, warn: Write, mismatches: Mismatches) -> None:
    """Write all lines of one file. Raises DumpError."""
    write(f"Dumping {path}")
    try:
        match path.suffix:
            case ".log" | ".checkpoint":
                _dump_log(path, options, write, mismatches)
            case ".index":
                _dump_index(path, options, write, mismatches)
            case ".timeindex":
                _dump_time_index(path, options, write, mismatches)
            case ".snapshot":
                _dump_producers(path, write, warn)
            case ".txnindex":
                _dump_transactions(path, write)
            case _:
                warn(f"Ignoring unknown file {path}")
    except (StorageError, OSError, BatchError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise DumpError(str(error)) from error


# --- logs ------------------------------------------------------------------------------------------------------------


def _dump_log(path: Path, options: Options, write: Write, mismatches: Mismatches) -> None:
    if path.suffix == ".log":
        write(f"Log starting offset: {_base_offset(path)}")
    elif path.name == BOOTSTRAP_CHECKPOINT:
        write("KRaft bootstrap snapshot")
    elif (found := _SNAPSHOT_NAME.match(path.name)) is not None:
        write(f"Snapshot end offset: {int(found[1])}, epoch: {int(found[2])}")
    file = File(path, writable=False)
    try:
        end = min(file.size(), options.max_bytes)
        valid, last_offset = 0, -1
        deep = options.deep_iteration or options.print_data_log
        lines = _record_lines(options)
        try:
            for batch in walk_whole(file, 0, end):
                header = batch.header
                write(_batch_line(header, batch.position, batch_crc(batch.data, header.size_in_bytes, batch.start)))
                if deep:
                    records = decode_records(batch.data, batch.start, header)
                    for record in records:
                        if record.offset != last_offset + 1:
                            pairs = mismatches.not_consecutive.setdefault(path, [])
                            pairs.append((last_offset, record.offset))
                        last_offset = record.offset
                    for line in lines(header, records):
                        write(line)
                valid = batch.position + header.size_in_bytes
        except CorruptLogError as damage:
            valid = damage.position
            _raise_unless_cut_off(file, path, damage, end)
        if end > valid and options.max_bytes == MAX_INT32:
            write(f"Found {end - valid} invalid bytes at the end of {path.name}")
    finally:
        file.let_go()


def _raise_unless_cut_off(file: File, path: Path, damage: CorruptLogError, end: int) -> None:
    """Raise DumpError, unless the log just ends with an incomplete batch. Like Kafka, take that for the end of the log."""
    head = file.read(min(MAGIC_POSITION + 1, end - damage.position), damage.position)
    if len(head) <= MAGIC_POSITION:
        return
    size = int.from_bytes(head[LENGTH_OVERHEAD - 4 : LENGTH_OVERHEAD], "big", signed=True)
    if size < _MIN_BATCH - LENGTH_OVERHEAD:
        raise DumpError(f"Found record size {size} smaller than minimum record overhead (14) in file {path}.")
    if not damage.truncated:
        raise DumpError(str(damage))


def _batch_line(header: BatchHeader, position: int, crc: int) -> str:
    (
        base_offset,
        _,
        epoch,
        magic,
        stored_crc,
        _,
        delta,
        _,
        max_timestamp,
        producer_id,
        producer_epoch,
        sequence,
        count,
    ) = header
    horizon = header.delete_horizon_ms
    return (
        f"baseOffset: {base_offset} lastOffset: {base_offset + delta} count: {count} baseSequence: {sequence} "
        f"lastSequence: {header.last_sequence} producerId: {producer_id} producerEpoch: {producer_epoch} "
        f"partitionLeaderEpoch: {epoch} isTransactional: {'true' if header.is_transactional else 'false'} "
        f"isControl: {'true' if header.is_control else 'false'} "
        f"deleteHorizonMs: {'OptionalLong.empty' if horizon is None else f'OptionalLong[{horizon}]'} position: {position} "
        f"{_TIMESTAMP_NAMES[header.timestamp_type]}: {max_timestamp} size: {header.size_in_bytes} magic: {magic} "
        f"compresscodec: {header.compression.name.lower()} crc: {stored_crc} "
        f"isvalid: {'true' if crc == stored_crc else 'false'}"
    )


def _record_lines(options: Options) -> Callable[[BatchHeader, list[Record]], Iterator[str]]:
    contents = _contents_of(options) if options.print_data_log else None
    skip = options.skip_record_metadata

    def lines(header: BatchHeader, records: list[Record]) -> Iterator[str]:
        is_control = header.is_control
        time_name = _TIMESTAMP_NAMES[header.timestamp_type]
        # The sequence of a record is the base sequence plus its offset delta.
        sequence_of_zero = header.base_sequence - header.base_offset if header.base_sequence >= 0 else None
        for record in records:
            offset, timestamp, key, value, headers = record
            if skip:
                line = "|"
            else:
                sequence = -1 if sequence_of_zero is None else (sequence_of_zero + offset) & MAX_INT32
                names = ",".join([name for name, _ in headers]) if headers else ""
                line = (
                    f"| offset: {offset} {time_name}: {timestamp} keySize: {-1 if key is None else len(key)} "
                    f"valueSize: {-1 if value is None else len(value)} sequence: {sequence} headerKeys: [{names}]"
                )
                if is_control:
                    line += _control_text(record)
            if contents is not None and not is_control:
                shown_key, payload = contents(record)
                if shown_key is not None:
                    line += f" key: {shown_key}"
                if payload is not None:
                    line += f" payload: {payload}"
            yield "" if line == "|" else line

    return lines


def _control_text(record: Record) -> str:
    control_type, text = decode_control(record)
    if control_type in (ControlType.ABORT, ControlType.COMMIT):
        epoch = text.value()["coordinatorEpoch"]
        return f" endTxnMarker: {control_type.name} coordinatorEpoch: {epoch}"
    if control_type is ControlType.UNKNOWN:
        number = struct.unpack_from(">h", record.key or b"", 2)[0]
        return f" controlType: UNKNOWN({number})"
    return f" {_CONTROL_NAMES[control_type]} {text}"


# --- contents --------------------------------------------------------------------------------------------------------


def _contents_of(options: Options) -> Contents:
    kind = options.kind
    if kind is LogKind.DATA:
        return _plain_contents(options.decode_key, options.decode_value)
    if kind is LogKind.METADATA:
        return _metadata_contents
    if kind is LogKind.REMOTE_LOGS:
        return lambda record: (None, _framed_text(record, "storage"))
    return lambda record: _entry_contents(record, kind)


def _plain_contents(decode_key: Decode, decode_value: Decode) -> Contents:
    def contents(record: Record) -> tuple[str | None, str | None]:
        key, value = record.key, record.value
        return None if key is None else decode_key(key), None if value is None else decode_value(value)

    return contents


def _metadata_contents(record: Record) -> tuple[str | None, str | None]:
    return None, _framed_text(record, "metadata")


_UPPER_NAMES: dict[str, str] = {}


def _framed_text(record: Record, group: str) -> str:
    try:
        name, version, data = decode_framed(record.value, group)
    except (MalformedError, UnsupportedVersionError) as error:
        return f"Error at {record.offset}, skipping. {error}"
    upper = _UPPER_NAMES.get(name) or _UPPER_NAMES.setdefault(name, upper_name(name))
    return f'{{"type":"{upper}","version":{version},"data":{data}}}'


def _entry_contents(record: Record, kind: LogKind) -> tuple[str | None, str | None]:
    if record.key is None:
        raise DumpError(
            f"Failed to decode message at offset {record.offset} using the specified decoder (message had a missing key)"
        )
    try:
        entry = decode_entry(record.key, record.value, kind)
    except UnknownRecordTypeError as error:
        return f"Unknown record type {error.type} at offset {record.offset}, skipping.", None
    except (MalformedError, UnsupportedVersionError) as error:
        return f"Error at offset {record.offset}, skipping. {error}", None
    key = f'{{"type":"{entry.number}","data":{entry.key}}}'
    return key, "<DELETE>" if entry.value is None else f'{{"version":"{entry.version}","data":{entry.value}}}'


# --- indexes ---------------------------------------------------------------------------------------------------------


def _base_offset(path: Path) -> int:
    if not path.name[:20].isdecimal():
        raise DumpError(f"{path.name} does not begin with an offset")
    return int(path.name.partition(".")[0])


def _entries(path: Path, entry: struct.Struct) -> list[tuple[int, int]]:
    """Return all entries, with the empty ones of preallocated space that an unclean shutdown leaves at the end."""
    data = path.read_bytes()
    return list(entry.iter_unpack(data[: len(data) // entry.size * entry.size]))


def _check_size(path: Path, entry_size: int) -> None:
    size = path.stat().st_size
    if size % entry_size:
        raise DumpError(
            f"Index file {path.absolute()} is corrupt, found {size} bytes which is neither positive nor a multiple of "
            f"{entry_size}"
        )


def _dump_index(path: Path, options: Options, write: Write, mismatches: Mismatches) -> None:
    base_offset = _base_offset(path)
    log = File(path.with_suffix(".log"), writable=False)
    try:
        size = log.size()
        entries = _entries(path, OffsetIndex.ENTRY)
        if not entries:
            write(f"{path} is empty.")
            return
        if options.index_sanity_check:
            _check_size(path, OffsetIndex.ENTRY.size)
            write(f"{path} passed sanity check.")
            return
        for number, (relative, position) in enumerate(entries):
            offset = base_offset + relative
            if relative == 0 and number > 0:
                return
            try:
                end = min(size, position + options.max_message_size)
                _, header = next(walk_headers(log, position, end))
            except (CorruptLogError, StopIteration):
                raise DumpError(
                    f"{path}: no batch begins at position {position}, the position of offset {offset}"
                ) from None
            if header.last_offset != offset:
                mismatches.offsets.setdefault(path, []).append((offset, header.last_offset))
            if not options.verify_index_only:
                write(f"offset: {offset} position: {position}")
    finally:
        log.let_go()


def _dump_time_index(path: Path, options: Options, write: Write, mismatches: Mismatches) -> None:
    base_offset = _base_offset(path)
    log = File(path.with_suffix(".log"), writable=False)
    try:
        size = log.size()
        positions = _entries(path.with_suffix(".index"), OffsetIndex.ENTRY)
        entries = _entries(path, TimeIndex.ENTRY)
        if options.index_sanity_check:
            _check_size(path, TimeIndex.ENTRY.size)
            if entries and entries[-1][0] < entries[0][0]:
                raise DumpError(
                    f"Corrupt time index found, time index file ({path.absolute()}) has non-zero size but the last "
                    f"timestamp is {entries[-1][0]} which is less than the first timestamp {entries[0][0]}"
                )
            write(f"{path} passed sanity check.")
            return
        before = -1
        for number, (timestamp, relative) in enumerate(entries):
            offset = base_offset + relative
            if relative == 0 and number > 0:
                return
            start = max((place for known, place in positions if known <= relative), default=0)
            if number == 0:
                _check_tail(log, start, size)
            _check_timestamp(path, log, start, size, (timestamp, offset, before), mismatches)
            if not options.verify_index_only:
                write(f"timestamp: {timestamp} offset: {offset}")
            before = timestamp
    finally:
        log.let_go()


def _check_tail(log: File, start: int, size: int) -> None:
    """Read on to the end of the log, as Kafka does. Raises DumpError if there is a corrupt batch."""
    try:
        for _ in walk_headers(log, start, size):
            pass
    except CorruptLogError as damage:
        _raise_unless_cut_off(log, log.path.absolute(), damage, size)


def _check_timestamp(
    path: Path, log: File, start: int, size: int, entry: tuple[int, int, int], mismatches: Mismatches
) -> None:
    timestamp, offset, before = entry
    found = -1
    try:
        for batch in walk_whole(log, start, size):
            if batch.header.last_offset >= offset:
                found = batch.header.last_offset
                if found == offset:
                    records = decode_records(batch.data, batch.start, batch.header)
                    latest = max((record.timestamp for record in records), default=-1)
                    if latest != timestamp:
                        mismatches.timestamps.setdefault(path, []).append((timestamp, latest))
                    if before >= timestamp:
                        mismatches.out_of_order.setdefault(path, []).append((timestamp, before))
                    return
                break
    except CorruptLogError:
        pass  # the tail was checked before
    mismatches.not_found.setdefault(path, []).append((offset, found))


def _dump_producers(path: Path, write: Write, warn: Write) -> None:
    try:
        states = decode_producers(path.read_bytes())
    except CorruptSnapshotError as error:
        warn(f"{path}: {error}")
        return
    for state in states:
        first_offset = state.current_txn_first_offset
        transaction = f"OptionalLong[{first_offset}]" if first_offset >= 0 else "OptionalLong.empty"
        line = (
            f"producerId: {state.producer_id} producerEpoch: {state.producer_epoch} "
            f"coordinatorEpoch: {state.coordinator_epoch} currentTxnFirstOffset: {transaction} "
            f"lastTimestamp: {state.last_timestamp} "
        )
        for last in state.batches[:1]:
            first_sequence = (last.last_sequence - last.offset_delta) & MAX_INT32
            line += (
                f"firstSequence: {first_sequence} lastSequence: {last.last_sequence} lastOffset: {last.last_offset} "
                f"offsetDelta: {last.offset_delta} timestamp: {last.timestamp}"
            )
        write(line)


def _dump_transactions(path: Path, write: Write) -> None:
    index = TransactionIndex(File(path, writable=False), _base_offset(path))
    try:
        for each in index.transactions():
            write(
                f"version: 0 producerId: {each.producer_id} firstOffset: {each.first_offset} "
                f"lastOffset: {each.last_offset} lastStableOffset: {each.last_stable_offset}"
            )
    finally:
        index.file.let_go()
