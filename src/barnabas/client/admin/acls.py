"""ACLs: list, create and delete entries (DescribeAcls, CreateAcls, DeleteAcls).

>>> import asyncio
>>> from barnabas.security.acl import AclEntry, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
>>> from barnabas.client.admin.part import checked
>>> from barnabas.client.cluster import Cluster
>>> from barnabas.testing import Broker
>>> secured = {
...     "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
...     "super.users": "User:ANONYMOUS",
... }
>>> entry = AclEntry(
...     ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW
... )
>>> async def main() -> None:
...     async with Broker(config=secured) as broker, Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
...         acls = Acls(cluster)
...         checked(await acls.create_acls([entry]))
...         print(*await acls.describe_acls(AclFilter(principal="User:alice")))
>>> asyncio.run(main())
ALLOW User:alice from * to READ on TOPIC LITERAL 'orders'

Entries and filters are values of `barnabas.security.acl`. A cluster without an authorizer answers SECURITY_DISABLED. Entries
are evaluated by `barnabas.security.authorizer`. Super users are broker configs, and are not listed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from barnabas.client.admin.part import Part, change, failed, pieces
from barnabas.client.errors import UnsupportedByNodeError
from barnabas.client.routing import controller
from barnabas.security.acl import AclEntry, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from barnabas.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from barnabas.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

EVERY_ACL = AclFilter()

_AT_ONCE = 1000
_PATTERNS = "a prefixed ACL"


class Acls(Part):
    """Access control lists."""

    async def describe_acls(self, filter: AclFilter = EVERY_ACL, *, timeout_ms: float | None = None) -> list[AclEntry]:
        """Return the entries that match a filter, by default all."""
        try:
            return await self._describe_acls(filter, timeout_ms)
        except UnsupportedByNodeError:
            if filter.pattern_type != PatternType.ANY:
                raise
            # Before Kafka 2.0 every pattern was literal.
            return await self._describe_acls(replace(filter, pattern_type=PatternType.LITERAL), timeout_ms)

    async def _describe_acls(self, filter: AclFilter, timeout_ms: float | None) -> list[AclEntry]:
        request = DescribeAclsRequest(
            resource_type_filter=filter.resource_type,
            resource_name_filter=filter.resource_name,
            pattern_type_filter=filter.pattern_type,
            principal_filter=filter.principal,
            host_filter=filter.host,
            operation=filter.operation,
            permission_type=filter.permission,
        )
        response: DescribeAclsResponse = await self.cluster.call(request, feature=_PATTERNS, timeout_ms=timeout_ms)
        return [_entry(resource, acl) for resource in response.resources for acl in resource.acls]

    async def create_acls(
        self, entries: Iterable[AclEntry], *, timeout_ms: float | None = None
    ) -> dict[AclEntry, KafkaError | None]:
        """Create entries. An entry that exists already is no error."""
        results: dict[AclEntry, KafkaError | None] = {}
        for piece in pieces(dict.fromkeys(entries), _AT_ONCE):
            results.update(await self._create_some_acls(piece, timeout_ms))
        return results

    async def _create_some_acls(
        self, entries: list[AclEntry], timeout_ms: float | None
    ) -> dict[AclEntry, KafkaError | None]:
        async def ask() -> dict[AclEntry, KafkaError | None]:
            request = CreateAclsRequest(creations=[_creation(entry) for entry in entries])
            response: CreateAclsResponse = await self.cluster.call(
                request, to=controller(), feature=_PATTERNS, timeout_ms=timeout_ms
            )
            rows = zip(entries, response.results, strict=True)
            return {entry: failed(row.error_code, row.error_message) for entry, row in rows}

        async def look(late: list[AclEntry]) -> Mapping[AclEntry, bool]:
            present = set(await self.describe_acls(timeout_ms=timeout_ms))
            return {entry: entry in present for entry in late}

        return await change(entries, ask, look, lambda entry: f"creating the ACL ({entry})")

    async def delete_acls(
        self, filters: Iterable[AclFilter], *, timeout_ms: float | None = None
    ) -> dict[AclFilter, list[AclEntry] | KafkaError]:
        """Delete the entries that match each filter, and return them by filter. No match is no error."""
        results: dict[AclFilter, list[AclEntry] | KafkaError] = {}
        for piece in pieces(dict.fromkeys(filters), _AT_ONCE):
            results.update(await self._delete_some_acls(piece, timeout_ms))
        return results

    async def _delete_some_acls(
        self, filters: list[AclFilter], timeout_ms: float | None
    ) -> dict[AclFilter, list[AclEntry] | KafkaError]:
        async def ask() -> dict[AclFilter, list[AclEntry] | KafkaError]:
            request = DeleteAclsRequest(filters=[_filter(each) for each in filters])
            response: DeleteAclsResponse = await self.cluster.call(
                request, to=controller(), feature=_PATTERNS, timeout_ms=timeout_ms
            )
            return {each: _deleted(row) for each, row in zip(filters, response.filter_results, strict=True)}

        async def look(late: list[AclFilter]) -> Mapping[AclFilter, bool]:
            present = await self.describe_acls(timeout_ms=timeout_ms)
            return {each: not any(map(each.matches, present)) for each in late}

        return await change(filters, ask, look, lambda each: f"deleting the ACLs of {_words(each)}")


def only(entry: AclEntry) -> AclFilter:
    """Return the filter that matches only this entry."""
    return AclFilter(*entry)


def _words(filter: AclFilter) -> str:
    resource = f"{filter.resource_type.name} {filter.pattern_type.name} {filter.resource_name or 'any'}"
    return f"{filter.principal or 'anyone'} to {filter.operation.name} on {resource}"


def _creation(entry: AclEntry) -> CreateAclsRequest.AclCreation:
    return CreateAclsRequest.AclCreation(
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        resource_pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


def _filter(filter: AclFilter) -> DeleteAclsRequest.DeleteAclsFilter:
    return DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=filter.resource_type,
        resource_name_filter=filter.resource_name,
        pattern_type_filter=filter.pattern_type,
        principal_filter=filter.principal,
        host_filter=filter.host,
        operation=filter.operation,
        permission_type=filter.permission,
    )


def _entry(
    resource: DescribeAclsResponse.DescribeAclsResource | DeleteAclsResponse.DeleteAclsMatchingAcl,
    acl: DescribeAclsResponse.AclDescription | DeleteAclsResponse.DeleteAclsMatchingAcl,
) -> AclEntry:
    return AclEntry(
        ResourceType(resource.resource_type),
        resource.resource_name,
        PatternType(resource.pattern_type),
        acl.principal,
        acl.host,
        AclOperation(acl.operation),
        AclPermissionType(acl.permission_type),
    )


def _deleted(row: DeleteAclsResponse.DeleteAclsFilterResult) -> list[AclEntry] | KafkaError:
    if (error := failed(row.error_code, row.error_message)) is not None:
        return error
    entries = []
    for match in row.matching_acls:
        entry = _entry(match, match)
        if (error := failed(match.error_code, match.error_message)) is not None:
            return KafkaError(error.code, f"{entry}: {error.message}")
        entries.append(entry)
    return entries
