"""A broker for code without an event loop: an `AsyncBroker` in a thread of its own.

Its one rule: every call waits for what it asked for, but not for ever. It holds no state of the broker itself.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from barnabas.testing.embedded import START_TIMEOUT_S, AsyncBroker, BrokerError
from barnabas.testing.loop_thread import LoopThread
from barnabas.testing.records import Record
from barnabas.testing.settings import Setting

T = TypeVar("T")

__all__ = ["AsyncBroker", "Broker", "BrokerError", "Record"]

CALL_TIMEOUT_S = 40.0  # longer than whatever is waited for in the loop

_in_threads: set[Broker] = set()


class Broker:
    """`with Broker() as broker` for any client; `async with Broker() as broker` gives an `AsyncBroker` instead."""

    def __init__(
        self,
        topics: Mapping[str, int] | Iterable[str] = (),
        *,
        config: Mapping[str, Setting] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        """`topics` exist when the broker is ready: names, or names and numbers of partitions; those that are in `data_dir`
        already stay as they are. `config` takes every setting of a server.properties. `data_dir` is kept afterwards;
        without it there is a temporary directory, which is not. Port 0 is a free one.
        """
        self._broker = AsyncBroker(topics, config=config, data_dir=data_dir, host=host, port=port)
        self._thread: LoopThread | None = None

    # --- facts, from the first start until `close`

    @property
    def is_running(self) -> bool:
        return self._broker.is_running

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of the first listener for clients."""
        return self._broker.bootstrap_servers

    @property
    def host(self) -> str:
        return self._broker.host

    @property
    def port(self) -> int:
        return self._broker.port

    @property
    def listeners(self) -> dict[str, str]:
        """`host:port` of every listener by its name, that of the controller among them."""
        return self._broker.listeners

    @property
    def cluster_id(self) -> str:
        return self._broker.cluster_id

    @property
    def data_dir(self) -> Path:
        """Where the broker keeps its data: the first of its log dirs."""
        return self._broker.data_dir

    def __repr__(self) -> str:
        return repr(self._broker).replace("AsyncBroker", "Broker", 1)

    # --- life

    def start(self) -> Self:
        """Returns when the broker answers and its topics exist."""
        self._broker.refuse_other_process()
        if self._broker.is_running:
            raise BrokerError("the broker runs already; make a second Broker for a second one")
        self._thread = LoopThread("barnabas-broker")
        _in_threads.add(self)
        try:
            self._thread.call(self._broker.start(), START_TIMEOUT_S + CALL_TIMEOUT_S)
        except BaseException:
            self._end_thread(CALL_TIMEOUT_S)
            raise
        return self

    def stop(self) -> None:
        """Stop cleanly. Its data, and its ports for the next start, are kept until `close`."""
        self._broker.refuse_other_process()
        if self._thread is not None:
            try:
                self._call(self._broker.stop())
            finally:
                self._end_thread(CALL_TIMEOUT_S)

    def restart(self) -> None:
        """Stop and start: same data, same ports."""
        self._call(self._broker.restart(), START_TIMEOUT_S + CALL_TIMEOUT_S)

    def close(self) -> None:
        """Stop, and remove the temporary directory. In a forked process, nothing happens."""
        if self._thread is None and self._broker.is_running:
            raise BrokerError("the broker runs in an event loop: close what `async with` gave")
        if not self._broker.is_copy:
            try:
                self.stop()
            finally:
                self._broker.forget()

    def __enter__(self) -> Self:
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
            raise BrokerError("the broker does not run in a thread: use `with Broker() as broker:`, or call start()")
        return self._thread.call(work, timeout_s)

    def _end_thread(self, timeout_s: float) -> None:
        thread, self._thread = self._thread, None
        _in_threads.discard(self)
        if thread is not None:
            thread.close(timeout_s)

    # --- topics

    def create_topic(
        self, name: str, partitions: int | None = None, *, config: Mapping[str, Setting] | None = None
    ) -> None:
        """Returns when clients can see it. Raises `barnabas.wire.KafkaError`, as the broker would answer."""
        self._call(self._broker.create_topic(name, partitions, config=config))

    def delete_topic(self, name: str) -> None:
        """Raises `barnabas.wire.KafkaError`, as the broker would answer."""
        self._call(self._broker.delete_topic(name))

    def records(self, topic: str, count: int = 0, *, timeout_s: float = 10.0) -> list[Record]:
        """What is committed in a topic, by partition and offset, as soon as there are at least `count` of them.

        Raises TimeoutError if they do not come, and `barnabas.wire.KafkaError` if none are asked for and there is no topic.
        """
        return self._call(self._broker.records(topic, count, timeout_s=timeout_s), timeout_s + CALL_TIMEOUT_S)


def _close_all() -> None:
    """Those that were started and never stopped, when the process ends."""
    for broker in list(_in_threads):
        with contextlib.suppress(Exception):
            broker.close()


# atexit is too late for a clean stop: by then the executor that flushes takes no more work.
getattr(threading, "_register_atexit", atexit.register)(_close_all)
