"""A partition that a consumer reads: its position, its buffer, and the records to return.

Its one rule: records are returned in order, each once, from `position` on. Markers and records of aborted transactions
are skipped. A batch is decoded as a whole when its first record is needed. No I/O.

A batch that cannot be read is an error until the application seeks past it: no record is skipped silently. The partition
is not fetched meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from barnabas.batches import (
    BatchError,
    BatchHeader,
    ControlType,
    Record,
    TimestampType,
    check_crc,
    decode_control_key,
    decode_records,
    iterate_batches,
)
from barnabas.batches.format import Buffer
from barnabas.client.consuming.read_replica import PreferredReplica
from barnabas.client.records import TopicPartition


class Fetched(NamedTuple):
    """Batches of a response with their positions in it, and the aborted transactions: producer id and first offset.

    `error` is that of the batch after the last one, if it cannot be read.
    """

    data: Buffer
    batches: list[tuple[int, BatchHeader]]
    aborted: list[tuple[int, int]]
    error: BatchError | None


class PartitionState:
    """Position and buffer of a partition."""

    __slots__ = (
        "_batches",
        "_current",
        "_data",
        "_records",
        "aborted",
        "buffers",
        "end_offset",
        "error",
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
        self.error: BatchError | None = None  # of the batch at `position`
        self._current: Fetched | None = None
        self._data: Buffer = b""
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
        self._drop_buffers()
        self.error = None
        self._records, self.index = [], 0
        self.aborted.clear()
        self.pending = []

    def _drop_buffers(self) -> None:
        self.buffers.clear()
        self._batches = self._current = None
        self._data = b""

    @property
    def has_buffered(self) -> bool:
        """Whether `take` may return records, or raise an error."""
        has_batches = self._batches is not None or bool(self.buffers) or self.error is not None
        return has_batches or self.index < len(self._records)

    @property
    def has_room(self) -> bool:
        """Whether the next response can be fetched: one is buffered while another one is read."""
        return not self.buffers

    def fetched(self, data: Buffer, aborted: list[tuple[int, int]]) -> bool:
        """Buffer the data of a response, and move `fetch_offset` behind its last whole batch.

        Returns False if there is no whole batch.
        """
        batches: list[tuple[int, BatchHeader]] = []
        error: BatchError | None = None
        try:
            batches.extend(iterate_batches(data, tolerate_truncated=True))
        except BatchError as raised:
            error = raised
        if batches:
            self.fetch_offset = max(batches[-1][1].next_offset, self.fetch_offset)
        elif error is None:
            return False
        self.buffers.append(Fetched(data, batches, aborted, error))
        return True

    # --- records

    def take(self, limit: int, *, check_crcs: bool, committed_only: bool) -> list[Record]:
        """Return the next records, at most `limit`, or none if nothing is buffered. Raises BatchError."""
        taken: list[Record] = []
        while limit > 0:
            records, index = self._records, self.index
            if index >= len(records):
                try:
                    records, index = self._next_batch(check_crcs, committed_only), 0
                except BatchError:
                    if taken:
                        break  # the next call raises it again
                    raise
                if not records:
                    break
            if index == 0 and len(records) <= limit:
                some, self._records, self.index = records, [], 0
            else:
                some = records[index : index + limit]
                self.index = index + len(some)
            self.position = some[-1][0] + 1
            limit -= len(some)
            if taken:
                taken += some
            else:
                taken = some  # not copied: the partition does not use the list any more
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
        """Decode the next batch that has records to return, and return them. Raises BatchError."""
        if self.error is not None:
            raise self.error
        try:
            return self._decode_next(check_crcs, committed_only)
        except BatchError as error:
            self._drop_buffers()
            self.error, self.fetch_offset = error, self.position or 0
            raise

    def _decode_next(self, check_crcs: bool, committed_only: bool) -> list[Record]:
        position = self.position
        assert position is not None
        while True:
            if self._batches is None:
                if not self.buffers:
                    return []
                self._current = self.buffers.popleft()
                self._data, self.pending = self._current.data, self._current.aborted
                self.pending.sort(key=lambda each: each[1], reverse=True)
                self.aborted.clear()
                self._batches = iter(self._current.batches)
            data = self._data
            for start, header in self._batches:
                if header.last_offset < position:
                    continue
                if check_crcs:
                    check_crc(header, data, start)
                if committed_only and self._is_skipped(start, header):
                    self.position = position = header.next_offset
                    continue
                if header.is_control:
                    self.position = position = header.next_offset
                    continue
                records = decode_records(data, start, header)
                if records and records[0].offset < position:
                    records = [record for record in records if record.offset >= position]
                if not records:
                    self.position = position = header.next_offset
                    continue
                self._records, self.index = records, 0
                self.timestamp_type = header.timestamp_type
                return records
            error = self._current.error if self._current is not None else None
            self._batches = self._current = None
            self._data = b""
            if error is not None:
                raise error

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
