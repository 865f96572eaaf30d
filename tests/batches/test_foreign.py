"""The same records through the builders and readers of aiokafka (C) and kafka-python (Python), in both directions.

kafka-python is asked for gzip alone: its other codecs need packages that this project does not use.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from aiokafka.record import default_records as aiokafka_records
from hypothesis import assume, given

from barnabas.batches import Compression, Record, build_batch, check_crc, decode_header, decode_records
from tests.batches.samples import HUNDRED_RECORDS, property_settings, record_lists

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of how it reads its own files
    from kafka.record import default_records as kafka_python_records

FOREIGN = [
    *((aiokafka_records, codec) for codec in Compression),
    *((kafka_python_records, codec) for codec in (Compression.NONE, Compression.GZIP)),
]
IDS = [f"{module.__name__.split('.')[0]}, {codec.name.lower()}" for module, codec in FOREIGN]


def build_foreign(module: Any, records: list[Record], codec: Compression) -> bytes:
    builder = module.DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec.value,
        is_transactional=1,
        producer_id=123,
        producer_epoch=4,
        base_sequence=5,
        batch_size=2**30,
    )
    for record in records:
        builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    return bytes(builder.build())


def build_ours(records: list[Record], codec: Compression) -> bytes:
    return build_batch(
        records, compression=codec, producer_id=123, producer_epoch=4, base_sequence=5, is_transactional=True
    )


def read_foreign(module: Any, batch: bytes) -> list[Record]:
    foreign = module.DefaultRecordBatch(batch)
    assert foreign.validate_crc()
    return [
        Record(record.offset, record.timestamp, record.key, record.value, tuple(record.headers)) for record in foreign
    ]


@pytest.mark.parametrize(("module", "codec"), FOREIGN, ids=IDS)
def test_they_read_what_we_write(module: Any, codec: Compression) -> None:
    assert read_foreign(module, build_ours(HUNDRED_RECORDS, codec)) == HUNDRED_RECORDS


@pytest.mark.parametrize(("module", "codec"), FOREIGN, ids=IDS)
def test_we_read_what_they_write(module: Any, codec: Compression) -> None:
    batch = build_foreign(module, HUNDRED_RECORDS, codec)
    header = decode_header(batch)
    check_crc(header, batch)
    assert decode_records(batch) == HUNDRED_RECORDS
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (123, 4, 5)
    assert header.is_transactional
    assert header.compression is codec


@pytest.mark.parametrize("module", [aiokafka_records, kafka_python_records], ids=["aiokafka", "kafka-python"])
@property_settings
@given(records=record_lists())
def test_uncompressed_we_write_the_same_bytes(module: Any, records: list[Record]) -> None:
    assume(all(record.timestamp >= 0 for record in records))
    theirs, ours = build_foreign(module, records, Compression.NONE), build_ours(records, Compression.NONE)
    # Of the epoch of the leader, which no producer knows, they make 0 and Kafka's own producer -1.
    assert theirs[:12] + theirs[16:] == ours[:12] + ours[16:]
    assert read_foreign(module, ours) == decode_records(theirs) == records
