"""What the checks of a cluster look at, asked for once. The checks themselves are pure.

Its one rule: a question that is not answered is an `Unknown` with the reason, and the others are asked all the same. Only a
cluster that cannot be reached at all is an exception. Advertised addresses are tried first: if clients can use none of them,
nothing else is asked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from barnabas.operations.reassignments.throttles import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIRS_RATE,
)
from barnabas.operations.topics.facts import MIN_ISR, TopicFacts, look_at
from barnabas.wire.errors import ErrorCode, KafkaError, MalformedError, UnsupportedVersionError

if TYPE_CHECKING:
    from barnabas.client.admin.config_values import Config
    from barnabas.client.admin.groups import GroupDescription
    from barnabas.client.admin.log_dirs import LogDir
    from barnabas.client.admin.quorum import QuorumInfo
    from barnabas.client.admin.transactions import OpenTransaction
    from barnabas.client.cluster import Cluster
    from barnabas.client.state import Node
    from barnabas.client.versions import NodeVersions
    from barnabas.operations.groups.lag import PartitionPosition
    from barnabas.security.acl import AclEntry

T = TypeVar("T")

CLEANUP_POLICY, UNCLEAN = "cleanup.policy", "unclean.leader.election.enable"
THROTTLE_RATES = (LEADER_RATE, FOLLOWER_RATE, LOG_DIRS_RATE)
_TOPIC_KEYS = (MIN_ISR, CLEANUP_POLICY, UNCLEAN, LEADER_REPLICAS, FOLLOWER_REPLICAS)
_REACH_MS = 5_000
_MAX_GROUPS = 500
_ERRORS = (KafkaError, OSError, MalformedError, UnsupportedVersionError)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Why something is not known."""

    reason: str


class GroupFacts(NamedTuple):
    """A group of any type and its positions."""

    description: GroupDescription
    positions: list[PartitionPosition]


class ClusterFacts(NamedTuple):
    """A cluster. `unreachable` has why a node cannot be reached at the address that it tells clients.

    `quorum_clock_ms` is the clock of this machine when the quorum answered. `acls` is None without an authorizer.
    """

    address: str
    nodes: tuple[Node, ...]
    unreachable: Mapping[int, str]
    topics: list[TopicFacts] | Unknown
    log_dirs: Mapping[int, Mapping[str, LogDir] | KafkaError] | Unknown
    quorum: QuorumInfo | Unknown
    quorum_clock_ms: int
    unreachable_controllers: Mapping[str, str]
    configs: Mapping[int, Config | KafkaError] | Unknown
    versions: Mapping[int, NodeVersions | KafkaError] | Unknown
    groups: dict[str, GroupFacts] | Unknown
    hanging: list[OpenTransaction] | Unknown
    acls: list[AclEntry] | Unknown | None

    @property
    def running(self) -> list[Node]:
        return [each for each in self.nodes if not each.is_fenced]


async def look_at_cluster(cluster: Cluster, address: str) -> ClusterFacts:
    """Ask everything. `address` names the cluster in findings. Raises OperationError if only controllers are known."""
    from barnabas.client.admin.brokers import Brokers
    from barnabas.client.admin.configs import ConfigResource, Configs
    from barnabas.client.admin.log_dirs import LogDirs
    from barnabas.client.admin.transactions import Transactions
    from barnabas.operations.partitions import require_brokers

    require_brokers(cluster)
    known = tuple(cluster.state.brokers.values())
    unreachable = await _unreachable(cluster, {str(each.id): (each.host, each.port) for each in known})
    if len(unreachable) == len(known):
        nobody = Unknown("no broker can be reached at the address that it tells clients")
        lost = {int(each): why for each, why in unreachable.items()}
        return ClusterFacts(address, known, lost, nobody, nobody, nobody, 0, {}, nobody, nobody, nobody, nobody, nobody)
    nodes = await _asked(_nodes(cluster))
    every = known if isinstance(nodes, Unknown) else nodes
    running = [each.id for each in every if not each.is_fenced and str(each.id) not in unreachable]
    resources = [ConfigResource.broker(each) for each in running]
    async with asyncio.TaskGroup() as tasks:
        ask = tasks.create_task
        topics = ask(_asked(_topics(cluster)))
        dirs = ask(_asked(LogDirs(cluster).describe_log_dirs(running)))
        quorum = ask(_asked(_quorum(cluster)))
        configs = ask(_asked(Configs(cluster).describe_configs(resources)))
        versions = ask(_asked(Brokers(cluster).api_versions(running, timeout_ms=_REACH_MS)))
        groups = ask(_asked(_groups(cluster)))
        hanging = ask(_asked(Transactions(cluster).find_hanging_transactions()))
        acls = ask(_asked(_acls(cluster)))
    answer, settings = quorum.result(), configs.result()
    info, clock_ms = (answer, 0) if isinstance(answer, Unknown) else answer
    controllers = {} if isinstance(info, Unknown) else _controllers(info)
    return ClusterFacts(
        address,
        every,
        {int(each): why for each, why in unreachable.items()},
        topics.result(),
        dirs.result(),
        info,
        clock_ms,
        await _unreachable(cluster, controllers),
        settings if isinstance(settings, Unknown) else {int(each.name): found for each, found in settings.items()},
        versions.result(),
        groups.result(),
        hanging.result(),
        acls.result(),
    )


async def _asked(work: Coroutine[Any, Any, T]) -> T | Unknown:
    try:
        return await work
    except KafkaError as error:
        return Unknown(f"{error.code.name}: {error.message}")
    except _ERRORS as error:
        return Unknown(str(error) or type(error).__name__)


async def _unreachable(cluster: Cluster, addresses: Mapping[str, tuple[str, int]]) -> dict[str, str]:
    """Return the reason for each address to which this client cannot connect."""
    from barnabas.client import handshake
    from barnabas.config.endpoints import Address

    options = cluster.settings.connect_options()._replace(timeout_ms=_REACH_MS)

    async def reach(host: str, port: int) -> str | None:
        try:
            connection = await handshake.connect(Address(host, port), options)
        except _ERRORS as error:
            return str(error) or type(error).__name__
        connection.close()
        await connection.wait_closed()
        return None

    reasons = await asyncio.gather(*(reach(*each) for each in addresses.values()))
    return {name: reason for name, reason in zip(addresses, reasons, strict=True) if reason is not None}


async def _nodes(cluster: Cluster) -> tuple[Node, ...]:
    from barnabas.client.admin.brokers import Brokers

    brokers = Brokers(cluster)
    has_fenced = await brokers.can_list_fenced_brokers()
    return (await brokers.describe_cluster(include_fenced_brokers=has_fenced)).nodes


async def _topics(cluster: Cluster) -> list[TopicFacts]:
    return (await look_at(cluster, None, config_keys=_TOPIC_KEYS)).topics


async def _quorum(cluster: Cluster) -> tuple[QuorumInfo, int]:
    from barnabas.client.admin.quorum import Quorum

    before_ms = time.time_ns() // 1_000_000
    info = await Quorum(cluster).describe_quorum()
    return info, (before_ms + time.time_ns() // 1_000_000) // 2


def _controllers(info: QuorumInfo) -> dict[str, tuple[str, int]]:
    """Return the addresses of the voters, which brokers use. Those of loopback interfaces are of another machine."""
    return {
        f"{node_id} ({each.name} {each.host}:{each.port})": (each.host, each.port)
        for node_id, endpoints in info.nodes.items()
        for each in endpoints
    }


async def _groups(cluster: Cluster) -> dict[str, GroupFacts]:
    from barnabas.client.admin.groups import Groups
    from barnabas.operations.groups import any_type

    types = {each.group_id: each.type for each in await Groups(cluster).list_groups() if any_type.commits_offsets(each)}
    described = _good(await any_type.describe(cluster, sorted(types)[:_MAX_GROUPS], types))
    offsets = _good(await any_type.offsets_of(cluster, list(described), types))
    found = await any_type.positions_of(cluster, described, offsets, now_ms=time.time_ns() // 1_000_000)
    return {group_id: GroupFacts(described[group_id], rows) for group_id, rows in found.items()}


def _good(results: Mapping[str, T | KafkaError]) -> dict[str, T]:
    return {name: result for name, result in results.items() if not isinstance(result, KafkaError)}


async def _acls(cluster: Cluster) -> list[AclEntry] | None:
    from barnabas.client.admin.acls import Acls

    try:
        return await Acls(cluster).describe_acls()
    except KafkaError as error:
        if error.code is ErrorCode.SECURITY_DISABLED:
            return None
        raise


def names_text(names: Iterable[object], max_count: int = 5) -> str:
    """Return the first names, and the number of the others.

    >>> names_text(["a", "b"]), names_text(range(9), 3)
    ('a, b', '0, 1, 2 and 6 more')
    """
    every = list(map(str, names))
    more = f" and {len(every) - max_count:,} more" if len(every) > max_count else ""
    return ", ".join(every[:max_count]) + more
