"""The connections to all nodes: one for each node and lane, made on first use.

A lane is a separate connection to the same node, for requests that wait there and would delay the others. Bootstrap servers
have negative ids until their node ids are known.

A node that throttles this client is sent nothing on any lane. `GROUP_LANE` is throttled on its own, so that members are not
removed from their groups because their fetches are throttled; Kafka's consumer has a connection of its own for that, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from weakref import WeakValueDictionary

from barnabas.client import handshake
from barnabas.client.backoff import Backoff
from barnabas.client.connection import Connection
from barnabas.client.link import Link
from barnabas.client.routing import Load, least_loaded
from barnabas.client.shared import begin
from barnabas.client.state import Node
from barnabas.client.throttling import Throttle
from barnabas.config.endpoints import Address

GROUP_LANE = "group"
"""Lane for the requests of members of groups: heartbeats, and JoinGroup, which waits at the broker."""


class Links:
    def __init__(self, options: handshake.Options, backoff: Backoff, random: Callable[[], float]) -> None:
        self._options = options
        self._backoff = backoff
        self._random = random
        self._links: dict[tuple[int, str], Link] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._throttles: WeakValueDictionary[tuple[Address, bool], Throttle] = WeakValueDictionary()

    async def connection(self, node: Node, lane: str = "") -> Connection:
        """Return the connection to a node. Raises like `handshake.connect`."""
        link = self._links.get((node.id, lane))
        if link is None:
            address = Address(node.host, node.port)
            throttle = self._throttles.setdefault((address, lane == GROUP_LANE), Throttle())
            link = self._links[node.id, lane] = Link(address, self._connect, self._backoff, self._random, throttle)
        return await link.connection()

    async def _connect(self, address: Address) -> Connection:
        return await handshake.connect(address, self._options)

    def least_loaded(self, nodes: Iterable[Node]) -> list[int]:
        """Return the ids of these nodes in the order to try them."""
        return least_loaded(map(self._load, nodes), self._random)

    def _load(self, node: Node) -> Load:
        link = self._links.get((node.id, ""))
        if link is None:
            return Load(node.id, False)
        throttled_s = link.throttled_s
        return Load(node.id, link.is_open and not throttled_s, link.in_flight, max(link.ready_in_s, throttled_s))

    def follow(self, nodes: Mapping[int, Node]) -> None:
        """Take over the nodes of the cluster. A bootstrap server that is one of them keeps its connection; the connections
        to nodes with another address are closed."""
        by_address = {Address(node.host, node.port): node.id for node in nodes.values()}
        for (node_id, lane), link in list(self._links.items()):
            if node_id >= 0:
                if node_id in nodes and by_address.get(link.address) != node_id:
                    self._drop(node_id, lane)
                continue
            known_as = by_address.get(link.address)
            if known_as is not None and (known_as, lane) not in self._links:
                self._links[known_as, lane] = self._links.pop((node_id, lane))
            else:
                link.close_if_idle(0.0)

    def _drop(self, node_id: int, lane: str) -> None:
        closing = begin(self._links.pop((node_id, lane)).close())
        self._ending.add(closing)
        closing.add_done_callback(self._ending.discard)

    def close_idle(self, idle_s: float) -> None:
        for link in self._links.values():
            link.close_if_idle(idle_s)

    async def close(self) -> None:
        """Close all connections, and return when all sockets are closed."""
        links, self._links = self._links, {}
        await asyncio.gather(*(link.close() for link in links.values()), *self._ending)
