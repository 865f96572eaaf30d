"""Read a live cluster into a value, which `difference` compares with a file and `export` writes.

Its one rule: it only reads, and only the sections asked for. What cannot be read is an error, because otherwise it would look
absent. ACLs of a cluster without an authorizer are the exception.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping

from barnabas.client.admin.acls import Acls
from barnabas.client.admin.configs import ConfigResource, Configs
from barnabas.client.admin.part import checked
from barnabas.client.admin.quotas import Quotas
from barnabas.client.admin.reassignments import Reassignments
from barnabas.client.admin.users import Users
from barnabas.client.cluster import Cluster
from barnabas.client.errors import UnsupportedByNodeError
from barnabas.client.state import ClusterState
from barnabas.declared.document import DEFAULT, SECTIONS, Credential, Document
from barnabas.declared.observed import Observed, ObservedTopic
from barnabas.security.acl import AclEntry, validate_new
from barnabas.wire.errors import ErrorCode, KafkaError


async def observe(
    cluster: Cluster, sections: Collection[str] = SECTIONS, *, declared: Document | None = None
) -> Observed:
    """Read these sections. If `declared` is given, only the configs of topics and brokers in it are read."""
    state = await cluster.metadata(None)
    topics, acls, quotas, users, brokers = await asyncio.gather(
        _topics(cluster, state, declared) if "topics" in sections else _nothing(),
        _acls(cluster) if "acls" in sections else _nothing(),
        Quotas(cluster).describe_client_quotas() if "quotas" in sections else _nothing(),
        _users(cluster) if "users" in sections else _nothing(),
        _brokers(cluster, state, declared) if "brokers" in sections else _nothing(),
    )
    racks = {node.id: node.rack for node in state.nodes.values() if not node.is_fenced}
    names = await _setting_names(cluster, state, declared)
    return Observed(topics, acls, quotas, users, brokers, racks, names)


async def _setting_names(cluster: Cluster, state: ClusterState, declared: Document | None) -> dict[str, frozenset[str]]:
    """Return the names of configs that the cluster knows, for the sections in which the file has unknown ones."""
    doubted = {doubt.section for doubt in (() if declared is None else declared.doubts) if doubt.is_unknown}
    one_of = {
        "topics": next((ConfigResource.topic(name) for name in sorted(state.topics)), None),
        "brokers": next((ConfigResource.broker(node.id) for node in state.nodes.values() if not node.is_fenced), None),
    }
    resources = {name: each for name, each in one_of.items() if name in doubted and each is not None}
    if not resources:
        return {}
    found = checked(await Configs(cluster).describe_configs(resources.values()))
    return {name: frozenset(found[resource]) for name, resource in resources.items()}


async def _nothing() -> None:
    return None


async def _topics(cluster: Cluster, state: ClusterState, declared: Document | None) -> dict[str, ObservedTopic]:
    wanted: Iterable[str] = state.topics
    if declared is not None and declared.topics is not None:
        await _check_visible(cluster, [name for name in declared.topics if name not in state.topics])
        wanted = [name for name, topic in declared.topics.items() if topic.configs is not None and name in state.topics]
    configs = await _settings(cluster, [ConfigResource.topic(name) for name in wanted])
    moves = await _moves(cluster) if _asks_for_replicas(declared) else {}
    return {
        name: ObservedTopic(
            name,
            {index: moves.get((name, index), found.replicas) for index, found in sorted(topic.partitions.items())},
            {index: found.isr for index, found in topic.partitions.items()},
            configs.get(ConfigResource.topic(name), {}),
            topic.is_internal,
            {index: found.leader_id for index, found in topic.partitions.items()},
        )
        for name, topic in sorted(state.topics.items())
    }


def _asks_for_replicas(declared: Document | None) -> bool:
    """Return whether replicas matter. Listing reassignments needs DESCRIBE on the cluster, so it is only done if they do."""
    if declared is None or declared.topics is None:
        return True
    return any(topic.replication_factor is not None for topic in declared.topics.values())


async def _check_visible(cluster: Cluster, names: list[str]) -> None:
    """Raise KafkaError if a topic may not be described: it would look absent."""
    if not names:
        return
    for name, code in (await cluster.metadata(names)).errors.items():
        if code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
            raise KafkaError(code, f"topic {name}: {code.message}")


async def _moves(cluster: Cluster) -> dict[tuple[str, int], tuple[int, ...]]:
    """Return the target replicas of partitions that are being reassigned."""
    try:
        moves = await Reassignments(cluster).list_partition_reassignments()
    except UnsupportedByNodeError:
        return {}  # before Kafka 2.4
    return {key: move.target_replicas for key, move in moves.items()}


async def _settings(
    cluster: Cluster, resources: Iterable[ConfigResource]
) -> dict[ConfigResource, dict[str, str | None]]:
    """Return the configs that are set on each resource itself, by name."""
    found = checked(await Configs(cluster).describe_configs(resources))
    return {
        resource: {
            name: None if entry.is_sensitive else entry.value
            for name, entry in sorted(config.items())
            if entry.source == resource.own_source
        }
        for resource, config in found.items()
    }


async def _brokers(
    cluster: Cluster, state: ClusterState, declared: Document | None
) -> Mapping[str, Mapping[str, str | None]]:
    names = [DEFAULT, *map(str, sorted(state.nodes))]
    if declared is not None and declared.brokers is not None:
        names = [name for name in names if name in declared.brokers]
    resources = {
        name: ConfigResource.all_brokers() if name == DEFAULT else ConfigResource.broker(int(name)) for name in names
    }
    found = await _settings(cluster, resources.values())
    return {name: found[resource] for name, resource in resources.items()}


async def _acls(cluster: Cluster) -> frozenset[AclEntry] | None:
    try:
        found = await Acls(cluster).describe_acls()
    except KafkaError as error:
        if error.code == ErrorCode.SECURITY_DISABLED:
            return None
        raise
    # ACLs of a newer Kafka that this version does not know cannot be declared, so they are not undeclared either.
    return frozenset(entry for entry in found if validate_new(entry) is None)


async def _users(cluster: Cluster) -> dict[Credential, int]:
    found = checked(await Users(cluster).describe_user_scram_credentials())
    return {(user, info.mechanism.sasl_name): info.iterations for user, infos in found.items() for info in infos}
