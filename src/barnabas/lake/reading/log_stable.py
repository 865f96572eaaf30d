"""The last stable offset of a log, and its aborted transactions, from files alone: for readers of committed records.

Its one rule: reading stops before the first transaction that was still open when the log was listed; all before it is decided.
The scan starts at the last snapshot of producers. From there, it reads headers of batches, and of the records only markers.
The high watermark is not in the files: the log counts as replicated to its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from barnabas.lake.reading.log_files import OpenSegment, aborted_transactions, offset_entries
from barnabas.lake.reading.log_planning import LogPartition, position_before
from barnabas.lake.reading.options import READ_COMMITTED
from barnabas.storage import AbortedTxn, CorruptLogError, StorageError
from barnabas.storage.files import read_whole
from barnabas.storage.producer_snapshots import CorruptSnapshotError, ProducerSnapshots, decode_producers
from barnabas.storage.producers import ProducerBatch, Producers, ProducerState, producer_batch
from barnabas.storage.segment import PRODUCER_SNAPSHOT_SUFFIX, segment_path


def stable_end(partition: LogPartition, isolation: str | None) -> tuple[int, tuple[AbortedTxn, ...]]:
    """Return the end of the log for a reader, and the transactions whose records it has to skip."""
    if isolation != READ_COMMITTED:
        return partition.end_offset, ()
    offset, states = newest_snapshot(partition)
    producers = Producers(states)
    aborted = []
    for batch in producer_batches(partition, offset):
        completed = producers.update(batch)
        if completed is not None:
            if completed.is_aborted:
                stable_offset = producers.stable_offset_after(completed)
                aborted.append(AbortedTxn(*completed[:3], stable_offset))
            producers.complete(completed)
    producers.forget_replicated(partition.end_offset)
    first_unstable = producers.first_unstable_offset()
    end = partition.end_offset if first_unstable is None else min(first_unstable, partition.end_offset)
    # The markers found above may not be in the index yet.
    known = dict.fromkeys((*aborted_transactions(partition.directory), *aborted))
    return end, tuple(known)


def newest_snapshot(partition: LogPartition) -> tuple[int, list[ProducerState]]:
    """Return the last readable snapshot of producers within the log; at its start without producers if there is none."""
    for offset in reversed(ProducerSnapshots(partition.directory, read_only=True).offsets()):
        if partition.start_offset <= offset <= partition.end_offset:
            content = read_whole(segment_path(partition.directory, offset, PRODUCER_SNAPSHOT_SUFFIX))
            try:
                return offset, decode_producers(content or b"")
            except CorruptSnapshotError:
                continue
    return partition.start_offset, []


def producer_batches(partition: LogPartition, start_offset: int) -> Iterator[ProducerBatch]:
    """Yield the batches of producers from an offset to the end of the log, as it was when the partition was read."""
    for number, segment in enumerate(partition.segments):
        last = number + 1 == len(partition.segments)
        if not last and partition.segments[number + 1].base_offset <= start_offset:
            continue
        entries = offset_entries(partition.directory, segment)
        try:
            file = OpenSegment.open(_present(partition.directory, segment.name))
        except FileNotFoundError:
            raise StorageError(f"{partition.directory} changed while it was read; read it again") from None
        with file:
            position = position_before(file, entries, start_offset)
            try:
                for at, header in file.headers(position, partition.end_position if last else None):
                    if header.has_producer_id and header.last_offset >= start_offset:
                        data = file.read(header.size_in_bytes, at) if header.is_control else b""
                        yield producer_batch(header, header.base_offset, data, 0)
            except CorruptLogError:
                continue


def _present(directory: Path, name: str) -> Path:
    """Return the path of a segment, without the suffix .swap if a compaction has removed that meanwhile."""
    path = directory / name
    return path if path.exists() else path.with_name(name.removesuffix(".swap"))
