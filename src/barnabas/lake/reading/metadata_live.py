"""The metadata log of a live cluster, barnabas or Apache Kafka, read through the controller listener.

Its one rule: only committed records are read. The log is read as far back as it goes, and a snapshot replaces earlier records.
If offset 0 is a batch by itself, it is skipped: it only names the first leader, and controllers answer a fetch from offset 0
with a snapshot. One task reads; nothing is registered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from barnabas.client.admin.quorum import Quorum, QuorumInfo
from barnabas.client.cluster import Cluster
from barnabas.client.metadata_log import LogBatch, LogPart, LogSnapshot, read_metadata_log
from barnabas.lake.reading.copies import CommitVerdict
from barnabas.lake.reading.metadata_files import Piece
from barnabas.lake.reading.metadata_following import Limits, StreamPosition
from barnabas.lake.reading.metadata_options import MetadataOptions
from barnabas.lake.reading.metadata_rows import RowFormat, Wanted, chunk_of, rows_of
from barnabas.lake.reading.options import LATEST

if TYPE_CHECKING:
    from pyarrow import RecordBatch

T = TypeVar("T")

_AT_ONCE = 2000
"""Batches that are turned into rows together."""


class LivePiece(NamedTuple):
    """Offsets of the log, and the state of the cluster when they were planned."""

    start: int
    end: int
    cluster_id: str | None
    leader_id: int
    wanted: Wanted


class Seen(NamedTuple):
    """A cluster at the time of the request."""

    cluster_id: str | None
    quorum: QuorumInfo


def look(options: MetadataOptions) -> Seen:
    async def ask(cluster: Cluster) -> Seen:
        return Seen(cluster.state.cluster_id, await Quorum(cluster).describe_quorum())

    return _run(options, ask)


def plan_live(options: MetadataOptions, wanted: Wanted) -> list[LivePiece]:
    """Return all wanted offsets as one task."""
    seen = look(options)
    high_watermark = seen.quorum.high_watermark
    start = high_watermark if options.start == LATEST else wanted.start
    end = high_watermark if wanted.end is None else min(wanted.end, high_watermark)
    return [LivePiece(start, end, seen.cluster_id, seen.quorum.leader_id, wanted)]


def read_live(piece: LivePiece, options: MetadataOptions, form: RowFormat) -> Iterator[RecordBatch]:
    """Yield the rows of a task. The event loop runs only while it waits for batches."""
    place = f"kafka://{options.client['bootstrap.controllers']}"
    log = Piece(place, 0, 0, piece.start, piece.end, piece.cluster_id, piece.leader_id, None, CommitVerdict(piece.end))
    if piece.start >= piece.end or (piece.wanted.node_ids is not None and piece.leader_id not in piece.wanted.node_ids):
        return
    waiting: list[LogBatch] = []
    for part in _iterate(options, piece.start):
        if isinstance(part, LogSnapshot):
            if piece.wanted.snapshots is not False:
                snapshot = log._replace(snapshot=(part.end_offset, part.epoch))
                yield from _rows(part.batches, snapshot, piece.wanted, form)
            continue
        if part.base_offset >= piece.end:
            break
        waiting.append(part)
        if len(waiting) >= _AT_ONCE:
            yield from _rows(waiting, log, piece.wanted, form)
            waiting = []
        if part.last_offset + 1 >= piece.end:
            break
    if piece.wanted.snapshots is not True:
        yield from _rows(waiting, log, piece.wanted, form)


def _rows(batches: Sequence[LogBatch], piece: Piece, wanted: Wanted, form: RowFormat) -> Iterator[RecordBatch]:
    if batches:
        chunk = chunk_of([(batch.header, batch.records) for batch in batches])
        yield from rows_of([chunk], piece, wanted, form)


class LiveLog:
    """A log that a stream follows through its controllers."""

    def __init__(self, options: MetadataOptions) -> None:
        self._options = options
        self._seen = look(options)
        self._checked = False
        self.cluster_id = self._seen.cluster_id

    def look(self) -> None:
        self._seen = look(self._options)
        self.cluster_id = self._seen.cluster_id

    def end(self) -> StreamPosition:
        # A new leader has no high watermark before it has committed a record of its own epoch.
        return StreamPosition(max(self._seen.quorum.high_watermark, 0), self._seen.quorum.leader_epoch)

    def resume(self, place: StreamPosition) -> StreamPosition | None:
        end = self.end()
        if place.offset == 0 or place.epoch < 0:
            return place
        if self._seen.quorum.high_watermark < 0 or end.epoch < place.epoch:
            return None if end.offset == 0 or end.epoch < place.epoch else place
        if end.offset < place.offset:
            return end
        if not self._checked:  # committed records stay: one check is enough
            epoch = self._epoch_before(place.offset)
            if epoch is not None and epoch != place.epoch:
                return end._replace(offset=0, epoch=-1)
            self._checked = True
        return place

    def _epoch_before(self, offset: int) -> int | None:
        for part in _iterate(self._options, offset - 1):
            if isinstance(part, LogSnapshot):
                return part.epoch if part.end_offset == offset else None
            return part.epoch if part.base_offset < offset <= part.last_offset + 1 else None
        return None

    def cut(self, start: int, end: StreamPosition, limits: Limits) -> StreamPosition:
        rows = size = 0
        place = end._replace(offset=start)
        for part in _iterate(self._options, start):
            if isinstance(part, LogSnapshot):
                return end._replace(offset=part.end_offset, epoch=part.epoch)
            if part.base_offset >= end.offset:
                break
            rows += part.last_offset + 1 - max(part.base_offset, start)
            size += part.header.size_in_bytes
            if place.offset > start and not limits.allows(rows, size):
                return place
            place = end._replace(offset=part.last_offset + 1, epoch=part.epoch)
        return place if place.offset > start else end

    def parts(self, start: int, end: int, wanted: Wanted) -> list[LivePiece]:
        return [LivePiece(start, end, self.cluster_id, self._seen.quorum.leader_id, wanted)]


def _run(options: MetadataOptions, ask: Callable[[Cluster], Coroutine[Any, Any, T]]) -> T:
    async def run() -> T:
        async with Cluster(dict(options.client)) as cluster:
            return await ask(cluster)

    return asyncio.run(run())


def _iterate(options: MetadataOptions, start: int) -> Iterator[LogPart]:
    """Yield the log from an offset to the high watermark, with an event loop of its own."""

    async def parts() -> AsyncGenerator[LogPart, None]:
        async with Cluster(dict(options.client)) as cluster:
            async for part in read_metadata_log(cluster, max(start, 1)):
                yield part

    with asyncio.Runner() as runner:
        iterator = parts()
        try:
            while (part := runner.run(_next(iterator))) is not None:
                yield part
        finally:
            runner.run(_close(iterator))


async def _next(iterator: AsyncIterator[LogPart]) -> LogPart | None:
    return await anext(iterator, None)


async def _close(iterator: AsyncGenerator[LogPart, None]) -> None:
    await iterator.aclose()
