"""Logs to compact, and what consumers see of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from barnabas.batches import (
    BatchHeader,
    Compression,
    ControlType,
    Record,
    TimestampType,
    build_batch,
    decode_control_key,
    decode_records,
    iterate_batches,
)
from barnabas.storage import Log, LogConfig
from barnabas.storage.compaction import DEFAULT_DEDUPE_BUFFER_SIZE, Compaction
from tests.storage.made import Clock

CONFIG = LogConfig(
    segment_bytes=1000,
    index_interval_bytes=100,
    delete=False,
    compact=True,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=1000,
    transaction_partition_verification_enable=False,
)


def open_compacted(directory: Path, clock: Clock, config: LogConfig = CONFIG, **options: object) -> Log:
    return Log.open(directory, config, clock=clock, **options)  # type: ignore[arg-type]


def keyed(
    *records: tuple[bytes | None, bytes | None],
    timestamp: int = 1000,
    compression: Compression = Compression.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    producer: tuple[int, int, int] = (-1, -1, -1),
    is_transactional: bool = False,
) -> bytes:
    """One batch of these keys and values; a producer is its id, its epoch and the first sequence."""
    return build_batch(
        [Record(0, timestamp + number, key, value) for number, (key, value) in enumerate(records)],
        compression=compression,
        timestamp_type=timestamp_type,
        max_timestamp=timestamp + 500 if timestamp_type is TimestampType.LOG_APPEND_TIME else None,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        is_transactional=is_transactional,
    )


def append(log: Log, *records: tuple[bytes | None, bytes | None], **options: object) -> int:
    """Appends one batch and gives its first offset."""
    return log.append_as_leader(keyed(*records, **options), leader_epoch=0).base_offset  # type: ignore[arg-type]


def end_transaction(log: Log, clock: Clock, producer_id: int, producer_epoch: int = 0, *, commit: bool) -> int:
    info = log.append_marker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        commit=commit,
        coordinator_epoch=0,
        leader_epoch=0,
        now_ms=clock(),
        transaction_version=1,
    )
    return info.base_offset


def clean(
    log: Log, clock: Clock, checkpoint: int | None = None, dedupe_buffer_size: int = DEFAULT_DEDUPE_BUFFER_SIZE
) -> Compaction:
    """Compacts everything up to the active segment, of a log that is replicated to its end."""
    dirty = log.find_dirty(checkpoint, log.log_end_offset, clock())
    compaction = Compaction(log, dirty, now_ms=clock(), dedupe_buffer_size=dedupe_buffer_size)
    with closing(compaction.steps()) as steps:
        for step in steps:
            if step is not None:
                step()
    return compaction


def clean_all(log: Log, clock: Clock, checkpoint: int | None = None) -> Compaction:
    """Compacts everything there is."""
    log.roll()
    return clean(log, clock, checkpoint)


def headers(log: Log) -> list[BatchHeader]:
    return [header for header, _ in log.batches(log.segments[0].base_offset)]


def seen(log: Log) -> dict[int, tuple[bytes | None, bytes | None]]:
    """Every record that a consumer gets that does not care for transactions, by offset."""
    return {record.offset: (record.key, record.value) for record in _uncommitted(log)}


def seen_committed(log: Log, fetch_bytes: int = 300) -> dict[int, tuple[bytes | None, bytes | None]]:
    """Every record that a consumer gets that reads what is committed, in fetches of so many bytes."""
    found: dict[int, tuple[bytes | None, bytes | None]] = {}
    stable = log.last_stable_offset(log.log_end_offset)
    offset = log.log_start_offset
    while (place := log.find_range(offset, fetch_bytes, stable)) is not None:
        data = place.read()
        waiting = sorted(
            log.aborted_transactions(offset, log.upper_bound_offset(place)), key=lambda txn: txn.first_offset
        )
        aborted: set[int] = set()
        for position, header in iterate_batches(data):
            while waiting and waiting[0].first_offset <= header.last_offset:
                aborted.add(waiting.pop(0).producer_id)
            records = decode_records(data, position, header)
            if header.is_control:
                if records and decode_control_key(records[0].key) is ControlType.ABORT:
                    aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborted):
                found |= {record.offset: (record.key, record.value) for record in records if record.offset >= offset}
            next_offset = header.next_offset
        offset = next_offset
    return found


def last_values(records: Mapping[int, tuple[bytes | None, bytes | None]]) -> dict[bytes | None, bytes]:
    """What is left of these records when each replaces the one before it with the same key."""
    values = {key: value for _, (key, value) in sorted(records.items())}
    return {key: value for key, value in values.items() if value is not None}


def _uncommitted(log: Log) -> Iterator[Record]:
    for header, data in log.batches():
        if not header.is_control:
            yield from (record for record in decode_records(data, 0, header) if record.offset >= log.log_start_offset)
