"""Validates the batches of producers, and determines the bytes that a leader appends.

Its one rule: the result is a value, ValidBatch or InvalidBatch, with Kafka's error codes, their precedence and, where
they are sent, Kafka's messages. `check_produce` validates the request, before a partition is asked for its leader;
`validate_batch` validates for the log.

For an uncompressed batch only the lengths of the records are checked. Records are decoded only if the topic is
compacted (they need keys), if timestamps have a lower bound, or if the header requires it: timestamps out of range, in
the wrong order or of the wrong type. A compressed batch is decompressed for the same reasons, to change its codec, or
if `open_compressed` is set; otherwise its record count is only checked for plausibility, where Kafka would decompress.
Sequences and transactions need the state of the log and are not checked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.batches.builder import build_batch, encode_batch
from barnabas.batches.checksum import check_crc
from barnabas.batches.compression import DEFAULT_MAX_DECOMPRESSED_BYTES, most_decompressed_bytes
from barnabas.batches.errors import BatchError, TruncatedBatchError
from barnabas.batches.format import (
    COMPRESSION_MASK,
    HEADER_SIZE,
    MAX_INT64,
    MIN_RECORD_SIZE,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    Compression,
    Record,
    TimestampType,
    decode_header,
    decode_whole_header,
)
from barnabas.batches.reader import check_record_lengths, decode_payload, decode_records_of_payload
from barnabas.batches.stamping import stamp_max_timestamp
from barnabas.wire.errors import EncodeError, ErrorCode

_FIRST_WITH_ZSTD = 7


@dataclass(frozen=True, slots=True)
class AppendRules:
    """The settings of a topic that appended batches must conform to."""

    max_message_bytes: int = 1048588
    compacted: bool = False
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = MAX_INT64
    timestamp_after_max_ms: int = 3_600_000
    compression: Compression | None = None  # None: keep the producer's codec
    compression_level: int | None = None
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
    open_compressed: bool = False  # even if only the record count needs to be verified


class RecordError(NamedTuple):
    """An invalid record of a batch."""

    batch_index: int
    message: str


class InvalidBatch(NamedTuple):
    """A rejected batch, with its error."""

    error_code: ErrorCode
    message: str
    record_errors: tuple[RecordError, ...] = ()

    @property
    def answer_message(self) -> str | None:
        """The message for the producer. Kafka sends one only together with record errors."""
        return self.message if self.record_errors else None


class ValidBatch(NamedTuple):
    """A batch that may be appended.

    `batch` is the bytes to append once offset and epoch are stamped into them, and `header` is their decoded header.
    """

    header: BatchHeader
    batch: Buffer
    log_append_time_ms: int

    @property
    def error_code(self) -> ErrorCode:
        return ErrorCode.NONE

    @property
    def records_count(self) -> int:
        return self.header.records_count

    @property
    def max_timestamp(self) -> int:
        return self.header.max_timestamp


class _RefusedError(BatchError):
    def __init__(self, code: ErrorCode, message: str, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.record_errors = tuple(record_errors)


def validate_produce(
    data: Buffer | None, version: int, rules: AppendRules, *, partition: str, now_ms: int
) -> ValidBatch | InvalidBatch:
    """Check the records of one partition in a Produce request of this version, for a log with these rules."""
    header = check_produce(data, version)
    if isinstance(header, InvalidBatch):
        return header
    return validate_batch(data or b"", rules, partition=partition, now_ms=now_ms, header=header)


def check_produce(data: Buffer | None, version: int, header: BatchHeader | None = None) -> BatchHeader | InvalidBatch:
    """Return the header of the one batch that a partition has in a Produce request of this version, or the refusal.

    `header` is the batch's header if it is decoded already. A second batch that is truncated is dropped, as in Kafka.
    """
    try:
        if header is None:
            header = decode_whole_header(data or b"")
        if version < _FIRST_WITH_ZSTD and header.attributes & COMPRESSION_MASK == Compression.ZSTD:
            return InvalidBatch(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Produce version {version} does not support zstd"
            )
        _check_sole(data or b"", header)
    except BatchError as error:
        return InvalidBatch(error.code, str(error))
    return header


def validate_batch(
    data: Buffer, rules: AppendRules, *, partition: str, now_ms: int, header: BatchHeader | None = None
) -> ValidBatch | InvalidBatch:
    """Check the one batch in `data`, sent by a client, for a log with these rules.

    `partition` is the name that messages contain. `header` is the batch's header if it is decoded already.
    """
    try:
        if header is None:
            header = decode_whole_header(data)
        _check_header(header, data, rules)
        return _validate_records(header, data, rules, partition, now_ms)
    except _RefusedError as error:
        return InvalidBatch(error.code, str(error), error.record_errors)
    except BatchError as error:
        return InvalidBatch(error.code, str(error))


def _check_sole(data: Buffer, header: BatchHeader) -> None:
    if len(data) > header.size_in_bytes:
        try:
            decode_whole_header(data, header.size_in_bytes)
        except TruncatedBatchError:
            return
        raise BatchError("there is more than one batch")


def _check_header(header: BatchHeader, data: Buffer, rules: AppendRules) -> None:
    if header.base_offset != 0:
        raise BatchError(f"the base offset is {header.base_offset}, not 0")
    _check_size(header.size_in_bytes, rules)
    check_crc(header, data)
    _ = header.compression  # raises for an unknown codec
    _check_sole(data, header)
    if header.last_offset_delta < 0:
        raise BatchError(f"the last offset delta is {header.last_offset_delta}")
    if header.records_count != header.last_offset_delta + 1:
        raise BatchError(
            f"{header.records_count} records do not match the last offset delta {header.last_offset_delta}"
        )
    if header.is_control:
        raise BatchError("clients must not write control records")
    if header.has_producer_id and header.base_sequence < 0:
        raise BatchError(f"producer {header.producer_id} sent the invalid sequence {header.base_sequence}")


def _check_size(size_in_bytes: int, rules: AppendRules) -> None:
    if size_in_bytes > rules.max_message_bytes:
        raise _RefusedError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {size_in_bytes} bytes exceeds max.message.bytes={rules.max_message_bytes}",
        )


def _validate_records(header: BatchHeader, data: Buffer, rules: AppendRules, partition: str, now_ms: int) -> ValidBatch:
    batch = data[: header.size_in_bytes]
    max_timestamp = header.max_timestamp
    source = header.compression
    target = source if rules.compression is None else rules.compression
    must_decode = _must_decode(header, rules, now_ms)
    if source is Compression.NONE and source is target and not must_decode:
        check_record_lengths(batch, header.records_count, HEADER_SIZE)  # in place, without copying a large batch
    elif must_decode or source is not target or rules.open_compressed:
        payload = decode_payload(data, 0, header, max_decompressed_bytes=rules.max_decompressed_bytes)
        if must_decode:
            records = decode_records_of_payload(payload, header)
            _check_records(records, header, rules, partition, now_ms)
            max_timestamp = max([NO_TIMESTAMP, *(record.timestamp for record in records)])
            if source is not target:
                batch = _rebuild(records, header, target, rules)
                header = decode_header(batch)
            elif source is not Compression.NONE and not _is_dense(records):
                raise BatchError("the offsets of the records are not consecutive")
        else:
            check_record_lengths(payload, header.records_count)
            if source is not target:
                batch = encode_batch(header, payload, target, rules.compression_level)
                header = decode_header(batch)
        _check_size(len(batch), rules)
    elif header.records_count * MIN_RECORD_SIZE > most_decompressed_bytes(source, memoryview(batch)[HEADER_SIZE:]):
        raise BatchError(f"{header.records_count} records do not fit into a batch of {len(batch)} bytes")

    log_append_time_ms = NO_TIMESTAMP
    if rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        max_timestamp = log_append_time_ms = now_ms
    if max_timestamp != header.max_timestamp or header.timestamp_type is not rules.timestamp_type:
        batch = bytearray(batch)
        header = stamp_max_timestamp(batch, rules.timestamp_type, max_timestamp, header=header)
    return ValidBatch(header, batch, log_append_time_ms)


def _must_decode(header: BatchHeader, rules: AppendRules, now_ms: int) -> bool:
    if rules.compacted or header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return True
    if rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return False
    return (
        rules.timestamp_before_max_ms < MAX_INT64
        or header.max_timestamp < header.base_timestamp
        or header.max_timestamp > now_ms + rules.timestamp_after_max_ms
    )


def _check_records(records: list[Record], header: BatchHeader, rules: AppendRules, partition: str, now_ms: int) -> None:
    errors = []
    error_code = ErrorCode.INVALID_RECORD
    earliest = now_ms - rules.timestamp_before_max_ms
    latest = min(now_ms + rules.timestamp_after_max_ms, MAX_INT64)
    for index, record in enumerate(records):
        if rules.compacted and record.key is None:
            message = f"Compacted topic cannot accept message without key in topic partition {partition}"
            errors.append(RecordError(index, message))
        elif rules.timestamp_type is TimestampType.CREATE_TIME and record.timestamp != NO_TIMESTAMP:
            if not earliest <= record.timestamp <= latest:
                message = (
                    f"Timestamp {record.timestamp} of message with offset {record.offset} is out of range. "
                    f"The timestamp should be within [{earliest}, {latest}]"
                )
                errors.append(RecordError(index, message))
                error_code = ErrorCode.INVALID_TIMESTAMP
        elif header.timestamp_type is TimestampType.LOG_APPEND_TIME:
            message = (
                f"Invalid timestamp type in message {_describe(record, header, rules)}. "
                "Producer should not set timestamp type to LogAppendTime."
            )
            errors.append(RecordError(index, message))
            error_code = ErrorCode.INVALID_TIMESTAMP
    if error_code is ErrorCode.INVALID_TIMESTAMP:
        raise _RefusedError(error_code, "One or more records have been rejected due to invalid timestamp", errors)
    if errors:
        shown = ", ".join(f"RecordError(batchIndex={index}, message='{message}')" for index, message in errors[:3])
        raise _RefusedError(
            error_code,
            f"One or more records have been rejected due to {len(errors)} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]",
            errors,
        )


def _describe(record: Record, header: BatchHeader, rules: AppendRules) -> str:
    """Format a record as Kafka prints it, which depends on whether Kafka would keep the compressed bytes."""
    source = header.compression
    is_kept = source is not Compression.NONE and rules.compression in (None, source)
    name, null_size = ("PartialDefaultRecord", -1) if is_kept else ("DefaultRecord", 0)
    key_size = null_size if record.key is None else len(record.key)
    value_size = null_size if record.value is None else len(record.value)
    return (
        f"{name}(offset={record.offset}, timestamp={record.timestamp}, key={key_size} bytes, value={value_size} bytes)"
    )


def _is_dense(records: list[Record]) -> bool:
    return all(record.offset == offset for offset, record in enumerate(records))


def _rebuild(records: list[Record], header: BatchHeader, compression: Compression, rules: AppendRules) -> bytes:
    """Rebuild the batch with another codec and consecutive offsets."""
    try:
        return build_batch(
            records,
            compression=compression,
            level=rules.compression_level,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            is_transactional=header.is_transactional,
            partition_leader_epoch=header.partition_leader_epoch,
        )
    except EncodeError as error:
        raise BatchError(str(error)) from None
