"""Machines that load what somebody else wrote to their log: very large batches, and records that nobody can read."""

from __future__ import annotations

import asyncio

import pytest

from barnabas import slices, wire
from barnabas.batches import BatchHeader, Compression, Record, build_batch, reader
from barnabas.batches.builder import encode_batch
from barnabas.replicated.loop import Batch
from barnabas.replicated.machines import Coordinator, Machine
from barnabas.steps import ROWS_PER_STEP
from barnabas.storage import StorageError
from barnabas.wire.records.group import OffsetCommitKey
from tests.replicated.memory_log import MemoryLog

MILLIONS = 3_000_000
NINE_BYTES = bytes((16, 0, 0, 0, 1, 4, 0, 0, 0))  # a record: null key, two bytes of value


def machine(log: MemoryLog) -> Machine[int]:
    """A machine whose image is the number of records that it has applied."""

    def apply(image: int, batch: Batch) -> int:
        return image + len(batch.records)

    coordinator = Coordinator("__consumer_offsets", "group", 0, apply, lambda _: None, lambda _: None)
    return Machine(coordinator, 0, 0, log, lambda: 0)


def test_a_large_batch_is_decoded_a_few_records_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    real, most = reader._decode_records, [0]

    def counted(payload: bytes, position: int, first: int, count: int, header: BatchHeader) -> tuple[list[Record], int]:
        most[0] = max(most[0], count)
        return real(payload, position, first, count, header)

    monkeypatch.setattr(reader, "_decode_records", counted)
    monkeypatch.setattr(slices, "MAX_STEPS", 1)
    key = wire.encode_record(OffsetCommitKey(group="g", topic="t", partition=0), 0)
    batch = build_batch(Record(number, 0, key, None) for number in range(20 * ROWS_PER_STEP))

    async def scenario() -> int:
        loading = machine(MemoryLog([batch]))
        await loading.load()
        return loading.image

    assert asyncio.run(scenario()) == 20 * ROWS_PER_STEP
    assert most[0] == ROWS_PER_STEP


def test_a_bomb_in_the_log_is_refused_at_its_first_record(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    decoded = [0]
    real = reader._decode_records

    def counted(payload: bytes, position: int, first: int, count: int, header: BatchHeader) -> tuple[list[Record], int]:
        decoded[0] += count
        return real(payload, position, first, count, header)

    monkeypatch.setattr(reader, "_decode_records", counted)
    header = BatchHeader(0, 0, -1, 2, 0, int(Compression.ZSTD), MILLIONS - 1, 0, 0, -1, -1, -1, MILLIONS)
    bomb = bytes(encode_batch(header, NINE_BYTES * MILLIONS, Compression.ZSTD))

    async def scenario() -> Machine[int]:
        loading = machine(MemoryLog([bomb]))
        await loading.load()
        return loading

    loaded = asyncio.run(scenario())
    assert not loaded.is_loaded and loaded.failure is not None
    assert "could not load __consumer_offsets-0" in caplog.text
    assert decoded[0] <= ROWS_PER_STEP


class UnreadableLog(MemoryLog):
    """A log on a disk that has failed."""

    async def load(self, offset: int, max_bytes: int) -> bytes:
        raise StorageError("reading a.log failed: Input/output error")


def test_a_disk_error_is_one_line_that_names_the_file(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> Machine[int]:
        loading = machine(UnreadableLog())
        await loading.load()
        return loading

    assert not asyncio.run(scenario()).is_loaded
    (record,) = caplog.records
    assert "reading a.log failed: Input/output error" in record.getMessage() and not record.exc_info


@pytest.mark.parametrize("is_sealed", [False, True], ids=["wrong checksum", "right checksum"])
def test_a_damaged_batch_is_one_line_with_its_offset(caplog: pytest.LogCaptureFixture, is_sealed: bool) -> None:
    key = wire.encode_record(OffsetCommitKey(group="g", topic="t", partition=0), 0)
    good = build_batch([Record(0, 0, key, None)])
    if is_sealed:
        damaged = build_batch([Record(0, 0, key[:-1], None)])
    else:
        damaged = good[:-2] + bytes((good[-2] ^ 1,)) + good[-1:]

    async def scenario() -> Machine[int]:
        loading = machine(MemoryLog([good, damaged]))
        await loading.load()
        return loading

    assert not asyncio.run(scenario()).is_loaded
    (record,) = caplog.records
    assert "could not load __consumer_offsets-0" in record.getMessage() and not record.exc_info
    assert "offset 1" in record.getMessage() and "barnabas doctor --deep" in record.getMessage()
    assert ("wrong checksum" in record.getMessage()) != is_sealed
