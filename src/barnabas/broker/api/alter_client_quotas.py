"""AlterClientQuotas (49), versions 0 and 1.

Needs ALTER_CONFIGS on the cluster. Each entity has its own row. The rows, and the types of each entity, come in the
order of Kafka's hash tables. A bad type, name, combination, key or value is INVALID_REQUEST. So is a duplicate entity,
but its first alteration takes effect. IP addresses may be given as host names that can be resolved.
"""

from __future__ import annotations

import asyncio
from functools import partial
from ipaddress import ip_address

from barnabas.broker.context import Context
from barnabas.controller import quotas
from barnabas.metadata.quotas import QuotaEntity
from barnabas.security.acl import AclOperation
from barnabas.slices import in_slices
from barnabas.steps import mapped
from barnabas.wire import KafkaError
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse

Entry = AlterClientQuotasResponse.EntryData
Entity = AlterClientQuotasResponse.EntityData


async def handle(context: Context, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    alterations = await in_slices(mapped(_alteration, request.entries))
    try:
        context.require_on_cluster(AclOperation.ALTER_CONFIGS)
        hosts = {parts[quotas.IP] for parts, _ in alterations if quotas.IP in parts}
        unknown_hosts = {host for host in hosts if host and not await _is_known(host)}
        found = await context.controller.write(quotas.alter, alterations, unknown_hosts, request.validate_only)
    except KafkaError as error:
        failed = partial(_failed, error)
        return AlterClientQuotasResponse(entries=await in_slices(mapped(failed, request.entries)))
    return AlterClientQuotasResponse(entries=await in_slices(mapped(lambda each: _entry(*each), found)))


def _alteration(entry: AlterClientQuotasRequest.EntryData) -> quotas.QuotaAlteration:
    return quotas.QuotaAlteration(
        {part.entity_type: part.entity_name for part in entry.entity},
        [(op.key, None if op.remove else op.value) for op in entry.ops],
    )


async def _is_known(host: str) -> bool:
    try:
        ip_address(host[1:-1] if host.startswith("[") and host.endswith("]") else host)
    except ValueError:
        try:
            await asyncio.get_running_loop().getaddrinfo(host, None)
        except (OSError, UnicodeError):
            return False
    return True


def _failed(error: KafkaError, entry: AlterClientQuotasRequest.EntryData) -> Entry:
    entity = [Entity(entity_type=part.entity_type, entity_name=part.entity_name) for part in entry.entity]
    return Entry(error_code=error.code, error_message=error.code.message, entity=entity)


def _entry(entity: QuotaEntity, error: KafkaError | None) -> Entry:
    parts = [Entity(entity_type=kind, entity_name=name) for kind, name in entity]
    if error is None:
        return Entry(error_message=None, entity=parts)
    return Entry(error_code=error.code, error_message=error.message, entity=parts)
