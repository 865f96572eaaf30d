"""A producer: writes records in batches to the leaders of their partitions, each once and in order.

>>> import asyncio
>>> from barnabas.testing import Broker
>>> async def main() -> None:
...     async with Broker({"orders": 3}) as broker:
...         async with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
...             written = await producer.send_and_wait("orders", b"two apples", key=b"alice")
...             print(written.topic, written.partition, written.offset)
...             deliveries = [await producer.send("orders", b"%d" % number) for number in range(100)]
...             await producer.flush()
...             print((await deliveries[99]).offset > 0)
>>> asyncio.run(main())
orders 0 0
True

`send` waits for room in the buffer and returns a `Delivery`. Await it to learn where the record was written. Records
are gathered in `producing.accumulator`, sent in `producing.sender`, and retried or failed in `producing.completion`.
The producer's id and the state of its transaction are in `producing.identity`, requests to the transaction coordinator
in `producing.transactions`. APIs: Produce, InitProducerId, and those of transactions.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self

from barnabas.client import settings as client_settings
from barnabas.client.arguments import check_config, checks_arguments
from barnabas.client.cluster import Cluster
from barnabas.client.producing.accumulator import Accumulator
from barnabas.client.producing.batch import Delivery
from barnabas.client.producing.completion import Completion
from barnabas.client.producing.encoding import NO_HEADERS, Encoding
from barnabas.client.producing.identity import Identity, State
from barnabas.client.producing.sender import Sender
from barnabas.client.producing.settings import definitions, producer_settings
from barnabas.client.producing.topic_metadata import wait_for_topic
from barnabas.client.records import (
    BytesLike,
    GroupMetadata,
    HeadersLike,
    OffsetAndMetadata,
    OffsetsLike,
    RecordMetadata,
    TopicPartition,
)
from barnabas.client.settings import ClientSettings
from barnabas.client.state import Topic
from barnabas.wire import ErrorCode, KafkaError

if TYPE_CHECKING:  # without serializers, keys and values are bytes-like; Python 3.11 has no defaults of type variables
    from typing_extensions import TypeVar

    from barnabas.client.producing.transactions import Transactions

    K = TypeVar("K", default=BytesLike)
    V = TypeVar("V", default=BytesLike)
else:
    from typing import TypeVar

    K, V = TypeVar("K"), TypeVar("V")

__all__ = ["Delivery", "GroupMetadata", "OffsetAndMetadata", "Producer", "RecordMetadata", "TopicPartition"]


class Producer(Generic[K, V]):
    """A producer: `async with Producer({"bootstrap.servers": ...}) as producer`, or
    `Producer(cluster, {"linger.ms": 0})` on a `Cluster` that exists already and is not closed with it.

    Keys and values are bytes-like or None. Of another type they must be with a `key_serializer` or a `value_serializer`: a
    function that returns bytes. None is not serialized: it means no key, or a tombstone.

    It belongs to one event loop. Many tasks may use it, but they share one transaction.
    """

    def __init__(
        self,
        config: Cluster | ClientSettings | Mapping[str, object],
        more: Mapping[str, object] | None = None,
        *,
        key_serializer: Callable[[K], BytesLike] | None = None,
        value_serializer: Callable[[V], BytesLike] | None = None,
        random: Callable[[], float] = random.random,
    ) -> None:
        """Settings have the names of Kafka's producer. Raises `ConfigError`, which names the setting."""
        check_config(config, ClientSettings, Cluster)
        self._encoding = Encoding(key_serializer, value_serializer)
        given: dict[str, object] = {**(config if isinstance(config, Mapping) else {}), **(more or {})}
        base = config.settings if isinstance(config, Cluster) else None if isinstance(config, Mapping) else config
        loaded = client_settings.load_over(base, given, definitions())
        self.settings = producer_settings(loaded, given)
        self._owns_cluster = not isinstance(config, Cluster)
        self._cluster = config if isinstance(config, Cluster) else Cluster(loaded)
        self._random = random
        self._backoff = loaded.retry_backoff
        self._identity = Identity(self.settings.transactional_id)
        self._accumulator = Accumulator(self._cluster, self.settings, self._identity, random)
        self._wake = self._accumulator.wake
        self._completion = Completion(self.settings, self._identity, self._accumulator, self._backoff, random)
        self._sender = Sender(
            self._cluster,
            self.settings,
            self._identity,
            self._accumulator,
            self._completion,
            self._transactions,
            self._backoff,
        )
        self._coordinator: Transactions | None = None
        self._is_closed = False

    # --- lifetime

    async def start(self) -> Self:
        """Connect to the cluster. Raises as `Cluster.start`."""
        if self._owns_cluster:
            await self._cluster.start()
        self._sender.start()
        self._accumulator.open()
        return self

    async def close(self, timeout_ms: float | None = None) -> None:
        """Write all waiting records, for at most `timeout_ms`, and close.

        Records that are left fail with `ClosedError`. An open transaction is aborted.
        """
        if self._is_closed:
            return
        if self._identity.state in (State.OPEN, State.FAILED):
            with contextlib.suppress(Exception):
                await self.abort_transaction()
        self._is_closed = True
        self._accumulator.refuse()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await self.flush()
        await self._sender.close()
        self._accumulator.close()
        if self._owns_cluster:
            await self._cluster.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(timeout_ms=None if kind is None else 0)

    # --- records

    async def send(
        self,
        topic: str,
        value: V | None,
        key: K | None = None,
        *,
        partition: int | None = None,
        headers: HeadersLike | None = NO_HEADERS,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Accept a record, and return a `Delivery` that can be awaited for its `RecordMetadata` at any time, or never.

        Waits for room in the buffer and for the metadata of the topic, at most `max.block.ms`. Raises `KafkaError` for
        a record that cannot be sent: its topic does not exist, it is too large, or there is no transaction. Raises
        TypeError if an argument has a wrong type.
        """
        record = self._encoding.encode(topic, value, key, partition, headers, timestamp_ms)
        delivery = self._accumulator.append(*record)
        while delivery is None:
            await self._wait_ready(topic)
            delivery = self._accumulator.append(*record)
        if self._wake.is_set():
            await asyncio.sleep(0)  # let the sender run: a batch may be ready
        return delivery

    async def _wait_ready(self, topic: str) -> None:
        """Wait until the topic is known, or until there is room."""
        if topic in self._cluster.state.topics:
            await self._accumulator.wait_for_room()
        else:
            await self._wait_for_topic(topic)

    async def _wait_for_topic(self, topic: str) -> None:
        await wait_for_topic(self._cluster, topic, self.settings.max_block_ms, self._backoff, self._random)

    async def send_and_wait(
        self,
        topic: str,
        value: V | None,
        key: K | None = None,
        *,
        partition: int | None = None,
        headers: HeadersLike | None = NO_HEADERS,
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Send a record as `send` does, and wait until it is written."""
        return await (
            await self.send(topic, value, key, partition=partition, headers=headers, timestamp_ms=timestamp_ms)
        )

    async def flush(self) -> None:
        """Wait until all records that were sent before are written or have failed."""
        await self._accumulator.flush()

    @checks_arguments
    async def partitions_for(self, topic: str) -> Topic:
        """Return the metadata of a topic. Brokers that create topics automatically create it. Raises `KafkaError`."""
        found = self._cluster.state.topics.get(topic)
        if found is None:
            await self._wait_for_topic(topic)
            found = self._cluster.state.topics[topic]
        return found

    # --- transactions

    async def init_transactions(self) -> None:
        """Take over the transactional id. Another producer that has it is fenced, and its open transaction aborted."""
        await self._transactions().init()

    def begin_transaction(self) -> None:
        """Start a transaction. Consumers with `isolation.level=read_committed` see all of its records or none."""
        self._transactions()
        if self._identity.state is State.NEW:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "init_transactions comes first")
        self._identity.begin()

    async def commit_transaction(self) -> None:
        """Write all waiting records, then commit.

        Raises the error that failed the transaction; then only `abort_transaction` is possible. If no response came,
        the transaction may be committed, and this method may be called again.
        """
        transactions, identity = self._transactions(), self._identity
        identity.check_usable()
        if identity.state not in (State.OPEN, State.COMMITTING):
            text = f"there is nothing to commit: the producer is {identity.state.value}"
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, text)
        await self.flush()
        identity.check_usable()
        identity.go(State.COMMITTING)
        await transactions.finish(committed=True)

    async def abort_transaction(self) -> None:
        """Drop waiting records, and abort the transaction."""
        transactions, identity = self._transactions(), self._identity
        if identity.state is State.FENCED:
            identity.check_usable()
        if identity.state not in (State.OPEN, State.FAILED, State.ABORTING):
            text = f"there is nothing to abort: the producer is {identity.state.value}"
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, text)
        identity.go(State.ABORTING)
        error = KafkaError(ErrorCode.INVALID_TXN_STATE, "the transaction was aborted before the record was written")
        for queue in self._accumulator.queues.values():
            self._completion.drop(queue, error)
        identity.new_partitions.clear()
        await self.flush()
        await transactions.finish(committed=False)

    @checks_arguments
    async def send_offsets_to_transaction(self, offsets: OffsetsLike, group: str | GroupMetadata) -> None:
        """Commit offsets of a group together with the records of this transaction."""
        transactions, identity = self._transactions(), self._identity
        identity.check_usable()
        if identity.state is not State.OPEN:
            text = f"offsets need a transaction; the producer is {identity.state.value}"
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, text)
        if offsets:
            await transactions.send_offsets(
                offsets, group if isinstance(group, GroupMetadata) else GroupMetadata(group)
            )

    def _transactions(self) -> Transactions:
        if self._identity.transactional_id is None:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "transactions need a transactional.id")
        if self._coordinator is None:
            from barnabas.client.producing.transactions import Transactions  # noqa: PLC0415  (few producers use them)

            self._coordinator = Transactions(self._cluster, self.settings, self._identity, self._random)
        return self._coordinator
