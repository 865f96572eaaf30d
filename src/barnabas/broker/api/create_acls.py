"""CreateAcls (30), versions 0 to 3.

Needs ALTER on the cluster. A code of 0 (UNKNOWN) closes the connection. A code that is not defined is INVALID_REQUEST
in its row. A code that is valid only in filters (ANY, MATCH) fails every row with UNKNOWN_SERVER_ERROR. An entry that
exists already, or is given twice, succeeds and is written once. Version 0 creates only literal patterns. Without an
authorizer every row is SECURITY_DISABLED.
"""

from __future__ import annotations

from collections.abc import Awaitable

from barnabas.broker.context import Context
from barnabas.broker.dispatch import Refused
from barnabas.broker.errors import shown_message
from barnabas.controller import acls
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.slices import in_slices
from barnabas.steps import Slices, mapped
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse

Row = CreateAclsResponse.AclCreationResult


def handle(context: Context, request: CreateAclsRequest) -> Slices[Awaitable[CreateAclsResponse]]:
    for each in request.creations:
        yield
        codes = (each.resource_type, each.resource_pattern_type, each.operation, each.permission_type)
        if 0 in codes:
            raise Refused(f"CreateAcls with UNKNOWN elements: {codes}")
    context.require_on_cluster(AclOperation.ALTER)
    if not context.services.authorizer.enabled:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    return _create(context, (yield from mapped(_entry, request.creations)))


async def _create(context: Context, entries: list[AclEntry]) -> CreateAclsResponse:
    timeout_ms = context.config.connections_max_idle_ms
    errors = await context.controller.write(acls.create, entries, timeout_ms=timeout_ms if timeout_ms >= 0 else None)
    return CreateAclsResponse(results=await in_slices(mapped(_row, errors)))


def _entry(creation: CreateAclsRequest.AclCreation) -> AclEntry:
    return AclEntry(
        ResourceType(creation.resource_type),
        creation.resource_name,
        PatternType(creation.resource_pattern_type),
        creation.principal,
        creation.host,
        AclOperation(creation.operation),
        AclPermissionType(creation.permission_type),
    )


def _row(error: KafkaError | None) -> Row:
    if error is None:
        return Row()  # without an error, Kafka sends an empty message here, not null
    return Row(error_code=error.code, error_message=shown_message(error.code, error.message))
