"""DeleteAcls (31), versions 0 to 3.

Needs ALTER on the cluster. A code of 0 (UNKNOWN) in a filter closes the connection. A filter with a code that is not
defined is INVALID_REQUEST; the other filters take effect. The row of a filter has all entries that it matches, so an
entry that several filters match is in each of their rows. More than 10,000 entries at once are INVALID_REQUEST in every
row. Version 0 has no pattern types: it deletes only literal patterns. Without an authorizer every row is
SECURITY_DISABLED.
"""

from __future__ import annotations

from collections.abc import Awaitable

from barnabas.broker.context import Context
from barnabas.broker.dispatch import Refused
from barnabas.broker.errors import shown_message
from barnabas.controller import acls
from barnabas.security.acl import AclEntry, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.slices import in_slices
from barnabas.steps import Slices, mapped
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse

Row = DeleteAclsResponse.DeleteAclsFilterResult
Match = DeleteAclsResponse.DeleteAclsMatchingAcl


def handle(context: Context, request: DeleteAclsRequest) -> Slices[Awaitable[DeleteAclsResponse]]:
    for each in request.filters:
        yield
        codes = (each.resource_type_filter, each.pattern_type_filter, each.operation, each.permission_type)
        if 0 in codes:
            raise Refused(f"DeleteAcls with UNKNOWN elements: {codes}")
    context.require_on_cluster(AclOperation.ALTER)
    if not context.services.authorizer.enabled:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    return _delete(context, (yield from mapped(_filter, request.filters)))


async def _delete(context: Context, filters: list[AclFilter]) -> DeleteAclsResponse:
    timeout_ms = context.config.connections_max_idle_ms
    found = await context.controller.write(acls.delete, filters, timeout_ms=timeout_ms if timeout_ms >= 0 else None)
    return DeleteAclsResponse(filter_results=await in_slices(mapped(_row, found)))


def _filter(given: DeleteAclsRequest.DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        ResourceType(given.resource_type_filter),
        given.resource_name_filter,
        PatternType(given.pattern_type_filter),
        given.principal_filter,
        given.host_filter,
        AclOperation(given.operation),
        AclPermissionType(given.permission_type),
    )


def _row(found: list[AclEntry] | KafkaError) -> Row:
    if isinstance(found, KafkaError):
        return Row(error_code=found.code, error_message=shown_message(found.code, found.message))
    return Row(error_message=None, matching_acls=[_match(entry) for entry in found])


def _match(entry: AclEntry) -> Match:
    return Match(
        error_message=None,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )
