"""What collectors see of a node: its parts as they are at the moment of a scrape. A part that has not started is None."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.coordinators import Coordinators
    from barnabas.broker.lifecycle import BrokerLifecycle
    from barnabas.broker.loop_watch import LoopWatch
    from barnabas.broker.metadata_quorum import MetadataQuorum
    from barnabas.broker.server import Server
    from barnabas.broker.services import NodeServices
    from barnabas.metadata.image import MetadataImage
    from barnabas.replicas.log_directories import LogDirectories
    from barnabas.replicas.maintenance import Maintenance
    from barnabas.replicas.replicas import Replicas


class Observed(NamedTuple):
    """The parts of one node."""

    services: NodeServices
    server: Server
    loop_watch: LoopWatch
    failed: asyncio.Future[None]
    started_ms: int  # on the monotonic clock
    is_stopping: bool = False
    quorum: MetadataQuorum | None = None
    replicas: Replicas | None = None
    log_directories: LogDirectories | None = None
    coordinators: Coordinators | None = None
    lifecycle: BrokerLifecycle | None = None
    maintenance: Maintenance | None = None

    @property
    def image(self) -> MetadataImage | None:
        return None if self.quorum is None else self.quorum.image

    def max_rows(self, what: str) -> int:
        """Return the limit on labelled topics, partitions or groups."""
        return self.services.config.get_int(f"barnabas.metrics.max.{what}")
