"""Batches and logs that tests make for themselves."""

from __future__ import annotations

from pathlib import Path

from barnabas.batches import (
    NO_TIMESTAMP,
    Compression,
    Record,
    ValidBatch,
    build_batch,
    decode_whole_header,
    iterate_batches,
)
from barnabas.storage import Log, LogConfig

NOW_MS = 1_700_000_000_000
SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=100)


class Clock:
    """Milliseconds that pass when a test says so."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


def batch(
    *values: bytes,
    timestamps: tuple[int, ...] | None = None,
    base_offset: int = 0,
    epoch: int = -1,
    compression: Compression = Compression.NONE,
) -> bytes:
    """One batch of these values."""
    times = timestamps or tuple(1000 + number for number in range(len(values)))
    records = [Record(0, time, b"k", value) for time, value in zip(times, values, strict=True)]
    return build_batch(records, base_offset=base_offset, compression=compression, partition_leader_epoch=epoch)


def validated(data: bytes) -> ValidBatch:
    """One batch that a leader would accept as it is."""
    return ValidBatch(decode_whole_header(data), data, NO_TIMESTAMP)


def produced(
    producer_id: int,
    sequence: int,
    *values: bytes,
    epoch: int = 0,
    transactional: bool = False,
    timestamp: int = NOW_MS,
    base_offset: int = 0,
) -> bytes:
    """One batch of these values, or of a single one, from a producer."""
    return build_batch(
        [Record(0, timestamp, b"k", value) for value in values or (b"v",)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=transactional,
    )


def open_log(directory: Path, config: LogConfig = SMALL, **options: object) -> Log:
    return Log.open(directory, config, clock=Clock(), **options)  # type: ignore[arg-type]


def offsets(data: bytes) -> list[tuple[int, int]]:
    """First and last offset of every batch in these bytes."""
    return [(header.base_offset, header.last_offset) for _, header in iterate_batches(data)]


def whole_log(log: Log) -> list[bytes]:
    """Every batch of a log."""
    return [bytes(data) for _, data in log.batches()]
