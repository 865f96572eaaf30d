"""One topic with everything that belongs to it: offsets, sizes, settings, ACLs and groups."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client.admin.acls import Acls
from barnabas.client.admin.config_values import ConfigResource
from barnabas.client.admin.configs import Config, Configs
from barnabas.client.admin.log_dirs import LogDirs
from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.operations.errors import refused
from barnabas.operations.groups.positions import logs_of
from barnabas.operations.groups.reset_plan import Log
from barnabas.operations.groups.summaries import GroupSummary, look_at_groups
from barnabas.operations.topics.facts import TopicFacts, look_at
from barnabas.operations.topics.inventory import TopicSummary, last_writes
from barnabas.security.acl import AclEntry, AclFilter, PatternType, ResourceType
from barnabas.security.acl_text import entry_order
from barnabas.wire.errors import ErrorCode, KafkaError


class TopicDetail(NamedTuple):
    """A topic; what may not be seen is None."""

    facts: TopicFacts
    logs: Mapping[int, Log | KafkaError]
    sizes: Mapping[int, Mapping[int, int]]
    """Bytes by partition and broker."""
    config: Config | KafkaError
    acls: list[AclEntry] | None
    groups: list[GroupSummary]
    written: Mapping[str, int | None]


async def look_at_topic(cluster: Cluster, name: str) -> TopicDetail:
    """Ask for everything about a topic. Raises OperationError if it does not exist."""
    found = await look_at(cluster, [name])
    if name in found.errors:
        raise refused(found.errors[name], f"topic {name}")
    facts = found.topics[0]
    keys = [TopicPartition(name, each.partition.partition_index) for each in facts.partitions]
    resource = ConfigResource.topic(name)
    logs, dirs, configs, acls, groups = await asyncio.gather(
        logs_of(cluster, keys),
        LogDirs(cluster).describe_log_dirs(partitions=keys),
        Configs(cluster).describe_configs([resource], include_synonyms=True),
        _acls(cluster, name),
        look_at_groups(cluster),
    )
    sizes: dict[int, dict[int, int]] = {}
    for broker_id, found_dirs in dirs.items():
        for log_dir in () if isinstance(found_dirs, KafkaError) else found_dirs.values():
            for replica in log_dir.replicas:
                sizes.setdefault(replica.partition, {})[broker_id] = replica.size
    summary = TopicSummary(name, False, len(keys), 0, 0, 0, None, None, None)
    try:
        written = await last_writes(cluster, [summary])
    except KafkaError:
        written = {}
    return TopicDetail(
        facts,
        {key.partition: log for key, log in logs.items()},
        sizes,
        configs[resource],
        acls,
        [each for each in groups.groups.values() if name in each.topics],
        written,
    )


async def _acls(cluster: Cluster, name: str) -> list[AclEntry] | None:
    wanted = AclFilter(resource_type=ResourceType.TOPIC, resource_name=name, pattern_type=PatternType.MATCH)
    try:
        return sorted(await Acls(cluster).describe_acls(wanted), key=entry_order)
    except KafkaError as error:
        if error.code in (ErrorCode.SECURITY_DISABLED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
            return None
        raise
