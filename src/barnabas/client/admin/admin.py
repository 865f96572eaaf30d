"""`Admin`: all parts of administration in one object.

>>> import asyncio
>>> from barnabas.client.admin.part import checked
>>> from barnabas.testing import Broker
>>> async def main() -> None:
...     async with Broker() as broker, Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
...         description = await admin.describe_cluster()
...         print(description.cluster_id == broker.cluster_id)
>>> asyncio.run(main())
True
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from barnabas.client.admin.acls import Acls
from barnabas.client.admin.brokers import Brokers
from barnabas.client.admin.configs import Configs
from barnabas.client.admin.elections import Elections
from barnabas.client.admin.features import Features
from barnabas.client.admin.groups import Groups
from barnabas.client.admin.log_dirs import LogDirs
from barnabas.client.admin.producers import Producers
from barnabas.client.admin.quorum import Quorum
from barnabas.client.admin.quotas import Quotas
from barnabas.client.admin.reassignments import Reassignments
from barnabas.client.admin.records import Records
from barnabas.client.admin.share_groups import ShareGroups
from barnabas.client.admin.streams_groups import StreamsGroups
from barnabas.client.admin.telemetry import Telemetry
from barnabas.client.admin.topics import Topics
from barnabas.client.admin.transactions import Transactions
from barnabas.client.admin.users import Users
from barnabas.client.arguments import check_config
from barnabas.client.cluster import Cluster
from barnabas.client.settings import ClientSettings

PARTS = (
    *(Topics, Records, Configs, Acls, Quotas, Users, Groups, ShareGroups, StreamsGroups, Transactions, Producers),
    *(Brokers, Quorum, Features, LogDirs, Reassignments, Elections, Telemetry),
)


class Admin(
    Topics,
    Records,
    Configs,
    Acls,
    Quotas,
    Users,
    Groups,
    ShareGroups,
    StreamsGroups,
    Transactions,
    Producers,
    Brokers,
    Quorum,
    Features,
    LogDirs,
    Reassignments,
    Elections,
    Telemetry,
):
    """Used as `async with Admin({"bootstrap.servers": "localhost:9092"}) as admin`. A given `Cluster` is not closed by it."""

    def __init__(self, cluster: Cluster | ClientSettings | Mapping[str, object]) -> None:
        check_config(cluster, ClientSettings, Cluster)
        self._is_mine = not isinstance(cluster, Cluster)
        super().__init__(cluster if isinstance(cluster, Cluster) else Cluster(cluster))

    async def start(self, timeout_ms: float | None = None) -> Self:
        """Connect to the cluster. Raises like `Cluster.start`."""
        if self._is_mine:
            await self.cluster.start(timeout_ms)
        return self

    async def close(self) -> None:
        """Disconnect from the cluster."""
        if self._is_mine:
            await self.cluster.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
