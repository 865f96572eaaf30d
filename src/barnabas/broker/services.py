"""The services that are the same in every kind of node: they depend only on its settings and surroundings."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from barnabas.broker.audit.audited import PATH, Audit
from barnabas.broker.client_metrics import ClientMetrics
from barnabas.broker.context import Encoded
from barnabas.broker.counters import RequestCounters
from barnabas.broker.encoded_topics import EncodedTopics
from barnabas.broker.node_quotas import NodeQuotas
from barnabas.broker.surroundings import Surroundings
from barnabas.config.definitions import ConfigError
from barnabas.config.server_config import ServerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.replicas.fetch_sessions import FetchSessions
from barnabas.security.authorizer import AuthorizerSettings
from barnabas.steps import Slices
from barnabas.wire import KafkaError

if TYPE_CHECKING:
    from barnabas.broker.dispatch import Route
    from barnabas.broker.faults.faults import NodeFaults
    from barnabas.broker.forwarding import Forwarding


class NodeServices:
    """The base of all classes that implement `broker.context.Services`; a subclass adds its image, logs and quorum."""

    def __init__(
        self,
        config: ServerConfig,
        surroundings: Surroundings,
        authorizer: AuthorizerSettings,
        *,
        telemetry_receiver: str = "",
    ) -> None:
        self.config = config
        self.surroundings = surroundings
        self.authorizer = authorizer
        self.audit = Audit(config, surroundings) if config.get_str(PATH) else None
        self.cluster_id = ""
        self.refusal: KafkaError | None = None
        self.forwarding: Forwarding | None = None
        self.faults: NodeFaults | None = None
        self.encoded: dict[tuple[Any, ...], Encoded] = {}
        self.encoded_topics = EncodedTopics()
        self.client_metrics = ClientMetrics(
            telemetry_receiver,
            config.get_int("telemetry.max.bytes"),
            config.get_int("barnabas.telemetry.memory.max.bytes"),
            surroundings.random_for("client metrics"),
            surroundings.monotonic_ms,
        )
        self.quotas = NodeQuotas(config)
        self.fetch_sessions = FetchSessions(
            config.get_int("max.incremental.fetch.session.cache.slots"),
            surroundings.random_for("fetch sessions"),
            config.get_int("barnabas.fetch.session.max.partitions"),
        )
        self.monotonic_ms = surroundings.monotonic_ms
        self.monotonic_ns = surroundings.monotonic_ns
        self.routes: dict[tuple[bool, bytes], Route] = {}
        self.requests: dict[tuple[str, int], RequestCounters] = {}

    def follow_quotas(self, old: MetadataImage, new: MetadataImage, records: Sequence[Any]) -> Slices[None]:
        """Apply the client quotas of a new image."""
        return self.quotas.bounds.follow(new.quotas)

    def start_audit(self) -> None:
        """Open the audit log, if there is one. Raises ConfigError if that is impossible."""
        if self.audit is None:
            return
        self.audit.cluster_id = self.cluster_id
        try:
            self.audit.file.start()
        except OSError as error:
            raise ConfigError(
                PATH, f"cannot write the audit log {error.filename}: {error.strerror or error}"
            ) from error

    async def stop_audit(self) -> None:
        """Write the last lines of the audit log."""
        if self.audit is not None:
            await asyncio.to_thread(self.audit.file.stop)

    def request_counters(self, request: str, version: int) -> RequestCounters:
        """Return the counters of an API in one version."""
        found = self.requests.get((request, version))
        if found is None:
            found = self.requests[request, version] = RequestCounters(request, version)
        return found
