"""Records that a change of settings deletes: which change deletes them, and an estimate of how many.

Its one rule: it only looks. Brokers delete whole segments, so an estimate is an upper bound. A change that finds no records to
delete is not reported, nor is one that a broker will refuse. A failed estimate is reported without numbers.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from barnabas.client.admin.config_values import AlterConfigOp, AlterConfigOpType, Config, ConfigResource
from barnabas.client.admin.configs import Configs
from barnabas.client.admin.log_dirs import LogDirs
from barnabas.client.admin.records import OffsetSpec, Records
from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.config import topic as topic_settings
from barnabas.config.resource_type import ConfigResourceType
from barnabas.config.values import ConfigError, split_list
from barnabas.operations.quantities import bytes_text, duration_text
from barnabas.wire.errors import KafkaError, UnsupportedVersionError

RETENTION_MS = "retention.ms"
RETENTION_BYTES = "retention.bytes"
CLEANUP_POLICY = "cleanup.policy"
DECIDING = (RETENTION_MS, RETENTION_BYTES, CLEANUP_POLICY)
"""The settings of a topic that decide which records are deleted."""

Settings = Mapping[str, str | None]

MAX_ESTIMATES = 50
"""Topics whose records are estimated; each takes a few requests. The others are reported without numbers."""
_TIMEOUT_MS = 5_000


class Retention(NamedTuple):
    """When records of a topic are deleted. Infinity means never."""

    ms: float
    bytes: float
    is_compacted: bool


class Loss(NamedTuple):
    """A change that deletes records: a sentence, and the new retention."""

    reason: str
    after: Retention
    is_newly_compacted: bool = False


def retention_of(settings: Settings) -> Retention:
    """Return the retention that effective settings of a topic mean. Raises ConfigError for an invalid value."""
    parsed = {name: topic_settings.definitions()[name].parse(settings.get(name)) for name in DECIDING}
    policies = parsed[CLEANUP_POLICY]
    names = policies if isinstance(policies, tuple) else ()

    def limit(name: str) -> float:
        value = parsed[name]
        return value if isinstance(value, int) and value >= 0 and "delete" in names else math.inf

    return Retention(limit(RETENTION_MS), limit(RETENTION_BYTES), "compact" in names)


def loss(before: Settings, after: Settings) -> Loss | None:
    """Compare effective settings of a topic before and after a change.

    >>> before = {"retention.ms": "604800000", "cleanup.policy": "delete"}
    >>> loss(before, {**before, "retention.ms": "60000"}).reason
    'records older than 1m are deleted'
    """
    try:
        was, now = retention_of(before), retention_of(after)
    except ConfigError:
        return None  # a broker refuses it
    reasons = []
    if now.ms < was.ms:
        reasons.append(f"records older than {duration_text(int(now.ms))} are deleted")
    if now.bytes < was.bytes:
        reasons.append(f"the oldest records of partitions larger than {bytes_text(int(now.bytes))} are deleted")
    is_newly_compacted = now.is_compacted and not was.is_compacted
    if is_newly_compacted:
        reasons.append("compaction deletes all but the last record of each key")
    return Loss("; ".join(reasons), now, is_newly_compacted) if reasons else None


def changed(effective: Settings, ops: Iterable[AlterConfigOp], inherited: Settings) -> dict[str, str | None]:
    """Return the effective settings of a topic after these changes. `inherited` are those of a topic without its own."""
    after = dict(effective)
    for op in ops:
        if op.type is AlterConfigOpType.SET:
            after[op.name] = op.value
        elif op.type is AlterConfigOpType.DELETE:
            after[op.name] = inherited.get(op.name)
        else:
            entries, named = split_list(after.get(op.name) or ""), split_list(op.value or "")
            kept = [each for each in entries if each not in named]
            after[op.name] = ",".join(kept if op.type is AlterConfigOpType.SUBTRACT else (*kept, *named))
    return after


async def losses(cluster: Cluster, alterations: Mapping[ConfigResource, Iterable[AlterConfigOp]]) -> list[str]:
    """Return a sentence for each resource whose change deletes records. Other resources than topics and brokers have none."""
    wanted = {resource: _deciding(resource, ops) for resource, ops in alterations.items()}
    wanted = {resource: ops for resource, ops in wanted.items() if ops}
    if not wanted:
        return []
    found = await Configs(cluster).describe_configs(wanted)
    inherited = await _inherited(cluster)
    sentences = []
    estimated = 0
    for resource, ops in wanted.items():
        config = found[resource]
        if isinstance(config, KafkaError):
            continue  # the change itself will report it
        if resource.type is ConfigResourceType.TOPIC:
            effective = {name: config[name].value for name in DECIDING if name in config}
        else:
            effective = dict(inherited)
        lost = loss(effective, changed(effective, ops, inherited))
        if lost is None:
            continue
        if resource.type is ConfigResourceType.TOPIC:
            estimated += 1
            amount = await _amount(cluster, resource.name, lost) if estimated <= MAX_ESTIMATES else ""
            if amount is not None:
                sentences.append(f"topic {resource.name}: {lost.reason}{amount}")
        else:
            which = f"on broker {resource.name}" if resource.name else "on all brokers"
            sentences.append(f"topics without settings of their own {which}: {lost.reason}")
    return sentences


def _deciding(resource: ConfigResource, ops: Iterable[AlterConfigOp]) -> list[AlterConfigOp]:
    """Return the changes of settings that decide about deletion, by their names for topics and in their unit."""
    if resource.type is ConfigResourceType.TOPIC:
        return [op for op in ops if op.name in DECIDING]
    if resource.type is not ConfigResourceType.BROKER:
        return []
    names = {topic_settings.definitions()[name].synonyms[0].name: name for name in DECIDING}
    return [op._replace(name=names[op.name]) for op in ops if op.name in names]


async def _inherited(cluster: Cluster) -> dict[str, str | None]:
    """Return the deciding settings of a topic without its own: those of a broker, or Kafka's defaults if none can be asked."""
    definitions = {name: topic_settings.definitions()[name] for name in DECIDING}
    values = {name: definition.default for name, definition in definitions.items()}
    if cluster.settings.bootstrap_controllers:
        return values
    state = await cluster.metadata([])
    ids = [node.id for node in state.nodes.values() if not node.is_fenced]
    if not ids:
        return values
    resource = ConfigResource.broker(min(ids))
    config: Config | KafkaError = (await Configs(cluster).describe_configs([resource]))[resource]
    if isinstance(config, KafkaError):
        return values
    for name, definition in definitions.items():
        for synonym, factor in definition.synonyms:
            text = config[synonym].value if synonym in config else None
            if text is not None:
                values[name] = text if factor == 1 else str(int(text) * factor)
                break
    return values


async def deletion_loss(cluster: Cluster, topics: Collection[str]) -> str | None:
    """Return a sentence about the records of topics that are to be deleted, or None if there are none."""
    try:
        state = await cluster.metadata(list(topics))
        partitions = [TopicPartition(name, index) for name, each in state.topics.items() for index in each.partitions]
        first = await _offsets(cluster, partitions, OffsetSpec.EARLIEST)
        end = await _offsets(cluster, partitions, OffsetSpec.LATEST)
        size = sum((await _sizes(cluster, partitions)).values())
    except (KafkaError, UnsupportedVersionError, OSError):
        return None  # the deletion itself is shown anyway
    records = sum(end[each] - first[each] for each in partitions if each in first and each in end)
    if not records:
        return None
    return f"{len(topics)} topic{'s' * (len(topics) != 1)} with {records} records{_of_bytes(size)} will be deleted"


# --- estimates


class _Partition(NamedTuple):
    """The records of a partition, those of them that are too old, and its size if it is known."""

    records: int
    old_records: int
    size: int | None

    def share(self, limit: float) -> float:
        """Return which part of the records is deleted, by age or by a limit in bytes."""
        by_age = self.old_records / self.records if self.records else 0.0
        by_size = 1 - limit / self.size if self.size is not None and self.size > limit else 0.0
        return max(by_age, by_size)


async def _amount(cluster: Cluster, topic: str, lost: Loss) -> str | None:
    """Estimate what is deleted, as an addition to the sentence; None if there is nothing to delete."""
    if cluster.settings.bootstrap_controllers:
        return ""  # controllers have no records
    try:
        partitions = await _partitions(cluster, topic, lost.after)
    except (KafkaError, UnsupportedVersionError, OSError):
        partitions = None
    if partitions is None or (lost.after.bytes < math.inf and any(each.size is None for each in partitions)):
        return ""
    records, size = sum(each.records for each in partitions), sum(each.size or 0 for each in partitions)
    if not records:
        return None
    if lost.is_newly_compacted:
        return f" (it has {records} records{_of_bytes(size)})"
    shares = [(each, each.share(lost.after.bytes)) for each in partitions]
    deleted = sum(math.ceil(each.records * share) for each, share in shares)
    if not deleted:
        return None
    about = _of_bytes(sum(int((each.size or 0) * share) for each, share in shares), "about ")
    return f" (up to {deleted} of {records} records{about})"


async def _partitions(cluster: Cluster, topic: str, after: Retention) -> list[_Partition] | None:
    """Return the partitions of a topic, or None if the leader of one cannot be asked."""
    state = await cluster.metadata([topic])
    if topic not in state.topics:
        return []
    partitions = [TopicPartition(topic, index) for index in state.topics[topic].partitions]
    oldest_ms = 0 if after.ms == math.inf else max(0, int(time.time() * 1000) - int(after.ms))
    first, end, kept = await asyncio.gather(
        *(_offsets(cluster, partitions, at) for at in (OffsetSpec.EARLIEST, OffsetSpec.LATEST, oldest_ms))
    )
    if not len(first) == len(end) == len(kept) == len(partitions):
        return None
    sizes = await _sizes(cluster, partitions)
    return [
        _Partition(
            end[each] - first[each],
            max(0, (end[each] if kept[each] < 0 else kept[each]) - first[each]),
            sizes.get(each),
        )
        for each in partitions
    ]


def _of_bytes(size: int, about: str = "") -> str:
    return f", {about}{bytes_text(size)}" if size else ""


async def _offsets(cluster: Cluster, partitions: Iterable[TopicPartition], at: int) -> dict[TopicPartition, int]:
    found = await Records(cluster).list_offsets(dict.fromkeys(partitions, at), timeout_ms=_TIMEOUT_MS)
    return {each: listed.offset for each, listed in found.items() if not isinstance(listed, KafkaError)}


async def _sizes(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the size of the largest replica of each partition. Replicas on brokers that cannot be asked are left out."""
    sizes: dict[TopicPartition, int] = {}
    for log_dirs in (
        await LogDirs(cluster).describe_log_dirs(partitions=list(partitions), timeout_ms=_TIMEOUT_MS)
    ).values():
        for log_dir in () if isinstance(log_dirs, KafkaError) else log_dirs.values():
            for replica in log_dir.replicas:
                key = TopicPartition(replica.topic, replica.partition)
                sizes[key] = max(sizes.get(key, 0), replica.size)
    return sizes
