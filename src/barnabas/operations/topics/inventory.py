"""All topics of a cluster in one list: partitions, health, size, growth, and the groups that use them.

Its one rule: it costs few requests, however many topics there are. `with_rates` compares two inventories, and is pure.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from barnabas.operations.topics.idle import group_counts, topic_sizes
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.state import Topic

_MIN_INTERVAL_S = 1.0


class TopicSummary(NamedTuple):
    """A topic. `size_bytes` counts all replicas; None means that it is not known, as for the other fields."""

    name: str
    is_internal: bool
    partitions: int
    replication_factor: int
    offline: int
    under_replicated: int
    size_bytes: int | None
    bytes_per_second: float | None
    groups: int | None

    @property
    def status(self) -> str:
        if self.offline:
            return "offline"
        return "under-replicated" if self.under_replicated else "ok"


class Inventory(NamedTuple):
    """The topics by name, and when their sizes were asked for, in seconds of a monotonic clock."""

    topics: dict[str, TopicSummary]
    at_s: float
    has_sizes: bool


async def look_at_inventory(cluster: Cluster) -> Inventory:
    """Ask for all topics, their sizes and their groups."""
    state = await cluster.metadata(None)
    sizes = await topic_sizes(cluster)
    at_s = time.monotonic()
    groups = await group_counts(cluster)
    return Inventory(summaries(state.topics.values(), sizes, groups), at_s, bool(sizes) or not state.topics)


def summaries(
    topics: Iterable[Topic], sizes: Mapping[str, int], groups: Counter[str] | None
) -> dict[str, TopicSummary]:
    """Summarize each topic. Pure."""
    found = {}
    for topic in sorted(topics, key=lambda each: each.name):
        partitions = topic.partitions.values()
        found[topic.name] = TopicSummary(
            topic.name,
            topic.is_internal,
            len(partitions),
            len(topic.partitions[0].replicas) if 0 in topic.partitions else 0,
            sum(each.leader_id < 0 for each in partitions),
            sum(len(each.isr) < len(each.replicas) for each in partitions),
            sizes.get(topic.name) if sizes else None,
            None,
            None if groups is None else groups[topic.name],
        )
    return found


def with_rates(before: Inventory | None, now: Inventory) -> Inventory:
    """Add how fast each topic has grown since an earlier inventory, in bytes per second over all replicas. Pure."""
    if before is None or now.at_s - before.at_s < _MIN_INTERVAL_S:
        return now
    seconds = now.at_s - before.at_s
    topics = {}
    for name, topic in now.topics.items():
        then = before.topics.get(name)
        if then is not None and then.size_bytes is not None and topic.size_bytes is not None:
            grown = max(topic.size_bytes - then.size_bytes, 0)
            topics[name] = topic._replace(bytes_per_second=grown / seconds)
        else:
            topics[name] = topic
    return now._replace(topics=topics)


async def last_writes(cluster: Cluster, topics: Iterable[TopicSummary]) -> dict[str, int | None]:
    """Return the newest timestamp of each topic that can be read, None for those without one. Needs Kafka 3.0."""
    from barnabas.client.admin.records import OffsetSpec, Records
    from barnabas.client.records import TopicPartition

    partitions = [TopicPartition(each.name, number) for each in topics for number in range(each.partitions)]
    found: dict[str, int | None] = {}
    for key, offset in (
        await Records(cluster).list_offsets(dict.fromkeys(partitions, OffsetSpec.MAX_TIMESTAMP))
    ).items():
        if not isinstance(offset, KafkaError):
            known = found.get(key.topic)
            at_ms = offset.timestamp if offset.timestamp >= 0 else None
            found[key.topic] = at_ms if known is None else max(known, at_ms or known)
    return found
