"""Brokers of a cluster in detail: loads, log dirs, releases and features, and the metadata quorum."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from barnabas.operations.broker_loads import BrokerLoad, look_at_brokers
from barnabas.operations.features import level_text
from barnabas.operations.quorum.active_controller import ActiveController, find_active_controller
from barnabas.operations.quorum.health import Health, judge
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.features import FeatureMetadata
    from barnabas.client.admin.quorum import QuorumInfo
    from barnabas.client.cluster import Cluster


class Feature(NamedTuple):
    """A feature: the finalized level of the cluster, and the levels that the asked node supports."""

    name: str
    level: str
    supported: str


class BrokersDetail(NamedTuple):
    """The brokers of a cluster. `supported` has the metadata versions that each broker supports, as text."""

    loads: list[BrokerLoad]
    controller: ActiveController
    features: list[Feature]
    releases: dict[int, str]


async def look_at_brokers_in_detail(cluster: Cluster) -> BrokersDetail:
    """Ask for loads, the active controller, features, and what each broker supports."""
    from barnabas.client.admin.brokers import Brokers
    from barnabas.client.admin.features import Features

    loads, controller, features = await asyncio.gather(
        look_at_brokers(cluster), find_active_controller(cluster), Features(cluster).describe_features()
    )
    running = [each.broker_id for each in loads if each.node is not None and not each.node.is_fenced]
    versions = await Brokers(cluster).api_versions(running, timeout_ms=5_000)
    releases = {}
    for broker_id, found in versions.items():
        if isinstance(found, KafkaError):
            continue
        supported = found.supported_features.get("metadata.version")
        if supported is not None:
            releases[broker_id] = level_text("metadata.version", supported.last)
    return BrokersDetail(loads, controller, features_of(features), releases)


def features_of(found: FeatureMetadata) -> list[Feature]:
    """Return all features by name. Pure."""
    names = sorted({*found.supported_features, *found.finalized_features})
    rows = []
    for name in names:
        versions = found.supported_features.get(name)
        supported = (
            "-" if versions is None else f"{level_text(name, versions.first)} to {level_text(name, versions.last)}"
        )
        rows.append(Feature(name, level_text(name, found.level(name)), supported))
    return rows


class QuorumDetail(NamedTuple):
    """The quorum and its health."""

    info: QuorumInfo
    health: Health


async def look_at_quorum(cluster: Cluster) -> QuorumDetail:
    """Ask the leader of the quorum. Raises KafkaError."""
    from barnabas.client.admin.quorum import Quorum

    info = await Quorum(cluster).describe_quorum()
    return QuorumDetail(info, judge(info, time.time_ns() // 1_000_000))


class LogDirSummary(NamedTuple):
    """A log dir in numbers: it may have very many replicas. Bytes of the disk are None before Kafka 3.3."""

    error: KafkaError | None
    is_cordoned: bool
    replicas: int
    used_bytes: int
    usable_bytes: int | None
    total_bytes: int | None


async def look_at_log_dirs(cluster: Cluster, broker_id: int) -> Mapping[str, LogDirSummary] | KafkaError:
    """Ask for the log dirs of a broker."""
    from barnabas.client.admin.log_dirs import LogDirs

    found = (await LogDirs(cluster).describe_log_dirs([broker_id]))[broker_id]
    if isinstance(found, KafkaError):
        return found
    return {
        path: LogDirSummary(
            each.error,
            each.is_cordoned,
            len(each.replicas),
            sum(replica.size for replica in each.replicas),
            each.usable_bytes,
            each.total_bytes,
        )
        for path, each in found.items()
    }
