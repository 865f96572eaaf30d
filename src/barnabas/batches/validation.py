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

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.batches.builder import PayloadBuilder, encode_batch
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
from barnabas.batches.reader import check_record_lengths_in_chunks, decode_payload, decode_records_in_chunks
from barnabas.batches.stamping import stamp_max_timestamp
from barnabas.wire.errors import EncodeError, ErrorCode

MAX_RECORD_ERRORS = 10_000  # listed in a response; the total is always counted
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
    work = validate_in_slices(data, rules, partition=partition, now_ms=now_ms, header=header)
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: ValidBatch | InvalidBatch = end.value
            return result


def validate_in_slices(
    data: Buffer,
    rules: AppendRules,
    *,
    partition: str,
    now_ms: int,
    header: BatchHeader | None = None,
    payload: bytes | BatchError | None = None,
) -> Generator[None, None, ValidBatch | InvalidBatch]:
    """Do the same as `validate_batch`, with a pause every few hundred records.

    `payload` is what `decode_payload` returned or raised, if the caller called it already.
    """
    try:
        if header is None:
            header = decode_whole_header(data)
        _check_header(header, data, rules)
        return (yield from _validate_records(header, data, rules, partition, now_ms, payload))
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


def must_open(header: BatchHeader, rules: AppendRules, now_ms: int) -> bool:
    """Return True if the payload of the batch has to be decompressed for its validation."""
    source = header.compression
    return source is not Compression.NONE and (
        _must_decode(header, rules, now_ms) or rules.compression not in (None, source) or rules.open_compressed
    )


def _validate_records(
    header: BatchHeader,
    data: Buffer,
    rules: AppendRules,
    partition: str,
    now_ms: int,
    payload: bytes | BatchError | None,
) -> Generator[None, None, ValidBatch]:
    batch = data[: header.size_in_bytes]
    max_timestamp = header.max_timestamp
    source = header.compression
    target = source if rules.compression is None else rules.compression
    must_decode = _must_decode(header, rules, now_ms)
    if source is Compression.NONE and source is target and not must_decode:
        # In place, without copying a large batch.
        yield from check_record_lengths_in_chunks(batch, header.records_count, HEADER_SIZE)
    elif must_decode or source is not target or rules.open_compressed:
        if payload is None:
            payload = decode_payload(data, 0, header, max_decompressed_bytes=rules.max_decompressed_bytes)
        elif isinstance(payload, BatchError):
            raise payload
        if must_decode:
            checks = _RecordChecks(header, rules, partition, now_ms)
            rebuilt = None if source is target else PayloadBuilder()
            for records in decode_records_in_chunks(payload, header):
                checks.check(records)
                if rebuilt is not None:
                    checks.add(rebuilt, records)
                yield
            checks.finish()
            max_timestamp = checks.max_timestamp
            if rebuilt is not None:
                batch = checks.encode(rebuilt, target)
                header = decode_header(batch)
            elif source is not Compression.NONE and not checks.is_dense:
                raise BatchError("the offsets of the records are not consecutive")
        else:
            yield from check_record_lengths_in_chunks(payload, header.records_count)
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


class _RecordChecks:
    """What is found out about the records of one batch, chunk by chunk.

    An error is raised at the end, because a batch that cannot be decoded to its end has another one.
    """

    def __init__(self, header: BatchHeader, rules: AppendRules, partition: str, now_ms: int) -> None:
        self.max_timestamp = NO_TIMESTAMP
        self.is_dense = True
        self._header = header
        self._rules = rules
        self._partition = partition
        self._earliest = now_ms - rules.timestamp_before_max_ms
        self._latest = min(now_ms + rules.timestamp_after_max_ms, MAX_INT64)
        self._count = 0
        self._errors: list[RecordError] = []
        self._errors_count = 0
        self._error_code = ErrorCode.INVALID_RECORD
        self._unencodable: EncodeError | None = None

    def check(self, records: list[Record]) -> None:
        rules, header = self._rules, self._header
        is_create_time = rules.timestamp_type is TimestampType.CREATE_TIME
        for index, record in enumerate(records, self._count):
            if record.offset != index:
                self.is_dense = False
            self.max_timestamp = max(self.max_timestamp, record.timestamp)
            if rules.compacted and record.key is None:
                self._refuse(
                    index, f"Compacted topic cannot accept message without key in topic partition {self._partition}"
                )
            elif is_create_time and record.timestamp != NO_TIMESTAMP:
                if not self._earliest <= record.timestamp <= self._latest:
                    message = (
                        f"Timestamp {record.timestamp} of message with offset {record.offset} is out of range. "
                        f"The timestamp should be within [{self._earliest}, {self._latest}]"
                    )
                    self._refuse(index, message, ErrorCode.INVALID_TIMESTAMP)
            elif header.timestamp_type is TimestampType.LOG_APPEND_TIME:
                message = (
                    f"Invalid timestamp type in message {_describe(record, header, rules)}. "
                    "Producer should not set timestamp type to LogAppendTime."
                )
                self._refuse(index, message, ErrorCode.INVALID_TIMESTAMP)
        self._count += len(records)

    def _refuse(self, index: int, message: str, error_code: ErrorCode | None = None) -> None:
        self._errors_count += 1
        if len(self._errors) < MAX_RECORD_ERRORS:
            self._errors.append(RecordError(index, message))
        if error_code is not None:
            self._error_code = error_code

    def add(self, payload: PayloadBuilder, records: list[Record]) -> None:
        """Add the records to the payload of a batch with another codec and consecutive offsets."""
        try:
            payload.add(records)
        except EncodeError as error:
            self._unencodable = self._unencodable or error

    def finish(self) -> None:
        """Raise the error of the records that were refused."""
        if self._error_code is ErrorCode.INVALID_TIMESTAMP:
            message = "One or more records have been rejected due to invalid timestamp"
            raise _RefusedError(self._error_code, message, self._errors)
        if self._errors:
            shown = ", ".join(
                f"RecordError(batchIndex={index}, message='{message}')" for index, message in self._errors[:3]
            )
            raise _RefusedError(
                self._error_code,
                f"One or more records have been rejected due to {self._errors_count} record errors in total, "
                f"and only showing the first three errors at most: [{shown}]",
                self._errors,
            )

    def encode(self, payload: PayloadBuilder, compression: Compression) -> bytes:
        """Return the batch with the records of the payload and another codec."""
        header = self._header
        try:
            if self._unencodable is not None:
                raise self._unencodable
            return payload.batch(
                compression=compression,
                level=self._rules.compression_level,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                is_transactional=header.is_transactional,
                partition_leader_epoch=header.partition_leader_epoch,
            )
        except EncodeError as error:
            raise BatchError(str(error)) from None


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
