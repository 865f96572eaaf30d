"""A blocking producer. `send` returns a future, so that many records are sent at once.

>>> from barnabas.client import sync
>>> from barnabas.testing import Broker
>>> with Broker({"orders": 1}) as broker, sync.Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
...     futures = [producer.send("orders", b"%d" % number) for number in range(100)]
...     producer.flush()
...     print(futures[99].result().offset)
99
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Generic

from barnabas.client.producer import K, V
from barnabas.client.producer import Producer as AsyncProducer
from barnabas.client.producing.encoding import NO_HEADERS, Encoding
from barnabas.client.producing.settings import ProducerSettings
from barnabas.client.records import BytesLike, GroupMetadata, HeadersLike, OffsetsLike, RecordMetadata
from barnabas.client.settings import ClientSettings
from barnabas.client.state import Topic
from barnabas.client.sync.blocking import Blocking
from barnabas.client.sync.outbox import Outbox


class Producer(Blocking[AsyncProducer[Any, Any]], Generic[K, V]):
    """A producer for code without an event loop: `with Producer({"bootstrap.servers": ...}) as producer`.

    Keys and values are bytes-like or None. Of another type they must be with a `key_serializer` or a `value_serializer`: a
    function that returns bytes. None is not serialized: it means no key, or a tombstone.

    Many threads may use it, but they share one transaction.
    """

    def __init__(
        self,
        config: ClientSettings | Mapping[str, object],
        more: Mapping[str, object] | None = None,
        *,
        key_serializer: Callable[[K], BytesLike] | None = None,
        value_serializer: Callable[[V], BytesLike] | None = None,
    ) -> None:
        """Connect to the cluster. Settings have the names of Kafka's producer.

        Raises `ConfigError`, which names the setting, and as `Cluster.start`.
        """
        self._encoding = Encoding(key_serializer, value_serializer)
        super().__init__(lambda: AsyncProducer(config, more))
        self._outbox = Outbox(self._thread, self._client)

    @property
    def settings(self) -> ProducerSettings:
        """The settings of the producer."""
        return self._client.settings

    def close(self, timeout_ms: float | None = None) -> None:
        """Write all waiting records, for at most `timeout_ms`, and close.

        Records that are left fail with `ClosedError`. An open transaction is aborted.
        """
        self._close(self._write_and_close(timeout_ms))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(timeout_ms=None if kind is None else 0)

    # --- records

    def send(
        self,
        topic: str,
        value: V | None,
        key: K | None = None,
        *,
        partition: int | None = None,
        headers: HeadersLike | None = NO_HEADERS,
        timestamp_ms: int | None = None,
    ) -> Future[RecordMetadata]:
        """Send a record, and return a future of its `RecordMetadata`. `flush` and `close` wait for all of them.

        The future has the error if the record was not written: a `KafkaError` if its topic does not exist, it is too
        large, or there is no transaction. Callbacks of the future run in the thread of the producer: they may call
        `send`, but must not block. Waits for room in the buffer, at most `max.block.ms`; then raises `CallTimeoutError`.
        Raises TypeError if an argument has a wrong type.
        """
        record = self._encoding.encode(topic, value, key, partition, headers, timestamp_ms)
        if self._is_closed or self._pid != os.getpid():
            self._check_usable()
        return self._outbox.put(record)

    def send_and_wait(
        self,
        topic: str,
        value: V | None,
        key: K | None = None,
        *,
        partition: int | None = None,
        headers: HeadersLike | None = NO_HEADERS,
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Send a record, and wait until it is written. Raises the error if it was not written."""
        self._check_usable()
        return self.send(topic, value, key, partition=partition, headers=headers, timestamp_ms=timestamp_ms).result()

    def flush(self) -> None:
        """Wait until all records that were sent before are written or have failed. The futures have their errors."""
        self._wait(self._after_records(self._client.flush))

    def partitions_for(self, topic: str) -> Topic:
        """Return the metadata of a topic. Brokers that create topics automatically create it. Raises `KafkaError`."""
        return self._wait(self._client.partitions_for(topic))

    # --- transactions

    def init_transactions(self) -> None:
        """Take over the transactional id. Another producer that has it is fenced, and its open transaction aborted."""
        self._wait(self._after_records(self._client.init_transactions))

    def begin_transaction(self) -> None:
        """Start a transaction. Consumers with `isolation.level=read_committed` see all of its records or none."""

        async def begin() -> None:
            self._client.begin_transaction()

        self._wait(self._after_records(begin))

    def commit_transaction(self) -> None:
        """Write all waiting records, then commit.

        Raises the error that failed the transaction; then only `abort_transaction` is possible. If no response came,
        the transaction may be committed, and this method may be called again.
        """
        self._wait(self._after_records(self._client.commit_transaction))

    def abort_transaction(self) -> None:
        """Drop waiting records, and abort the transaction."""
        self._wait(self._after_records(self._client.abort_transaction))

    def send_offsets_to_transaction(self, offsets: OffsetsLike, group: str | GroupMetadata) -> None:
        """Commit offsets of a group together with the records of this transaction."""
        self._wait(self._client.send_offsets_to_transaction(offsets, group))

    # --- in the loop

    async def _after_records(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do something when the producer has all records that were sent before."""
        await self._outbox.emptied()
        await work()

    async def _write_and_close(self, timeout_ms: float | None) -> None:
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await self._outbox.emptied()
        await self._outbox.close()
        spent_ms = (loop.time() - started_s) * 1000
        await self._client.close(None if timeout_ms is None else max(timeout_ms - spent_ms, 0))
