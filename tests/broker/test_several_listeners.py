"""One node with a listener of each protocol, and settings of single listeners and mechanisms: each counts where it belongs."""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client import (
    Admin,
    AlterConfigOp,
    AlterConfigOpType,
    AuthenticationError,
    CallTimeoutError,
    ConfigResource,
    NewTopic,
    TlsError,
    checked,
)
from barnabas.client.admin.users import ScramMechanism, ScramUpsertion
from barnabas.operations.security.certificates import Authority
from barnabas.operations.security.node_settings import jaas_line
from barnabas.testing import Broker

NOW = datetime.datetime.now(datetime.UTC)
PROTOCOLS = {
    "PLAINTEXT": "PLAINTEXT",
    "STAFF": "SSL",
    "PARTNERS": "SSL",
    "INSIDE": "SASL_PLAINTEXT",
    "OUTSIDE": "SASL_SSL",
    "CONTROLLER": "PLAINTEXT",
}
CLIENT_LISTENERS = [name for name in PROTOCOLS if name != "CONTROLLER"]
NODE = ("node", "its own")


class Setting:
    """A node, and what its clients need."""

    def __init__(self, folder: Path) -> None:
        self.audit_log = folder / "audit.log"
        self.staff, self.partners = Authority("staff", NOW), Authority("partners", NOW)
        self.broker = Broker(config=self._settings())

    def _settings(self) -> dict[str, str]:
        settings = {
            "listeners": ",".join(f"{name}://127.0.0.1:0" for name in PROTOCOLS),
            "listener.security.protocol.map": ",".join(f"{name}:{text}" for name, text in PROTOCOLS.items()),
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "DEFAULT",
            "listener.name.partners.ssl.principal.mapping.rules": "RULE:^CN=(.*?)$/partner-$1/L",
            "listener.name.outside.ssl.client.auth": "none",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.outside.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.inside.plain.sasl.jaas.config": jaas_line("PLAIN", NODE, {"alice": "of inside"}),
            "listener.name.outside.plain.sasl.jaas.config": jaas_line("PLAIN", NODE, {"alice": "of outside"}),
            "connections.max.reauth.ms": "3600000",
            "listener.name.outside.scram-sha-256.connections.max.reauth.ms": "7200000",
            "connection.failed.authentication.delay.ms": "0",
            "barnabas.audit.log.path": str(self.audit_log),
        }
        for listener, authority in (("staff", self.staff), ("partners", self.partners), ("outside", self.staff)):
            own = authority.issue("node", ["127.0.0.1"])
            settings |= {f"listener.name.{listener}.{name}": text for name, text in stores(authority, own).items()}
        return settings

    def client(self, listener: str, **given: str) -> dict[str, str]:
        host, port = self.broker._broker._addresses[listener]
        settings = {
            "bootstrap.servers": f"{host}:{port}",
            "security.protocol": PROTOCOLS[listener],
            "bootstrap.timeout.ms": "2000",
        }
        if PROTOCOLS[listener].endswith("SSL"):
            authority = self.partners if listener == "PARTNERS" else self.staff
            settings |= stores(authority, authority.issue("Alice"))
        if PROTOCOLS[listener].startswith("SASL"):
            settings |= {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": f"of {listener.lower()}"}
        return settings | {name.replace("_", "."): text for name, text in given.items()}


def stores(authority: Authority, own: object) -> dict[str, str]:
    return {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.pem,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": own.key,  # type: ignore[attr-defined]
        "ssl.keystore.certificate.chain": own.chain,  # type: ignore[attr-defined]
    }


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    made = Setting(tmp_path_factory.mktemp("node"))
    with made.broker:
        yield made


def ask(settings: dict[str, str]) -> None:
    async def run() -> None:
        async with Admin(settings) as admin:
            await admin.describe_cluster()

    asyncio.run(run())


def test_each_listener_names_its_clients_in_its_own_way(node: Setting) -> None:
    async def make(listener: str) -> None:
        async with Admin(node.client(listener)) as admin:
            checked(await admin.create_topics([NewTopic(f"through-{listener}", 1)]))

    for listener in CLIENT_LISTENERS:
        asyncio.run(make(listener))
    lines = [json.loads(line) for line in node.audit_log.read_text().splitlines()]
    made = {line["listener"]: line["principal"] for line in lines if line["api"] == "CreateTopics"}
    assert made == {
        "PLAINTEXT": "User:ANONYMOUS",
        "STAFF": "User:CN=Alice",
        "PARTNERS": "User:partner-alice",
        "INSIDE": "User:alice",
        "OUTSIDE": "User:alice",
    }


def test_certificates_and_passwords_of_one_listener_are_worth_nothing_on_another(node: Setting) -> None:
    for listener, other in (("STAFF", "PARTNERS"), ("PARTNERS", "STAFF")):
        foreign = {name: text for name, text in node.client(other).items() if "keystore" in name}
        with pytest.raises((TlsError, CallTimeoutError)):
            ask(node.client(listener) | foreign)
    for listener, other in (("INSIDE", "outside"), ("OUTSIDE", "inside")):
        with pytest.raises(AuthenticationError, match="Invalid username or password"):
            ask(node.client(listener, sasl_password=f"of {other}"))
    with pytest.raises(AuthenticationError, match="SCRAM-SHA-256"):
        ask(node.client("INSIDE", sasl_mechanism="SCRAM-SHA-256"))


def test_times_of_sessions_belong_to_a_mechanism_of_a_listener(node: Setting) -> None:
    async def run() -> None:
        async with Admin(node.client("PLAINTEXT")) as admin:
            await admin.alter_user_scram_credentials(
                [ScramUpsertion("alice", ScramMechanism.SCRAM_SHA_256, "of scram")]
            )
        async with Admin(node.client("OUTSIDE", sasl_mechanism="SCRAM-SHA-256", sasl_password="of scram")) as by_scram:
            await by_scram.describe_cluster()
            async with Admin(node.client("OUTSIDE")) as by_plain, Admin(node.client("INSIDE")) as inside:
                await by_plain.describe_cluster()
                await inside.describe_cluster()
                running = node.broker._broker._node
                assert running is not None
                found = {
                    (connection.endpoint.listener.name, login.session.mechanism): login.session_lifetime_ms
                    for connection in running._server.connections
                    for login in [connection.peer.information and connection.peer.information.login]
                    if login and login.session
                }
        assert found == {
            ("OUTSIDE", "SCRAM-SHA-256"): 7_200_000,
            ("OUTSIDE", "PLAIN"): 3_600_000,
            ("INSIDE", "PLAIN"): 3_600_000,
        }

    asyncio.run(run())


def test_users_of_one_listener_are_replaced_while_the_node_runs(node: Setting) -> None:
    name = "listener.name.inside.plain.sasl.jaas.config"
    line = jaas_line("PLAIN", NODE, {"alice": "of inside", "carol": "new"})

    async def replace() -> None:
        async with Admin(node.client("INSIDE")) as admin:
            change = {ConfigResource.broker(1): [AlterConfigOp(name, AlterConfigOpType.SET, line)]}
            checked(await admin.incremental_alter_configs(change))

    carol = {"sasl_username": "carol", "sasl_password": "new"}
    with pytest.raises(AuthenticationError):
        ask(node.client("INSIDE", **carol))
    asyncio.run(replace())
    ask(node.client("INSIDE", **carol))
    with pytest.raises(AuthenticationError):
        ask(node.client("OUTSIDE", **carol))
