"""Producers and consumers of the drop-ins, from settings with the names of Kafka's clients."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.profiles import Connection, Setting
from barnabas.config import properties

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.consumer import Consumer
    from barnabas.client.producer import Producer
    from barnabas.client.share_consumer import ShareConsumer

T = TypeVar("T")


def load_settings(path: str | None) -> dict[str, str]:
    """Read a properties file. Raises OSError."""
    return {} if path is None else properties.loads(Path(path).read_text(encoding="latin-1"))


def _connection(settings: Mapping[str, str], own: Mapping[str, str]) -> Connection:
    return Connection({name: Setting(value, name) for name, value in settings.items() if name not in own})


def run_producer(settings: Mapping[str, str], work: Callable[[Cluster, Producer], Coroutine[Any, Any, T]]) -> T:
    """Run `work` with a producer and its cluster, and close them. Raises Failure."""
    from barnabas.client.producer import Producer
    from barnabas.client.producing.settings import definitions

    own = {name: value for name, value in settings.items() if name in definitions()}
    if "enable.idempotence" not in own and own.get("acks", "all") not in ("all", "-1"):
        own["enable.idempotence"] = "false"

    async def main(cluster: Cluster) -> T:
        async with Producer(cluster, own) as producer:
            return await work(cluster, producer)

    return run(_connection(settings, own), main, is_long=True)


def run_share_consumer(settings: Mapping[str, str], work: Callable[[ShareConsumer], Coroutine[Any, Any, T]]) -> T:
    """Run `work` with a share consumer, and close it. Raises Failure."""
    from barnabas.client.share_consumer import ShareConsumer
    from barnabas.client.share_consuming.settings import definitions

    own = {name: value for name, value in settings.items() if name in definitions()}

    async def main(cluster: Cluster) -> T:
        async with ShareConsumer(cluster, own) as consumer:
            return await work(consumer)

    return run(_connection(settings, own), main, is_long=True)


def run_consumer(settings: Mapping[str, str], work: Callable[[Consumer], Coroutine[Any, Any, T]]) -> T:
    """Run `work` with a consumer, and close it. Raises Failure."""
    from barnabas.client.consumer import Consumer
    from barnabas.client.consuming.settings import definitions

    own = {name: value for name, value in settings.items() if name in definitions()}

    async def main(cluster: Cluster) -> T:
        async with Consumer(cluster, own) as consumer:
            return await work(consumer)

    return run(_connection(settings, own), main, is_long=True)
