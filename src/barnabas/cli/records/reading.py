"""The reading loop of `barnabas records consume`.

Its one rule: without --follow, the end offsets are fixed when a partition is assigned. So reading ends even if producers keep
writing. `group_offsets` commits, for a group, what was printed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.records.group_offsets import GroupOffsets
from barnabas.cli.records.output import row_of
from barnabas.cli.records.writing import split_settings
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, Progress, columns, note
from barnabas.cli.terminal.watch import cancelled_by_sigterm, interrupted, terminated
from barnabas.operations.partitions import Selection, find_partitions
from barnabas.operations.quantities import bytes_text
from barnabas.operations.records.filters import Filter, Shown
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.consumer import Consumer, ConsumerRecord

    Place = tuple[str, int]

_POLL_MS = 500
_JOIN_POLLS = 20
_MAX_UNFLUSHED = 256
"""Records of a group that are printed before a flush: those of a failed flush are not committed, and printed again."""


class Begin(NamedTuple):
    """The position to begin at; the beginning of the log by default."""

    offset: int | None
    from_ms: int | None
    tail: int | None


class Stop(NamedTuple):
    """The condition to end: after a number of shown records, at a time, never (`follow`), or at a limit of what is read.

    `max_bytes` counts keys and values, not compressed.
    """

    max_records: int | None
    follow: bool
    until_ms: int | None
    max_scanned: int | None = None
    max_bytes: int | None = None


class Show:
    """Output of records, as rows or as bare values. `decode` returns records of internal topics in clear."""

    def __init__(
        self,
        output: Output,
        key_form: str,
        value_form: str,
        *,
        values_only: bool = False,
        decode: Callable[[ConsumerRecord], Shown] | None = None,
        is_shared: bool = False,
    ) -> None:
        self._output, self._key_form, self._value_form, self._values_only = output, key_form, value_form, values_only
        self._decode = decode
        self._is_shared = is_shared
        self._stack = ExitStack()
        self._rows: Any = None

    def __enter__(self) -> Show:
        if not self._values_only:
            kind = ("type",) if self._decode is not None else ("deliveryCount",) if self._is_shared else ()
            shown = columns("topic", "partition", "offset", "timestamp", *kind, "key", "value", "headers")
            self._rows = self._stack.enter_context(self._output.table(shown))
        return self

    def __exit__(self, *args: Any) -> None:
        self._stack.__exit__(*args)

    def in_clear(self, record: ConsumerRecord) -> Shown:
        """Return the record to filter and to show: decoded, if it is one of an internal topic."""
        return record if self._decode is None else self._decode(record)

    def add(self, record: Shown) -> None:
        if self._values_only:
            sys.stdout.buffer.write((record.value or b"") + b"\n")
        else:
            row = row_of(record, self._key_form, self._value_form, for_people=self._output.is_for_people)
            self._rows.add(row)

    def flush(self) -> None:
        if self._values_only:
            sys.stdout.buffer.flush()
        else:
            self._rows.flush()


def consume(
    connection: Connection,
    partitions: tuple[Selection, ...],
    group: str | None,
    from_beginning: bool,
    isolation_level: str,
    begin: Begin,
    stop: Stop,
    wanted: Filter | None,
    show: Show,
) -> None:
    """Consume and show the records for which `wanted` is true; all of them if it is None."""
    from barnabas.client.consumer import Consumer
    from barnabas.client.consuming.settings import definitions

    rest, settings = split_settings(connection, definitions())
    settings |= {"isolation.level": isolation_level, "enable.auto.commit": "false"}
    settings.setdefault("max.poll.records", "10000")
    if group is not None:
        settings["group.id"] = group
        settings.setdefault("auto.offset.reset", "latest" if stop.follow and not from_beginning else "earliest")
    else:
        settings.pop("group.id", None)

    async def work(cluster: Cluster) -> None:
        async with Consumer(cluster, settings) as consumer:
            keys = (await find_partitions(cluster, partitions)).keys
            offsets = None
            if group is not None:
                offsets = GroupOffsets(consumer, consumer.settings.auto_commit_interval_ms / 1000)
                await consumer.subscribe(dict.fromkeys(topic for topic, _ in keys), offsets)
            else:
                consumer.assign(keys)
            reading = _Reading(consumer, stop, wanted, show, offsets)
            is_interrupted = False
            try:
                with show, cancelled_by_sigterm() as is_terminated:
                    try:
                        if group is None:
                            await reading.fix_ends(await _place(consumer, keys, begin))
                        await reading.run()
                    except asyncio.CancelledError:  # Ctrl-C or SIGTERM: what was read is shown and committed
                        is_interrupted = True
                if offsets is not None:
                    offsets.flushed()
            finally:
                if offsets is not None:
                    await offsets.commit()
            reading.note_limit()
            if is_terminated():
                terminated()
            if is_interrupted:
                interrupted(is_normal=stop.follow)

    run(rest, work, is_long=True)


async def _place(consumer: Consumer, keys: list[Place], begin: Begin) -> dict[Any, int]:
    """Seek to the begin position, and return the end offsets. Raises Failure."""
    first = await consumer.beginning_offsets(keys)
    ends = dict(await consumer.end_offsets(keys))
    starts: dict[Any, int] = dict(first)
    if begin.from_ms is not None:
        found = await consumer.offsets_for_times(dict.fromkeys(keys, begin.from_ms))
        starts = {place: each.offset if each is not None else ends[place] for place, each in found.items()}
    elif begin.offset is not None:
        starts = {place: begin.offset if begin.offset >= 0 else ends[place] + begin.offset for place in ends}
    elif begin.tail is not None:
        starts = {place: end - begin.tail for place, end in ends.items()}
    for place, start in starts.items():
        if begin.offset is not None and start > ends[place]:
            text = f"offset {start} is after its end offset {ends[place]}"
            raise Failure(text, resource=f"partition {place[0]}-{place[1]}")
        consumer.seek(place, max(start, first[place]))
    return ends


class _Reading:
    """The loop. A partition is done when its position reaches its end, if it has one."""

    def __init__(
        self, consumer: Consumer, stop: Stop, wanted: Filter | None, show: Show, offsets: GroupOffsets | None
    ) -> None:
        self._consumer, self._stop, self._wanted, self._show, self._offsets = consumer, stop, wanted, show, offsets
        self._ends: dict[Any, int] = {}
        self._starts: dict[Any, int] = {}
        self._positions: dict[Any, int] = {}
        self._scanned = self._bytes = self._shown = self._flushed = 0
        self._limit: str | None = None  # the option that ended the loop early
        is_searching = wanted is not None or not sys.stdout.isatty()
        self._progress = Progress("reading", unit="records", is_shown=is_searching and not stop.follow)

    async def run(self) -> None:
        with self._progress:
            while not self._is_at_limit():
                if self._offsets is not None:
                    await self._pass_markers(self._offsets)
                    await self._offsets.commit_if_due()
                if await self._is_done():
                    return
                self._show_progress()
                found = await self._consumer.getmany(timeout_ms=_POLL_MS)
                for place, some in found.items():
                    self._print(place, some)
                if found:
                    self._flush()
                    await asyncio.sleep(
                        0
                    )  # buffered records are returned without a wait, but Ctrl-C and heartbeats need one

    def _is_at_limit(self) -> bool:
        """Return whether to read no further record, and note the limit that ended a search."""
        stop = self._stop
        if stop.max_records is not None and self._shown >= stop.max_records:
            return True
        if stop.max_scanned is not None and self._scanned >= stop.max_scanned:
            self._limit = f"--max-scanned {stop.max_scanned}"
        elif stop.max_bytes is not None and self._bytes >= stop.max_bytes:
            self._limit = f"--max-bytes {bytes_text(stop.max_bytes)}"
        return self._limit is not None

    def note_limit(self) -> None:
        """Say on standard error that a limit ended the search, and where to continue."""
        if self._limit is None:
            return
        left = sum(max(end - self._positions.get(place, end), 0) for place, end in self._ends.items())
        if not left and self._ends:
            return  # all was read
        text = f"stopped by {self._limit}: {self._shown:,} shown of {self._read_text()} read"
        if self._ends:
            text += f"; about {left:,} records were not read"
        if len(self._positions) == 1 and self._offsets is None:
            text += f"; continue with --offset {next(iter(self._positions.values()))}"
        note(text)

    def _read_text(self) -> str:
        return f"{self._scanned:,} records ({bytes_text(self._bytes)})"

    def _show_progress(self) -> None:
        total = sum(max(end - self._starts.get(place, end), 0) for place, end in self._ends.items())
        done = sum(
            min(self._positions[place], self._ends[place]) - start
            for place, start in self._starts.items()
            if place in self._ends
        )
        self._progress.update(done, f"{self._read_text()} read, {self._shown:,} shown", total=total)

    async def _is_done(self) -> bool:
        """Pause partitions that are read to their end, and return whether all are. Without --follow, ends are fixed here."""
        places = self._consumer.assignment()
        if not self._stop.follow:
            if not places and not (places := await self._assigned()):
                note("the group assigned no partitions to this consumer: other members read them all")
                return True
            if new := sorted(place for place in places if place not in self._ends):
                await self.fix_ends(dict(await self._consumer.end_offsets(new)))
        done = []
        for place in places:
            if place in self._ends and (position := await self._position(place)) is not None:
                self._starts.setdefault(place, position)
                self._positions[place] = position
                if position >= self._ends[place]:
                    done.append(place)
        done = [place for place in done if place in self._consumer.assignment()]
        if done and len(done) == len(self._consumer.assignment()):
            return True
        self._consumer.pause(done)
        return False

    async def _assigned(self) -> frozenset[Any]:
        """Wait until the group assigns partitions, and return them; none if it does not within ten seconds."""
        for _ in range(_JOIN_POLLS):
            if self._consumer.assignment():
                break
            await self._consumer.getmany(timeout_ms=_POLL_MS, max_records=0)
        return self._consumer.assignment()

    async def fix_ends(self, ends: dict[Any, int]) -> None:
        """Fix the end offsets of partitions, or with --until their first records at or after that time. Not with --follow."""
        if self._stop.follow:
            return
        if self._stop.until_ms is not None:
            until = await self._consumer.offsets_for_times(dict.fromkeys(ends, self._stop.until_ms))
            ends |= {place: each.offset for place, each in until.items() if each is not None}
        self._ends |= ends

    async def _position(self, place: Any) -> int | None:
        """Return the position of a partition, or None if a rebalance has revoked it."""
        try:
            return await self._consumer.position(place)
        except KafkaError:
            if place in self._consumer.assignment():
                raise
            return None

    async def _pass_markers(self, offsets: GroupOffsets) -> None:
        for place in self._consumer.assignment():
            if place in offsets and (position := await self._position(place)) is not None:
                offsets.passed(place, position)

    def _print(self, place: Any, some: Iterable[Any]) -> None:
        """Print the wanted records of a partition that are before its end, up to a limit."""
        from barnabas.client.records import ConsumerRecord

        until_ms, offsets, show, wanted = self._stop.until_ms, self._offsets, self._show, self._wanted
        end = self._ends.get(place)
        unflushed = 0
        for plain in some:
            record = show.in_clear(ConsumerRecord(*place, *plain))
            if until_ms is not None and record.timestamp >= until_ms and (end is None or record.offset < end):
                end = self._ends[place] = record.offset
            if (end is not None and record.offset >= end) or self._is_at_limit():
                if offsets is not None:
                    offsets.skipped(place)
                return
            self._scanned += 1
            self._bytes += len(plain.key or b"") + len(plain.value or b"")
            self._positions[place] = record.offset + 1
            if wanted is not None and not wanted(record):
                if offsets is not None:
                    offsets.skipped(place)
                continue
            show.add(record)
            self._shown += 1
            if offsets is not None:
                offsets.printed(place, record.offset)
                unflushed += 1
                if unflushed >= _MAX_UNFLUSHED:
                    unflushed = 0
                    self._flush()

    def _flush(self) -> None:
        if self._shown > self._flushed:
            self._progress.clear()
            self._flushed = self._shown
            self._show.flush()
        if self._offsets is not None:
            self._offsets.flushed()
