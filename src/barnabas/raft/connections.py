"""Pending requests by node: at most one per node, with a timeout, and a backoff after a failure.

Its one rule: a response counts only if its request is still pending. After a timeout or a change of role it is not.
This module sends nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from barnabas.raft.voters import Node


class _Connection(NamedTuple):
    correlation_id: int | None
    until_ms: int  # when the request times out, or when the backoff ends


class Connections:
    """The pending requests of one replica."""

    def __init__(self, request_timeout_ms: int, retry_backoff_ms: int, random: Random) -> None:
        self._request_timeout_ms = request_timeout_ms
        self._retry_backoff_ms = retry_backoff_ms
        self._random = random
        self._connections: dict[int, _Connection] = {}
        self._nodes: dict[int, int] = {}  # correlation id -> node id
        self._next_correlation_id = 0

    def reset(self) -> None:
        """Drop all pending requests."""
        self._connections.clear()
        self._nodes.clear()

    def is_ready(self, node_id: int) -> bool:
        return node_id not in self._connections

    def is_backing_off(self, node_id: int) -> bool:
        """Whether its last request failed or timed out recently."""
        connection = self._connections.get(node_id)
        return connection is not None and connection.correlation_id is None

    def is_waiting(self) -> bool:
        """Whether any request is pending."""
        return bool(self._nodes)

    def expire(self, now_ms: int) -> None:
        """End backoffs and fail requests that timed out by `now_ms`."""
        for node_id, connection in list(self._connections.items()):
            if now_ms >= connection.until_ms:
                del self._connections[node_id]
                if connection.correlation_id is not None:
                    del self._nodes[connection.correlation_id]
                    self.failed(node_id, now_ms)

    def sent(self, node_id: int, now_ms: int) -> int:
        """Register a request and return its correlation id."""
        self._next_correlation_id += 1
        correlation_id = self._next_correlation_id
        self._connections[node_id] = _Connection(correlation_id, now_ms + self._request_timeout_ms)
        self._nodes[correlation_id] = node_id
        return correlation_id

    def received(self, correlation_id: int) -> int | None:
        """Return the node that a response is from, or None if its request is not pending."""
        node_id = self._nodes.pop(correlation_id, None)
        if node_id is not None:
            del self._connections[node_id]
        return node_id

    def failed(self, node_id: int, now_ms: int) -> None:
        """Start the backoff of a node."""
        if node_id not in self._connections:
            self._connections[node_id] = _Connection(None, now_ms + self._retry_backoff_ms)

    def choose(self, nodes: Sequence[Node]) -> Node | None:
        """Return a random node that is ready for a request, or None."""
        ready = [node for node in nodes if self.is_ready(node.id)]
        return self._random.choice(ready) if ready else None

    def next_ms(self) -> int | None:
        """Return when `expire` must be called next."""
        return min((each.until_ms for each in self._connections.values()), default=None)
