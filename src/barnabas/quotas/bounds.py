"""The bounds that quotas set, and which of them applies to a client.

As in Kafka, the most specific one applies: of user and client id, then of the user, then of the client id; each before
the defaults, which are entities without a name. Clients with the same bound share what it allows as far as it names them
together: all clients of a user share the bound of the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.metadata.quotas import QuotaEntity, Quotas
from barnabas.steps import Slices, stepwise

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"
KEYS: Final = (
    *(PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE),
    *(CONTROLLER_MUTATION_RATE, CONNECTION_CREATION_RATE),
)

_USER, _CLIENT_ID, _IP = "user", "client-id", "ip"
_DEFAULT: Final = None
_ABSENT: Final = ""
_ENTITIES_AT_ONCE: Final = 500

Client = tuple[str, str]
"""User and client id that share a bound. An empty string stands for any."""


class Bounds:
    """The bounds of one quota, such as `producer_byte_rate`, by entity."""

    __slots__ = ("_bounds", "_types", "is_any")

    def __init__(self) -> None:
        self.replace({})

    def replace(self, bounds: Mapping[QuotaEntity, float]) -> None:
        self._bounds = bounds
        self._types = {tuple(kind for kind, _ in entity) for entity in bounds}
        self.is_any = bool(bounds)  # False: nobody has such a quota, and nothing needs to be counted

    def client(self, user: str, client_id: str | None) -> Client | None:
        """Return the client that a request counts for, or None if it has no quota."""
        if not self._types:
            return None
        by_user, by_client_id = (user, _ABSENT), None if client_id is None else (_ABSENT, client_id)
        by_both = None if client_id is None else (user, client_id)
        if len(self._types) == 1:
            alone: dict[tuple[str, ...], Client | None] = {(_USER,): by_user, (_CLIENT_ID,): by_client_id}
            return alone.get(next(iter(self._types)), by_both)
        for entity, client in (
            (_both(user, client_id or _ABSENT), by_both),
            (_both(user, _DEFAULT), by_both),
            (((_USER, user),), by_user),
            (_both(_DEFAULT, client_id or _ABSENT), by_both),
            (_both(_DEFAULT, _DEFAULT), by_both),
            (((_USER, _DEFAULT),), by_user),
        ):
            if entity in self._bounds:
                return client
        return by_client_id

    def of(self, client: Client) -> float | None:
        """Return the bound of a client, or None."""
        user, client_id = client
        entities: tuple[QuotaEntity, ...] = ()
        if user and client_id:
            entities = tuple(_both(u, c) for u in (user, _DEFAULT) for c in (client_id, _DEFAULT))
        elif user or client_id:
            kind = _USER if user else _CLIENT_ID
            entities = (((kind, user or client_id),), ((kind, _DEFAULT),))
        return next((self._bounds[entity] for entity in entities if entity in self._bounds), None)

    def of_ip(self, host: str) -> float | None:
        """Return the bound of an address, or None."""
        own = self._bounds.get(((_IP, host),))
        return self._bounds.get(((_IP, _DEFAULT),)) if own is None else own


class QuotaBounds:
    """The bounds of all quotas. They follow the committed image and are replaced as a whole."""

    def __init__(self) -> None:
        self._followed: Quotas | None = None
        self._bounds = {key: Bounds() for key in KEYS}

    def __getitem__(self, key: str) -> Bounds:
        return self._bounds[key]

    def follow(self, quotas: Quotas) -> Slices[None]:
        if quotas is self._followed:
            return
        found: dict[str, dict[QuotaEntity, float]] = {key: {} for key in KEYS}
        for some in stepwise(quotas.items(), _ENTITIES_AT_ONCE):
            for entity, values in some:
                for key, value in values.items():
                    if key in found:
                        found[key][entity] = value
            yield
        for key, bounds in self._bounds.items():
            bounds.replace(found[key])
        self._followed = quotas


def _both(user: str | None, client_id: str | None) -> QuotaEntity:
    return (_CLIENT_ID, client_id), (_USER, user)
