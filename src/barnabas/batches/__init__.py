"""Record batches of format v2, the unit in which Kafka stores, sends and replicates records: bytes in, values out.

format (layout), reader, builder, compression, control (markers), checksum, stamping (fields that a leader sets),
validation (checks of a producer's batches), spans (records as byte ranges, for compaction), varint, errors. No I/O, no
clock; nothing here knows topics or logs.
"""

from barnabas.batches.builder import build_batch, encode_batch, recompress
from barnabas.batches.checksum import batch_crc, check_crc, crc32c
from barnabas.batches.compression import DEFAULT_MAX_DECOMPRESSED_BYTES, compress, decompress
from barnabas.batches.control import (
    ControlType,
    EndTxnMarker,
    build_control_batch,
    build_end_txn_marker,
    decode_control_key,
    decode_end_txn_marker,
    encode_control_key,
)
from barnabas.batches.errors import BatchError, CorruptBatchError, TruncatedBatchError, UnknownCompressionError
from barnabas.batches.format import (
    HEADER_SIZE,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    Compression,
    Headers,
    Record,
    TimestampType,
    decode_header,
    decode_whole_header,
)
from barnabas.batches.reader import (
    check_record_lengths,
    decode_payload,
    decode_records,
    decode_records_of_payload,
    end_of_whole_batches,
    iterate_batches,
    offset_of_max_timestamp,
)
from barnabas.batches.stamping import stamp, stamp_max_timestamp
from barnabas.batches.validation import (
    AppendRules,
    InvalidBatch,
    RecordError,
    ValidBatch,
    check_produce,
    must_open,
    validate_batch,
    validate_in_slices,
    validate_produce,
)

__all__ = [
    "DEFAULT_MAX_DECOMPRESSED_BYTES",
    "HEADER_SIZE",
    "MAGIC",
    "NO_LEADER_EPOCH",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "AppendRules",
    "BatchError",
    "BatchHeader",
    "Compression",
    "ControlType",
    "CorruptBatchError",
    "EndTxnMarker",
    "Headers",
    "InvalidBatch",
    "Record",
    "RecordError",
    "TimestampType",
    "TruncatedBatchError",
    "UnknownCompressionError",
    "ValidBatch",
    "batch_crc",
    "build_batch",
    "build_control_batch",
    "build_end_txn_marker",
    "check_crc",
    "check_produce",
    "check_record_lengths",
    "compress",
    "crc32c",
    "decode_control_key",
    "decode_end_txn_marker",
    "decode_header",
    "decode_payload",
    "decode_records",
    "decode_records_of_payload",
    "decode_whole_header",
    "decompress",
    "encode_batch",
    "encode_control_key",
    "end_of_whole_batches",
    "iterate_batches",
    "must_open",
    "offset_of_max_timestamp",
    "recompress",
    "stamp",
    "stamp_max_timestamp",
    "validate_batch",
    "validate_in_slices",
    "validate_produce",
]
