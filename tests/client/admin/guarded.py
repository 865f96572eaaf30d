"""A node whose only client may not see or change settings, quotas and users."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.client.cluster import Cluster
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.testing import Broker
from barnabas.wire.messages.create_acls import CreateAclsRequest

_ALLOW, _DENY = 3, 2
_DENIED = (
    AclOperation.DESCRIBE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)


@contextmanager
def guarded_broker() -> Iterator[Broker]:
    settings: dict[str, str | bool] = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": True,
    }
    with Broker(["secret"], config=settings) as broker:
        asyncio.run(_deny(broker.bootstrap_servers))
        yield broker


async def _deny(address: str) -> None:
    acls = [
        CreateAclsRequest.AclCreation(
            resource_type=resource_type,
            resource_name=name,
            resource_pattern_type=3,
            principal="User:ANONYMOUS",
            host="*",
            operation=operation,
            permission_type=permission,
        )
        for resource_type, name in (
            (ResourceType.TOPIC, "secret"),
            (ResourceType.GROUP, "secret"),
            (ResourceType.CLUSTER, "kafka-cluster"),
        )
        for operation, permission in ((AclOperation.ALL, _ALLOW), *((each, _DENY) for each in _DENIED))
    ]
    async with Cluster({"bootstrap.servers": address}) as cluster:
        response = await cluster.call(CreateAclsRequest(creations=acls))
    assert not any(result.error_code for result in response.results)
