"""The channel to the active controller: finds it, sends it this node's requests, and finds the next one after an election.

Its one rule: the caller never sees an election. A request that meets a dead connection, an unknown controller or
NOT_CONTROLLER is sent again, to whichever controller is active by then, until its time is over. So is one that waits for
a controller that stands still while another one is elected. So a request may be carried out twice, as in Kafka. All
requests share one connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.broker.counters import has_error
from barnabas.broker.own_connections import OwnConnections
from barnabas.client.connection import Connection
from barnabas.client.errors import TlsError
from barnabas.slices import in_slices
from barnabas.wire import ErrorCode, Message

_log = logging.getLogger(__name__)

RETRY_S = 0.05
DEFAULT_TIMEOUT_MS = 60_000
EXCHANGE_TIMEOUT_S = 30.0  # until a connection without an answer is given up, as request.timeout.ms in Kafka
LOOK_AGAIN_S = 0.1  # while a request waits for its answer: whether another controller is active by now


class ControllerAddress(NamedTuple):
    """Where the active controller is. `host_name` is expected in its certificate, if it is not the host."""

    node_id: int
    host: str
    port: int
    host_name: str | None = None


class ControllerChannel:
    """The connection of one node to the active controller. `find` returns its address, or None while it is unknown.

    A controller that does not answer within `exchange_timeout_s` is connected to again.
    """

    def __init__(
        self,
        client_id: str,
        find: Callable[[], ControllerAddress | None],
        connections: OwnConnections,
        exchange_timeout_s: float = EXCHANGE_TIMEOUT_S,
    ) -> None:
        self._client_id = client_id
        self._find = find
        self._connections = connections
        self._exchange_timeout_s = exchange_timeout_s
        self._connection: Connection | None = None
        self._address: ControllerAddress | None = None
        self._opening = asyncio.Lock()
        self._is_closed = False

    async def call(self, request: Message, version: int, *, timeout_ms: float = DEFAULT_TIMEOUT_MS) -> Any:
        """Return the active controller's response, with whatever error it has.

        Raises TimeoutError if no controller answered in time. Raises TlsError and AuthenticationError at once: another
        attempt would fail too.
        """
        reason = "no controller is known to be active"
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while True:
                    try:
                        response = await self._attempt(request, version)
                        if response is not None:
                            return response
                    except TlsError:
                        raise
                    except OSError as error:
                        reason = str(error)
                        _log.debug("%s did not reach the active controller: %s", type(request).__name__, error)
                    await asyncio.sleep(RETRY_S)
        except TimeoutError:
            raise TimeoutError(f"no active controller answered within {timeout_ms:g} ms: {reason}") from None

    async def _attempt(self, request: Message, version: int) -> Message | None:
        """Send the request once. Return None if there is no active controller, or it is another one by now."""
        first = self._find()
        answer = asyncio.ensure_future(self._exchange(request, version))
        try:
            while not answer.done():
                await asyncio.wait([answer], timeout=LOOK_AGAIN_S)
                now = self._find()
                if not answer.done() and now not in (None, self._address or first):
                    if self._connection is not None:
                        self._drop(self._connection)
                    return None
            return answer.result()
        finally:
            answer.cancel()

    async def _exchange(self, request: Message, version: int) -> Message | None:
        connection = await self._connect()
        if connection is None:
            return None
        try:
            async with asyncio.timeout(self._exchange_timeout_s):
                response: Message = await connection.call(request, version)
        except TimeoutError:
            self._drop(connection)
            raise OSError(f"{connection.address} did not answer within {self._exchange_timeout_s:g} s") from None
        if await in_slices(has_error(response, ErrorCode.NOT_CONTROLLER)):
            self._drop(connection)
            return None
        return response

    async def _connect(self) -> Connection | None:
        async with self._opening:
            address = self._find()
            connection = self._connection
            if connection is not None and (not connection.is_open or address not in (None, self._address)):
                self._drop(connection)
            elif connection is not None:
                return connection
            if address is None or self._is_closed:
                return None
            opened = await self._connections.open(
                address.host, address.port, self._client_id, host_name=address.host_name
            )
            self._connection, self._address = opened, address
            return opened

    def _drop(self, connection: Connection) -> None:
        connection.close()
        if self._connection is connection:
            self._connection = self._address = None

    def close(self) -> None:
        self._is_closed = True
        if self._connection is not None:
            self._drop(self._connection)
