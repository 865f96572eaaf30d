"""Client quotas by entity. Which quota applies to a client is not decided here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.metadata.pmap import PMap
from barnabas.wire.records.metadata import ClientQuotaRecord

if TYPE_CHECKING:
    from barnabas.metadata.image import Draft

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Pairs of entity type and name, sorted by type. A name of None is the default of the type."""

Quotas = PMap[QuotaEntity, PMap[str, float]]

_EMPTY: PMap[str, float] = PMap()


def quota_entity(parts: dict[str, str | None]) -> QuotaEntity:
    return tuple(sorted(parts.items()))  # types are unique, so names are never compared


def replay_client_quota(draft: Draft, record: ClientQuotaRecord) -> None:
    entity = quota_entity({part.entity_type: part.entity_name for part in record.entity})
    values = draft.quotas.get(entity) or _EMPTY
    if not record.remove:
        draft.quotas.set(entity, values.set(record.key, record.value))
    elif record.key in values:
        values = values.delete(record.key)
        if values:
            draft.quotas.set(entity, values)
        else:
            draft.quotas.remove(entity)


def to_records(quotas: Quotas) -> Iterator[tuple[ClientQuotaRecord, int]]:
    for entity, values in sorted(quotas.items(), key=lambda item: repr(item[0])):  # a name may be None
        for key, value in sorted(values.items()):
            parts = [ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
            yield ClientQuotaRecord(entity=parts, key=key, value=value), 0
