"""DescribeAcls (29), versions 0 to 3.

Needs DESCRIBE on the cluster. A code of 0 (UNKNOWN) in the filter closes the connection. A code that is not defined
matches nothing. Version 0 has no pattern types: it returns only literal patterns. Without an authorizer the response is
SECURITY_DISABLED. Resources, and the entries of each, are sorted (Kafka: in the order of a hash table).
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.dispatch import Refused
from barnabas.security.acl import AclEntry, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.steps import Slices, mapped, stepwise
from barnabas.wire import ErrorCode
from barnabas.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

Resource = DescribeAclsResponse.DescribeAclsResource
Description = DescribeAclsResponse.AclDescription


def handle(context: Context, request: DescribeAclsRequest) -> Slices[DescribeAclsResponse]:
    codes = (request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type)
    if 0 in codes:
        raise Refused(f"DescribeAcls with UNKNOWN elements: {codes}")
    context.require_on_cluster(AclOperation.DESCRIBE)
    if not context.services.authorizer.enabled:
        text = "No Authorizer is configured on the broker"
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=text)
    selects = AclFilter(
        ResourceType(request.resource_type_filter),
        request.resource_name_filter,
        PatternType(request.pattern_type_filter),
        request.principal_filter,
        request.host_filter,
        AclOperation(request.operation),
        AclPermissionType(request.permission_type),
    )
    found: set[AclEntry] = set()
    for some in stepwise(context.image.acls.by_id.values()):
        found.update(entry for entry in some if selects.matches(entry))
        yield
    by_pattern: dict[tuple[int, str, int], list[AclEntry]] = {}
    for some in stepwise(found):
        for entry in some:
            by_pattern.setdefault(_pattern(entry), []).append(entry)
        yield
    return DescribeAclsResponse(
        resources=(yield from mapped(lambda pattern: _resource(sorted(by_pattern[pattern])), sorted(by_pattern)))
    )


def _pattern(entry: AclEntry) -> tuple[int, str, int]:
    return entry.resource_type, entry.resource_name, entry.pattern_type


def _resource(entries: list[AclEntry]) -> Resource:
    resource_type, resource_name, pattern_type = _pattern(entries[0])
    acls = [
        Description(principal=e.principal, host=e.host, operation=e.operation, permission_type=e.permission)
        for e in entries
    ]
    return Resource(resource_type=resource_type, resource_name=resource_name, pattern_type=pattern_type, acls=acls)
