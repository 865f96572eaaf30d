"""Formats the log dirs of a local cluster: one cluster id for all, and the controllers as the first voters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random

from barnabas.operations.local_cluster.layout import CONTROLLER, HOST, LocalNode
from barnabas.raft import formatting
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from barnabas.wire import Message, Uuid, random_uuid


def format_all(
    nodes: Iterable[LocalNode],
    directory_of: Callable[[int], Path],
    now_ms: Callable[[], int],
    random: Random,
    *,
    is_static: bool = False,
    records: Iterable[Message] = (),
) -> str:
    """Format the log dir of each node for a new cluster, whose metadata begin with `records`, and return the cluster id."""
    nodes = list(nodes)
    cluster_id = str(random_uuid(random))
    ids = {node.node_id: random_uuid(random) for node in nodes}
    voters = VoterSet(
        Voter(ReplicaKey(node.node_id, ids[node.node_id]), (Endpoint(CONTROLLER, HOST, node.ports[CONTROLLER]),))
        for node in nodes
        if node.is_controller
    )
    for node in nodes:
        directory = directory_of(node.node_id)
        has_voters = node.is_controller and not is_static
        own = voters if has_voters else None
        _write(cluster_id, node.node_id, {directory: ids[node.node_id]}, own, now_ms, list(records))
    return cluster_id


def format_joining(cluster_id: str, node_id: int, directory: Path, now_ms: Callable[[], int], random: Random) -> None:
    """Format the log dir of a node that joins a cluster which exists."""
    _write(cluster_id, node_id, {directory: random_uuid(random)}, None, now_ms)


def _write(
    cluster_id: str,
    node_id: int,
    ids: Mapping[Path, Uuid],
    voters: VoterSet | None,
    now_ms: Callable[[], int],
    records: Iterable[Message] = (),
) -> None:
    (directory,) = ids
    bootstrap = formatting.bootstrap_records(formatting.effective_features(), records)
    formatting.write_format(formatting.Formatting(cluster_id, node_id, directory, ids, bootstrap, voters), now_ms)
