"""Sets and removes client quotas of users, client ids and IP addresses.

An invalid entity fails alone. Which of several errors is returned, and the order of rows and records, follow Kafka's
hash tables. Quotas are enforced by `barnabas.quotas`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.config import quotas
from barnabas.config.definitions import Definition
from barnabas.config.hash_order import hash_order, text_hash
from barnabas.controller.operation_size import check_size
from barnabas.controller.situation import Situation
from barnabas.metadata.quotas import QuotaEntity, quota_entity
from barnabas.replicated.decision import Result
from barnabas.steps import Slices, stepwise
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.records.metadata import ClientQuotaRecord

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)

Parts = Mapping[str, str | None]
"""Entity type to name. A name of None is the default of the type."""


class QuotaAlteration(NamedTuple):
    """The changes of one entity's quotas. A key without a value is removed."""

    parts: Parts
    ops: list[tuple[str, float | None]]


def alter(
    situation: Situation,
    alterations: Iterable[QuotaAlteration],
    unknown_hosts: Collection[str] = (),
    validate_only: bool = False,
) -> Slices[Result[list[tuple[QuotaEntity, KafkaError | None]]]]:
    """Return the error or None for each entity. `unknown_hosts` are the host names that could not be resolved.

    An entity that is listed twice gets an error, although its first entry is applied, as in Kafka.
    """
    records: list[tuple[Message, int]] = []
    errors: dict[QuotaEntity, KafkaError | None] = {}
    for parts, ops in alterations:
        yield
        entity = quota_entity(dict(parts))
        if entity in errors or len(dict(ops)) < len(ops):
            errors[entity] = _refused(f"Ignoring duplicate entity {_shown(parts)}")
            continue
        try:
            records += _alter_one(situation, parts, dict(ops), unknown_hosts)
            errors[entity] = None
        except KafkaError as error:
            errors[entity] = error
    check_size(records)
    rows: list[tuple[QuotaEntity, KafkaError | None]] = []
    for some in stepwise(hash_order(errors, hash_of=_entity_hash)):
        rows += [(in_order(dict(entity)), errors[entity]) for entity in some]
        yield
    return Result([] if validate_only else records, rows)


def in_order(parts: Parts) -> QuotaEntity:
    """Return the entity with its types in Kafka's order."""
    return tuple((kind, parts[kind]) for kind in hash_order(parts, sized=True))


def _entity_hash(entity: QuotaEntity) -> int:
    """Return Java's hash code of an entity."""
    return (31 + sum(text_hash(kind) ^ (0 if name is None else text_hash(name)) for kind, name in entity)) & 0xFFFFFFFF


def _alter_one(
    situation: Situation, parts: Parts, ops: Mapping[str, float | None], unknown_hosts: Collection[str]
) -> list[tuple[Message, int]]:
    _check_types_and_names(parts)
    definitions = _definitions(parts, unknown_hosts)
    current: Mapping[str, float] = situation.image.quotas.get(quota_entity(dict(parts)), {})
    records: list[tuple[Message, int]] = []
    for key in hash_order(ops, sized=True):
        value = ops[key]
        if value is None:
            if key in current:
                records.append((ClientQuotaRecord(entity=_entity_data(parts), key=key, remove=True), 0))
            continue
        quotas.validate(definitions, key, value)
        if current.get(key) != value:
            records.append((ClientQuotaRecord(entity=_entity_data(parts), key=key, value=value), 0))
    return records


def _check_types_and_names(parts: Parts) -> None:
    if not parts:
        raise _refused("Invalid empty client quota entity")
    for kind, name in in_order(parts):
        if kind not in ENTITY_TYPES:
            raise _refused(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _refused(f"Empty {kind} not supported")


def _definitions(parts: Parts, unknown_hosts: Collection[str]) -> Mapping[str, Definition]:
    """Return the quotas that an entity of these types can have."""
    if IP not in parts:
        return quotas.user_or_client_definitions()
    if len(parts) > 1:
        raise _refused("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    if parts[IP] in unknown_hosts:
        raise _refused(f"{parts[IP]} is not a valid IP or resolvable host.")
    return quotas.ip_definitions()


def _entity_data(parts: Parts) -> list[ClientQuotaRecord.EntityData]:
    return [ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in in_order(parts)]


def _shown(parts: Parts) -> str:
    texts = (f"{kind}={'null' if name is None else name}" for kind, name in in_order(parts))
    return f"ClientQuotaEntity(entries={{{', '.join(texts)}}})"


def _refused(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
