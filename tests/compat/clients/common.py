"""What every client can do, in one shape: Kafka's own names of settings, values that compare, errors by their code.

Its one rule: an adapter says what was asked to the client and what the client answered; it retries and decides nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

WAIT_S = 60.0  # for what takes a moment on an idle machine
POLL_S = 0.02
BEGINNING, END = -2, -1

Place = tuple[str, int]  # a topic and a partition
Placed = tuple[int, int]  # a partition and the offset that a record got there
Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """A record to send, or one that was received: then it has an offset."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    topic: str = ""
    partition: int | None = None
    offset: int = -1
    is_log_append_time: bool = False

    @property
    def content(self) -> tuple[bytes | None, bytes | None, Headers, int | None]:
        return self.key, self.value, self.headers, self.timestamp_ms


class RefusedError(Exception):
    """What the node said no to; `code` is the protocol's. Clients have errors of their own for who is fenced."""

    def __init__(self, code: int, text: str, *, is_fenced: bool = False, is_fatal: bool = False) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.is_fenced = is_fenced
        self.is_fatal = is_fatal


class Producer(Protocol):
    """Sends are acknowledged when `flush` returns, which raises what the node refused."""

    def send(self, topic: str, record: Record) -> None: ...
    def flush(self) -> list[Placed]: ...
    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def send_offsets(self, offsets: Mapping[Place, int], consumer: Any) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...


class Consumer(Protocol):
    """`events` are the calls of its rebalance listener: what was done, with which partitions."""

    events: list[tuple[str, frozenset[Place]]]

    def subscribe(self, topics: Sequence[str] = (), pattern: str | None = None) -> None: ...
    def assign(self, positions: Mapping[Place, int]) -> None: ...
    def poll(self, timeout_s: float) -> list[Record]: ...
    def assignment(self) -> set[Place]: ...
    def commit(self, offsets: Mapping[Place, int]) -> None: ...
    def committed(self, places: Iterable[Place]) -> dict[Place, int | None]: ...
    def seek(self, place: Place, offset: int) -> None: ...
    def is_at(self, place: Place, offset: int) -> bool: ...
    def pause(self, places: Iterable[Place]) -> None: ...
    def resume(self, places: Iterable[Place]) -> None: ...
    def ends(self, places: Iterable[Place]) -> dict[Place, tuple[int, int]]: ...
    def offsets_for_times(self, times_ms: Mapping[Place, int]) -> dict[Place, int | None]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...


class Client(Protocol):
    """One library. Settings are named as Kafka names them."""

    name: str
    codecs: frozenset[str]
    sends_null_headers: bool
    sends_null_records: bool  # neither key nor value

    def producer(self, bootstrap: str, settings: Mapping[str, Any] | None = None) -> Producer: ...
    def consumer(self, bootstrap: str, settings: Mapping[str, Any] | None = None) -> Consumer: ...


class Closing:
    """`with` closes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        raise NotImplementedError


def underscored(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Kafka's names as keyword arguments."""
    return {name.replace(".", "_"): value for name, value in (settings or {}).items()}


def wait_until(condition: Callable[[], Any], meanwhile: Callable[[], Any], what: str = "it") -> None:
    """Do something again and again until a condition holds."""
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, f"{what} did not happen within {WAIT_S:g} s"
        meanwhile()


def take(consumer: Consumer, count: int) -> list[Record]:
    """Poll until there are so many records, or more."""
    records: list[Record] = []
    wait_until(lambda: len(records) >= count, lambda: records.extend(consumer.poll(POLL_S)), f"{count} records")
    return records


def poll_until(consumers: Sequence[Consumer], condition: Callable[[], Any], what: str = "it") -> list[list[Record]]:
    """Let consumers live, each in its turn, until a condition holds: what each of them received meanwhile."""
    received: list[list[Record]] = [[] for _ in consumers]

    def poll() -> None:
        for consumer, records in zip(consumers, received, strict=True):
            records.extend(consumer.poll(POLL_S))

    wait_until(condition, poll, what)
    return received


def sent(client: Client, bootstrap: str, topic: str, records: Iterable[Record], **settings: Any) -> list[Placed]:
    """Send records with a producer of their own: where each has gone."""
    with client.producer(bootstrap, dotted(settings)) as producer:
        for record in records:
            producer.send(topic, record)
        return producer.flush()


def received(
    client: Client, bootstrap: str, topic: str, count: int, *, partitions: int = 1, **settings: Any
) -> list[Record]:
    """The first records of a topic, read with a consumer of their own."""
    with client.consumer(bootstrap, dotted(settings)) as consumer:
        consumer.assign({(topic, partition): 0 for partition in range(partitions)})
        return take(consumer, count)


def dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments as Kafka's names."""
    return {name.replace("_", "."): value for name, value in settings.items()}
