"""Reassignments against a live cluster: collect what a plan needs, begin one, watch its progress.

Its one rule: a throttle that is set here is cleared by `unthrottle`, when the move is done or when the user asks for it.
Decisions are in `client.reassignment_plan`, `progress` and `throttles`; this module asks the cluster.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from barnabas.cli.terminal.output import note
from barnabas.cli.terminal.times import parse_bytes
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.reassignments import PartitionReassignment
    from barnabas.client.cluster import Cluster
    from barnabas.client.state import ClusterState
    from barnabas.operations.reassignments.progress import Look

Key = tuple[str, int]

_MOST_PATIENCE_MS = 10_000  # for sizes, without which there is still a plan


def parse_rate(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """The callback of an option that takes bytes a second."""
    try:
        return None if value is None else parse_bytes(value)
    except ValueError as error:
        raise click.BadParameter(f"{error}.", ctx, param) from None


throttle_option = click.option(
    "--throttle",
    metavar="RATE",
    callback=parse_rate,
    help="Bytes a second, as 50MB; cleared at the end if --wait is given.",
)


class Situation(NamedTuple):
    """What a plan is made from: partitions that are chosen, brokers with their racks, sizes, and the load of the rest."""

    current: Mapping[Key, tuple[int, ...]]
    racks: Mapping[int, str | None]
    sizes: Mapping[Key, int]
    others: Mapping[int, int]


async def look_at(cluster: Cluster, state: ClusterState, keys: Sequence[Key], *, rack_aware: bool = True) -> Situation:
    """Sizes of brokers that do not answer are left out, with a note."""
    chosen = set(keys)
    others: Counter[int] = Counter()
    for name, topic in (await cluster.metadata(None)).topics.items():
        for index, partition in topic.partitions.items():
            if (name, index) not in chosen:
                others.update(partition.replicas)
    found = {key: state.partition(*key) for key in keys}
    current = {key: each.replicas for key, each in found.items() if each is not None}
    racks = {node.id: node.rack if rack_aware else None for node in state.nodes.values()}
    sizes: dict[Key, int] = {}
    for broker_id, told in (await replica_sizes(cluster, state.nodes, keys)).items():
        if isinstance(told, KafkaError):
            note(f"warning: the sizes on broker {broker_id} are not known: {told.message}")
        else:
            sizes |= {key: max(size, sizes.get(key, 0)) for key, size in told.items()}
    return Situation(current, racks, sizes, others)


async def replica_sizes(
    cluster: Cluster, broker_ids: Iterable[int], keys: Iterable[Key]
) -> dict[int, dict[Key, int] | KafkaError]:
    """The bytes of these partitions on each broker."""
    from barnabas.client.admin.log_dirs import LogDirs

    patience_ms = min(_MOST_PATIENCE_MS, cluster.settings.get_int("default.api.timeout.ms"))
    found = await LogDirs(cluster).describe_log_dirs(broker_ids, partitions=keys, timeout_ms=patience_ms)
    return {
        broker_id: dirs
        if isinstance(dirs, KafkaError)
        else {(r.topic, r.partition): r.size for each in dirs.values() for r in each.replicas if not r.is_future}
        for broker_id, dirs in found.items()
    }


async def progress_look(cluster: Cluster, ongoing: Mapping[Key, PartitionReassignment]) -> Look:
    """How far these are now; controllers do not know that."""
    from barnabas.operations.reassignments.progress import Look

    if not ongoing or not cluster.state.brokers:
        return Look(time.monotonic(), ongoing, {}, {}, {})
    state = await cluster.metadata({topic for topic, _ in ongoing})
    found = {key: each for key in ongoing if (each := state.partition(*key)) is not None}
    leaders = {key: each.leader_id for key, each in found.items()}
    wanted = {*leaders.values(), *(each for row in ongoing.values() for each in row.adding_replicas)} & set(state.nodes)
    told = await replica_sizes(cluster, sorted(wanted), ongoing)
    sizes = {broker_id: each for broker_id, each in told.items() if not isinstance(each, KafkaError)}
    return Look(time.monotonic(), ongoing, leaders, {key: each.isr for key, each in found.items()}, sizes)


async def begin(
    cluster: Cluster, targets: Mapping[Key, Sequence[int]], current: Mapping[Key, Sequence[int]], throttle: int | None
) -> dict[Key, KafkaError | None]:
    """Begin to reassign, throttled if asked for."""
    from barnabas.client.admin.reassignments import Reassignments
    from barnabas.operations.reassignments import throttles

    part = Reassignments(cluster)
    if throttle is not None:
        ongoing = await part.list_partition_reassignments()
        await throttles.throttle(cluster, throttles.proposed_moves(ongoing, targets, current), throttle)
    return await part.alter_partition_reassignments(targets)


async def unthrottle(cluster: Cluster, topics: Iterable[str]) -> list[str]:
    """Clear the throttles of all brokers, and of those of the topics that have one, which are returned."""
    from barnabas.operations.reassignments import throttles

    throttled = await throttles.throttled_topics(cluster, list(topics))
    await throttles.clear_topics(cluster, throttled)
    await throttles.clear_brokers(cluster, sorted(cluster.state.nodes))
    return throttled


async def wait_done(cluster: Cluster, keys: Iterable[Key], every_s: float, what: str) -> None:
    """Until none of these is being reassigned, with a line of progress on a terminal."""
    from barnabas.cli.terminal.output import Progress
    from barnabas.client.admin.reassignments import Reassignments
    from barnabas.operations.reassignments.progress import progress_of, sum_of

    wanted = list(keys)
    part = Reassignments(cluster)
    most = 0
    with Progress(what, 1000) as shown:
        while wanted and (ongoing := await part.list_partition_reassignments(wanted)):
            look = await progress_look(cluster, ongoing)
            left = sum_of([progress_of(key, look) for key in ongoing]).bytes_left or 0
            most = max(most, left, 1)
            shown.update(1000 * (most - left) // most)
            await asyncio.sleep(every_s)


def plan_rows(plan: Any) -> list[dict[str, Any]]:
    """A row for each partition that changes."""
    return [
        {
            "topic": key[0],
            "partition": key[1],
            "before": list(plan.current[key]),
            "after": list(after),
            "adding": list(plan.adding(key)),
            "removing": list(plan.removing(key)),
            "bytes": plan.bytes_to_copy(key),
        }
        for key, after in sorted(plan.targets.items())
    ]
