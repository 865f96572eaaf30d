"""The writing loop of `barnabas records produce`, and the count of written records.

Its one rule: written records are counted, even if a later one fails.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.records.input import NewRecord
from barnabas.cli.terminal.output import Output, columns
from barnabas.cli.terminal.slow_input import beside, may_be_slow
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.producer import Producer, RecordMetadata

_SETTLE_EVERY = 10_000


class Written:
    """The number of records and the offsets written in each partition."""

    def __init__(self) -> None:
        self.partitions: dict[int, tuple[int, int, int]] = {}
        self.count = 0
        self.failure: Exception | None = None
        self.failed = 0

    def add(self, found: RecordMetadata) -> None:
        self.count += 1
        records, first, last = self.partitions.get(found.partition, (0, found.offset, found.offset))
        self.partitions[found.partition] = (records + 1, min(first, found.offset), max(last, found.offset))

    def show(self, output: Output, topic: str) -> None:
        if not self.partitions:
            return
        shown = columns("topic", "partition", "records", "firstOffset", "lastOffset")
        rows = (
            {"topic": topic, "partition": partition, "records": records, "firstOffset": first, "lastOffset": last}
            for partition, (records, first, last) in sorted(self.partitions.items())
        )
        output.rows(shown, rows)


def produce(
    connection: Connection,
    own: Mapping[str, str | None],
    topic: str,
    wanted: Iterable[NewRecord],
    written: Written,
) -> None:
    from barnabas.client.producer import Producer
    from barnabas.client.producing.settings import definitions

    rest, settings = split_settings(connection, definitions())
    settings |= {name: value for name, value in own.items() if value is not None}

    async def work(cluster: Cluster) -> None:
        async with Producer(cluster, settings) as producer:
            if "transactional.id" in settings:
                await producer.init_transactions()
                producer.begin_transaction()
            await _write(producer, topic, wanted, written)
            if "transactional.id" in settings and written.failure is None:
                await producer.commit_transaction()

    run(rest, work, is_long=True)


async def _write(producer: Producer, topic: str, wanted: Iterable[NewRecord], written: Written) -> None:
    deliveries: list[Awaitable[RecordMetadata]] = []
    try:
        async for record in beside(iter(wanted), is_slow=may_be_slow()):
            deliveries.append(
                await producer.send(
                    topic,
                    record.value,
                    record.key,
                    partition=record.partition,
                    headers=record.headers,
                    timestamp_ms=record.timestamp_ms,
                )
            )
            if len(deliveries) >= _SETTLE_EVERY:
                await _settle(producer, deliveries, written)
    finally:
        await _settle(producer, deliveries, written)


async def _settle(producer: Producer, deliveries: list[Awaitable[RecordMetadata]], written: Written) -> None:
    await producer.flush()
    for delivery in deliveries:
        try:
            written.add(await delivery)
        except (KafkaError, OSError) as error:
            written.failed += 1
            written.failure = written.failure or error
    deliveries.clear()


def split_settings(connection: Connection, known: Mapping[str, object]) -> tuple[Connection, dict[str, str]]:
    """Split settings into those of every client, and those of this kind of client only."""
    own = {name: setting.value for name, setting in connection.settings.items() if name in known}
    return Connection({name: each for name, each in connection.settings.items() if name not in known}), own
