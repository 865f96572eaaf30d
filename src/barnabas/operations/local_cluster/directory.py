"""The directory of a local cluster: `cluster.json`, and for each node its settings, log dir, log file and ready file.

Its one rule: `cluster.json` is written after everything that it names, and atomically. Whoever knows the directory can
start, stop, add and remove nodes.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple

from barnabas.config.properties import dumps, loads
from barnabas.config.values import split_list
from barnabas.operations.errors import OperationError
from barnabas.operations.local_cluster.formatting import format_all, format_joining
from barnabas.operations.local_cluster.layout import CLIENTS, CONTROLLER, HOST, LocalNode, rack_of, settings_of

STATE_FILE = "cluster.json"


class LocalCluster(NamedTuple):
    """What `cluster.json` says."""

    path: Path
    cluster_id: str
    nodes: Mapping[int, LocalNode]
    racks: tuple[str, ...]
    settings: Mapping[str, str]
    kafka_home: Path | None = None
    """The distribution of Apache Kafka that its nodes run, if there are any."""

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.address(CLIENTS) for node in self.nodes.values() if node.is_broker)

    @property
    def bootstrap_controllers(self) -> str:
        return ",".join(node.address(CONTROLLER) for node in self.nodes.values() if node.is_controller)

    def node(self, node_id: int) -> LocalNode:
        """Return a node. Raises OperationError if there is none with this id."""
        found = self.nodes.get(node_id)
        if found is None:
            known = ", ".join(map(str, self.nodes))
            raise OperationError(f"the cluster in {self.path} has no node {node_id}; it has {known}")
        return found

    def directory(self, node_id: int) -> Path:
        return self.path / f"node-{node_id}"

    def log_dir(self, node_id: int) -> Path:
        return self.directory(node_id) / "data"

    def properties(self, node_id: int) -> Path:
        return self.directory(node_id) / "server.properties"

    def ready_file(self, node_id: int) -> Path:
        return self.directory(node_id) / "ready.properties"

    def log_file(self, node_id: int) -> Path:
        return self.directory(node_id) / "node.log"


def create(
    path: Path,
    nodes: list[LocalNode],
    racks: tuple[str, ...],
    settings: Mapping[str, str],
    now_ms: Callable[[], int],
    random: Random,
    *,
    kafka_home: Path | None = None,
    is_static: bool = False,
) -> LocalCluster:
    """Create the directory of a new cluster, with formatted log dirs and free ports."""
    placed = {node.node_id: node._replace(ports=ports) for node, ports in zip(nodes, _free_ports(nodes), strict=True)}
    made = LocalCluster(path, "", placed, racks, settings, kafka_home)
    for node_id in placed:
        made.directory(node_id).mkdir(parents=True, exist_ok=True)
    cluster_id = format_all(placed.values(), made.log_dir, now_ms, random, is_static=is_static)
    made = made._replace(cluster_id=cluster_id)
    _write(made, is_static=is_static)
    return made


def read(path: Path) -> LocalCluster | None:
    """Return the cluster of a directory, or None if there is none. Raises OperationError if its file is damaged."""
    try:
        found = json.loads((path / STATE_FILE).read_text())
        nodes = {each["node_id"]: LocalNode(**each) for each in found["nodes"]}
        home = found.get("kafka_home")
        racks = tuple(found["racks"])
        return LocalCluster(
            path, found["cluster_id"], nodes, racks, found["settings"], None if home is None else Path(home)
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OperationError(f"{path / STATE_FILE} cannot be read: {error}") from error


def follow_move(cluster: LocalCluster, node_id: int) -> None:
    """Let the settings of a node name its log dir where it is now: the directory of the cluster may have been moved.

    Otherwise the node would begin anew where the directory was. Raises OperationError if they name another log dir.
    """
    properties, log_dir = cluster.properties(node_id), str(cluster.log_dir(node_id))
    try:
        given = loads(properties.read_text())
    except (OSError, ValueError) as error:
        raise OperationError(f"{properties} cannot be read: {error}") from error
    named = split_list(given.get("log.dirs", ""))
    if log_dir in named:
        return
    inside = f"/node-{node_id}/data"
    before = next((each.removesuffix(inside) for each in named if each.endswith(inside)), None)
    if before is None:
        raise OperationError(f"{properties}: log.dirs is {','.join(named) or 'not set'}, and must have {log_dir}")
    for name in ("log.dirs", "metadata.log.dir"):
        if name in given:
            moved = [_moved(each, before, str(cluster.path)) for each in split_list(given[name])]
            given[name] = ",".join(moved)
    properties.write_text(dumps(given))


def _moved(path: str, before: str, now: str) -> str:
    return now + path.removeprefix(before) if path.startswith(f"{before}/") else path


def added(
    cluster: LocalCluster,
    wanted: int | None,
    now_ms: Callable[[], int],
    random: Random,
    *,
    kafka_home: Path | None = None,
    is_controller: bool = False,
) -> tuple[LocalCluster, LocalNode]:
    """Add a broker to the directory, with this id or a free one, and return the cluster with it. Raises OperationError.

    With `kafka_home`, the node runs Apache Kafka. A new controller does not become a voter by itself, unless
    `controller.quorum.auto.join.enable` is among the settings.
    """
    if wanted in cluster.nodes:
        raise OperationError(f"the cluster in {cluster.path} has a node {wanted} already")
    brokers = [node.node_id for node in cluster.nodes.values() if node.is_broker]
    node_id = wanted or next(each for each in range(1, len(cluster.nodes) + 2) if each not in cluster.nodes)
    rack = rack_of(len(brokers) + 1, cluster.racks)
    node = LocalNode(node_id, True, is_controller, {}, rack, kafka_home is not None)
    (ports,) = _free_ports([node])
    node = node._replace(ports=ports)
    larger = cluster._replace(nodes={**cluster.nodes, node_id: node}, kafka_home=kafka_home or cluster.kafka_home)
    larger.directory(node_id).mkdir(parents=True, exist_ok=True)
    format_joining(cluster.cluster_id, node_id, larger.log_dir(node_id), now_ms, random)
    _write(larger, only=node_id)
    return larger, node


def removed(cluster: LocalCluster, node_id: int) -> LocalCluster:
    """Forget a broker that does not run, delete its directory, and return the cluster without it. Raises OperationError."""
    if cluster.node(node_id).is_controller:
        raise OperationError(
            f"node {node_id} is a controller, whose vote the quorum counts: only brokers can be removed"
        )
    smaller = cluster._replace(nodes={each: node for each, node in cluster.nodes.items() if each != node_id})
    _write_state(smaller)
    shutil.rmtree(cluster.directory(node_id), ignore_errors=True)
    return smaller


def _write(cluster: LocalCluster, only: int | None = None, *, is_static: bool = False) -> None:
    """Write the settings of all nodes, or of a new one alone, and then the state file."""
    for node_id, node in cluster.nodes.items():
        if only in (None, node_id):
            log_dir = str(cluster.log_dir(node_id))
            given = settings_of(node, cluster.nodes.values(), log_dir, cluster.settings, is_static=is_static)
            cluster.properties(node_id).write_text(dumps(given))
    _write_state(cluster)


def _write_state(cluster: LocalCluster) -> None:
    state = {
        "cluster_id": cluster.cluster_id,
        "nodes": [node._asdict() for node in cluster.nodes.values()],
        "racks": cluster.racks,
        "settings": dict(cluster.settings),
        "kafka_home": None if cluster.kafka_home is None else str(cluster.kafka_home),
    }
    unfinished = cluster.path / f"{STATE_FILE}.{os.getpid()}"
    unfinished.write_text(json.dumps(state, indent=2))
    unfinished.replace(cluster.path / STATE_FILE)


def _free_ports(nodes: list[LocalNode]) -> list[dict[str, int]]:
    """Return free ports for the listeners of each node. All are bound at once, so that they differ."""
    bound = [{name: socket.create_server((HOST, 0)) for name in node.listener_names} for node in nodes]
    ports = [{name: sock.getsockname()[1] for name, sock in socks.items()} for socks in bound]
    for socks in bound:
        for sock in socks.values():
            sock.close()
    return ports
