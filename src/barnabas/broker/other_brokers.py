"""Connections to other brokers: to the inter-broker listener that the metadata has for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.broker.own_connections import OwnConnections
from barnabas.client.connection import Connection
from barnabas.metadata.image import MetadataImage
from barnabas.wire import ErrorCode, KafkaError, Message


class OtherBrokers:
    """Opens connections to other brokers, and keeps one to each for short requests."""

    def __init__(
        self, node_id: int, image: Callable[[], MetadataImage], listener_name: str, connections: OwnConnections
    ) -> None:
        self._client_id = f"broker-{node_id}"
        self._image = image
        self._listener_name = listener_name
        self._connections = connections
        self._open: dict[tuple[int, str, int], Connection] = {}

    async def connect(self, broker_id: int, client_id: str) -> Connection:
        """Return a new connection. Raises KafkaError if the broker is not registered, and OSError."""
        host, port = self._address(broker_id)
        return await self._connections.open(host, port, client_id)

    async def ask(self, broker_id: int, request: Message) -> Any:
        """Send a request in the newest common version. Raises KafkaError, OSError or TimeoutError."""
        key = broker_id, *self._address(broker_id)
        found = self._open.get(key)
        if found is None or not found.is_open:
            found = self._open[key] = await self._connections.open_negotiated(*key[1:], self._client_id)
        for old in [each for each in self._open if each[0] == broker_id and each != key]:
            self._open.pop(old).close()  # the broker has moved to another address
        return await found.call(request)

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    def _address(self, broker_id: int) -> tuple[str, int]:
        broker = self._image().brokers.get(broker_id)
        endpoint = None if broker is None else broker.listeners.get(self._listener_name)
        if endpoint is None:
            text = f"broker {broker_id} is not registered with the listener {self._listener_name}"
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, text)
        return endpoint.host, endpoint.port
