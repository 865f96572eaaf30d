"""AlterClientQuotas (49), versions 0 and 1.

Needs ALTER_CONFIGS on the cluster. Each entity has its own row. The rows, and the types of each entity, come in the
order of Kafka's hash tables. A bad type, name, combination, key or value is INVALID_REQUEST. So is a duplicate entity,
but its first alteration takes effect. IP addresses may be given as host names that can be resolved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from ipaddress import ip_address

from barnabas.broker.context import Context
from barnabas.controller import quotas
from barnabas.metadata.quotas import QuotaEntity
from barnabas.security.acl import AclOperation
from barnabas.slices import in_slices
from barnabas.steps import Slices, counted, mapped
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse

Entry = AlterClientQuotasResponse.EntryData
EntryData = AlterClientQuotasRequest.EntryData
Entity = AlterClientQuotasResponse.EntityData

MAX_PARTS = 200  # of an entry; a wider one is refused without looking at each


async def handle(context: Context, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    alterations, wide = await in_slices(_alterations(request.entries))
    try:
        context.require_on_cluster(AclOperation.ALTER_CONFIGS)
        hosts = await in_slices(counted(parts[quotas.IP] for parts, _ in alterations if quotas.IP in parts))
        unknown_hosts = {host for host in hosts if host and not await _is_known(host)}
        found = await context.controller.write(quotas.alter, alterations, unknown_hosts, request.validate_only)
    except KafkaError as error:
        return AlterClientQuotasResponse(
            entries=await in_slices(_failed(error.code, error.code.message or "", request.entries))
        )
    entries = await in_slices(mapped(lambda each: _entry(*each), found))
    if wide:
        text = f"An entity has at most 3 parts and few quotas, and not more than {MAX_PARTS}"
        entries += await in_slices(_failed(ErrorCode.INVALID_REQUEST, text, wide))
    return AlterClientQuotasResponse(entries=entries)


def _is_wide(entry: EntryData) -> bool:
    """Whether an entry has far more parts or quotas than there are. Each of them would be an error."""
    return len(entry.entity) > MAX_PARTS or len(entry.ops) > MAX_PARTS


def _alterations(entries: Iterable[EntryData]) -> Slices[tuple[list[quotas.QuotaAlteration], list[EntryData]]]:
    """Return the alterations, and the entries that are too wide to be looked at."""
    found, wide = [], []
    for entry in entries:
        yield
        if _is_wide(entry):
            wide.append(entry)
        else:
            parts = {part.entity_type: part.entity_name for part in entry.entity}
            found.append(quotas.QuotaAlteration(parts, [(op.key, None if op.remove else op.value) for op in entry.ops]))
    return found, wide


async def _is_known(host: str) -> bool:
    try:
        ip_address(host[1:-1] if host.startswith("[") and host.endswith("]") else host)
    except ValueError:
        try:
            await asyncio.get_running_loop().getaddrinfo(host, None)
        except (OSError, UnicodeError):
            return False
    return True


def _failed(code: ErrorCode, message: str, entries: Iterable[EntryData]) -> Slices[list[Entry]]:
    rows = []
    for entry in entries:
        yield
        entity = yield from mapped(
            lambda part: Entity(entity_type=part.entity_type, entity_name=part.entity_name), entry.entity
        )
        rows.append(Entry(error_code=code, error_message=message, entity=entity))
    return rows


def _entry(entity: QuotaEntity, error: KafkaError | None) -> Entry:
    parts = [Entity(entity_type=kind, entity_name=name) for kind, name in entity]
    if error is None:
        return Entry(error_message=None, entity=parts)
    return Entry(error_code=error.code, error_message=error.message, entity=parts)
