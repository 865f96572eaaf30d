"""A client of the controllers of a cluster, found through its brokers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from barnabas.config.endpoints import parse_addresses
from barnabas.operations.quorum.discovery import find_controllers

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster


@asynccontextmanager
async def controllers_of(cluster: Cluster) -> AsyncIterator[Cluster]:
    """Connect to the controllers that brokers report, with the settings of their client. Raises OperationError."""
    from barnabas.client.cluster import Cluster as Client

    addresses = parse_addresses("bootstrap.controllers", await find_controllers(cluster))
    settings = cluster.settings._replace(bootstrap_servers=(), bootstrap_controllers=addresses)
    async with Client(settings) as controllers:
        controllers.on_response = cluster.on_response
        yield controllers
