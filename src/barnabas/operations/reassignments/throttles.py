"""Throttles of reassignments: limits on the copying of replicas, set and cleared as Kafka's own tool does.

A broker has one rate for sending (leader) and one for receiving (follower). A topic lists the replicas that are throttled. So a
throttle is set on the brokers and topics involved. Brokers do not clear it: the caller must, at the end. The first half of
this module is pure; the second changes settings with the client's `Configs`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.admin.configs import AlterConfigOp, AlterConfigOpType, ConfigResource, Configs
from barnabas.client.admin.part import checked
from barnabas.client.admin.reassignments import PartitionReassignment
from barnabas.client.cluster import Cluster
from barnabas.operations.partitions import Key
from barnabas.wire.errors import KafkaError

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS, FOLLOWER_REPLICAS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"


class PartitionMove(NamedTuple):
    """The brokers that a partition is copied from, and those it is copied to."""

    sources: frozenset[int]
    destinations: frozenset[int]


class ThrottledReplicas(NamedTuple):
    """The values of a topic's two settings: `partition:broker,...`, sorted as text."""

    leader: str
    follower: str


def proposed_moves(
    ongoing: Mapping[Key, PartitionReassignment],
    proposed: Mapping[Key, Sequence[int]],
    current: Mapping[Key, Sequence[int]],
) -> dict[Key, PartitionMove]:
    """Return all moves: the ongoing ones, and the proposed ones, which replace ongoing moves of the same partition."""
    moves = {
        key: PartitionMove(frozenset(each.replicas) - frozenset(each.adding_replicas), frozenset(each.adding_replicas))
        for key, each in ongoing.items()
    }
    for key, replicas in proposed.items():
        sources = moves[key].sources if key in moves else frozenset(current[key])
        moves[key] = PartitionMove(sources, frozenset(replicas) - sources)
    return moves


def throttled_replicas(moves: Mapping[Key, PartitionMove]) -> dict[str, ThrottledReplicas]:
    """Return the settings of each topic that throttle these moves.

    >>> throttled_replicas({("orders", 0): PartitionMove(frozenset({1, 2}), frozenset({3}))})
    {'orders': ThrottledReplicas(leader='0:1,0:2', follower='0:3')}
    """
    leaders: dict[str, set[str]] = defaultdict(set)
    followers: dict[str, set[str]] = defaultdict(set)
    for (topic, index), move in moves.items():
        leaders[topic] |= {f"{index}:{each}" for each in move.sources}
        followers[topic] |= {f"{index}:{each}" for each in move.destinations}
    return {
        topic: ThrottledReplicas(",".join(sorted(leaders[topic])), ",".join(sorted(followers[topic])))
        for topic in leaders
    }


def brokers_of(moves: Iterable[PartitionMove]) -> list[int]:
    return sorted({broker_id for move in moves for broker_id in (*move.sources, *move.destinations)})


# --- settings


async def throttle(cluster: Cluster, moves: Mapping[Key, PartitionMove], rate: int) -> None:
    """Throttle these moves to `rate` bytes per second on each broker. Raises the first error."""
    replicas = throttled_replicas(moves)
    changes: dict[ConfigResource, list[AlterConfigOp]] = {
        ConfigResource.topic(topic): [
            _set(LEADER_REPLICAS, each.leader),
            _set(FOLLOWER_REPLICAS, each.follower),
        ]
        for topic, each in replicas.items()
    }
    await _alter(cluster, changes)
    rates = [_set(name, str(rate)) for name in (LEADER_RATE, FOLLOWER_RATE)]
    await _alter(cluster, {ConfigResource.broker(each): rates for each in brokers_of(moves.values())})


async def throttle_log_dirs(cluster: Cluster, broker_ids: Iterable[int], rate: int) -> None:
    """Throttle moves between the log dirs of each broker to `rate` bytes per second. Raises the first error."""
    ops = [_set(LOG_DIRS_RATE, str(rate))]
    await _alter(cluster, {ConfigResource.broker(each): ops for each in broker_ids})


async def clear_brokers(cluster: Cluster, broker_ids: Iterable[int]) -> None:
    ops = [AlterConfigOp(name, AlterConfigOpType.DELETE) for name in (LEADER_RATE, FOLLOWER_RATE, LOG_DIRS_RATE)]
    await _alter(cluster, {ConfigResource.broker(each): ops for each in broker_ids})


async def clear_topics(cluster: Cluster, topics: Iterable[str]) -> None:
    ops = [AlterConfigOp(name, AlterConfigOpType.DELETE) for name in (LEADER_REPLICAS, FOLLOWER_REPLICAS)]
    await _alter(cluster, {ConfigResource.topic(each): ops for each in topics})


async def throttled_topics(cluster: Cluster, topics: Collection[str]) -> list[str]:
    """Return those of the topics that have a throttle."""
    names = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
    found = await Configs(cluster).describe_configs(map(ConfigResource.topic, topics), keys=names)
    return [
        resource.name
        for resource, config in found.items()
        if not isinstance(config, KafkaError) and any(name in config and config[name].value for name in names)
    ]


def _set(name: str, value: str) -> AlterConfigOp:
    return AlterConfigOp(name, AlterConfigOpType.SET, value)


async def _alter(cluster: Cluster, changes: Mapping[ConfigResource, list[AlterConfigOp]]) -> None:
    if changes:
        checked(await Configs(cluster).incremental_alter_configs(changes))
