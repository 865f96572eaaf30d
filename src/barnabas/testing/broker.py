"""A broker for code without an event loop: an `AsyncBroker` in its own thread.

Its one rule: every call waits for its result, with a timeout. It holds no state of the broker itself.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import ssl
import threading
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from barnabas.client.loop_thread import LoopThread
from barnabas.testing.embedded import START_TIMEOUT_S, AsyncBroker, BrokerError
from barnabas.testing.records import Record
from barnabas.testing.security import Security
from barnabas.testing.settings import Setting
from barnabas.testing.share_group import ShareGroup

T = TypeVar("T")

__all__ = ["AsyncBroker", "Broker", "BrokerError", "Record", "Security"]

CALL_TIMEOUT_S = 40.0  # longer than any timeout in the loop

_in_threads: set[Broker] = set()


class Broker:
    """Use `with Broker() as broker` for any client.

    `async with Broker() as broker` returns an `AsyncBroker` instead.
    """

    def __init__(
        self,
        topics: Mapping[str, int] | Iterable[str] = (),
        *,
        config: Mapping[str, Setting] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        metrics: bool = False,
        security: Security | str | None = None,
    ) -> None:
        """Configure a broker.

        `topics` exist when the broker is ready: names, or names with numbers of partitions. Topics that are already in
        `data_dir` are not changed. `config` accepts every config of a server.properties. `data_dir` is kept afterwards;
        without it, a temporary directory is used and removed. Port 0 means a free port. With `metrics`, the broker has
        a `metrics_url`. `security` protects the broker: a `Security`, or only its protocol, such as "SASL_SSL".
        """
        self._broker = AsyncBroker(
            topics, config=config, data_dir=data_dir, host=host, port=port, metrics=metrics, security=security
        )
        self.faults = self._broker.faults
        self._thread: LoopThread | None = None
        self._lock = threading.RLock()  # held while it starts and stops

    # --- properties, valid from the first start until `close`

    @property
    def is_running(self) -> bool:
        return self._broker.is_running

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of the first client listener."""
        return self._broker.bootstrap_servers

    @property
    def host(self) -> str:
        return self._broker.host

    @property
    def port(self) -> int:
        return self._broker.port

    @property
    def listeners(self) -> dict[str, str]:
        """`host:port` of every listener by name, including the controller's."""
        return self._broker.listeners

    @property
    def metrics_url(self) -> str:
        """URL of the metrics in Prometheus' format. /healthz and /readyz are beside it."""
        return self._broker.metrics_url

    @property
    def faults_url(self) -> str:
        """URL where programs in other languages set faults: see docs/testing.md."""
        return self._broker.faults_url

    @property
    def cluster_id(self) -> str:
        return self._broker.cluster_id

    @property
    def data_dir(self) -> Path:
        """The data directory of the broker: the first of its log dirs."""
        return self._broker.data_dir

    def client_config(self, user: str | None = None) -> dict[str, str]:
        """Settings of a client of this broker, in the names of Java's clients and of `barnabas.client`.

        `user` is one of its `Security`; the default is the first.
        """
        return self._broker.client_config(user)

    def librdkafka_config(self, user: str | None = None) -> dict[str, str]:
        """Like `client_config`, in the names of librdkafka, for confluent-kafka."""
        return self._broker.librdkafka_config(user)

    def ssl_context(self, user: str | None = None) -> ssl.SSLContext | None:
        """The TLS context for a client of this broker, for aiokafka and kafka-python; None without TLS."""
        return self._broker.ssl_context(user)

    def __repr__(self) -> str:
        return repr(self._broker).replace("AsyncBroker", "Broker", 1)

    # --- start and stop

    def start(self) -> Self:
        """Start the broker. Returns when it is ready and its topics exist. Raises BrokerError if it runs already."""
        self._broker.refuse_other_process()
        with self._lock:
            self._broker.refuse_second_start()
            self._thread = LoopThread("barnabas-broker")
            self.faults.in_loop = self._thread.run
            _in_threads.add(self)
            try:
                self._thread.call(self._broker.start(), START_TIMEOUT_S + CALL_TIMEOUT_S)
            except BaseException:
                self._end_thread(CALL_TIMEOUT_S)
                raise
        return self

    def stop(self) -> None:
        """Stop cleanly. Data and ports are kept for the next start, until `close`. Does nothing if it is stopped."""
        self._broker.refuse_other_process()
        with self._lock:
            if self._thread is not None:
                try:
                    self._call(self._broker.stop())
                finally:
                    self._end_thread(CALL_TIMEOUT_S)
            elif self._broker.is_running:
                raise BrokerError("the broker runs in an event loop: stop the object that `async with` returned")

    def restart(self) -> None:
        """Stop and start with the same data and ports."""
        self._call(self._broker.restart(), START_TIMEOUT_S + CALL_TIMEOUT_S)

    def close(self) -> None:
        """Stop and remove the temporary directory. Does nothing in a forked process."""
        if self._broker.is_copy:
            return
        with self._lock:
            if self._thread is None and self._broker.is_running:
                raise BrokerError("the broker runs in an event loop: close the object that `async with` returned")
            try:
                self.stop()
            finally:
                self._broker.forget()

    def __enter__(self) -> Self:
        self._broker.enter()
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> AsyncBroker:
        return await self._broker.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._broker.__aexit__(kind, error, trace)

    def _call(self, work: Coroutine[Any, Any, T], timeout_s: float = CALL_TIMEOUT_S) -> T:
        if self._thread is None or self._broker.is_copy:
            work.close()
            self._broker.refuse_other_process()
            raise BrokerError("the broker is not running in a thread: use `with Broker() as broker:`, or call start()")
        return self._thread.call(work, timeout_s)

    def _end_thread(self, timeout_s: float) -> None:
        thread, self._thread = self._thread, None
        self.faults.in_loop = None
        _in_threads.discard(self)
        if thread is not None:
            thread.close(timeout_s)

    # --- topics

    def create_topic(
        self, name: str, partitions: int | None = None, *, config: Mapping[str, Setting] | None = None
    ) -> None:
        """Create a topic. Returns when clients can see it. Raises `barnabas.wire.KafkaError` like the broker."""
        self._call(self._broker.create_topic(name, partitions, config=config))

    def delete_topic(self, name: str) -> None:
        """Delete a topic. Raises `barnabas.wire.KafkaError` like the broker."""
        self._call(self._broker.delete_topic(name))

    def records(self, topic: str, count: int = 0, *, timeout_s: float = 10.0) -> list[Record]:
        """Return the committed records of a topic, by partition and offset, once there are at least `count`.

        Raises TimeoutError if there are not enough in time, and `barnabas.wire.KafkaError` if `count` is 0 and there is
        no such topic.
        """
        return self._call(self._broker.records(topic, count, timeout_s=timeout_s), timeout_s + CALL_TIMEOUT_S)

    def share_group(self, group_id: str) -> ShareGroup:
        """Return what shows which records a share group has acquired, by whom, and how often they were delivered."""
        return self._broker.share_group(group_id).called_through(self._call)


def _close_all() -> None:
    """Close all brokers that were never closed, when the process ends."""
    for broker in list(_in_threads):
        with contextlib.suppress(Exception):
            broker.close()


# atexit is too late for a clean shutdown: the executor that flushes does not accept work any more.
getattr(threading, "_register_atexit", atexit.register)(_close_all)
