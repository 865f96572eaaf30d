"""What a rehearsal needs of a running cluster beside its metadata: voters, sizes of replicas, settings of a controller.

Its one rule: it only reads, and what cannot be read is a warning.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.client.errors import UnsupportedByNodeError
from barnabas.config import server
from barnabas.config.server_config import ServerConfig
from barnabas.operations.partitions import Key
from barnabas.operations.rehearsal.outcome import Sizes
from barnabas.wire.errors import KafkaError, UnsupportedVersionError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

DECIDING = (
    *("default.replication.factor", "num.partitions", "min.insync.replicas", "unclean.leader.election.enable"),
    *("auto.leader.rebalance.enable", "broker.session.timeout.ms"),
)
"""Settings in server.properties that decisions depend on."""


class Surroundings(NamedTuple):
    voters: tuple[int, ...]
    sizes: Sizes | None
    config: ServerConfig
    warnings: list[str]


async def look_around(cluster: Cluster) -> Surroundings:
    """Read what is not in the metadata. Settings are those of a broker, because controllers have the same as a rule."""
    warnings: list[str] = []
    voters = await _voters(cluster, warnings)
    if cluster.settings.bootstrap_controllers:
        warnings.append("sizes and settings are not known, because only controllers were given; use --bootstrap-server")
        return Surroundings(voters, None, server.load(), warnings)
    state = await cluster.metadata(None)
    running = [node.id for node in state.nodes.values() if not node.is_fenced]
    sizes = await _sizes(cluster, running, warnings)
    settings = await _settings(cluster, [each for each in voters if each in running] or running, warnings)
    return Surroundings(voters, sizes, server.load(None, settings), warnings)


async def _voters(cluster: Cluster, warnings: list[str]) -> tuple[int, ...]:
    from barnabas.client.admin.quorum import Quorum

    try:
        info = await Quorum(cluster).describe_quorum()
    except (KafkaError, UnsupportedVersionError, UnsupportedByNodeError) as error:
        warnings.append(f"the effect on the quorum is unknown: {error}")
        return ()
    return tuple(voter.replica_id for voter in info.voters)


async def _sizes(cluster: Cluster, broker_ids: Iterable[int], warnings: list[str]) -> Sizes | None:
    from barnabas.client.admin.log_dirs import LogDirs

    sizes: dict[Key, dict[int, int]] = {}
    found = await LogDirs(cluster).describe_log_dirs(broker_ids)
    for broker_id, dirs in found.items():
        if isinstance(dirs, KafkaError):
            warnings.append(f"broker {broker_id}: its log dirs are unknown ({dirs.code.name})")
            continue
        for each in dirs.values():
            for replica in each.replicas:
                if not replica.is_future:
                    sizes.setdefault((replica.topic, replica.partition), {})[broker_id] = replica.size
    return sizes if any(not isinstance(dirs, KafkaError) for dirs in found.values()) else None


async def _settings(cluster: Cluster, broker_ids: list[int], warnings: list[str]) -> dict[str, str]:
    from barnabas.client.admin.config_values import ConfigSource
    from barnabas.client.admin.configs import ConfigResource, Configs

    if not broker_ids:
        return {}
    resource = ConfigResource.broker(broker_ids[0])
    found = (await Configs(cluster).describe_configs([resource]))[resource]
    if isinstance(found, KafkaError):
        warnings.append(
            f"settings of broker {broker_ids[0]} are unknown ({found.code.name}); assuming Kafka's defaults"
        )
        return {}
    return {
        name: entry.value
        for name in DECIDING
        if (entry := found.get(name)) is not None
        and entry.value is not None
        and entry.source == ConfigSource.STATIC_BROKER_CONFIG
    }
