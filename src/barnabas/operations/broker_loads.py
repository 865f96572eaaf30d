"""The load of each broker: leaders, replicas, their skew, replicas out of sync, and disks.

Its one rule: `broker_loads` is pure. Numbers that a broker does not report are None, never 0. Skew is the difference from the
mean of the brokers that run, in per cent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from barnabas.operations.partitions import require_brokers
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.log_dirs import LogDir
    from barnabas.client.cluster import Cluster
    from barnabas.client.state import Node, Partition


class BrokerStatus(Enum):
    """Whether the broker runs."""

    OK = "ok"
    FENCED = "fenced"
    MISSING = "missing"
    """Partitions have replicas there, but no such broker is registered, or the cluster is too old to list fenced brokers."""


class Disk(NamedTuple):
    """Bytes on the disks of a broker: used by its logs, free for them, and in all. None: not known."""

    used_bytes: int | None = None
    usable_bytes: int | None = None
    total_bytes: int | None = None


class BrokerLoad(NamedTuple):
    """The load of one broker.

    `under_replicated` counts the partitions it leads that lack in-sync replicas, as the metric UnderReplicatedPartitions does.
    `out_of_sync` counts its own replicas that are not in sync.
    """

    broker_id: int
    node: Node | None
    status: BrokerStatus
    leaders: int
    leader_skew_percent: float | None
    replicas: int
    replica_skew_percent: float | None
    under_replicated: int
    out_of_sync: int
    disk: Disk
    disk_error: KafkaError | None = None


DirsByBroker = Mapping[int, "Mapping[str, LogDir] | KafkaError"]


def broker_loads(nodes: Iterable[Node], partitions: Iterable[Partition], dirs: DirsByBroker) -> list[BrokerLoad]:
    """Return the load of every broker that is registered or has a replica, by id. Pure."""
    known = {node.id: node for node in nodes}
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    under_replicated: Counter[int] = Counter()
    out_of_sync: Counter[int] = Counter()
    for partition in partitions:
        replicas.update(partition.replicas)
        out_of_sync.update(set(partition.replicas) - set(partition.isr))
        if partition.leader_id >= 0:
            leaders[partition.leader_id] += 1
            under_replicated[partition.leader_id] += len(partition.isr) < len(partition.replicas)
    running = [node.id for node in known.values() if not node.is_fenced]
    loads = []
    for broker_id in sorted({*known, *replicas}):
        found = dirs.get(broker_id)
        is_running = broker_id in running
        loads.append(
            BrokerLoad(
                broker_id,
                known.get(broker_id),
                BrokerStatus.OK if is_running else BrokerStatus.FENCED if broker_id in known else BrokerStatus.MISSING,
                leaders[broker_id],
                _skew_percent(leaders, broker_id, running) if is_running else None,
                replicas[broker_id],
                _skew_percent(replicas, broker_id, running) if is_running else None,
                under_replicated[broker_id],
                out_of_sync[broker_id],
                Disk() if found is None or isinstance(found, KafkaError) else disk_of(found.values()),
                found if isinstance(found, KafkaError) else None,
            )
        )
    return loads


def _skew_percent(counts: Mapping[int, int], broker_id: int, running: list[int]) -> float | None:
    """Return the difference from the mean in per cent, or None if the mean is 0."""
    mean = sum(counts.get(each, 0) for each in running) / len(running)
    return round(100 * (counts.get(broker_id, 0) - mean) / mean, 1) if mean else None


def disk_of(dirs: Iterable[LogDir]) -> Disk:
    every = list(dirs)
    return Disk(
        sum(replica.size for each in every for replica in each.replicas),
        _sum(each.usable_bytes for each in every),
        _sum(each.total_bytes for each in every),
    )


def _sum(sizes: Iterable[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if known else None


async def look_at_brokers(cluster: Cluster) -> list[BrokerLoad]:
    """Return the load of every broker. Disks that may not be seen are unknown. Raises OperationError for controllers."""
    from barnabas.client.admin.brokers import Brokers
    from barnabas.client.admin.log_dirs import LogDirs

    require_brokers(cluster)
    brokers = Brokers(cluster)
    has_fenced = await brokers.can_list_fenced_brokers()
    nodes = (await brokers.describe_cluster(include_fenced_brokers=has_fenced)).nodes
    state = await cluster.metadata(None)
    dirs = await LogDirs(cluster).describe_log_dirs([node.id for node in nodes if not node.is_fenced])
    partitions = (each for topic in state.topics.values() for each in topic.partitions.values())
    return broker_loads(nodes, partitions, dirs)
