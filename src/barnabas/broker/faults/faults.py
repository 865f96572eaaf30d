"""What goes wrong on the nodes of one process: fault rules, isolated nodes, full and slow disks, and time that passes.

Its one rule: a node asks only while there is something to ask for. Routes have no faults otherwise, so a request costs nothing
more. Whoever changes something here does it in the event loop of the nodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from barnabas.broker.faults.clock import MovableClock
from barnabas.broker.faults.disk import disks
from barnabas.broker.faults.request_topics import request_topics
from barnabas.broker.faults.rules import ActiveRule, Request, Rule, RuleError, Rules
from barnabas.broker.surroundings import REAL_WORLD, Surroundings
from barnabas.client.errors import NotConnectedError
from barnabas.config.endpoints import address_text
from barnabas.config.server_config import ServerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.wire import Message, Uuid
from barnabas.wire.messages.fetch import FetchRequest

if TYPE_CHECKING:
    from barnabas.broker.context import Context
    from barnabas.client.connection import Connection

_OF_A_NODE: Final = re.compile(r"(?:broker|raft-client)-([0-9]+)(?:-|$)")  # client ids of own connections

CUT_OFF: Final = Rule(drop=True, times=None)


class Isolation(NamedTuple):
    """The nodes and clients that one node does not hear and does not reach."""

    node_ids: frozenset[int]
    from_clients: bool

    def cuts_off(self, client_id: str | None) -> bool:
        """True if requests of this client id do not get through."""
        node_id = node_of(client_id)
        return self.from_clients if node_id is None else node_id in self.node_ids


def node_of(client_id: str | None) -> int | None:
    """Return the node that has connections with this client id; None for a client.

    >>> node_of("broker-3-fetcher-0"), node_of("raft-client-2"), node_of("billing")
    (3, 2, None)
    """
    found = None if client_id is None else _OF_A_NODE.match(client_id)
    return None if found is None else int(found[1])


class FaultyNode(Protocol):
    """What a node lets faults do with it."""

    config: ServerConfig

    @property
    def image(self) -> MetadataImage: ...

    def faults_changed(self) -> None:
        """Forget the routes, so that new ones ask for faults, or no longer do."""
        ...

    def close_connections(self) -> None:
        """Close all connections of clients and other nodes."""
        ...


class Faults:
    """The faults of the nodes of one process. A node that is started again still has them."""

    def __init__(self, base: Surroundings = REAL_WORLD) -> None:
        self.rules = Rules()
        self.isolated: dict[int, Isolation] = {}
        self.nodes: dict[int, NodeFaults] = {}
        self._log_dirs: dict[int, set[str]] = {}  # also of nodes that were stopped since
        self.clock = MovableClock(base)
        self._base = base

    def surroundings(self) -> Surroundings:
        """Return the world of a node with these faults."""
        clock = self.clock
        return replace(
            self._base,
            now_ms=clock.now_ms,
            session_ms=clock.monotonic_ms,
            call_later=clock.call_later,
            sleep=clock.sleep,
            faults=self,
        )

    def attach(self, node_id: int, node: FaultyNode) -> NodeFaults:
        """Return the faults of a node."""
        made = self.nodes[node_id] = NodeFaults(node_id, self, node)
        self._log_dirs[node_id] = made.log_dirs
        return made

    def add(self, rule: Rule) -> ActiveRule:
        """Set a rule. Raises RuleError."""
        active = self.rules.add(rule)
        self._changed()
        return active

    def remove(self, rule_id: int) -> None:
        self.rules.remove(rule_id)
        self._changed()

    def isolate(self, node_id: int, node_ids: Iterable[int] | None = None, *, from_clients: bool | None = None) -> None:
        """Isolate a node from these nodes, or from all others and from clients.

        All its connections are closed once; whoever may still reach it connects again. Raises RuleError.
        """
        faults = self._node(node_id)
        image = faults.node.image
        known = {*image.brokers, *image.controllers} - {node_id}
        wanted = known if node_ids is None else set(node_ids)
        if unknown := wanted - known:
            raise RuleError(f"node {node_id} cannot be isolated from {sorted(unknown)}: the others are {sorted(known)}")
        is_from_all = node_ids is None if from_clients is None else from_clients
        self.isolated[node_id] = Isolation(frozenset(wanted), is_from_all)
        self._changed()
        faults.cut()

    def heal(self, node_id: int | None = None) -> None:
        """End the isolation of a node, or of all."""
        if node_id is None:
            self.isolated.clear()
        else:
            self.isolated.pop(node_id, None)
        self._changed()

    def set_disk(self, node_id: int, *, is_full: bool = False, slow_ms: int = 0) -> None:
        """Make the log dirs of a node full or slow, or heal them. Raises RuleError."""
        if node_id not in self._log_dirs:
            raise RuleError(f"there is no node {node_id} here: there are {sorted(self._log_dirs)}")
        disks.set(self._log_dirs[node_id], is_full=is_full, slow_ms=slow_ms)

    def clear(self) -> None:
        """Remove all rules, end all isolations and heal all disks. Time does not go back."""
        self.rules.clear()
        for each in self._log_dirs.values():
            disks.set(each)
        self.heal()

    def _node(self, node_id: int) -> NodeFaults:
        if node_id not in self.nodes:
            raise RuleError(f"there is no node {node_id} here: there are {sorted(self.nodes)}")
        return self.nodes[node_id]

    def _changed(self) -> None:
        for each in self.nodes.values():
            each.node.faults_changed()


class NodeFaults:
    """The faults of one node. It is also asked before the node opens a connection of its own."""

    def __init__(self, node_id: int, faults: Faults, node: FaultyNode) -> None:
        self.node_id = node_id
        self.faults = faults
        self.node = node
        self._connections: WeakKeyDictionary[Connection, tuple[str, int]] = WeakKeyDictionary()

    @property
    def log_dirs(self) -> set[str]:
        return {*self.node.config.log_dirs, self.node.config.metadata_log_dir}

    @property
    def is_any(self) -> bool:
        return self.node_id in self.faults.isolated or self.faults.rules.is_any

    def hit(self, api: str, context: Context, request: Message) -> Rule | None:
        """Count a request, and return the rule that decides what happens to it, if there is one."""
        isolation = self.faults.isolated.get(self.node_id)
        if isolation is not None and isolation.cuts_off(context.client_id):
            return CUT_OFF
        facts = Request(api, context.client_id, self.node_id, _topics_of(context, request))
        return self.faults.rules.hit(facts)

    # --- the node's own connections

    def check(self, host: str, port: int) -> None:
        """Raise NotConnectedError if the node is isolated from whoever has this address."""
        if (host, port) in self._unreachable():
            raise NotConnectedError(f"{address_text(host, port)} is isolated from node {self.node_id} by a fault rule")

    def opened(self, connection: Connection, host: str, port: int) -> None:
        self._connections[connection] = host, port

    def cut(self) -> None:
        """Close all connections that others have opened, and the own ones to those that are out of reach."""
        self.node.close_connections()
        unreachable = self._unreachable()
        for connection, address in list(self._connections.items()):
            if address in unreachable:
                connection.close()

    def _unreachable(self) -> set[tuple[str, int]]:
        isolation = self.faults.isolated.get(self.node_id)
        if isolation is None:
            return set()
        image = self.node.image
        found = (table.get(each) for each in isolation.node_ids for table in (image.brokers, image.controllers))
        return {(at.host, at.port) for node in found if node is not None for at in node.listeners.values()}


def _topics_of(context: Context, request: Message) -> Callable[[], set[str]]:
    def name_of(topic_id: Uuid) -> str | None:
        found = context.image.topics.by_id.get(topic_id)
        return None if found is None else found.name

    def topics() -> set[str]:
        found = request_topics(request, name_of)
        if isinstance(request, FetchRequest):  # a session knows what its later requests do not repeat
            found |= context.services.fetch_sessions.topics_of(request.session_id)
        return found

    return topics
