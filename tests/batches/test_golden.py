"""Batches that Apache Kafka wrote: read, and written again."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.batches import (
    Compression,
    ControlType,
    TimestampType,
    build_batch,
    build_control_batch,
    build_end_txn_marker,
    check_crc,
    decode_control_key,
    decode_end_txn_marker,
    decode_header,
    decode_payload,
    decode_records,
    iterate_batches,
    recompress,
)
from tests.batches.samples import HUNDRED_RECORDS, hex_of, load

LOG_BATCHES = load("log_batches")
METADATA_BATCHES = load("metadata_batches")
CODECS = load("kafka_codecs")
TIMESTAMP_TYPES = {"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}
CONTROL_TYPES = {
    "LeaderChange": ControlType.LEADER_CHANGE,
    "SnapshotHeader": ControlType.SNAPSHOT_HEADER,
    "SnapshotFooter": ControlType.SNAPSHOT_FOOTER,
    "KRaftVersion": ControlType.KRAFT_VERSION,
    "KRaftVoters": ControlType.KRAFT_VOTERS,
}


def rebuild(batch: bytes) -> bytes:
    header = decode_header(batch)
    return build_batch(
        decode_records(batch),
        base_offset=header.base_offset,
        keep_offsets=True,
        last_offset=header.last_offset,
        compression=header.compression,
        timestamp_type=header.timestamp_type,
        max_timestamp=header.max_timestamp,
        delete_horizon_ms=header.delete_horizon_ms,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        partition_leader_epoch=header.partition_leader_epoch,
    )


def test_the_data_has_every_kind_of_batch() -> None:
    found = [row["batch"] for row in LOG_BATCHES]
    assert {batch["codec"] for batch in found} == {codec.name.lower() for codec in Compression}
    assert {batch["timestamp_type"] for batch in found} == set(TIMESTAMP_TYPES)
    assert {(batch["transactional"], batch["control"]) for batch in found} == {
        (False, False),
        (True, False),
        (True, True),
    }
    assert any(batch["delete_horizon"] is not None for batch in found)
    assert any(record["headers"] for row in LOG_BATCHES for record in row["records"])
    control_types = {record["control_type"] for row in METADATA_BATCHES for record in row["records"]}
    assert control_types - {None} == set(CONTROL_TYPES)


@pytest.mark.parametrize("row", LOG_BATCHES, ids=lambda row: f"{row['log']}@{row['batch']['base_offset']}")
def test_a_batch_of_a_log_reads_as_kafka_reads_it(row: dict[str, Any]) -> None:
    data = bytes.fromhex(row["hex"])
    [(position, header)] = iterate_batches(data)
    assert position == 0
    check_crc(header, data)
    assert {
        "size": header.size_in_bytes,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.records_count,
        "leader_epoch": header.partition_leader_epoch,
        "magic": header.magic,
        "crc": header.crc,
        "codec": header.compression.name.lower(),
        "timestamp_type": {value: name for name, value in TIMESTAMP_TYPES.items()}[header.timestamp_type],
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "delete_horizon": header.delete_horizon_ms,
    } == row["batch"]
    assert [
        {
            "offset": record.offset,
            "timestamp": record.timestamp,
            "sequence": -1 if header.base_sequence < 0 else header.base_sequence + record.offset - header.base_offset,
            "key": hex_of(record.key),
            "value": hex_of(record.value),
            "headers": [[key, hex_of(value)] for key, value in record.headers],
        }
        for record in decode_records(data)
    ] == row["records"]


@pytest.mark.parametrize("row", LOG_BATCHES, ids=lambda row: f"{row['log']}@{row['batch']['base_offset']}")
def test_a_batch_of_a_log_is_built_as_kafka_built_it(row: dict[str, Any]) -> None:
    data = bytes.fromhex(row["hex"])
    header, again = decode_header(data), rebuild(data)
    if header.compression is Compression.NONE:
        assert again == data
    elif header.timestamp_type is TimestampType.CREATE_TIME:  # of an append time, the deltas are not to be seen
        assert decode_payload(again) == decode_payload(data)
        assert decode_header(again)._replace(crc=0, batch_length=0) == header._replace(crc=0, batch_length=0)
    else:
        assert decode_records(again) == decode_records(data)


@pytest.mark.parametrize("row", METADATA_BATCHES, ids=lambda row: f"{row['file']}@{row['batch']['baseOffset']}")
def test_a_batch_of_the_metadata_log_is_read_and_built_as_kafka_does(row: dict[str, Any]) -> None:
    data = bytes.fromhex(row["hex"])
    header = decode_header(data)
    check_crc(header, data)
    assert {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.records_count,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "CreateTime": header.max_timestamp,
        "size": header.size_in_bytes,
        "magic": header.magic,
        "compresscodec": header.compression.name.lower(),
        "crc": header.crc,
    } == row["batch"]
    records = decode_records(data)
    for record, expected in zip(records, row["records"], strict=True):
        assert (record.offset, record.timestamp) == (expected["offset"], expected["timestamp"])
        assert -1 if record.key is None else len(record.key) == expected["key_size"]
        assert record.value is not None
        assert len(record.value) == expected["value_size"]
        if header.is_control:
            assert decode_control_key(record.key) is CONTROL_TYPES[expected["control_type"]]
    assert rebuild(data) == data
    if header.is_control:
        values = [(decode_control_key(record.key), record.value or b"") for record in records]
        built = build_control_batch(
            values,
            timestamp=records[0].timestamp,
            base_offset=header.base_offset,
            partition_leader_epoch=header.partition_leader_epoch,
        )
        assert built == data


MARKERS = [row for row in LOG_BATCHES if row["batch"]["control"]]


@pytest.mark.parametrize("row", MARKERS, ids=lambda row: f"{row['log']}@{row['batch']['base_offset']}")
def test_the_end_of_a_transaction_is_built_as_kafka_built_it(row: dict[str, Any]) -> None:
    data = bytes.fromhex(row["hex"])
    header = decode_header(data)
    [record] = decode_records(data)
    marker = decode_end_txn_marker(record)
    built = build_end_txn_marker(
        commit=marker.type is ControlType.COMMIT,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
        timestamp=record.timestamp,
        base_offset=header.base_offset,
        partition_leader_epoch=header.partition_leader_epoch,
    )
    assert built == data


def test_there_are_markers_of_both_kinds() -> None:
    types = {decode_end_txn_marker(decode_records(bytes.fromhex(row["hex"]))[0]).type for row in MARKERS}
    assert types == {ControlType.ABORT, ControlType.COMMIT}


@pytest.mark.parametrize("row", CODECS, ids=lambda row: f"{row['codec']}, level {row['level']}")
def test_what_kafka_compressed_in_many_blocks_is_read(row: dict[str, Any]) -> None:
    data = bytes.fromhex(row["hex"])
    check_crc(decode_header(data), data)
    assert decode_records(data) == HUNDRED_RECORDS


def test_snappy_is_written_byte_for_byte_as_java_writes_it() -> None:
    [row] = [row for row in CODECS if row["codec"] == "snappy"]
    assert build_batch(HUNDRED_RECORDS, compression=Compression.SNAPPY).hex() == row["hex"]


@pytest.mark.parametrize("codec", list(Compression))
def test_another_codec_changes_nothing_but_the_codec(codec: Compression) -> None:
    for row in LOG_BATCHES:
        data = bytes.fromhex(row["hex"])
        header = decode_header(data)
        again = recompress(data, codec)
        check_crc(decode_header(again), again)
        assert decode_records(again) == decode_records(data)
        if header.compression is codec or (header.is_control and header.compression is Compression.NONE):
            assert again == data
        else:
            changed = {"crc": 0, "batch_length": 0, "attributes": 0}
            assert decode_header(again).compression is codec
            assert decode_header(again)._replace(**changed) == header._replace(**changed)
            assert decode_header(again).attributes & ~7 == header.attributes & ~7
