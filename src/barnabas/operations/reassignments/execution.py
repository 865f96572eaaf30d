"""Start a reassignment, throttle it, and follow its progress.

Its one rule: a throttle that is set here is cleared by `unthrottle`, when the move is done or when the user asks for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.operations.partitions import Key
from barnabas.operations.reassignments import throttles
from barnabas.operations.reassignments.plan import replica_sizes
from barnabas.operations.reassignments.progress import Look, progress_of, sum_of
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.reassignments import PartitionReassignment
    from barnabas.client.cluster import Cluster


async def begin(
    cluster: Cluster, targets: Mapping[Key, Sequence[int]], current: Mapping[Key, Sequence[int]], throttle: int | None
) -> dict[Key, KafkaError | None]:
    """Start to reassign, with at most `throttle` bytes per second on each broker involved; None does not throttle."""
    from barnabas.client.admin.reassignments import Reassignments

    part = Reassignments(cluster)
    if throttle is not None:
        ongoing = await part.list_partition_reassignments()
        await throttles.throttle(cluster, throttles.proposed_moves(ongoing, targets, current), throttle)
    return await part.alter_partition_reassignments(targets)


async def unthrottle(cluster: Cluster, topics: Iterable[str]) -> list[str]:
    """Clear the throttles of all brokers and of these topics; return the topics that had one."""
    throttled = await throttles.throttled_topics(cluster, list(topics))
    await throttles.clear_topics(cluster, throttled)
    await throttles.clear_brokers(cluster, sorted(cluster.state.nodes))
    return throttled


async def measure(cluster: Cluster, ongoing: Mapping[Key, PartitionReassignment]) -> Look:
    """Measure the progress of these reassignments by the sizes of replicas, which controllers do not report."""
    if not ongoing or not cluster.state.brokers:
        return Look(time.monotonic(), ongoing, {}, {}, {})
    state = await cluster.metadata({topic for topic, _ in ongoing})
    found = {key: each for key in ongoing if (each := state.partition(*key)) is not None}
    leaders = {key: each.leader_id for key, each in found.items()}
    wanted = {*leaders.values(), *(each for row in ongoing.values() for each in row.adding_replicas)} & set(state.nodes)
    told = await replica_sizes(cluster, sorted(wanted), ongoing)
    sizes = {broker_id: each for broker_id, each in told.items() if not isinstance(each, KafkaError)}
    return Look(time.monotonic(), ongoing, leaders, {key: each.isr for key, each in found.items()}, sizes)


async def follow(cluster: Cluster, keys: Iterable[Key], every_s: float) -> AsyncIterator[float]:
    """Yield the fraction done (0 to 1) every `every_s` seconds, until none of these is being reassigned."""
    from barnabas.client.admin.reassignments import Reassignments

    wanted = list(keys)
    part = Reassignments(cluster)
    most = 0
    while wanted and (ongoing := await part.list_partition_reassignments(wanted)):
        look = await measure(cluster, ongoing)
        left = sum_of([progress_of(key, look) for key in ongoing]).bytes_left or 0
        most = max(most, left, 1)
        yield (most - left) / most
        await asyncio.sleep(every_s)
