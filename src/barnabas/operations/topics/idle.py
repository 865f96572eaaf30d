"""Topics without new records since a given time.

Its one rule: the newest timestamp in a log decides, because a broker can look it up without reading the log. Timestamps are
set by producers, unless the topic uses log append time. A topic without records is idle if it was created before that time,
or if its creation is unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.operations.topics.creation import creation_times
from barnabas.wire.errors import KafkaError, UnsupportedVersionError

if TYPE_CHECKING:
    from barnabas.client.admin.records import ListedOffset
    from barnabas.client.admin.topics import TopicListing
    from barnabas.client.cluster import Cluster
    from barnabas.client.records import TopicPartition


class Activity(NamedTuple):
    """The size of a topic, the time of its last record, and the number of groups with offsets in it; None if unknown.

    `created_ms` is known only for topics without records.
    """

    topic: TopicListing
    last_timestamp: int | None
    records: int | None
    size_bytes: int | None
    error: KafkaError | None = None
    is_idle: bool = False
    groups: int | None = None
    created_ms: int | None = None

    @property
    def may_be_new(self) -> bool:
        """Return whether the topic counts as idle only because nothing is known about its age."""
        return self.is_idle and self.last_timestamp is None and self.created_ms is None


async def look_at_activity(cluster: Cluster, topics: Iterable[TopicListing], since_ms: int) -> list[Activity]:
    """Return the activity of each topic, and whether it is idle since then. Brokers before Kafka 3.0 report no last time."""
    from barnabas.client.admin.records import OffsetSpec, Records
    from barnabas.client.errors import UnsupportedByNodeError
    from barnabas.client.records import TopicPartition

    listed = list(topics)
    partitions = [TopicPartition(topic.name, number) for topic in listed for number in range(topic.num_partitions)]
    records = Records(cluster)
    first = await records.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    last = await records.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    try:
        newest = await records.list_offsets(dict.fromkeys(partitions, OffsetSpec.MAX_TIMESTAMP))
    except UnsupportedByNodeError:  # such brokers still report whether there is a newer record
        newest = await records.list_offsets(dict.fromkeys(partitions, since_ms))
    sizes = await topic_sizes(cluster)
    groups = await group_counts(cluster)
    found = [
        _activity(topic, first, last, newest, sizes.get(topic.name), since_ms)._replace(
            groups=None if groups is None else groups[topic.name]
        )
        for topic in listed
    ]
    empty = {each.topic.name for each in found if each.error is None and each.last_timestamp is None}
    created = await creation_times(cluster, empty) if empty else {}
    return [with_creation(each, created.get(each.topic.name), since_ms) for each in found]


def with_creation(activity: Activity, created_ms: int | None, since_ms: int) -> Activity:
    """Add the creation time of a topic without records: one created since then is not idle."""
    if created_ms is None:
        return activity
    return activity._replace(created_ms=created_ms, is_idle=activity.is_idle and created_ms < since_ms)


def _activity(
    topic: TopicListing,
    first: dict[TopicPartition, ListedOffset | KafkaError],
    last: dict[TopicPartition, ListedOffset | KafkaError],
    newest: dict[TopicPartition, ListedOffset | KafkaError],
    size_bytes: int | None,
    since_ms: int,
) -> Activity:
    offsets: list[ListedOffset] = []
    for found in (first, last, newest):
        for each, result in found.items():
            if each.topic != topic.name:
                continue
            if isinstance(result, KafkaError):
                return Activity(topic, None, None, size_bytes, result)
            offsets.append(result)
    count = topic.num_partitions
    begin, end, newer = offsets[:count], offsets[count : 2 * count], offsets[2 * count :]
    records = sum(each.offset for each in end) - sum(each.offset for each in begin)
    timestamp = max((each.timestamp for each in newer), default=-1)
    is_idle = timestamp < since_ms
    return Activity(topic, timestamp if timestamp >= 0 else None, records, size_bytes, is_idle=is_idle)


async def group_counts(cluster: Cluster) -> Counter[str] | None:
    """Return the number of groups of any type with offsets in each topic, or None if a group may not be seen."""
    from barnabas.client.admin.groups import Groups
    from barnabas.operations.groups import any_type

    try:
        types = {each.group_id: each.type for each in await Groups(cluster).list_groups()}
        found = await any_type.offsets_of(cluster, list(types), types)
    except (KafkaError, UnsupportedVersionError):
        return None
    counts: Counter[str] = Counter()
    for offsets in found.values():
        if isinstance(offsets, KafkaError):
            return None
        counts.update({each.topic for each in (*offsets.offsets, *(offsets.lags or ()))})
    return counts


async def topic_sizes(cluster: Cluster) -> dict[str, int]:
    """Return the bytes of each topic over all replicas on brokers that answer; empty if access to log dirs is denied."""
    from barnabas.client.admin.log_dirs import LogDirs

    sizes: dict[str, int] = {}
    for log_dirs in (await LogDirs(cluster).describe_log_dirs()).values():
        if isinstance(log_dirs, KafkaError):
            continue
        for log_dir in log_dirs.values():
            for replica in log_dir.replicas:
                sizes[replica.topic] = sizes.get(replica.topic, 0) + replica.size
    return sizes
