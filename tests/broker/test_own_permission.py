"""A node whose authorizer does not allow the node itself: it stops with one line that says what to change."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.broker.node import Node
from barnabas.client import Admin
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.testing import AsyncBroker, AsyncCluster, BrokerError, Security
from barnabas.testing.embedded import stop_node
from tests.command_line import spawn

AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
REFUSAL = (
    "the authorizer does not allow this node to register with its controller (CLUSTER_AUTHORIZATION_FAILED): "
    "add User:ANONYMOUS, the principal of its own connections, to super.users, or allow it CLUSTER_ACTION on the cluster"
)
OF_CLUSTER = (ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL)
DENIED = AclEntry(*OF_CLUSTER, "User:*", "*", AclOperation.CLUSTER_ACTION, AclPermissionType.DENY)


def start(data: Path, **config: str) -> None:
    async def run() -> None:
        async with AsyncBroker(data_dir=data, config=AUTHORIZER | {k.replace("_", "."): v for k, v in config.items()}):
            pass

    asyncio.run(run())


def test_a_node_without_permission_does_not_start(tmp_path: Path) -> None:
    for config in ({}, {"super_users": "User:admin"}, {"allow_everyone_if_no_acl_found": "false"}):
        with pytest.raises(BrokerError) as refused:
            start(tmp_path / "data", **config)
        assert str(refused.value) == REFUSAL
    start(tmp_path / "data", super_users="User:ANONYMOUS")
    start(tmp_path / "data", allow_everyone_if_no_acl_found="true")


def test_the_principal_of_a_certificate_is_named(tmp_path: Path) -> None:
    security = Security("SSL", client_auth="required")

    async def run(**config: str) -> None:
        async with AsyncBroker(
            security=security, config=AUTHORIZER | {k.replace("_", "."): v for k, v in config.items()}
        ):
            pass

    wrong = {"super_users": "User:admin", "ssl_principal_mapping_rules": "RULE:^CN=(.*)$/the $1/U"}
    with pytest.raises(BrokerError, match=r"add User:THE NODE, the principal of its own connections, to super\.users"):
        asyncio.run(run(**wrong))
    asyncio.run(run(**wrong | {"super_users": "User:THE NODE"}))


def test_acls_may_deny_the_node_itself(tmp_path: Path) -> None:
    everyone = {**AUTHORIZER, "allow.everyone.if.no.acl.found": "true", "super.users": "User:ANONYMOUS"}

    async def deny() -> None:
        broker = AsyncBroker(data_dir=tmp_path / "data", config=everyone)
        async with broker, Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
            await admin.create_acls([DENIED])

    asyncio.run(deny())
    with pytest.raises(BrokerError) as refused:
        start(tmp_path / "data", allow_everyone_if_no_acl_found="true")
    assert str(refused.value) == REFUSAL


def test_serve_prints_one_line(tmp_path: Path) -> None:
    overrides = [f"log.dirs={tmp_path / 'data'}", f"authorizer.class.name={AUTHORIZER['authorizer.class.name']}"]
    options = [word for each in overrides for word in ("--override", each)]
    done = spawn("serve", "--port", "0", "--log-level", "warning", *options)
    assert done.exit_code == 1
    assert done.stderr == f"Error: {REFUSAL}\n"


def test_only_super_users_are_authorized_before_the_acls_are_loaded(tmp_path: Path) -> None:
    """The listener of a controller answers before; an entry that denies something must not be missed meanwhile."""
    everyone = {**AUTHORIZER, "allow.everyone.if.no.acl.found": "true", "super.users": "User:boss"}

    async def run() -> None:
        async with AsyncCluster(1, controllers=1, config=everyone, data_dir=tmp_path) as cluster:
            await cluster.stop()
            node = Node(cluster._config(101))
            assert not node.authorizer.allow_everyone_if_no_acl_found
            assert node.authorizer.enabled and node.authorizer.super_users == {"User:boss"}
            await node.start()
            async with asyncio.timeout(30):
                while not node.authorizer.allow_everyone_if_no_acl_found:
                    await asyncio.sleep(0.01)
            assert node.quorum.is_loaded
            await stop_node(node)

    asyncio.run(run())


def test_a_line_for_a_login_that_has_another_form_is_named(tmp_path: Path) -> None:
    """Also if it is needed only when there are other brokers."""
    security = Security("SASL_PLAINTEXT", ("SCRAM-SHA-256",))
    name = "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config"
    config = {
        name: 'org.apache.kafka.common.security.scram.ScramLoginModule required username="node" password="s3cret"'
    }

    async def run() -> None:
        async with AsyncBroker(security=security, config=config):
            pass

    with pytest.raises(BrokerError) as refused:
        asyncio.run(run())
    assert str(refused.value) == f"{name}: the last option must be followed by a semicolon"
