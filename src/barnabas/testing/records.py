"""Reads the records of a topic for assertions, as a consumer with `isolation.level=read_committed` would.

It reads the log directly, so it commits no offset, joins no group and leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.batches import decode_records
from barnabas.replicas.partition import Partition
from barnabas.storage.aborted import AbortedTxn


class Record(NamedTuple):
    """A record of a topic."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def committed_records(partition: Partition) -> Iterator[Record]:
    """Yield the committed records, without markers and records of open or aborted transactions."""
    log, end = partition.log, partition.last_stable_offset
    start = log.log_start_offset
    aborted = log.aborted_transactions(start, end)
    for header, batch in log.batches(start, end):
        if header.is_control or _is_aborted(header.producer_id, header.base_offset, aborted):
            continue
        for record in decode_records(batch, 0, header):
            if record.offset >= start:  # DeleteRecords may have advanced the log start offset within the batch
                yield Record(partition.partition_id, *record)


def _is_aborted(producer_id: int, offset: int, aborted: Iterable[AbortedTxn]) -> bool:
    return any(each.producer_id == producer_id and each.first_offset <= offset <= each.last_offset for each in aborted)
