"""Three nodes that trust nobody without a login or a certificate, each other included: kills, forwarding, new certificates."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker import listener_securities, own_connections
from barnabas.broker.faults.rules import RuleError
from barnabas.client import (
    Admin,
    AlterConfigOp,
    AlterConfigOpType,
    ConfigResource,
    Consumer,
    NewTopic,
    Producer,
    TopicPartition,
    checked,
    handshake,
)
from barnabas.client.cluster import Cluster
from barnabas.client.jaas import MODULES
from barnabas.client.routing import node as at_node
from barnabas.client.settings import load as load_client
from barnabas.client.tls import TLS_SETTINGS, client_context
from barnabas.config.definitions import Value
from barnabas.config.unsupported import STANDARD_AUTHORIZER
from barnabas.operations.security.node_settings import jaas_line
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.testing import AsyncCluster, BrokerError, Security
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.broker.clusters import QUICK, TIMEOUT_S, in_sync, led, state, until

USERS = {"alice": "wonderland", "bob": "builder"}
AUTHORIZED = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:node;User:alice"}
NODE = ("node", "of all nodes")
OVER_TLS_WITH_PASSWORD = {
    "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:SASL_SSL",
    "listener.name.controller.ssl.client.auth": "none",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": jaas_line("PLAIN", NODE, {}),
}
PROTECTIONS = {
    "SASL_SSL, SCRAM, certificates of controllers": (Security("SASL_SSL", users=USERS), {}),
    "SASL_SSL, SCRAM, passwords of controllers": (Security("SASL_SSL", users=USERS), OVER_TLS_WITH_PASSWORD),
    "SSL": (Security("SSL", users=USERS, client_auth="required"), {}),
    "SASL_PLAINTEXT, PLAIN": (Security("SASL_PLAINTEXT", ("PLAIN",), USERS), {}),
    "SASL_SSL, OAUTHBEARER": (Security("SASL_SSL", ("OAUTHBEARER",), USERS), {}),
}


def on_three(
    scenario: Callable[[AsyncCluster], Awaitable[None]], security: Security, settings: dict[str, str] | None = None
) -> None:
    async def main() -> None:
        config = {**QUICK, **AUTHORIZED, **(settings or {})}
        async with AsyncCluster(3, security=security, config=config, topics={"t": 1}) as cluster:
            await scenario(cluster)

    asyncio.run(main())


async def produce(cluster: AsyncCluster, value: bytes, **settings: str) -> None:
    given = {**cluster.client_config("alice"), "acks": "all", "delivery.timeout.ms": "50000", **settings}
    async with Producer(given) as producer:
        await (await producer.send("t", value, partition=0))


async def consume(cluster: AsyncCluster, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    async with Consumer({**cluster.client_config("alice"), "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        async with asyncio.timeout(TIMEOUT_S):
            while len(found) < count:
                found += [record.value for record in await consumer.poll(500)]
    return found


def through(cluster: AsyncCluster, node_id: int, user: str) -> dict[str, str]:
    """The settings of a client that knows one broker."""
    return {**cluster.client_config(user), "bootstrap.servers": cluster.address(node_id)}


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_what_was_acknowledged_survives_the_death_of_leader_and_controller(protection: str) -> None:
    security, settings = PROTECTIONS[protection]

    async def scenario(cluster: AsyncCluster) -> None:
        await in_sync(cluster, 1, 2, 3)
        await produce(cluster, b"before")
        first = await cluster.wait_active_controller()
        await cluster.kill(first)
        await cluster.wait_active_controller(other_than=first)
        await led(cluster, other_than=first)
        await produce(cluster, b"meanwhile")
        await cluster.start_node(first)
        await in_sync(cluster, 1, 2, 3)
        leader = await led(cluster)
        await cluster.kill(leader)
        await led(cluster, other_than=leader)
        await produce(cluster, b"after")
        assert await consume(cluster, 3) == [b"before", b"meanwhile", b"after"]

    on_three(scenario, security, settings)


def test_brokers_may_log_in_to_each_other_with_another_mechanism_than_clients() -> None:
    security = Security("SASL_SSL", ("SCRAM-SHA-512", "PLAIN"), USERS)
    settings = {"sasl.mechanism.inter.broker.protocol": "PLAIN"}

    async def scenario(cluster: AsyncCluster) -> None:
        await in_sync(cluster, 1, 2, 3)
        await produce(cluster, b"one")
        sessions = {
            connection.peer.information.login.session
            for node in cluster.nodes.values()
            for connection in node._server.connections
            if connection.peer.information is not None and connection.peer.information.login is not None
        }
        assert ("User:node", "PLAIN") in {(str(each.principal), each.mechanism) for each in sessions if each}

    on_three(scenario, security, settings)


def test_a_request_through_any_broker_is_authorized_and_audited_as_the_clients(tmp_path: Path) -> None:
    audit = {"barnabas.audit.log.path": str(tmp_path / "audit.log")}
    security = Security("SASL_SSL", users=USERS)
    may_create = AclEntry(
        *(ResourceType.TOPIC, "of-bob-", PatternType.PREFIXED, "User:bob", "127.0.0.1"),
        *(AclOperation.CREATE, AclPermissionType.ALLOW),
    )

    async def scenario(cluster: AsyncCluster) -> None:
        async with Admin(cluster.client_config("alice")) as admin:
            await admin.create_acls([may_create])
        await until(
            lambda: all(
                len(list(node.image.acls.index.of_type(ResourceType.TOPIC))) == 1 for node in cluster.nodes.values()
            )
        )
        for node_id in cluster.node_ids:
            async with Admin(through(cluster, node_id, "bob")) as admin:
                names = [f"of-bob-{node_id}", f"of-others-{node_id}"]
                made, refused = (await admin.create_topics([NewTopic(name, 1, 1) for name in names])).values()
                assert not isinstance(made, KafkaError), made
                assert isinstance(refused, KafkaError) and refused.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED

    on_three(scenario, security, audit)
    lines = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    of_bob = [each for each in lines if each.get("principal") == "User:bob" and each["api"] == "CreateTopics"]
    assert [(each["outcome"], each["address"]) for each in of_bob] == [("partial", "127.0.0.1")] * 3


def test_a_delegation_token_makes_no_tokens_through_any_broker() -> None:
    """A broker that is not the active controller forwards the request, and must not forget how the client logged in."""
    security = Security("SASL_SSL", ("SCRAM-SHA-256",), USERS)

    async def scenario(cluster: AsyncCluster) -> None:
        request = CreateDelegationTokenRequest(owner_principal_type=None, owner_principal_name=None, max_lifetime_ms=-1)
        async with Cluster(load_client(cluster.client_config("bob"))) as bob:
            tokens = [await bob.call(request, at_node(node_id), repeat=False) for node_id in cluster.node_ids]
        assert [each.error_code for each in tokens] == [0, 0, 0]
        token = tokens[0]
        await until(lambda: all(token.token_id in node.image.tokens for node in cluster.nodes.values()))
        password = base64.b64encode(bytes(token.hmac)).decode()
        options = f'username="{token.token_id}" password="{password}" tokenauth="true"'
        settings = {
            k: v for k, v in cluster.client_config("bob").items() if k not in ("sasl.username", "sasl.password")
        }
        settings["sasl.jaas.config"] = f"{MODULES['SCRAM-SHA-256']} required {options};"
        renewal = RenewDelegationTokenRequest(hmac=bytes(token.hmac), renew_period_ms=-1)
        async with Cluster(load_client(settings)) as with_token:
            for node_id in cluster.node_ids:
                for asked in (request, renewal):
                    with pytest.raises(KafkaError) as refused:
                        await with_token.call(asked, at_node(node_id), repeat=False)
                    assert refused.value.code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, node_id

    on_three(scenario, security, {"delegation.token.secret.key": "of all nodes"})


def test_nodes_renew_their_logins_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    renewed: set[str] = set()
    log_in = handshake.Session.log_in

    async def noted(self: handshake.Session, mechanism: Any) -> None:
        if self._renew_at_s is not None:
            renewed.add(self._connection.client_id)
        await log_in(self, mechanism)

    monkeypatch.setattr(handshake.Session, "log_in", noted)
    settings = {**OVER_TLS_WITH_PASSWORD, "connections.max.reauth.ms": "1500"}

    async def scenario(cluster: AsyncCluster) -> None:
        parts = ("raft-client", "heartbeat", "fetcher")
        await until(lambda: all(any(part in name for name in renewed) for part in parts))
        await in_sync(cluster, 1, 2, 3)
        await produce(cluster, b"one")
        assert all(not broker.fenced for broker in cluster.nodes[1].image.brokers.values())

    on_three(scenario, Security("SASL_SSL", users=USERS), settings)


def test_certificates_of_a_broker_are_checked_and_replaced_in_the_running_cluster() -> None:
    """A dynamic setting counts for both directions: what the broker shows its clients, and what it shows other nodes."""
    security = Security("SSL", users=USERS, client_auth="required")

    async def scenario(cluster: AsyncCluster) -> None:
        await in_sync(cluster, 1, 2, 3)
        victim = next(each for each in cluster.node_ids if each not in (state(cluster).leader, 1))
        here = ["127.0.0.1", "localhost"]
        any_name = {"ssl.endpoint.identification.algorithm": ""}
        not_waiting = {"acks": "1", "enable.idempotence": "false", **any_name}

        async def show(common_name: str, hosts: list[str]) -> None:
            issued = security.authority.issue(common_name, hosts)
            prefix = "listener.name.ssl.ssl.keystore."
            given = {"type": "PEM", "key": issued.key, "certificate.chain": issued.chain}
            ops = [AlterConfigOp(prefix + name, AlterConfigOpType.SET, text) for name, text in given.items()]
            async with Admin({**cluster.client_config("alice"), **any_name}) as admin:
                checked(await admin.incremental_alter_configs({ConfigResource.broker(victim): ops}))
            chain = f"{prefix}certificate.chain"
            await until(lambda: cluster.nodes[victim].dynamic.current.given.get(chain) == issued.chain)
            for node in cluster.nodes.values():  # so that new connections are made
                node.close_connections()

        others = [each for each in cluster.node_ids if each != victim]
        await show("stranger", here)  # a good certificate, but of nobody who may replicate
        await produce(
            cluster, b"not replicated by all", **not_waiting
        )  # who has all records is in sync, however long ago it asked
        await in_sync(cluster, *others)
        await show("node", here)
        async with asyncio.timeout(TIMEOUT_S):
            while state(cluster).leader != victim:
                await in_sync(cluster, 1, 2, 3)
                with contextlib.suppress(RuleError):  # on a busy machine, it may be behind again
                    await cluster.move_leader("t", to=victim)
        await show("node", ["elsewhere.example"])
        await produce(cluster, b"not replicated", **not_waiting)
        await in_sync(cluster, victim)  # the others do not fetch from a broker with another name
        await show("node", here)
        await in_sync(cluster, 1, 2, 3)

    on_three(scenario, security)


def test_the_authority_is_replaced_in_files_while_the_cluster_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one does it with real clusters: trust both, show certificates of the new one, and then trust the new one alone. It
    counts on all listeners, that of the controllers included, for clients and for the nodes themselves."""
    monkeypatch.setattr(listener_securities, "FILE_CHECK_S", 0.02)
    old, new = (Security("SSL", users=USERS, client_auth="required") for _ in range(2))
    node, trusted = tmp_path / "node.pem", tmp_path / "trusted.pem"
    hosts = ["127.0.0.1", "localhost"]
    read: list[str] = []

    def noted(values: Mapping[str, Value]) -> ssl.SSLContext:
        read.append(trusted.read_text())
        return client_context(values)

    monkeypatch.setattr(own_connections, "client_context", noted)

    def put(path: Path, text: str) -> None:
        path.with_suffix(".new").write_text(text)
        path.with_suffix(".new").replace(path)

    def show(authority: Security) -> None:
        own = authority.authority.issue("node", hosts)
        put(node, own.key + own.chain)

    def config(security: Security) -> dict[str, str]:
        own = security.certificate("alice")
        stores = {"truststore.certificates": security.authority.pem, "keystore.key": own.key}
        return {f"ssl.{name}": text for name, text in {**stores, "keystore.certificate.chain": own.chain}.items()}

    def shakes_hands(address: str, security: Security) -> bool:
        host, port = address.rsplit(":", 1)
        try:
            with (
                socket.create_connection((host, int(port)), TIMEOUT_S) as sock,
                client_context({**dict.fromkeys(TLS_SETTINGS), **config(security)}).wrap_socket(sock) as tls,
            ):
                tls.settimeout(0.3)
                return tls.recv(1) != b""  # in TLS 1.3, a refusal comes after the client's side is done
        except TimeoutError:
            return True
        except OSError:
            return False

    async def until_changed(cluster: AsyncCluster, security: Security, *, is_refused: bool = False) -> None:
        addresses = [cluster.address(each, name) for each in cluster.node_ids for name in (None, "CONTROLLER")]
        async with asyncio.timeout(TIMEOUT_S):
            for address in addresses:
                while await asyncio.to_thread(shakes_hands, address, security) == is_refused:
                    await asyncio.sleep(0.05)
        for each in cluster.nodes.values():
            each.close_connections()  # so that nodes, too, make new ones

    async def scenario(cluster: AsyncCluster) -> None:
        await in_sync(cluster, 1, 2, 3)
        assert not await asyncio.to_thread(shakes_hands, cluster.address(1), new)
        put(trusted, old.authority.pem + new.authority.pem)
        await asyncio.sleep(0.1)
        show(new)
        await until_changed(cluster, new)
        await until(lambda: old.authority.pem + new.authority.pem in read)
        await in_sync(cluster, 1, 2, 3)
        put(trusted, new.authority.pem)
        await until_changed(cluster, old, is_refused=True)
        await in_sync(cluster, 1, 2, 3)
        given = {**cluster.client_config("alice"), **config(new)}
        async with Producer({**given, "acks": "all"}) as producer:
            await (await producer.send("t", b"one", partition=0))
        first = await cluster.wait_active_controller()
        await cluster.kill(first)  # the others elect one of themselves, over new connections
        await cluster.wait_active_controller(other_than=first)
        await until(lambda: new.authority.pem in read)
        assert set(read) == {old.authority.pem, old.authority.pem + new.authority.pem, new.authority.pem}
        assert len(read) <= 3 * 2 * 5  # of three nodes, two kinds of connections each, once for each change of a file

    put(trusted, old.authority.pem)
    show(old)
    stores = {"keystore": node, "truststore": trusted}
    files = {f"ssl.{store}.type": "PEM" for store in stores}
    files |= {f"ssl.{store}.location": str(path) for store, path in stores.items()}
    on_three(scenario, FileStores(old), files)


class FileStores(Security):
    """A security whose nodes have their stores in files, which the settings name."""

    def __init__(self, like: Security) -> None:
        super().__init__("SSL", users=like.users, client_auth=like.client_auth)
        self.__dict__["authority"] = like.authority

    def server_settings(
        self, hosts: tuple[str, ...], *, is_authorizing: bool, has_others: bool = False
    ) -> dict[str, str]:
        settings = super().server_settings(hosts, is_authorizing=is_authorizing, has_others=has_others)
        return {name: text for name, text in settings.items() if "store." not in name}


def test_a_node_that_other_nodes_refuse_says_why(caplog: pytest.LogCaptureFixture) -> None:
    """A wrong password of its own, and a quorum whose nodes are no super users."""

    async def wrong_password() -> None:
        security = Security("SASL_PLAINTEXT", ("PLAIN",), USERS)
        config = {**QUICK, **AUTHORIZED, "initial.broker.registration.timeout.ms": "2000"}
        async with AsyncCluster(3, security=security, config=config) as cluster:
            active = await cluster.wait_active_controller()
            victim = next(each for each in cluster.node_ids if each != active)
            await cluster.stop_node(victim)
            cluster._settings["listener.name.controller.plain.sasl.jaas.config"] = jaas_line("PLAIN", NODE, {})
            with pytest.raises(BrokerError, match="Invalid username or password; check the certificate and the login"):
                await cluster.start_node(victim)

    async def no_super_users() -> None:
        config = {**QUICK, **AUTHORIZED, "super.users": "User:alice", "allow.everyone.if.no.acl.found": "true"}
        config["initial.broker.registration.timeout.ms"] = "2000"
        with pytest.raises(BrokerError, match="no leader of the metadata quorum is known"):
            await AsyncCluster(3, config=config).start()

    asyncio.run(wrong_password())
    assert "this node cannot talk to the controller at 127.0.0.1" in caplog.text and NODE[1] not in caplog.text
    asyncio.run(no_super_users())
    assert "add the principal of this node to super.users there" in caplog.text
