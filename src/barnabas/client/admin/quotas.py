"""Quotas of users, client ids and IP addresses: DescribeClientQuotas, AlterClientQuotas.

    alice = quota_entity(user="alice")
    checked(await quotas.alter_client_quotas({alice: {"producer_byte_rate": 1e6, "consumer_byte_rate": None}}))

Its one rule: an entity is a value, made of pairs of entity type and name. A name that is None stands for the default of its
type. Brokers decide which quota applies to a client.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from barnabas.client.admin.part import Part, change, failed, pieces
from barnabas.client.routing import any_broker, controller
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from barnabas.wire.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

_ALTERED_AT_ONCE: Final = 500

QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]
"""Pairs of entity type and name, sorted by type. None as the name means the default of the type."""


class Default:
    """The default of an entity type, as in `quota_entity(user=DEFAULT)`."""

    def __repr__(self) -> str:
        return "DEFAULT"


DEFAULT: Final = Default()


def quota_entity(
    *, user: str | Default | None = None, client_id: str | Default | None = None, ip: str | Default | None = None
) -> QuotaEntity:
    """Return an entity.

    >>> quota_entity(user="alice", client_id=DEFAULT)
    (('client-id', None), ('user', 'alice'))
    """
    given = {USER: user, CLIENT_ID: client_id, IP: ip}
    parts = {kind: None if isinstance(name, Default) else name for kind, name in given.items() if name is not None}
    return tuple(sorted(parts.items()))


def entity_text(entity: QuotaEntity) -> str:
    """Format an entity.

    >>> entity_text(quota_entity(user="alice", client_id=DEFAULT))
    'user alice, client-id (default)'
    """
    order = (USER, CLIENT_ID, IP)
    parts = sorted(entity, key=lambda part: order.index(part[0]) if part[0] in order else len(order))
    return ", ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in parts)


class Match(IntEnum):
    """How a filter matches names."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


class QuotaFilter(NamedTuple):
    """Matches entities with a name of this type: a given name, the default, or any name.

    >>> QuotaFilter.exact(USER, "alice"), QuotaFilter.default(USER), QuotaFilter.any(USER)[:2]
    (QuotaFilter(entity_type='user', match=<Match.EXACT: 0>, name='alice'), \
QuotaFilter(entity_type='user', match=<Match.DEFAULT: 1>, name=None), ('user', <Match.ANY: 2>))
    """

    entity_type: str
    match: Match
    name: str | None = None

    @classmethod
    def exact(cls, entity_type: str, name: str) -> QuotaFilter:
        return cls(entity_type, Match.EXACT, name)

    @classmethod
    def default(cls, entity_type: str) -> QuotaFilter:
        return cls(entity_type, Match.DEFAULT)

    @classmethod
    def any(cls, entity_type: str) -> QuotaFilter:
        return cls(entity_type, Match.ANY)

    @classmethod
    def of(cls, entity: QuotaEntity) -> list[QuotaFilter]:
        """Return the filters that match this entity and, with `strict`, no other."""
        return [cls.default(kind) if name is None else cls.exact(kind, name) for kind, name in entity]


class Quotas(Part):
    """Quotas and their alteration.

    >>> import asyncio
    >>> from barnabas.client.admin.part import checked
    >>> from barnabas.client.cluster import Cluster
    >>> from barnabas.testing import Broker
    >>> async def main() -> None:
    ...     alice = quota_entity(user="alice")
    ...     async with Broker() as broker, Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
    ...         quotas = Quotas(cluster)
    ...         checked(await quotas.alter_client_quotas({alice: {"producer_byte_rate": 1e6}}))
    ...         print(await quotas.describe_client_quotas([QuotaFilter.exact(USER, "alice")]))
    >>> asyncio.run(main())
    {(('user', 'alice'),): {'producer_byte_rate': 1000000.0}}
    """

    async def describe_client_quotas(
        self, filters: Iterable[QuotaFilter] = (), *, strict: bool = False, timeout_ms: float | None = None
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Return the quotas of entities that match all filters. With `strict`, they have no types other than those."""
        components = [
            DescribeClientQuotasRequest.ComponentData(
                entity_type=each.entity_type, match_type=each.match, match=each.name
            )
            for each in filters
        ]
        request = DescribeClientQuotasRequest(components=components, strict=strict)
        response: DescribeClientQuotasResponse = await self.cluster.call(
            request, feature="describing quotas", timeout_ms=timeout_ms
        )
        return {
            tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)): {
                row.key: row.value for row in entry.values
            }
            for entry in response.entries or ()
        }

    async def alter_client_quotas(
        self,
        alterations: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[QuotaEntity, KafkaError | None]:
        """Set quotas, and remove those with the value None. Other quotas of an entity stay."""
        to = controller() if self.cluster.settings.bootstrap_controllers else any_broker()
        results: dict[QuotaEntity, KafkaError | None] = {}
        for some in pieces(alterations, _ALTERED_AT_ONCE):
            request = AlterClientQuotasRequest(
                entries=[_entry(entity, alterations[entity]) for entity in some], validate_only=validate_only
            )

            async def ask(request: AlterClientQuotasRequest = request) -> dict[QuotaEntity, KafkaError | None]:
                return _results(await self.cluster.call(request, to, feature="changing quotas", timeout_ms=timeout_ms))

            async def look(late: list[QuotaEntity]) -> dict[QuotaEntity, bool]:
                present = await self.describe_client_quotas()
                return {entity: is_done(present.get(entity, {}), alterations[entity]) for entity in late}

            results.update(await ask() if validate_only else await change(some, ask, look, _quotas_of))
        missing = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the response has no row for this entity")
        return {entity: results.get(entity, missing) for entity in alterations}


def is_done(present: Mapping[str, float], asked: Mapping[str, float | None]) -> bool:
    """Return whether these alterations are in effect.

    >>> is_done({"request_percentage": 50.0}, {"request_percentage": 50.0, "producer_byte_rate": None})
    True
    """
    return all(present.get(key) == value for key, value in asked.items())


def _quotas_of(entity: QuotaEntity) -> str:
    return f"altering the quotas of {entity_text(entity)}"


def _entry(entity: QuotaEntity, ops: Mapping[str, float | None]) -> AlterClientQuotasRequest.EntryData:
    return AlterClientQuotasRequest.EntryData(
        entity=[AlterClientQuotasRequest.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[
            AlterClientQuotasRequest.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in ops.items()
        ],
    )


def _results(response: AlterClientQuotasResponse) -> dict[QuotaEntity, KafkaError | None]:
    return {
        tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)): failed(
            entry.error_code, entry.error_message
        )
        for entry in response.entries
    }
