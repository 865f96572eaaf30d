"""ACLs with hosts, on a real node: the address of a client over IPv4 and over IPv6, on one listener for both."""

from __future__ import annotations

import asyncio
import socket

import pytest

from barnabas.client import Admin, handshake
from barnabas.client.settings import load
from barnabas.config.endpoints import Address
from barnabas.config.unsupported import STANDARD_AUTHORIZER
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.testing import AsyncBroker, Security
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.broker.clusters import until

HOSTS = {"of-ipv4": "127.0.0.1", "of-ipv6": "0:0:0:0:0:0:0:1", "of-others": "10.0.0.7"}


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_the_host_of_an_entry_is_the_address_as_java_writes_it(protocol: str) -> None:
    security = Security(protocol, ("PLAIN",), {"alice": "wonderland", "root": "all"})
    config = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:node;User:root",
        "listeners": f"{protocol}://[::]:0",
        "advertised.listeners": f"{protocol}://localhost:0",
    }

    async def visible(broker: AsyncBroker, host: str) -> set[str | None]:
        settings = {**broker.client_config("alice"), "ssl.endpoint.identification.algorithm": ""}
        connection = await handshake.connect(Address(host, broker.port), load(settings).connect_options())
        try:
            response: MetadataResponse = await connection.call(MetadataRequest(topics=None), 12)
            return {topic.name for topic in response.topics}
        finally:
            connection.close()

    async def run() -> None:
        async with AsyncBroker(list(HOSTS), security=security, config=config) as broker:
            entries = [
                AclEntry(
                    *(ResourceType.TOPIC, topic, PatternType.LITERAL, "User:alice", host),
                    *(AclOperation.DESCRIBE, AclPermissionType.ALLOW),
                )
                for topic, host in HOSTS.items()
            ]
            async with Admin(broker.client_config("root")) as root:
                await root.create_acls(entries)
            node = broker._running()
            await until(lambda: len(list(node.image.acls.index.of_type(ResourceType.TOPIC))) == len(HOSTS))
            assert await visible(broker, "127.0.0.1") == {"of-ipv4"}
            assert await visible(broker, "::1") == {"of-ipv6"}

    asyncio.run(run())
