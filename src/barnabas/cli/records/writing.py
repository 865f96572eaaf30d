"""The writing loop of `barnabas records produce`, and the count of written records.

Its one rule: written records are counted, even if a later one fails.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.records.input import NewRecord
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, columns, note
from barnabas.cli.terminal.slow_input import beside, may_be_slow
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.producer import Producer, RecordMetadata
    from barnabas.client.state import ClusterState

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
    *,
    may_create: bool = True,
) -> None:
    """Produce the records, and count them in `written`. Without `may_create`, a topic that does not exist is a Failure."""
    from barnabas.client.producer import Producer
    from barnabas.client.producing.settings import definitions

    rest, settings = split_settings(connection, definitions())
    settings |= {name: value for name, value in own.items() if value is not None}

    async def work(cluster: Cluster) -> None:
        async with Producer(cluster, settings) as producer:
            if "transactional.id" in settings:
                await producer.init_transactions()
                producer.begin_transaction()
            await _write(producer, topic, wanted, written, lambda: _note_creation(cluster, topic, may_create))
            if "transactional.id" in settings and written.failure is None:
                await producer.commit_transaction()

    run(rest, work, is_long=True)


async def _note_creation(cluster: Cluster, topic: str, may_create: bool) -> None:
    """Say on standard error that the first record creates the topic, and with how many partitions. Raises Failure.

    Without a permission to describe settings, the number is not shown.
    """
    state = await cluster.metadata([topic])
    if state.errors.get(topic) is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return
    missing = f"topic {topic} does not exist"
    if not may_create:
        advice = f"create it with: barnabas topics create {topic}"
        raise Failure("UNKNOWN_TOPIC_OR_PARTITION: it does not exist", resource=f"topic {topic}", advice=advice)
    creates, partitions, replicas = await _creation_settings(cluster, state)
    if creates == "false":
        note(f"{missing}, and the cluster does not create topics (auto.create.topics.enable=false): waiting for it")
    elif creates is None:
        note(f"{missing}: the broker creates it, if its auto.create.topics.enable is true")
    else:
        count = f"{partitions} partition{'' if partitions == '1' else 's'}"
        note(f"{missing}: the broker creates it with {count} and replication factor {replicas}; see --no-create")


async def _creation_settings(cluster: Cluster, state: ClusterState) -> tuple[str | None, str | None, str | None]:
    """Return the broker settings for automatic creation of topics; None if they cannot be read."""
    from barnabas.client.admin.config_values import ConfigResource
    from barnabas.client.admin.configs import Configs

    names = ("auto.create.topics.enable", "num.partitions", "default.replication.factor")
    resource = ConfigResource.broker(min(state.brokers, default=0))
    try:
        found = (await Configs(cluster).describe_configs([resource], keys=names))[resource]
    except (KafkaError, OSError):
        return None, None, None
    if isinstance(found, KafkaError):
        return None, None, None
    first, second, third = (found[name].value if name in found else None for name in names)
    return first, second, third


async def _write(
    producer: Producer,
    topic: str,
    wanted: Iterable[NewRecord],
    written: Written,
    before_first: Callable[[], Awaitable[None]],
) -> None:
    deliveries: list[Awaitable[RecordMetadata]] = []
    is_first = True
    try:
        async for record in beside(iter(wanted), is_slow=may_be_slow()):
            if is_first:
                is_first = False
                await before_first()
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
