"""What a handler is given beside the request: the node's services, and who is asking."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class FinalizedFeatures(NamedTuple):
    """The feature levels the cluster has agreed on, and the metadata offset they were read at."""

    epoch: int
    levels: dict[str, int]


class Encoded(NamedTuple):
    """A response body that is asked for often, and the metadata epoch that it holds for."""

    epoch: int
    body: bytes


class Services(Protocol):
    """What handlers may ask of their node."""

    encoded: dict[tuple[Any, ...], Encoded]

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


class Context:
    """One request's surroundings."""

    __slots__ = ("client_id", "correlation_id", "host", "listener", "services", "version")

    def __init__(
        self,
        *,
        services: Services,
        listener: Listener,
        host: str,
        version: int,
        correlation_id: int,
        client_id: str | None,
    ) -> None:
        self.services = services
        self.listener = listener
        self.host = host
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
