"""A partition that a consumer reads: its position, its buffer, and the records to return.

Its one rule: records are returned in order, each once, from `position` on. Markers and records of aborted transactions
are skipped. A batch is decoded as a whole when its first record is needed. No I/O.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from barnabas.batches import (
    BatchHeader,
    ControlType,
    Record,
    TimestampType,
    check_crc,
    decode_control_key,
    decode_records,
    iterate_batches,
)
from barnabas.client.consuming.read_replica import PreferredReplica
from barnabas.client.records import TopicPartition


class Fetched(NamedTuple):
    """Batches of a response, and the aborted transactions in them: producer id and first offset."""

    data: bytes
    aborted: list[tuple[int, int]]


class PartitionState:
    """Position and buffer of a partition."""

    __slots__ = (
        "_batches",
        "_data",
        "_records",
        "aborted",
        "buffers",
        "end_offset",
        "fetch_offset",
        "generation",
        "high_watermark",
        "index",
        "is_paused",
        "is_resetting",
        "last_stable_offset",
        "log_start_offset",
        "pending",
        "place",
        "position",
        "preferred",
        "processed",
        "reset_to",
        "timestamp_type",
    )

    def __init__(self, place: TopicPartition) -> None:
        self.place = place
        self.position: int | None = None  # offset of the next record to return
        self.processed: int | None = None  # offset after the last record that was returned before the last poll
        self.fetch_offset = 0  # offset of the next record to fetch
        self.reset_to: str | None = (
            None  # where to continue if there is no position: earliest, latest, by_duration, none
        )
        self.is_resetting = False
        self.is_paused = False
        self.generation = 0  # changes with the position; responses to older requests are dropped
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.timestamp_type = TimestampType.CREATE_TIME  # of the last batch that was returned
        self.preferred: PreferredReplica | None = None  # follower to fetch from
        self.end_offset: int | None = None
        self.pending: list[tuple[int, int]] = []
        self.aborted: set[int] = set()
        self.buffers: deque[Fetched] = deque()
        self._data = b""
        self._batches: Iterator[tuple[int, BatchHeader]] | None = None
        self._records: list[Record] = []
        self.index = 0

    # --- position

    def seek(self, position: int) -> None:
        self.position = self.processed = self.fetch_offset = position
        self.reset_to = None
        self.drop()

    def reset(self, to: str) -> None:
        self.position = None
        self.reset_to = to
        self.drop()

    def drop(self) -> None:
        """Drop the buffer."""
        self.generation += 1
        self.buffers.clear()
        self._batches = None
        self._records, self.index = [], 0
        self.aborted.clear()
        self.pending = []

    @property
    def has_buffered(self) -> bool:
        return self.index < len(self._records) or self._batches is not None or bool(self.buffers)

    @property
    def has_room(self) -> bool:
        """Whether the next response can be fetched: one is buffered while another one is read."""
        return not self.buffers

    def fetched(self, data: bytes, aborted: list[tuple[int, int]], next_offset: int) -> None:
        self.buffers.append(Fetched(data, aborted))
        self.fetch_offset = next_offset

    # --- records

    def take(self, limit: int, *, check_crcs: bool, committed_only: bool) -> list[Record]:
        """Return the next records, at most `limit`, or none if nothing is buffered. Raises BatchError."""
        records, index = self._records, self.index
        if index >= len(records):
            records, index = self._next_batch(check_crcs, committed_only), 0
            if not records:
                return records
        if index == 0 and len(records) <= limit:
            taken, self._records, self.index = records, [], 0
        else:
            taken = records[index : index + limit]
            self.index = index + len(taken)
        self.position = taken[-1].offset + 1
        return taken

    def take_one(self, *, check_crcs: bool, committed_only: bool) -> Record | None:
        """Return the next record, or None if nothing is buffered. Raises BatchError."""
        if self.index >= len(self._records) and not self._next_batch(check_crcs, committed_only):
            return None
        record = self._records[self.index]
        self.index += 1
        self.position = record.offset + 1
        return record

    def _next_batch(self, check_crcs: bool, committed_only: bool) -> list[Record]:
        """Decode the next batch that has records to return, and return them."""
        position = self.position
        assert position is not None
        while True:
            if self._batches is None:
                if not self.buffers:
                    return []
                self._data, self.pending = self.buffers.popleft()
                self.pending.sort(key=lambda each: each[1], reverse=True)
                self.aborted.clear()
                self._batches = iterate_batches(self._data, tolerate_truncated=True)
            for start, header in self._batches:
                if header.last_offset < position:
                    continue
                if check_crcs:
                    check_crc(header, self._data, start)
                if committed_only and self._is_skipped(start, header):
                    self.position = position = header.next_offset
                    continue
                self.position = position
                if header.is_control:
                    self.position = position = header.next_offset
                    continue
                records = decode_records(self._data, start, header)
                if records and records[0].offset < position:
                    records = [record for record in records if record.offset >= position]
                if not records:
                    self.position = position = header.next_offset
                    continue
                self._records, self.index = records, 0
                self.timestamp_type = header.timestamp_type
                return records
            self._batches = None
            self._data = b""

    def _is_skipped(self, start: int, header: BatchHeader) -> bool:
        """Whether a batch is a marker, or belongs to an aborted transaction. An abort marker ends that transaction."""
        while self.pending and self.pending[-1][1] <= header.last_offset:
            self.aborted.add(self.pending.pop()[0])
        if header.is_control:
            marker = decode_records(self._data, start, header)
            if marker and decode_control_key(marker[0].key) is ControlType.ABORT:
                self.aborted.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self.aborted
