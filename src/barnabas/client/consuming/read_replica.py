"""The replica that a consumer fetches a partition from: the leader, or a follower that the leader prefers (KIP-392). Pure.

A leader that knows a replica in the consumer's rack names it in its response, without records. The consumer then fetches
from that follower until `metadata.max.age.ms` has passed or a fetch from it fails. After that it asks the leader again.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from barnabas.client.state import NO_LEADER, Partition

NO_PREFERENCE = -1


class PreferredReplica(NamedTuple):
    """A follower to fetch from, and the time in seconds at which the leader is asked again."""

    node_id: int
    expires_s: float


def is_usable(preferred: PreferredReplica, partition: Partition, nodes: Container[int], now_s: float) -> bool:
    """Return whether a follower can be fetched from: it is known, it has an online replica, and its time has not passed.

    >>> orders = Partition(0, leader_id=1, replicas=(1, 2), offline_replicas=(3,))
    >>> [is_usable(PreferredReplica(each, 10.0), orders, {1, 2, 3}, 9.9) for each in (2, 3, 4)]
    [True, False, False]
    >>> is_usable(PreferredReplica(2, 10.0), orders, {1, 2, 3}, 10.0)
    False
    """
    node_id, expires_s = preferred
    is_online = node_id in partition.replicas and node_id not in partition.offline_replicas
    return now_s < expires_s and is_online and node_id in nodes


def read_replica(
    preferred: PreferredReplica | None, partition: Partition | None, nodes: Container[int], now_s: float
) -> int | None:
    """Return the node to fetch a partition from, or None if its leader is unknown."""
    if partition is None or partition.leader_id == NO_LEADER or partition.leader_id not in nodes:
        return None
    if preferred is not None and is_usable(preferred, partition, nodes, now_s):
        return preferred.node_id
    return partition.leader_id
