"""The connection to one node, made on first use and again after it was lost, with a backoff.

All callers that need it while it is being made wait for the same attempt; cancelling one of them does not end it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from barnabas.client.backoff import Backoff
from barnabas.client.connection import Connection
from barnabas.client.shared import begin, end, join
from barnabas.client.throttling import Throttle
from barnabas.config.endpoints import Address


class Link:
    """`connect` makes a connection; `random` returns numbers between 0 and 1. `throttle` is kept when the connection is made
    again, and may be shared with other links to the node."""

    def __init__(
        self,
        address: Address,
        connect: Callable[[Address], Awaitable[Connection]],
        backoff: Backoff,
        random: Callable[[], float],
        throttle: Throttle | None = None,
    ) -> None:
        self.address = address
        self._throttle = throttle or Throttle()
        self._connect = connect
        self._backoff = backoff
        self._random = random
        self._connection: Connection | None = None
        self._connecting: asyncio.Task[Connection] | None = None
        self._failures = 0
        self._not_before_s = 0.0
        self._waiting = 0

    @property
    def is_open(self) -> bool:
        return self._connection is not None and self._connection.is_open

    @property
    def in_flight(self) -> int:
        return self._waiting + (self._connection.in_flight if self._connection is not None else 0)

    @property
    def ready_in_s(self) -> float:
        """Seconds until the next attempt to connect is allowed."""
        return 0.0 if self.is_open else max(0.0, self._not_before_s - asyncio.get_running_loop().time())

    @property
    def throttled_s(self) -> float:
        """Seconds for which the node throttles this client."""
        return self._throttle.left_s(asyncio.get_running_loop().time())

    async def connection(self) -> Connection:
        """Return the open connection, or make one. Raises like `handshake.connect`."""
        if self._connection is not None and self._connection.is_open:
            return self._connection
        if self._connecting is None:
            self._connecting = begin(self._reconnect())
        self._waiting += 1
        try:
            return await join(self._connecting)
        finally:
            self._waiting -= 1

    async def _reconnect(self) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            await asyncio.sleep(self.ready_in_s)
            made = await self._connect(self.address)
            self._throttle.extend(made.throttle.left_s(loop.time()) * 1000, loop.time())
            made.throttle = self._throttle
            self._connection = made
        except Exception:
            delay_ms = self._backoff.delay_ms(self._failures, self._random())
            self._failures += 1
            self._not_before_s = loop.time() + delay_ms / 1000
            raise
        finally:
            self._connecting = None
        self._failures = 0
        return self._connection

    def close_if_idle(self, idle_s: float) -> None:
        """Close the connection if it was not used for `idle_s`."""
        connection = self._connection
        now_s = asyncio.get_running_loop().time()
        if connection is not None and not self.in_flight and now_s - connection.last_used_s >= idle_s:
            connection.close()

    async def close(self) -> None:
        """Close the connection, and return when the socket is closed."""
        await end([self._connecting])
        if self._connection is not None:
            self._connection.close()
            await self._connection.wait_closed()
