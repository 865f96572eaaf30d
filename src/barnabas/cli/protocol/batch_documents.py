"""The record batches of a `records` field as JSON. Bytes that are not a batch are shown with the reason."""

from __future__ import annotations

import base64
from typing import Any

from barnabas import batches

Document = dict[str, Any]


def batch_documents(data: bytes) -> list[Document]:
    """Return all batches in the data. The first one that cannot be read ends the list, with its error."""
    documents: list[Document] = []
    end = 0
    try:
        for position, header in batches.iterate_batches(data):
            documents.append(_batch(data, position, header))
            end = position + header.size_in_bytes
    except batches.BatchError as error:
        documents.append({"error": str(error), "base64": base64.b64encode(data[end:]).decode()})
    return documents


def _batch(data: bytes, position: int, header: batches.BatchHeader) -> Document:
    document: Document = {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "sizeInBytes": header.size_in_bytes,
        "crc": header.crc,
        "crcIsValid": batches.batch_crc(data, header.size_in_bytes, position) == header.crc,
        "compression": header.compression.name.lower(),
        "timestampType": header.timestamp_type.name,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "baseTimestamp": header.base_timestamp,
        "maxTimestamp": header.max_timestamp,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "baseSequence": header.base_sequence,
    }
    try:
        records = batches.decode_records(data, position, header)
        document["records"] = [_record(record, header.is_control) for record in records]
    except batches.BatchError as error:
        document["error"] = str(error)
    return document


def _record(record: batches.Record, is_control: bool) -> Document:
    document: Document = {"offset": record.offset, "timestamp": record.timestamp}
    if is_control:
        document["controlType"] = batches.decode_control_key(record.key).name
    document["key"] = _text(record.key)
    document["value"] = _text(record.value)
    if record.headers:
        document["headers"] = [
            {"key": _text(key.encode("utf-8", "surrogateescape")), "value": _text(value)}
            for key, value in record.headers
        ]
    return document


def _text(data: bytes | None) -> Any:
    """Return bytes as text if they are UTF-8."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
