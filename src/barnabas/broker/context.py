"""What a handler is given beside the request: the node's services, and who is asking."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from barnabas.config.server_config import ServerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.replicated.loop import Result
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.security.authorizer import Acls, AuthorizerSettings, authorize, authorized_operations
from barnabas.security.principal import KafkaPrincipal

R = TypeVar("R")


class FinalizedFeatures(NamedTuple):
    """The feature levels the cluster has agreed on, and the metadata offset they were read at."""

    epoch: int
    levels: dict[str, int]


class Encoded(NamedTuple):
    """A response body that is asked for often, and the metadata epoch that it holds for."""

    epoch: int
    body: bytes


class Controller(Protocol):
    """The active controller, wherever it is."""

    def write(self, decision: Callable[..., Result[R]], *arguments: Any, timeout_ms: int | None = None) -> Awaitable[R]:
        """Decide, append, and answer when it is committed.

        `decision(situation, *arguments)` is one of barnabas.controller's. Raises KafkaError: NOT_CONTROLLER, or
        REQUEST_TIMED_OUT when the commit takes longer (the change may still happen).
        """
        ...


class Services(Protocol):
    """What handlers may ask of their node."""

    config: ServerConfig
    encoded: dict[tuple[Any, ...], Encoded]
    controller: Controller
    authorizer: AuthorizerSettings

    @property
    def image(self) -> MetadataImage:
        """What is committed."""
        ...

    @property
    def acls(self) -> Acls: ...

    @property
    def finalized_features(self) -> FinalizedFeatures: ...


class Listener(NamedTuple):
    """Where a request came in."""

    name: str
    is_controller: bool

    @property
    def kind(self) -> str:
        """As schemas name it: which APIs are served here."""
        return "controller" if self.is_controller else "broker"


class Peer(NamedTuple):
    """Who is at the other end of a connection."""

    host: str
    principal: KafkaPrincipal
    listener: Listener


class Context:
    """One request's surroundings."""

    __slots__ = ("client_id", "correlation_id", "peer", "services", "version")

    def __init__(
        self, services: Services, peer: Peer, version: int, correlation_id: int, client_id: str | None
    ) -> None:
        self.services = services
        self.peer = peer
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id

    @property
    def image(self) -> MetadataImage:
        return self.services.image

    @property
    def config(self) -> ServerConfig:
        return self.services.config

    @property
    def controller(self) -> Controller:
        return self.services.controller

    @property
    def listener(self) -> Listener:
        return self.peer.listener

    def may(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Whether the caller may do this."""
        services, peer = self.services, self.peer
        if not services.authorizer.enabled:
            return True
        return authorize(
            services.acls, services.authorizer, peer.principal, peer.host, operation, resource_type, name
        ).allowed

    def authorized_operations(self, resource_type: ResourceType, name: str) -> int:
        """The bit field of what the caller may do with a resource."""
        services, peer = self.services, self.peer
        return authorized_operations(services.acls, services.authorizer, peer.principal, peer.host, resource_type, name)
