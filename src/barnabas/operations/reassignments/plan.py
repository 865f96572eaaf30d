"""Reassignment plans for a live cluster: collect the input of `client.reassignment_plan`, and compute the plan.

Its one rule: nothing is changed. Partitions that are already being reassigned are left out, and the result names them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from barnabas.operations.errors import OperationError
from barnabas.operations.partitions import Key, Selection, find_partitions
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.reassignment_plan import ReassignmentPlan
    from barnabas.client.state import ClusterState

_SIZES_TIMEOUT_MS = 10_000
"""Timeout for sizes. They only break ties, so a broker that does not answer must not delay a plan for longer."""


class Goal(NamedTuple):
    """The goal of a plan; see `client.reassignment_plan.plan`."""

    rebalance: bool = False
    add: tuple[int, ...] = ()
    drain: tuple[int, ...] = ()
    replication_factor: int | None = None
    rack_aware: bool = True

    @property
    def is_empty(self) -> bool:
        return not (self.rebalance or self.add or self.drain or self.replication_factor)


class PlanInput(NamedTuple):
    """The selected partitions, the brokers with their racks, sizes in bytes, and the replicas per broker of the rest.

    `isr` and `leaders` have the in-sync replicas and the leader of each selected partition.
    """

    current: Mapping[Key, tuple[int, ...]]
    racks: Mapping[int, str | None]
    sizes: Mapping[Key, int]
    others: Mapping[int, int]
    isr: Mapping[Key, tuple[int, ...]]
    leaders: Mapping[Key, int]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedMoves:
    """A plan, the racks of the brokers, and warnings."""

    plan: ReassignmentPlan
    racks: Mapping[int, str | None]
    left_out: list[Key] = field(default_factory=list)
    """Selected partitions that are being reassigned now."""
    warnings: tuple[str, ...] = ()


async def plan_moves(cluster: Cluster, selections: Iterable[Selection], goal: Goal) -> PlannedMoves:
    """Plan the moves that achieve the goal, for the selected partitions or for all. Raises OperationError."""
    from barnabas.client.admin.reassignments import Reassignments
    from barnabas.client.reassignment_plan import PlanError, plan

    state, keys = await find_partitions(cluster, selections)
    ongoing = await Reassignments(cluster).list_partition_reassignments()
    left_out = [key for key in keys if key in ongoing]
    found = await collect(cluster, state, [key for key in keys if key not in ongoing], rack_aware=goal.rack_aware)
    try:
        # In a thread: with many partitions it takes long, and the caller's connections go on.
        made = await asyncio.to_thread(
            plan,
            found.current,
            found.racks,
            add=goal.add,
            drain=goal.drain,
            replication_factor=goal.replication_factor,
            rebalance=goal.rebalance,
            sizes=found.sizes,
            others=found.others,
            isr=found.isr,
            leaders=found.leaders,
        )
    except PlanError as error:
        raise OperationError(str(error), advice=f"running brokers: {_ids(state.nodes)}") from None
    return PlannedMoves(made, found.racks, left_out, found.warnings)


async def plan_targets(cluster: Cluster, targets: Mapping[Key, tuple[int, ...]]) -> PlannedMoves:
    """Make a plan of given target replicas; partitions that have them already are left out. Raises OperationError."""
    from barnabas.client.reassignment_plan import ReassignmentPlan

    state, keys = await find_partitions(cluster, [Selection(topic, (index,)) for topic, index in targets])
    unknown = sorted({each for replicas in targets.values() for each in replicas} - set(state.nodes))
    if unknown:
        raise OperationError(
            "it does not exist, or is not running",
            resource=f"broker {unknown[0]}",
            advice=f"running brokers: {_ids(state.nodes)}",
        )
    found = await collect(cluster, state, keys)
    changed = {key: target for key, target in targets.items() if found.current[key] != target}
    return PlannedMoves(ReassignmentPlan(found.current, changed, found.sizes), found.racks, warnings=found.warnings)


def _ids(broker_ids: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(broker_ids)))


async def collect(cluster: Cluster, state: ClusterState, keys: Sequence[Key], *, rack_aware: bool = True) -> PlanInput:
    """Collect the input of a plan for these partitions. Sizes on brokers that do not answer are left out, with a warning."""
    chosen = set(keys)
    others: Counter[int] = Counter()
    for name, topic in (await cluster.metadata(None)).topics.items():
        for index, partition in topic.partitions.items():
            if (name, index) not in chosen:
                others.update(partition.replicas)
    found = {key: each for key in keys if (each := state.partition(*key)) is not None}
    racks = {node.id: node.rack if rack_aware else None for node in state.nodes.values()}
    sizes: dict[Key, int] = {}
    warnings = []
    for broker_id, told in (await replica_sizes(cluster, state.nodes, keys)).items():
        if isinstance(told, KafkaError):
            warnings.append(f"the sizes on broker {broker_id} are unknown: {told.message}")
        else:
            sizes |= {key: max(size, sizes.get(key, 0)) for key, size in told.items()}
    return PlanInput(
        current={key: each.replicas for key, each in found.items()},
        racks=racks,
        sizes=sizes,
        others=others,
        isr={key: each.isr for key, each in found.items()},
        leaders={key: each.leader_id for key, each in found.items()},
        warnings=tuple(warnings),
    )


async def replica_sizes(
    cluster: Cluster, broker_ids: Iterable[int], keys: Iterable[Key]
) -> dict[int, dict[Key, int] | KafkaError]:
    """Return the sizes in bytes of these partitions on each broker, or the broker's error."""
    from barnabas.client.admin.log_dirs import LogDirs

    timeout_ms = min(_SIZES_TIMEOUT_MS, cluster.settings.get_int("default.api.timeout.ms"))
    found = await LogDirs(cluster).describe_log_dirs(broker_ids, partitions=keys, timeout_ms=timeout_ms)
    return {
        broker_id: dirs
        if isinstance(dirs, KafkaError)
        else {(r.topic, r.partition): r.size for each in dirs.values() for r in each.replicas if not r.is_future}
        for broker_id, dirs in found.items()
    }
