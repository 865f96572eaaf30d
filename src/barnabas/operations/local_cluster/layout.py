"""The nodes of a local cluster and their settings. Pure: numbers in, settings out.

With `controllers`, these are nodes of their own, and the others are only brokers. Without, every node is both, up to five
voters; further ones are only brokers. The quorum is dynamic unless it is to be static.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.config.endpoints import address_text

HOST: Final = "127.0.0.1"
CLIENTS: Final = "PLAINTEXT"
CONTROLLER: Final = "CONTROLLER"
FIRST_CONTROLLER_ID: Final = 101
MAX_COMBINED_VOTERS: Final = 5
MAX_REPLICATION_FACTOR: Final = 3


class LocalNode(NamedTuple):
    """One node: its id, its roles, the port of each listener, its rack, and the program that it runs."""

    node_id: int
    is_broker: bool
    is_controller: bool
    ports: Mapping[str, int]
    rack: str | None = None
    is_apache: bool = False
    """Whether the node runs Apache Kafka instead of barnabas."""
    clients: str = CLIENTS
    """The name of the listener for clients, which is that of its security protocol."""

    @property
    def listener_names(self) -> tuple[str, ...]:
        return (self.clients,) * self.is_broker + (CONTROLLER,) * self.is_controller

    @property
    def roles(self) -> str:
        return ",".join(self._roles)

    @property
    def _roles(self) -> list[str]:
        return ["broker"] * self.is_broker + ["controller"] * self.is_controller

    def address(self, listener_name: str) -> str:
        return address_text(HOST, self.ports[listener_name])


def nodes_of(nodes: int, controllers: int = 0, racks: Sequence[str] = (), apache: int = 0) -> list[LocalNode]:
    """Return the nodes, without ports. The last `apache` brokers run Apache Kafka. Raises ValueError."""
    if nodes < 1 or controllers < 0:
        raise ValueError(f"a cluster has at least one broker, not {nodes}, and no fewer controllers than none")
    if not 0 <= apache <= nodes:
        raise ValueError(f"{apache} of {nodes} brokers cannot run Apache Kafka")
    made = [
        LocalNode(
            number,
            True,
            not controllers and number <= MAX_COMBINED_VOTERS,
            {},
            rack_of(number, racks),
            number > nodes - apache,
        )
        for number in range(1, nodes + 1)
    ]
    made += [LocalNode(FIRST_CONTROLLER_ID + each, False, True, {}) for each in range(controllers)]
    return made


def rack_of(number: int, racks: Sequence[str]) -> str | None:
    """Return the rack of the n-th broker: the racks take turns."""
    return racks[(number - 1) % len(racks)] if racks else None


def settings_of(
    node: LocalNode, nodes: Iterable[LocalNode], log_dir: str, more: Mapping[str, str], *, is_static: bool = False
) -> dict[str, str]:
    """Return the server.properties of a node. `more` are settings of the user, for all nodes."""
    nodes = list(nodes)
    brokers = sum(each.is_broker for each in nodes)
    factor = str(min(MAX_REPLICATION_FACTOR, brokers))
    min_isr = "2" if brokers >= MAX_REPLICATION_FACTOR else "1"
    controllers = [each for each in nodes if each.is_controller]
    if is_static:
        voters = ",".join(f"{each.node_id}@{each.address(CONTROLLER)}" for each in controllers)
        quorum = {"controller.quorum.voters": voters}
    else:
        quorum = {"controller.quorum.bootstrap.servers": ",".join(each.address(CONTROLLER) for each in controllers)}
    settings = {
        "process.roles": node.roles,
        "node.id": str(node.node_id),
        "listeners": ",".join(f"{name}://{node.address(name)}" for name in node.listener_names),
        "controller.listener.names": CONTROLLER,
        **quorum,
        "log.dirs": log_dir,
        "default.replication.factor": factor,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": min_isr,
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": min_isr,
        "group.initial.rebalance.delay.ms": "0",
    }
    if node.is_broker:
        settings["listener.security.protocol.map"] = f"{node.clients}:{node.clients},{CONTROLLER}:PLAINTEXT"
    if node.rack is not None:
        settings["broker.rack"] = node.rack
    return {**settings, **more}
