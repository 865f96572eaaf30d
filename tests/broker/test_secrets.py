"""Secrets are planted everywhere, and must not appear in logs, errors, reprs, described configs, exports or answers."""

from __future__ import annotations

import asyncio
import base64
import logging
import traceback
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from barnabas.broker.node import Node, NodeError
from barnabas.client import Admin, AlterConfigOp, AlterConfigOpType, AuthenticationError, ConfigResource, checked
from barnabas.client.cluster import Cluster
from barnabas.client.jaas import MODULES
from barnabas.client.routing import controller
from barnabas.client.settings import load as load_client
from barnabas.config import properties
from barnabas.config.definitions import ConfigError
from barnabas.config.server import load
from barnabas.operations.errors import OperationError
from barnabas.operations.security.files import create_secured_node
from barnabas.security.delegation_token import token_hmac
from barnabas.testing import AsyncBroker, Security
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from tests.command_line import invoke
from tests.security.oauth_service import CLIENT_SECRET

NODE_PASSWORD, ALICES, BOBS, WRONG, KEY_PASSWORD = (f"planted-{name}-secret" for name in ("node", "a", "b", "w", "k"))
TOKEN_KEY = "planted-key-of-delegation-tokens"
# What is planted after the start, too: HMACs of delegation tokens and bearer tokens.
SECRETS = [NODE_PASSWORD, ALICES, BOBS, WRONG, KEY_PASSWORD, TOKEN_KEY, CLIENT_SECRET, "PRIVATE KEY"]
SECURITY = Security("SASL_SSL", ("PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"), {"alice": ALICES, "bob": BOBS})
DYNAMIC = "listener.name.sasl_ssl.plain.sasl.jaas.config"


def planted() -> dict[str, str]:
    """The key of the node, encrypted, with its password beside it."""
    certificate = SECURITY.authority.issue("node", ["127.0.0.1", "localhost"])
    key = serialization.load_pem_private_key(certificate.key.encode(), None)
    protection = serialization.BestAvailableEncryption(KEY_PASSWORD.encode())
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection).decode()
    return {
        "ssl.keystore.key": text,
        "ssl.keystore.certificate.chain": certificate.chain,
        "ssl.key.password": KEY_PASSWORD,
        "connection.failed.authentication.delay.ms": "0",
        "delegation.token.secret.key": TOKEN_KEY,
        "listener.name.sasl_ssl.oauthbearer.sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
    }


def plant(secret: bytes | str) -> None:
    """Watch for another secret, in each form in which it could be shown."""
    if isinstance(secret, str):
        SECRETS.append(secret)
        return
    texts = (base64.b64encode(secret).decode(), secret.hex(), repr(secret)[2:-1], str(list(secret))[1:-1])
    SECRETS.extend(text[:40] for text in texts)


def assert_clean(shown: str) -> None:
    for secret in SECRETS:
        assert secret not in shown, secret


def test_nothing_that_a_node_shows_has_a_secret(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    shown: list[Any] = []

    async def run() -> None:
        async with AsyncBroker(["t"], security=SECURITY, config=planted()) as broker:
            config = broker.client_config("alice")
            async with Admin(config) as admin:
                node = ConfigResource.broker(1)
                jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_x="{BOBS}";'
                checked(
                    await admin.incremental_alter_configs({node: [AlterConfigOp(DYNAMIC, AlterConfigOpType.SET, jaas)]})
                )
                described = checked(await admin.describe_configs([node]))
                shown.extend((described, admin, load_client(config)))
                assert described[node][DYNAMIC].is_sensitive and described[node][DYNAMIC].value is None
                shown.append(await admin.describe_user_scram_credentials())
            for wrong in (
                config | {"sasl.password": WRONG},
                config | {"sasl.password": WRONG, "sasl.mechanism": "PLAIN"},
                config | {"ssl.truststore.certificates": Security("SSL").authority.pem},
            ):
                try:
                    async with Admin({**wrong, "bootstrap.timeout.ms": 500}):
                        pass
                except Exception as error:
                    shown.extend((error, *traceback.format_exception(error)))
                else:
                    pytest.fail("a wrong password was accepted")
            await use_tokens(broker, shown)
            running = broker._running()
            endpoint = running._server.endpoints[0]
            shown.extend(
                (broker, running, running.config, running.dynamic.current, endpoint, endpoint.security, SECURITY)
            )
            shown.extend(vars(each) for each in running._server.connections)
            shown.extend(running.describe())
            shown.append(list(running.image.scram.values()))
            shown.extend((running.image.tokens, vars(running._credentials)))
            shown.append(await asyncio.to_thread(export, config | {"sasl.mechanism": "SCRAM-SHA-512"}, tmp_path))

    with caplog.at_level(logging.DEBUG):
        asyncio.run(run())
    assert "failed authentication" in caplog.text
    assert_clean(caplog.text)
    for each in shown:
        assert_clean(f"{each!r} {each!s}")


async def use_tokens(broker: AsyncBroker, shown: list[Any]) -> None:
    """Create a delegation token, and log in with it and with bearer tokens, rightly and wrongly."""
    config = broker.client_config("alice") | {"sasl.mechanism": "SCRAM-SHA-512"}
    async with Cluster(load_client(config)) as cluster:
        request = CreateDelegationTokenRequest(owner_principal_type=None, owner_principal_name=None, max_lifetime_ms=-1)
        created: CreateDelegationTokenResponse = await cluster.call(request, controller(), repeat=False)
    hmac = bytes(created.hmac)
    assert hmac == token_hmac(TOKEN_KEY, created.token_id)
    plant(hmac)
    password = base64.b64encode(hmac).decode()
    module = f"{MODULES['SCRAM-SHA-512']} required tokenauth=true username="
    stores = {name: text for name, text in config.items() if name not in ("sasl.username", "sasl.password")}
    for user, is_right in ((created.token_id, True), ("none", False)):
        line = f'{module}"{user}" password="{password}";'
        settings = {**stores, "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": line}
        await look_at(settings, shown, is_right=is_right)
    for claim, is_right in (("sub", True), ("nobody", False)):
        bearer = {"unsecuredLoginStringClaim_" + claim: "alice", "unsecuredLoginPrincipalClaimName": claim}
        bearer["unsecuredLoginStringClaim_secret"] = WRONG
        options = " ".join(f'{name}="{value}"' for name, value in bearer.items())
        line = f"{MODULES['OAUTHBEARER']} required {options};"
        settings = {**stores, "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": line}
        login = load_client(settings).connect_options().login
        assert login is not None
        plant((await login()).first().decode().split(".")[1][-60:])  # of the claims, which have the planted text
        await look_at(settings, shown, is_right=is_right)


async def look_at(settings: dict[str, str], shown: list[Any], *, is_right: bool) -> None:
    loaded = load_client(settings)
    shown.extend((loaded, loaded.credentials, loaded.connect_options()))
    try:
        async with Admin({**settings, "bootstrap.timeout.ms": 500}) as admin:
            shown.append(await admin.describe_cluster())
            shown.extend(vars(admin).values())
    except AuthenticationError as error:
        assert not is_right, error
        shown.extend((error, *traceback.format_exception(error)))
    else:
        assert is_right


def export(config: dict[str, str], folder: Path) -> str:
    file = folder / "client.properties"
    file.write_text(properties.dumps(config))
    done = invoke("export", "--command-config", file)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(
    "broken",
    [
        {"ssl.key.password": WRONG},
        {"ssl.keystore.certificate.chain": "nothing"},
        {DYNAMIC: f'PlainLoginModule required user_a="{ALICES}"'},
        {DYNAMIC: f'PlainLoginModule required user_a="{ALICES};'},
        {DYNAMIC: f"ScramLoginModule required user_a={ALICES};"},
        {"ssl.principal.mapping.rules": "nonsense"},
        {"ssl.cipher.suites": "NOTHING"},
    ],
)
def test_errors_in_settings_show_no_secret(tmp_path: Path, broken: dict[str, str]) -> None:
    own = SECURITY.server_settings(("127.0.0.1",), is_authorizing=False)
    listeners = {"listeners": "SASL_SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:0", "log.dirs": str(tmp_path / "data")}
    config = load(None, own | listeners | planted() | broken)

    async def start() -> None:
        await Node(config).start()

    with pytest.raises((ConfigError, NodeError)) as refused:
        asyncio.run(start())
    assert_clean("".join(traceback.format_exception(refused.value)) + str(refused.value) + repr(refused.value))


def test_files_with_secrets_belong_to_their_owner_alone(tmp_path: Path) -> None:
    node = create_secured_node(tmp_path / "secured", ["localhost"], 9092, ["alice"])
    for path in node.folder.rglob("*"):
        if path.is_file():
            text = path.read_text()
            secret = "PRIVATE KEY" in text or any(password in text for password in node.passwords.values())
            assert (path.stat().st_mode & 0o077 == 0) or not secret, path
    assert not any(password in repr(node) for password in node.passwords.values())


@pytest.mark.parametrize("name", ["node", "controllers"])
def test_a_user_with_the_name_of_another_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(OperationError, match="the name is taken"):
        create_secured_node(tmp_path / "secured", ["localhost"], 9092, [name])
    assert not (tmp_path / "secured").exists()


@pytest.mark.parametrize("name", ["", "a b", "-a", "../a", "a\nb", "a" * 65])
def test_a_user_whose_name_no_certificate_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(OperationError, match="a user name has"):
        create_secured_node(tmp_path / "secured", ["localhost"], 9092, [name])
    assert not (tmp_path / "secured").exists()


@pytest.mark.parametrize(
    "host", ["", "a b", "https://kafka", "kafka:9092", "kä.example", "a..b", "-a", "a" * 64, "1.2.3.4/8", "a.\nb"]
)
def test_a_host_that_no_certificate_can_have_is_refused_before_anything_is_written(tmp_path: Path, host: str) -> None:
    with pytest.raises(OperationError, match="a certificate can have"):
        create_secured_node(tmp_path / "secured", ["localhost", host], 9092, [])
    assert not (tmp_path / "secured").exists()


def test_names_and_addresses_are_hosts(tmp_path: Path) -> None:
    hosts = ["kafka_1.example.com", "10.0.0.1", "::1", "xn--bcher-kva.example", "a"]
    settings = create_secured_node(tmp_path / "secured", hosts, 9092, []).server_properties.read_text()
    assert "SASL_SSL\\://kafka_1.example.com\\:9092" in settings


def test_others_of_the_machine_cannot_read_the_users_in_the_metadata(tmp_path: Path) -> None:
    assert invoke("security", "init", tmp_path / "secured").exit_code == 0
    assert (tmp_path / "secured" / "data").stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "secured" / "data").rglob("*.checkpoint"))
