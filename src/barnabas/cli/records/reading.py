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
from barnabas.cli.records.output import Filter, Shown, row_of
from barnabas.cli.records.writing import split_settings
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, columns, note
from barnabas.cli.terminal.watch import interrupted
from barnabas.operations.partitions import Selection, find_partitions
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
    """The condition to end: after a number of records, at a time, or never (`follow`)."""

    max_records: int | None
    follow: bool
    until_ms: int | None


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
    ) -> None:
        self._output, self._key_form, self._value_form, self._values_only = output, key_form, value_form, values_only
        self._decode = decode
        self._stack = ExitStack()
        self._rows: Any = None

    def __enter__(self) -> Show:
        if not self._values_only:
            kind = ("type",) if self._decode is not None else ()
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
    wanted: Filter,
    show: Show,
) -> None:
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
                with show:
                    try:
                        if group is None:
                            await reading.fix_ends(await _place(consumer, keys, begin))
                        await reading.run()
                    except asyncio.CancelledError:  # Ctrl-C: what was read is shown and committed
                        is_interrupted = True
                if offsets is not None:
                    offsets.flushed()
            finally:
                if offsets is not None:
                    await offsets.commit()
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
        self, consumer: Consumer, stop: Stop, wanted: Filter, show: Show, offsets: GroupOffsets | None
    ) -> None:
        self._consumer, self._stop, self._wanted, self._show, self._offsets = consumer, stop, wanted, show, offsets
        self._left = stop.max_records
        self._ends: dict[Any, int] = {}

    async def run(self) -> None:
        while self._left is None or self._left > 0:
            if self._offsets is not None:
                await self._pass_markers(self._offsets)
                await self._offsets.commit_if_due()
            if await self._is_done():
                return
            found = await self._consumer.getmany(timeout_ms=_POLL_MS)
            for place, some in found.items():
                self._print(place, some)
            if found:
                self._flush()
                await asyncio.sleep(
                    0
                )  # buffered records are returned without a wait, but Ctrl-C and heartbeats need one

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
            if place in self._ends:
                position = await self._position(place)
                if position is not None and position >= self._ends[place]:
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
        """Print the wanted records of a partition that are before its end."""
        from barnabas.client.records import ConsumerRecord

        until_ms, offsets, show = self._stop.until_ms, self._offsets, self._show
        end = self._ends.get(place)
        unflushed = 0
        for plain in some:
            record = show.in_clear(ConsumerRecord(*place, *plain))
            if until_ms is not None and record.timestamp >= until_ms and (end is None or record.offset < end):
                end = self._ends[place] = record.offset
            is_after = end is not None and record.offset >= end
            if is_after or self._left == 0 or not self._wanted(record):
                if offsets is not None:
                    offsets.skipped(place)
                if is_after or self._left == 0:
                    return
                continue
            show.add(record)
            if self._left is not None:
                self._left -= 1
            if offsets is not None:
                offsets.printed(place, record.offset)
                unflushed += 1
                if unflushed >= _MAX_UNFLUSHED:
                    unflushed = 0
                    self._flush()

    def _flush(self) -> None:
        self._show.flush()
        if self._offsets is not None:
            self._offsets.flushed()
