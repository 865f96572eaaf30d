"""The quotas of one node: what clients may produce, fetch, compute, create and connect per second."""

from __future__ import annotations

from barnabas.config.server_config import ServerConfig
from barnabas.controller.mutation_quotas import MutationQuotas
from barnabas.quotas import bounds
from barnabas.quotas.bounds import QuotaBounds
from barnabas.quotas.clients import ClientQuota
from barnabas.quotas.connections import ConnectionRates
from barnabas.quotas.rate import Windows


class NodeQuotas:
    """The rates of this node's clients. `bounds` has to follow the committed image."""

    def __init__(self, config: ServerConfig) -> None:
        self.bounds = QuotaBounds()
        size_ms = config.get_int("quota.window.size.seconds") * 1000
        windows = Windows(config.get_int("quota.window.num"), size_ms)
        self.produce = ClientQuota(self.bounds[bounds.PRODUCER_BYTE_RATE], windows)
        self.fetch = ClientQuota(self.bounds[bounds.CONSUMER_BYTE_RATE], windows)
        self.request = ClientQuota(self.bounds[bounds.REQUEST_PERCENTAGE], windows, size_ms)
        self.connections = ConnectionRates(windows, self.bounds[bounds.CONNECTION_CREATION_RATE])
        self.mutations = MutationQuotas(
            self.bounds[bounds.CONTROLLER_MUTATION_RATE],
            config.get_int("controller.quota.window.num"),
            config.get_int("controller.quota.window.size.seconds"),
            config.get_int("barnabas.quota.memory.max.bytes"),
        )
