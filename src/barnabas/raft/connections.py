"""Which requests are under way to whom: one at a time to each node, a pause after a failure, an end to waiting.

Its one rule: an answer counts only if it is the one that is waited for; after a timeout, or after a change of role, the
earlier ones are not. It sends nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from barnabas.raft.voters import Node


class _Connection(NamedTuple):
    correlation_id: int | None
    until_ms: int  # when the request times out, or when the pause after a failure ends


class Connections:
    """The requests of one replica."""

    def __init__(self, request_timeout_ms: int, retry_backoff_ms: int, random: Random) -> None:
        self._request_timeout_ms = request_timeout_ms
        self._retry_backoff_ms = retry_backoff_ms
        self._random = random
        self._connections: dict[int, _Connection] = {}
        self._nodes: dict[int, int] = {}  # correlation id -> node id
        self._next_correlation_id = 0

    def reset(self) -> None:
        """Wait for no answer any more."""
        self._connections.clear()
        self._nodes.clear()

    def is_ready(self, node_id: int) -> bool:
        return node_id not in self._connections

    def is_backing_off(self, node_id: int) -> bool:
        """Whether it failed just now, or has not answered in time."""
        connection = self._connections.get(node_id)
        return connection is not None and connection.correlation_id is None

    def is_waiting(self) -> bool:
        """Whether any answer is waited for."""
        return bool(self._nodes)

    def expire(self, now_ms: int) -> None:
        """Time has passed: pauses end, and requests that were not answered in time count as failed."""
        for node_id, connection in list(self._connections.items()):
            if now_ms >= connection.until_ms:
                del self._connections[node_id]
                if connection.correlation_id is not None:
                    del self._nodes[connection.correlation_id]
                    self.failed(node_id, now_ms)

    def sent(self, node_id: int, now_ms: int) -> int:
        """Note a request; gives the id that its answer must have."""
        self._next_correlation_id += 1
        correlation_id = self._next_correlation_id
        self._connections[node_id] = _Connection(correlation_id, now_ms + self._request_timeout_ms)
        self._nodes[correlation_id] = node_id
        return correlation_id

    def received(self, correlation_id: int) -> int | None:
        """The node whose answer this is; None if it is not waited for."""
        node_id = self._nodes.pop(correlation_id, None)
        if node_id is not None:
            del self._connections[node_id]
        return node_id

    def failed(self, node_id: int, now_ms: int) -> None:
        """Leave this node alone for a moment."""
        if node_id not in self._connections:
            self._connections[node_id] = _Connection(None, now_ms + self._retry_backoff_ms)

    def choose(self, nodes: Sequence[Node]) -> Node | None:
        """Any of these that a request can be sent to."""
        ready = [node for node in nodes if self.is_ready(node.id)]
        return self._random.choice(ready) if ready else None

    def next_ms(self) -> int | None:
        """When `expire` has something to do."""
        return min((each.until_ms for each in self._connections.values()), default=None)
