"""The reading loop of `barnabas records consume`.

Its one rule: without --follow, the end offsets are fixed at the beginning. So reading ends even if producers keep writing.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.records.output import Filter, row_of
from barnabas.cli.records.writing import split_settings
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, columns
from barnabas.operations.partitions import Selection, find_partitions

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.consumer import Consumer, ConsumerRecord

    Place = tuple[str, int]

_POLL_MS = 500


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
    """Output of records, as rows or as bare values."""

    def __init__(self, output: Output, key_form: str, value_form: str, values_only: bool) -> None:
        self._output, self._key_form, self._value_form, self._values_only = output, key_form, value_form, values_only
        self._stack = ExitStack()
        self._rows: Any = None

    def __enter__(self) -> Show:
        if not self._values_only:
            shown = columns("topic", "partition", "offset", "timestamp", "key", "value", "headers")
            self._rows = self._stack.enter_context(self._output.table(shown))
        return self

    def __exit__(self, *args: Any) -> None:
        self._stack.__exit__(*args)

    def add(self, record: ConsumerRecord) -> None:
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
            if group is not None:
                await consumer.subscribe(dict.fromkeys(topic for topic, _ in keys))
                ends = None if stop.follow else await _joined(consumer)
            else:
                consumer.assign(keys)
                ends = await _placed(consumer, keys, begin, stop)
            with show:
                await _read(consumer, ends, stop, wanted, show)
            if group is not None:
                await consumer.commit()

    run(rest, work, is_long=True)


async def _joined(consumer: Consumer) -> dict[Any, int]:
    """Wait for the assignment, and return the end offsets of its partitions. Empty if the group assigns none."""
    for _ in range(20):
        if consumer.assignment():
            break
        await consumer.getmany(timeout_ms=_POLL_MS, max_records=0)
    return dict(await consumer.end_offsets(sorted(consumer.assignment())))


async def _placed(consumer: Consumer, keys: list[Place], begin: Begin, stop: Stop) -> dict[Any, int] | None:
    """Seek to the begin position, and return the end offsets, or None with `follow`. Raises Failure."""
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
    if stop.until_ms is not None and not stop.follow:
        until = await consumer.offsets_for_times(dict.fromkeys(keys, stop.until_ms))
        ends |= {place: each.offset for place, each in until.items() if each is not None}
    return None if stop.follow else ends


async def _read(consumer: Consumer, ends: dict[Any, int] | None, stop: Stop, wanted: Filter, show: Show) -> None:
    from barnabas.client.consumer import ConsumerRecord

    left = stop.max_records
    while left is None or left > 0:
        if ends is not None:
            done = [place for place in consumer.assignment() if await consumer.position(place) >= ends.get(place, 0)]
            if len(done) == len(consumer.assignment()):
                return
            consumer.pause(done)
        found = await consumer.getmany(timeout_ms=_POLL_MS)
        for (topic, partition), some in found.items():
            end = None if ends is None else ends.get((topic, partition), 0)
            for plain in some:
                record = ConsumerRecord(topic, partition, *plain)
                if (end is not None and record.offset >= end) or not wanted(record):
                    continue
                if stop.until_ms is not None and record.timestamp >= stop.until_ms:
                    continue
                show.add(record)
                if left is not None:
                    left -= 1
                    if left == 0:
                        consumer.seek((topic, partition), record.offset + 1)
                        return
        if found:
            show.flush()
