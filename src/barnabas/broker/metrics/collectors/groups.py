"""Groups by type and state, and the lag of groups whose coordinator is this node.

The lag of a partition is its high watermark on this node minus the committed offset. Partitions that are on other nodes
have no row.
"""

from __future__ import annotations

from collections import Counter

from barnabas.broker.metrics.exposition import Exposition, counter, gauge, labels
from barnabas.broker.metrics.observed import Observed
from barnabas.groups.coordinator import listed_groups
from barnabas.groups.image import GroupType
from barnabas.groups.shard import Shard
from barnabas.slices import Slices

MAX_GROUP_ID_CHARS = 256  # a longer name has no rows of its own

COUNT = gauge("kafka_server_group_coordinator_metrics_group_count", "Groups of this coordinator.", "protocol")
CLASSIC = gauge(
    "kafka_server_group_coordinator_metrics_classic_group_count", "Groups of the classic protocol.", "state"
)
CONSUMER = gauge(
    "kafka_server_group_coordinator_metrics_consumer_group_count", "Groups of the consumer protocol.", "state"
)
LOADED = gauge("barnabas_coordinator_partitions", "Partitions of the coordinators' topics.", "coordinator", "state")
COMMITTED = gauge(
    "kafka_consumergroup_current_offset",
    "Committed offset of a group.",
    *("consumergroup", "topic", "partition"),
)
LAG = gauge(
    "kafka_consumergroup_lag",
    "Records between the committed offset of a group and the high watermark.",
    *("consumergroup", "topic", "partition"),
)
MEMBER_BYTES = gauge("barnabas_groups_member_bytes", "Memory of the members of all groups, estimated.")
PATTERNS = gauge("barnabas_groups_regular_expressions", "Regular expressions in subscriptions.")
REFUSED = counter("barnabas_groups_refused_total", "Requests refused because a limit of the groups was reached.")
METRICS = (COUNT, CLASSIC, CONSUMER, LOADED, COMMITTED, LAG, MEMBER_BYTES, PATTERNS, REFUSED)
BY_TYPE = {GroupType.CLASSIC: CLASSIC, GroupType.CONSUMER: CONSUMER}


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    coordinators = node.coordinators
    if coordinators is None:
        return
    room = coordinators.groups.room
    out.add(MEMBER_BYTES, room.held_bytes)
    out.add(PATTERNS, room.pattern_count)
    out.add(REFUSED, room.refused_total)
    for name, machines in (
        ("group", coordinators.groups.machines),
        ("transaction", coordinators.transactions.machines),
    ):
        for state, count in machines.states().items():
            out.add(LOADED, count, labels(coordinator=name, state=state))
    states: Counter[tuple[GroupType, str]] = Counter()
    lags = _Lags(node, out, left_out)
    for shard in coordinators.groups.shards.loaded():
        for group in listed_groups(shard):
            states[group.type, str(group.state)] += 1
            yield
        yield from lags.add(shard)
    types = Counter({GroupType.CLASSIC: 0, GroupType.CONSUMER: 0})
    for (kind, state), count in states.items():
        types[kind] += count
        if kind in BY_TYPE:
            out.add(BY_TYPE[kind], count, labels(state=state))
    for kind, count in types.items():
        out.add(COUNT, count, labels(protocol=kind))


class _Lags:
    """Rows of committed offsets, up to the limits on groups and on partitions."""

    def __init__(self, node: Observed, out: Exposition, left_out: Counter[str]) -> None:
        self._replicas = node.replicas
        self._out = out
        self._left_out = left_out
        self._groups_left = node.max_rows("groups")
        self._rows_left = node.max_rows("partitions")

    def add(self, shard: Shard) -> Slices[None]:
        for group_id, topics in shard.machine.image.offsets.items():
            yield
            if self._groups_left <= 0 or len(group_id) > MAX_GROUP_ID_CHARS:
                self._left_out["groups"] += 1
                continue
            self._groups_left -= 1
            for topic, partitions in topics.items():
                for partition_id, committed in partitions.items():
                    self._add(group_id, topic, partition_id, committed.offset)
                    yield

    def _add(self, group_id: str, topic: str, partition_id: int, offset: int) -> None:
        partition = None if self._replicas is None else self._replicas.get(topic, partition_id)
        if self._rows_left <= 0 or partition is None:
            self._left_out["offsets"] += 1
            return
        self._rows_left -= 1
        text = labels(consumergroup=group_id, topic=topic, partition=partition_id)
        self._out.add(COMMITTED, offset, text)
        self._out.add(LAG, max(0, partition.high_watermark - offset), text)
